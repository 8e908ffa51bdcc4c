"""A launcher's arithmetic on the host gives what the same arithmetic gives on fixed-width integers."""

from __future__ import annotations

import functools
import gc
import os
import signal
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.compiler.trace import trace
from flylab.dialect.context import entered
from flylab.errors import CompileError, FlylabError, TraceError
from flylab.expr.numeric import Numeric
from flylab.expr.promotion import integer_range
from flylab.passes import pipeline
from flylab.passes.host import unsigned, wrap
from flylab.runtime.arguments import bind
from flylab.targets import target
from tests.passes.control import branch, loop, repeat
from tests.samples import cell

ARGUMENTS = {"a": fx.Int32, "b": fx.Uint32, "c": fx.Int64, "d": fx.Int8, "e": fx.Boolean, "f": fx.Uint16}
BINARY = ("+", "-", "*", "//", "%", "&", "|", "^", "<", "==", ">=", "!=")
EXPRESSIONS = st.recursive(
    st.sampled_from([*ARGUMENTS, "1", "-3", "7", "200", "70000"]),
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(BINARY), inner).map(lambda t: f"({t[0]} {t[1]} {t[2]})"),
        inner.map(lambda x: f"(-{x})"),
        st.tuples(inner, inner, st.sampled_from(["fx.max", "fx.min", "fx.ceildiv"])).map(
            lambda t: f"{t[2]}({t[0]}, {t[1]})"
        ),
        st.tuples(inner, inner, inner).map(lambda t: f"fx.arith.select(fx.Int32({t[0]}) > 5, {t[1]}, {t[2]})"),
        st.tuples(inner, st.sampled_from(["Int8", "Uint8", "Int64", "Uint32"])).map(lambda t: f"fx.{t[1]}({t[0]})"),
        st.tuples(inner, st.sampled_from(["<<", ">>"]), st.integers(0, 7)).map(
            lambda t: f"(fx.Int32({t[0]}) {t[1]} {t[2]})"
        ),
    ),
    max_leaves=12,
)


@functools.cache
def plan_of(expression: str) -> tuple[Any, Any]:
    """The launch plan of a launcher that passes an expression to its kernel, and the format of its result."""
    parameters = ", ".join(f"{n}: fx.{c.__name__}" for n, c in ARGUMENTS.items())
    launcher = cell(f"""
        @flyc.kernel
        def k(A: fx.Tensor, x):
            A[0] = fx.Int64(x)

        @flyc.jit
        def launch(A: fx.Tensor, {parameters}):
            k(A, {expression}).launch(grid=1, block=64)
    """)["launch"]
    A = np.zeros(64, np.int64)
    zeros = {n: c(0).value for n, c in ARGUMENTS.items()}
    hosts = [bind(p, {"A": A, **zeros}[p.name]).host for p in launcher.signature.parameters]
    with entered():
        traced = trace(launcher, hosts, target("gfx942"))
        host = pipeline.run(traced.module, target("gfx942"))
    return host, traced.operand_types["k"]


@settings(max_examples=250)
@given(EXPRESSIONS, st.data())
def test_random_launchers(expression: str, data: st.DataObject) -> None:
    def draw(cls: Any) -> Any:
        if cls is fx.Boolean:
            return data.draw(st.booleans())
        low, high = integer_range(cls.dtype)
        return data.draw(st.one_of(st.sampled_from([low, high, 1]), st.integers(low, high)))

    values = {n: draw(c) for n, c in ARGUMENTS.items()}
    try:
        # Folding is the oracle; test_numbers holds it against numpy.
        expected = eval(expression, {"fx": fx}, {n: c(values[n]) for n, c in ARGUMENTS.items()})
    except (TraceError, ZeroDivisionError):
        return  # a division by zero
    try:
        host, kinds = plan_of(expression)
    except (TraceError, ZeroDivisionError) as error:
        assert "by zero" in str(error) or "ceildiv" in str(error)
        return
    if len(kinds) == 1:  # every leaf is a constant, so it is one too
        return
    (launch,) = host.steps([4096, *values.values()])
    (_, got) = launch.operands
    assert isinstance(expected, Numeric) and expected.dtype == kinds[1]
    assert unsigned(got, 64) % 2 ** kinds[1].bits == int(expected.value) % 2 ** kinds[1].bits


@pytest.mark.parametrize("value, bits, expected", [(128, 8, -128), (127, 8, 127), (-1, 8, -1), (256, 8, 0), (1, 1, -1)])
def test_wrap(value: int, bits: int, expected: int) -> None:
    assert wrap(value, bits) == expected
    assert unsigned(expected, bits) == value % 2**bits


GRID = """
@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32, m: fx.Uint32, x: fx.Float32, y: fx.Float32):
    if fx.const_expr(True):
        A[gpu.block_id("x") * 64 + gpu.thread_id("x")] = fx.Float32(n) + fx.Float32(m) + x + y

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, m: fx.Uint32, x: fx.Float32):
    k(A, n - 1, m + 1, x, {0}).launch(grid=({1}, 1), block=64)
"""


def launched(grid: str = "fx.ceildiv(n, 64)", constant: str = "0.5", n: int = 128, m: int = 7) -> Any:
    A = np.zeros(128, np.float32)
    cell(GRID.format(constant, grid))["launch"](A, n, m, 0.25)
    return A


def test_runtime_grids_and_arguments() -> None:
    assert (launched() == 127 + 8 + 0.75).all()
    assert (launched(n=1)[:64] == 0 + 8 + 0.75).all() and (launched(n=1)[64:] == 0).all()
    assert (launched(n=65) == 64 + 8 + 0.75).all()
    assert (launched(m=2**32 - 2)[:2] == np.float32(2**32)).all(), "unsigned arguments above 2**31"
    assert (launched("n // 64", "float('-inf')") == -np.inf).all()
    assert np.isnan(launched("n // 64", "float('nan')")).all()


@pytest.mark.parametrize(
    "grid, n, kind, message",
    [
        ("n // 64", 63, TraceError, "extent x must be 1 to 2147483647"),
        ("-n", 64, TraceError, "grid (-64, 1, 1)"),
        ("64 // n", 0, CompileError, "the launcher divides by zero"),
        ("n % (n - 5)", 5, CompileError, "divides by zero"),
        ("1 << n", 40, CompileError, "shifts an integer of 32 bits by 40"),
    ],
)
def test_bad_values_at_launch(grid: str, n: int, kind: type[FlylabError], message: str) -> None:
    with pytest.raises(kind) as caught:
        launched(grid, n=n)
    assert message in caught.value.message
    assert caught.value.where is not None and caught.value.hint


def test_floats_are_computed_in_the_kernel() -> None:
    with pytest.raises(CompileError, match="the launcher computes with arith.mulf") as caught:
        launched(constant="x * 2.0")
    assert caught.value.where is not None and caught.value.where.line == 8
    assert "kernel" in (caught.value.hint or "")


def test_compile_leaves_the_launch_plan() -> None:
    compiled = flyc.compile(
        cell(GRID.format("1.0", "fx.ceildiv(n, 64)"))["launch"], np.zeros(128, np.float32), 1, 1, 1.0
    )
    (launch,) = compiled.host.steps([4096, 1000, 5, 2.5])
    assert launch.kernel == "k"
    assert launch.extents == (16, 1, 1, 64, 1, 1)
    assert launch.operands == (4096, 999, 6, 2.5, 1.0)


CONTROL = """
@flyc.kernel
def k(A: fx.Tensor, at: fx.Int32, x: fx.Int64):
    A[at] = x

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, m: fx.Uint32, how: fx.Constexpr):
    how(A, n, m, lambda T, at, x: k(T, at, x).launch(grid=1, block=1))
"""


def launched_by(how: Any, n: int = 5, m: int = 3, size: int = 64) -> list[int]:
    """What the launches of `how(A, n, m, put)` store, where `put(T, at, x)` launches T[at] = x; -1 where none does."""
    A = np.full(size, -1, np.int64)
    cell(CONTROL)["launch"](A, n, m, how)
    return A.tolist()


def test_launches_in_branches_and_loops_run_in_order() -> None:
    def how(A: Any, n: Any, m: Any, put: Any) -> None:
        def body(i: Any, total: Any) -> Any:
            branch(i % 2 == 0, lambda: put(A, i, total), lambda: put(A, i, -i))
            put(A, 60, i)  # the last one is seen
            return total * 3 + i

        total = loop(0, n, 1, body, fx.Int32(1))
        branch(total > 100, lambda: put(A, 61, total))
        branch(total < 100, lambda: put(A, 62, total))

        def step(i: Any, x: Any) -> Any:
            put(A, 20 + i, x)
            return i + 2, x // 2

        last, _ = repeat(lambda i, x: x > 0, step, fx.Int32(0), total)
        put(A, 63, last + m)

    for n in (0, 1, 5):
        expected, total = [-1] * 64, 1
        for i in range(n):
            expected[i] = total if i % 2 == 0 else -i
            expected[60] = i
            total = total * 3 + i
        if total != 100:
            expected[61 if total > 100 else 62] = total
        at, x = 0, total
        while x > 0:
            expected[20 + at], at, x = x, at + 2, x // 2
        expected[63] = at + 3
        assert launched_by(how, n) == expected


def test_loops_of_the_host_count_as_range_does() -> None:
    """Near the end of the width a loop ends; as unsigned numbers the bounds are above 2**31."""
    def how(A: Any, n: Any, m: Any, put: Any) -> None:
        put(A, 0, loop(n, 2**31 - 1, 2**30, lambda i, s: s + 1, fx.Int32(0)))
        put(A, 1, loop(n, n, 1, lambda i, s: s + 1, fx.Int32(0)))
        put(A, 2, loop(fx.Int64(2**40), fx.Int64(2**40 + 7), fx.Int64(3), lambda i, s: s + i, fx.Int64(0)))
        put(A, 3, loop(n, -n, 1, lambda i, s: s + 1, fx.Int32(0)))

    n = 2**31 - 5
    expected = [len(range(n, 2**31 - 1, 2**30)), 0, sum(range(2**40, 2**40 + 7, 3)), 0]
    assert launched_by(how, n)[:4] == expected


def test_tensors_are_carried_on_the_host() -> None:
    """The pointer to store at is chosen and moved by control flow of the launcher."""
    def how(A: Any, n: Any, m: Any, put: Any) -> None:
        start = fx.get_iter(A)
        picked = branch(n > 3, lambda: start + 10, lambda: start, (start,))
        last = loop(0, n, 1, lambda i, p: p + i, picked)
        put(fx.make_view(last, fx.make_layout(64, 1)), 0, 7)

    for n, at in ((2, 1), (5, 20)):
        assert [i for i, x in enumerate(launched_by(how, n)) if x == 7] == [at]


STEP = """
@flyc.kernel
def k(A: fx.Tensor, x):
    A[0] = fx.Int64(x)

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, loop: fx.Constexpr, branch: fx.Constexpr):
    {0}
    k(A, {1}).launch(grid=1, block=1)
"""


@pytest.mark.parametrize("line, x, n, message", [
    ("x = loop(0, 10, n, lambda i, s: s + i, fx.Int32(0))", "x", 0, "a loop of the launcher has the step 0"),
    ("x = loop(0, 10, n, lambda i, s: s + i, fx.Int32(0))", "x", -3, "has the step -3"),
    ("x = branch(n < 5, lambda: n, lambda: 8 // (n - 7), (n,))", "x", 7, "the launcher divides by zero"),
    ("x = branch(n < 5, lambda: n.to(fx.Float32) * 2.5, lambda: fx.Float32(1.0), (fx.Float32(0.0),))", "x", 7,
     "which only a kernel can"),
])
def test_errors_of_the_hosts_control_flow_name_the_line(line: str, x: str, n: int, message: str) -> None:
    with pytest.raises(FlylabError) as caught:
        cell(STEP.format(line, x))["launch"](np.zeros(4, np.int64), n, loop, branch)
    assert message in caught.value.message and caught.value.hint
    assert caught.value.where is not None and caught.value.where.line == 7


def test_too_much_of_it_in_one_another() -> None:
    def how(A: Any, n: Any, m: Any, put: Any) -> None:
        def nested(depth: int) -> Any:
            return lambda i: loop(i, n, 1, nested(depth - 1)) if depth else put(A, 0, i)

        nested(24)(n - 1)

    with pytest.raises(CompileError, match="too many branches and loops in one another"):
        launched_by(how, 1)


def test_an_endless_loop_of_the_host_is_interrupted() -> None:
    def how(A: Any, n: Any, m: Any, put: Any) -> None:
        put(A, 0, repeat(lambda i: i != 1, lambda i: (i + 2) % 100, n - n))

    host = flyc.compile(cell(CONTROL)["launch"], np.zeros(64, np.int64), 1, 1, how).host
    gc.disable()  # what its callbacks raise is lost
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            list(host.steps([4096, 1, 1]))
    finally:
        gc.enable()
