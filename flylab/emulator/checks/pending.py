"""Which registers a load may still have to fill when an instruction names them, on any way through a kernel.

A waiting that is there on all ways is proven here, from the text alone, so that only the other instructions need be
watched while they run: of what compilers make, none. Nothing is missed: where ways meet, a register is pending that is
on one of them, for as few operations as on any.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from flylab.codegen.assembly.effects import WAITED, Effects, Span

Register = tuple[str, int]

# Operations that a register can be behind, beyond which it makes no difference.
_FAR = 64
_COMPUTED = ("s_setpc_b64", "s_swappc_b64", "s_call_b64")


def in_order(effect: Effects) -> bool:
    """True for what comes back in the order of its counter: neither scalar nor flat memory, nor messages."""
    return effect.kind in ("vmem", "scratch", "lds") or effect.raises == ("vmcnt",)


def registers_of(spans: Sequence[Span]) -> list[Register]:
    """The registers of spans, each once."""
    return list(dict.fromkeys((span.file, span.first + n) for span in spans for n in range(span.count)))


def filled(effect: Effects) -> list[Register]:
    """The registers that an operation fills when it is done."""
    return registers_of(effect.writes) if effect.raises else []


@dataclass
class _State:
    """By counter: pending registers, each with the operations issued since; whether some may be out of order."""

    pending: dict[str, dict[Register, int]] = field(default_factory=lambda: {name: {} for name in WAITED})
    unordered: dict[str, bool] = field(default_factory=lambda: dict.fromkeys(WAITED, False))

    def copy(self) -> _State:
        return _State({name: dict(found) for name, found in self.pending.items()}, dict(self.unordered))

    def join(self, other: _State) -> bool:
        """Takes in what is pending on another way; True where that changed anything."""
        changed = False
        for name in WAITED:
            mine = self.pending[name]
            for register, distance in other.pending[name].items():
                if distance < mine.get(register, _FAR + 1):
                    mine[register], changed = distance, True
            if other.unordered[name] and not self.unordered[name]:
                self.unordered[name] = changed = True
        return changed

    def step(self, effect: Effects) -> None:
        """What one instruction changes."""
        for name, count in effect.waits.items():
            if count == 0:
                self.pending[name], self.unordered[name] = {}, False
            elif not self.unordered[name]:
                self.pending[name] = {r: d for r, d in self.pending[name].items() if d < count}
        for name in effect.raises:
            self.pending[name] = {r: min(d + 1, _FAR) for r, d in self.pending[name].items()}
            self.pending[name] |= dict.fromkeys(filled(effect), 0)
            self.unordered[name] |= not in_order(effect)

    def suspects(self, effect: Effects) -> list[tuple[Register, bool]]:
        """The pending registers that an instruction reads, or (True) only overwrites without being ordered."""
        vm, lgkm = (self.pending[name] for name in WAITED)
        reads = [r for r in registers_of(effect.reads) if r in vm or r in lgkm]
        ordered = effect.raises if in_order(effect) else ()
        writes = [r for r in registers_of(effect.writes) if r not in reads and (
            r in vm and "vmcnt" not in ordered or r in lgkm and "lgkmcnt" not in ordered)]
        return [*((r, False) for r in reads), *((r, True) for r in writes)]


@dataclass(frozen=True)
class Suspects:
    """By instruction: the registers that may be pending there, and whether it only overwrites them."""

    by_instruction: tuple[tuple[tuple[Register, bool], ...], ...]

    @property
    def registers(self) -> frozenset[Register]:
        """All of them."""
        return frozenset(register for found in self.by_instruction for register, _ in found)


def suspects(mnemonics: Sequence[str], operands: Sequence[Sequence[str]], labels: dict[str, int],
             found: Sequence[Effects]) -> Suspects:
    """The suspects of each instruction of a kernel, whose effects are `found`."""
    if any(name in _COMPUTED for name in mnemonics):
        return _anywhere(found)
    targets = {n: labels[operands[n][-1]] for n, effect in enumerate(found)
               if effect.kind == "branch" and operands[n] and operands[n][-1] in labels}
    starts = sorted({0, *targets.values(), *(n + 1 for n, e in enumerate(found) if e.kind in ("branch", "end"))})
    entries = {0: _State()}
    waiting, result = [0], [()] * len(found)  # type: list[int], list[tuple[tuple[Register, bool], ...]]
    ends = dict(zip(starts, [*starts[1:], len(found)], strict=True))
    while waiting:
        start = waiting.pop()
        state = entries[start].copy()
        for number in range(start, min(ends[start], len(found))):
            result[number] = tuple(state.suspects(found[number]))
            state.step(found[number])
        for after in _after(ends[start] - 1, mnemonics, targets, found):
            if after not in entries:
                entries[after] = state.copy()
            elif not entries[after].join(state):
                continue
            waiting.append(after)
    return Suspects(tuple(result))


def _after(last: int, mnemonics: Sequence[str], targets: dict[int, int], found: Sequence[Effects]) -> list[int]:
    """The instructions that may follow one at the end of a block."""
    jump = [targets[last]] if last in targets else []
    falls = found[last].kind != "end" and mnemonics[last] != "s_branch" and last + 1 < len(found)
    return jump + [last + 1] * falls


def _anywhere(found: Sequence[Effects]) -> Suspects:
    """Where jumps go to computed places: each register that any load fills may be pending at each instruction."""
    state = _State()
    for name in WAITED:
        state.pending[name] = {r: 0 for effect in found if name in effect.raises for r in filled(effect)}
    return Suspects(tuple(tuple(state.suspects(effect)) for effect in found))
