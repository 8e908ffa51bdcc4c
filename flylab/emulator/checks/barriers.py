"""The check of barriers: each must be reached by all threads of a wave together, and by all waves of a workgroup.

The chip counts waves at a barrier: it goes on when every wave that has not ended has come, whichever lanes are active.
So a barrier in a branch does not hang there, and orders nothing that its author meant. What is told of lanes that do
not come is the instruction that took them out of EXEC. A barrier of a block of one wave, or of a wave, is no
instruction and stands before one (`Instruction.barriers`); a wave without active lanes has jumped over it.
Two waves that meet at different barriers are as good as at one, which kernels with waves of several sorts make use of;
with `check="all"` that is told too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import IsaKernel
from flylab.emulator.checks import barrier_words
from flylab.emulator.checks.barrier_words import DIFFERENT, DIVERGENT, DIVERGENT_WAVE, ENDED, LEFT
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.linking import Code
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.probes.probe import Frame, Piece, Site, find
from flylab.emulator.probes.shadow import GroupShadow, GroupWave, Template, WaveShadow, group_wave
from flylab.emulator.state import EXEC, WAVE_SIZE, Launch, Worker


class Barriers:
    """The instrument; `strict` where waves at different barriers are told too."""

    name = "barriers"
    tally_bytes = 0
    kinds: Mapping[int, Callable[[Entry, Scene], Finding]] = barrier_words.KINDS

    def __init__(self, strict: bool = False):
        self.strict = strict
        self.helpers: Mapping[str, Callable[[str], str]] = {
            "meet": _meet_text, "end": _end_text, "leave": _leave_text}

    def prepare(self, template: Template, kernel: IsaKernel, registers: Registers) -> None:
        """Nobody has been anywhere when a wave begins."""

    def pieces(self, site: Site) -> Sequence[Piece]:
        """What a probe has to do where there is a barrier, at the end of a wave, and where lanes leave."""
        return list(self._pieces(site)) if site.once(_has_barriers) else ()

    def _pieces(self, site: Site) -> Iterator[Piece]:
        effects = site.effects
        if site.instruction.barriers:
            yield Piece("wave barrier", partial(_emit_divergent, DIVERGENT_WAVE), (), ("leave",))
        if effects.kind == "barrier":
            yield Piece("divergent", partial(_emit_divergent, DIVERGENT), (), ("leave",))
            yield Piece(f"meet {self.strict}", partial(_emit_call, "meet", self.strict), (), ("meet",))
        if effects.kind == "end":
            yield Piece("end", partial(_emit_call, "end", False), (), ("end",))
        if any(s.file == "s" and s.first <= EXEC + 1 and s.first + s.count > EXEC for s in effects.writes):
            yield Piece("exec", _emit_exec, (), ("leave",))


def _has_barriers(code: Code) -> bool:
    return any(i.barriers or base_name(i.mnemonic) == "s_barrier" for i in code.kernel.instructions)


def _emit_divergent(kind: int, frame: Frame) -> None:
    """A finding where lanes are missing that the wave began with."""
    b = frame.b
    first = b.field(frame.shadow, WaveShadow, "initial_exec")
    partly = frame.exec.cmp("ne", first)
    with b.when(partly & frame.exec.cmp("ne", 0) if kind == DIVERGENT_WAVE else partly):
        frame.call("leave", frame.shadow, frame.exec)
        missing = first & ~frame.exec
        left = b.let(f"load <{WAVE_SIZE} x i32>, ptr {b.at(frame.shadow, WaveShadow.left_at.offset)}, align 4", "i32",
                     WAVE_SIZE)
        lane = missing.count("cttz") & 63
        at = b.let(f"extractelement {left.typed}, {lane.typed}", "i32")
        together = left.cmp("eq", at.splat(WAVE_SIZE)).recast("i64", 0) & missing
        frame.find(kind, frame.exec.count("cttz") & 63, 0, frame.exec, first, at, together)


def _emit_exec(frame: Frame) -> None:
    """Before EXEC is written: who has left since it was written last, and that it is written here."""
    frame.call("leave", frame.shadow, frame.exec)
    frame.b.set_field(frame.shadow, WaveShadow, "exec_at", (frame.index + 1).to("i64"))


def _leave_text(name: str) -> str:
    """Keeps, of the lanes that the last write of EXEC took away, where that was."""
    b = Builder()
    now, before = Value(b, "%now", "i64"), b.field("%shadow", WaveShadow, "exec_before")
    gone = before & ~now
    with b.when(gone.cmp("ne", 0)):
        place = b.at("%shadow", WaveShadow.left_at.offset)
        at = b.field("%shadow", WaveShadow, "exec_at").to("i32").splat(WAVE_SIZE)
        b.store(gone.recast("i1", WAVE_SIZE).select(at, b.load(place, "i32", WAVE_SIZE)), place)
    b.set_field("%shadow", WaveShadow, "exec_before", now)
    b.do("ret void")
    return b.function(name, "void @(ptr %shadow, i64 %now)")


def _emit_call(helper: str, flag: bool, frame: Frame) -> None:
    frame.call(helper, "%w", frame.index, frame.b.const(flag, "i1"))


_MEETING = "void @(ptr %w, i64 %index, i1 %strict)"


def _meet_text(name: str) -> str:
    """A wave comes to a barrier, to which waves do not come that have ended."""
    b = Builder()
    index = Value(b, "%index", "i64")
    group = b.field("%w", Worker, "group_shadow").name
    mine = group_wave(b, group, b.field("%w", Worker, "wave"))
    count = b.field(mine, GroupWave, "met") + 1
    b.set_field(mine, GroupWave, "met", count)
    b.set_field(mine, GroupWave, "barrier_at", (index + 1).to("i32"))
    with _others(b, group) as (wave, other):
        ended = b.field(other, GroupWave, "ended_at")
        with b.when(ended.cmp("ne", 0) & b.field(other, GroupWave, "met").cmp("ult", count)):
            _find(b, ENDED, ended, wave, ended)
    with b.when(Value(b, "%strict", "i1")):
        _compare(b, group, index, count)
    b.do("ret void")
    return b.function(name, _MEETING)


def _compare(b: Builder, group: str, index: Value, count: Value) -> None:
    """A finding where another wave came to another instruction for this barrier."""
    first = b.field(group, GroupShadow, "first")
    places = b.at(group, GroupShadow.met.offset)
    with b.when(b.field(group, GroupShadow, "met_first").cmp("ne", first)):
        b.store(b.const(0, "i32", 4), places)
        b.set_field(group, GroupShadow, "met_first", first)
    place = b.at(places, (count & 1).shl(3))
    at, here = b.load(b.at(place, 4), "i32"), (index + 1).to("i32")
    same = b.load(place, "i32").cmp("eq", count)
    with b.when(same & at.cmp("ne", here)):
        _find(b, DIFFERENT, at, at, at)
    with b.when(~same):
        b.store(count, place)
        b.store(here, b.at(place, 4))


def _end_text(name: str) -> str:
    """A wave ends, while others may wait at a barrier."""
    b = Builder()
    index = Value(b, "%index", "i64")
    group = b.field("%w", Worker, "group_shadow").name
    mine = group_wave(b, group, b.field("%w", Worker, "wave"))
    b.set_field(mine, GroupWave, "ended_at", (index + 1).to("i32"))
    count = b.field(mine, GroupWave, "met")
    with _others(b, group) as (wave, other):
        waits = b.field(other, GroupWave, "ended_at").cmp("eq", 0)
        at = b.field(other, GroupWave, "barrier_at")
        with b.when(waits & b.field(other, GroupWave, "met").cmp("ugt", count)):
            _find(b, LEFT, at, wave, at)
    b.do("ret void")
    return b.function(name, _MEETING)


@contextmanager
def _others(b: Builder, group: str) -> Iterator[tuple[Value, str]]:
    """A loop over the waves of the workgroup: the number of a wave, and where it is kept."""
    place = b.let("alloca i64", "ptr").name
    b.store(b.const(0, "i64"), place, 8)
    waves = b.field(b.field("%w", Worker, "launch").name, Launch, "waves")
    with b.forever() as (_, end):
        wave = b.load(place, "i64", align=8)
        b.leave_when(wave.cmp("uge", waves), end)
        yield wave, group_wave(b, group, wave)
        b.store(wave + 1, place, 8)


def _find(b: Builder, kind: int, key: Value, wave: Value, at: Value) -> None:
    find(b, "%w", Value(b, "%index", "i64"), kind, 0, key, wave, at)


INSTRUMENT, STRICT = Barriers(), Barriers(strict=True)
