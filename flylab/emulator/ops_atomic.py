"""Atomics on memory: `global_atomic_*` and `flat_atomic_*` of integers, 32 and 64 bits wide (`_x2`).

Lanes are served one by one, lowest first, each by one atomic operation of the host, so that waves that run in parallel
never lose an update. Source: CDNA3 ISA, chapter "Flat memory instructions", and the operations of its instruction list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.access import DATA, Access, VectorAccess, address_at, fault
from flylab.emulator.compute import HANDLER, next_record
from flylab.emulator.decode import Coded, Decoder
from flylab.emulator.ir import Value
from flylab.emulator.operands import OFF, SCALAR, VECTOR, operands_of
from flylab.emulator.ops_memory import modifiers
from flylab.emulator.state import EXEC, MISALIGNED, WAVE_SIZE, Worker

# The operation in the mnemonic, and LLVM's name of it; inc and dec wrap at the operand.
OPERATIONS = {"add": "add", "sub": "sub", "and": "and", "or": "or", "xor": "xor", "swap": "xchg",
              "smin": "min", "smax": "max", "umin": "umin", "umax": "umax", "inc": "uinc_wrap", "dec": "udec_wrap",
              "cmpswap": "cmpxchg"}
RESULT = 4


def _atomic(space: str, name: str, registers: int, decoder: Decoder, instruction: Instruction) -> Coded:
    """Result where `sc0` asks for the value before, address, data, and for global_* a scalar base or `off`."""
    offset, flags = modifiers(instruction, space, frozenset({"sc0"}))
    returns = "sc0" in flags
    operands = operands_of(instruction, 2 + returns + (space == "global"))
    result = operands.pop(0) if returns else None
    address, data = operands[:2]
    base = operands[2] if space == "global" and operands[2].kind != OFF else None
    form = Access(True, 4, registers, "base" if base else "pair")
    coded = Coded(f"atomic {name} {returns} {form}", partial(_write, OPERATIONS[name], returns, form))
    found = decoder.registers
    coded.slot(found.offset(data, registers * (1 + (name == "cmpswap")), VECTOR))
    coded.slot(found.offset(address, 1 if base else 2, VECTOR))
    coded.slot(found.offset(base, 2, SCALAR) if base else 0)
    coded.slot(offset)
    coded.slot(found.offset(result, registers, VECTOR) if result else 0)
    return coded


def _write(operation: str, returns: bool, form: Access, name: str) -> str:
    return _Atomic(form, operation, returns).text(name)


class _Atomic(VectorAccess):
    def __init__(self, access: Access, operation: str, returns: bool):
        super().__init__(access)
        self.operation, self.returns = operation, returns

    def text(self, name: str) -> str:
        b = self.b
        self.exec = b.load(b.at("%s", 4 * EXEC), "i64")
        addresses, _ = self.addresses()
        b.store(addresses, b.at("%w", Worker.addresses.offset), 64)
        self.check_alignment(addresses)
        self.check_bounds(addresses)
        self.each_lane()
        next_record(b)
        return b.function(name, HANDLER)

    def check_alignment(self, addresses: Value) -> None:
        """Every active lane's address is a multiple of what it moves; the hardware faults else."""
        b, size = self.b, self.access.bytes
        odd = b.let(f"bitcast {(addresses & (size - 1)).cmp('ne', 0).typed} to i{WAVE_SIZE}", "i64") & self.exec
        with b.when(odd.cmp("ne", 0)):
            lane = odd.count("cttz")
            fault(b, MISALIGNED, lane, b.load(address_at(b, lane), "i64", align=8), size)

    def each_lane(self) -> None:
        """The operation, lane by lane; a result that is asked for is what was there before."""
        b, registers = self.b, self.access.registers
        with b.set_bits(self.exec) as (lane, _):
            address = b.load(address_at(b, lane), "i64", align=8)
            pointer = b.let(f"inttoptr {address.typed} to ptr", "ptr").name
            data = self.whole(DATA, 0, lane)
            if self.operation == "cmpxchg":
                expected = self.whole(DATA, registers, lane)
                pair = b.let(f"cmpxchg ptr {pointer}, {expected.typed}, {data.typed} seq_cst seq_cst", "pair").name
                before = b.let(f"extractvalue {{ {data.type}, i1 }} {pair}, 0", data.type)
            else:
                before = b.let(f"atomicrmw {self.operation} ptr {pointer}, {data.typed} seq_cst", data.type)
            for register in range(registers if self.returns else 0):
                part = before.shr(32 * register).to("i32") if registers > 1 else before
                b.store(part, b.at(self.row(RESULT, register), lane.shl(2)))

    def whole(self, record_slot: int, first: int, lane: Value) -> Value:
        """The 32 or 64 bits that a lane's registers hold from the `first` one on."""
        b = self.b
        parts = [b.load(b.at(self.row(record_slot, first + n), lane.shl(2)), "i32")
                 for n in range(self.access.registers)]
        return parts[0] if len(parts) == 1 else parts[0].to("i64") | parts[1].to("i64").shl(32)


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {
    f"{space}_atomic_{name}{suffix}": partial(_atomic, space, name, registers)
    for space in ("global", "flat") for name in OPERATIONS for suffix, registers in (("", 1), ("_x2", 2))}
