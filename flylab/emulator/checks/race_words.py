"""What the check of LDS found, in words: both threads, both lines, the byte, and where the barrier is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from flylab.emulator.checks import lds_lane
from flylab.emulator.checks.lds_cells import ATOMIC, INDEX_AT, INDEX_BITS, IS_ATOMIC, THREAD, WRITES
from flylab.emulator.checks.order import comes_first
from flylab.emulator.execution.faults import described
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.state import WAVE_SIZE

RACE, MISSING_WAIT = "race", "missing wait"
READ, WROTE, DID_ATOMIC = "read", "wrote", "changed by an atomic"
_NOW = {READ: "reads", WROTE: "writes", DID_ATOMIC: "changes by an atomic"}
BARRIER = "gpu.barrier()"


@dataclass(frozen=True)
class _Access:
    """One of the two accesses of a race: by which thread of the workgroup, at which instruction, and what it did."""

    thread: int
    index: int
    did: str

    @property
    def wave(self) -> int:
        return self.thread // WAVE_SIZE


def _race(kind: int, entry: Entry, scene: Scene) -> Finding:
    """Two threads that reach one byte with no barrier between, in the order of the program."""
    cell, byte, flags = (int(n) for n in entry.more[:3])
    did = READ if kind == lds_lane.WRITE_AFTER_READ else DID_ATOMIC if cell & ATOMIC else WROTE
    first = _Access(cell & THREAD, cell >> INDEX_AT & (1 << INDEX_BITS) - 1, did)
    does = DID_ATOMIC if flags & IS_ATOMIC else WROTE if flags & WRITES else READ
    second = _Access(entry.wave * WAVE_SIZE + entry.lane, entry.index, does)
    if first.wave != second.wave and not comes_first(scene.kernel, first.index, second.index):
        first, second = second, first
    name = "WAR" if first.did == READ else "RAW" if second.did == READ else "WAW"
    together = first.index == second.index and first.wave == second.wave
    one, other = (scene.thread_number(access.thread) for access in (second, first))
    message = (f"a race in LDS ({name}): thread {one} {_NOW[second.did]} byte {byte}, which thread {other} "
               f"{first.did} {'in the same instruction' if together else 'with no barrier between'}")
    if not together:
        message += f": {scene.at(first.index)}"
    place = f"\n    in block {scene.block(entry)}, thread {one} of kernel '{scene.kernel.name}', at " \
            f"{described(scene.instruction(second.index))}"
    details = {"race": name, "byte": byte, "thread": one, "other": other}
    return Finding(RACE, message + place, scene.line(second.index), second.index, scene.block(entry), one,
                   _hint(scene, first, second), (first.index,), details, (name, first.index, second.index))


def _hint(scene: Scene, first: _Access, second: _Access) -> str:
    """Where a barrier would part two accesses."""
    one, two = scene.line(first.index), scene.line(second.index)
    if first.index == second.index:
        return ("let one thread do it, or give each thread a place of its own; in a loop, a barrier between its rounds "
                "may be missing")
    if one is None or two is None:
        lines = [scene.instruction(access.index).isa_line for access in (first, second)]
        return f"an s_barrier is missing between ISA line {lines[0]} and ISA line {lines[1]}{_round(*lines)}"
    if one.file == two.file and one.line == two.line:
        return f"put {BARRIER} between the two accesses of line {one.line}"
    return f"put {BARRIER} between line {one.line} and line {two.line}{_round(one.line, two.line)}"


def _round(first: int, second: int) -> str:
    return " of the next round" if second < first else ""


def _late(counter: str, entry: Entry, scene: Scene) -> Finding:
    """Bytes that a write may not have reached yet."""
    cell, byte, flags = (int(n) for n in entry.more[:3])
    index, other = cell >> INDEX_AT & (1 << INDEX_BITS) - 1, cell & THREAD
    own = other // WAVE_SIZE == entry.wave
    does = "writes" if flags & WRITES and not flags & IS_ATOMIC else "reads"
    what = "the load to LDS" if counter == "vmcnt" else "the write"
    whose = "which its wave has not waited for" if own else \
        f"of thread {scene.thread_number(other)}, whose wave had not waited for it when it came to the barrier"
    message = (f"thread {scene.thread(entry)} {does} byte {byte} of LDS, which may not be there yet from {what} "
               f"{whose}: {scene.at(index)}")
    call = f"rocdl.s_waitcnt({counter}=n)" if scene.line(index) else f"s_waitcnt {counter}(n)"
    hint = f"put {call} before {'it' if own else 'the barrier'}, n at most the operations issued since"
    return scene.finding(entry, MISSING_WAIT, message, hint, (index,), counter=counter, byte=byte,
                         other=scene.thread_number(other))


KINDS: Mapping[int, Callable[[Entry, Scene], Finding]] = {
    **{kind: partial(_race, kind) for kind in (lds_lane.READ_AFTER_WRITE, lds_lane.WRITE_AFTER_READ,
                                               lds_lane.WRITE_AFTER_WRITE)},
    lds_lane.LATE_LOAD: partial(_late, "vmcnt"), lds_lane.LATE_WRITE: partial(_late, "lgkmcnt")}
