"""`fx.math`: the same on the device as while tracing, scalars and vectors; what is exact; what is refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import CompileError, FlylabError, NotSupportedError, TraceError
from flylab.mathlib.functions import FUNCTIONS
from flylab.mathlib.known import Known
from tests.mathlib.measure import FORMATS, SPECIAL
from tests.samples import cell, compile_body, on_device

CLASSES = {"f16": fx.Float16, "bf16": fx.BFloat16, "f32": fx.Float32, "f64": fx.Float64}
NUMPY = {**FORMATS, "f64": np.float64}
PUBLISHED = """absf absi acos acosh asin asinh atan atan2 atanh cbrt ceil clampf copysign cos cosh ctlz ctpop cttz erf
erfc exp exp2 expm1 floor fma fpowi ipowi isfinite isinf isnan isnormal log log10 log1p log2 powf round roundeven rsqrt
sin sincos sinh sqrt tan tanh trunc""".split()
NUMBERS = [*SPECIAL, 0.1, -0.7, 1.9, 7.25, -11.0, 40.5, 88.9, -100.3, 1e-6, 3e-9, 123456.7, 2.0**31, 1e30]


def same(found: Any, wanted: Any) -> bool:
    """Equal bits, any NaN for a NaN."""
    found, wanted = np.asarray(found), np.asarray(wanted)
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    equal = found.view(f"u{found.itemsize}") == wanted.view(f"u{wanted.itemsize}")
    return bool(np.all(equal | np.isnan(a) & np.isnan(b)))


def call(name: str) -> Callable[..., Any]:
    """A function as one of numbers: truth values as 0 and 1, of a pair the difference."""
    function, row = getattr(fx.math, name), FUNCTIONS[name]
    if row.results > 1:
        return lambda *x: function(*x)[0] - function(*x)[1]
    return lambda *x: function(*x).to(fx.Uint8) if row.truth else function(*x)


def numbers(kind: str) -> Any:
    with np.errstate(over="ignore"):
        return np.array(NUMBERS).astype(NUMPY[kind])


def test_every_published_name_is_there() -> None:
    assert sorted(fx.math.__all__) == PUBLISHED == dir(fx.math)
    assert fx.absf is fx.math.absf


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_static_is_device(name: str, chip: str) -> None:
    """Scalars and vectors, in every format that the function has, against the fold."""
    row = FUNCTIONS[name]
    for kind, cls in CLASSES.items():
        if not row.kind_within(kind):
            continue
        x = numbers(kind)
        inputs = [np.roll(x, 5 * n) for n in range(min(row.operands, 2))]
        if row.operands > 2:  # few, since each is a kernel
            inputs.append(np.resize(np.array([1.5, -0.0, math.inf]).astype(x.dtype), len(x)))
        folded = np.array([call(name)(*(cls(float(v)) for v in column)).value for column in zip(*inputs, strict=True)])
        wanted = folded.astype(np.uint8 if row.truth else x.dtype)
        with flylab.use(chip):
            assert same(device(call(name), inputs, wanted.dtype, cls), wanted), kind


def device(function: Callable[..., Any], inputs: list[Any], out: Any, cls: Any) -> Any:
    """A function of one to three arrays, alone and in vectors of 2, which must agree; its results."""
    third = [float(v) for v in inputs[2]] if len(inputs) > 2 else []
    if not third:
        alone = on_device(function, *inputs, out=out)
        pairs = on_device(lambda *x: in_pair(function, x, cls), *inputs, out=out)
        assert same(alone, pairs)
        return alone
    # on_device has two arrays: each third operand is a kernel.
    found = []
    for text, value in {str(v): v for v in third}.items():  # -0.0 is 0.0, and NaN not itself
        rows = [i for i, v in enumerate(third) if str(v) == text]
        results = on_device(lambda x, y, v=value: function(x, y, cls(v)), *(i[rows] for i in inputs[:2]), out=out)
        pairs = on_device(lambda x, y, v=value: in_pair(function, (x, y, cls(v)), cls), *(i[rows] for i in inputs[:2]),
                          out=out)
        assert same(results, pairs)
        found += list(zip(rows, results, strict=True))
    return np.array([v for _, v in sorted(found, key=lambda pair: pair[0])], out)


def in_pair(function: Callable[..., Any], operands: tuple[Any, ...], cls: Any) -> Any:
    """The function of vectors of 2 whose second element is the operand."""
    return function(*(fx.Vector.from_elements([1.0, x], cls) for x in operands))[1]


FINITE_32 = st.floats(width=32)


@settings(max_examples=60)
@given(st.lists(FINITE_32, min_size=8, max_size=8), st.sampled_from(sorted(FUNCTIONS)))
def test_static_is_device_for_any_number(values: list[float], name: str) -> None:
    if FUNCTIONS[name].operands == 3:
        name = "powf"
    x = np.array(values, np.float32)
    inputs = [x, x[::-1].copy()][: FUNCTIONS[name].operands]
    folded = [call(name)(*map(fx.Float32, map(float, column))).value for column in zip(*inputs, strict=True)]
    out = np.uint8 if FUNCTIONS[name].truth else np.float32
    assert same(on_device(call(name), *inputs, out=out), np.array(folded).astype(out))


@pytest.mark.parametrize("opt", ["0", "1", "3"])
def test_every_function_compiles_at_every_level(opt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM's code generator ends the process at a function that it lacks."""
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", opt)
    x = np.linspace(0.1, 0.9, 64).astype(np.float32)
    for name, row in FUNCTIONS.items():
        inputs = [x, x[::-1].copy()][: row.operands]
        function = (lambda a, b: fx.math.fma(a, b, a)) if row.operands == 3 else call(name)
        found = on_device(function, *inputs, out=np.uint8 if row.truth else np.float32)
        with np.errstate(all="ignore"):
            arrays = tuple(inputs) if row.operands < 3 else (x, inputs[1], x)
            wanted = (FUNCTIONS["fma"] if row.operands == 3 else row)(Known(), arrays, "f32")
        assert same(found, wanted[0] - wanted[1] if row.results > 1 else wanted[0].astype(found.dtype)), name


@pytest.mark.parametrize("kind, digits, lowest", [("f16", 11, -24), ("f32", 24, -149), ("f64", 53, -1074)])
@settings(max_examples=100)
@given(data=st.data())
def test_known_fma_rounds_once(kind: str, digits: int, lowest: int, data: Any) -> None:
    """The folded fma against rational numbers, rounded by Python's own ties-to-even."""
    width = {"f16": 16, "f32": 32, "f64": 64}[kind]
    number = st.floats(width=width, allow_nan=False, allow_infinity=False)
    a, b, c = (data.draw(number) for _ in range(3))
    if data.draw(st.booleans()):  # near to cancelling, where a product rounded first would show
        with np.errstate(all="ignore"):
            product = float(-NUMPY[kind](a) * NUMPY[kind](b))
        c = product if math.isfinite(product) else c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    found = fx.math.fma(*(CLASSES[kind](v) for v in (a, b, c))).value
    size = abs(exact)
    exponent = max(lowest, (size.numerator.bit_length() - size.denominator.bit_length()) - digits - 1) if size else 0
    while size and round(size / Fraction(2) ** exponent) >= 2**digits:
        exponent += 1
    wanted = round(exact / Fraction(2) ** exponent) * Fraction(2) ** exponent
    if abs(wanted) > Fraction(float(np.finfo(NUMPY[kind]).max)):
        assert found == (math.inf if exact > 0 else -math.inf)
    else:
        assert Fraction(found) == wanted


def test_fma_on_the_device_is_the_folded_one() -> None:
    random = np.random.default_rng(5)
    for kind, dtype in NUMPY.items():
        a, b = (random.normal(size=512).astype(dtype) for _ in range(2))
        with np.errstate(all="ignore"):
            c = (-(a.astype(float) * b.astype(float))).astype(dtype)
        found = on_device(lambda x, y: fx.math.fma(x, y, -(x * y)), a, b, out=dtype)
        folded = [fx.math.fma(*(CLASSES[kind](float(v)) for v in row)).value for row in zip(a, b, c, strict=True)]
        assert same(found, np.array(folded).astype(dtype)), kind


@pytest.mark.parametrize("kind", CLASSES)
def test_rounding_against_numpy(kind: str) -> None:
    dtype = NUMPY[kind]
    halves = np.concatenate([numbers(kind), (np.arange(-21, 22) / 4).astype(dtype)])
    wide = halves.astype(np.float64)
    away = np.copysign(np.floor(np.abs(wide) + 0.5), wide)
    with np.errstate(invalid="ignore"):
        for name, wanted in (("floor", np.floor(wide)), ("ceil", np.ceil(wide)), ("trunc", np.trunc(wide)),
                             ("roundeven", np.rint(wide)), ("round", away)):
            assert same(on_device(getattr(fx.math, name), halves, out=dtype), wanted.astype(dtype)), name


@pytest.mark.parametrize("kind", CLASSES)
def test_kinds_of_numbers_against_numpy(kind: str) -> None:
    dtype = NUMPY[kind]
    info = ml_dtypes.finfo(dtype)
    x = np.concatenate([numbers(kind), np.array([info.smallest_normal, -info.smallest_normal, info.max,
                                                 info.smallest_subnormal], dtype)])
    wide = x.astype(np.float64)
    normal = np.isfinite(wide) & (np.abs(wide) >= float(info.smallest_normal))
    for name, wanted in (("isnan", np.isnan(wide)), ("isinf", np.isinf(wide)), ("isfinite", np.isfinite(wide)),
                         ("isnormal", normal)):
        assert np.array_equal(on_device(call(name), x, out=np.uint8).astype(bool), wanted), name


def test_kinds_of_numbers_hold_under_fast_math() -> None:
    """nnan says what arithmetic may assume; a test for NaN stays one."""
    x = np.array([1.0, np.nan, np.inf], np.float32)
    assert on_device(lambda v: fx.math.isnan(v, fastmath="fast").to(fx.Uint8), x, out=np.uint8).tolist() == [0, 1, 0]


def test_clampf() -> None:
    x = np.array([-5.0, 0.5, 5.0, np.nan, -np.inf, -0.0], np.float32)
    found = on_device(lambda v: fx.math.clampf(v, -1, 2), x, out=np.float32)
    assert same(found, np.array([-1, 0.5, 2, np.nan, -1, -0.0], np.float32))
    assert fx.math.clampf(7.0, 3.0, 2.0).value == 2.0  # the upper bound wins, as numpy's
    assert fx.math.clampf(fx.BFloat16(2.0), lo=0, hi=1).dtype.name == "BFloat16"


INTEGERS = [fx.Int8, fx.Uint8, fx.Int16, fx.Uint16, fx.Int32, fx.Uint32, fx.Int64, fx.Uint64]


@pytest.mark.parametrize("cls", INTEGERS, ids=lambda c: c.__name__)
def test_bits_of_integers(cls: Any) -> None:
    dtype, width = cls.dtype.to_numpy(), cls.dtype.bits
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 2, 40, 96, info.max - 1, info.max // 3], dtype)
    texts = [format(int(v) & (2**width - 1), f"0{width}b") for v in x]
    for name, wanted in (
        ("ctpop", [t.count("1") for t in texts]),
        ("ctlz", [len(t) - len(t.lstrip("0")) for t in texts]),
        ("cttz", [len(t) - len(t.rstrip("0")) for t in texts]),
    ):
        function = getattr(fx.math, name)
        assert on_device(function, x, out=dtype).tolist() == wanted, name
        assert [function(cls(int(v))).value for v in x] == wanted
        assert on_device(lambda v, f=function: f(fx.Vector.filled(2, v, cls))[1], x, out=dtype).tolist() == wanted
    with np.errstate(over="ignore"):
        assert on_device(fx.math.absi, x, out=dtype).tolist() == np.abs(x).tolist()


@pytest.mark.parametrize("cls", [fx.Int8, fx.Int16, fx.Int32, fx.Int64], ids=lambda c: c.__name__)
def test_integer_powers_wrap(cls: Any) -> None:
    dtype, width = cls.dtype.to_numpy(), cls.dtype.bits
    pairs = [(b, e) for b, e in product([0, 1, -1, 2, -2, 3, 7, -11, 100], [0, 1, 2, 3, 5, 8, 31, 63, 100, -1, -2, -3])
             if b or e >= 0]
    wanted = [pow(b, e, 2**width) if e >= 0 else (int(b**e) if abs(b) == 1 else 0) for b, e in pairs]
    wanted = [(v + 2 ** (width - 1)) % 2**width - 2 ** (width - 1) for v in wanted]
    b, e = (np.array(v, dtype) for v in zip(*pairs, strict=True))
    assert on_device(fx.math.ipowi, b, e, out=dtype).tolist() == wanted
    assert [fx.math.ipowi(cls(x), cls(y)).value for x, y in pairs] == wanted
    vectors = on_device(lambda x, y: fx.math.ipowi(fx.Vector.filled(2, x, cls), y)[0], b, e, out=dtype)
    assert vectors.tolist() == wanted
    assert on_device(lambda x: fx.math.ipowi(x, 3), b, out=dtype).tolist() == (b**3).tolist()


def test_unsigned_powers_with_a_known_exponent() -> None:
    x = np.array([0, 3, 65537, 2**32 - 1], np.uint32)
    assert on_device(lambda v: fx.math.ipowi(v, 3), x, out=np.uint32).tolist() == (x**3).tolist()


@pytest.mark.parametrize("kind", FORMATS)
def test_floats_to_integer_powers(kind: str) -> None:
    dtype = FORMATS[kind]
    pairs = list(product([0.0, -0.0, 1.0, -1.0, 1.5, -2.0, 0.1, math.inf, -math.inf, math.nan, 1e-30],
                         [0, 1, -1, 2, 3, -3, 10, 127, -150, 2**31 - 1, -(2**31)]))
    with np.errstate(all="ignore"):
        x, n = np.array([p[0] for p in pairs]).astype(dtype), np.array([p[1] for p in pairs], np.int32)
        wanted = np.power(x.astype(np.float64), n.astype(np.float64)).astype(np.float32).astype(dtype)
    found = on_device(fx.math.fpowi, x, n, out=dtype)
    folded = np.array([fx.math.fpowi(CLASSES[kind](float(a)), int(b)).value for a, b in zip(x, n, strict=True)])
    assert same(found, folded.astype(dtype))
    assert np.allclose(found.astype(float), wanted.astype(float), rtol=2.0**-23, equal_nan=True)
    assert np.array_equal(np.signbit(found.astype(float)), np.signbit(wanted.astype(float))) or np.isnan(wanted).any()


def test_afn_takes_the_short_form() -> None:
    """From a scope and from the call; without it none of the table instructions of the function stands in the code."""
    scope = "with fx.arith.fastmath('afn'):\n    x = fx.math.exp2(A[t])"
    for body in ("x = fx.math.exp2(A[t], fastmath='afn')", scope):
        compiled = compile_body(f"t = fx.thread_idx.x\n{body}\nA[t] = x")
        assert "v_exp_f32" in str(compiled.show("isa"))
        assert "math.exp2" in str(compiled.show("ir")) and "afn" in str(compiled.show("ir"))
    exact = compile_body("t = fx.thread_idx.x\nA[t] = fx.math.exp2(A[t], fastmath='nnan,contract')")
    assert "v_exp_f32" not in str(exact.show("isa"))


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_afn_on_vectors_is_that_on_numbers(chip: str) -> None:
    x = np.linspace(0.1, 2, 64).astype(np.float32)
    for name in (name for name, row in FUNCTIONS.items() if row.native):
        for kind in ("f32", "f16"):
            def short(v: Any, name: str = name) -> Any:
                found = getattr(fx.math, name)(v, fastmath="afn")
                return found[0] if isinstance(found, tuple) else found

            given = x.astype(NUMPY[kind])
            with flylab.use(chip):
                alone = on_device(short, given, out=given.dtype)
                pairs = on_device(lambda v, s=short, k=kind: in_pair(s, (v,), CLASSES[k]), given, out=given.dtype)
            assert same(alone, pairs), (name, kind)


def test_operands_meet_in_one_format() -> None:
    assert fx.math.atan2(fx.Float16(1.0), fx.BFloat16(1.0)).dtype.name == "Float32"
    assert fx.math.copysign(fx.Float16(1.5), -2).value == -1.5
    assert fx.math.powf(2.0, exp=3.0).value == 8.0
    v = on_device(lambda x: fx.math.powf(fx.Vector.filled((2, 1), x, fx.Float32), 2.0)[1], np.ones(4, np.float32) * 3,
                  out=np.float32)
    assert v.tolist() == [9.0] * 4


def test_a_vector_keeps_its_shape() -> None:
    compile_body("v = fx.math.exp(fx.Vector.filled((2, 2), A[0], fx.Float32))\nassert v.shape == (2, 2)\nA[0] = v[0]")


FP8 = fx.Float8E4M3FN(1.5)
REFUSED: list[tuple[Callable[[], Any], type[FlylabError], str, str]] = [
    (lambda: fx.math.exp(fx.Int32(3)), TraceError, "exp of Int32: it takes floats", "x.to(fx.Float32)"),
    (lambda: fx.math.exp(3), TraceError, "exp of Int32: it takes floats", "3.0"),
    (lambda: fx.math.sqrt(fx.Boolean(True)), TraceError, "sqrt of Boolean", "x.to(fx.Float32)"),
    (lambda: fx.math.powf(2.0, fx.Int32(3)), TraceError, "powf of Int32", "x.to(fx.Float32)"),
    (lambda: fx.math.sin("x"), TraceError, "sin of 'x' (a str)", "give an fx number or vector"),
    (lambda: fx.math.tanh(None), TraceError, "tanh of None (a NoneType)", "give an fx number or vector"),
    (lambda: fx.math.exp(FP8), NotSupportedError, "Float8E4M3FN is not part of the hardware", "Float32"),
    (lambda: fx.math.sin(fx.Float64(1.0)), NotSupportedError, "sin of Float64", "x.to(fx.Float32)"),
    (lambda: fx.math.fpowi(fx.Float64(1.0), 2), NotSupportedError, "fpowi of Float64", "x.to(fx.Float32)"),
    (lambda: fx.math.fpowi(1.0, 2.0), TraceError, "exponent of Float32", "powf takes floats"),
    (lambda: fx.math.fpowi(1.0, fx.Uint64(2)), TraceError, "exponent of Uint64", "at most Int64"),
    (lambda: fx.math.ctlz(1.0), TraceError, "ctlz of Float32: it takes integers", "bitcast"),
    (lambda: fx.math.absi(1.0), TraceError, "absi of Float32", "absf takes floats"),
    (lambda: fx.math.absf(fx.Int32(1)), TraceError, "absf of Int32", "x.to(fx.Float32)"),
    (lambda: fx.math.ipowi(2.0, 1), TraceError, "ipowi of Float32", "powf takes floats"),
    (lambda: fx.math.ipowi(0, -1), TraceError, "ipowi(0, -1) divides by zero", "check the base first"),
    (lambda: fx.math.exp(1.0, fastmath="quick"), TraceError, "'quick' is no fast-math flag", "afn"),
    (lambda: fx.math.expp(1.0), TraceError, "fx.math has no name 'expp'", "fx.math.exp"),
]


@pytest.mark.parametrize("refused, error, message, hint", REFUSED, ids=lambda v: v if isinstance(v, str) else "")
def test_refusals(refused: Callable[[], Any], error: type[FlylabError], message: str, hint: str) -> None:
    with pytest.raises(error) as caught:
        refused()
    assert message in str(caught.value) and hint in str(caught.value.hint)


@pytest.mark.parametrize("body, message, hint", [
    ("x = fx.math.exp(t)", "exp of Int32: it takes floats", "x.to(fx.Float32)"),
    ("x = fx.math.ipowi(t.to(fx.Uint32), t.to(fx.Uint32))", "with an exponent of the device", "fx.Int32"),
    ("x = fx.math.fma(fx.Vector.filled(2, 1.0, fx.Float32), fx.Vector.filled(4, 1.0, fx.Float32), 1.0)",
     "fma of vectors of shape (2,) and (4,)", "one shape"),
    ("x = fx.math.erf(A[t].to(fx.Float64))", "erf of Float64", "x.to(fx.Float32)"),
])
def test_refusals_in_a_kernel(body: str, message: str, hint: str) -> None:
    with pytest.raises(FlylabError) as caught:
        compile_body(f"t = fx.thread_idx.x\n{body}")
    assert message in str(caught.value) and hint in str(caught.value.hint) and "line 4" in str(caught.value)


def test_a_launcher_computes_no_functions() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, x: fx.Float32):
            A[0] = x

        @flyc.jit
        def launch(A: fx.Tensor, x: fx.Float32):
            k(A, fx.math.exp(x)).launch(grid=1, block=64)
    """)
    with pytest.raises(CompileError, match="the launcher computes with math.exp") as caught:
        flyc.compile(names["launch"], np.zeros(64, np.float32), 1.0)
    assert "into the kernel" in str(caught.value.hint)
