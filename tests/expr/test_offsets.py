"""A coordinate outside of a tensor stays outside: offsets do not wrap onto elements of it, whatever their width."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import OutOfBounds, TraceError
from flylab.expr.span import Span, extent
from flylab.layout import Layout, coordinates, size
from flylab.layout.runtime_int import RuntimeInt
from tests.samples import cell, compile_body

WRITE = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, r, buffer: fx.Constexpr, through: fx.Constexpr):
        through(fx.rocdl.make_buffer_tensor(A) if buffer else A, r)

    @flyc.jit
    def launch(A: fx.Tensor, r: fx.Int32, unsigned, buffer, through):
        k(A, fx.Uint32(r) if unsigned else r, buffer, through).launch(grid=1, block=1)
""")["launch"]


def element(A: Any, r: Any) -> None:
    A[r, 0] = 7.0


def tile(A: Any, r: Any) -> None:
    fx.slice(A, (r, None))[1] = 7.0


def nested(A: Any, r: Any) -> None:
    fx.make_view(fx.get_iter(A), fx.make_layout(((3, 8), 2), ((2**20, 3 * 2**20 + 1), 1)))[r, 0] = 7.0


def pointer(A: Any, r: Any) -> None:
    (fx.get_iter(A) + r.to(fx.Int64) * 2**20)[0] = 7.0


# With 2**20 elements a row, 4 * 2**20 * r bytes are a multiple of 2**32 for these rows, plus one row.
WRAPPING = [4097, -4095, 2**30 + 1, -(2**31) + 1]


@pytest.mark.parametrize("through", [element, tile, nested, pointer])
@pytest.mark.parametrize("row", WRAPPING)
def test_rows_far_outside(row: int, through: Any) -> None:
    A = np.zeros((4, 2**20), np.float32)
    with pytest.raises(OutOfBounds):
        WRITE(A, row, False, False, through)
    assert not A.any()
    WRITE(A, row, False, True, through)  # a buffer drops it
    assert not A.any()


@pytest.mark.parametrize("through", [element, tile, pointer])
@pytest.mark.parametrize("buffer", [False, True])
def test_rows_inside(through: Any, buffer: bool) -> None:
    A = np.zeros((4, 2**20), np.float32)
    WRITE(A, 3, False, buffer, through)
    assert A[3, :2].sum() == 7.0 and A.sum() == 7.0


@pytest.mark.parametrize("shape", [(64,), (64, 2)])
def test_an_unsigned_coordinate_is_not_read_as_negative(shape: Any) -> None:
    """From an element further on, 2**32 - 1 read as -1 would be inside."""
    whole = np.zeros((2, *shape), np.float32)

    def write(A: Any, r: Any) -> None:
        part = A[(1, *[None] * len(shape))]
        part[(r, 0)[: len(shape)]] = 7.0

    with pytest.raises(OutOfBounds):
        WRITE(whole, -1, True, False, write)
    assert not whole.any()
    WRITE(whole, -1, True, True, write)
    assert not whole.any()


def test_a_wide_copy_beyond_a_buffer_reads_zero() -> None:
    """The saturated offset plus the bytes of the access must not wrap to the start."""
    A, B = np.ones(64, np.float32), np.full(16, 5, np.float32)

    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, far: fx.Int32):
        buffer = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), 16)
        B.store(fx.slice(buffer, (None, far)).load())

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, far: fx.Int32):
        k(A, B, far).launch(grid=1, block=1)

    for far in (2**26, -1, 2**31 - 1, 4):
        B[:] = 5
        launch(A, B, far)
        assert not B.any(), far
    launch(A, B, 3)
    assert (B == 1).all()


@pytest.mark.parametrize(
    "body, message",
    [
        ("fx.rocdl.make_buffer_tensor(A)[2**30] = 1.0", "4294967296 bytes from its start"),
        ("(fx.get_iter(fx.rocdl.make_buffer_tensor(A)) + 2**30)[0] = 1.0", "4294967296 bytes from its start"),
        ("fx.rocdl.make_buffer_tensor(A)[-1] = 1.0", "-4 bytes from its start"),
        ("(fx.get_iter(A) + fx.Int128(5))[0] = 1.0", "Int128"),
        ("A[fx.Int128(fx.thread_idx.x)] = 1.0", "Int128"),
    ],
)
def test_known_ones_are_refused(body: str, message: str) -> None:
    with pytest.raises(TraceError) as caught:
        compile_body(body)
    assert message in caught.value.message and caught.value.hint


def test_a_known_offset_on_a_far_base_saturates() -> None:
    A = np.zeros(64, np.float32)

    def write(A: Any, r: Any) -> None:
        part = fx.slice(fx.logical_divide(A, 1), (None, fx.max(r, 0)))
        fx.make_view(fx.get_iter(part), Layout(2**30, 1))[2**29 + 2**28] = 7.0

    WRITE(A, 2**28 + 1, False, True, write)
    assert not A.any()


def test_thread_and_block_indices_keep_32_bits() -> None:
    """With a grid known while tracing; the golden ISA holds the whole of it."""
    compiled = compile_body("A[fx.block_idx.x * 64 + fx.thread_idx.x] = 1.0")
    assert "i64" not in str(compiled.show("fly-layout-lowering"))


LAYOUTS = st.lists(st.tuples(st.integers(1, 5), st.integers(-9, 9)), min_size=1, max_size=3)


@given(LAYOUTS)
def test_extent_holds_every_offset(modes: Any) -> None:
    layout = Layout(tuple(m[0] for m in modes), tuple(m[1] for m in modes))
    offsets = [layout(i) for i in range(size(layout))]
    assert (extent(layout).low, extent(layout).high) == (min(offsets), max(offsets))


@settings(max_examples=300)
@given(LAYOUTS, st.integers(0, 200), st.integers(0, 50))
def test_the_facts_of_a_coordinate_give_those_of_the_offset(modes: Any, low: int, more: int) -> None:
    layout = Layout((tuple(m[0] for m in modes), 2), (tuple(m[1] for m in modes), 1))
    _, offset = coordinates.slice_and_offset(layout, (RuntimeInt(low, low + more), 0))
    span = Span.of(offset)
    offsets = [coordinates.slice_and_offset(layout, (c, 0))[1] for c in range(low, low + more + 1)]
    assert span.low <= min(offsets) <= max(offsets) <= span.high and span.fits


@given(st.integers(-(2**33), 2**33), st.integers(-(2**33), 2**33))
def test_a_span_that_fits_has_32_bits(a: int, b: int) -> None:
    for made in (Span.of(a) + b, Span.of(a) * b, Span.of(a) + Span.of(b)):
        assert made.fits == all(-(2**31) <= v < 2**31 for v in (a, b, made.low, made.high))
