"""Handlers of atomics on LDS.

A workgroup runs on one thread of the host, so plain loads and stores are atomic; lanes are served lowest first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flylab.emulator.decoding.table import TYPES
from flylab.emulator.handlers.ir import Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.instructions.floats import bfloat_bits
from flylab.emulator.memory.lds import LdsHandler, fault_at
from flylab.emulator.numbers.float_mode import Mode, flushed
from flylab.emulator.numbers.rounding import narrow
from flylab.emulator.state import LDS_MISALIGNED

ADDRESS, OFFSET, DATA, _, RESULT, OFFSET_2 = range(6)


class Floats:
    """Floats in LDS: their bits as values and back, by the denormal mode of the wave.

    Rounding is to nearest even whatever the mode. Source: LLVM's lowering of LDS atomics ("DS FP atomics do respect the
    denormal mode, but the rounding mode is fixed"). Of bfloat16 none tells: it goes by the mode of f32, whose upper
    half it is.
    """

    def __init__(self, name: str, mode: Mode):
        self.name, self.mode = name, mode
        self.type = TYPES["f32" if name == "bf16" else name]

    def value(self, bits: Value) -> Value:
        """The value of bits, denormals made zero where sources are flushed."""
        if self.name == "bf16":
            bits = bits.to("i32").shl(16)
        return flushed(self.mode, bits, self.type, 1).bits(self.type.bits).to(self.type.value)

    def bits(self, value: Value) -> Value:
        """The bits of a value, rounded, denormals made zero where results are flushed."""
        rounded = narrow(value) if self.type.bits == "half" else value
        bits = flushed(self.mode, rounded.bits(self.type.integer), self.type, 2)
        return bfloat_bits(bits.bits("float")).to("i16") if self.name == "bf16" else bits


@dataclass(frozen=True)
class Atomic:
    """One operation on `bits` bits of LDS: from what is there and `operands` of data to what is put there, as bits.

    Where `floats` names a format, `compute` takes it first. `aligns` rounds an address down instead of checking it.
    """

    name: str
    bits: int
    compute: Callable[..., Value] = field(compare=False, repr=False)
    operands: int = 1
    floats: str = ""
    aligns: bool = False


class _AtomicHandler(LdsHandler):
    """What the handlers of atomics share: aligned addresses, and values of 32 or 64 bits in registers.

    `operands` is how many values of data there are, `results` how many the result's registers hold.
    """

    def __init__(self, bits: int, operands: int, results: int):
        super().__init__()
        self.bits, registers = bits, range(bits // 32)
        self.addresses = self.row(ADDRESS)
        self.operands = [[self.row(DATA + n, register) for register in registers] for n in range(operands)]
        self.results = [[self.row(RESULT, n * len(registers) + register) for register in registers]
                        for n in range(results)]

    def check(self, offset: Value, mask: int = -1) -> None:
        """Every active lane's bytes lie in LDS, at a multiple of their size."""
        size = self.bits // 8
        offsets = self.checked_offsets(self.addresses, offset, size, mask)
        odd = (offsets & (size - 1)).cmp("ne", 0).recast("i64", 0)
        fault_at(self.b, LDS_MISALIGNED, self.exec & odd, offsets, size)

    def data(self, lane: Value) -> list[Value]:
        """A lane's values, each of one register or two."""
        b = self.b
        found = [[b.load(b.at(row, lane.shl(2)), "i32") for row in rows] for rows in self.operands]
        return [low if not high else low.to("i64") | high[0].to("i64").shl(32) for low, *high in found]

    def give_back(self, lane: Value, values: list[Value]) -> None:
        """A lane's results."""
        b = self.b
        for rows, value in zip(self.results, values, strict=True):
            for n, row in enumerate(rows):
                b.store(value.shr(32 * n).to("i32") if n else value.to("i32"), b.at(row, lane.shl(2)))


class OneAtomic(_AtomicHandler):
    """An atomic operation at one place; `returns` what was there before."""

    def __init__(self, atomic: Atomic, returns: bool, mode: Mode):
        super().__init__(atomic.bits, atomic.operands, int(returns))
        self.atomic = atomic
        self.leading = [Floats(atomic.floats, mode)] if atomic.floats else []

    def text(self, name: str) -> str:
        """The handler's IR."""
        b, atomic, offset = self.b, self.atomic, slot(self.b, OFFSET)
        mask = -atomic.bits // 8 if atomic.aligns else -1
        self.check(offset, mask)
        with b.set_bits(self.exec) as (lane, _):
            place = self.place(self.addresses, lane, offset, mask)
            before = b.load(place, f"i{self.bits}")
            b.store(atomic.compute(*self.leading, before, *self.data(lane)), place)
            self.give_back(lane, [before] * len(self.results))
        return self.finish(name)


class TwoExchange(_AtomicHandler):
    """ds_wrxchg2: both places are read, then both are written, the second last."""

    def __init__(self, bits: int):
        super().__init__(bits, 2, 2)

    def text(self, name: str) -> str:
        """The handler's IR."""
        b = self.b
        offsets = [slot(b, n) for n in (OFFSET, OFFSET_2)]
        for offset in offsets:
            self.check(offset)
        with b.set_bits(self.exec) as (lane, _):
            places = [self.place(self.addresses, lane, offset) for offset in offsets]
            before = [b.load(place, f"i{self.bits}") for place in places]
            for place, value in zip(places, self.data(lane), strict=True):
                b.store(value, place)
            self.give_back(lane, before)
        return self.finish(name)
