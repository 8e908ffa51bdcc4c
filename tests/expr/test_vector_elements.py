"""The elements of vectors on the software device: read, replaced, sliced and shuffled as those of a Python list."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.expr as fx
from tests.expr.vectors import CHIPS, bits, rows_on_device, sample
from tests.samples import compile_body

named = pytest.mark.parametrize
by_name = {"ids": lambda c: c.__name__}

@named("chip", CHIPS)
@named("cls", [fx.Int8, fx.Uint16, fx.Float16, fx.BFloat16, fx.Int32, fx.Float32, fx.Float64, fx.Int64], **by_name)
def test_an_element_at_a_place_of_the_device(cls: Any, chip: str) -> None:
    """Read and replaced at a place that differs between threads, below 0 too: what Python does with a list."""
    for lanes in (1, 2, 3, 4, 7, 8, 16):
        places = np.array([i % (2 * lanes) - lanes for i in range(64)], np.int32)
        a = sample(cls, (64, lanes), lanes)
        value = sample(cls, (64,), 3)
        got = rows_on_device(
            lambda v, i, x: [v[i], v.with_element(i, x)], a, places, value, out=a.dtype, columns=1 + lanes, chip=chip
        )
        replaced = a.copy()
        replaced[np.arange(64), places] = value
        assert np.array_equal(bits(got[:, 0]), bits(a[np.arange(64), places])), lanes
        assert np.array_equal(bits(got[:, 1:]), bits(replaced)), lanes


@named("kind", [fx.Int16, fx.Uint8, fx.Int64, fx.Uint64], **by_name)
def test_a_place_of_any_integer_format(kind: Any) -> None:
    a = sample(fx.Float32, (64, 6), 1)
    low = 0 if kind.dtype.kind == "uint" else -6
    places = np.array([low + i % (6 - low) for i in range(64)], kind.dtype.to_numpy())
    got = rows_on_device(lambda v, i: v[i], a, places, out=a.dtype, columns=1)
    assert np.array_equal(bits(got[:, 0]), bits(a[np.arange(64), places.astype(np.int64)]))


@named("lanes", [3, 4, 8])
@named("dtype", [np.int32, np.uint32, np.int64])
def test_a_place_of_the_device_out_of_range_reads_an_element_of_the_vector(lanes: int, dtype: Any) -> None:
    a = np.arange(64 * lanes, dtype=np.float32).reshape(64, lanes)
    wild = [lanes, -lanes - 1, 2**31 - 1, -(2**31), 1000, -1000, 2 * lanes, 77]
    places = np.array([wild[i % 8] for i in range(64)]).astype(dtype)
    got = rows_on_device(lambda v, i: [v[i], v.with_element(i, -1.0)], a, places, out=np.float32, columns=1 + lanes)
    assert all(got[i, 0] in a[i] for i in range(64))
    changed = got[:, 1:] != a
    assert (changed.sum(1) == 1).all() and (got[:, 1:][changed] == -1).all()
    if lanes != 3:
        assert np.array_equal(got[:, 0], a[np.arange(64), places.astype(np.int64) % lanes])


def test_elements_of_formats_below_a_byte_and_of_booleans() -> None:
    a = sample(fx.Uint32, (64, 2), 9)
    places = np.arange(64, dtype=np.int32) % 16

    def mine(v: Any, i: Any) -> list[Any]:
        nibbles, flags = v.bitcast(fx.Int4), v.bitcast(fx.Uint8) > 100
        assert nibbles.numel == 16
        return [nibbles[i].to(fx.Int32), flags[i & 7].to(fx.Int32), flags.with_element(i & 7, True).all().to(fx.Int32),
                nibbles.with_element(i, 5).bitcast(fx.Uint32).to(fx.Int32)]

    got = rows_on_device(mine, a, places, out=np.int32, columns=5)
    raw = np.stack([a.view(np.uint8) & 15, a.view(np.uint8) >> 4], 2).reshape(64, 16).astype(np.int32)
    flags = a.view(np.uint8) > 100
    row = np.arange(64)
    assert np.array_equal(got[:, 0], np.where(raw > 7, raw - 16, raw)[row, places])
    assert np.array_equal(got[:, 1], flags[row, places & 7])
    flags[row, places & 7] = True
    assert np.array_equal(got[:, 2], flags.all(1))
    raw[row, places] = 5
    packed = (raw[:, 0::2] | raw[:, 1::2] << 4).astype(np.uint8).view(np.int32)
    assert np.array_equal(got[:, 3:], packed)


def test_elements_of_small_floats() -> None:
    a = sample(fx.Uint8, (64, 8), 9)
    places = np.arange(64, dtype=np.int32) % 8

    def mine(v: Any, i: Any) -> list[Any]:
        eight, four = v.bitcast(fx.Float8E4M3FN), v.bitcast(fx.Float4E2M1FN)
        changed = eight.with_element(i, eight[0]).bitcast(fx.Uint8)
        return [eight[i].bitcast(fx.Uint8), four[2 * i].bitcast(fx.Int4).to(fx.Uint8) & 15, changed]

    got = rows_on_device(mine, a, places, out=np.uint8, columns=10)
    row = np.arange(64)
    assert np.array_equal(got[:, 0], a[row, places]) and np.array_equal(got[:, 1], a[row, places] & 15)
    a[row, places] = a[:, 0]
    assert np.array_equal(got[:, 2:], a)


def test_a_place_that_is_known_to_be_in_range_costs_no_check() -> None:
    """31 choices for 32 elements, whatever the threads agree on; the number is bounded by its mask."""
    body = "t = fx.thread_idx.x\nv = A.load()[0:32]\nA[t] = v[t & 31]"
    text = str(compile_body(body).show("isa"))
    assert text.count("v_cndmask") == 31 and "readfirstlane" not in text
    free = str(compile_body("t = fx.thread_idx.x\nv = A.load()[0:32]\nA[t] = v[(A[0] * 2.0).to(fx.Int32)]").show("isa"))
    assert free.count("v_cndmask") == 31


@given(st.data())
@settings(max_examples=25)
def test_places_slices_and_shuffles_are_lists(data: Any) -> None:
    """Any index, slice and mask gives what it gives for a Python list."""
    lanes = data.draw(st.integers(1, 9))
    other = data.draw(st.integers(1, 9))
    a = np.arange(lanes, dtype=np.float32)[None] + np.zeros((64, 1), np.float32)
    b = np.arange(other, dtype=np.float32)[None] + 100 + np.zeros((64, 1), np.float32)
    ends = st.none() | st.integers(-lanes - 2, lanes + 2)
    cut = data.draw(st.builds(slice, ends, ends, st.none() | st.integers(-3, 3).filter(bool)))
    mask = data.draw(st.lists(st.integers(0, lanes + other - 1), min_size=1, max_size=10))
    index = data.draw(st.integers(-lanes, lanes - 1))
    whole = list(range(lanes))
    expected = [whole[index], *whole[cut], *[([*whole, *range(100, 100 + other)])[i] for i in mask]]
    got = rows_on_device(
        lambda v, w: [v[index], *([v[cut]] if whole[cut] else []), v.shuffle(w, mask)],
        a, b, out=np.float32, columns=len(expected),
    )  # fmt: skip
    assert got[0].tolist() == expected


def test_l21_a_vector_is_a_sequence() -> None:
    """L21: list, unpacking, length, and the ends."""
    a = sample(fx.Float32, (64, 4), 3)

    def mine(v: Any) -> list[Any]:
        first, second, third, fourth = v
        assert len(v) == 4 and len(list(v)) == 4 and v.numel == 4 and isinstance(first, fx.Float32)
        return [fourth, third, second, first, v[-1], v[-4], *reversed(list(v))]

    got = rows_on_device(mine, a, out=np.float32, columns=10)
    assert np.array_equal(bits(got), bits(a[:, [3, 2, 1, 0, 3, 0, 3, 2, 1, 0]]))


@given(st.data())
@settings(max_examples=20)
def test_coordinates_of_a_logical_shape(data: Any) -> None:
    """The first mode counts fastest, as in a layout without strides; modes may be nested, numbers known or not."""
    shape = data.draw(st.sampled_from([(4, 1), (2, 3), ((2, 2), 3), (2, (3, 2)), ((2, 1), (1, 3)), (5,)]))
    layout, lanes = fx.make_layout(shape), fx.size(shape)

    def coordinate(extent: Any) -> Any:
        if isinstance(extent, tuple) and data.draw(st.booleans()):
            return tuple(coordinate(each) for each in extent)
        return data.draw(st.integers(0, fx.size(extent) - 1))

    index = tuple(coordinate(extent) for extent in shape)
    place = fx.crd2idx(index, layout) if len(shape) > 1 else index[0]
    a = sample(fx.Int32, (64, lanes), 4)
    zeros = np.zeros(64, np.int32)

    def shifted(tree: Any, zero: Any) -> Any:
        return tuple(shifted(each, zero) for each in tree) if isinstance(tree, tuple) else tree + zero

    def mine(v: Any, zero: Any) -> list[Any]:
        w = fx.Vector(v, shape)
        return [w[index], w[shifted(index, zero)], w.with_element(index, 5)[place], w[place]]

    got = rows_on_device(mine, a, zeros, out=np.int32, columns=4)
    assert (got == np.stack([a[:, place], a[:, place], np.full(64, 5), a[:, place]], 1)).all()
