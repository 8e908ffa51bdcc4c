"""Copy atoms: each row is a bijection of values, prints and reads back, and fits its format or is refused."""

from __future__ import annotations

import dataclasses

import pytest

from flylab.atoms import COPY_OPS, CopyAtom, CopyOp, copy_op
from flylab.dtypes import DTYPES
from flylab.errors import LayoutError
from flylab.layout import Layout, size


def test_every_row_with_every_format() -> None:
    made = 0
    for row in COPY_OPS.values():
        for dtype in DTYPES.values():
            if row.bits % dtype.bits:
                with pytest.raises(LayoutError, match="does not hold whole") as caught:
                    CopyAtom(row, dtype)
                assert f"multiple of {dtype.bits} bits" in (caught.value.hint or "")
                continue
            atom = CopyAtom(row, dtype)
            made += 1
            assert atom.num_values * dtype.bits == row.bits
            for tv in (atom.layout_src_tv, atom.layout_dst_tv):
                assert size(tv) == atom.num_values
                assert sorted(tv(0, v) for v in range(atom.num_values)) == list(range(atom.num_values))
            assert CopyAtom.parse(str(atom)) == atom
    assert made > 100


def test_what_the_hardware_has() -> None:
    """Widths of global and buffer memory instructions: CDNA3 and CDNA4 ISA documents."""
    assert {bits for _, bits in COPY_OPS} == {8, 16, 32, 64, 128}
    assert copy_op("buffer_copy", 32).spaces == ("buffer",)
    assert set(copy_op("universal_copy", 32).spaces) == {"global", "buffer", "shared", "register"}


@pytest.mark.parametrize(
    "family, bits",
    [
        ("universal_copy", 96),
        ("universal_copy", 0),
        ("buffer_copy", 256),
        ("universal_copy", "32"),
        ("universal_copy", [32]),
        ("other", 32),
    ],
)
def test_unknown_widths(family: str, bits: int) -> None:
    with pytest.raises(LayoutError, match=f"no {family} of") as caught:
        copy_op(family, bits)
    assert caught.value.hint


@pytest.mark.parametrize("text", ["", "universal_copy<32>", "universal_copy<32>, Float31", "universal_copy, Float32"])
def test_bad_texts(text: str) -> None:
    with pytest.raises(LayoutError, match="is no copy atom"):
        CopyAtom.parse(text)


def test_a_row_that_is_no_bijection_cannot_be_built() -> None:
    class Doubled(CopyAtom):
        @property
        def layout_src_tv(self) -> Layout:
            return Layout((1, self.num_values), (0, 2))

    with pytest.raises(LayoutError, match="does not cover the 4 values once each"):
        Doubled(copy_op("universal_copy", 128), DTYPES["Float32"])


def test_rows_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        CopyOp("universal_copy", 32, ()).bits = 64  # type: ignore[misc]
