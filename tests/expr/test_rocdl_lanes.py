"""DPP, swizzles and swaps of lanes: each against a table of the lanes that are read, made here from the ISA's text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from tests.samples import kernel_of

LANES = np.arange(64)
ROW, AT = LANES // 16, LANES % 16


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


def moved(by: int, turning: bool = False) -> Any:
    """The lane `by` above in its row; -1 where there is none."""
    at = AT + by
    return np.where((at < 0) | (at > 15), -1 if not turning else ROW * 16 + at % 16, ROW * 16 + at)


# Each control with the lane that is read; -1: none.
CONTROLS: dict[str, Any] = {
    "dpp.quad_perm(1, 0, 3, 2)": LANES ^ 1,
    "dpp.quad_perm(3, 3, 0, 1)": LANES // 4 * 4 + np.array([3, 3, 0, 1])[LANES % 4],
    **{f"dpp.row_shl({n})": moved(n) for n in (1, 7, 15)},
    **{f"dpp.row_shr({n})": moved(-n) for n in (1, 8, 15)},
    **{f"dpp.row_ror({n})": moved(-n, turning=True) for n in (1, 4, 15)},
    "dpp.row_mirror": LANES ^ 15,
    "dpp.row_half_mirror": LANES ^ 7,
    "dpp.row_bcast15": np.where(ROW == 0, -1, ROW * 16 - 1),
    "dpp.row_bcast31": np.where(LANES < 32, -1, 31),
    "dpp.wave_shl": np.where(LANES == 63, -1, LANES + 1),
    "dpp.wave_shr": LANES - 1,
    "dpp.wave_rol": (LANES + 1) % 64,
    "dpp.wave_ror": (LANES - 1) % 64,
    "dpp.row_newbcast(5)": ROW * 16 + 5,
    "0xb1": LANES ^ 1,
}


def test_every_control() -> None:
    A = np.arange(100, 164, dtype=np.int32)
    B, C = (np.zeros((len(CONTROLS), 64), np.int32) for _ in range(2))
    body = "rocdl, dpp = fx.rocdl, fx.rocdl.dpp\ni = fx.thread_idx.x\nx = A[i]\n" + "\n".join(
        f"B[{n}, i] = rocdl.update_dpp(fx.T.i32, -i, x, {control}, 15, 15, False)\n"
        f"C[{n}, i] = rocdl.mov_dpp(None, x, {control})" for n, control in enumerate(CONTROLS))
    kernel_of(body, "A: fx.Tensor, B: fx.Tensor, C: fx.Tensor")["launch"](A, B, C)
    for n, (control, read) in enumerate(CONTROLS.items()):
        assert np.array_equal(B[n], np.where(read < 0, -LANES, A[read])), control
        assert np.array_equal(C[n], np.where(read < 0, 0, A[read])), control


def test_masks_keep_the_old_number() -> None:
    A, B = np.arange(100, 164, dtype=np.int32), np.zeros((2, 64), np.int32)
    kernel_of("""
        i = fx.thread_idx.x
        B[0, i] = fx.rocdl.update_dpp(None, -1, A[i], fx.rocdl.dpp.row_mirror, 0b0101)
        B[1, i] = fx.rocdl.update_dpp(None, -1, A[i], fx.rocdl.dpp.row_shr(1), 0b1111, 0b1001, True)
    """, "A: fx.Tensor, B: fx.Tensor")["launch"](A, B)
    assert np.array_equal(B[0], np.where(ROW % 2 == 0, A[LANES ^ 15], -1))
    shifted = np.where(AT == 0, 0, A[LANES - 1])
    assert np.array_equal(B[1], np.where((AT < 4) | (AT >= 12), shifted, -1))


def test_vectors_and_wide_numbers_move_whole() -> None:
    A, B = np.arange(64, dtype=np.float64) + 0.1, np.zeros((5, 64), np.float64)
    kernel_of("""
        i = fx.thread_idx.x
        B[0, i] = fx.rocdl.update_dpp(None, 0.0, A[i], fx.rocdl.dpp.row_ror(1))
        v = fx.Vector.from_elements([A[i], A[i] * 2.0], fx.Float64).to(fx.Float16)
        w = fx.rocdl.mov_dpp(None, v, fx.rocdl.dpp.quad_perm(1, 0, 3, 2)).to(fx.Float64)
        B[1, i] = w[0]
        B[2, i] = w[1]
        B[3, i] = fx.rocdl.writelane(None, fx.Float64(7.5), 9, A[i])
        B[4, i] = fx.rocdl.ds_swizzle(None, A[i], 0x1f | 4 << 10)
    """, "A: fx.Tensor, B: fx.Tensor")["launch"](A, B)
    assert np.array_equal(B[0], A[moved(-1, turning=True)])
    assert np.array_equal(B[1], A.astype(np.float16)[LANES ^ 1])
    assert np.array_equal(B[2], (A * 2).astype(np.float16)[LANES ^ 1])
    assert np.array_equal(B[3], np.where(LANES == 9, 7.5, A))
    assert np.array_equal(B[4], A[LANES ^ 4])


@pytest.mark.parametrize("pattern, read", [
    (0x1F | 16 << 10, LANES ^ 16),
    (0x00 | 5 << 5, LANES // 32 * 32 + 5),
    (0x1E | 1 << 5 | 2 << 10, ((LANES & 0x1E) | 1) ^ 2 | LANES & 32),
    (0x8000 | 0b00_01_10_11, LANES // 4 * 4 + 3 - LANES % 4),
])
def test_swizzles(pattern: int, read: Any) -> None:
    A = np.arange(64, dtype=np.int32)
    kernel_of(f"i = fx.thread_idx.x\nA[i] = fx.rocdl.ds_swizzle(None, A[i], {pattern})")["launch"](A)
    assert np.array_equal(A, read)


def test_swaps(chip: str) -> None:
    if chip == "gfx942":
        with pytest.raises(TraceError, match="gfx942 has no such instruction"):
            kernel_of("fx.rocdl.permlane16_swap(None, 0, 0)")["launch"](np.zeros(64, np.int32))
        return
    A, B = np.arange(64, dtype=np.int32), np.zeros((4, 64), np.int32)
    kernel_of("""
        i = fx.thread_idx.x
        for n, swap in enumerate((fx.rocdl.permlane32_swap, fx.rocdl.permlane16_swap)):
            x, y = swap(None, A[i], A[i] + 1000, False, False)
            B[2 * n, i] = x
            B[2 * n + 1, i] = y
    """, "A: fx.Tensor, B: fx.Tensor")["launch"](A, B)
    assert np.array_equal(B[0], np.where(LANES < 32, LANES, LANES - 32 + 1000))
    assert np.array_equal(B[1], np.where(LANES < 32, LANES + 32, LANES + 1000))
    assert np.array_equal(B[2], np.where(ROW % 2 == 0, LANES, LANES - 16 + 1000))
    assert np.array_equal(B[3], np.where(ROW % 2 == 0, LANES + 16, LANES + 1000))


def test_a_sum_over_rows_is_dpp_alone() -> None:
    """The reduction that DPP is for: no LDS, no ds_bpermute; every lane has the sum of its row."""
    A = np.random.default_rng(0).standard_normal(64).astype(np.float32)
    wanted = A.reshape(4, 16).astype(np.float64).sum(1).repeat(16)
    compiled = flyc.compile(kernel_of("""
        i = fx.thread_idx.x
        x = A[i]
        for n in (8, 4, 2, 1):
            x = x + fx.rocdl.mov_dpp(None, x, fx.rocdl.dpp.row_ror(n))
        A[i] = x
    """)["launch"], A)
    compiled(A)
    assert np.allclose(A, wanted, atol=1e-5)
    found = re.findall(r"v_add_f32_dpp .* row_ror:(\d+)", compiled.code.assembly)
    assert found == ["8", "4", "2", "1"] and "ds_" not in compiled.code.assembly.split("s_endpgm")[0]


@pytest.mark.parametrize("call, message, hint", [
    ("update_dpp(None, 0, A[0], 0x100)", "a dpp_ctrl of 0x100, which is no control", "rocdl.dpp.row_shr(1)"),
    ("update_dpp(None, 0, A[0], 0x200)", "a dpp_ctrl of 512", "rocdl.dpp"),
    ("update_dpp(None, 0, A[0], 0, 16)", "a row_mask of 16", "0 to 15"),
    ("update_dpp(None, fx.Float32(0.0), A[0], 0)", "are of two formats", "in one format"),
    ("dpp.row_shr(16)", "a number of 16", "1 to 15"),
    ("dpp.row_shl(0)", "a number of 0", "1 to 15"),
    ("dpp.quad_perm(0, 1, 2, 4)", "a lane of 4", "0 to 3"),
    ("ds_swizzle(None, A[0], 0x10000)", "a offset of 65536", "0 to 65535"),
    ("ds_swizzle(None, A[0], A[0])", "of the device", "Constexpr"),
    ("writelane(None, A[0], 1.5, A[0])", "the lane is a Float32", "integer"),
    ("mov_dpp(fx.Int64, A[0], 0)", "a result of Int64", "convert the result"),
])
def test_refusals(call: str, message: str, hint: str) -> None:
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        flyc.compile(kernel_of(f"fx.rocdl.{call}")["launch"], np.zeros(64, np.int32))
    assert caught.value.where is not None and caught.value.where.line == 3
    assert hint in str(caught.value.hint)


def test_the_controls_are_plain_numbers() -> None:
    codes = fx.rocdl.dpp
    assert [codes.row_shl(1), codes.row_bcast31, codes.quad_perm(0, 1, 2, 3)] == [0x101, 0x143, 0xE4]
