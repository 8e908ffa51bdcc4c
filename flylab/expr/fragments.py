"""The fragments of a matrix product: what an atom wants of each, and their shapes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.atoms import MmaAtom
from flylab.errors import TraceError
from flylab.expr.location import name_of
from flylab.expr.tensor import Tensor
from flylab.expr.vector import MAX_VECTOR
from flylab.expr.views import get_iter, make_view
from flylab.layout import Layout, get_leaves, size
from flylab.locks import cached_property
from flylab.shown import a_kind

SHAPES = "(V, M, N) of D and C, (V, M, K) of A, (V, N, K) of B"


@dataclass(frozen=True)
class Fragment:
    """A tensor in registers as one of the matrices: its letter, the user's name for it, and its layout."""

    letter: str
    name: str
    tensor: Tensor
    layout: Layout
    values: int

    @classmethod
    def of(cls, what: str, letter: str, tensor: Any, atom: MmaAtom) -> Fragment:
        """A fragment checked: a tensor in registers, of the atom's format."""
        name = name_of(tensor, letter)
        if not isinstance(tensor, Tensor):
            raise TraceError(f"{what}: {name} is {a_kind(tensor)}, not a tensor",
                             hint="give a fragment: fx.make_rmem_tensor(...), or a slice of one")
        if tensor.space != "register":
            raise TraceError(f"{what}: {name} {tensor.spec.layout} is in {tensor.space} memory, and {letter} is taken "
                             "from registers", hint="copy it into a fragment first: fx.copy(atom, tile, fragment)")
        wanted = {"A": atom.dtype_a, "B": atom.dtype_b}.get(letter, atom.dtype_acc)
        if tensor.spec.dtype != wanted:
            raise TraceError(f"{what}: {name} holds {tensor.spec.dtype}, and {letter} of {atom.op} is {wanted}",
                             hint=f"make the fragment of fx.{wanted}, or take an atom for fx.{tensor.spec.dtype}")
        layout = tensor.spec.layout
        if not isinstance(layout, Layout):
            raise TraceError(f"{what}: {name} is seen through {layout}, and registers are not swizzled",
                             hint="give a fragment with a plain layout")
        return cls(letter, name, tensor, layout, atom.num_values(letter if letter in "AB" else "C"))

    @cached_property
    def modes(self) -> tuple[Layout, ...]:
        """The modes of its layout."""
        shape = self.layout.shape
        return tuple(self.layout[i] for i in range(len(shape))) if isinstance(shape, tuple) else (self.layout,)

    @property
    def is_single(self) -> bool:
        """True where it holds the values of one call."""
        return size(self.layout) == self.values

    def extent(self, mode: int) -> int:
        """How many atoms there are along a mode; one where it lacks the mode."""
        return size(self.modes[mode]) if mode < len(self.modes) else 1

    def atom_at(self, i: int, j: int) -> Tensor:
        """The values of the atom at a place along its two sides."""
        offset = sum(mode(place) for mode, place in zip(self.modes[1:], (i, j), strict=False))
        view: Tensor = make_view(get_iter(self.tensor) + offset, _of(self.modes[0]))
        return view

    def seen(self, layout: Layout) -> Fragment:
        """The same registers through another layout."""
        if layout == self.layout:
            return self
        view = make_view(get_iter(self.tensor), layout)
        return Fragment(self.letter, self.name, view, layout, self.values)


def multiplied(what: str, atom: MmaAtom, fragments: list[Fragment], single: bool) -> list[Fragment]:
    """D, A, B and C with an atom's values as their first modes, checked against one another.

    Raises `TraceError` where the values of one are not the atom's, or the counts along M, N and K differ.
    """
    _check_apart(what, fragments[0])
    if all(each.is_single for each in fragments):
        # All modes are the values: (4,1) as ((4,1)).
        return [each.seen(_of(each.layout)) if len(each.modes) > 1 else each for each in fragments]
    if single or all(len(each.modes) == 1 for each in fragments) and fragments[0].values > 1:
        each = next(each for each in fragments if not each.is_single)
        raise _wrong_values(what, atom, each, size(each.layout), "use fx.gemm for several atoms" if single else
                            f"for several atoms the fragments are {SHAPES}")
    d, a, b, c = fragments
    if len(d.modes) == 2 and all(each.values == 1 for each in fragments):
        d, a, b, c = (each.seen(_of(Layout(1, 0), *each.modes)) for each in fragments)
    _check_ranks(what, (d, a, b, c))
    for each in (d, a, b, c):
        if size(each.modes[0]) != each.values:
            raise _wrong_values(what, atom, each, size(each.modes[0]), "the first mode of a fragment is one atom's "
                                f"values: {SHAPES}")
    for side, (x, i), (y, j) in (("M", (d, 1), (a, 1)), ("N", (d, 2), (b, 1)), ("K", (a, 2), (b, 2)),
                                 ("M", (d, 1), (c, 1)), ("N", (d, 2), (c, 2))):
        if x.extent(i) != y.extent(j):
            raise TraceError(
                f"{what}: {x.name} {x.layout} has {x.extent(i)} atoms along {side}, {y.name} {y.layout} has "
                f"{y.extent(j)}", hint=f"the fragments are {SHAPES}")
    calls = d.extent(1) * d.extent(2) * a.extent(2)
    if calls > MAX_VECTOR:
        raise TraceError(f"{what}: {calls} calls of {atom.op} at once ({d.name} {d.layout}), and at most {MAX_VECTOR} "
                         "are made", hint="loop over K, or divide the fragments")
    return [d, a, b, c]


def _of(*modes: Layout) -> Layout:
    return Layout(tuple(mode.shape for mode in modes), tuple(mode.stride for mode in modes))


def _check_apart(what: str, d: Fragment) -> None:
    """D is written, each value to a register of its own."""
    steps = zip(get_leaves(d.layout.shape), get_leaves(d.layout.stride), strict=True)
    if any(stride == 0 and extent > 1 for extent, stride in steps):
        raise TraceError(f"{what}: {d.name} {d.layout} has one register for several values of D",
                         hint=f"make a fragment: fx.make_rmem_tensor({d.layout.shape}, fx.{d.tensor.spec.dtype})")


def _check_ranks(what: str, fragments: tuple[Fragment, ...]) -> None:
    d, a, b, c = fragments
    for each, ranks in ((d, (3,)), (c, (3,)), (a, (2, 3)), (b, (len(a.modes),))):
        if len(each.modes) not in ranks:
            raise TraceError(f"{what}: {each.name} {each.layout} has {len(each.modes)} modes",
                             hint=f"the fragments are {SHAPES}; slice what has more, as fragment[None, None, k]")


def _wrong_values(what: str, atom: MmaAtom, each: Fragment, count: int, hint: str) -> TraceError:
    return TraceError(f"{what}: {each.name} {each.layout} has {count} values in its first mode, and a thread gives "
                      f"{atom.op} {each.values} of {each.letter}", hint=hint)
