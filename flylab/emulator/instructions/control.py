"""Jumps, barriers, the end, mode changes, and the instructions that carry values between lanes and scalars."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.hwreg import MODE_ID
from flylab.emulator.decoding.operands import (
    CONSTANT,
    SCALAR,
    VECTOR,
    OperandError,
    bounded,
    operands_of,
)
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot, tail_call
from flylab.emulator.instructions.hardware import field_operand
from flylab.emulator.memory.access import count_to_here, fault
from flylab.emulator.numbers.float_mode import KNOWN_BITS
from flylab.emulator.state import (
    BARRIER,
    END,
    EXEC,
    M0,
    MODE,
    PAST_END,
    RECORD_BYTES,
    SCC,
    TRAP,
    VCC,
    YIELD,
    Worker,
)

Decode = Callable[[Decoder, Instruction], Coded]

# Where a conditional jump looks, the width, and whether zero or non-zero jumps.
CONDITIONS = {
    "s_branch": None,
    "s_cbranch_scc0": (SCC, "i32", "eq"), "s_cbranch_scc1": (SCC, "i32", "ne"),
    "s_cbranch_vccz": (VCC, "i64", "eq"), "s_cbranch_vccnz": (VCC, "i64", "ne"),
    "s_cbranch_execz": (EXEC, "i64", "eq"), "s_cbranch_execnz": (EXEC, "i64", "ne"),
}
# LLVM's `llvm.debugtrap`: without a debugger the trap handler returns at once. Source: LLVM 22's AMDGPU usage guide.
DEBUG_TRAP = 3
# Jumps that a debugger turns on: there is none, so they are never taken.
NEVER_TAKEN = tuple(f"s_cbranch_cdbg{which}" for which in ("sys", "user", "sys_or_user", "sys_and_user"))


def no_effect(decoder: Decoder, instruction: Instruction) -> Coded:
    """An instruction that changes nothing."""
    return Coded("nothing", _write_nothing)


def _write_nothing(name: str) -> str:
    b = Builder()
    next_record(b)
    return b.function(name, HANDLER)


def _end(decoder: Decoder, instruction: Instruction) -> Coded:
    if len(words := (*instruction.operands, *instruction.modifiers)) > 1:
        raise OperandError(f"it takes one number at most, and has {len(words)} operands")
    for text in words:
        bounded(text, 0, (1 << 16) - 1, "its operand")
    return Coded("end", partial(_write_leaving, status=END))


def _barrier(decoder: Decoder, instruction: Instruction) -> Coded:
    if instruction.operands or instruction.modifiers:
        raise OperandError("it takes no operands")
    return Coded("barrier", partial(_write_leaving, status=BARRIER))


def _write_leaving(name: str, status: int) -> str:
    """Leaves the chain; where the wave goes on, it does so after this instruction."""
    b = Builder()
    count_to_here(b)
    b.set_field("%w", Worker, "pc", b.at("%r", RECORD_BYTES))
    b.do(f"ret i32 {status}")
    return b.function(name, HANDLER)


def _status_bit(why: str, decoder: Decoder, instruction: Instruction) -> Coded:
    """s_sethalt and s_setkill: bit 0 of the constant goes to a bit of the wave's status, which is 0 here."""
    if len(instruction.operands) != 1:
        raise OperandError(f"it has {len(instruction.operands)} operands, and takes 1")
    if bounded(instruction.operands[0], 0, 0xFFFF, "the constant") & 1:
        raise OperandError(why)
    return no_effect(decoder, instruction)


def _trap(decoder: Decoder, instruction: Instruction) -> Coded:
    number = bounded(instruction.operands[0], 0, 255, "the trap") if instruction.operands else 0
    if number == DEBUG_TRAP:
        return no_effect(decoder, instruction)
    coded = Coded("trap", _write_trap)
    coded.slot(number)
    return coded


def _write_trap(name: str) -> str:
    b = Builder()
    exec_ = b.load(b.at("%s", 4 * EXEC), "i64")
    fault(b, TRAP, exec_.count("cttz") & 63, slot(b, 0).to("i64"), b.load(b.at("%s", 4 * M0), "i32").to("i64"))
    b.do("unreachable")
    return b.function(name, HANDLER)


def past_end(decoder: Decoder, instruction: Instruction) -> Coded:
    """What `END_OF_FUNCTION` is decoded to."""
    return Coded("past the end", _write_past_end)


def _write_past_end(name: str) -> str:
    """What follows a function's last instruction."""
    b = Builder()
    fault(b, PAST_END, 0, 0, 0)
    b.do("unreachable")
    return b.function(name, HANDLER)


def _jump(decoder: Decoder, instruction: Instruction) -> Coded:
    if len(instruction.operands) != 1:
        raise OperandError(f"it has {len(instruction.operands)} operands, and takes the label of its target")
    distance = decoder.target(instruction.operands[0], instruction)
    if instruction.mnemonic in NEVER_TAKEN:
        return no_effect(decoder, instruction)
    coded = Coded(f"jump {instruction.mnemonic}", partial(_write_jump, condition=CONDITIONS[instruction.mnemonic]))
    coded.slot(distance)
    return coded


def _write_jump(name: str, condition: tuple[int, str, str] | None) -> str:
    """A jump taken counts the instructions up to here; when the wave's budget is used up, it lets others run."""
    b = Builder()
    if condition is None:
        _take(b)
        return b.function(name, HANDLER)
    place, type_, predicate = condition
    b.branch(b.load(b.at("%s", 4 * place), type_).cmp(predicate, 0), "taken", "passed")
    b.label("taken")
    _take(b)
    b.label("passed")
    next_record(b)
    return b.function(name, HANDLER)


def _take(b: Builder) -> None:
    go(b, b.at("%r", slot(b, 0).to("i64", True)))


def go(b: Builder, target: str) -> None:
    """Jumps to a record."""
    count_to_here(b)
    b.set_field("%w", Worker, "base", target)
    spent = b.field("%w", Worker, "count").cmp("ugt", b.field("%w", Worker, "until"))
    with b.when(spent):
        b.set_field("%w", Worker, "pc", target)
        b.do(f"ret i32 {YIELD}")
        b.label(b.fresh("unreached"))
    tail_call(b, target)


def _send(decoder: Decoder, instruction: Instruction) -> Coded:
    """s_sendmsg: an interrupt reaches nobody, since nothing waits for one here; other messages are not for kernels."""
    if (*instruction.operands, *instruction.modifiers) not in (("sendmsg(MSG_INTERRUPT)",), ("1",), ("0x1",)):
        raise OperandError("of the messages the software device takes MSG_INTERRUPT only; the others are for graphics "
                           "and trap handlers")
    return no_effect(decoder, instruction)


def _setreg(decoder: Decoder, instruction: Instruction) -> Coded:
    """Writes of MODE, the one hardware register that can be written: of its bits, those of the float mode.

    The others (exceptions, debugging, indexing) can only be written 0, by a constant.
    """
    (register, first, size), value = field_operand(instruction, 0)
    if register != MODE_ID:
        raise OperandError("of the hardware registers only MODE can be written")
    field = ((1 << size) - 1) << first
    coded = Coded(f"setreg {value.kind}", partial(_write_setreg, kind=value.kind))
    place = decoder.registers.scalar(value)
    other = field & ~KNOWN_BITS
    if other and (value.kind != CONSTANT or place << first & other):
        raise OperandError("of MODE only the rounding, denormal, clamp, IEEE and overflow bits can be set, and it "
                           f"names {size} bits from bit {first} up")
    coded.slot(place)
    coded.slot(first)
    coded.slot(field & KNOWN_BITS)
    return coded


def _write_setreg(name: str, kind: str) -> str:
    b = Builder()
    value = slot(b, 0) if kind == CONSTANT else b.load(b.at("%s", slot(b, 0)), "i32")
    field, place = slot(b, 2), b.at("%s", 4 * MODE)
    b.store(b.load(place, "i32") & ~field | value.shl(slot(b, 1)) & field, place)
    next_record(b)
    return b.function(name, HANDLER)


def _read_lane(decoder: Decoder, instruction: Instruction) -> Coded:
    """v_readfirstlane and v_readlane: one lane of a vector register to a scalar one."""
    named = instruction.mnemonic.startswith("v_readlane")
    result, source, *lane = operands_of(instruction, 3 if named else 2)
    kind = lane[0].kind if named else "first"
    coded = Coded(f"readlane {kind}", partial(_write_read_lane, kind=kind))
    coded.slot(decoder.registers.offset(result, 1, SCALAR))
    coded.slot(decoder.registers.offset(source, 1, VECTOR))
    for operand in lane:
        coded.slot(decoder.registers.scalar(operand))
    return coded


def _lane(b: Builder, kind: str, index: int) -> Value:
    if kind == "first":  # with no active lane it is lane 0
        return b.load(b.at("%s", 4 * EXEC), "i64").count("cttz") & 63
    value = slot(b, index) if kind == CONSTANT else b.load(b.at("%s", slot(b, index)), "i32")
    return (value & 63).to("i64")


def _write_read_lane(name: str, kind: str) -> str:
    b = Builder()
    value = b.load(b.at(b.at("%v", slot(b, 1)), _lane(b, kind, 2).shl(2)), "i32")
    b.store(value, b.at("%s", slot(b, 0)))
    next_record(b)
    return b.function(name, HANDLER)


def _write_lane_of(decoder: Decoder, instruction: Instruction) -> Coded:
    """v_writelane: a scalar to one lane of a vector register, whatever EXEC says."""
    result, value, lane = operands_of(instruction, 3)
    coded = Coded(f"writelane {value.kind} {lane.kind}",
                  partial(_write_write_lane, kind=value.kind, lane_kind=lane.kind))
    coded.slot(decoder.registers.offset(result, 1, VECTOR))
    for operand in (value, lane):
        coded.slot(decoder.registers.scalar(operand))
    return coded


def _write_write_lane(name: str, kind: str, lane_kind: str) -> str:
    b = Builder()
    value = slot(b, 1) if kind == CONSTANT else b.load(b.at("%s", slot(b, 1)), "i32")
    b.store(value, b.at(b.at("%v", slot(b, 0)), _lane(b, lane_kind, 2).shl(2)))
    next_record(b)
    return b.function(name, HANDLER)


DECODERS: dict[str, Decode] = {
    **dict.fromkeys(CONDITIONS, _jump),
    "s_sethalt": partial(_status_bit, "it halts the wave, and nothing here could wake it again"),
    "s_setkill": partial(_status_bit, "it kills the wave, as debuggers do: end it with s_endpgm"),
    "s_endpgm": _end, "s_barrier": _barrier, "s_trap": _trap,
    "s_setreg_imm32_b32": _setreg, "s_setreg_b32": _setreg,
    **dict.fromkeys(NEVER_TAKEN, _jump), "s_sendmsg": _send,
    "v_readfirstlane_b32": _read_lane, "v_readlane_b32": _read_lane, "v_writelane_b32": _write_lane_of,
}
