"""Addresses of code: reading the place, and jumps and calls to computed places, each held against the listing."""

from __future__ import annotations

from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import SCALAR, OperandError, operands_of, parse_operand
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.instructions.control import go
from flylab.emulator.linking import STEP
from flylab.emulator.memory.access import fault
from flylab.emulator.state import NOWHERE, RECORD_BYTES, Worker

# Slots: the register of the result, its value, the register of the target, then the table of places: its first address,
# how many bytes of code it is for, where it begins behind the records.
RESULT, VALUE, TARGET, FIRST, SPAN, TABLE = 0, 1, 3, 4, 6, 7


def _put_return(coded: Coded, decoder: Decoder, instruction: Instruction, result: str) -> None:
    """The result's register, and the address after the instruction."""
    coded.slot(decoder.registers.offset(parse_operand(result), 2, SCALAR))
    coded.slots.put(decoder.code.addresses[instruction.index + 1], 2)


def _get_place(decoder: Decoder, instruction: Instruction) -> Coded:
    """s_getpc: the address of the next instruction."""
    operands_of(instruction, 1)
    coded = Coded("getpc", _write_get_place)
    _put_return(coded, decoder, instruction, instruction.operands[0])
    return coded


def _write_get_place(name: str) -> str:
    b = Builder()
    _store_return(b)
    next_record(b)
    return b.function(name, HANDLER)


def _store_return(b: Builder) -> None:
    b.store(slot(b, VALUE).to("i64") | slot(b, VALUE + 1).to("i64").shl(32), b.at("%s", slot(b, RESULT)))


def _call_label(decoder: Decoder, instruction: Instruction) -> Coded:
    """s_call: a call of a label."""
    if len(instruction.operands) != 2:
        raise OperandError(f"it has {len(instruction.operands)} operands, and takes a result and a label")
    coded = Coded("call", _write_call_label)
    _put_return(coded, decoder, instruction, instruction.operands[0])
    coded.slot(decoder.target(instruction.operands[1], instruction))
    return coded


def _write_call_label(name: str) -> str:
    b = Builder()
    _store_return(b)
    go(b, b.at("%r", slot(b, TARGET).to("i64", True)))
    return b.function(name, HANDLER)


def _jump_to(decoder: Decoder, instruction: Instruction) -> Coded:
    """s_setpc and s_swappc: a jump to an address in registers; the latter keeps where to come back to."""
    calls = instruction.mnemonic == "s_swappc_b64"
    *results, source = operands_of(instruction, 2 if calls else 1)
    coded = Coded("swappc" if calls else "setpc", partial(_write_jump_to, calls=calls))
    if calls:
        _put_return(coded, decoder, instruction, instruction.operands[0])
    else:
        coded.slot(0)
        coded.slots.put(0, 2)
    coded.slot(decoder.registers.offset(source, 2, SCALAR))
    first, span = decoder.code.span
    coded.slots.put(first, 2)
    coded.slot(span)
    coded.slot(RECORD_BYTES * len(decoder.kernel.instructions))
    return coded


def _write_jump_to(name: str, calls: bool) -> str:
    b = Builder()
    target = b.load(b.at("%s", slot(b, TARGET)), "i64")
    first = slot(b, FIRST).to("i64") | slot(b, FIRST + 1).to("i64").shl(32)
    distance = target - first
    _fault_when(b, distance.cmp("ugt", slot(b, SPAN).to("i64")) | (distance & (STEP - 1)).cmp("ne", 0), target)
    records = b.field("%w", Worker, "records").name
    number = b.load(b.at(b.at(records, slot(b, TABLE).to("i64")), distance), "i32")
    _fault_when(b, number.cmp("slt", 0), target)
    if calls:
        _store_return(b)
    go(b, b.at(records, number.to("i64").shl(RECORD_BYTES.bit_length() - 1)))
    return b.function(name, HANDLER)


def _fault_when(b: Builder, wrong: Value, address: Value) -> None:
    with b.when(wrong):
        fault(b, NOWHERE, 0, address, 0)


DECODERS = {"s_getpc_b64": _get_place, "s_call_b64": _call_label, "s_setpc_b64": _jump_to, "s_swappc_b64": _jump_to}
