"""Native stepping: the same handlers, in a table of records where each hands over to `stop` instead of the next one.

A handler ends by a jump to the handler that the next record names. Where that is `stop` in every record, calling an
instruction's own handler on its record executes this one instruction; the loop below keeps those handlers beside it.
"""

from __future__ import annotations

import ctypes
from ctypes import c_uint64, c_void_p
from functools import cache
from typing import Any

from flylab.codegen.assembly.effects import effects
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.execution.core import begin_group_shadow, begin_wave, registers_of
from flylab.emulator.handlers import jit
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER
from flylab.emulator.linking import END_OF_FUNCTION
from flylab.emulator.state import (
    BARRIER,
    DONE,
    END,
    EXEC,
    FAULT,
    RECORD_BYTES,
    STOPPED,
    WAITING,
    Wave,
    Worker,
)
from flylab.targets import Target

# What a breakpoint's byte says: stop there whatever EXEC is, or where a lane that is looked at is active.
ALWAYS, WHERE_ACTIVE = 2, 1
TOUCHES_LDS, TOUCHES_MEMORY = 1, 2
# The instructions of a wave that are remembered, and the bytes of each: its number and the time before it.
TRACE, TRACE_BYTES = 1 << 14, 16
_RECORD_SHIFT = RECORD_BYTES.bit_length() - 1


class Stepper(ctypes.Structure):
    """What the loop goes by: handlers and breakpoint bytes by instruction, and what it may and did execute.

    `left` instructions are executed at most, and none after the one that leads to visit number `visit` of a breakpoint;
    `hits` counts the visits, `lanes` are those that `WHERE_ACTIVE` looks at, `steps` the instructions of each wave;
    `trace` has the instruction of step n of the wave at n % TRACE. `touches` says by instruction what it may write, in
    bits TOUCHES_LDS and TOUCHES_MEMORY; `lds_writes` and `memory_writes` count such instructions.
    """

    _fields_ = [("handlers", c_void_p), ("breaks", c_void_p), ("left", c_uint64), ("visit", c_uint64),
                ("hits", c_uint64), ("lanes", c_uint64), ("steps", c_void_p), ("trace", c_void_p),
                ("touches", c_void_p), ("lds_writes", c_uint64), ("memory_writes", c_uint64)]


def touches(kernel: IsaKernel) -> bytes:
    """What each instruction may write beside registers and private memory: a byte of bits each."""
    return bytes(_touches(i, kernel.target) if i.mnemonic != END_OF_FUNCTION else 0 for i in kernel.instructions)


def _touches(instruction: Instruction, target: Target) -> int:
    effect = effects(instruction, target)
    if not (effect.store or effect.atomic or effect.to_lds or effect.space and not effect.load):
        return 0
    if effect.space in ("lds", "flat"):
        return TOUCHES_LDS | TOUCHES_MEMORY * (effect.space == "flat")
    return TOUCHES_LDS if effect.to_lds else TOUCHES_MEMORY


def stop_text(name: str) -> str:
    """The handler of every record: leaves the chain before its instruction, which is the wave's next."""
    b = Builder()
    here, base = (b.let(f"ptrtoint ptr {p} to i64", "i64") for p in ("%r", b.field("%w", Worker, "base").name))
    # A jump has counted itself, and moved the base to its target.
    b.set_field("%w", Worker, "count", b.field("%w", Worker, "count") + (here - base).shr(_RECORD_SHIFT))
    b.set_field("%w", Worker, "pc", "%r")
    b.do(f"ret i32 {STOPPED}")
    return b.function(name, HANDLER)


def step_text(name: str) -> str:
    """Executes instructions of the worker's wave until a goal is reached or the wave leaves; how it left.

    STOPPED where a goal is reached. A fault leaves the wave before its instruction, whose work may be half done.
    """
    b = Builder()
    number = b.field("%w", Worker, "wave")
    wave = b.at(b.field("%w", Worker, "waves").name, number * ctypes.sizeof(Wave))
    vgprs, sgprs = registers_of(b, b.field("%w", Worker, "launch").name, b.field(wave, Wave, "slot"))
    handlers, breaks = b.field("%d", Stepper, "handlers").name, b.field("%d", Stepper, "breaks").name
    steps = b.at(b.field("%d", Stepper, "steps").name, number * 8)
    records = b.let(f"ptrtoint ptr {b.field('%w', Worker, 'records').name} to i64", "i64")
    with b.forever():
        pc = b.field(wave, Wave, "pc").name
        b.set_field("%w", Worker, "base", pc)
        index, step = _index(b, pc, records), b.load(steps, "i64", align=8)
        traced = b.at(b.field("%d", Stepper, "trace").name, (step & TRACE - 1) * TRACE_BYTES)
        b.store(index, traced, align=8)
        b.store(b.field("%w", Worker, "count"), b.at(traced, 8), align=8)
        handler = b.load(b.at(handlers, index.shl(3)), "ptr", align=8).name
        status = b.let(f"call i32 {handler}(ptr {pc}, ptr {vgprs}, ptr {sgprs}, ptr %w)", "i32")
        _return_when(b, status.cmp("eq", FAULT), status)
        b.store(step + 1, steps, align=8)
        touched = b.load(b.at(b.field("%d", Stepper, "touches").name, index), "i8", align=1).to("i64")
        for count, bit in (("lds_writes", TOUCHES_LDS), ("memory_writes", TOUCHES_MEMORY)):
            more = touched.shr(bit.bit_length() - 1) & 1
            b.set_field("%d", Stepper, count, b.field("%d", Stepper, count) + more)
        b.set_field("%d", Stepper, "left", b.field("%d", Stepper, "left") - 1)
        with b.when(status.cmp("eq", END)):
            b.set_field(wave, Wave, "state", DONE)
            b.do(f"ret i32 {END}")
            b.label(b.fresh("unreached"))
        with b.when(status.cmp("eq", BARRIER)):
            b.set_field(wave, Wave, "state", WAITING)
        following = b.field("%w", Worker, "pc").name
        b.set_field(wave, Wave, "pc", following)
        flag = b.load(b.at(breaks, _index(b, following, records)), "i8", align=1)
        active = b.load(b.at(sgprs, 4 * EXEC), "i64") & b.field("%d", Stepper, "lanes")
        hit = flag.cmp("eq", ALWAYS) | flag.cmp("eq", WHERE_ACTIVE) & active.cmp("ne", 0)
        hits = b.field("%d", Stepper, "hits") + hit.to("i64")
        b.set_field("%d", Stepper, "hits", hits)
        reached = hit & hits.cmp("eq", b.field("%d", Stepper, "visit"))
        _return_when(b, status.cmp("ne", STOPPED) | reached | b.field("%d", Stepper, "left").cmp("eq", 0), status)
    b.do("unreachable")
    return b.function(name, "i32 @(ptr %w, ptr %d)")


def begin_text(name: str) -> str:
    """Gives a wave of the worker's workgroup what it begins with; the first one, the workgroup's shadow too."""
    b = Builder()
    launch, number = b.field("%w", Worker, "launch").name, Value(b, "%number", "i64")
    with b.when(number.cmp("eq", 0)):
        begin_group_shadow(b)
    begin_wave(b, launch, b.field("%w", Worker, "group"), number, *registers_of(b, launch, number))
    b.do("ret void")
    return b.function(name, "void @(ptr %w, i64 %number)")


def _index(b: Builder, record: str, records: Value) -> Value:
    return (b.let(f"ptrtoint ptr {record} to i64", "i64") - records).shr(_RECORD_SHIFT)


def _return_when(b: Builder, condition: Value, status: Value) -> None:
    with b.when(condition):
        b.do(f"ret {status.typed}")
        b.label(b.fresh("unreached"))


@cache
def native() -> tuple[int, Any, Any]:
    """The address of `stop`, then the loop and what begins a wave, as functions of Python."""
    found = jit.addresses({"debugger stop": stop_text, "debugger step": step_text, "debugger begin": begin_text})
    step = ctypes.CFUNCTYPE(ctypes.c_int, c_void_p, c_void_p)(found["debugger step"])
    begin = ctypes.CFUNCTYPE(None, c_void_p, c_uint64)(found["debugger begin"])
    return found["debugger stop"], step, begin
