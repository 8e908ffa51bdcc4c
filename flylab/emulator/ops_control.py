"""Jumps, barriers, the end, mode changes, and the instructions that carry values between lanes and scalars."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.access import count_to_here, fault
from flylab.emulator.compute import HANDLER, next_record, slot, tail_call
from flylab.emulator.decode import Coded, Decoder
from flylab.emulator.float_mode import KNOWN_BITS
from flylab.emulator.hwreg import MODE_ID
from flylab.emulator.ir import Builder, Value
from flylab.emulator.operands import (
    CONSTANT,
    SCALAR,
    VECTOR,
    OperandError,
    bounded,
    operands_of,
)
from flylab.emulator.ops_hardware import field_operand
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

# Instructions that steer time, caches or debuggers: no result depends on them here, since every instruction is complete
# before the next begins.
NO_EFFECT = (
    "s_nop", "s_waitcnt", "s_sleep", "s_setprio", "s_icache_inv", "s_dcache_wb", "s_dcache_inv", "s_dcache_inv_vol",
    "s_dcache_wb_vol", "s_dcache_discard", "s_dcache_discard_x2", "s_atc_probe", "s_atc_probe_buffer",
    "s_wakeup", "s_incperflevel", "s_decperflevel", "s_ttracedata", "s_sethalt", "s_setkill", "buffer_wbl2",
    "buffer_inv", "v_nop", "v_clrexcp", "ds_nop")
# `llvm.debugtrap`, which a wave goes on from where no debugger is. Source: LLVM 22's AMDGPU usage guide, trap handler.
DEBUGGER_TRAP = 3
# Where a conditional jump looks, the width, and whether zero or non-zero jumps.
CONDITIONS = {
    "s_branch": None,
    "s_cbranch_scc0": (SCC, "i32", "eq"), "s_cbranch_scc1": (SCC, "i32", "ne"),
    "s_cbranch_vccz": (VCC, "i64", "eq"), "s_cbranch_vccnz": (VCC, "i64", "ne"),
    "s_cbranch_execz": (EXEC, "i64", "eq"), "s_cbranch_execnz": (EXEC, "i64", "ne"),
}
# Jumps that a debugger turns on: there is none, so they are never taken.
NEVER_TAKEN = tuple(f"s_cbranch_cdbg{which}" for which in ("sys", "user", "sys_or_user", "sys_and_user"))


def _no_effect(decoder: Decoder, instruction: Instruction) -> Coded:
    return Coded("nothing", _write_nothing)


def _write_nothing(name: str) -> str:
    b = Builder()
    next_record(b)
    return b.function(name, HANDLER)


def _end(decoder: Decoder, instruction: Instruction) -> Coded:
    return Coded("end", partial(_write_leaving, status=END))


def _barrier(decoder: Decoder, instruction: Instruction) -> Coded:
    return Coded("barrier", partial(_write_leaving, status=BARRIER))


def _write_leaving(name: str, status: int) -> str:
    """Leaves the chain; where the wave goes on, it does so after this instruction."""
    b = Builder()
    count_to_here(b)
    b.set_field("%w", Worker, "pc", b.at("%r", RECORD_BYTES))
    b.do(f"ret i32 {status}")
    return b.function(name, HANDLER)


def _trap(decoder: Decoder, instruction: Instruction) -> Coded:
    number = bounded(instruction.operands[0], 0, 255, "the trap") if instruction.operands else 0
    if number == DEBUGGER_TRAP:
        return _no_effect(decoder, instruction)
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
        return _no_effect(decoder, instruction)
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
    return _no_effect(decoder, instruction)


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
    **dict.fromkeys(NO_EFFECT, _no_effect), **dict.fromkeys(CONDITIONS, _jump),
    "s_endpgm": _end, "s_barrier": _barrier, "s_trap": _trap,
    "s_setreg_imm32_b32": _setreg, "s_setreg_b32": _setreg,
    **dict.fromkeys(NEVER_TAKEN, _jump), "s_sendmsg": _send,
    "v_readfirstlane_b32": _read_lane, "v_readlane_b32": _read_lane, "v_writelane_b32": _write_lane_of,
}
