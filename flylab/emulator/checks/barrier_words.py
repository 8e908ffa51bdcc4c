"""What the check of barriers found, in words: which threads wait where, and which do not come, or have ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.state import WAVE_SIZE
from flylab.places import SourceLine

# Kinds: some lanes at a barrier, or at one of the wave; a wave at a barrier to which another one does not come that has
# ended, told when the first comes or when the other ends; waves at different barriers.
DIVERGENT, DIVERGENT_WAVE, ENDED, LEFT, DIFFERENT = 511, 512, 513, 514, 515
KIND = "barrier"
SHOWN = 4
ALL_COME = "all threads of a block must come to a barrier: take it out of the branch, or end no thread before it"


def threads_text(threads: Sequence[int], scene: Scene) -> str:
    """Threads by their numbers in the block, in words: runs of them, or the first few.

    A block of one dimension has plain numbers.
    """
    runs: list[list[int]] = []
    for thread in threads:
        if runs and thread == runs[-1][-1] + 1:
            runs[-1].append(thread)
        else:
            runs.append([thread])
    plain = scene.geometry.block[1:] == (1, 1)

    def named(number: int) -> str:
        return str(number if plain else scene.thread_number(number))

    if len(runs) > SHOWN:
        return f"threads {', '.join(map(named, threads[:SHOWN]))}, ... ({len(threads)} of them)"
    parts = [named(run[0]) if len(run) == 1 else f"{named(run[0])} to {named(run[-1])}" for run in runs]
    return f"thread{'s' * (len(threads) > 1)} {', '.join(parts)}"


def _of_mask(mask: int, wave: int) -> list[int]:
    return [wave * WAVE_SIZE + lane for lane in range(WAVE_SIZE) if mask >> lane & 1]


def _of_wave(wave: int, scene: Scene) -> list[int]:
    return list(range(wave * WAVE_SIZE, min((wave + 1) * WAVE_SIZE, scene.geometry.threads)))


def _divergent(of_wave: bool, entry: Entry, scene: Scene) -> Finding:
    """Only some lanes of a wave come to a barrier."""
    here, began, left, together = (int(n) for n in entry.more)
    waiting, missing = _of_mask(here, entry.wave), _of_mask(began & ~here, entry.wave)
    where = _barrier_line(entry, scene) if of_wave else scene.line(entry.index)
    at = f" in line {where.line}" if where else ""
    verb = "wait" if len(waiting) > 1 else "waits"
    comers = f"{threads_text(waiting, scene)} {verb}" if waiting else "no thread waits"
    message = f"a barrier that only some threads reach: {comers}{at}, and {threads_text(missing, scene)} of the same " \
              f"wave {'do' if len(missing) > 1 else 'does'} not come"
    others: tuple[int, ...] = ()
    if left:
        others = (left - 1,)
        first = _of_mask(together, entry.wave)
        which = "which" if first == missing else f"of which {threads_text(first, scene)}"
        message += f", {which} left at {scene.at(left - 1)}"
    return Finding(KIND, message + scene.place(entry), where, int(entry.index), scene.block(entry), scene.thread(entry),
                   ALL_COME, others, {"waiting": tuple(waiting), "missing": tuple(missing)})


def _barrier_line(entry: Entry, scene: Scene) -> SourceLine | None:
    """The line of a barrier that stands before an instruction, or the instruction's own where that is not known."""
    instruction = scene.instruction(entry.index)
    for place in instruction.barriers:
        if place is not None:
            return SourceLine.of(place[0], place[1], place[2] - 1, function=scene.kernel.name)
    return scene.line(entry.index)


def _ended(entry: Entry, scene: Scene) -> Finding:
    """A wave waits at a barrier, and another one has ended without coming to it."""
    other, at = int(entry.more[0]), int(entry.more[1]) - 1
    waiting, ended = (entry.wave, other) if entry.kind == ENDED else (other, entry.wave)
    barrier, end = (int(entry.index), at) if entry.kind == ENDED else (at, int(entry.index))
    where = scene.line(barrier)
    threads = _of_wave(waiting, scene)
    gone = _of_wave(ended, scene)
    message = (f"a barrier that only some threads reach: {threads_text(threads, scene)} wait at {scene.at(barrier)}, "
               f"and {threads_text(gone, scene)} ended without coming to it, at {scene.at(end)}")
    place = f"\n    in block {scene.block(entry)} of kernel '{scene.kernel.name}'"
    return Finding(KIND, message + place, where, barrier, scene.block(entry), scene.thread_number(threads[0]), ALL_COME,
                   (end,), {"waiting": tuple(threads), "missing": tuple(gone)}, (barrier, end))


def _different(entry: Entry, scene: Scene) -> Finding:
    """Two waves meet at two barriers."""
    other = int(entry.more[0]) - 1
    message = f"waves meet at different barriers: wave {entry.wave} here, another one at {scene.at(other)}"
    return scene.finding(entry, KIND, message, "where it is meant, check=\"auto\" does not tell it", (other,))


KINDS: Mapping[int, Callable[[Entry, Scene], Finding]] = {
    DIVERGENT: partial(_divergent, False), DIVERGENT_WAVE: partial(_divergent, True), ENDED: _ended, LEFT: _ended,
    DIFFERENT: _different}
