"""Peaks against the TFLOP/s of AMD's data sheets, ridges and places by hand, and what is refused."""

from __future__ import annotations

import pytest

from flylab.errors import FlylabError
from flylab.model import PRODUCTS, product, roofline

# TFLOP/s (of i8: TOP/s), dense, as AMD's data sheets print them.
SHEETS = {
    "MI300X": {"f64": 163.4, "f32": 163.4, "xf32": 653.7, "f16": 1307.4, "bf16": 1307.4, "fp8": 2614.9, "i8": 2614.9,
               "vector f32": 81.7},
    "MI355X": {"f64": 78.6, "f32": 157.3, "f16": 2516, "bf16": 2516, "fp8": 5033, "i8": 5033, "fp6": 10066,
               "fp4": 10066, "vector f32": 78.6}}


@pytest.mark.parametrize("name, dtype", [(name, dtype) for name, sheet in SHEETS.items() for dtype in sheet])
def test_peaks_of_the_data_sheets(name: str, dtype: str) -> None:
    assert roofline(name, dtype).peak / 1e12 == pytest.approx(SHEETS[name][dtype], rel=1e-3)


def test_ridges_and_places() -> None:
    roof = roofline("MI355X", "fp8", clock=1200)
    assert roof.peak == pytest.approx(5033e12 / 2, rel=1e-3)
    ridge = roof.ridges["HBM"]
    assert ridge == pytest.approx(5033e12 / 2 / 8e12, rel=1e-3)
    below, above = roof.place(ridge * 0.99, 1), roof.place(ridge * 1.01, 1)
    assert (below.bound_by, above.bound_by) == ("HBM", "fp8 peak") and above.attainable == roof.peak
    assert below.attainable == pytest.approx(0.99 * roof.peak)
    assert "modelled" in str(roof) and "1200 MHz" in str(roof) and "modelled" in str(below)
    # One add of two floats and a store: 1/12 operation a byte.
    vector = roofline("MI350X", "vector f32").place(1, 12)
    assert (vector.bound_by, vector.attainable) == ("HBM", pytest.approx(8e12 / 12))
    assert roofline("MI350X", "vector f32").place(1, 12, "L2").attainable > vector.attainable


def test_every_figure_says_where_it_is_from() -> None:
    for each in PRODUCTS.values():
        for figure in (each.peak, each.sustained, each.hbm, each.infinity_cache):
            assert figure.mark in "SMD?" and figure.source
    assert product("gfx942").name == "MI300X" and product(PRODUCTS["MI355X"]).name == "MI355X"


@pytest.mark.parametrize("ask, message", [
    (lambda: roofline("MI250X", "f16"), "unknown product 'MI250X'"),
    (lambda: roofline("MI300X", "fp4"), "MI300X has no peak for 'fp4'"),
    (lambda: roofline("gfx950", "xf32"), "MI350X has no peak for 'xf32'"),
    (lambda: roofline("MI300X", "f16", "boost"), "no clock 'boost'"),
    (lambda: roofline("MI300X", "f16", -1), "no clock -1"),
    (lambda: roofline("MI300X", "f16").place(0, 1), "no place for 0 operations"),
    (lambda: roofline("MI300X", "f16").place(1, 1, "disk"), "'disk'")])
def test_refused(ask, message: str) -> None:
    with pytest.raises(FlylabError, match=message) as caught:
        ask()
    assert caught.value.hint
