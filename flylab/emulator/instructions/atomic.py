"""Vector atomics on memory: `global_atomic_*`, `flat_atomic_*` and `buffer_atomic_*` of integers and floats.

Lanes are served one by one, lowest first, each by one atomic operation of the host (`exchange.py`). A lane that is out
of a buffer's range changes nothing and gets 0. Source: CDNA3 ISA, chapter "Flat memory instructions".
"""

from __future__ import annotations

from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import VECTOR, operands_of
from flylab.emulator.handlers.ir import Value
from flylab.emulator.instructions.memory import BUFFER_FLAGS, Decode, buffer_place, coded, global_place, modifiers
from flylab.emulator.memory.access import DATA, OFFSET, RESULT, Access
from flylab.emulator.memory.exchange import FLOAT, INTEGER, exchange
from flylab.emulator.memory.moves import VectorAccess


def _atomic(space: str, name: str, registers: int, decoder: Decoder, instruction: Instruction) -> Coded:
    """Result where `sc0` asks for the value before, address, data, and for global_* a scalar base or `off`."""
    offset, flags = modifiers(instruction, space, frozenset({"sc0"}))
    returns = "sc0" in flags
    operands = operands_of(instruction, 2 + returns + (space == "global"))
    result = operands.pop(0) if returns else None
    address, data = operands[:2]
    found = decoder.registers
    form, fields = global_place(space, Access(True, 4, registers), found, address,
                                operands[2] if space == "global" else None)
    fields |= {DATA: found.offset(data, registers * (1 + (name == "cmpswap")), VECTOR), OFFSET: offset}
    if result:
        fields[RESULT] = found.offset(result, registers, VECTOR)
    return coded(Atomic, form, fields, name, returns)


def _buffer_atomic(name: str, registers: int, decoder: Decoder, instruction: Instruction) -> Coded:
    """Data, which `sc0` replaces by the value before, vector address or `off`, descriptor, scalar offset."""
    offset, flags = modifiers(instruction, "buffer", BUFFER_FLAGS | {"sc0"})
    data, address, descriptor, scalar = operands_of(instruction, 4)
    form, fields = buffer_place(Access(True, 4, registers), decoder.registers, address, descriptor, scalar, flags)
    at = decoder.registers.offset(data, registers * (1 + (name == "cmpswap")), VECTOR)
    return coded(Atomic, form, fields | {DATA: at, OFFSET: offset, RESULT: at}, name, "sc0" in flags)


class Atomic(VectorAccess):
    """An atomic of each lane."""

    def __init__(self, access: Access, operation: str, returns: bool):
        super().__init__(access)
        self.operation, self.returns, self.alignment = operation, returns, access.bytes

    def one(self, lane: Value, pointer: str, piece: Value | None) -> None:
        registers = self.access.registers
        given = [self.whole(first, lane) for first in ((0, registers) if self.operation == "cmpswap" else (0,))]
        self.put(lane, exchange(self.b, self.operation, pointer, given))

    def drop(self, lane: Value, piece: Value | None) -> None:
        self.put(lane, self.b.const(0, f"i{8 * self.access.bytes}"))

    def put(self, lane: Value, before: Value) -> None:
        """What was there before, in the result's registers where it is asked for."""
        for register in range(self.access.registers if self.returns else 0):
            part = before.shr(32 * register).to("i32") if register else before.to("i32")
            self.b.store(part, self.b.at(self.row(RESULT, register), lane.shl(2)))

    def whole(self, first: int, lane: Value) -> Value:
        """The 32 or 64 bits that a lane's registers hold from the `first` one on."""
        b = self.b
        parts = [b.load(self.register_at(first + n, lane), "i32") for n in range(self.access.registers)]
        return parts[0] if len(parts) == 1 else parts[0].to("i64") | parts[1].to("i64").shl(32)


_NAMES = [(name + suffix, name, registers) for name in (*INTEGER, "cmpswap")
          for suffix, registers in (("", 1), ("_x2", 2))] + [(name, name, count) for name, (count, _) in FLOAT.items()]
DECODERS: dict[str, Decode] = {
    f"{space}_atomic_{mnemonic}": partial(_atomic, space, name, registers)
    for space in ("global", "flat") for mnemonic, name, registers in _NAMES
}
DECODERS |= {f"buffer_atomic_{mnemonic}": partial(_buffer_atomic, name, registers)
             for mnemonic, name, registers in _NAMES}
