"""How definedness goes through a vector instruction: for each result the sources that it needs, lane by lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from flylab.emulator.checks.definedness.places import MASK, SCALAR, SGPR_ORIGIN, VECTOR, Item, Known
from flylab.emulator.handlers.ir import Value
from flylab.emulator.probes.probe import Frame, Piece
from flylab.emulator.probes.shadow import RowShadow


@dataclass(frozen=True)
class Equation:
    """A lane of `result` is defined where it is of all of `needs`, and of one of `any` where there are some.

    With a `choice` (no, yes, mask) it needs the bit of the mask and what that picks; None stands for a constant. Where
    the register is `kept` in part, it is defined where it was before, too.
    """

    result: Item
    needs: tuple[Item, ...] = ()
    any: tuple[Item, ...] = ()
    choice: tuple[Item | None, Item | None, Item] | None = None
    kept: bool = False

    @property
    def sources(self) -> tuple[Item, ...]:
        """All registers that it reads."""
        chosen = tuple(item for item in (self.choice or ()) if item)
        return (*self.needs, *self.any, *chosen)

    @property
    def key(self) -> str:
        """What tells its code from that of others."""
        parts = [",".join(map(str, part)) for part in (self.needs, self.any, self.choice or ())]
        return f"{self.result}={';'.join(parts)}{'+' * self.kept}"

    def lanes(self, known: Known) -> Value:
        """The lanes in which the result is defined, as far as EXEC lets it be written."""
        found = known.b.const(-1, "i64")
        for item in self.needs:
            found = found & known.lanes(item)
        if self.any:
            one = known.b.const(0, "i64")
            for item in self.any:
                one = one | known.lanes(item)
            found = found & one
        if self.choice:
            no, yes, mask = self.choice
            bits = known.b.load(known.b.at("%s", known.number(mask) * 4), "i64")
            for arm, others in ((no, bits), (yes, ~bits)):
                if arm:
                    found = found & (known.lanes(arm) | others)
            found = found & known.lanes(mask)
        return found | known.lanes(self.result) if self.kept else found


def propagate(equations: Sequence[Equation], words: Sequence[int], whole: bool = False) -> Piece:
    """The piece that keeps the results of a vector instruction; `whole` for one that ignores EXEC."""
    key = f"lanes {whole} " + " ".join(e.key for e in equations)
    return Piece(key, lambda frame: _emit(frame, equations, whole), tuple(words))


def _emit(frame: Frame, equations: Sequence[Equation], whole: bool) -> None:
    b = frame.b
    active = b.const(-1, "i64") if whole else frame.exec
    known = Known(frame, active)
    defined = [e.lanes(known) for e in equations]
    every = defined[0]
    for lanes in defined[1:]:
        every = every & lanes
    results = [e.result for e in equations]
    for item in results:  # before the branch, for both of its sides
        known.number(item)
    some, fast, end = (b.fresh(prefix) for prefix in ("some", "fast", "end"))
    if not any(e.sources for e in equations):
        _store_defined(known, results)
        return
    b.branch((active & ~every).cmp("ne", 0), some, fast)
    b.label(fast)
    _store_defined(known, results)
    b.jump(end)
    b.label(some)
    origins = [known.first_origin(e.sources, active & ~lanes) for e, lanes in zip(equations, defined, strict=True)]
    for result, lanes, origin in zip(results, defined, origins, strict=True):
        _store(known, result, lanes, origin)
    b.jump(end)
    b.label(end)


def _store_defined(known: Known, results: Sequence[Item]) -> None:
    b = known.b
    for item in results:
        if item.kind in (MASK, SCALAR):
            b.store(b.const(-1, "i64" if item.kind == MASK else "i32"), known.scalar(item))
        else:
            row = known.row(item)
            b.set_field(row, RowShadow, "valid", b.field(row, RowShadow, "valid") | known.active)


def _store(known: Known, item: Item, lanes: Value, origin: Value) -> None:
    """Keeps a result of which some active lanes may be undefined."""
    b, active = known.b, known.active
    undefined = (active & ~lanes).cmp("ne", 0)
    if item.kind == MASK:  # inactive lanes of a mask become 0
        b.store(lanes | ~active, known.scalar(item))
        for n in range(2):
            place = known.scalar(item, SGPR_ORIGIN + 4 * n)
            b.store(undefined.select(origin, b.load(place, "i32")), place)
        return
    assert item.kind == VECTOR
    row = known.row(item)
    old = b.field(row, RowShadow, "valid")
    b.set_field(row, RowShadow, "valid", old & ~active | lanes & active)
    b.set_field(row, RowShadow, "origin", undefined.select(origin, b.field(row, RowShadow, "origin")))
