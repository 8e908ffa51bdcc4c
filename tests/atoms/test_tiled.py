"""Tiled copies and tiled MMAs on layouts, against walks over all threads, values and tiles."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.atoms import MFMA, SPARSE, UNIVERSAL, CopyAtom, MmaAtom, TiledCopy, TiledMma, mma_op
from flylab.atoms.threads import of_thread
from flylab.dtypes import DTYPES
from flylab.errors import LayoutError
from flylab.layout import (
    ComposedLayout,
    Layout,
    coordinates_of,
    make_identity_layout,
    make_layout_tv,
    make_ordered_layout,
    make_view,
    overcover,
    parse,
    size,
)

SMALL = st.sampled_from((1, 2, 3, 4))
ATOMS = {bits: CopyAtom.parse(f"copy_atom<fly.universal_copy<{bits}>, f32>") for bits in (32, 64, 128)}


def _coordinates(shape: tuple[int, ...]) -> Any:
    return make_view((0,) * len(shape), make_identity_layout(shape))


def _elements(part: Any, origin: Any) -> list[Any]:
    """The coordinates of a thread's part of a coordinate tensor, in its order."""
    whole = ComposedLayout(None, origin, part)
    return [whole(i) for i in range(size(part))]


def _copy(bits: int, tv: Layout, tile: Any) -> TiledCopy:
    """A tiled copy by atoms of this width, or of 32 bits where its values are not made of such."""
    try:
        return TiledCopy(ATOMS[bits], tv, tile)
    except LayoutError:
        assert size(tv[1]) % 3 == 0 or size(tv[1]) < 4
        return TiledCopy(ATOMS[32], tv, tile)


@st.composite
def tiled_copies(draw: st.DrawFn) -> tuple[TiledCopy, Layout, Layout]:
    """A tiled copy of threads and values in any order, with both layouts."""
    orders = st.permutations((0, 1))
    thr = make_ordered_layout((draw(SMALL), draw(SMALL)), tuple(draw(orders)))
    val = make_ordered_layout((draw(SMALL), draw(SMALL)), tuple(draw(orders)))
    tile, tv = make_layout_tv(thr, val)
    return _copy(draw(st.sampled_from(sorted(ATOMS))), tv, tile), thr, val


@settings(max_examples=40, deadline=None)
@given(tiled_copies(), st.tuples(st.integers(1, 3), st.integers(1, 3)), st.integers(0, 2))
def test_the_threads_of_a_copy_have_each_element_once(made: Any, tiles: tuple[int, int], more: int) -> None:
    tiled, thr, val = made
    shape = tuple(extent * count for extent, count in zip(tiled.extents, tiles, strict=True)) + (3,) * (more == 2)
    for threads in (tiled.threads_src(_coordinates(shape)), tiled.threads_dst(_coordinates(shape))):
        seen = []
        for thread in range(tiled.num_threads):
            part, origin = of_thread(threads, thread)
            assert size(part[0]) == size(val) and [size(mode) for mode in list(part)[1:]] == [*tiles, 3][:len(part) - 1]
            seen += _elements(part, origin)
        assert sorted(seen) == sorted(product(*map(range, shape)))


@settings(max_examples=40, deadline=None)
@given(tiled_copies(), st.data())
def test_a_value_of_a_thread_lies_where_both_layouts_say(made: Any, data: st.DataObject) -> None:
    """Thread t is at the place of `thr` that holds t; its block of values there is numbered as in `val`."""
    tiled, thr, val = made
    places = {thr(i, j): (i, j) for i, j in coordinates_of(thr.shape)}
    threads = tiled.threads_src(_coordinates(tiled.extents))
    thread = data.draw(st.integers(0, size(thr) - 1))
    part, origin = of_thread(threads, thread)
    for i, j in coordinates_of(val.shape):
        x, y = places[thread]
        at = (x * val.shape[0] + i, y * val.shape[1] + j)
        assert ComposedLayout(None, origin, part)(val(i, j)) == at


@settings(max_examples=40, deadline=None)
@given(tiled_copies(), st.tuples(st.integers(1, 20), st.integers(1, 20)))
def test_a_tensor_that_tiles_do_not_divide_is_covered_too_far(made: Any, shape: tuple[int, int]) -> None:
    tiled, _, _ = made
    threads = tiled.threads_src(_coordinates(shape))
    seen = [at for t in range(tiled.num_threads) for at in _elements(*of_thread(threads, t))]
    inside = [at for at in seen if at[0] < shape[0] and at[1] < shape[1]]
    assert sorted(inside) == sorted(product(*map(range, shape)))
    over = overcover(make_identity_layout(shape), tiled.tile_mn)
    assert len(seen) == (shape[0] + over[0]) * (shape[1] + over[1])


MMAS = {
    "f16": MmaAtom(mma_op(MFMA, (16, 16, 16), DTYPES["Float16"])),
    "f32": MmaAtom(mma_op(MFMA, (16, 16, 4), DTYPES["Float32"])),
    "wide": MmaAtom(mma_op(MFMA, (32, 32, 8), DTYPES["Float16"])),
    "fp8": MmaAtom(mma_op(MFMA, (16, 16, 32), DTYPES["Float8E4M3FNUZ"])),
    "fma": MmaAtom(mma_op(UNIVERSAL, (1, 1, 1), DTYPES["Float32"])),
}
MODES = {"A": (0, 2), "B": (1, 2), "C": (0, 1), "D": (0, 1)}


@st.composite
def tiled_mmas(draw: st.DrawFn, atoms: tuple[str, ...] = tuple(MMAS), most: int = 3) -> TiledMma:
    """A tiled MMA with waves in any order, and permutations of the modes that reorder parts of a tile."""
    atom = MMAS[draw(st.sampled_from(atoms))]
    counts = draw(st.tuples(*[st.integers(1, most)] * 3))
    layout = make_ordered_layout(counts, tuple(draw(st.permutations((0, 1, 2)))))
    return TiledMma(atom, layout, tuple(draw(_permutation(atom.shape_mnk[i] * counts[i])) for i in range(3)))


def _permutation(atoms: int) -> st.SearchStrategy[Any]:
    """None, an extent, or a compact layout of parts of whole tiles of atoms in another order."""
    parts = [(4, atoms // 4, 2) if atoms % 4 == 0 else (atoms, 2), (atoms, 2, 2), (atoms, 3)]
    orders = [make_ordered_layout(part, order) for part in parts for order in permutations(range(len(part)))]
    return st.sampled_from([None, None, atoms, 2 * atoms, *orders])


def _order(tiled: TiledMma, mode: int, extent: int) -> list[int]:
    """The elements of a mode in the order in which the atoms take them."""
    given = tiled.permutation_mnk[mode]
    if not isinstance(given, Layout):
        return list(range(extent))
    return [start + given(i) for start in range(0, extent, size(given)) for i in range(size(given))]


def _wave(tiled: TiledMma, thread: int) -> tuple[int, tuple[int, int, int]]:
    """The lane of a thread, and its atom's place along M, N and K, looked up in the atom layout."""
    wave, lane = divmod(thread, tiled.mma_atom.num_threads)
    return lane, next(at for at in coordinates_of(tiled.atom_layout.shape) if tiled.atom_layout(at) == wave)


@settings(max_examples=40, deadline=None)
@given(tiled_mmas(), st.sampled_from("ABCD"), st.tuples(st.integers(1, 2), st.integers(1, 2)), st.data())
def test_the_parts_of_an_mma_are_what_its_atom_wants(tiled: TiledMma, operand: str, tiles: tuple[int, int],
                                                      data: st.DataObject) -> None:
    """Value v of a lane is the element of the atom's own layout, of the atoms that its wave takes, in their order."""
    shape = tuple(extent * count for extent, count in zip(tiled.tile_of(operand), tiles, strict=True))
    threads = tiled.threads_of(operand, _coordinates(shape))
    atom, modes = tiled.mma_atom, MODES[operand]
    tv = atom.layout_C_tv if operand in "CD" else getattr(atom, f"layout_{operand}_tv")
    rows, columns = (atom.shape_mnk[mode] for mode in modes)
    orders = [_order(tiled, mode, extent) for mode, extent in zip(modes, shape, strict=True)]
    for thread in data.draw(st.lists(st.integers(0, tiled.num_threads - 1), min_size=1, max_size=4)):
        part, origin = of_thread(threads, tiled.thread_of(operand, tiled.thread_vmnk(thread)))
        assert len(part) == 3 and part.shape == tiled.partition_shape(operand, shape)
        lane, place = _wave(tiled, thread)
        found = ComposedLayout(None, origin, part)
        for v, i, j in product(range(size(part[0])), range(size(part[1])), range(size(part[2]))):
            row, column = tv(lane, v) % rows, tv(lane, v) // rows
            wanted = (orders[0][(i * size(tiled.atom_layout[modes[0]]) + place[modes[0]]) * rows + row],
                      orders[1][(j * size(tiled.atom_layout[modes[1]]) + place[modes[1]]) * columns + column])
            assert found(v, i, j) == wanted


@settings(max_examples=12, deadline=None)
@given(tiled_mmas(("f32", "fma"), 2), st.sampled_from("ABC"))
def test_the_waves_beside_each_other_have_each_element_once(tiled: TiledMma, operand: str) -> None:
    shape = tiled.tile_of(operand)
    threads = tiled.threads_of(operand, _coordinates(shape))
    seen = [at for thread in range(tiled.num_threads)
            for at in _elements(*of_thread(threads, tiled.thread_of(operand, tiled.thread_vmnk(thread))))]
    repeated = size(tiled.atom_layout) // size(tiled.atom_layout[MODES[operand][0]])
    repeated //= size(tiled.atom_layout[MODES[operand][1]])
    assert sorted(seen) == sorted(list(product(*map(range, shape))) * repeated)


@settings(max_examples=40, deadline=None)
@given(tiled_mmas(), st.sampled_from("ABC"), st.tuples(st.integers(1, 2), st.integers(1, 2)), st.data())
def test_a_retiled_fragment_is_the_part_of_the_copy(tiled: TiledMma, operand: str, tiles: tuple[int, int],
                                                     data: st.DataObject) -> None:
    """What a copy made of an MMA gives a thread is, element by element, what the MMA does, retiled."""
    tile = tiled.tile_of(operand)
    tv = getattr(tiled, f"tv_layout_{operand}_tiled")
    copy = _copy(data.draw(st.sampled_from(sorted(ATOMS))), tv, tile)
    whole = _coordinates(tuple(extent * count for extent, count in zip(tile, tiles, strict=True)))
    thread = data.draw(st.integers(0, tiled.num_threads - 1))
    part, origin = of_thread(tiled.threads_of(operand, whole), tiled.thread_of(operand, tiled.thread_vmnk(thread)))
    mine, begin = of_thread(copy.threads_src(whole), thread)
    retiled = copy.retile(ComposedLayout(None, origin, part))
    assert [size(mode) for mode in retiled.inner] == [size(mode) for mode in mine]
    assert [retiled(i) for i in range(size(mine))] == _elements(mine, begin)


def test_a_sparse_matrix_is_stored_without_half_of_k() -> None:
    atom = MmaAtom(mma_op(SPARSE, (16, 16, 32), DTYPES["Float16"]))
    tiled = TiledMma(atom, Layout((2, 1, 1), (1, 0, 0)))
    assert tiled.tile_size_mnk == (32, 16, 32) and tiled.tile_of("A") == (32, 16) and tiled.tile_of("B") == (16, 32)
    assert tiled.partition_shape("A", (32, 32))[1:] == (1, 2) and tiled.partition_shape("B", (16, 64))[1:] == (1, 2)


def test_their_texts_read_back() -> None:
    tiled = TiledCopy(ATOMS[128], parse("((16,8),4):((32,1),8)"), (Layout(8, 1), 64))
    assert TiledCopy.parse(str(tiled)) == tiled and str(tiled).endswith("[8:1|64]>")
    for mma in (TiledMma(MMAS["f16"], Layout((2, 2, 1), (1, 2, 0))),
                TiledMma(MMAS["fma"], Layout((16, 16, 1)), (16, None, 4)),
                TiledMma(MMAS["f16"], Layout((1, 4, 1)), (None, None, Layout((4, 4, 2), (1, 8, 4))))):
        assert TiledMma.parse(str(mma)) == mma
    for kind in (TiledCopy, TiledMma):
        with pytest.raises(LayoutError, match="is no tiled"):
            kind.parse("copy_atom<fly.universal_copy<32>, f32>")
