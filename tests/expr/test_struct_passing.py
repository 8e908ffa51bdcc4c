"""Structs as parameters of launchers and kernels, on both chips: number by number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError
from tests.expr.declared import Inner, Item
from tests.samples import cell


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(f"emulated:{request.param}"):
        yield


PASSING = """
@flyc.kernel
def k(A: fx.Tensor, item: Item, rest, scale: fx.Float32):
    t = fx.thread_idx.x
    assert type(rest) is Item and isinstance(item.row, fx.Vector)
    A[t] = item.row[2] * scale + rest.tiny.to(fx.Float32) + item.parts[1].half.to(fx.Float32)
    A[t] = item.flag.select(A[t], -A[t]) + rest.parts[0].count.to(fx.Float32)

@flyc.jit
def launch(A: fx.Tensor, item: Item, other):
    item.wide = 3
    k(A, item, other.replace(tiny=item.tiny + other.tiny), 2.0).launch(grid=1, block=other.wide)
"""


def test_as_parameters():
    made = cell_with(PASSING)
    a = np.zeros(64, np.float32)
    item = Item(True, 0.5, [1, 2, 3], 100, [Inner(1, True, 2), Inner(4, False, 5)], [0, 1, 0])
    other = item.replace(tiny=20, wide=32, parts=[Inner(0, False, 10)] * 2)
    made["launch"](a, item, other)
    np.testing.assert_array_equal(a, [3 * 2 + 120 + 4 + 10] * 32 + [0] * 32)
    compiled = flyc.compile(made["launch"], a, item, other)
    made["launch"](a, item.replace(flag=False, row=[0, 0, 9]), other)
    np.testing.assert_array_equal(a[:32], -(9 * 2 + 120 + 4) + 10)
    assert flyc.compile(made["launch"], a, other, item) is compiled and item.wide.value == 7
    assert [arg.name for arg in compiled.arguments] == ["A", "item", "other"]


def cell_with(text: str) -> dict[str, Any]:
    """A cell that knows the structs of `declared.py`."""
    return cell(f"from tests.expr.declared import Item, Inner\n{text}")


def test_a_struct_in_a_launcher_and_a_changed_class():
    made = cell_with(PASSING)
    a = np.zeros(64, np.float32)
    item = Item(True, 0.5, [1, 2, 3], 100, [Inner(1, True, 2)] * 2, [0, 1, 0])
    with pytest.raises(ArgumentError, match="'item: Item' gets 5") as caught:
        made["launch"](a, 5, item)
    assert caught.value.hint == "make one: Item(...)"

    @fx.struct
    class Another:
        x: fx.Int32

    Another.__name__ = "Item"
    with pytest.raises(ArgumentError, match="'item: Item' gets") as caught:
        made["launch"](a, Another(1), item)
    assert "another struct of this name" in caught.value.hint


def test_too_large_to_be_passed():
    names = cell("@fx.struct\nclass Big:\n    a: fx.Array[fx.Float64, 513]\n")
    with pytest.raises(ArgumentError, match="'p' is Big, of 4104 bytes: a launch passes at most 4096") as caught:
        cell("""
            @flyc.jit
            def launch(p):
                pass
        """)["launch"](names["Big"]([0] * 513))
    assert "tensor of bytes" in caught.value.hint


def test_a_constant_struct_counts_by_its_values():
    names = cell_with("""
@flyc.kernel
def k(A: fx.Tensor, item: fx.Constexpr[Inner]):
    A[fx.thread_idx.x] = item.count.value

@flyc.jit
def launch(A: fx.Tensor, item: fx.Constexpr[Inner]):
    k(A, item).launch(grid=1, block=64)
""")
    a = np.zeros(64, np.int64)
    compiled = [flyc.compile(names["launch"], a, Inner(1, True, n)) for n in (5, 5, 6)]
    assert compiled[0] is compiled[1] is not compiled[2]
    compiled[2](a, Inner(1, True, 6))
    assert set(a) == {6}


def test_a_whole_struct_is_merged_and_carried():
    launch = cell_with("""
@fx.struct
class Pair:
    x: fx.Int32
    rows: fx.Array[Inner, 2]

@flyc.kernel
def k(A: fx.Tensor, n):
    t = fx.thread_idx.x
    pair = Pair(1, [Inner(2, True, 3), Inner(4, False, 5)])
    if t > 2:
        pair = Pair(t, [Inner(t, t > 3, 7), pair.rows[0]])
    for i in range(n):
        pair = pair if i > t else pair.replace(x=pair.x + i)
    A[t] = pair.x + 100 * pair.rows[0].count.to(fx.Int32) + 10000 * pair.rows[1].good.to(fx.Int32)

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    k(A, n).launch(grid=1, block=8)
""")["launch"]
    a = np.zeros(8, np.int32)
    launch(a, 4)
    added = [sum(i for i in range(4) if i <= t) for t in range(8)]
    expected = [(1, 3, 0) if t <= 2 else (t, 7, 1) for t in range(8)]
    assert a.tolist() == [x + e + 100 * c + 10000 * f for (x, c, f), e in zip(expected, added, strict=True)]
