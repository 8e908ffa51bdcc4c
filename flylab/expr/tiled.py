"""Tiled copies and tiled MMAs, and the parts of tensors that they give a thread.

They are known while tracing, and work outside of a kernel too, on layouts and coordinate tensors. A partition of a
tensor is one operation of the Fly dialect that sees the parts of all threads, and a slice of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from flylab import atoms
from flylab.atoms import CopyAtom, MmaAtom, MmaOperand
from flylab.atoms.threads import thread_coordinate
from flylab.atoms.tiled_mma import as_operand
from flylab.dialect.types import Algebra
from flylab.errors import LayoutError, TraceError, Undecided
from flylab.expr.algebra import known, traced
from flylab.expr.emit import fly
from flylab.expr.layout_value import LayoutValue
from flylab.expr.location import name_of
from flylab.expr.make_fragment import mma_make_fragment
from flylab.expr.parts import Part, beyond, extents_of, letter_of, part_of
from flylab.expr.tensor import Tensor
from flylab.expr.thread_slices import note_slice, take, thread_index
from flylab.expr.views import slice_view
from flylab.layout import ComposedLayout, Layout, coalesce, idx2crd, make_layout_tv, text
from flylab.layout.int_tuple import has_runtime
from flylab.shown import a_kind
from flylab.targets import WAVE_SIZE

_idx2crd = traced(idx2crd)


class TiledCopy(atoms.TiledCopy):
    """A copy atom for each thread and each of its values of a tile: what `fx.make_tiled_copy` makes."""

    def get_slice(self, thr_idx: Any) -> ThrCopy:
        """What one thread does of it. The thread is a Python int or a number of the device."""
        return ThrCopy(self, thr_idx)

    thr_slice = get_slice

    def retile(self, layout: Any, held: atoms.TiledCopy | None = None) -> Any:
        """A thread's fragment as this copy has it, of a layout; that of a tensor is a slice's."""
        if isinstance(layout, (Tensor, LayoutValue)):
            raise _of_one_thread(self, "retile", "tiled copy")
        return super().retile(layout, held)

    def __getattr__(self, name: str) -> Any:
        if name in ("partition_S", "partition_D"):
            raise _of_one_thread(self, name, "tiled copy")
        raise AttributeError(f"a tiled copy has no {name}")


class TiledMma(atoms.TiledMma):
    """An MMA atom for each wave of a block, side by side: what `fx.make_tiled_mma` makes."""

    def get_slice(self, thr_idx: Any) -> ThrMma:
        """What one thread does of it. The thread is a Python int or a number of the device."""
        return ThrMma(self, thr_idx)

    thr_slice = get_slice

    def __getattr__(self, name: str) -> Any:
        if name in ("partition", "partition_A", "partition_B", "partition_C"):
            raise _of_one_thread(self, name, "tiled MMA")
        raise AttributeError(f"a tiled MMA has no {name}")

    def make_fragment_A(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for a thread's part of A, given all of A, (M, K). See `fx.mma_make_fragment`."""
        return mma_make_fragment(MmaOperand.A, self, tensor, stages=stages)

    def make_fragment_B(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for a thread's part of B, given all of B, (N, K)."""
        return mma_make_fragment(MmaOperand.B, self, tensor, stages=stages)

    def make_fragment_C(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for a thread's part of C, given all of C, (M, N); in the format of the sum."""
        return mma_make_fragment(MmaOperand.C, self, tensor, stages=stages)


def _of_one_thread(tiled: Any, name: str, kind: str) -> TraceError:
    what = name_of(tiled, f"the {kind}")
    return TraceError(f"{name} of {what}, a {kind} of {tiled.num_threads} threads: each has a part of its own",
                      hint=f"say whose: {name_of(tiled, kind.replace(' ', '_')).strip(chr(39))}"
                      f".get_slice(fx.thread_idx.x).{name}(...)")


class _Thread:
    """One thread of a tiled copy or MMA, which gives its properties as its own."""

    __slots__ = ("tiled", "thr_idx", "_taken")
    kind = ""

    def __init__(self, tiled: Any, thr_idx: Any, wraps: bool):
        self.tiled = tiled
        self.thr_idx = thread_index(tiled, self.kind, thr_idx, wraps)
        self._taken = note_slice(tiled, self.kind, self.thr_idx)

    def _part(self, threads: Any, coord: Any) -> Any:
        if isinstance(threads, Tensor):
            take(self.tiled, self._taken)
        facts = _facts(threads)
        return slice_view(threads, thread_coordinate(facts, coord))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.tiled, name)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tiled}, {self.thr_idx!r})"


class ThrCopy(_Thread):
    """One thread of a tiled copy.

    A thread's part of a tensor begins where the thread's first element lies. A plain layout has no place to begin: its
    part is the same layout for every thread. What each thread has, the part of a coordinate tensor tells:

    >>> import flylab.expr as fx
    >>> tiled = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32),
    ...                               fx.make_layout((16, 4), (4, 1)), fx.make_layout((1, 1)))
    >>> places = fx.make_view((0, 0), fx.make_identity_layout((16, 8)))
    >>> part = tiled.get_slice(17).partition_S(places)
    >>> str(part), part(0, 0, 1)
    ('(4,1) o ((1,1),1,2):((0,0),1E0,4E1)', (4, 5))
    """

    __slots__ = ()
    kind = "the tiled copy"

    def __init__(self, tiled_copy: TiledCopy, thr_idx: Any):
        super().__init__(_require(tiled_copy, TiledCopy, "ThrCopy", "fx.make_tiled_copy(...)"), thr_idx, False)

    def partition_S(self, src: Any) -> Any:
        """The thread's part of a source: (value, rest of each mode).

        Of a plain layout it is without the offset, the same for all threads; of a coordinate tensor,
        `fx.make_view((0, 0), fx.make_identity_layout(shape))`, with it.

        A tensor that the tile does not divide is covered too far, as by `fx.zipped_divide`: partition a coordinate
        tensor of the same shape, and compare it with the shape, for a predicate.
        """
        threads = _threads("tiled_copy_partition_src", self.tiled.threads_src, src, tiled_copy=self.tiled)
        return _noted(self._part(threads, self.thr_idx), self.tiled, "src", src)

    def partition_D(self, dst: Any) -> Any:
        """The thread's part of a destination: (value, rest of each mode). Of a layout as `partition_S` gives it.

        Raises `TraceError` where the atom goes past the registers into LDS, and the lanes do not lie side by side.
        """
        threads = _threads("tiled_copy_partition_dst", self.tiled.threads_dst, dst, tiled_copy=self.tiled)
        if self.tiled.atom.op.to_lds:
            _check_lanes(self.tiled, dst, _facts(threads))
        return _noted(self._part(threads, self.thr_idx), self.tiled, "dst", dst)

    def retile(self, t: Any) -> Any:
        """A fragment of the thread, made for other atoms on the same tiles, as this copy takes its elements.

        One made like the part of another tiled copy has its values in the order of this one then. Raises `LayoutError`
        where that copy gives the thread other elements.
        """
        part = getattr(t, "part_of", None)
        held = part.tiled if part is not None and not part.of_mma and not part.kept else None
        retiled = _threads("tiled_copy_retile", partial(self.tiled.retile, held=held), t, tiled_copy=self.tiled)
        if isinstance(retiled, Tensor):
            retiled.part_of = Part(self.tiled, "src")
        return retiled


def _noted(part: Any, tiled: Any, side: str, whole: Any) -> Any:
    """A part of a tensor, with the note whose it is, and whether the tile goes beyond the tensor."""
    if isinstance(part, Tensor):
        layout = _facts(whole)
        past = beyond(tiled, side, layout, whole.space, whole.room)
        name = f"{name_of(whole, 'the tensor')} {text(extents_of(layout))}" if past else ""
        part.part_of = replace(part_of(tiled, side, layout), beyond=past, whole=name)
    return part


def _check_lanes(tiled: TiledCopy, dst: Any, threads: Any) -> None:
    """Refuse a destination in which the lanes of a wave do not lie as a copy past the registers puts them."""
    if not isinstance(threads, Layout) or has_runtime(threads[0][0].stride):
        return
    lanes, each = coalesce(threads[0][0]), tiled.atom.num_values
    if lanes.stride == each:
        return
    for lane in range(tiled.num_threads):
        first = lane - lane % WAVE_SIZE
        found, wanted = lanes(lane) - lanes(first), (lane - first) * each
        if found != wanted:
            raise TraceError(
                f"partition_D of {name_of(dst, 'the destination')} {_facts(dst)} by {name_of(tiled, 'a tiled copy')}: "
                f"thread {lane} lies {found} elements from thread {first}, and {tiled.atom.op} puts it {wanted} from "
                "there, the lanes of a wave side by side",
                hint="let the threads run as the destination lies in memory, or copy through registers: "
                "fx.UniversalCopy",
            )


class ThrMma(_Thread):
    """One thread of a tiled MMA."""

    __slots__ = ("_vmnk",)
    kind = "the tiled MMA"

    def __init__(self, tiled_mma: TiledMma, thr_idx: Any):
        super().__init__(_require(tiled_mma, TiledMma, "ThrMma", "fx.make_tiled_mma(...)"), thr_idx, True)
        self._vmnk = _idx2crd(self.thr_idx, self.tiled.thr_layout_vmnk)

    def partition(self, operand_id: Any, t: Any) -> Any:
        """The thread's part of a matrix: (value, rest of each mode).

        Of a plain layout without the offset, the same for all threads (see `ThrCopy`); of a coordinate tensor with it.
        """
        operand = as_operand(operand_id)

        def threads(layout: Any) -> Any:
            return self.tiled.threads_of(operand, layout)

        parts = _threads("tiled_mma_partition", threads, t, operand=operand.name, tiled_mma=self.tiled)
        return _noted(self._part(parts, self.tiled.thread_of(operand, self._vmnk)), self.tiled, letter_of(operand), t)

    def partition_A(self, t: Any) -> Any:
        """The thread's part of A, (M, K); of a layout as `partition` gives it."""
        return self.partition(MmaOperand.A, t)

    def partition_B(self, t: Any) -> Any:
        """The thread's part of B, (N, K); of a layout as `partition` gives it."""
        return self.partition(MmaOperand.B, t)

    def partition_C(self, t: Any) -> Any:
        """The thread's part of C or D, (M, N); of a layout as `partition` gives it."""
        return self.partition(MmaOperand.C, t)


def _require(value: Any, kind: type, use: str, hint: str) -> Any:
    if not isinstance(value, kind):
        raise TraceError(f"{use} of {name_of(value, repr(value))}, {a_kind(value)}", hint=f"make it: {hint}")
    return value


def _facts(value: Any) -> Any:
    """The layout of a layout, a coordinate tensor or a tensor, with what is known of its runtime leaves."""
    if isinstance(value, Tensor):
        return value.spec.facts()
    return value.form.value() if isinstance(value, LayoutValue) else value


def _threads(name: str, rule: Callable[[Any], Any], value: Any, **attributes: Any) -> Any:
    """`rule` of a layout, or of a tensor, whose pointer stays; where it is of the device, as the operation `name`."""
    if not isinstance(value, (Tensor, LayoutValue, Layout, ComposedLayout)):
        raise TraceError(f"{name} of {name_of(value, repr(value))}, {a_kind(value)}",
                         hint="give a tensor, a layout, or a coordinate tensor")
    facts = _facts(value)
    try:
        result = rule(facts)
    except LayoutError as error:
        named = name_of(value, "a tensor" if isinstance(value, Tensor) else "a layout")
        kind = Undecided if isinstance(error, Undecided) else LayoutError
        raise kind(f"{name} of {named} {facts}: {error.message}", hint=error.hint) from None
    if isinstance(value, Tensor):
        spec = value.spec.with_layout(result, value.spec.align)
        return Tensor(fly(name, [value.value], [spec], **attributes), value.reach, value.room)
    if isinstance(value, LayoutValue):
        return LayoutValue(fly(name, [value.value], [Algebra.of(result)], **attributes))
    return result


def make_tiled_copy(copy_atom: CopyAtom, layout_thr_val: Layout, tile_mn: Any) -> TiledCopy:
    """The copy of a tile by threads: `layout_thr_val` maps (thread, value) to an element of the tile, column-major.

    Both are what `fx.make_layout_tv(thr_layout, val_layout)` gives. Raises `LayoutError` where they do not fit each
    other or the atom.
    """
    _require(copy_atom, CopyAtom, "make_tiled_copy", "fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)")
    if not isinstance(layout_thr_val, Layout):
        raise TraceError(f"make_tiled_copy with {layout_thr_val!r} for (thread, value)",
                         hint="it is a layout that is known while tracing: fx.make_layout_tv(...)[1]")
    return TiledCopy(copy_atom, layout_thr_val, known(tile_mn))


def make_tiled_copy_tv(atom: CopyAtom, thr_layout: Layout, val_layout: Layout) -> TiledCopy:
    """The copy of a tile by threads that lie in it like `thr_layout`, each with a block of values like `val_layout`.

    Both map a place to the number of the thread, or value, that is there. Raises `LayoutError` as `make_layout_tv`.
    """
    tile, tv = make_layout_tv(thr_layout, val_layout)
    return make_tiled_copy(atom, tv, tile)


def _of_mma(name: str, operand: MmaOperand) -> Callable[[CopyAtom, TiledMma], TiledCopy]:
    def make(copy_atom: CopyAtom, tiled_mma: TiledMma) -> TiledCopy:
        _require(tiled_mma, TiledMma, name, "fx.make_tiled_mma(...)")
        tv = getattr(tiled_mma, f"tv_layout_{operand.name}_tiled")
        return make_tiled_copy(copy_atom, tv, tuple([Layout(extent, 1) for extent in tiled_mma.tile_of(operand)]))

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (f"The copy that gives each thread of a tiled MMA its elements of {operand.name}; "
                    "`.get_slice(tid).retile(fragment)` is the fragment as the copy takes it.")
    return make


make_tiled_copy_A = _of_mma("make_tiled_copy_A", MmaOperand.A)
make_tiled_copy_B = _of_mma("make_tiled_copy_B", MmaOperand.B)
make_tiled_copy_C = _of_mma("make_tiled_copy_C", MmaOperand.C)


def make_tiled_mma(mma_atom: MmaAtom, atom_layout: Any, permutation: Any = None) -> TiledMma:
    """An MMA atom for each wave, where `atom_layout` numbers the waves along M, N and K: `make_layout((2, 2, 1), ...)`.

    `permutation` has None, an extent or a layout for each of M, N and K: the order in which the atoms take the
    elements, and how many are a tile. Raises `LayoutError` where it does not fit the atoms.
    """
    _require(mma_atom, MmaAtom, "make_tiled_mma", "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))")
    return TiledMma(mma_atom, known(atom_layout), known(permutation))


def tiled_copy_partition_src(tiled_copy: TiledCopy, src: Any, thr_int_tuple: Any) -> Any:
    """`tiled_copy.get_slice(thread).partition_S(src)`."""
    return ThrCopy(tiled_copy, thr_int_tuple).partition_S(src)


def tiled_copy_partition_dst(tiled_copy: TiledCopy, dst: Any, thr_int_tuple: Any) -> Any:
    """`tiled_copy.get_slice(thread).partition_D(dst)`."""
    return ThrCopy(tiled_copy, thr_int_tuple).partition_D(dst)


def tiled_copy_retile(tiled_copy: TiledCopy, t: Any) -> Any:
    """`tiled_copy.get_slice(0).retile(t)`."""
    return ThrCopy(tiled_copy, 0).retile(t)


def tiled_mma_partition(operand_id: Any, tiled_mma: TiledMma, t: Any, coord: Any) -> Any:
    """The part of thread `coord` of a matrix: `tiled_mma.get_slice(coord).partition_A(t)` for `MmaOperand.A`."""
    return ThrMma(tiled_mma, coord).partition(operand_id, t)


def tiled_mma_partition_shape(operand_id: Any, tiled_mma: TiledMma, shape: Any) -> Any:
    """The shape of a thread's part of a matrix of this shape: (value, rest of each mode)."""
    _require(tiled_mma, TiledMma, "tiled_mma_partition_shape", "fx.make_tiled_mma(...)")
    return tiled_mma.partition_shape(operand_id, known(shape))
