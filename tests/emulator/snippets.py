"""Element-wise functions as LLVM IR, each with the types of its arrays: what an author's kernels are made of.

Every function is compiled for a chip and for this machine, and must give the same bits (any NaN for a NaN).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

INTEGERS = {"i8": 1, "i16": 2, "i32": 4, "i64": 8}
FLOATS = {"half": 2, "bfloat": 2, "float": 4, "double": 8}
SHORT = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}
FRACTION = {"half": 10, "bfloat": 7, "float": 23, "double": 52}


@dataclass(frozen=True)
class Snippet:
    """`body` computes %r of type `result` from %x0, %x1 ..., of types `sources`."""

    name: str
    sources: tuple[str, ...]
    result: str
    body: str
    declarations: str = ""


def lanes(type_: str) -> int:
    """Elements of a type: 4 for <4 x float>."""
    found = re.match(r"<(\d+)", type_)
    return int(found[1]) if found else 1


def scalar(type_: str) -> str:
    """The element type: float for <4 x float>."""
    return re.sub(r"<\d+ x |>", "", type_)


def mangled(type_: str) -> str:
    """A type in the name of an intrinsic."""
    count = lanes(type_)
    return (f"v{count}" if count > 1 else "") + SHORT.get(scalar(type_), scalar(type_))


def call(name: str, type_: str, count: int, extra: str = "", label: str = "") -> Snippet:
    """An intrinsic of `count` operands of one type."""
    operands = ", ".join(f"{type_} %x{n}" for n in range(count)) + extra
    types = ", ".join([type_] * count + ["i1"] * bool(extra))
    full = f"llvm.{name}.{mangled(type_)}"
    return Snippet(f"{label or name} {type_}", (type_,) * count, type_, f"  %r = call {type_} @{full}({operands})",
                   f"declare {type_} @{full}({types})")


def binary(operation: str, type_: str) -> Snippet:
    """One instruction of two operands."""
    return Snippet(f"{operation} {type_}", (type_, type_), type_, f"  %r = {operation} {type_} %x0, %x1")


def compare(kind: str, predicate: str, type_: str) -> Snippet:
    """A comparison that selects between two further operands."""
    flags = f"<{lanes(type_)} x i1>" if lanes(type_) > 1 else "i1"
    body = f"  %c = {kind} {predicate} {type_} %x0, %x1\n  %r = select {flags} %c, {type_} %x2, {type_} %x3"
    return Snippet(f"{kind} {predicate} {type_}", (type_,) * 4, type_, body)


def convert(operation: str, source: str, result: str) -> Snippet:
    """A conversion of one type to another."""
    return Snippet(f"{operation} {source} {result}", (source,), result, f"  %r = {operation} {source} %x0 to {result}")


def integer_snippets(type_: str) -> Iterator[Snippet]:
    """Arithmetic, logic, shifts, minima and comparisons of an integer type or vector."""
    for operation in ("add", "sub", "mul", "and", "or", "xor"):
        yield binary(operation, type_)
    last = 8 * INTEGERS[scalar(type_)] - 1
    limit = f"splat ({scalar(type_)} {last})" if lanes(type_) > 1 else str(last)
    for operation in ("shl", "lshr", "ashr"):
        body = f"  %n = and {type_} %x1, {limit}\n  %r = {operation} {type_} %x0, %n"
        yield Snippet(f"{operation} {type_}", (type_, type_), type_, body)
    for name in ("smax", "smin", "umax", "umin", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"):
        yield call(name, type_, 2)
    for predicate in ("eq", "ult", "sge"):
        yield compare("icmp", predicate, type_)


def scalar_integer_snippets(type_: str) -> Iterator[Snippet]:
    """Divisions, bit counts, funnel shifts and conversions of one integer type."""
    guard = (f"  %z = icmp eq {type_} %x1, 0\n  %d = select i1 %z, {type_} 7, {type_} %x1\n"
             f"  %m = icmp eq {type_} %d, -1\n  %e = select i1 %m, {type_} 3, {type_} %d\n")
    for operation in ("sdiv", "udiv", "srem", "urem"):
        yield Snippet(f"{operation} {type_}", (type_, type_), type_, f"{guard}  %r = {operation} {type_} %x0, %e")
    for name in ("ctpop", "bitreverse"):
        yield call(name, type_, 1)
    for name in ("ctlz", "cttz", "abs"):
        yield call(name, type_, 1, ", i1 false")
    for name in ("fshl", "fshr"):
        yield call(name, type_, 3)
    for other, size in INTEGERS.items():
        if size != INTEGERS[type_]:
            for operation in ("trunc",) if size < INTEGERS[type_] else ("sext", "zext"):
                yield convert(operation, type_, other)
    for other in FLOATS:
        for operation in ("sitofp", "uitofp"):
            yield convert(operation, type_, other)
        for sign in "su":
            name = f"llvm.fpto{sign}i.sat.{type_}.{SHORT[other]}"
            yield Snippet(f"fpto{sign}i {other} {type_}", (other,), type_, f"  %r = call {type_} @{name}({other} %x0)",
                          f"declare {type_} @{name}({other})")


def float_snippets(type_: str) -> Iterator[Snippet]:
    """Arithmetic, rounding, extremes and comparisons of a float type or vector."""
    for operation in ("fadd", "fsub", "fmul", "fdiv"):
        yield binary(operation, type_)
    yield Snippet(f"fneg {type_}", (type_,), type_, f"  %r = fneg {type_} %x0")
    for name in ("fabs", "sqrt", "floor", "ceil", "trunc", "roundeven", "rint"):
        yield call(name, type_, 1)
    for name in ("maxnum", "minnum", "copysign", "maximum", "minimum"):
        yield call(name, type_, 2)
    if scalar(type_) != "half":  # LLVM rounds it twice on hosts without half arithmetic: test_numbers has it
        yield call("fma", type_, 3)
    for predicate in ("oeq", "olt", "oge", "une", "uno", "ord", "ugt", "ueq", "one"):
        yield compare("fcmp", predicate, type_)


def scalar_float_snippets(type_: str) -> Iterator[Snippet]:
    """Powers of two, exponents, classes and reciprocals of one float type that has them."""
    short, pair = SHORT[type_], f"{{{type_}, i32}}"
    name = f"llvm.ldexp.{short}.i32"
    yield Snippet(f"ldexp {type_}", (type_, "i32"), type_, f"  %r = call {type_} @{name}({type_} %x0, i32 %x1)",
                  f"declare {type_} @{name}({type_}, i32)")
    for part, result in ((0, type_), (1, "i32")):
        body = f"  %s = call {pair} @llvm.frexp.{short}.i32({type_} %x0)\n  %r = extractvalue {pair} %s, {part}"
        declaration = f"declare {pair} @llvm.frexp.{short}.i32({type_})"
        yield Snippet(f"frexp {part} {type_}", (type_,), result, body, declaration)
    for classes in (0b0100100110, 0b1010010000):
        body = f"  %s = call i1 @llvm.is.fpclass.{short}({type_} %x0, i32 {classes})\n  %r = zext i1 %s to i8"
        declaration = f"declare i1 @llvm.is.fpclass.{short}({type_}, i32)"
        yield Snippet(f"class {classes} {type_}", (type_,), "i8", body, declaration)
    yield Snippet(f"reciprocal {type_}", (type_,), type_, f"  %r = fdiv {type_} 1.0, %x0")


def conversion_snippets() -> Iterator[Snippet]:
    """Between float types, one and four at a time."""
    for a, b in ((a, b) for a in FLOATS for b in FLOATS if a != b and {a, b} != {"half", "bfloat"}):
        if a == "double" and FLOATS[b] == 2:
            continue  # hosts call a library that llvmlite does not have: test_numbers has it
        operation = "fpext" if FLOATS[b] > FLOATS[a] else "fptrunc"
        for x, y in ((a, b), (f"<4 x {a}>", f"<4 x {b}>")):
            yield convert(operation, x, y)


def copy_snippets() -> Iterator[Snippet]:
    """Copies of 8 to 1024 bits."""
    for type_ in ("<3 x i8>", "<8 x half>", "<16 x i8>", "<8 x float>", "<3 x float>", "<32 x float>", "<16 x bfloat>"):
        yield Snippet(f"copy {type_}", (type_,), type_, f"  %r = freeze {type_} %x0")


def all_snippets(vector: int) -> list[Snippet]:
    """Every snippet; vectors of `vector` elements beside the scalars."""
    found: list[Snippet] = []
    for integer in INTEGERS:
        found += [*integer_snippets(integer), *integer_snippets(f"<{vector} x {integer}>"),
                  *scalar_integer_snippets(integer)]
    for name in FLOATS:
        found += [*float_snippets(name), *float_snippets(f"<{vector} x {name}>")]
        if name != "bfloat":
            found += scalar_float_snippets(name)
    return [*found, *conversion_snippets(), *copy_snippets()]


def values(type_: str, count: int, seed: int) -> np.ndarray:
    """`count` elements as unsigned integers: special values, values near 1, and any bits; NaNs are quiet."""
    random = np.random.default_rng(seed)
    if type_ in INTEGERS:
        bits = 8 * INTEGERS[type_]
        top = 1 << bits
        special = [0, 1, 2, 3, 7, 10, top - 1, top - 2, top // 2, top // 2 - 1, 1 << bits // 2, (1 << bits // 2) - 1]
        found = random.integers(0, top - 1, count, dtype=np.uint64, endpoint=True)
        found >>= random.integers(0, bits, count).astype(np.uint64)
        return _mixed(found, special, random, 0.4).astype(f"u{bits // 8}")
    bits, fraction = 8 * FLOATS[type_], FRACTION[type_]
    ones = (1 << (bits - 1 - fraction)) - 1
    one, infinity, sign = (ones >> 1) << fraction, ones << fraction, 1 << (bits - 1)
    special = [0, sign, one, one | sign, infinity, infinity | sign, infinity | 1 << (fraction - 1), 1, 3,
               (1 << fraction) - 1, 1 << fraction, infinity - 1, one + 1, one - 1]
    any_ = random.integers(0, (1 << bits) - 1, count, dtype=np.uint64, endpoint=True)
    exponent = random.integers((ones >> 1) - 12, (ones >> 1) + 12, count, dtype=np.uint64)
    near = (any_ & np.uint64(sign | (1 << fraction) - 1)) | exponent << np.uint64(fraction)
    found = _mixed(np.where(random.random(count) < 0.4, any_, near), special, random, 0.3)
    nan = (found & np.uint64(infinity | (1 << fraction) - 1)) > np.uint64(infinity)
    return np.where(nan, found | np.uint64(1 << (fraction - 1)), found).astype(f"u{bits // 8}")


def _mixed(found: np.ndarray, special: list[int], random: np.random.Generator, share: float) -> np.ndarray:
    return np.where(random.random(found.size) < share, random.choice(np.array(special, np.uint64), found.size), found)


def as_float(bits: np.ndarray, type_: str) -> np.ndarray:
    """The values of float bits, as float64."""
    if type_ == "bfloat":
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(f"f{FLOATS[type_]}").astype(np.float64)
