"""Static values under their published spellings."""

from __future__ import annotations

import pytest

import flylab.expr as fx
from flylab.errors import LayoutError, TraceError
from flylab.layout import Layout, Swizzle


def test_types_are_the_values_that_they_name():
    assert fx.static(fx.SwizzleType.get(2, 4, 3)) == Swizzle(2, 4, 3)
    assert fx.static(fx.IntTupleType.get((4, (2, 8)))) == (4, (2, 8))
    assert fx.static(fx.LayoutType.get((4, 8), (8, 1))) == Layout((4, 8), (8, 1))
    composed = fx.make_composed_layout(fx.static(fx.SwizzleType.get(3, 3, 3)), fx.make_layout((64, 64), (64, 1)))
    assert composed(3, 5) == (3 * 64 + 5) ^ (3 << 3)


@pytest.mark.parametrize("value", [3.0, True, "S<3,3,3>", None, fx.SwizzleType])
def test_what_is_no_static_value_is_refused(value):
    with pytest.raises(TraceError, match="swizzle, layout, tuple or tiler") as refused:
        fx.static(value)
    assert "SwizzleType.get" in str(refused.value.hint)


def test_numbers_that_are_no_swizzle_are_refused():
    with pytest.raises(LayoutError):
        fx.SwizzleType.get(-1, 3, 3)
