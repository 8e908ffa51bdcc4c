"""Handlers of atomics on LDS.

A workgroup runs on one thread of the host, so plain loads and stores are atomic; lanes are served lowest first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flylab.emulator.compute import Mode, flushed, narrow, slot
from flylab.emulator.ir import Value
from flylab.emulator.lds import LdsHandler, fault_at
from flylab.emulator.ops_float import bfloat_bits
from flylab.emulator.state import LDS_MISALIGNED
from flylab.emulator.table import TYPES

ADDRESS, OFFSET, DATA, DATA_2, RESULT, OFFSET_2 = range(6)


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
    """What the handlers of atomics share: aligned addresses, and values of 32 or 64 bits in registers."""

    def __init__(self, bits: int):
        super().__init__()
        self.bits, self.registers = bits, bits // 32
        self.addresses = self.row(ADDRESS)

    def check(self, offset: Value) -> None:
        """Every active lane's bytes lie in LDS, at a multiple of their size."""
        size = self.bits // 8
        offsets = self.checked_offsets(self.addresses, offset, size)
        odd = (offsets & (size - 1)).cmp("ne", 0).recast("i64", 0)
        fault_at(self.b, LDS_MISALIGNED, self.exec & odd, offsets, size)

    def data(self, record_slot: int, lane: Value) -> Value:
        """A lane's data, of one register or two."""
        b = self.b
        parts = [b.load(b.at(self.row(record_slot, n), lane.shl(2)), "i32") for n in range(self.registers)]
        return parts[0] if len(parts) == 1 else parts[0].to("i64") | parts[1].to("i64").shl(32)

    def put(self, value: Value, lane: Value, first: int = 0) -> None:
        """A lane's result, from register `first` of the result on."""
        b = self.b
        for n in range(self.registers):
            part = value.shr(32 * n).to("i32") if self.registers > 1 else value
            b.store(part, b.at(self.row(RESULT, first + n), lane.shl(2)))


class OneAtomic(_AtomicHandler):
    """An atomic operation at one place; `returns` what was there before."""

    def __init__(self, atomic: Atomic, returns: bool, mode: Mode):
        super().__init__(atomic.bits)
        self.atomic, self.returns = atomic, returns
        self.leading = [Floats(atomic.floats, mode)] if atomic.floats else []

    def text(self, name: str) -> str:
        """The handler's IR."""
        b, atomic, offset = self.b, self.atomic, slot(self.b, OFFSET)
        if atomic.aligns:
            self.checked_offsets(self.addresses, offset, 1)
        else:
            self.check(offset)
        with b.set_bits(self.exec) as (lane, _):
            place = self.place(self.addresses, lane, offset, -8 if atomic.aligns else -1)
            before = b.load(place, f"i{self.bits}")
            data = [self.data(DATA + n, lane) for n in range(atomic.operands)]
            b.store(atomic.compute(*self.leading, before, *data), place)
            if self.returns:
                self.put(before, lane)
        return self.finish(name)


class TwoExchange(_AtomicHandler):
    """ds_wrxchg2: both places are read, then both are written, the second last."""

    def text(self, name: str) -> str:
        """The handler's IR."""
        b = self.b
        offsets = [slot(b, n) for n in (OFFSET, OFFSET_2)]
        for offset in offsets:
            self.check(offset)
        with b.set_bits(self.exec) as (lane, _):
            places = [self.place(self.addresses, lane, offset) for offset in offsets]
            before = [b.load(place, f"i{self.bits}") for place in places]
            for place, record_slot in zip(places, (DATA, DATA_2), strict=True):
                b.store(self.data(record_slot, lane), place)
            for n, value in enumerate(before):
                self.put(value, lane, n * self.registers)
        return self.finish(name)
