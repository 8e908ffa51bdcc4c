"""What a wave did before: the last visits of places, its path, and what of it is still on its way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from flylab.codegen.assembly.effects import WAITED, Effects, effects
from flylab.codegen.assembly.registers import register_name
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.checks.pending import in_order
from flylab.emulator.debugger.changes import Array
from flylab.emulator.debugger.names import Named
from flylab.emulator.debugger.session import Goal, Session
from flylab.emulator.debugger.stepping import ALWAYS, TRACE, WHERE_ACTIVE
from flylab.emulator.linking import END_OF_FUNCTION
from flylab.emulator.probes.shadow import RING
from flylab.places import SourceLine

# Steps that the search for what is on its way looks at first.
FIRST_LOOK = 256


class Step(NamedTuple):
    """The number of the instruction that a wave executed as its number `step`, counted from 0, and the time before."""

    time: int
    step: int
    number: int


@dataclass(frozen=True)
class Moment:
    """A time at which the wave, having executed `step` instructions, is about to execute one."""

    time: int
    step: int
    instruction: Instruction
    line: SourceLine

    def __str__(self) -> str:
        return f"time {self.time}, step {self.step}: {self.instruction.text} ({self.line.place})"

    __repr__ = __str__


@dataclass(frozen=True)
class Outstanding:
    """A load or store that was not waited for: its counter, the registers that it fills, when it was issued.

    `age` is how many instructions the wave has executed since.
    """

    counter: str
    registers: tuple[str, ...]
    issued: Moment
    age: int

    def __str__(self) -> str:
        fills = f" fills {', '.join(self.registers)}" if self.registers else ""
        age = f"{self.age} instruction{'s' * (self.age != 1)} old"
        return f"{self.counter}: {self.issued.instruction.text}{fills}, {age}"

    __repr__ = __str__


def last_visit(session: Session, wave: int, breaks: bytes, visit: int,
               lanes: int = (1 << 64) - 1) -> tuple[int | None, int]:
    """How many instructions a wave had executed at the last but `visit` - 1 visit before now, or None; and how many
    visits there were. The session is left where the search ended."""
    high, found = session.steps[wave] - 1, 0
    begins = high >= 0
    while high > 0:
        snapshot = session.history.before_step(wave, high)

        def hits(wanted: int, time: int = snapshot.time, steps: int = high) -> int:
            session.go(time)
            session.forward(Goal(wave=wave, steps=steps, breaks=breaks, visit=wanted, lanes=lanes))
            return session.hits

        count = hits(1 << 63)
        if found + count >= visit:
            hits(count - (visit - found) + 1)
            return session.steps[wave], visit
        found, high = found + count, snapshot.steps[wave]
    if begins:
        session.go(0)
        first = breaks[session.index(wave)]
        found += first == ALWAYS or first == WHERE_ACTIVE and session.exec(wave) & lanes != 0
    return (0 if begins and found == visit else None), found


def path(session: Session, wave: int, first: int, end: int) -> Array:
    """What a wave executed as its steps from `first` to before `end`, at most TRACE: instruction and time of each.

    The session is left at another time.
    """
    session.go_to_step(wave, first)
    session.forward(Goal(wave=wave, steps=end))
    return session.traced(first, end)


def writers(kernel: IsaKernel, register: Named) -> bytes:
    """A byte for each instruction, set for those that write one of these registers."""
    breaks = bytearray(len(kernel.instructions))
    for instruction in kernel.instructions:
        if instruction.mnemonic == END_OF_FUNCTION:
            continue
        effect = effects(instruction, kernel.target)
        for span in effect.writes:
            if span.file == register.file and span.first < register.first + register.count and \
                    register.first < span.first + span.count:
                obeys = span.file != "s" and not effect.ignores_exec
                breaks[instruction.index] = WHERE_ACTIVE if obeys else ALWAYS
    return bytes(breaks)


def outstanding(session: Session, wave: int) -> list[tuple[str, tuple[str, ...], Step]]:
    """What a wave has issued and not waited for: counter, registers to be filled, when. Leaves it at another time."""
    kernel, found = session.loaded.kernel, list[tuple[Step, Effects]]()
    known = [effects(i, kernel.target) if i.mnemonic != END_OF_FUNCTION else Effects("end")
             for i in kernel.instructions]
    matters = np.array([bool(effect.raises or effect.waits) for effect in known])
    end = session.steps[wave]
    while end > 0 and not all(_is_complete(name, found) for name in WAITED):
        first = max(end - (TRACE if found else FIRST_LOOK), 0)
        rows = path(session, wave, first, end)
        found = [(Step(int(rows[at, 1]), first + int(at), int(rows[at, 0])), known[rows[at, 0]])
                 for at in np.flatnonzero(matters[rows[:, 0]])] + found
        end = first
    return [(counter, tuple(register_name(s.file, s.first, s.count) for s in effect.writes), step)
            for counter, queue in _queues(found).items() for step, effect in queue]


def _is_complete(counter: str, found: list[tuple[Step, Effects]]) -> bool:
    """True where nothing before these instructions can be on its way: all was waited for, or as much came after it as
    the chip counts."""
    return any(effect.waits.get(counter) == 0 for _, effect in found) or \
        sum(counter in effect.raises for _, effect in found) >= RING


def _queues(known: list[tuple[Step, Effects]]) -> dict[str, list[tuple[Step, Effects]]]:
    """What is on its way by counter, after instructions in their order.

    A wait for so many left means the last ones where all come back in order; else only a wait for 0 says anything.
    Source: CDNA3 and CDNA4 ISA, S_WAITCNT.
    """
    queues: dict[str, list[tuple[Step, Effects]]] = {name: [] for name in WAITED}
    for step, effect in known:
        for name, left in effect.waits.items():
            if left == 0:
                queues[name] = []
            elif all(in_order(operation) for _, operation in queues[name]):
                queues[name] = queues[name][-left:]
        for name in effect.raises:
            queues[name] = [*queues[name], (step, effect)][-RING:]
    return queues
