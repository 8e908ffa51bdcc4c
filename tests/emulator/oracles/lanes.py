"""The values of the operation table as numpy arrays: what `flylab.emulator.handlers.ir.Value` is for compiled handlers.

A row's function runs on these as it is, so a fault of the code generator, of LLVM or of the host's instructions shows
as a difference. Integers are unsigned arrays; a shift, a sign or a rounding is written out here.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from tests.emulator.oracles import exact
from tests.emulator.oracles.exact import FORMATS

DTYPES: dict[str, type] = {
    "i1": np.bool_, "i8": np.uint8, "i16": np.uint16, "i32": np.uint32, "i64": np.uint64,
    "half": np.float16, "float": np.float32, "double": np.float64}
WIDTHS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "float": 32, "double": 64}
FLOATS = ("half", "float", "double")


class Context:
    """What a value's function asks of its builder: the mode bit that makes v_min and v_max quiet a NaN.

    It rounds to nearest even, and nothing saturates.
    """

    saturate, rounding = False, None

    def __init__(self, ieee: bool = True):
        self.ieee = ieee

    def where(self, flag: bool, condition: Lanes) -> Lanes:
        return condition & condition.like(flag)

    def to_nearest(self) -> nullcontext[None]:
        return nullcontext()


class Lanes:
    """An array of values of one IR type, with the operators and methods that the table's functions use."""

    def __init__(self, b: Any, array: np.ndarray, type_: str):
        self.b, self.array, self.type, self.lanes = b, array, type_, array.size

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS

    @property
    def width(self) -> int:
        return WIDTHS[self.type]

    def new(self, array: Any, type_: str | None = None) -> Lanes:
        """An array as a value of this or of another type."""
        name = type_ or self.type
        return Lanes(self.b, np.asarray(array).astype(DTYPES[name], copy=False), name)

    def like(self, other: Any) -> Lanes:
        """`other`, with a Python number made a constant of this type in every lane."""
        if isinstance(other, Lanes):
            return other
        if self.is_float:
            return self.new(np.full(self.lanes, other))
        bits = int(other) & ((1 << self.width) - 1)
        return self.new(np.full(self.lanes, bits, np.uint64))

    def signed(self) -> np.ndarray:
        """The integers with their sign."""
        return self.array.view(f"i{self.array.itemsize}")

    def op(self, function: Callable[[Any, Any], Any], other: Any) -> Lanes:
        with np.errstate(all="ignore"):
            return self.new(function(self.array, self.like(other).array))

    def __add__(self, other: Any) -> Lanes:
        return self.op(np.add, other)

    def __radd__(self, other: Any) -> Lanes:
        return self.like(other) + self

    def __sub__(self, other: Any) -> Lanes:
        return self.op(np.subtract, other)

    def __rsub__(self, other: Any) -> Lanes:
        return self.like(other) - self

    def __mul__(self, other: Any) -> Lanes:
        return self.op(np.multiply, other)

    def __rmul__(self, other: Any) -> Lanes:
        return self.like(other) * self

    def __truediv__(self, other: Any) -> Lanes:
        return self.op(np.divide, other)

    def __rtruediv__(self, other: Any) -> Lanes:
        return self.like(other) / self

    def __and__(self, other: Any) -> Lanes:
        return self.op(np.bitwise_and, other)

    def __or__(self, other: Any) -> Lanes:
        return self.op(np.bitwise_or, other)

    def __xor__(self, other: Any) -> Lanes:
        return self.op(np.bitwise_xor, other)

    def __invert__(self) -> Lanes:
        return self.new(np.invert(self.array))

    def __neg__(self) -> Lanes:
        return self.new(-self.array) if self.is_float else self.like(0) - self

    def divide(self, other: Any) -> Lanes:
        return self.op(np.floor_divide, other)

    def modulo(self, other: Any) -> Lanes:
        return self.op(np.remainder, other)

    def shl(self, n: Any) -> Lanes:
        return self.op(np.left_shift, self.amount(n))

    def shr(self, n: Any) -> Lanes:
        return self.op(np.right_shift, self.amount(n))

    def sar(self, n: Any) -> Lanes:
        amount = self.amount(n).signed()
        return self.new(np.right_shift(self.signed(), amount).view(self.array.dtype))

    def amount(self, n: Any) -> Lanes:
        if isinstance(n, int):
            assert 0 <= n < self.width, "a shift by a constant beyond the width has no value"
            return self.like(n)
        return (n & (self.width - 1)).to(self.type)

    def cmp(self, predicate: str, other: Any) -> Lanes:
        x, y = self, self.like(other)
        assert x.type == y.type, f"{x.type} is compared with {y.type}"
        if not x.is_float:
            sign, name = (predicate[0], predicate[1:]) if predicate not in ("eq", "ne") else ("u", predicate)
            a, b = (x.signed(), y.signed()) if sign == "s" else (x.array, y.array)
            return self.new(_COMPARISONS[name](a, b), "i1")
        unordered = np.isnan(x.array) | np.isnan(y.array)
        if predicate in ("false", "true"):
            return self.new(np.full(self.lanes, predicate == "true"), "i1")
        if predicate in ("uno", "ord"):
            return self.new(unordered if predicate == "uno" else ~unordered, "i1")
        with np.errstate(all="ignore"):
            found = _COMPARISONS[predicate[1:]](x.array, y.array)
        return self.new(found & ~unordered if predicate[0] == "o" else found | unordered, "i1")

    def select(self, yes: Any, no: Any) -> Lanes:
        typed = yes if isinstance(yes, Lanes) else no
        yes, no = typed.like(yes), typed.like(no)
        assert self.type == "i1" and yes.type == no.type, f"{self.type} selects {yes.type} or {no.type}"
        return yes.new(np.where(self.array, yes.array, no.array))

    def to(self, type_: str, signed: bool = False) -> Lanes:
        if type_ == self.type:
            return self
        if self.is_float:
            with np.errstate(all="ignore"):
                return self.new(quieted(self.array).astype(DTYPES[type_]), type_)
        if self.type == "i1":
            return self.new(np.where(self.array, -1 if signed else 1, 0).astype(np.int64).astype(DTYPES[type_]), type_)
        if type_ == "i1":
            return self.new(self.array & 1 != 0, type_)
        return self.new((self.signed() if signed else self.array).astype(DTYPES[type_]), type_)

    def bits(self, type_: str) -> Lanes:
        assert WIDTHS[type_] == self.width
        return Lanes(self.b, self.array.view(DTYPES[type_]), type_)

    def to_float(self, type_: str, signed: bool) -> Lanes:
        return self.new((self.signed() if signed else self.array).astype(DTYPES[type_]), type_)

    def to_int(self, type_: str, signed: bool) -> Lanes:
        numbers = [exact.to_integer(float(x), WIDTHS[type_], signed) & ((1 << WIDTHS[type_]) - 1) for x in self.array]
        return self.new(np.array(numbers, np.uint64), type_)

    def call(self, name: str, *others: Any) -> Lanes:
        """An LLVM intrinsic on this value's type."""
        values = [self.like(x) for x in others]
        with np.errstate(all="ignore"):
            if name == "fma":
                return self.new(_fused(self.array, *(v.array for v in values)))
            if name in _FLOAT_CALLS:
                return self.new(_FLOAT_CALLS[name](self.array, *(v.array for v in values)))
            if name in _SIGNED_CALLS:
                return self.new(_SIGNED_CALLS[name](*(v.signed() for v in (self, *values))).view(self.array.dtype))
            if name in _SATURATING:
                return self.saturating(name, *values)
            if name in _INTEGER_CALLS:
                return self.new(_INTEGER_CALLS[name](self.array, *(v.array for v in values)))
        raise LookupError(f"the numpy executor knows no intrinsic {name}")

    def saturating(self, name: str, other: Lanes) -> Lanes:
        """An addition or subtraction that saturates, in Python's integers."""
        half, whole = 1 << self.width - 1, 1 << self.width
        low, high = (-half, half - 1) if name[0] == "s" else (0, whole - 1)
        pairs = zip(*((v.signed() if name[0] == "s" else v.array).tolist() for v in (self, other)), strict=True)
        totals = [min(max(x + y if name[1:4] == "add" else x - y, low), high) for x, y in pairs]
        return self.new(np.array([total % whole for total in totals], np.uint64))

    def count(self, name: str) -> Lanes:
        texts = [f"{int(x):0{self.width}b}" for x in self.array]
        found = [(text if name == "ctlz" else text[::-1] if name == "cttz" else "").find("1") for text in texts]
        return self.new(np.array([self.width if at < 0 else at for at in found], np.uint64))

    def splat(self, lanes: int) -> Lanes:
        return self

    def any(self) -> Lanes:
        return self.new(np.full(self.lanes, self.array.any()), "i1")


def quieted(x: np.ndarray) -> np.ndarray:
    """Floats with signalling NaNs made quiet, as every conversion does."""
    form = FORMATS["f", 8 * x.itemsize]
    raw = x.view(f"u{x.itemsize}")
    return np.where(np.isnan(x), raw | raw.dtype.type(form.quiet), raw).view(x.dtype)


def _fused(x: np.ndarray, y: np.ndarray, z: np.ndarray) -> np.ndarray:
    """x * y + z rounded once, in rational arithmetic; what is not finite goes by the rules of infinities."""
    form = FORMATS["f", 8 * x.itemsize]
    unsigned = f"u{x.itemsize}"
    raws = zip(*(v.view(unsigned).tolist() for v in (x, y, z)), strict=True)
    return np.array([exact.fused(*raw, form) for raw in raws], unsigned).view(x.dtype)


def _reversed(x: np.ndarray) -> np.ndarray:
    wide = 8 * x.itemsize
    return np.array([int(f"{int(v):0{wide}b}"[::-1], 2) for v in x], x.dtype)


def _funnel(high: np.ndarray, low: np.ndarray, amount: np.ndarray) -> np.ndarray:
    """The upper half of a pair shifted left by an amount modulo the width."""
    wide = 8 * high.itemsize
    pairs = zip(high.tolist(), low.tolist(), (amount % high.dtype.type(wide)).tolist(), strict=True)
    return np.array([((a << wide | b) << n >> wide) % (1 << wide) for a, b, n in pairs], high.dtype)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
_FLOAT_CALLS: dict[str, Callable[..., Any]] = {
    "fabs": np.abs, "sqrt": np.sqrt, "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "roundeven": np.rint,
    "rint": np.rint, "copysign": np.copysign}
_SIGNED_CALLS: dict[str, Callable[..., Any]] = {"smin": np.minimum, "smax": np.maximum, "abs": np.abs}
_INTEGER_CALLS: dict[str, Callable[..., Any]] = {
    "umin": np.minimum, "umax": np.maximum, "fshl": _funnel, "ctpop": np.bitwise_count, "bitreverse": _reversed}
_SATURATING = ("uadd.sat", "sadd.sat", "usub.sat", "ssub.sat")
