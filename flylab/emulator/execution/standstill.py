"""Where the workgroups of a launch stand that does not end: in the error of one that stands still, or in a note of what
interrupted it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

from flylab.emulator.decoding.decode import source_line
from flylab.emulator.execution.faults import coordinates, described
from flylab.emulator.execution.residents import MOST_RESIDENT_BYTES, Context
from flylab.emulator.state import DONE, RECORD_BYTES, WAITING, Wave
from flylab.errors import DeviceError

if TYPE_CHECKING:
    from flylab.emulator.execution.run import Run

# Workgroups, and places in a workgroup, that the error names one by one.
SHOWN = 4


def standstill_error(run: Run) -> DeviceError:
    """What all workgroups that have begun wait for, when nothing they read will ever change."""
    kernel, residents = run.loaded.kernel, run.residents
    waiting = sorted(residents.suspended, key=lambda c: c.group)
    unstarted = residents.unstarted()
    begun = (f"its {len(waiting)} workgroups that began and did not end only spin or wait at a barrier, and nothing "
             "writes what they read")
    hint = "whoever should set the flag has ended or waits itself: look at the order of waits, and at who takes part"
    if len(waiting) == 1:
        begun = "its workgroup only spins or waits at a barrier, and nothing changes what it goes by"
        hint = "nothing changes what would end the loop, or who should come to the barrier has ended: look at both"
    lines = [f"kernel '{kernel.name}' stands still: {begun}"]
    lines += _blocks(run, [(context, context.group) for context in waiting])
    if unstarted:
        limit = (f"the software device keeps {MOST_RESIDENT_BYTES} bytes of them" if residents.starved else
                 f"{kernel.target} holds {residents.most} of them at once")
        lines.append(f"    {unstarted} of {run.geometry.workgroups} workgroups were never started: {limit}")
        hint = f"a workgroup can wait for others only where all of them fit: launch at most {len(waiting)} workgroups"
    where = next((source_line(kernel, kernel.instructions[index]) for context in waiting
                  for _, state, index in _waves(run, context) if state != WAITING), None)
    return DeviceError("\n".join(lines), where=where, hint=hint)


def interrupted_note(run: Run) -> str:
    """Where a launch stood when it was interrupted, as a note on the exception; "" where no workgroup was under way."""
    running = [(context, worker.group) for context, worker in zip(run.contexts, run.workers, strict=True) if context]
    suspended = [(context, context.group) for context in run.residents.suspended]
    lines = _blocks(run, sorted((pair for pair in (*running, *suspended) if _waves(run, pair[0])), key=itemgetter(1)))
    return "\n".join([f"kernel '{run.loaded.kernel.name}' was interrupted in", *lines]) if lines else ""


def _blocks(run: Run, contexts: Sequence[tuple[Context, int]]) -> list[str]:
    """What each of these workgroups does, by their numbers, those that do the same taken together."""
    lines: list[str] = []
    alike = Counter(_places(run, context) for context, _ in contexts)
    for number, (places, count) in enumerate(alike.items()):
        if number == SHOWN:
            lines.append(f"    and in {len(alike) - SHOWN} other ways")
            break
        first = next(group for context, group in contexts if _places(run, context) == places)
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"    block {coordinates(first, run.geometry.grid)}{more}:")
        lines += [f"        {place}" for place in places[:SHOWN]]
        if len(places) > SHOWN:
            lines.append(f"        and {len(places) - SHOWN} more waves")
    return lines


def _waves(run: Run, context: Context) -> list[tuple[int, int, int]]:
    """Of each wave that has begun and not ended: number, state, and the instruction where it waits or goes on."""
    waves = (Wave * run.geometry.waves).from_address(context.memory[2].address)
    return [(n, wave.state, (wave.pc - run.records.address) // RECORD_BYTES - (wave.state == WAITING))
            for n, wave in enumerate(waves) if wave.state != DONE and wave.pc]


def _places(run: Run, context: Context) -> tuple[str, ...]:
    """What each wave of a workgroup does, waves that do the same taken together."""
    kernel, found = run.loaded.kernel, dict[tuple[int, int], list[int]]()
    for number, state, index in _waves(run, context):
        found.setdefault((state, index), []).append(number)
    lines = []
    for (state, index), numbers in found.items():
        instruction = kernel.instructions[index]
        line = source_line(kernel, instruction)
        verb = "waits at" if state == WAITING else "spins through"
        names = f"wave {numbers[0]}" if len(numbers) == 1 else f"each of waves {', '.join(map(str, numbers))}"
        at = f", {line.place}" if line else ""
        lines.append(f"{names} {verb} {described(instruction)}{at}")
    return tuple(lines)
