"""Registers moved between lanes by the LDS hardware: `ds_bpermute_b32`, `ds_permute_b32` and `ds_swizzle_b32`.

No LDS memory is touched. EXEC holds for both ends, and a lane that nothing reaches gets 0. Of bpermute and permute an
address is a lane number times 4, of which the low two bits and those above a wave's lanes do not count; a swizzle has
its pattern in the offset (swizzle.py).
Source: CDNA3 ISA, "LDS_BPERMUTE_B32" and "LDS_PERMUTE_B32" of the instruction list.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import VECTOR, operands_of
from flylab.emulator.handlers.ir import Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.instructions.memory import modifiers
from flylab.emulator.memory.lds import STEP, LdsHandler
from flylab.emulator.memory.swizzle import HALF, pattern, swizzle_offset
from flylab.emulator.state import WAVE_SIZE, Worker, slot_offset

RESULT, DATA, ADDRESS, OFFSET = range(4)
# Of a swizzle: a byte for each lane of half a wave, from this slot on.
SOURCES = 2


class _Pull(LdsHandler, ABC):
    """Each active lane takes the register of another lane, which must be active too, else 0."""

    def text(self, name: str) -> str:
        """The handler's IR."""
        b, result = self.b, self.row(RESULT)
        # What may be taken goes to the worker's scratch first: the result may be one of the sources.
        given = b.at("%w", Worker.addresses.offset)
        active = self.exec.recast("i1", WAVE_SIZE)
        b.store(active.select(b.load(self.row(DATA), "i32", WAVE_SIZE, 64), 0), given, 64)
        self.prepare()
        self.begin_steps()
        found = b.gathered([b.load(b.at(given, self.source(n).shl(2)), "i32") for n in range(STEP)])
        at, mask = self.in_chunk(result), self.exec.shr(self.chunk).to(f"i{STEP}").recast("i1", STEP)
        b.store(mask.select(found, b.load(at, "i32", STEP, 64)), at, 64)
        self.end_steps("finished")
        b.label("finished")
        return self.finish(name)

    @abstractmethod
    def prepare(self) -> None:
        """Loads what `source` needs, before the loop."""

    @abstractmethod
    def source(self, n: int) -> Value:
        """The number of the lane that lane `chunk` + n takes from."""


class _PullByAddress(_Pull):
    def prepare(self) -> None:
        self.addresses, self.offset = self.row(ADDRESS), slot(self.b, OFFSET)

    def source(self, n: int) -> Value:
        address = self.b.load(self.b.at(self.in_chunk(self.addresses), 4 * n), "i32") + self.offset
        return address.shr(2) & (WAVE_SIZE - 1)


class _PullByPattern(_Pull):
    def prepare(self) -> None:
        self.sources = self.b.at("%r", slot_offset(SOURCES))

    def source(self, n: int) -> Value:
        b = self.b
        number = b.load(b.at(self.sources, (self.chunk & HALF - 1) + n), "i8", align=1)
        return number.to("i64") | self.chunk & HALF


class _Push(LdsHandler):
    """Each active lane gives its register to the lane that its address names; of several the highest wins."""

    def text(self, name: str) -> str:
        """The handler's IR."""
        b, offset = self.b, slot(self.b, OFFSET)
        result, data, addresses = (self.row(n) for n in (RESULT, DATA, ADDRESS))
        arrived = b.at("%w", Worker.addresses.offset)
        b.store(b.const(0, "i32", WAVE_SIZE), arrived, 64)
        with b.set_bits(self.exec) as (lane, _):
            target = (b.load(b.at(addresses, lane.shl(2)), "i32") + offset).shr(2) & (WAVE_SIZE - 1)
            b.store(b.load(b.at(data, lane.shl(2)), "i32"), b.at(arrived, target.shl(2)))
        active, before = self.exec.recast("i1", WAVE_SIZE), b.load(result, "i32", WAVE_SIZE, 64)
        b.store(active.select(b.load(arrived, "i32", WAVE_SIZE, 64), before), result, 64)
        return self.finish(name)


def _by_address(handler: type[_PullByAddress | _Push], decoder: Decoder, instruction: Instruction) -> Coded:
    """Result, address, data."""
    result, address, data = (decoder.registers.offset(o, 1, VECTOR) for o in operands_of(instruction, 3))
    offset, _ = modifiers(instruction, "lds")
    coded = Coded(f"lanes {handler.__name__}", lambda name: handler().text(name))
    for value in (result, data, address, offset):
        coded.slot(value)
    return coded


def _swizzle(decoder: Decoder, instruction: Instruction) -> Coded:
    """Result and data; the lanes of the pattern are in the record."""
    sources = pattern(swizzle_offset(instruction.modifiers))
    coded = Coded("lanes swizzle", lambda name: _PullByPattern().text(name))
    for operand in operands_of(instruction, 2):
        coded.slot(decoder.registers.offset(operand, 1, VECTOR))
    for at in range(0, HALF, 4):
        coded.slot(int.from_bytes(bytes(sources[at:at + 4]), "little"))
    return coded


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {
    "ds_bpermute_b32": lambda *args: _by_address(_PullByAddress, *args),
    "ds_permute_b32": lambda *args: _by_address(_Push, *args), "ds_swizzle_b32": _swizzle}
