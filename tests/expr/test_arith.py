"""`fx.arith`, `fx.T` and raw MLIR values: what code close to MLIR is written with."""

from __future__ import annotations

import math
import operator
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import flylab.expr as fx
from flylab.errors import FlylabError, NotSupportedError, TraceError
from flylab.expr import arith
from tests.expr.vectors import CHIPS, bits, quietly, rows_on_device, sample
from tests.samples import compile_body, kernel_of, on_device

SIGNED = {"eq": operator.eq, "ne": operator.ne, "slt": operator.lt, "sle": operator.le, "sgt": operator.gt,
          "sge": operator.ge}
UNSIGNED = {"ult": operator.lt, "ule": operator.le, "ugt": operator.gt, "uge": operator.ge}


@pytest.mark.parametrize("cls", [fx.Int8, fx.Uint8, fx.Int32, fx.Uint32, fx.Int64, fx.Uint64], ids=lambda c: c.__name__)
def test_cmpi_reads_the_bits_as_its_predicate_says(cls: Any) -> None:
    a, b = sample(cls, (64, 2), 1), sample(cls, (64, 2), 2)
    width = a.dtype.itemsize
    expected = {name: rule(a.view(f"i{width}"), b.view(f"i{width}")) for name, rule in SIGNED.items()}
    expected |= {name: rule(a.view(f"u{width}"), b.view(f"u{width}")) for name, rule in UNSIGNED.items()}
    predicates = [arith.CmpIPredicate[name] for name in expected]

    def mine(v: Any, w: Any) -> list[Any]:
        first = [arith.cmpi(p.name, v[0], w[0]) for p in predicates]
        return [arith.cmpi(p, v, w) for p in predicates] + first

    got = rows_on_device(lambda v, w: [x.to(fx.Uint8) for x in mine(v, w)], a, b, out=np.uint8, columns=30)
    for i, name in enumerate(expected):
        assert np.array_equal(got[:, 2 * i : 2 * i + 2], expected[name]), name
        assert np.array_equal(got[:, 20 + i], expected[name][:, 0]), name
        folded = [arith.cmpi(name, cls(int(x)), cls(int(y))).value for x, y in zip(a[:, 0], b[:, 0], strict=True)]
        assert folded == expected[name][:, 0].tolist(), name


def test_cmpf_has_mlirs_sixteen_predicates() -> None:
    """Each against its meaning: o is false and u true where one is NaN; known numbers fold alike."""
    values = [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, math.nan]
    a, b = (np.array(v, np.float32) for v in zip(*product(values, values), strict=True))
    nan = np.isnan(a) | np.isnan(b)
    plain = {"EQ": a == b, "GT": a > b, "GE": a >= b, "LT": a < b, "LE": a <= b, "NE": (a < b) | (a > b)}
    expected = {"AlwaysFalse": nan & ~nan, "AlwaysTrue": nan | ~nan, "ORD": ~nan, "UNO": nan}
    expected |= {f"O{k}": v & ~nan for k, v in plain.items()} | {f"U{k}": v | nan for k, v in plain.items()}
    assert set(expected) == set(arith.CmpFPredicate.__members__)
    for name, right in expected.items():
        predicate = arith.CmpFPredicate[name]
        got = on_device(lambda x, y, p=predicate: arith.cmpf(p, x, y).to(fx.Uint8), a, b, out=np.uint8)
        assert np.array_equal(got.astype(bool), right), name
        folded = [arith.cmpf(name.lower(), fx.Float32(float(x)), float(y)).value for x, y in zip(a, b, strict=True)]
        assert folded == right.tolist(), name


def test_predicates_are_mlirs_and_taken_from_it() -> None:
    from mlir.dialects import arith as upstream

    for name in ("CmpIPredicate", "CmpFPredicate", "RoundingMode"):
        ours, theirs = getattr(arith, name), getattr(upstream, name)
        assert {m.name: m.value for m in ours} == {m.name: m.value for m in theirs}
    assert arith.cmpi(upstream.CmpIPredicate.ult, fx.Int32(-1), 1).value is False
    assert arith.cmpf(upstream.CmpFPredicate.OLT, fx.Float32(-1.0), 1.0).value is True


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("cls", [fx.Float16, fx.BFloat16, fx.Float32, fx.Float64], ids=lambda c: c.__name__)
def test_float_operations_by_name(cls: Any, chip: str) -> None:
    """addf and its kin give what operators give; known numbers too."""
    a, b = sample(cls, (64, 2), 3), sample(cls, (64, 2), 4)
    rules = {"addf": operator.add, "subf": operator.sub, "mulf": operator.mul, "maximumf": np.maximum,
             "minimumf": np.minimum, "maxnumf": np.fmax, "minnumf": np.fmin}
    got = rows_on_device(
        lambda v, w: [getattr(arith, name)(v, w) for name in rules] + [arith.negf(v)],
        a, b, out=a.dtype, columns=16, chip=chip,
    )  # fmt: skip
    for i, (name, rule) in enumerate(rules.items()):
        wide = [x.astype(np.float32) if cls is fx.BFloat16 else x for x in (a, b)]
        right = quietly(lambda rule=rule, wide=wide: np.asarray(rule(*wide)).astype(a.dtype))
        mine = got[:, 2 * i : 2 * i + 2]
        if name.startswith(("max", "min")):
            mine, right = mine + mine.dtype.type(0), right + right.dtype.type(0)
        assert np.array_equal(bits(mine), bits(right)), name
        for x, y, z in zip(a[:, 0], b[:, 0], mine[:, 0], strict=True):
            folded = cls.dtype.to_numpy().type(getattr(arith, name)(cls(float(x)), cls(float(y))).value)
            folded = folded + type(folded)(0) if name.startswith(("max", "min")) else folded
            assert bits(np.array([folded])) == bits(np.array([z])), (name, x, y)
    assert np.array_equal(bits(got[:, 14:]), bits(-a))


def test_operations_as_mlirs_classes() -> None:
    a, b = sample(fx.Float32, (64, 2), 5, ordinary=True), sample(fx.Float32, (64, 2), 6, ordinary=True)
    classes = ["AddFOp", "SubFOp", "MulFOp", "MaximumFOp", "MinimumFOp", "MaxNumFOp", "MinNumFOp", "DivFOp"]
    got = rows_on_device(
        lambda v, w: [getattr(arith, name)(v.value, w, fastmath="nsz").result for name in classes]
        + [arith.NegFOp(v).result],
        a, b, out=np.float32, columns=18,
    )  # fmt: skip
    expected = [a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b), np.maximum(a, b), np.minimum(a, b)]
    assert np.array_equal(got[:, :14], np.concatenate(expected, 1)) and np.array_equal(got[:, 16:], -a)
    assert (np.abs(got[:, 14:16] - a / b) <= np.spacing(np.abs(a / b))).all()


@pytest.mark.parametrize("cls", [fx.Int8, fx.Int16, fx.Int32, fx.Uint32, fx.Int64], ids=lambda c: c.__name__)
def test_shrui_brings_zeros_in(cls: Any) -> None:
    a = sample(cls, (64, 2), 1)
    got = rows_on_device(lambda v: [arith.shrui(v, 3), arith.shrui(v[0], 0, is_exact=True)], a, out=a.dtype, columns=3)
    assert np.array_equal(got[:, :2], (a.view(f"u{a.dtype.itemsize}") >> 3).view(a.dtype))
    assert np.array_equal(got[:, 2], a[:, 0])
    assert arith.shrui(fx.Int32(-1), 28).value == 15


def test_constants_and_casts_by_type() -> None:
    a = np.arange(128, dtype=np.int32).reshape(64, 2)

    def mine(v: Any) -> list[Any]:
        T, i64 = fx.T, fx.T.i64
        assert str(T.vec(4, T.f32)) == "vector<4xf32>" and str(T.vec(2, fx.Uint32)) == "vector<2xi32>"
        assert str(T.index) == "index" and str(T.f8E4M3FN) == "f8E4M3FN" and str(T.i1) == "i1"
        four, half = arith.constant(4, T.i32), arith.constant(0.5)
        assert repr((four, half, arith.constant(2**40, i64))) == "(Int32(4), Float32(0.5), Int64(1099511627776))"
        assert arith.constant(3, T.index).dtype.bits == 64
        wide = arith.index_cast(i64, v)
        assert wide.dtype is fx.Int64 and arith.index_cast(T.i32, wide[0]).dtype.name == "Int32"
        split = arith.constant_vector(2, T.vec(2, T.i32)) + arith.constant(1, T.vec(2, T.i32))
        raw = arith.unwrap(v[0], T.index)
        assert str(raw.type) == "index" and str(arith.unwrap(7).type) == "i32"
        assert str(arith.unwrap(v, T.vec(2, T.i64)).type) == "vector<2xi64>"
        narrow = arith.truncf(T.f16, v.to(fx.Float32))
        assert narrow.dtype is fx.Float16 and arith.ext_f(T.f32, narrow[0]).dtype.name == "Float32"
        return [v + split, fx.Int32(raw), v[0] + arith.index_cast(T.i32, raw), arith.extf(T.f32, narrow).to(fx.Int32)]

    got = rows_on_device(mine, a, out=np.int32, columns=6)
    assert np.array_equal(got, np.concatenate([a + 3, a[:, :1], 2 * a[:, :1], a], 1))


def test_raw_mlir_values_stand_for_numbers_and_vectors() -> None:
    a = sample(fx.Int32, (64, 4), 1)

    def mine(v: Any) -> list[Any]:
        raw, one, flag = v.value, v[0].value, (v[0] > 0).value
        made = [v + raw, raw * v, v[1] + one, one - v[1], v[1] * raw, raw - v[2], fx.max(raw, one), fx.ceildiv(one, 4)]
        made += [fx.arith.select(flag, one, v[1]), fx.Vector.from_elements([one, 2], fx.Int32), v.with_element(1, one)]
        made += [fx.Vector(raw, (2, 2)), fx.Vector.filled(2, one, fx.Int32), (v == raw).to(fx.Int32), v < raw]
        assert (one < v[1]).dtype.name == "Boolean" and fx.absf(v[0].to(fx.Float32).value).dtype.name == "Float32"
        assert fx.as_dsl_value(raw, fx.Vector(v.bitcast(fx.Uint32), (4, 1))).shape == (4, 1)
        assert fx.as_dsl_value(one, fx.Uint32(0)).dtype.name == fx.as_dsl_value(one, fx.Uint32).dtype.name == "Uint32"
        assert fx.as_dsl_value(one).dtype.name == "Int32" and fx.as_dsl_value(3) == 3
        assert fx.as_ir_value(v) == raw and fx.as_ir_value(raw) == raw and str(fx.as_ir_value(1.5).type) == "f32"
        assert fx.as_ir_value(fx.Int8(3), keep_static=True) == 3
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert arith.ArithValue(one).dtype.name == "Int32"
        assert [w.category for w in caught] == [DeprecationWarning]
        return [x.to(fx.Int32) for x in made]

    got = rows_on_device(mine, a, out=np.int32, columns=44)
    x, y = a[:, :1], a[:, 1:2]
    with np.errstate(over="ignore"):
        expected = [a + a, a * a, y + x, x - y, y * a, a - a[:, 2:3], np.maximum(a, x), -(-x.astype(np.int64) // 4)]
        expected += [np.where(x > 0, x, y), x, x * 0 + 2, x, x, a[:, 2:], a, x, x, a * 0 + 1, a * 0]
    assert np.array_equal(got, np.concatenate(expected, 1).astype(np.int32))


REFUSED = {
    "arith.cmpi('lt', 1, x)": ("cmpi: 'lt' is not a predicate", "eq, ne, slt"),
    "arith.cmpi(x, arith.CmpIPredicate.slt, x)": ("is not a predicate", "the first argument is one of eq"),
    "arith.cmpi(arith.CmpFPredicate.OLT, x, x)": ("is not a predicate", "eq, ne, slt"),
    "arith.cmpi('slt', 1.0, f)": ("cmpi of Float32", "use arith.cmpf"),
    "arith.cmpi('slt', x > 0, x > 1)": ("cmpi slt of Booleans", "x.to(fx.Int32)"),
    "arith.cmpf('olt', x, x)": ("cmpf of Int32", "use arith.cmpi"),
    "arith.addf(x, x)": ("addf of Int32", "use an operator"),
    "arith.maximumf(x, 1)": ("maximumf of Int32", "fx.max"),
    "arith.negf(x)": ("negf of Int32", "use -x"),
    "arith.shrui(f, 1)": ("shrui of Float32", "x.bitcast(fx.Uint32)"),
    "arith.index_cast(fx.T.f32, x)": ("index_cast of Int32 to Float32", ".to(...)"),
    "arith.index_cast(fx.T.vec(2, fx.T.i32), x)": ("to a vector of 2", "number of elements"),
    "arith.constant_vector(1, fx.T.i32)": ("constant_vector of i32", "T.vec(4, T.f32)"),
    "arith.constant('a', fx.T.i32)": ("Int32('a'): str is not a number", "Python number"),
    "arith.truncf(fx.T.f64, f)": ("truncf of Float32 to Float64", "x.to(fx.Float64)"),
    "arith.truncf(fx.T.f16, f, roundingmode=arith.RoundingMode.upward)": ("rounding mode upward", "leave roundingmode"),
    "fx.T.f33": ("T has no name 'f33'", "did you mean T.f32?"),
    "fx.T.vec(0, fx.T.f32)": ("T.vec(0, ...)", "at least 1"),
    "fx.T.vec(4, 5)": ("5 is not a number format", "fx.Float32"),
    "arith.unwrap('a')": ("'a' (a str) has no MLIR value", "give a number, a vector or a tensor"),
    "arith.adff(f, f)": ("fx.arith has no name 'adff'", "did you mean fx.arith.addf"),
    "fx.Float32(x.value)": ("Float32(...) of an MLIR value of type i32", "bitcast or convert"),
    "fx.Float32(1.0) + A.value": ("is not a number format", "give a number of a type like f32"),
}


@pytest.mark.parametrize("expression", REFUSED)
def test_what_arith_refuses(expression: str) -> None:
    message, hint = REFUSED[expression]
    with pytest.raises(FlylabError) as caught:
        compile_body(f"arith = fx.arith\nx, f = fx.thread_idx.x, A[0]\ny = {expression}")
    error = caught.value
    assert message in error.message and hint in (error.hint or "")
    assert error.where is not None and error.where.line == 5


def test_raw_coordinates_tensors_and_pointers() -> None:
    a = np.arange(64, dtype=np.float32)
    kernel_of("""
        i = fx.thread_idx.x.value
        v = A.load()
        tensor, pointer = fx.as_dsl_value(A.value), fx.as_dsl_value(fx.get_iter(A).value)
        assert isinstance(tensor, fx.Tensor) and isinstance(pointer, fx.Pointer)
        assert fx.as_ir_value(tensor) == A.value and fx.as_ir_value(pointer) == pointer.value
        A[i] = v[i] * 2.0 + tensor[i] + pointer[i]
    """)["launch"](a)
    assert np.array_equal(a, np.arange(64) * 4.0)


def test_types_and_scopes_need_a_kernel() -> None:
    for expression in (lambda: fx.T.f32, lambda: fx.T.vec(4, fx.Float32), lambda: fx.T.index):
        with pytest.raises(TraceError, match="only has a meaning inside an @flyc.kernel"):
            expression()
    assert issubclass(NotSupportedError, TraceError) and {"i32", "f32", "vec", "index"} <= set(dir(fx.T))


PUBLISHED = {
    arith: "FastMathFlags RoundingMode ceildiv cmpf cmpi constant_vector fastmath index_cast max maximumf maxnumf min "
    "minimumf minnumf shrui constant select unwrap ArithValue CmpIPredicate CmpFPredicate",
    fx.typing: "Basis ComposedLayout Constexpr E Layout Pointer ReductionOp Stream Swizzle T Tensor Tuple3D Types "
    "Vector VectorAlias as_dsl_value as_ir_value empty_like full full_like ones_like zeros_like",
}


@pytest.mark.parametrize("module", PUBLISHED, ids=lambda m: m.__name__)
def test_the_published_names_are_there(module: Any) -> None:
    names = set(PUBLISHED[module].split())
    assert names <= set(module.__all__) and all(getattr(module, name).__doc__ for name in names)
