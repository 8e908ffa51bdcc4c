"""Tiled copies and tiled MMAs that cannot be: what the error says, and that it says how to mend it."""

from __future__ import annotations

from typing import Any

import pytest

from flylab.atoms import MFMA, SPARSE, CopyAtom, MmaAtom, TiledCopy, TiledMma, mma_op
from flylab.dtypes import DTYPES
from flylab.errors import LayoutError
from flylab.layout import Layout, Swizzle

WIDE = CopyAtom.parse("copy_atom<fly.universal_copy<128>, f32>")
TV = Layout(((16, 8), 4), ((32, 1), 8))
F16 = MmaAtom(mma_op(MFMA, (16, 16, 16), DTYPES["Float16"]))
BLOCKS = MmaAtom(mma_op(MFMA, (4, 4, 4), DTYPES["Float16"]))
HALF = MmaAtom(mma_op(SPARSE, (16, 16, 32), DTYPES["Float16"]))
ONE = Layout((1, 1, 1))


@pytest.mark.parametrize(("tv", "tile", "message"), [
    (TV, (8, 32), r"does not cover the 256 elements of a tile \(8,32\) once each: some are held twice, or lie outside"),
    (TV, (8, 128), r"does not cover the 1024 elements of a tile \(8,128\) once each: element 512 has no thread"),
    (Layout((128, 4), (4, 1)), (16, 16), "does not cover the 256"),
    (Layout((64, 4), (4, 0)), 64, "a thread has an element more than once"),
    (Layout((64, 4), (1, 1)), 256, "element 64 has no thread"),
    (Layout((64, 4), (-1, 64)), 256, "does not cover"),
    (Layout((64, 2, 2), (4, 2, 1)), 256, "has 3 modes, and not .thread, value."),
    (Layout(64, 1), 64, "has 1 modes"),
    (Layout((64, 2), (2, 1)), 128, "has 2 values, one atom .* 4"),
    (Layout((64, 6), (6, 1)), 384, "has 6 values, one atom .* 4"),
    (Layout((1, (3, 4)), (0, (4, 1))), (4, 3), r"the values \(3,4\):\(4,1\) of a thread, taken 4 at a time by .*cross"),
    (Layout((1, 12), (0, 1)), (3, 4), "cross the modes of the tile .3,4."),
    (TV, (8, None), "needs a known extent for each mode"),
    (TV, (8, (8, 8)), "needs a known extent for each mode"),
    ((64, 4), 256, "the thread-value layout .* is not a layout"),
    (Swizzle(3, 3, 3), 256, "is not a layout"),
])
def test_of_copies(tv: Any, tile: Any, message: str) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        TiledCopy(WIDE, tv, tile)
    assert caught.value.hint


@pytest.mark.parametrize(("layout", "message"), [
    (Layout(16, 1), "has 1 modes, but the layout|the layout .* has 1"),
])
def test_of_a_tensor_with_fewer_modes_than_the_tile(layout: Layout, message: str) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        TiledCopy(WIDE, TV, (8, 64)).threads_src(layout)
    assert caught.value.hint


@pytest.mark.parametrize(("fragment", "message"), [
    (Layout((4, 2)), r"the fragment \(4,2\):\(1,4\) has 2 modes, the tile \[8\|64\] needs 3"),
    (Layout((8, 2, 2)), "has 8 values in its first mode, a tile of this copy 4"),
    (Layout((3, 2, 2)), "has 3 values in its first mode, a tile of this copy 4"),
])
def test_of_fragments(fragment: Layout, message: str) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        TiledCopy(WIDE, TV, (8, 64)).retile(fragment)
    assert caught.value.hint


@pytest.mark.parametrize(("atom", "layout", "permutation", "message"), [
    (F16, Layout((2, 2), (1, 2)), None, r"the atom layout \(2,2\):\(1,2\) does not number its atoms"),
    (F16, Layout((2, 2, 1), (1, 1, 0)), None, "does not number its atoms from 0 on"),
    (F16, Layout((2, 2, 1), (2, 4, 0)), None, "does not number its atoms from 0 on"),
    (F16, (2, 2, 1), None, "does not number its atoms"),
    (F16, ONE, (None, None), r"the permutation \[\*\|\*\] has 2 modes, an MMA has M, N and K"),
    (F16, ONE, 16, "the permutation 16 has 1 modes"),
    (F16, ONE, (8, None, None), "the permutation 8 along M has 8 elements, the atoms side by side 16"),
    (F16, Layout((1, 4, 1)), (None, 32, None), "along N has 32 elements, the atoms side by side 64"),
    (F16, ONE, (None, None, Layout((4, 4), (1, 8))), r"the permutation \(4,4\):\(1,8\) along K is none"),
    (BLOCKS, ONE, None, "multiplies 16 pairs of matrices, and a tiled MMA one"),
    (HALF, ONE, (None, None, 32), "a permutation along K of .*, whose A is stored without half of K"),
])
def test_of_mmas(atom: MmaAtom, layout: Any, permutation: Any, message: str) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        TiledMma(atom, layout, permutation)
    assert caught.value.hint


def test_of_matrices() -> None:
    tiled = TiledMma(F16, ONE)
    with pytest.raises(LayoutError, match="B of a tiled MMA has the modes N and K, and 64:1 has 1") as caught:
        tiled.threads_of("B", Layout(64, 1))
    assert caught.value.hint
    for operand in ("E", 4, None):
        with pytest.raises(LayoutError, match="is no matrix of an MMA") as caught:
            tiled.threads_of(operand, Layout((64, 64)))
        assert caught.value.hint
