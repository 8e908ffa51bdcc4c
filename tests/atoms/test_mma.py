"""MMA atoms: each element of AMD's tables lies where our atom says; a row that does not cover its tile is refused."""

from __future__ import annotations

import dataclasses
import math

import pytest

from flylab.atoms import MFMA, SCALED, SPARSE, UNIVERSAL, MmaAtom, MmaOp, mma_atom, mma_op
from flylab.atoms.mma import STATE
from flylab.atoms.mma_table import table
from flylab.dtypes import DTYPES
from flylab.errors import LayoutError
from flylab.layout import Layout, size
from flylab.mfma import FORMATS, INSTRUCTIONS, Mfma, dtype_name, mfma
from flylab.targets import TARGETS
from tests.emulator.mfma_tables import Place, tables

FAMILIES = (MFMA, SCALED, SPARSE)
OPS = [(family, *key) for family in FAMILIES for key in table(family)]
TABLES = [(chip, name) for chip in TARGETS for name in tables(chip)]
F16, F32, F64, BF16, I8 = (DTYPES[n] for n in ("Float16", "Float32", "Float64", "BFloat16", "Int8"))
FP8, FNUZ = DTYPES["Float8E4M3FN"], DTYPES["Float8E4M3FNUZ"]


def op_of(chip: str, name: str) -> MmaOp:
    """Our operation for an instruction of the tables; `.fp4` behind a name says both formats."""
    base, _, format_ = name.partition(".")
    row = mfma(base)
    if row.mixed:
        row = row.with_formats(FORMATS.index(format_), FORMATS.index(format_))
    family = SPARSE if row.sparse else SCALED if row.scaled else MFMA
    a, b = (DTYPES[dtype_name(kind, TARGETS[chip])] for kind in (row.a_type, row.b_type))
    found = mma_op(family, (row.m, row.n, row.k), a, b)
    assert found.row == row and chip in found.chips
    return found


def first_bit(place: Place, bits: int) -> int:
    """Of 64-bit elements the tables name the last register first."""
    return 32 * (place.register - (bits == 64 and place.register % 2)) + place.bit


@pytest.mark.parametrize("chip, name", TABLES)
def test_every_element_of_every_table(chip: str, name: str) -> None:
    op = op_of(chip, name)
    found = tables(chip)[name]
    for matrix, side in (("A", "a"), ("B", "b"), ("C", "c"), ("C", "d")):
        if side == "c" and "c" not in found:
            assert op.sparse or chip == "gfx950"  # D's table is C's
            continue
        tv = {"A": op.layout_A_tv, "B": op.layout_B_tv, "C": op.layout_C_tv}[matrix]
        bits = {"A": op.dtype_a, "B": op.dtype_b, "C": op.dtype_acc}[matrix].bits
        rows, columns = op.tile(matrix)[:2]
        seen = set()
        for place in found[side]:
            # A place of a sparse A is of two stored elements, which stand for two of four.
            for n in range(2 if op.sparse and side == "a" else 1):
                row, column = place.row, place.columns[0]
                if side == "a" and op.sparse:
                    assert len(place.columns) == 4
                    column = column // 2 + n
                if side == "b":
                    row, column = column, row
                value = first_bit(place, bits) // bits + n
                wanted = row + rows * (column + columns * place.block)
                assert tv(place.lane, value) == wanted, (matrix, place)
                seen.add(wanted)
        assert len(seen) == op.elements(matrix)


def test_no_table_is_left_out() -> None:
    assert {chip: len(tables(chip)) for chip in TARGETS} == {"gfx942": 46, "gfx950": 12}
    # AMD's calculator for CDNA3 has all that the chip has.
    of_942 = {row.name for row in INSTRUCTIONS.values() if "gfx942" in row.chips}
    assert {mfma(name).name for name in tables("gfx942")} == of_942


def test_every_instruction_has_its_atoms() -> None:
    """Each row is an operation, each of f8f6f4 one for each two of five formats; fp8 ones differ between the chips."""
    wanted = 0
    for row in INSTRUCTIONS.values():
        wanted += 25 if row.mixed else len(row.chips) if row.a_type in ("fp8", "bf8") else 1
    assert len(OPS) == wanted == 182
    assert {table(family)[key].name for family in FAMILIES for key in table(family)} == set(INSTRUCTIONS)
    for chip in TARGETS:
        has = [o for o in OPS if chip in mma_op(*o).chips]
        assert len(has) == sum(25 if r.mixed else 1 for r in INSTRUCTIONS.values() if chip in r.chips)


@pytest.mark.parametrize("family, shape, a, b", OPS, ids=[str(mma_op(*o)) for o in OPS])
def test_each_atom(family: str, shape: tuple[int, int, int], a: object, b: object) -> None:
    op = mma_op(family, shape, a, b)  # type: ignore[arg-type]
    atom = MmaAtom(op)
    assert mma_atom(str(atom)) == atom and atom.num_threads == 64 and str(atom.thr_layout) == "64:1"
    m, n, k = atom.shape_mnk
    for matrix, tv, extents in (("A", atom.layout_A_tv, (m, k // 2 if op.sparse else k)),
                                ("B", atom.layout_B_tv, (n, k)), ("C", atom.layout_C_tv, (m, n))):
        count = math.prod(extents) * op.blocks
        assert op.tile(matrix)[:2] == extents and op.elements(matrix) == count
        assert size(tv[0]) == 64 and size(tv[1]) == atom.num_values(matrix) == count // 64
        assert sorted(tv(t, v) for t in range(64) for v in range(count // 64)) == list(range(count))


def test_a_row_that_does_not_cover_its_tile() -> None:
    short = Mfma("v_mfma_f32_16x16x6_f16", 16, 16, 6, 1, "f16", "f16", "f32", ("gfx942",))
    with pytest.raises(LayoutError, match="does not cover the 96 elements of A") as caught:
        MmaOp(MFMA, F16, F16, F32, short)
    assert caught.value.hint

    class Wrong(MmaOp):
        @property
        def layout_C_tv(self) -> Layout:  # type: ignore[override]
            return Layout(((16, 4), (4, 1)), ((16, 4), (2, 16)))  # rows 0 2 4 6, which meet those of the next lanes

    good = mma_op(MFMA, (16, 16, 16), F16)
    with pytest.raises(LayoutError, match="does not cover the 256 elements of C"):
        Wrong(MFMA, F16, F16, F32, good.row)


def test_one_thread() -> None:
    for dtype in (F16, BF16, F32, F64):
        atom = MmaAtom(mma_op(UNIVERSAL, (1, 1, 1), dtype))
        assert (atom.dtype_a, atom.dtype_b, atom.dtype_acc) == (dtype,) * 3
        assert mma_atom(str(atom)) == atom and atom.num_threads == 1
        assert [size(tv) for tv in (atom.layout_A_tv, atom.layout_B_tv, atom.layout_C_tv)] == [1, 1, 1]
        assert atom.op.chips == tuple(TARGETS)
    with pytest.raises(LayoutError, match="no multiply-add of Int8"):
        mma_op(UNIVERSAL, (1, 1, 1), I8)


def test_chips() -> None:
    assert mma_op(MFMA, (16, 16, 32), FNUZ).chips == ("gfx942",)
    assert mma_op(MFMA, (16, 16, 32), FP8).chips == ("gfx950",)
    assert mma_op(MFMA, (16, 16, 32), FP8, DTYPES["Float8E5M2"]).row == mfma("v_mfma_f32_16x16x32_fp8_bf8")
    assert mma_op(MFMA, (16, 16, 8), F32).chips == ("gfx942",)
    assert mma_op(MFMA, (16, 16, 32), F16).chips == ("gfx950",)
    assert mma_op(MFMA, (16, 16, 16), F16).chips == ("gfx942", "gfx950")


@pytest.mark.parametrize("arguments, message, hint", [
    ((MFMA, (16, 16, 15), F16), r"no chip has MFMA\(16, 16, 15, Float16\)", "16x16x32 (gfx950), 32x32x4 (2 blocks)"),
    ((MFMA, (16, 16, 16), F64), r"no chip has MFMA\(16, 16, 16, Float64\)", "4x4x4 (4 blocks), 16x16x4"),
    ((MFMA, (16, 16, 16), DTYPES["Int16"]), r"no chip has MFMA\(16, 16, 16, Int16\)", "BFloat16, Float16"),
    ((MFMA, (5, 5, 5), DTYPES["Int16"]), r"no chip has MFMA\(5, 5, 5, Int16\)", "32x32x8"),
    ((MFMA, (16, 16, 32), FP8, FNUZ), r"no chip has MFMA\(16, 16, 32, Float8E4M3FN, Float8E4M3FNUZ\)", "Float16"),
    ((MFMA, (16, 16, 16), F16, F16, F16), r"MFMA\(16, 16, 16, Float16\) sums in Float32, not in Float16", r"\.to\(fx"),
    ((SCALED, (16, 16, 128), FP8, FP8, None, (4, 0)), "opselA=4", "0 to 3"),
    ((SPARSE, (16, 16, 16), F16), r"no chip has SMFMAC\(16, 16, 16, Float16\)", "16x16x32"),
])
def test_refusals(arguments: tuple[object, ...], message: str, hint: str) -> None:
    with pytest.raises(LayoutError, match=message) as caught:
        mma_op(*arguments)  # type: ignore[arg-type]
    assert hint.replace("\\", "") in str(caught.value.hint)


def test_text_that_is_no_atom() -> None:
    for text in ("", "mma_atom<>", "mma_atom<fly.copy<1x1x1, (f32, f32) -> f32>>",
                 "mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f33>>"):
        with pytest.raises(LayoutError, match="is no MMA atom"):
            mma_atom(text)


def test_state_does_not_change_an_atom() -> None:
    op = mma_op(SCALED, (16, 16, 128), FP8)
    assert MmaAtom(op) == MmaAtom(op, {"scale_a": 3}) and STATE[SCALED] == ("scale_a", "scale_b")
    with pytest.raises(dataclasses.FrozenInstanceError):
        MmaAtom(op).op = op  # type: ignore[misc]
