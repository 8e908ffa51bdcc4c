"""What a wave did before: the last visits of places, its path, and what of it is still on its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flylab.codegen.assembly.effects import Effects, effects
from flylab.codegen.assembly.registers import register_name
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.debugger.names import Named
from flylab.emulator.debugger.places import line_of
from flylab.emulator.debugger.session import Goal, Session
from flylab.emulator.debugger.stepping import ALWAYS, TRACE, WHERE_ACTIVE
from flylab.emulator.linking import END_OF_FUNCTION
from flylab.places import SourceLine


@dataclass(frozen=True)
class Moment:
    """A time at which the wave, having executed `step` instructions, is about to execute one."""

    time: int
    step: int
    instruction: Instruction
    line: SourceLine

    def __str__(self) -> str:
        return f"time {self.time}, step {self.step}: {self.instruction.text} ({self.line.file}, line {self.line.line})"

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
        return f"{self.counter}: {self.issued.instruction.text}{fills}, {self.age} instructions old"

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


def path(session: Session, wave: int, count: int) -> list[Moment]:
    """A wave's last instructions before now, the latest last. The session is left at another time."""
    now, kernel = session.steps[wave], session.loaded.kernel
    first = max(now - min(count, TRACE), 0)
    session.go_to_step(wave, first)
    session.forward(Goal(wave=wave, steps=now))
    found = []
    for step in range(first, now):
        number, time = session.traced(step)
        instruction = kernel.instructions[number]
        found.append(Moment(time, step, instruction, line_of(kernel, instruction)))
    return found


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


def outstanding(session: Session, wave: int) -> tuple[Outstanding, ...]:
    """What a wave has issued and not waited for. The session is left at another time."""
    now, kernel, count = session.steps[wave], session.loaded.kernel, 64
    while True:
        moments = path(session, wave, count)
        known = [(moment, effects(moment.instruction, kernel.target)) for moment in moments]
        if len(moments) < count or count >= TRACE or _all_waited(effect for _, effect in known):
            return tuple(_operation(counter, moment, effect, now)
                         for counter, queue in _queues(known).items() for moment, effect in queue)
        session.go_to_step(wave, now)
        count *= 4


def _all_waited(found: Iterable[Effects]) -> bool:
    """True where each counter was waited for to be 0."""
    waited = {name for effect in found for name, left in effect.waits.items() if left == 0}
    return waited == {"vmcnt", "lgkmcnt"}


def _queues(known: list[tuple[Moment, Effects]]) -> dict[str, list[tuple[Moment, Effects]]]:
    """What is on its way by counter, after instructions in their order.

    A wait for so many left means the last ones where all come back in order; else only a wait for 0 says anything.
    Source: CDNA3 and CDNA4 ISA, S_WAITCNT.
    """
    queues: dict[str, list[tuple[Moment, Effects]]] = {"vmcnt": [], "lgkmcnt": []}
    for moment, effect in known:
        for name, left in effect.waits.items():
            if left == 0:
                queues[name] = []
            elif all(_in_order(operation) for _, operation in queues[name]):
                queues[name] = queues[name][-left:]
        for name in effect.raises:
            queues[name].append((moment, effect))
    return queues


def _operation(counter: str, moment: Moment, effect: Effects, now: int) -> Outstanding:
    names = tuple(register_name(span.file, span.first, span.count) for span in effect.writes)
    return Outstanding(counter, names, moment, now - moment.step - 1)


def _in_order(effect: Effects) -> bool:
    """True for what comes back in the order of its counter: neither scalar nor flat memory, nor messages."""
    return effect.kind in ("vmem", "scratch", "lds") or effect.raises == ("vmcnt",)
