"""Operands and functions of Python's that the language does not take, at their line with a way out; and `x ** n`."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
import flylab.expr as fx
from flylab.errors import FlylabError, TraceError
from tests.samples import kernel_of, on_device

torch = pytest.importorskip("torch")

# Two lines of a kernel before each; then the expression, words of the message, words of the hint.
GIVEN = "t, x = fx.thread_idx.x, A[0]\nv, xs = fx.Vector.filled(4, t, fx.Int32), [1, 2, 3]\n"
NOT_OURS = "no number and no vector"
REFUSED: dict[str, tuple[str, str]] = {
    "t * xs": ("Int32(?) has no '*' with 'xs', a list", "fx.Vector.from_elements([x, y], fx.Float32)"),
    "xs * t": ("Int32(?) has no '*' with 'xs', a list", "Vector.from_elements"),
    "v == xs": ("Vector(Int32 x 4) has no '==' with 'xs', a list", "Vector.from_elements"),
    "t + None": ("Int32(?) has no '+' with a value, a NoneType: " + NOT_OURS, "give a number or a vector"),
    "t < None": ("has no '<' with a value, a NoneType", "give a number or a vector"),
    "t - 'a'": ("has no '-' with a value, a str", "give a number"),
    "t + 1j": ("has no '+' with a value, a complex", "float(x)"),
    "t == 1j": ("has no '==' with a value, a complex", "float(x)"),
    "decimal * x": ("Float32(?) has no '*' with 'decimal', a Decimal", "float(x)"),
    "x / fraction": ("has no '/' with 'fraction', a Fraction", "float(x)"),
    "x ** [1]": ("has no '**' with a value, a list", "Vector.from_elements"),
    "t * array": ("has no '*' with 'array', an ndarray", "pass it to the launch"),
    "array * v": ("Vector(Int32 x 4) has no '*' with 'array', an ndarray", "pass it to the launch"),
    "t == array": ("has no '==' with 'array', an ndarray", "Vector.from_elements"),
    "t + tensor": ("has no '+' with 'tensor', a Tensor", "pass it to the launch"),
    "tensor - v": ("has no '-' with 'tensor', a Tensor", "pass it to the launch"),
    "t + object()": ("has no '+' with a value, an object", "give a number"),
    "t @ t": ("Int32(?) has no operator '@'", "(a * b).reduce(fx.ReductionOp.ADD)"),
    "v @ v": ("Vector(Int32 x 4) has no operator '@'", "reduce"),
    "x // 2": ("Float32 has no operator '//'", "fx.math.floor(x / y)"),
    "x % 2": ("Float32 has no operator '%'", "x - y * fx.math.floor(x / y)"),
    "divmod(x, 2)": ("Float32 has no operator '//'", "fx.math.floor"),
    "t << 2.0": ("Int32 << Float32: Float32 has no operator '<<'", "convert the float to an integer"),
    "2.5 & v": ("Float32 & Int32: Float32 has no operator '&'", "convert the float to an integer"),
    "x & x": ("Float32 has no operator '&'", "x.bitcast(fx.Uint32)"),
    "t + 2**100": (f"{2**100} beside a Int32", "convert one of them: .to(fx.Int128) of the number"),
    "t + 2**200": (f"{2**200} beside a Int32", "convert it: fx.Float32(...) of the literal"),
    "round(x)": ("Python's round() of 'x', which only the device knows", "fx.math.roundeven(x) is a float"),
    "round(x, 2)": ("Python's round() of 'x'", "fx.math.roundeven(x)"),
    "math.floor(x)": ("Python's floor() of 'x'", "fx.math.floor(x) is a float"),
    "math.ceil(v.to(fx.Float32))": ("Python's ceil() of Vector(Float32 x 4)", "fx.math.ceil(x)"),
    "max(t, 5)": ("Python's max() asks for the value of numbers", "fx.max(a, b, ...)"),
    "min([x, 0.5], key=lambda n: -n)": ("Python's min() asks for the value of numbers", "fx.min(a, b, ...)"),
    "max(v, v)": ("Python's max() asks for the value of numbers", "v.reduce(fx.ReductionOp.MAX)"),
    "any([t < 1, t > 3])": ("Python's any() asks", "a | b | c"),
    "all(n < t for n in xs)": ("Python's all() asks", "a & b & c"),
    "sorted([t, x])": ("Python's sorted() asks", "fx.min(a, b), fx.max(a, b)"),
    "max(xs, key=lambda n: int(t))": ("'t' is only known on the device, and Python needs it now (int", "Int32(x)"),
    "t in (1, 2)": ("only known on the device, and Python needs it now (in a test with `in`)", "(x == 1) | (x == 2)"),
    "t in xs": ("(in a test with `in`)", "(x == 1) | (x == 2)"),
    "int(x)": ("'x' is only known on the device", "fx.Int32(x) converts it"),
    "float(t)": ("'t' is only known on the device", "fx.Float32(x) converts it"),
    "math.sqrt(x)": ("'x' is only known on the device", "fx.math has the functions of Python's math"),
    "bool(t)": ("'t' is only known on the device", "compare it: x != 0"),
    "int(v)": ("Python's int() of 'v', which has 4 elements", "v.to(fx.Int32) converts all of them"),
    "float(v)": ("Python's float() of 'v', which has 4 elements", "fx.Float32(v[i]) one"),
    "xs[t]": ("'t' is only known on the device", "fx.range_constexpr(n), whose numbers Python knows; a tensor"),
    "[0] * v": ("has no '*' with a value, a list", "Vector.from_elements"),
    "(lambda a, b: a)(*[i for i, j in [fx.thread_idx]])": ("fx.thread_idx has 3 elements, and 2", "a name for"),
    "fx.Vector.filled(2, t)": ("Vector.filled(n, x) has no number format", "fx.Vector.filled(n, x, fx.Float32)"),
    "fx.Vector.from_elements(xs)": ("Vector.from_elements([x, y]) has no number format", "[x, y], fx.Float32)"),
    "fx.Vector.filled(1025, 0, fx.Int8)": ("has registers for 1024 at most", "tiles"),
    "fx.Vector.filled(2, 1, np.float32)": ("is not a number format", "use fx.Float32"),
    "t.to(torch.bfloat16)": ("torch.bfloat16 is not a number format", "use fx.BFloat16"),
    "t.to(np.dtype('uint8'))": ("dtype('uint8') is not a number format", "use fx.Uint8"),
    "t.to(bool)": ("<class 'bool'> is not a number format", "use fx.Boolean"),
    "t.to(str)": ("<class 'str'> is not a number format", "use fx.Float32, fx.Int32"),
}  # fmt: skip
NAMES = {
    "np": np, "torch": torch, "math": math, "decimal": Decimal("1.5"), "fraction": Fraction(1, 2),
    "array": np.arange(4), "tensor": torch.arange(4),
}  # fmt: skip


@pytest.mark.parametrize("expression", REFUSED)
def test_refused_with_a_way_out(expression: str) -> None:
    message, hint = REFUSED[expression]
    names = kernel_of(GIVEN + f"y = {expression}")
    names.update(NAMES)
    with pytest.raises(TraceError) as caught:
        names["launch"](np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 5, str(caught.value)
    assert message in caught.value.message and hint in (caught.value.hint or ""), str(caught.value)


def test_what_python_means_stays() -> None:
    """A number is not equal to a text or a list; a known one repeats a list; another class answers for itself."""

    class Answers:
        def __radd__(self, other: Any) -> str:
            return "answered"

        def __gt__(self, other: Any) -> str:
            return "answered too"

    number = fx.Int32(2)
    assert (number == "a", number != None, number == [2], number in ("a", 2)) == (False, True, False, True)  # noqa: E711
    assert [0] * number == [0, 0] and number * "ab" == "abab"
    assert number + Answers() == "answered" and (number < Answers()) == "answered too"
    assert divmod(number, 2) == (1, 0) and round(fx.Float32(2.5)) == 2 and math.floor(fx.Float32(-1.5)) == -2
    assert pow(number, 5, 7).value == 4 and max(number, 3) == 3 and sorted([fx.Int32(3), number])[0] is number


@pytest.mark.parametrize("value, expected", [
    (torch.tensor(3), 3), (torch.tensor(2.5, dtype=torch.bfloat16), 2.5), (torch.tensor(True), 1), (np.array(3), 3),
    (torch.nn.Parameter(torch.tensor(1.5)), 1.5),
])  # fmt: skip
def test_a_tensor_of_one_number_is_that_number(value: Any, expected: float) -> None:
    assert (fx.Float32(value).value, (fx.Float32(1.0) + value).value) == (expected, expected + 1)
    names = kernel_of("A[0] = A[0] + value\nA[1] = value * A[1]\nA[2] = fx.max(A[2], value)\nA[3] = value")
    names["value"] = value
    a = np.full(64, 2.0, np.float32)
    names["launch"](a)
    assert a[:4].tolist() == [2 + expected, 2 * expected, max(2.0, expected), expected]


def test_a_tensor_without_a_number_is_refused() -> None:
    for value in (torch.tensor(1j), torch.empty((), device="meta")):
        with pytest.raises(FlylabError, match="a Tensor"):
            fx.Float32(1.0) + value


def test_divmod_and_round_of_integers_of_the_device() -> None:
    a = np.array([7, -7, 0, 2**31 - 1, -(2**31)] * 13, np.int32)
    b = np.array([3, 3, 5, -7, 2, 9, 1] * 9 + [4, -4], np.int32)
    quotient, rest = np.divmod(a, b)
    assert np.array_equal(on_device(lambda x, y: divmod(x, y)[0], a, b, out=np.int32), quotient)
    assert np.array_equal(on_device(lambda x, y: divmod(x, y)[1], a, b, out=np.int32), rest)
    assert np.array_equal(on_device(lambda x: divmod(100, x)[1] + round(x) * 0, b, out=np.int32), 100 % b)


@pytest.mark.parametrize("cls", [fx.Int8, fx.Uint8, fx.Int32, fx.Uint64], ids=lambda c: c.__name__)
def test_known_powers_of_integers_wrap(cls: Any) -> None:
    dtype = cls.dtype.to_numpy()
    a = np.array([0, 1, 2, 3, 7, 100, 127], dtype)
    for n in (0, 1, 2, 3, 5, 8, 31):
        exact = np.array([int(x) ** n % 2**cls.dtype.bits for x in a], np.uint64).astype(dtype)
        assert np.array_equal(on_device(lambda x, n=n: x**n, a, out=dtype), exact), n
        assert [(cls(int(x)) ** n).value for x in a] == exact.tolist()


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_powers_of_the_device_agree_with_known_ones(chip: str) -> None:
    """And with Python's: exactly for integers and small exponents, closely for the functions."""
    with flylab.use(chip):
        x = np.array([-3, -1, 0, 1, 2, 5, 9], np.int32)
        n = np.array([3, 4, 0, 7, 30, 2, 5], np.int32)
        exact = [int(a) ** int(b) for a, b in zip(x, n, strict=True)]
        assert on_device(operator.pow, x, n, out=np.int32).tolist() == exact
        assert on_device(lambda e: 2**e, n, out=np.int32).tolist() == [2 ** int(e) for e in n]
        for dtype, cls in ((np.float32, fx.Float32), (np.float16, fx.Float16), (ml_dtypes.bfloat16, fx.BFloat16)):
            f = np.array([0.5, -1.5, 0.0, -0.0, np.inf, np.nan, 3.0], dtype)
            rules: list[Callable[[Any], Any]] = [
                lambda y: y**0, lambda y: y**2, lambda y: y**3, lambda y: y**7, lambda y: y**-2, lambda y: y**1.5,
                lambda y: 2.0**y, lambda y: y**y,
            ]  # fmt: skip
            for i, rule in enumerate(rules):
                got = on_device(rule, f, out=dtype)
                known = np.array([rule(cls(float(y))).value for y in f], dtype)
                assert np.array_equal(got, known, equal_nan=True), (cls, i)
                with np.errstate(all="ignore"):
                    near = rule(f.astype(np.float64))
                assert np.allclose(got.astype(float), near, rtol=2**-7, equal_nan=True), (cls, i)
            assert np.array_equal(on_device(lambda y: y**3, f, out=dtype), f * f * f, equal_nan=True)


def test_powers_of_vectors() -> None:
    launch = kernel_of("""
        t = fx.thread_idx.x
        v = fx.Vector.from_elements([t, t + 1], fx.Int32)
        B[t] = (v**2 + 2**(v % 4) + v**(v % 3))[1] + (v**0)[0]
        A[t] = (v.to(fx.Float32) ** 2 + v ** 0.5 + v.to(fx.Float32) ** -1)[1]
    """, "A: fx.Tensor, B: fx.Tensor")["launch"]
    a, b = np.zeros(64, np.float32), np.zeros(64, np.int32)
    launch(a, b)
    x = np.arange(1, 65)
    assert np.array_equal(b, x**2 + 2 ** (x % 4) + x ** (x % 3) + 1)
    assert np.allclose(a, x**2 + x**0.5 + 1 / x, rtol=1e-6)


@pytest.mark.parametrize("call, message, hint", [
    (lambda: fx.max([fx.Int32(1), 5]), "max of [Int32(1), 5] (a list): no number and no vector", "fx.max(*xs)"),
    (lambda: fx.min(fx.Int32(1), (2, 3)), "min of (2, 3) (a tuple)", "fx.min(*xs)"),
    (lambda: fx.maxnumf("a", 1.0), "maxnum of 'a' (a str)", "give numbers or vectors"),
    (lambda: fx.math.sqrt(4), "sqrt of Int32: it takes floats", "4.0"),
    (lambda: fx.math.fma(fx.Int32(2), 3, 4), "fma of Int32: it takes floats", "fx.Float32(x)"),
    (lambda: fx.math.exp(), "exp: missing a required argument: 'x'", "call it as fx.math.exp(x)"),
    (lambda: fx.math.fma(1.0, 2.0), "fma: missing a required argument: 'c'", "fx.math.fma(a, b, c)"),
    (lambda: fx.math.exp(1.0, base=2), "exp: got an unexpected keyword argument 'base'", "fx.math.exp(x)"),
])  # fmt: skip
def test_functions_name_what_they_do_not_take(call: Callable[[], Any], message: str, hint: str) -> None:
    with pytest.raises(TraceError) as caught:
        call()
    assert message in caught.value.message and hint in (caught.value.hint or "")
