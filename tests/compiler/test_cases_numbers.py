"""Users' cases L15, L17 to L22 and L25: numbers, vectors, printf and layouts of runtime numbers.

Each value is computed by the device and, where all is known, while tracing; Python, numpy and ml_dtypes are the oracle.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
import flylab.expr as fx
from flylab.errors import FlylabError
from tests.compiler.threads import line_of, refused
from tests.samples import cell, on_device

SIGNED = ("Int8", "Int16", "Int32", "Int64")
# What holds a number of each format in a tensor; a Boolean is written as a byte.
NUMPY: dict[str, Any] = {
    **{name: np.dtype(name.lower()) for name in (*SIGNED, "Uint8", "Uint16", "Uint32", "Uint64")},
    "Boolean": np.dtype(np.uint8), "Float16": np.dtype(np.float16), "BFloat16": np.dtype(ml_dtypes.bfloat16),
    "Float32": np.dtype(np.float32), "Float64": np.dtype(np.float64),
}


def run(body: str, out: Any, count: int = 8, head: str = "", chip: str = "gfx942", **tensors: np.ndarray) -> np.ndarray:
    """What a kernel of one thread writes into R (`count` numbers of numpy's dtype `out`), of further tensors."""
    parameters = ", ".join(f"{name}: fx.Tensor" for name in ("R", *tensors))
    lines = "\n    ".join(body.strip("\n").splitlines())
    names = cell(
        f"{head}\n@flyc.kernel\ndef k({parameters}):\n    {lines}\n\n"
        f"@flyc.jit\ndef launch({parameters}):\n    k({', '.join(('R', *tensors))}).launch(grid=1, block=1)\n"
    )
    R = np.zeros(count, out)
    with flylab.use(chip):
        names["launch"](R, *tensors.values())
    run.kernel = names["k"]  # type: ignore[attr-defined]
    return R


# L15.
PAIRS = [(7, -2), (-7, 2), (-7, -2), (7, 2), (0, -3), (-1, 5), (1, -5), (6, -3), (-128, 3), (127, -128)]


@pytest.mark.parametrize("kind", SIGNED)
def test_l15_division_and_remainder_at_run_time_are_pythons(kind: str) -> None:
    a, b = (np.array(side, NUMPY[kind]) for side in zip(*PAIRS, strict=True))
    quotient = on_device(lambda x, y: x // y, a, b, out=NUMPY[kind])
    remainder = on_device(lambda x, y: x % y, a, b, out=NUMPY[kind])
    back = on_device(lambda x, y: (x // y) * y + x % y, a, b, out=NUMPY[kind])
    cls = getattr(fx, kind)
    folded = [(int((cls(x) // cls(y)).value), int((cls(x) % cls(y)).value)) for x, y in PAIRS]
    assert list(zip(quotient.tolist(), remainder.tolist(), strict=True)) == [divmod(x, y) for x, y in PAIRS] == folded
    assert back.tolist() == a.tolist()


@pytest.mark.parametrize("form", ["x // 2", "x // -2", "-7 // x", "7 % x", "x % -2", "x % 2"])
@pytest.mark.parametrize("n", [7, -7, 2, -2])
def test_l15_with_a_literal_on_either_side(form: str, n: int) -> None:
    """Also where only one side is known, and for vectors."""
    expected = eval(form, {"x": n})
    assert run(f"x = N[0]\nR[0] = {form}", np.int32, N=np.array([n], np.int32))[0] == expected
    assert run(f"x = fx.Int32({n})\nR[0] = {form}", np.int32)[0] == expected
    vector = f"x = fx.Vector.filled(2, N[0], fx.Int32)\nR[0] = ({form})[1]"
    assert run(vector, np.int32, N=np.array([n], np.int32))[0] == expected


# L17: what a constructor makes of a number that its format does not have.
MADE: dict[str, tuple[str, int | float | bool]] = {
    "Uint32(2**32+5)": ("Uint32", 5), "Int8(200)": ("Int8", -56), "Uint64(2**64-1)+2": ("Uint64", 1),
    "Uint8(Int32(-1))": ("Uint8", 255), "Boolean(5)": ("Boolean", True), "Boolean(0)": ("Boolean", False),
    "Boolean(Int32(256))": ("Boolean", True), "Int32(2**31)": ("Int32", -(2**31)), "Int16(-32769)": ("Int16", 32767),
    "Uint16(-1)": ("Uint16", 65535), "Int64(2**63)": ("Int64", -(2**63)),
    "Int64(Uint32(2**32-1))": ("Int64", 2**32 - 1),
    "Int64(Int32(-1))": ("Int64", -1), "Uint64(Int8(-1))": ("Uint64", 2**64 - 1), "Int8(Uint8(200))": ("Int8", -56),
    "Int32(Uint8(200))": ("Int32", 200), "Int32(True)": ("Int32", 1), "Int32(Boolean(True))": ("Int32", 1),
    "Int32(-2.9)": ("Int32", -2), "Int32(Float32(2.9))": ("Int32", 2), "Float32(2**24+1)": ("Float32", 2.0**24),
    "Float16(1.0009765625)": ("Float16", 1.0009765625), "BFloat16(1.01)": ("BFloat16", 1.0078125),
    "Int8(127)+Int8(1)": ("Int8", -128), "Uint8(0)-Uint8(1)": ("Uint8", 255), "-Int8(-128)": ("Int8", -128),
    "Uint32(0)-1": ("Uint32", 2**32 - 1), "Int64(2**62)*2": ("Int64", -(2**63)),
}


@pytest.mark.parametrize("text", MADE)
def test_l17_numbers_wrap_as_the_machines_do(text: str) -> None:
    kind, expected = MADE[text]
    names = {n: getattr(fx, n) for n in NUMPY}
    folded = eval(text, names)
    assert type(folded) is names[kind] and folded.value == expected
    head = f"from flylab.expr import {', '.join(NUMPY)}"
    text = f"Uint8({text})" if kind == "Boolean" else text
    assert run(f"R[0] = {text}", NUMPY[kind], head=head)[0] == expected


# The same conversions of numbers that only the device knows: source format, value, target format.
CONVERTED = [
    ("Int64", 2**32 + 5, "Uint32", 5), ("Int32", 200, "Int8", -56), ("Int32", -1, "Uint8", 255),
    ("Int32", 5, "Boolean", True), ("Int32", 256, "Boolean", True), ("Int64", 2**32, "Boolean", True),
    ("Int32", 0, "Boolean", False), ("Int8", -1, "Uint64", 2**64 - 1), ("Uint8", 200, "Int32", 200),
    ("Uint8", 200, "Int8", -56), ("Float32", 0.5, "Boolean", True), ("Uint32", 2**32 - 1, "Int64", 2**32 - 1),
]


@pytest.mark.parametrize("source, value, target, expected", CONVERTED)
def test_l17_conversions_on_the_device(source: str, value: Any, target: str, expected: Any) -> None:
    taken = f"fx.Uint8(fx.{target}(V[0]))" if target == "Boolean" else f"fx.{target}(V[0])"
    found = run(f"R[0] = {taken}", NUMPY[target], V=np.array([value], NUMPY[source]))
    assert found[0] == expected
    assert getattr(fx, target)(getattr(fx, source)(value)).value == expected


CONSTANTS = {
    "Int64": [2**63 - 1, -(2**63), 2**53 + 1, -(2**53) - 1], "Uint64": [2**64 - 1, 2**63, 2**63 + 1, 2**53 + 1],
    "Float64": [0.1, 1e308, 5e-324, -0.0], "Uint32": [2**32 - 1, 2**31], "Float32": [0.1, 3e38],
}


@pytest.mark.parametrize("kind", CONSTANTS)
@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_l17_wide_constants_reach_the_ir_and_the_device_exactly(kind: str, chip: str) -> None:
    values = CONSTANTS[kind]
    found = run("\n".join(f"R[{i}] = fx.{kind}({v!r})" for i, v in enumerate(values)), NUMPY[kind], chip=chip)
    assert found[: len(values)].tobytes() == np.array(values, NUMPY[kind]).tobytes()
    if kind == "Int64":
        text = run.kernel.show("ir")  # type: ignore[attr-defined]
        assert all(f"arith.constant {v} : i64" in text or f"dense<{v}> : vector<1xi64>" in text for v in values)


# L18: the format of a + b. A row and a column for each format; `.` is the row's own, `^` the column's.
ORDER = "Boolean Int8 Uint8 Int16 Uint16 Int32 Uint32 Int64 Uint64 Float16 BFloat16 Float32 Float64".split()
TABLE = """
Boolean  i ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
Int8     . . ^ ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
Uint8    . . . ^ ^ ^ ^ ^ ^ ^ ^ ^ ^
Int16    . . . . ^ ^ ^ ^ ^ ^ ^ ^ ^
Uint16   . . . . . ^ ^ ^ ^ ^ ^ ^ ^
Int32    . . . . . . ^ ^ ^ ^ ^ ^ ^
Uint32   . . . . . . . ^ ^ ^ ^ ^ ^
Int64    . . . . . . . . ^ ^ ^ ^ ^
Uint64   . . . . . . . . . ^ ^ ^ ^
Float16  . . . . . . . . . . f ^ ^
BFloat16 . . . . . . . . . f . ^ ^
Float32  . . . . . . . . . . . . ^
Float64  . . . . . . . . . . . . .
"""
CELLS = {
    (row.split()[0], column): {".": row.split()[0], "^": column, "i": "Int32", "f": "Float32"}[mark]
    for row in TABLE.strip().splitlines()
    for column, mark in zip(ORDER, row.split()[1:], strict=True)
}
FORMS = {
    "scalar-scalar": ("fx.{a}(A[0])", "fx.{b}(B[0])", "({s})"),
    "scalar-vector": ("fx.{a}(A[0])", "fx.Vector.filled(4, B[0], fx.{b})", "({s})[3]"),
    "vector-scalar": ("fx.Vector.filled(4, A[0], fx.{a})", "fx.{b}(B[0])", "({s})[3]"),
    "vector-vector": ("fx.Vector.filled(4, A[0], fx.{a})", "fx.Vector.filled(4, B[0], fx.{b})", "({s})[3]"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("a", ORDER)
def test_l18_one_table_of_formats_for_scalars_and_vectors(a: str, form: str) -> None:
    """3 + 2 in each pair of formats (a Boolean is 1): the format by the table, the value by Python."""
    left, right, taken = FORMS[form]
    body = []
    for i, b in enumerate(ORDER):
        body += [f"x{i} = {left.format(a=a)} + {right.format(b=b)}",
                 f"assert x{i}.dtype {'is fx.' if 'vector' in form else '== fx.'}{CELLS[a, b]}"
                 f"{'' if 'vector' in form else '.dtype'}, (x{i}.dtype, {b!r})",
                 f"R[{i}] = fx.Float64({taken.format(s=f'x{i}')})"]
    found = run("\n".join(body), np.float64, count=len(ORDER), A=np.array([3], np.int32), B=np.array([2], np.int32))
    assert found.tolist() == [(1 if a == "Boolean" else 3) + (1 if b == "Boolean" else 2) for b in ORDER]
    if form == "scalar-scalar":
        kinds = [type(getattr(fx, a)(3) + getattr(fx, b)(2)).__name__ for b in ORDER]
        assert kinds == [CELLS[a, b] for b in ORDER], "folded"


def beside(kind: str, literal: Any) -> str:
    """The format of a number beside a literal: its own, where the literal fits it."""
    if kind.startswith(("Float", "BFloat")):
        return kind
    if isinstance(literal, float):
        return "Float32"
    return "Int32" if kind == "Boolean" else kind


@pytest.mark.parametrize("literal", [2, 1.5, True])
@pytest.mark.parametrize("kind", ORDER)
def test_l18_a_literal_on_either_side(kind: str, literal: Any) -> None:
    expected = (1 if kind == "Boolean" else 3) + literal
    texts = [f"x + {literal}", f"{literal} + x", f"v + {literal}", f"{literal} + v"]
    body = [f"x = fx.{kind}(A[0])", f"v = fx.Vector.filled(2, A[0], fx.{kind})"]
    for i, text in enumerate(texts):
        body.append(f"r = {text}")
        body.append(f"assert r.dtype {'== fx.{0}.dtype' if i < 2 else 'is fx.{0}'}".format(beside(kind, literal)))
        body.append(f"R[{i}] = fx.Float64(r{'' if i < 2 else '[1]'})")
    assert run("\n".join(body), np.float64, A=np.array([3], np.int32)).tolist()[:4] == [expected] * 4


def test_l18_bf16_times_a_float_stays_bf16() -> None:
    body = "x = V[0] * 1.5\ny = 1.5 * V[1]\nassert x.dtype == y.dtype == fx.BFloat16.dtype\nR[0] = x\nR[1] = y"
    found = run(body, ml_dtypes.bfloat16, V=np.array([1.0078125, -3], ml_dtypes.bfloat16))
    assert found[:2].tolist() == (np.array([1.0078125, -3], ml_dtypes.bfloat16) * ml_dtypes.bfloat16(1.5)).tolist()


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "<", ">=", "==", "!="])
@pytest.mark.parametrize("kind", ["Float16", "BFloat16", "Float32"])
def test_l19_small_floats_are_computed_as_numbers(kind: str, symbol: str) -> None:
    """2.5 + 2.0 is 4.5 and -5.0 < -2.0 holds, by numpy's (ml_dtypes') own rounding."""
    values = [2.5, 2.0, -5.0, -2.0, 0.0, -0.0, 1.0078125, 3.0, -1.5, 96.0]
    pairs = np.array([p for p in itertools.product(values, values) if symbol != "/" or p[1]], NUMPY[kind])
    a, b = pairs[:, 0], pairs[:, 1]
    expected = eval(f"a {symbol} b")
    expected = expected.astype(np.uint8) if expected.dtype == bool else expected
    kept = fx.Uint8 if expected.dtype == np.uint8 else lambda x: x
    found = on_device(eval(f"lambda x, y: kept(x {symbol} y)", {"kept": kept}), a, b, out=expected.dtype)
    assert found.tobytes() == expected.tobytes()
    known = eval(f"lambda k, x, y: k(x) {symbol} k(y)")
    folded = [known(getattr(fx, kind), float(x), float(y)).value for x, y in pairs]
    assert [float(f) for f in folded] == [float(e) for e in expected]


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("kind", ["BFloat16", "Float16"])
def test_l19_a_product_of_matrices_of_small_integers_is_exact(kind: str, chip: str) -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
            row, column = fx.thread_idx.x // 16, fx.thread_idx.x % 16
            acc = fx.Float32(0.0)
            for i in range(16):
                acc += fx.Float32(A[row, i]) * fx.Float32(B[i, column])
            C[row, column] = acc.to(A.dtype)

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
            k(A, B, C).launch(grid=1, block=256)
    """)
    numbers = np.random.default_rng(0).integers(-3, 4, (2, 16, 16))
    A, B = numbers.astype(NUMPY[kind])
    C = np.zeros((16, 16), NUMPY[kind])
    with flylab.use(chip):
        names["launch"](A, B, C)
    assert np.array_equal(C.astype(int), numbers[0] @ numbers[1])


# L20: NaN. Of each: the elements, then the sum, the largest and smallest with and without NaN.
NAN = math.nan
WITH_NAN = {
    "one": [NAN, 6.0, 8.0], "in the middle": [6.0, NAN, 8.0], "last": [6.0, 8.0, NAN], "all": [NAN, NAN, NAN],
    "none": [7.0, 6.0, 8.0], "with infinity": [NAN, -math.inf, math.inf],
}


@pytest.mark.parametrize("known", [True, False], ids=["known", "runtime"])
@pytest.mark.parametrize("name", WITH_NAN)
def test_l20_sums_and_extremes_with_nan(name: str, known: bool) -> None:
    values = np.array(WITH_NAN[name], np.float32)
    elements = ", ".join(f"float('{v}')" if known else f"V[{i}]" for i, v in enumerate(values))
    operations = ("ADD", "MAX", "MIN", "MAXNUM", "MINNUM")
    body = f"v = fx.Vector.from_elements([{elements}], fx.Float32)\n" + "\n".join(
        f"R[{i}] = v.reduce(fx.ReductionOp.{operation})" for i, operation in enumerate(operations)
    )
    found = run(body, np.float32, V=values)
    with np.errstate(invalid="ignore"):
        expected = [values.sum(), np.max(values), np.min(values), np.fmax.reduce(values), np.fmin.reduce(values)]
    assert np.array_equal(found[:5], np.array(expected, np.float32), equal_nan=True)


@pytest.mark.parametrize("name, oracle", [("max", np.maximum), ("min", np.minimum), ("maxnumf", np.fmax),
                                          ("minnumf", np.fmin)])
def test_l20_extremes_of_two_numbers(name: str, oracle: Any) -> None:
    values = np.array(list(itertools.product([NAN, 6.0, -8.0, math.inf], repeat=2)), np.float32)
    a, b = values[:, 0].copy(), values[:, 1].copy()
    function = getattr(fx, name)
    assert np.array_equal(on_device(function, a, b, out=np.float32), oracle(a, b), equal_nan=True)
    folded = [function(fx.Float32(float(x)), fx.Float32(float(y))).value for x, y in values]
    assert np.array_equal(np.array(folded, np.float32), oracle(a, b), equal_nan=True)


# L21: a vector as a sequence.
V4 = "v4 = fx.Vector.from_elements([V[i] for i in range(4)], fx.Int32)\n"
SEQUENCES = {
    "list(v4)": ("xs = list(v4)\nassert len(xs) == 4", "xs[0] + 10 * xs[1] + 100 * xs[2] + 1000 * xs[3]"),
    "unpacked": ("a, b, c, d = v4", "a + 10 * b + 100 * c + 1000 * d"),
    "unpacked with a star": ("a, *rest, d = v4\nassert len(rest) == 2", "a + 10 * rest[0] + 100 * rest[1] + 1000 * d"),
    "a tuple": ("xs = tuple(v4)", "xs[3]"),
    "a for": ("acc = 0\nfor x in v4:\n    acc = acc * 10 + x", "acc"),
    "a comprehension": ("xs = [x * 2 for x in v4]", "xs[1]"),
    "enumerate and zip": ("acc = 0\nfor i, (x, y) in enumerate(zip(v4, v4)):\n    acc += i * x * y", "acc"),
    "an argument": ("def f(a, b, c, d):\n    return a - d", "f(*v4)"),
    "the last": ("", "v4[-1]"),
    "the first from the end": ("", "v4[-4]"),
    "len": ("", "len(v4) + v4[0]"),
    "a slice": ("w = v4[1:3]\nassert len(w) == 2", "w[0] + 10 * w[1]"),
    "a slice with a step": ("w = v4[::-2]", "w[0] + 10 * w[1]"),
    "sum": ("", "sum(v4)"),
    "reversed": ("xs = list(reversed(list(v4)))", "xs[0]"),
}


@pytest.mark.parametrize("setup, result", SEQUENCES.values(), ids=SEQUENCES)
def test_l21_a_vector_is_a_sequence(setup: str, result: str) -> None:
    names: dict[str, Any] = {"v4": [3, 1, 4, 5]}
    exec(setup, names)
    body = f"{V4}{setup}\nR[0] = {result}"
    assert run(body, np.int32, V=np.array(names["v4"], np.int32))[0] == eval(result, names)


@pytest.mark.parametrize("index", [4, -5, 100])
def test_l21_an_index_outside_names_itself(index: int) -> None:
    body = f"v4 = fx.Vector.filled(4, 0, fx.Int32)\nR[t] = v4[{index}]  # use"
    error = refused(body)
    assert isinstance(error, IndexError)
    assert f"index {index} of 'v4'" in error.message and "4 elements" in error.message
    assert error.hint and error.where is not None and error.where.line == line_of(body, "# use")


def test_l21_too_few_names_is_an_error_that_names_the_vector() -> None:
    for names, count in (("a, b", 2), ("a, b, c, d, e", 5)):
        with pytest.raises(ValueError, match=f"'v4' has 4 elements, and {count} names are to take them") as caught:
            run(V4 + f"{names} = v4\nR[0] = a", np.int32, V=np.zeros(4, np.int32))
        assert isinstance(caught.value, FlylabError) and "a, *rest = v" in str(caught.value.hint)
    run(V4 + "a, *rest = v4\n(b, c), d = v4[0:2], v4\nR[0] = a", np.int32, V=np.zeros(4, np.int32))


# L22.
PRINTED = {
    "one {} too many": ("fx.printf('{} {}', t)", "{}", "value"),
    "one value too many": ("fx.printf('{}', t, n)", "{}", "{}"),
    "%d": ("fx.printf('t=%d', t)", "%d", "{}"),
    "a value and no {}": ("fx.printf('t', t)", "asks for 0 values, and 1 is given", "{}"),
    "a broken format": ("fx.printf('{', t)", "{", "{{"),
    "a specification that does not fit": ("fx.printf('{:.3q}', t)", "q", ""),
}


@pytest.mark.parametrize("body, word, hint", PRINTED.values(), ids=PRINTED)
def test_l22_a_format_that_does_not_fit_is_refused_at_its_line(body: str, word: str, hint: str) -> None:
    error = refused("R[t] = 0\n" + body + "  # use")
    assert word in error.message and hint in (error.hint or "") and error.hint
    assert error.where is not None and error.where.text.strip().endswith("# use")


def test_l22_literal_braces_and_percents(capsys: pytest.CaptureFixture[str]) -> None:
    body = "fx.printf('{{{}}} 100% {{}} {}%', V[0], V[1])\nfx.printf('no values')"
    run(body, np.int32, V=np.array([7, 50], np.int32))
    assert capsys.readouterr().out == "{7} 100% {} 50%\nno values\n"


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_l22_ten_thousand_lines_in_order(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            for i in range(5):
                if fx.thread_idx.x < 200:
                    fx.printf("{} {} {}", fx.block_idx.x, fx.thread_idx.x, i)

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=10, block=256)
    """)
    with flylab.use(chip):
        names["launch"](np.zeros(4, np.float32))
    lines = capsys.readouterr().out.splitlines()
    assert lines == [f"{b} {t} {i}" for b in range(10) for t in range(200) for i in range(5)]
    assert len(lines) == 10_000


# L25: layouts of numbers that only the device knows. `m` is 6; the result by hand.
LAYOUTS = {
    "crd2idx": ("fx.crd2idx((2, 3), fx.make_layout((m, 4), (4, 1)))", 11),
    "by column": ("fx.crd2idx((2, 3), fx.make_layout((m, 4), (1, m)))", 20),
    "size": ("fx.size(fx.make_layout((m, 4), (4, 1)))", 24),
    "of an Int32 made of it": ("fx.size(fx.make_layout((fx.Int32(m), fx.Int32(4)), (4, 1)))", 24),
    "of an expression": ("fx.size(fx.make_layout((m * 2 + 1, 4)))", 52),
    "shape": ("fx.get(fx.get_shape(fx.make_layout((m, 4), (4, 1))), 0)", 6),
    "stride": ("fx.get(fx.get_stride(fx.make_layout((4, m), (m, 1))), 0)", 6),
    "idx2crd": ("fx.get(fx.idx2crd(9, fx.make_layout((m, 4), (4, 1))), 0)", 2),
    "make_shape": ("fx.size(fx.make_shape(m, 4))", 24),
    "coalesce": ("fx.size(fx.coalesce(fx.make_layout((m, 4), (4, 1))))", 24),
    "nested": ("fx.crd2idx((1, (2, 1)), fx.make_layout((m, (4, 2)), (8, (1, 4))))", 14),
    "of Int64": ("fx.size(fx.make_layout((fx.Int64(m), 4), (4, 1)))", 24),
    "of Uint8": ("fx.size(fx.make_layout((fx.Uint8(m), 4), (4, 1)))", 24),
    "divided": ("fx.size(fx.logical_divide(fx.make_layout((m * 4,)), 4))", 24),
    "of a minimum": ("fx.size(fx.make_layout((fx.min(m, 5), 4), (4, 1)))", 20),
    "of a choice": ("fx.size(fx.make_layout((m if m > 3 else 3, 4), (4, 1)))", 24),
    "of ceildiv": ("fx.size(fx.make_layout((fx.ceildiv(m, 4), 4), (4, 1)))", 8),
    "a view": ("fx.make_view(fx.get_iter(V), fx.make_layout((m, 2), (2, 1)))[1, 1]", 103),
    "in a branch": ("(fx.size(fx.make_layout((m, 4))) if m > 3 else fx.size(fx.make_layout((m, 2))))", 24),
    "two that are equal": ("fx.size(fx.make_layout((m, 4))) == fx.size(fx.make_layout((4, m)))", 1),
}


@pytest.mark.parametrize("text, expected", LAYOUTS.values(), ids=LAYOUTS)
def test_l25_a_layout_of_a_runtime_number(text: str, expected: int) -> None:
    body = f"m = fx.Int32(V[0])\nR[0] = fx.Int32({text})"
    assert run(body, np.int32, V=np.array([6, *range(101, 112)], np.int32))[0] == expected


CARRIED_LAYOUTS = {
    "an arm's": "if m > 3:\n    l = fx.make_layout((m, 4), (4, 1))\nelse:\n    l = fx.make_layout((m, 4), (1, m))\n",
    "a loop's": "l = fx.make_layout((m, 4), (1, 2))\nfor i in range(m):\n    l = fx.make_layout((m, 4), (4, 1))\n",
    "a while's": (
        "l = fx.make_layout((m, 4), (m, 1))\ni = m\nwhile i > 0:\n    l = fx.make_layout((m, 4), (4, 1))\n    i -= 1\n"
    ),
}


@pytest.mark.parametrize("body", CARRIED_LAYOUTS.values(), ids=CARRIED_LAYOUTS)
def test_l25_a_runtime_layout_through_control_flow(body: str) -> None:
    body = f"m = V[0]\n{body}R[0] = fx.Int32(fx.crd2idx((2, 3), l))"
    assert run(body, np.int32, V=np.array([6], np.int32))[0] == 11


def test_l25_no_error_speaks_of_a_dynamic_boolean() -> None:
    """Where a layout's question hangs on m, the error is about the layout."""
    with pytest.raises(FlylabError) as caught:
        run("m = V[0]\nl = fx.composition(fx.make_layout((m, 4), (4, 1)), fx.make_layout(4, 2))", np.int32,
            V=np.array([6], np.int32))
    assert "Boolean" not in str(caught.value) and "known only" in caught.value.message and caught.value.hint
