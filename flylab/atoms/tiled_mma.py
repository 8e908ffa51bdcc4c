"""Tiled MMAs: an MMA atom, repeated over the waves of a block, and which part of A, B and C each thread has.

A is (M, K), B is (N, K), C and D are (M, N). A permutation of a mode says in which order the atoms take its elements.
The rules follow those of NVIDIA's CuTe (BSD): divide by the permutation, then by the atom's tile, compose with the
atom's thread-value layout, divide the rest among the atoms side by side, slice at the thread.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from typing import Any

from flylab.atoms.mma import MmaAtom
from flylab.atoms.mma_table import mma_atom
from flylab.atoms.threads import of_thread
from flylab.errors import LayoutError
from flylab.layout import (
    ComposedLayout,
    Layout,
    composition,
    idx2crd,
    logical_divide,
    parse,
    right_inverse,
    size,
    tile_text,
    zipped_divide,
)
from flylab.layout.construct import as_tile, joined
from flylab.locks import cached_property


class MmaOperand(IntEnum):
    """The matrices of D = A x B + C."""

    A = 0
    B = 1
    C = 2
    D = 3


M, N, K = 0, 1, 2
MODES = {MmaOperand.A: (M, K), MmaOperand.B: (N, K), MmaOperand.C: (M, N), MmaOperand.D: (M, N)}
"""The modes of each matrix."""


def as_operand(operand: Any) -> MmaOperand:
    """A matrix by its MmaOperand, its number or its letter.

    >>> as_operand("B")
    <MmaOperand.B: 1>
    """
    try:
        return MmaOperand[operand] if isinstance(operand, str) else MmaOperand(operand)
    except (KeyError, ValueError):
        raise LayoutError(f"{operand!r} is no matrix of an MMA", hint="use fx.MmaOperand.A, .B, .C or .D") from None


@dataclass(frozen=True)
class TiledMma:
    """An MMA atom for each wave, or thread, of a block, side by side along M, N and K.

    >>> atom = mma_atom("mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>")
    >>> tiled = TiledMma(atom, Layout((1, 4, 1), (0, 1, 0)), (None, None, Layout((4, 4, 2), (1, 8, 4))))
    >>> print(tiled.tile_size_mnk, tiled.thr_layout_vmnk, tiled.tv_layout_A_tiled)
    (16, 64, 32) (64,1,4,1):(1,0,64,0) ((16,4,4),(4,(1,2))):((1,128,0),(16,(0,64)))

    Raises `LayoutError` for an atom layout that does not number its atoms along M, N and K, and for a permutation that
    is none, or no whole number of atoms.
    """

    mma_atom: MmaAtom
    atom_layout: Layout
    """(M, N, K) -> number of the atom; consecutive atoms have consecutive threads."""
    permutation_mnk: Any = (None, None, None)

    def __post_init__(self) -> None:
        given = (None, None, None) if self.permutation_mnk is None else as_tile(self.permutation_mnk)
        object.__setattr__(self, "permutation_mnk", given)
        layout, count = self.atom_layout, 0
        if isinstance(layout, Layout) and len(layout) == 3 and isinstance(layout.shape, tuple):
            count = size(right_inverse(layout))
        if not count or count != size(layout):
            raise LayoutError(f"the atom layout {layout} does not number its atoms from 0 on, along M, N and K",
                              hint="four waves along M and N: fx.make_layout((2, 2, 1), (1, 2, 0))")
        if not isinstance(given, tuple) or len(given) != 3:
            raise LayoutError(f"the permutation {tile_text(given)} has {len(given) if isinstance(given, tuple) else 1} "
                              "modes, an MMA has M, N and K", hint="give None for a mode that stays as it is")
        for mode in (M, N, K):
            self._check_permutation(mode)
        self._check_atom()

    def _check_permutation(self, mode: int) -> None:
        given, atoms = self.permutation_mnk[mode], self._atoms_span(mode)
        if given is None:
            return
        order = given if isinstance(given, Layout) else Layout(given, 1)
        if size(right_inverse(order)) != size(order):
            raise LayoutError(f"the permutation {order} along {'MNK'[mode]} is none: it does not take each of its "
                              f"{size(order)} places once", hint="let its strides follow each other without a gap")
        if size(order) % atoms:
            raise LayoutError(
                f"the permutation {given} along {'MNK'[mode]} has {size(order)} elements, the atoms side by side "
                f"{atoms}", hint=f"give a multiple of {atoms} elements")

    def _check_atom(self) -> None:
        if self.mma_atom.op.blocks != 1:
            raise LayoutError(f"{self.mma_atom} multiplies {self.mma_atom.op.blocks} pairs of matrices, and a tiled "
                              "MMA one", hint="call the atom itself: fx.gemm(mma_atom, d, a, b, c)")
        if self.mma_atom.op.sparse and self.permutation_mnk[K] is not None:
            raise LayoutError(f"a permutation along K of {self.mma_atom}, whose A is stored without half of K",
                              hint="give None for K")

    def _atoms_span(self, mode: int) -> int:
        """The elements along a mode of the atoms side by side."""
        return self.mma_atom.shape_mnk[mode] * size(self.atom_layout[mode])

    @property
    def num_threads(self) -> int:
        """The threads that do it together."""
        return int(size(self.thr_layout_vmnk))

    @cached_property
    def tile_size_mnk(self) -> tuple[int, int, int]:
        """The elements along M, N and K that all threads do together at once."""
        m, n, k = [self._atoms_span(mode) if given is None else size(given) if isinstance(given, Layout) else given
                   for mode, given in enumerate(self.permutation_mnk)]
        return m, n, k

    @cached_property
    def thr_layout_vmnk(self) -> Layout:
        """(thread of the atom, M, N, K) -> thread."""
        threads = self.mma_atom.thr_layout
        atoms = [Layout(mode.shape, _scaled(mode.stride, size(threads))) for mode in self.atom_layout]
        return joined([threads, *atoms])

    @cached_property
    def tv_layout_A_tiled(self) -> Layout:
        """(thread, (atom's value, (rest of M, rest of K))) -> element of the (M, K) tile."""
        return self._tv_tiled(MmaOperand.A)

    @cached_property
    def tv_layout_B_tiled(self) -> Layout:
        """(thread, (atom's value, (rest of N, rest of K))) -> element of the (N, K) tile."""
        return self._tv_tiled(MmaOperand.B)

    @cached_property
    def tv_layout_C_tiled(self) -> Layout:
        """(thread, (atom's value, (rest of M, rest of N))) -> element of the (M, N) tile."""
        return self._tv_tiled(MmaOperand.C)

    def tile_of(self, operand: Any) -> tuple[int, int]:
        """The elements of a matrix, along its two modes, that all threads do together at once."""
        operand = as_operand(operand)
        one, other = [self.tile_size_mnk[mode] // self.mma_atom.shape_mnk[mode] * extent
                      for mode, extent in zip(MODES[operand], self._atom_tile(operand), strict=True)]
        return one, other

    def _atom_tile(self, operand: MmaOperand) -> tuple[int, ...]:
        """The elements of an atom's matrix along its two modes; a sparse A is stored without half of K."""
        return self.mma_atom.op.tile("C" if operand is MmaOperand.D else operand.name)

    def _tv_tiled(self, operand: MmaOperand) -> Layout:
        threads = self.threads_of(operand, Layout(self.tile_of(operand)))
        (thread, value), *rest = threads
        by_mode = dict(zip(MODES[operand], thread[1], strict=True))
        counts = self.thr_layout_vmnk.shape[1:]
        atoms = [by_mode.get(mode) or Layout(counts[mode], _scaled(counts[mode], 0)) for mode in (M, N, K)]
        whole = composition(joined([thread[0], *atoms]), right_inverse(self.thr_layout_vmnk))
        return joined([whole, joined([value, joined(rest)])])

    def threads_of(self, operand: Any, layout: Any) -> Any:
        """(((thread of the atom, (atom along each mode)), value), rest of each mode) of a matrix: all threads' parts.

        A matrix that the tiles do not divide is covered too far, as by `zipped_divide`.

        Raises `LayoutError` for a layout of less than two modes.
        """
        operand = as_operand(operand)
        if isinstance(layout, ComposedLayout):
            return layout.with_inner(self.threads_of(operand, layout.inner))
        if len(layout) < 2:
            modes = "".join("MNK"[mode] for mode in MODES[operand])
            raise LayoutError(f"{operand.name} of a tiled MMA has the modes {modes[0]} and {modes[1]}, and {layout} "
                              f"has {len(layout)}", hint="give a tensor of two modes: fx.make_view(pointer, layout)")
        one, other = MODES[operand]
        order = self.permutation_mnk[one], self.permutation_mnk[other]
        permuted = layout if order == (None, None) else logical_divide(layout, order)
        atoms = zipped_divide(permuted, self._atom_tile(operand))
        thread, value = composition(atoms[0], self._atom_tv(operand))
        rests = [zipped_divide(rest, size(self.atom_layout[mode]))
                 for rest, mode in zip(atoms[1], MODES[operand], strict=False)]
        place = joined([thread, joined([rests[0][0], rests[1][0]])])
        more = list(atoms[1])[2:]
        return joined([joined([place, value]), rests[0][1], rests[1][1], *more])

    def _atom_tv(self, operand: MmaOperand) -> Layout:
        atom = self.mma_atom
        tv: Layout = (atom.layout_A_tv, atom.layout_B_tv, atom.layout_C_tv, atom.layout_C_tv)[operand]
        return tv

    def thread_vmnk(self, thread: Any) -> tuple[Any, Any, Any, Any]:
        """(thread of the atom, M, N, K) of a thread; it wraps, so that the waves beyond do the same as the first.

        >>> atom = mma_atom("mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>")
        >>> TiledMma(atom, Layout((2, 2, 1), (1, 2, 0))).thread_vmnk(65)
        (1, 1, 0, 0)
        """
        return idx2crd(thread, self.thr_layout_vmnk)  # type: ignore[no-any-return]

    def thread_of(self, operand: Any, vmnk: tuple[Any, Any, Any, Any]) -> tuple[Any, tuple[Any, Any]]:
        """The coordinate in the thread's mode of `threads_of` of a thread's (thread of the atom, M, N, K)."""
        one, other = MODES[as_operand(operand)]
        return vmnk[0], (vmnk[1 + one], vmnk[1 + other])

    def partition_shape(self, operand: Any, shape: Any) -> Any:
        """The shape of a thread's part of a matrix: (atom's value, rest of each mode).

        >>> atom = mma_atom("mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>")
        >>> TiledMma(atom, Layout((1, 4, 1), (0, 1, 0))).partition_shape("A", (128, 64))
        (4, 8, 4)
        """
        threads = self.threads_of(operand, Layout(shape))
        return of_thread(threads, self.thread_of(operand, (0, 0, 0, 0)))[0].shape

    def __repr__(self) -> str:
        order = "" if self.permutation_mnk == (None, None, None) else f", {tile_text(self.permutation_mnk)}"
        return f"tiled_mma<{self.mma_atom}, {self.atom_layout}{order}>"

    @staticmethod
    @cache
    def parse(written: str) -> TiledMma:
        """A tiled MMA from its text, as it stands in the IR.

        >>> atom = "mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>"
        >>> TiledMma.parse(f"tiled_mma<{atom}, (2,2,1):(1,2,0)>").num_threads
        256
        """
        match = re.fullmatch(r"tiled_mma<(.*>), ([^<>\[\]]*?)(?:, (\[[^<>]*\]))?>", written)
        if not match:
            raise LayoutError(f"{written!r} is no tiled MMA")
        return TiledMma(mma_atom(match[1]), parse(match[2]), match[3] and parse(match[3]))


def _scaled(stride: Any, by: int) -> Any:
    return tuple([_scaled(each, by) for each in stride]) if isinstance(stride, tuple) else stride * by
