"""Vectors on the software device give what numpy gives, element by element and bit by bit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flylab.expr as fx
from flylab.errors import TraceError
from flylab.expr.promotion import promote
from tests.expr.vectors import CHIPS, FLOATS, INTEGERS, bits, quietly, rows_on_device, sample
from tests.samples import compile_body

named = pytest.mark.parametrize
by_name = {"ids": lambda c: c.__name__}

INTEGER_RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "&": (operator.and_, operator.and_),
    "|": (operator.or_, operator.or_),
    "^": (operator.xor, operator.xor),
    "max": (fx.max, np.maximum),
    "min": (fx.min, np.minimum),
    "scalar": (lambda a, b: a * 3 - b, lambda a, b: a * a.dtype.type(3) - b),
    "~": (lambda a, b: ~a ^ b, lambda a, b: ~a ^ b),
    "-x": (lambda a, b: -a + (+b), lambda a, b: -a + b),
    "abs": (lambda a, b: abs(a) + b, lambda a, b: abs(a) + b),
    "select": (lambda a, b: (a < b).select(a, b + 1), lambda a, b: np.where(a < b, a, b + a.dtype.type(1))),
}
FLOAT_RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "+": (operator.add, operator.add),
    "-": (operator.sub, operator.sub),
    "*": (operator.mul, operator.mul),
    "max": (fx.max, np.maximum),
    "min": (fx.min, np.minimum),
    "maxnumf": (fx.maxnumf, np.fmax),
    "minnumf": (fx.minnumf, np.fmin),
    "abs": (lambda a, b: abs(a) - abs(-b), lambda a, b: abs(a) - abs(b)),
    "select": (lambda a, b: (a >= b).select(b, a), lambda a, b: np.where(a >= b, b, a)),
}


@named("chip", CHIPS)
@named("cls", [*INTEGERS, *FLOATS], **by_name)
def test_every_operator_of_every_format(cls: Any, chip: str) -> None:
    """L18, vector and vector, vector and literal: all operators of a format in one kernel, three lengths."""
    rules = FLOAT_RULES if cls.dtype.is_float else INTEGER_RULES
    for lanes in (1, 3, 4):
        a, b = sample(cls, (64, lanes), lanes), sample(cls, (64, lanes), lanes + 100)
        got = rows_on_device(
            lambda x, y: [mine(x, y) for mine, _ in rules.values()],
            a, b, out=a.dtype, columns=lanes * len(rules), chip=chip,
        )  # fmt: skip
        for i, (name, (_, theirs)) in enumerate(rules.items()):
            expected = np.asarray(quietly(theirs, a, b)).astype(a.dtype)
            zeros_may_differ = name in ("max", "min", "maxnumf", "minnumf")  # numpy does not order -0.0 and 0.0
            mine = got[:, i * lanes : (i + 1) * lanes]
            if zeros_may_differ:
                mine, expected = mine + mine.dtype.type(0), expected + expected.dtype.type(0)
            assert np.array_equal(bits(mine), bits(expected)), (cls, name, lanes)


@named("cls", [*INTEGERS, *FLOATS], **by_name)
def test_a_vector_with_a_number_of_the_device(cls: Any) -> None:
    """L18, scalar and vector on either side, and comparisons of both."""
    a, x = sample(cls, (64, 4), 5), sample(cls, (64,), 6)
    column = x[:, None]

    def mine(v: Any, y: Any) -> list[Any]:
        compared = [(v < y), (v == y), (y >= v), ~(v != y), (v < y) | (v == y), (v < y) & (v > y)]
        assert all(c.dtype is fx.Boolean and (v + y).dtype is v.dtype for c in compared)
        return [v - y, y - v, *[c.to(cls) for c in compared]]

    got = rows_on_device(mine, a, x, out=a.dtype, columns=32)
    expected = quietly(lambda: [a - column, column - a, a < column, a == column, column >= a, ~(a != column)])
    expected += quietly(lambda: [a <= column, 0 * (a == a)])
    for i, each in enumerate(expected):
        assert np.array_equal(bits(got[:, 4 * i : 4 * i + 4]), bits(np.asarray(each).astype(a.dtype))), i


@named("cls", [*INTEGERS, *FLOATS], **by_name)
def test_l18_the_format_of_a_mixed_operation_is_the_tables(cls: Any) -> None:
    """L18: vector with number, number with vector, vector with vector, literal on either side: one table for all."""
    a, x = np.full((64, 2), 3, cls.dtype.to_numpy()), np.full(64, 5, cls.dtype.to_numpy())
    kinds = [*INTEGERS, *FLOATS]

    def mine(v: Any, s: Any) -> list[Any]:
        made = []
        for kind in kinds:
            common = promote(cls.dtype, kind.dtype)
            mixed = [v - s.to(kind), s.to(kind) - v, v - v.to(kind), v.to(kind) + v, s.to(kind) * v]
            assert all(m.dtype.dtype == common for m in mixed), (cls, kind)
            made += [m.to(fx.Float32)[1] for m in mixed]
        literals = [v + 1, 1 - v, v * 1.5, 1.5 * v, True + v]
        float_literal = cls if cls.dtype.is_float else fx.Float32
        assert [m.dtype for m in literals] == [cls, cls, float_literal, float_literal, cls]
        return [*made, *[m.to(fx.Float32)[0] for m in literals]]

    got = rows_on_device(mine, a, x, out=np.float32, columns=5 * len(kinds) + 5)[0].tolist()
    for i, kind in enumerate(kinds):
        common = promote(cls.dtype, kind.dtype)
        below = -2.0 if common.signed else float(np.float32(2**common.bits - 2))
        assert got[5 * i : 5 * i + 5] == [below, 2.0, 0.0, 6.0, 15.0], kind
    below = -2.0 if cls.dtype.signed else float(np.float32(2**cls.dtype.bits - 2))
    assert got[-5:] == [4.0, below, 4.5, 4.5, 4.0]


@named("source", [fx.Int8, fx.Uint16, fx.Int32, fx.Uint64, *FLOATS], **by_name)
def test_conversions_and_bits(source: Any) -> None:
    """`to` of a vector is that of its elements (tested against numpy elsewhere), `bitcast` reads the same bits."""
    a = sample(source, (64, 4), 7)
    for target in (fx.Int8, fx.Uint32, fx.Int64, fx.Float16, fx.BFloat16, fx.Float32, fx.Float64):
        kind = target.dtype.to_numpy()
        whole = rows_on_device(lambda v, target=target: v.to(target), a, out=kind, columns=4)
        apart = rows_on_device(lambda v, target=target: [x.to(target) for x in v], a, out=kind, columns=4)
        assert np.array_equal(bits(whole), bits(apart)), target
    for width in (8, 16, 32, 64):
        count = 4 * source.dtype.bits // width
        if count:
            kind = np.dtype(f"u{width // 8}")
            target = {8: fx.Uint8, 16: fx.Uint16, 32: fx.Uint32, 64: fx.Uint64}[width]
            got = rows_on_device(lambda v, target=target: v.bitcast(target), a, out=kind, columns=count)
            assert np.array_equal(got, a.view(kind)), width



def test_vectors_of_one_number() -> None:
    a = sample(fx.Float32, (64, 4), 2)

    def mine(v: Any) -> list[Any]:
        w = fx.Vector(v, (4, 1))
        made = [fx.full((2, 2), v[1], fx.Float32), fx.full_like(w, 2.5), fx.zeros_like(w), fx.ones_like(w)]
        made.append(fx.empty_like(w))
        assert [m.shape for m in made] == [(2, 2), (4, 1), (4, 1), (4, 1), (4, 1)]
        assert fx.ones_like(w, fx.Int8).dtype is fx.Int8 and fx.full(3, 2**64 - 1, fx.Uint64).numel == 3
        return [*made[:4], fx.Vector.from_elements([0.1, 1, True, -0.0], fx.Float32)]

    got = rows_on_device(mine, a, out=np.float32, columns=20)
    row = [a[5, 1]] * 4 + [2.5] * 4 + [0] * 4 + [1] * 4 + [np.float32(0.1), 1, 1, -0.0]
    assert np.array_equal(bits(got[5]), bits(np.array(row, np.float32)))


def test_constants_of_64_bits_arrive_exactly() -> None:
    values = [0.1, 1 / 3, 1e300, -5e-324]
    integers = [2**64 - 1, 2**63, 0, 12345678901234567890]
    a = np.zeros((64, 1), np.int32)
    got = rows_on_device(lambda v: fx.Vector.from_elements(values, fx.Float64), a, out=np.float64, columns=4)
    assert got[0].tolist() == values
    got = rows_on_device(
        lambda v: [fx.Vector.from_elements(integers, fx.Uint64), fx.Vector.filled(1, 2**64 - 3, fx.Uint64)],
        a, out=np.uint64, columns=5,
    )  # fmt: skip
    assert got[0].tolist() == [*integers, 2**64 - 3]


def test_named_vectors() -> None:
    a = sample(fx.Int32, (64, 4), 2)

    def mine(v: Any) -> Any:
        w = fx.Float32x4(v.bitcast(fx.Float32).value, (4, 1))
        assert isinstance(w, fx.Float32x4) and not isinstance(w, (fx.Float32x8, fx.Int32x4)) and w.shape == (4, 1)
        assert isinstance(fx.Uint32x4(v.value), fx.Uint32x4) and fx.typing.VectorAlias(fx.Float32, 4) is fx.Float32x4
        return w.bitcast(fx.Int32)

    assert np.array_equal(rows_on_device(mine, a, out=np.int32, columns=4), a)


PUBLISHED = {
    "BFloat16": (1, 2, 4, 8, 16), "Float16": (1, 2, 4, 8, 16), "Float32": (1, 2, 4, 8), "Float64": (1, 2, 4),
    "Float4E2M1FN": (2, 4, 8, 16, 32), "Float8E4M3FN": (1, 2, 4, 8, 16), "Float8E8M0FNU": (1, 2, 4, 8, 16),
    "Int4": (2, 4, 8, 16, 32), "Int8": (1, 2, 4, 8, 16), "Uint16": (1, 2, 4, 8, 16), "Int64": (1, 2, 4),
    "Int128": (1,), "Uint128": (1,), "Boolean": (), "Float6E2M3FN": (),
}  # fmt: skip


@named("name", PUBLISHED)
def test_the_published_names_of_vectors_are_there(name: str) -> None:
    found = [lanes for lanes in range(1, 65) if f"{name}x{lanes}" in fx.typing.__all__]
    assert tuple(found) == PUBLISHED[name] and all(hasattr(fx, f"{name}x{lanes}") for lanes in found)


V = "v = fx.Vector.filled(4, 1.0, fx.Float32)\nw = fx.Vector(v, (2, 2))\nm = v > 0.0\n"
REFUSED = {
    "v[4]": ("index 4 of 'v', which has 4 elements", "4 is not in -4 to 3"),
    "v[-5]": ("index -5 of 'v', which has 4 elements", "-5 is not in -4 to 3"),
    "w[2, 0]": ("index (2, 0) of 'w', which has the shape (2, 2)", "2 is not in -2 to 1"),
    "w[0, 0, 0]": ("[(0, 0, 0)] of 'w'", "a coordinate of its shape (2, 2)"),
    "w[0, 0:1]": ("[(0, slice(0, 1, None))] of 'w'", "slice it by v[a:b]"),
    "v['a']": ("['a'] of 'v'", "index it by an integer"),
    "v[A[0]]": ("a Float32 as an index", "convert it: fx.Int32(x)"),
    "v[1:1]": ("an empty slice of 'v'", "it has elements 0 to 3"),
    "v[::0]": ("'v'[slice(None, None, 0)]: slice step cannot be zero", "v[0:4]"),
    "v[0.5:2]": ("slice indices must be integers", "v[0:4]"),
    "v[fx.thread_idx.x:4]": ("only known on the device", "fx.Constexpr"),
    "v.shuffle(v, [0.5])": ("shuffle mask [0.5]: 'float' object", "give a list of known integers"),
    "v.shuffle(v, 3)": ("shuffle mask 3: 'int' object", "give a list of known integers"),
    "v.with_element(4, 1.0)": ("index 4 of 'v'", "4 is not in -4 to 3"),
    "v.shuffle(v, [0, 8])": ("[0, 8]: 8 is no place in 4 + 4 elements", "those of the second vector from 4 on"),
    "v.shuffle(v, [-1])": ("-1 is no place", "the places are 0 to 7"),
    "v.shuffle(v, [])": ("nothing is no place", "the places are 0 to 7"),
    "v.shuffle(v.to(fx.Int32), [0])": ("shuffle of 'v' (Float32) with one (Int32)", "convert one with .to(...)"),
    "v.reduce(3)": ("reduce by 3", "ADD, MUL, MAX, MIN"),
    "v.reduce('sum')": ("reduce by 'sum'", "ADD, MUL, MAX, MIN"),
    "v.reduce(fx.ReductionOp.AND)": ("Float32 has no operator '&'", "convert with .to(fx.Int32)"),
    "v.any()": ("any() of 'v', whose elements are Float32", "(v != 0).any()"),
    "~v": ("Float32 has no operator '~'", "convert"),
    "v + w": ("'v' has shape (4,) and 'w' (2, 2)", "Vector(v, shape) renames the shape"),
    "v.load()": ("Vector has no name 'load'", "tensor.load() gives a tensor's elements as a vector"),
    "v.redcue('add')": ("Vector has no name 'redcue'", "did you mean Vector.reduce?"),
    "bool(m)": ("'m' is only known on the device", "use mask.select(a, b)"),
    "fx.Float32x8(v)": ("Float32x8('v'): it has 4 elements of Float32", "give a vector of 8 elements of Float32"),
    "fx.Int32x4(v)": ("a vector of f32 is not one of Int32", "use .bitcast(...) to read its bits"),
    "fx.Float32x4(1.0)": ("Float32x4(float): not a vector", "Vector.filled(4, x, fx.Float32)"),
    "fx.full_like(1.0, 2)": ("full_like of 1.0: not a vector", "fx.full(shape, x, dtype)"),
    "fx.VectorAlias(fx.Float32, 0)": ("VectorAlias(Float32, 0)", "at least 1"),
    "fx.Vector.from_elements([1, 'a'], fx.Int32)": ("Int32('a'): str is not a number", "give a Python number"),
}


@named("expression", REFUSED)
def test_what_a_vector_refuses(expression: str) -> None:
    """L21 among them: the index is named as it is written."""
    message, hint = REFUSED[expression]
    with pytest.raises(TraceError) as caught:
        compile_body(f"{V}x = {expression}")
    error = caught.value
    assert message in error.message and hint in (error.hint or "")
    assert error.where is not None and error.where.line == 6


def test_an_index_out_of_range_is_an_index_error() -> None:
    for expression in ("v[4]", "v[-5]"):
        with pytest.raises(IndexError):
            compile_body(f"{V}x = {expression}")
