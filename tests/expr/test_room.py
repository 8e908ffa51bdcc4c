"""Views of pointers into arrays of LDS: as far as the array goes, and not into its neighbour."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab.expr as fx
from flylab.errors import OutOfBounds, TraceError
from tests.expr.copying import FIRST_LINE, chips, run


@fx.struct
class Two:
    a: fx.Array[fx.Float32, 64]
    b: fx.Array[fx.Float32, 64]


BEGIN = "lds = fx.SharedAllocator().allocate(Two).peek()\n"
SWIZZLED = "fx.make_composed_layout(fx.Swizzle(1, 5, -1), fx.make_layout({}))"


@chips
def test_a_view_may_go_to_the_end_of_its_array(chip: str) -> None:
    """Of a moved pointer, of one to other elements, and backwards from the last: what numpy's views of it hold."""
    given, got = np.arange(64, dtype=np.float32), np.zeros((4, 64), np.float32)
    run(BEGIN + """
fx.make_view(lds.a.ptr, fx.make_layout((8, 8), (8, 1)))[i // 8, i % 8] = A[i]
fx.gpu.barrier()
moved = lds.a.ptr + 32
B[0, i] = fx.make_view(moved, fx.make_layout(32, 1))[i % 32]
B[1, i] = fx.make_view(moved + (-32), fx.make_layout(64, 1))[i]
B[2, i] = fx.make_view(lds.a.ptr + 63, fx.make_layout(64, -1))[i]
B[3, i] = fx.make_view(fx.recast_iter(fx.Int32, lds.a.ptr), fx.make_layout(64, 1))[i].bitcast(fx.Float32)
""", given, got, chip=chip, Two=Two)
    assert (got == [np.tile(given[32:], 2), given, given[::-1], given]).all()


@pytest.mark.parametrize(("body", "says"), [
    ("fx.make_view(lds.a.ptr, fx.make_layout(65))", "65:1 reaches over 65 elements, and Array[Float32, 64] has 64"),
    ("fx.make_view(lds.a.ptr, fx.make_layout((8, 8), (9, 1)))", "reaches over 71 elements, and Array"),
    ("fx.make_view(lds.a.ptr, " + SWIZZLED.format(48) + ")", "has 64"),
    ("fx.make_view(fx.add_offset(lds.a.ptr, 8), fx.make_layout(57))", "has 56 from there on"),
    ("fx.make_view(fx.add_offset(lds.a.ptr, 8 + i), fx.make_layout(57))", "has 56 from there on"),
    ("fx.make_view(fx.get_iter(fx.slice(lds.a.view(fx.make_layout((8, 8))), (None, 7))), fx.make_layout(9))",
     "has 8 from there on"),
    ("fx.make_view(fx.recast_iter(fx.Uint8, lds.a.ptr), fx.make_layout(257))", "257 elements, and Array[Float32, 64]"),
    ("fx.make_view(fx.SharedAllocator().allocate(64).ptr, fx.make_layout(65))", "Array[Uint8, 64] has 64"),
    ("fx.make_view(fx.SharedAllocator(static=False).allocate(64).ptr, fx.make_layout(65))", "Array[Uint8, 64] has 64"),
    ("lds.a.ptr[64] = 0.0", "reaches over 1 elements, and Array[Float32, 64] has 0 from there on"),
    ("lds.a.view(fx.make_layout(65))", "65:1 reaches over 65 elements, and Array[Float32, 64] has 64"),
])  # fmt: skip
def test_a_view_into_the_neighbour_is_refused(body: str, says: str) -> None:
    with pytest.raises(TraceError) as caught:
        run(BEGIN + body, np.zeros(64, np.float32), chip="gfx942", Two=Two)
    error = caught.value
    assert says in error.message and "larger array" in str(error.hint)
    assert error.where is not None and error.where.line == FIRST_LINE + 1


@pytest.mark.parametrize(("body", "name"), [
    ("fx.make_view(lds.a, fx.make_layout(64))", "lds.a"),
    ("place = fx.SharedAllocator().allocate(64); fx.make_view(place, fx.make_layout(64))", "place"),
    ("view = fx.make_view(fx.SharedAllocator().allocate(64).peek(), fx.make_layout(64))",
     "fx.SharedAllocator().allocate(64).peek()"),
])  # fmt: skip
def test_a_place_is_no_pointer(body: str, name: str) -> None:
    with pytest.raises(TraceError) as caught:
        run(BEGIN + body, np.zeros(64, np.float32), chip="gfx942", Two=Two)
    error = caught.value
    assert f"'{name}' is a place in LDS, not a pointer" in error.message and f"{name}.ptr" in str(error.hint)
    assert error.where is not None and error.where.line == FIRST_LINE + 1


@chips
@pytest.mark.parametrize(("allocate", "hint"), [
    ("fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).ptr", "allocate a larger array"),
    ("fx.SharedAllocator(static=False).allocate(fx.Array[fx.Float32, 64]).ptr", "a larger smem= of the launch"),
])  # fmt: skip
def test_an_overrun_on_the_device_speaks_of_the_launcher(chip: str, allocate: str, hint: str) -> None:
    inputs: list[Any] = [np.zeros(64, np.float32)]
    with pytest.raises(OutOfBounds, match="an LDS access of 4 bytes at byte 256") as caught:
        run(f"fx.make_view({allocate}, fx.make_layout(64))[i + 1] = A[i]", *inputs, chip=chip)
    assert hint in str(caught.value.hint) and "shared=" not in str(caught.value.hint)
