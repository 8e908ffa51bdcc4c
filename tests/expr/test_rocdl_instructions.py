"""Every row of `fx.rocdl`'s table, run on the software device of each chip, against its definition in numpy."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import NotSupportedError, TraceError
from flylab.expr.rocdl.instructions import FUNCTIONS, format_of
from flylab.expr.rocdl.table import ROWS, Row
from tests.expr.rocdl_definitions import definitions, scaled
from tests.samples import cell, kernel_of

CHIPS = ("gfx942", "gfx950")
NUMPY: dict[str, Any] = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f64": np.float64,
                         "i32": np.uint32, "i16": np.uint16}
CASES = [(chip, name, kind) for chip in CHIPS for name, row in ROWS.items() if chip in row.chips
         for kind in row.operands[0].formats]
# What the hardware approximates, to so many of the last places of the format.
APPROXIMATE = {"rcp": 1, "rsq": 1, "sqrt": 1, "log": 4, "exp2": 2, "sin": 64, "cos": 64, "fdot2": 2,
               "fdot2_f32_bf16": 2}
RUN = cell("""
    @flyc.kernel
    def k(W: fx.Tensor, Out: fx.Tensor, body: fx.Constexpr):
        body(W, Out, fx.thread_idx.x)

    @flyc.jit
    def launch(W: fx.Tensor, Out: fx.Tensor, body: fx.Constexpr):
        k(W, Out, body).launch(grid=1, block=64)
""")["launch"]


def given(row: Row, kind: str) -> list[Any]:
    """Operands of a row: arrays (elements, 64) or (64), and immediates."""
    rng = np.random.default_rng(sum(map(ord, row.name + kind)))
    made: list[Any] = []
    for operand in row.operands:
        if operand.count:
            made.append(int(rng.integers(operand.count)))
            continue
        text = kind if operand.formats == ("T",) or operand is row.operands[0] else operand.formats[0]
        count, _, element = text.rpartition("x")
        shape = (int(count), 64) if count else (64,)
        if element.startswith("i"):
            numbers = rng.integers(0, 2**int(element[1:]), shape, dtype=np.uint64).astype(NUMPY[element])
        else:
            numbers = (rng.standard_normal(shape) * 3).astype(NUMPY[element])
        made.append(_suited(row, operand.name, numbers, rng))
    return made


def _suited(row: Row, name: str, numbers: Any, rng: Any) -> Any:
    if row.name in ("rsq", "sqrt", "log"):
        return np.abs(numbers)
    if row.name == "perm" and name == "selector":
        return sum(rng.integers(0, 16, 64).astype(np.uint32) << np.uint32(8 * i) for i in range(4)).astype(np.uint32)
    if name == "width":
        return numbers % 17
    if name == "offset":
        return numbers % 16
    if row.name == "cvt_pk_u8_f32" and name == "x":
        return np.rint(numbers * 60).astype(np.float32)
    if name == "scale":
        return (2.0 ** rng.integers(-3, 4, 64) * rng.choice([1, 1.5], 64)).astype(np.float32)
    if name == "seed" and "scalef32" in row.name:
        # 0 stays 0 from one element to the next; all ones do not.
        return np.where(np.arange(64) % 2 & ("pk" not in row.name), 2**32 - 1, 0).astype(np.uint32)
    return numbers


def words_of(numbers: Any) -> Any:
    """An operand's bits as words (words, 64): what is below a word, in one of its own, or two in one."""
    rows = np.atleast_2d(numbers)
    flat = np.ascontiguousarray(rows.T)
    if flat.shape[1] * flat.itemsize % 4:
        return flat.view(np.uint16).astype(np.uint32).T
    return flat.view(np.uint32).T


@cache
def outcome(chip: str) -> dict[tuple[str, str], Any]:
    """The result words of every case of a chip, computed in one kernel."""
    cases = [(name, kind, given(ROWS[name], kind)) for at, name, kind in CASES if at == chip]
    slots = [words_of(x) for _, _, operands in cases for x in operands if not isinstance(x, int)]
    places: dict[tuple[str, str], Any] = {}

    def body(W: Any, Out: Any, thread: Any) -> None:
        taken = written = 0
        for name, kind, operands in cases:
            values: list[Any] = []
            for operand, x in zip(ROWS[name].operands, operands, strict=True):
                if isinstance(x, int):
                    values.append(x)
                    continue
                text = kind if operand.formats == ("T",) or not values else operand.formats[0]
                cls, lanes = format_of(text)
                count = len(words_of(x))
                words = fx.Vector.from_elements([W[taken + i, thread] for i in range(count)], fx.Uint32)
                taken += count
                seen = words if cls is fx.Uint32 else words.bitcast(cls)
                values.append(seen if lanes else seen[0])
            result = getattr(fx.rocdl, name)(None, *values)
            cls, lanes = format_of(kind if ROWS[name].result == "T" else ROWS[name].result)
            assert isinstance(result, fx.Vector) == bool(lanes) and (result.dtype if lanes else type(result)) is cls
            vector = result if lanes else fx.Vector.from_elements([result], cls)
            if cls.dtype.bits * vector.numel % 32:
                vector = vector.bitcast(fx.Uint16).to(fx.Uint32)
            elements = list(vector if vector.dtype is fx.Uint32 else vector.bitcast(fx.Uint32))
            places[name, kind] = (written, len(elements))
            for element in elements:
                Out[written, thread] = element
                written += 1

    W = np.concatenate(slots).astype(np.uint32)
    Out = np.zeros((len(cases) * 32, 64), np.uint32)
    with flylab.use(chip):
        RUN(W, Out, body)
    return {case: Out[first:first + count] for case, (first, count) in places.items()}


def typed(words: Any, text: str) -> Any:
    """Result words as numbers (elements, 64), or (64)."""
    count, _, element = text.rpartition("x")
    flat = np.ascontiguousarray(words.T)
    if np.dtype(NUMPY[element]).itemsize * int(count or 1) % 4:
        flat = flat.astype(np.uint16)
    numbers = flat.view(NUMPY[element]).T
    return numbers if count else numbers[0]


@pytest.mark.parametrize("chip, name, kind", CASES)
def test_each_row_is_its_definition(chip: str, name: str, kind: str) -> None:
    row = ROWS[name]
    rule = scaled(name) if "scalef32" in name else definitions(chip)[name]
    with np.errstate(all="ignore"):
        wanted = np.asarray(rule(*given(row, kind)))
    text = kind if row.result == "T" else row.result
    got = typed(outcome(chip)[name, kind], text)
    if wanted.dtype == np.uint32 and got.dtype != np.uint32 or name == "cvt_pk_u8_f32":
        got, wanted = (np.asarray(x).astype(np.int64) & 0xFFFF for x in (got, wanted)) if got.dtype == np.uint16 else (
            np.stack([got >> np.uint32(8 * i) & np.uint32(255) for i in range(4)]), wanted)
    if name in APPROXIMATE:
        # The device's errors in the last places of its format; a double is only approximated as v_rcp_f64 says.
        step = 2.0**-24 if kind == "f64" else float(ml_dtypes.finfo(got.dtype).eps)
        scale = np.maximum(np.abs(wanted.astype(np.float64)), 2.0**-9 if name in ("sin", "cos", "log") else 0)
        assert (np.abs(got.astype(np.float64) - wanted.astype(np.float64)) <= APPROXIMATE[name] * step * scale).all()
        return
    if got.dtype == np.uint16:
        wanted = wanted.astype(np.int64) & 0xFFFF
    with np.errstate(over="ignore"):
        wanted = wanted.astype(got.dtype)
    assert np.array_equal(got.astype(np.float64), wanted.astype(np.float64), equal_nan=True)


def test_every_row_is_a_function_with_its_text() -> None:
    for name, function in FUNCTIONS.items():
        assert getattr(fx.rocdl, name) is function
        assert name in str(function.__doc__) and function.__name__ == name


def test_the_first_argument_says_the_results_format() -> None:
    A = np.zeros(64, np.uint32)
    kernel_of("""
        i = fx.thread_idx.x
        a = fx.rocdl.cvt_pk_fp8_f32(fx.Uint32, 1.0, 2, 0, False)
        b = fx.rocdl.cvt_pk_fp8_f32(fx.T.i32, 1.0, b=2.0, old=0, word_sel=True)
        c = fx.rocdl.cvt_pk_fp8_f32(fx.T.vec(4, fx.T.i8), 1.0, 2.0, fx.Vector.filled(4, 0, fx.Int8), 0)
        assert (type(a), type(b), c.dtype, c.numel) == (fx.Uint32, fx.Int32, fx.Int8, 4)
        A[i] = a | fx.Uint32(b) ^ fx.Uint32(c.bitcast(fx.Uint32)[0])
        A[63] = fx.rocdl.perm_b32(0x44332211, fx.Uint32(0x88776655), 0x07000304)
    """)["launch"](A)
    pair = int(np.array([1, 2], ml_dtypes.float8_e4m3fnuz).view(np.uint16)[0])
    assert (A[:63] == (pair | pair << 16 ^ pair)).all()
    assert A[63] == 0x44558811


@pytest.mark.parametrize("chip", CHIPS)
def test_the_published_conversions(chip: str) -> None:
    """`rocdl.inline_asm` and `cdna4`: the same values as numpy's formats give."""
    A = (np.arange(64, dtype=np.float32) - 32) * 1.1
    N, B, C = np.arange(64, dtype=np.int32) * 0x01030507, np.zeros(64, np.uint32), np.zeros((3, 64), np.float32)
    launch = kernel_of("""
        i = fx.thread_idx.x
        C[0, i] = fx.rocdl.inline_asm.cvt_off_f32_i4(N[i])
        C[1, i] = fx.rocdl.inline_asm.cvt_off_f32_i4(N[i], byte_sel=2)
        if fx.const_expr(NEW):
            B[i] = fx.Uint32(fx.rocdl.cvt_pk_bf16_f32(A[i], 2.0))
            C[2, i] = fx.rocdl.cdna4.cvt_sr_f32_to_bf16(A[i], fx.Int32(0)).to(fx.Float32)
    """, "A: fx.Tensor, N: fx.Tensor, B: fx.Tensor, C: fx.Tensor, NEW: fx.Constexpr[bool]")["launch"]
    with flylab.use(chip):
        launch(A, N, B, C, chip == "gfx950")
    nibbles = [((N >> at & 15) ^ 8) - 8 for at in (0, 16)]
    assert np.array_equal(C[:2], np.array(nibbles) / np.float32(16))
    if chip == "gfx950":
        pairs = np.stack([A, np.full(64, 2, np.float32)], 1).astype(ml_dtypes.bfloat16)
        assert np.array_equal(B, pairs.view(np.uint32)[:, 0])
        assert np.array_equal(C[2].view(np.uint32), A.view(np.uint32) & 0xFFFF0000)


@pytest.mark.parametrize("call, message, hint", [
    ("cvt_pk_bf16_f32(1.0, 2.0)", "gfx942 has no such instruction", "it is of gfx950"),
    ("cvt_scalef32_f32_fp8(None, 0, 1.0, 0)", "gfx942 has no such instruction", "it is of gfx950"),
    ("permlane32_swap(None, 0, 0)", "gfx942 has no such instruction", "it is of gfx950"),
    ("cdna4.cvt_sr_f32_to_bf16(1.0, 0)", "gfx942 has no such instruction", "it is of gfx950"),
    ("rcp(None, fx.Int32(3))", "takes f32 or f16 or f64", ".to(fx.Float32)"),
    ("rcp(fx.Int32, 3.0)", "it gives Float32", "or None"),
    ("cvt_pk_fp8_f32(None, fx.Float16(1.0), 2.0, 0, 0)", "the a is a value of Float16, and it takes f32", "fx.Float32"),
    ("cvt_pk_fp8_f32(None, 1.0, 2.0, 0)", "of 3 operands", "word_sel"),
    ("cvt_pk_fp8_f32(None, 1.0, 2.0, 0, 2)", "a word_sel of 2, and it goes from 0 to 1", "0 to 1"),
    ("cvt_f32_fp8(None, 0, fx.thread_idx.x)", "of the device, and the instruction holds it", "Constexpr"),
    ("fmed3(None, 1.0, fx.Float16(1.0), 1.0)", "the b is a value of Float16, and it takes f32", "fx.Float32"),
    ("sdot2(None, fx.Vector.filled(3, 1, fx.Int16), 0, 0, 0)", "the a is a value of 3 Int16", "2xi16"),
    ("wmma_f32_16x16x16_f16(None)", "fx.rocdl.wmma_f32_16x16x16_f16 is of gfx11, gfx12 and gfx1250", "leave it out"),
    ("s_wait_dscnt(0)", "is of gfx12", "rocdl.s_waitcnt(lgkmcnt=n)"),
    ("tanh(None, 1.0)", "is of gfx1250", "fx.math.tanh"),
    ("inline_asm.cvt_off_f32_i4(fx.Int32(1), byte_sel=4)", "a byte_sel of 4", "0 to 3"),
])
def test_refusals(call: str, message: str, hint: str) -> None:
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        flyc.compile(kernel_of(f"fx.rocdl.{call}")["launch"], np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 3
    assert hint in f"{caught.value.hint} {caught.value.message}"
    assert "has no such" not in message or isinstance(caught.value, NotSupportedError)
