"""Numbers of a kernel: `fx.Int32`, `fx.Float32` and their kin.

A number whose value is known while tracing is held as a Python number and computed with at once; any other is an SSA
value of the device. Both kinds follow one promotion rule and give the same results.
"""

from __future__ import annotations

from math import gcd
from typing import Any, ClassVar

from flylab.dtypes import BOOL, DTYPES, DType
from flylab.errors import NotKnown, TraceError
from flylab.expr import arithmetic, folding
from flylab.expr.bits import of_bits, to_bits
from flylab.expr.conversion import convert
from flylab.expr.emit import constant, mlir_type, op
from flylab.expr.helpers import instruction, why_pythons
from flylab.expr.location import name_of, warn_deprecated
from flylab.expr.operators import install
from flylab.expr.promotion import integer_range, literal, plain, promote
from flylab.expr.state import Owned
from flylab.shown import a_kind, short

CLASSES: dict[str, type[Numeric]] = {}
"""The class of each number format by its name; filled by `flylab.expr.formats`."""


class Numeric(Owned):
    """A number of one format; the base of all.

    >>> import flylab.expr as fx
    >>> fx.Int8(200), fx.Uint32(2**32 + 5)
    (Int8(-56), Uint32(5))

    `value` is a Python number, another Numeric (converted) or an MLIR value of that type. Raises `TraceError` for
    anything else.
    """

    dtype: ClassVar[DType]
    width: ClassVar[int]
    """Bits of an element in memory."""
    deprecated: ClassVar[bool] = False
    """True for an old name of a format: `numeric_class` gives the format, and warns."""
    __slots__ = ("bounds", "divisor")

    def __init_subclass__(cls) -> None:
        if cls.__name__ in DTYPES:
            cls.dtype = DTYPES[cls.__name__]
            cls.width = cls.dtype.bits
            CLASSES[cls.__name__] = cls

    def __init__(self, value: Any, *, bounds: tuple[int, int] | None = None):
        if not hasattr(self, "dtype"):
            raise TraceError(
                f"{type(self).__name__}({value!r}): fx.{type(self).__name__} is the base of formats, not one itself",
                hint="give a format with a width: fx.Int32, fx.Float32 ...",
            )
        self.bounds = bounds
        """For a runtime integer: the least and greatest value it can have, if known (inclusive)."""
        self.divisor = 1
        """For a runtime integer: what is known to divide it."""
        if isinstance(value, Numeric):
            self._hold(value._converted(self.dtype))
            integers = not (self.is_static or self.dtype.is_float or value.dtype.is_float)
            if integers and _fits(interval(value), self.dtype):
                self.bounds, self.divisor = interval(value), value.divisor
        elif isinstance(plain(value), (bool, int, float)):
            self._hold(folding.normalise(plain(value), self.dtype))
        elif is_mlir_value(value):
            self._hold(_checked(value, self.dtype))
        else:
            raise TraceError(
                f"{type(self).__name__}({value!r}): {type(value).__name__} is not a number",
                hint="give a Python number, an fx number or an MLIR value",
            )

    def _hold(self, value: Any) -> None:
        if isinstance(value, (bool, int, float)):
            self._value, self._region = value, None
        else:
            self._own(value)

    @property
    def is_static(self) -> bool:
        """True where the value is known while tracing."""
        return isinstance(self._value, (bool, int, float))

    def ir_value(self) -> Any:
        """The MLIR value (a constant is made for a static number)."""
        return constant(self.value, self.dtype) if self.is_static else self.value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._value if self.is_static else '?'})"

    def _converted(self, target: DType) -> Any:
        if self.is_static:
            return self.value if target == self.dtype else folding.normalise(self.value, target)
        return convert(self.value, self.dtype, target)

    def with_facts(self, bounds: tuple[int, int], divisor: int) -> Any:
        """The same number, known to lie inside `bounds` (inclusive) and to be a multiple of `divisor`."""
        same = type(self)(self.value, bounds=bounds)
        same.divisor = divisor
        return same

    def to(self, target: type[Numeric]) -> Any:
        """The number in another format: `x.to(fx.BFloat16)`."""
        return numeric_class(target)(self)

    def bitcast(self, target: type[Numeric]) -> Any:
        """The same bits read as another format of the same width. Raises `TraceError` where the widths differ."""
        cls = numeric_class(target)
        if cls.dtype.bits != self.dtype.bits:
            raise TraceError(
                f"bitcast of {name_of(self, 'a number')}, {self.dtype} of {self.dtype.bits} bits, "
                f"to {cls.dtype} of {cls.dtype.bits} bits",
                hint="the widths must agree; .to(...) converts the value",
            )
        if self.is_static:
            bits, made = to_bits(self.value, self.dtype), cls(0)
            made._hold(bool(bits) if cls.dtype.kind == BOOL else of_bits(bits, cls.dtype))
            return made
        if self.dtype.mlir == cls.dtype.mlir:
            return cls(self.value)
        return cls(op("arith.bitcast", [self.value], mlir_type(cls.dtype)))

    # Python asks for a number now: possible for a static one only.
    def _known(self, use: str, hint: str) -> Any:
        if self.is_static:
            return self.value
        why, hint = why_pythons() or ("", hint)
        raise NotKnown(
            f"{name_of(self, 'this ' + str(self.dtype))} is only known on the device, and Python needs it now ({use})"
            + (why and f": {why}"),
            hint=hint,
        )

    def __index__(self) -> int:
        if self.dtype.is_float:
            raise TraceError(f"a {self.dtype} as an index, a range bound or a size", hint="convert it: fx.Int32(x)")
        hint = "make it an fx.Constexpr parameter, or loop over fx.range_constexpr(n), whose numbers Python knows"
        if instruction() == "BINARY_SUBSCR":
            hint += "; a tensor, or v[i] of a vector, takes it as it is"
        return int(self._known("as an index, a range bound or a size", hint))

    def __int__(self) -> int:
        return int(self._known("int(...)", "fx.Int32(x) converts it on the device"))

    def __float__(self) -> float:
        return float(self._known(
            "float(...)", "fx.Float32(x) converts it on the device, and fx.math has the functions of Python's math"))

    def __bool__(self) -> bool:
        hint = "choose with cond.select(a, b), fx.max or fx.min; or compare fx.Constexpr values"
        if instruction() == "CONTAINS_OP":
            return bool(self._known("in a test with `in`", "compare with each: (x == 1) | (x == 2)"))
        return bool(self._known("as a condition", hint if self.dtype.kind == BOOL else "compare it: x != 0; " + hint))

    def __hash__(self) -> int:
        hint = "make it an fx.Constexpr parameter, or choose with cond.select(a, b)"
        return hash(self._known("as an item of a set, or a key of a dict", hint))

    def __format__(self, spec: str) -> str:
        hint = 'fx.printf("{:>8}", x) prints it, or make it an fx.Constexpr parameter'
        return format(self._known("in a format string", hint), spec) if spec else str(self)

    def __abs__(self) -> Any:
        arithmetic.require_arithmetic(self.dtype)
        if self.is_static:
            return type(self)(abs(self.value))
        return type(self)(arithmetic.absolute(self.value, self.dtype))

    def __neg__(self) -> Any:
        arithmetic.require_arithmetic(self.dtype)
        if self.dtype.kind == BOOL:
            return binary("-", 0, self)
        return type(self)(-self.value if self.is_static else arithmetic.negate(self.value, self.dtype))

    def __pos__(self) -> Any:
        return self

    def __invert__(self) -> Any:
        if self.dtype.is_float:
            raise arithmetic.refuse("~", self.dtype)
        return binary("^", self, type(self)(True if self.dtype.kind == BOOL else -1))

    def select(self, if_true: Any, if_false: Any) -> Any:
        """`if_true` where this Boolean holds, else `if_false`; both are brought to one format."""
        from flylab.expr.select import select

        return select(self, if_true, if_false)


class Integer(Numeric):
    """Base of the integer formats."""

    __slots__ = ()


class Float(Numeric):
    """Base of the float formats."""

    __slots__ = ()


def is_mlir_value(value: Any) -> bool:
    """True for a value of MLIR's Python bindings (which this does not import)."""
    return type(value).__module__.startswith("mlir.") and hasattr(value, "owner")


def __getattr__(name: str) -> Any:
    """The formats too, which are in a file of their own: `from flylab.expr.numeric import Int32`."""
    from flylab.expr import formats

    if isinstance(found := getattr(formats, name, None), type) and issubclass(found, Numeric):
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _checked(value: Any, dtype: DType) -> Any:
    found = str(value.type)
    if found == dtype.mlir:
        return value
    if found == "index" and not dtype.is_float:
        return op("arith.index_cast" if dtype.signed else "arith.index_castui", [value], mlir_type(dtype))
    raise TraceError(
        f"{dtype}(...) of an MLIR value of type {found}",
        hint=f"a {dtype} holds {dtype.mlir}; bitcast or convert it first",
    )


def _fits(bounds: tuple[int, int], dtype: DType) -> bool:
    if dtype.kind == BOOL:
        return False
    low, high = integer_range(dtype)
    return low <= bounds[0] and bounds[1] <= high


def numeric_class(kind: Any) -> type[Numeric]:
    """The class of a number format, from the class itself or its name. Raises `TraceError` for anything else."""
    if isinstance(kind, type) and issubclass(kind, Numeric) and hasattr(kind, "dtype"):
        if not kind.deprecated:
            return kind
        warn_deprecated(f"fx.{kind.__name__} is deprecated: write fx.{kind.dtype}")
        return CLASSES[kind.dtype.name]
    if isinstance(kind, DType):
        return CLASSES[kind.name]
    if type(kind).__module__.startswith("mlir.") and hasattr(kind, "typeid"):
        return class_of_mlir(str(kind))
    # numpy's, torch's and Python's own have a name that one of the language's has too.
    name = str(getattr(kind, "name", None) or getattr(kind, "__name__", kind)).removeprefix("torch.")
    name = {"bool": "boolean", "int": "int32", "float": "float32"}.get(name, name).rstrip("_")
    found = [each for each in CLASSES if each.lower() == name.replace("_", "").lower()]
    hint = f"use fx.{found[0]}" if found else "use fx.Float32, fx.Int32, fx.BFloat16 ..."
    raise TraceError(f"{short(kind)} is not a number format", hint=hint)


def class_of_mlir(text: str) -> type[Numeric]:
    """The class of an MLIR type of numbers: MLIR's integers have no sign and are read as signed, `index` as Int64."""
    for cls in CLASSES.values():
        if cls.dtype.mlir == text:
            return cls
    if text == "index":
        return CLASSES["Int64"]
    raise TraceError(f"MLIR's {text} is not a number format", hint="give a number of a type like f32, i32 or index")


def as_numeric(value: Any, beside: DType | None = None) -> Numeric:
    """A Python number as a Numeric, in the format it takes beside an operand of format `beside`."""
    if isinstance(value, Numeric):
        return value
    if is_mlir_value(value):
        return class_of_mlir(str(value.type))(value)
    value = plain(value)
    if not isinstance(value, (bool, int, float)):
        raise TraceError(f"{value!r} ({a_kind(value)}) is not a number", hint="give an fx number or Python's")
    default = DTYPES["Float32" if isinstance(value, float) else "Boolean" if isinstance(value, bool) else "Int32"]
    return CLASSES[literal(value, beside or default).name](value)


def unify(a: Any, b: Any) -> tuple[Numeric, Numeric, DType]:
    """Two operands in their common format."""
    left = as_numeric(a, b.dtype if isinstance(b, Numeric) else None)
    right = as_numeric(b, left.dtype)
    common = promote(left.dtype, right.dtype)
    cls = CLASSES[common.name]
    return (left if left.dtype == common else cls(left)), (right if right.dtype == common else cls(right)), common


def binary(symbol: str, a: Any, b: Any) -> Numeric:
    """`a symbol b` of two numbers (at least one a Numeric), in their common format."""
    x, y, dtype = unify(a, b)
    if dtype.kind == BOOL and symbol not in "&|^":
        dtype = DTYPES["Int32"]
        x, y = CLASSES["Int32"](x), CLASSES["Int32"](y)
    if symbol == "/" and not dtype.is_float:
        raise arithmetic.refuse("/", dtype)
    if dtype.is_float and not arithmetic.BINARY[symbol].float:
        raise arithmetic.refuse(symbol, dtype, mixed(symbol, a, b))
    arithmetic.require_arithmetic(dtype)
    cls = CLASSES[dtype.name]
    if y.is_static:
        folding.check_right(symbol, y.value, dtype)
    if x.is_static and y.is_static:
        return cls(folding.binary(symbol, x.value, y.value, dtype))
    bounds = None if dtype.is_float or dtype.kind == BOOL else result_bounds(symbol, x, y, dtype)
    non_negative = symbol in ("//", "%") and all(lower_bound(v) >= 0 for v in (x, y))
    rule = DTYPES["Uint" + dtype.name.removeprefix("Int")] if non_negative and dtype.signed else dtype
    right = None if dtype.is_float else interval(y)
    result = cls(arithmetic.binary(symbol, x.ir_value(), y.ir_value(), rule, right=right), bounds=bounds)
    if not dtype.is_float:
        # What wraps keeps the powers of 2 that divide it.
        found = result_divisor(symbol, divisor_of(x), divisor_of(y), y)
        result.divisor = found if bounds else gcd(found, 1 << dtype.bits)
    return result


def mixed(symbol: str, a: Any, b: Any) -> str:
    """The formats of two numbers or vectors for an error, where one is an integer; else nothing."""
    kinds = [(x if hasattr(x, "dtype") else as_numeric(x)).dtype for x in (a, b)]
    left, right = (getattr(kind, "dtype", kind) for kind in kinds)  # a vector's is the class of its elements
    return f"{left} {symbol} {right}: " if left.is_float != right.is_float else ""


def compare(symbol: str, a: Any, b: Any) -> Numeric:
    """The comparison of two numbers as a Boolean."""
    x, y, dtype = unify(a, b)
    arithmetic.require_arithmetic(dtype)
    cls = CLASSES["Boolean"]
    if x.is_static and y.is_static:
        return cls(arithmetic.COMPARE_FOLD[symbol](x.value, y.value))
    return cls(arithmetic.compare(symbol, x.ir_value(), y.ir_value(), dtype))


def interval(x: Numeric) -> tuple[int, int]:
    """The least and greatest value that an integer can have."""
    if x.is_static:
        return int(x.value), int(x.value)
    return x.bounds or integer_range(x.dtype)


def divisor_of(x: Numeric) -> int:
    """What is known to divide an integer; of 0, the greatest power of 2 of its width."""
    return (abs(int(x.value)) or 1 << x.dtype.bits) if x.is_static else x.divisor


def result_divisor(symbol: str, a: int, b: int, right: Numeric) -> int:
    """What divides the result of an operator, from what divides its operands.

    A shift by a known count multiplies, a known mask clears low bits, a known divisor may leave a multiple.
    """
    if symbol in ("+", "-", "%", "min", "max", "|", "^"):
        return gcd(a, b) if symbol not in "|^" else gcd(a, b, 1 << 64)
    if symbol == "*":
        return a * b
    if right.is_static and symbol == "<<" and 0 <= right.value < right.dtype.bits:
        return a << int(right.value)
    if symbol == "&":
        return max(gcd(a, 1 << 64), gcd(b, 1 << 64))
    if right.is_static and symbol == "//" and right.value > 0 and a % right.value == 0:
        return a // int(right.value)
    return 1


def lower_bound(x: Numeric) -> int:
    """The least value that an integer can have."""
    return interval(x)[0]


def result_bounds(symbol: str, x: Numeric, y: Numeric, dtype: DType) -> tuple[int, int] | None:
    """The interval of a result, where it can be told and cannot wrap; else None."""
    (a, b), (c, d) = interval(x), interval(y)
    if symbol == "+":
        found = (a + c, b + d)
    elif symbol == "-":
        found = (a - d, b - c)
    elif symbol == "*":
        corners = [p * q for p in (a, b) for q in (c, d)]
        found = (min(corners), max(corners))
    elif symbol == "//" and c > 0:
        found = (min(a // c, a // d), max(b // c, b // d))
    elif symbol == "%" and c > 0:
        found = (0, min(b, d - 1) if a >= 0 else d - 1)
    elif symbol == "&" and max(a, c) >= 0:
        found = (0, min(high for low, high in ((a, b), (c, d)) if low >= 0))
    elif symbol == ">>" and c >= 0:
        found = (min(a >> c, a >> d), max(b >> c, b >> d))
    elif symbol == "<<" and c >= 0 and d < dtype.bits:
        corners = [p << q for p in (a, b) for q in (c, d)]
        found = (min(corners), max(corners))
    elif symbol in ("min", "max"):
        choose = min if symbol == "min" else max
        found = (choose(a, c), choose(b, d))
    else:
        return None
    return found if _fits(found, dtype) else None


install(Numeric, (Numeric, bool, int, float), binary, compare)
