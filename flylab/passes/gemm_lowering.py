"""fly.gemm in fly-layout-lowering: a product of fragments becomes calls of its atom, on pointers into the fragments.

Where the values of an atom are not consecutive in their fragments, they are gathered into vectors at once
(`fly.mma_atom_call_ssa`). The multiply-add of one thread becomes `math.fma`. Where D lies in the same registers as what
is read, in other places, all that is read is gathered before the first call.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from flylab.atoms import UNIVERSAL, MmaAtom, mma_atom
from flylab.atoms.traversal import steps
from flylab.dialect.operations import attribute
from flylab.layout import Layout, coalesce, size
from flylab.passes.rewriter import Builder


def lower_gemm(lowering: Any, op: Any, builder: Builder) -> None:
    """Call the atom for each of its tiles. The first call for a tile of D adds to C, the others to D."""
    d, a, b, c = (_Fragment(lowering, builder, view, x) for view, x in zip(list(op.operands)[:4], "DABC", strict=True))
    state = list(op.operands)[4:]
    overlapping = [x for x in (a, b, c) if x.overlaps(d)]
    for fragment in overlapping:
        fragment.gather()
    call = _call_of(mma_atom(attribute(op, "atom")), (d, a, b, c), bool(overlapping))
    begun = set()
    for m, n, k in steps(attribute(op, "order"), d.extents[0], d.extents[1], a.extents[1]):
        addend = d if (m, n) in begun else c
        begun.add((m, n))
        call(builder, (d, m, n), (a, m, k), (b, n, k), (addend, m, n), state)


class _Fragment:
    """A fragment as (values, atoms along one side, atoms along the other), and the pointers to its atoms."""

    def __init__(self, lowering: Any, builder: Builder, view: Any, letter: str):
        self.lowering, self.builder, self.letter = lowering, builder, letter
        layout = lowering.bound(builder, view)
        modes = [layout[i] for i in range(len(layout.shape))] if isinstance(layout.shape, tuple) else [layout]
        self.values, *self.sides = (modes + [Layout(1, 0)] * 2)[:3]
        self.extents = [size(side) for side in self.sides]
        self.layout, self.pointer = layout, lowering.pointer[view]
        self._gathered: dict[tuple[int, int], Any] = {}
        self._pointers: dict[tuple[int, int], Any] = {}

    @property
    def is_dense(self) -> bool:
        """True where the values of an atom are consecutive."""
        values = coalesce(self.values)
        return size(values) == 1 or not isinstance(values.shape, tuple) and values.stride == 1

    def at(self, i: int, j: int) -> Any:
        """The pointer to an atom's first value."""
        if (i, j) not in self._pointers:
            offset = self.sides[0](i) + self.sides[1](j)
            self._pointers[i, j] = self.lowering.moved(self.builder, self.pointer, offset)
        return self._pointers[i, j]

    def overlaps(self, d: _Fragment) -> bool:
        """Whether it may be changed by what is written to D, before it is read: as C may be, if it is not D itself."""
        same = (self.pointer, self.layout) == (d.pointer, d.layout) and self.letter == "C"
        return _registers(self.pointer) == _registers(d.pointer) and not same

    def gather(self) -> None:
        """Read all of it now."""
        for i, j in product(*map(range, self.extents)):
            self._gathered[i, j] = self.load(i, j)

    def load(self, i: int, j: int) -> Any:
        """An atom's values as a vector."""
        if (i, j) in self._gathered:
            return self._gathered[i, j]
        return self.lowering.load(self.builder, self.at(i, j), self.values)

    def store(self, value: Any, i: int, j: int) -> None:
        """Set an atom's values."""
        self.lowering.store(self.builder, value, self.at(i, j), self.values)


def _registers(pointer: Any) -> Any:
    """What allocated the registers that a pointer points into."""
    while getattr(pointer.owner, "name", "") == "fly.add_offset":
        pointer = pointer.owner.operands[0]
    return pointer


def _call_of(atom: MmaAtom, fragments: tuple[_Fragment, ...], gathered: bool) -> Callable[..., None]:
    """What makes one call, of a builder, of D, A, B and C as (fragment, i, j), and of the state."""

    def on_pointers(builder: Builder, *tiles: Any) -> None:
        *places, state = tiles
        builder.fly("mma_atom_call", [*(f.at(i, j) for f, i, j in places), *state], [], atom=atom)

    def on_vectors(builder: Builder, d: Any, a: Any, b: Any, c: Any, state: Any) -> None:
        values = [fragment.load(i, j) for fragment, i, j in (a, b, c)]
        if atom.op.family == UNIVERSAL:
            result = builder.op("math.fma", values, values[2].type)
        else:
            result = builder.fly("mma_atom_call_ssa", [*values, *state], [values[2].type], atom=atom)
        d[0].store(result, *d[1:])

    if atom.op.family != UNIVERSAL and not gathered and all(fragment.is_dense for fragment in fragments):
        return on_pointers
    return on_vectors
