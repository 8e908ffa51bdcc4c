"""Fast-math scopes: where the flags go, and that without one nothing is fused or reordered."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.expr as fx
from flylab.errors import TraceError
from flylab.expr.fastmath import FastMathFlags, attributes, flags_of
from tests.expr.vectors import CHIPS
from tests.samples import cell, compile_body, kernel_of

TRIPLES = """
    t = fx.thread_idx.x
    a, b, c = A[t], A[t + 64], A[t + 128]
"""


def triples() -> np.ndarray:
    """64 of a, then of b, then of c, so that a * b + c is mostly another number where the product is not rounded."""
    generator = np.random.default_rng(0)
    a, b = generator.normal(size=(2, 64)).astype(np.float32)
    return np.concatenate([a, b, -(a * b)])


def fused(a: np.ndarray) -> np.ndarray:
    """a * b + c rounded once: two floats of 24 bits have a product that a Float64 holds, and c is close to it."""
    wide = a.astype(np.float64)
    return (wide[:64] * wide[64:128] + wide[128:]).astype(np.float32)


def run(body: str, chip: str = "gfx942") -> np.ndarray:
    a = triples()
    with flylab.use(chip):
        kernel_of(TRIPLES + body)["launch"](a)
    return a[:64]


@pytest.mark.parametrize("chip", CHIPS)
def test_a_product_and_a_sum_are_two_roundings_but_in_a_scope(chip: str) -> None:
    given = triples()
    unfused = given[:64] * given[64:128] + given[128:]
    assert (unfused == 0).all() and np.count_nonzero(fused(given)) > 50
    assert np.array_equal(run("    A[t] = a * b + c", chip), unfused)
    for flags in ("'contract'", "fx.arith.FastMathFlags.contract", "'fast'", "'nnan | contract'"):
        body = f"    with fx.arith.fastmath({flags}):\n        A[t] = a * b + c"
        assert np.array_equal(run(body, chip), fused(given)), flags
    explicit = """
    product = fx.arith.mulf(a, b, fastmath="contract")
    A[t] = fx.arith.AddFOp(product, c, fastmath=fx.arith.FastMathFlags.contract).result
    """
    assert np.array_equal(run(explicit, chip), fused(given))
    vector = """
    with fx.arith.fastmath('contract'):
        v = fx.Vector.filled(2, a, fx.Float32) * b + c
    A[t] = v[1]
    """
    assert np.array_equal(run(vector, chip), fused(given))


def test_the_isa_has_an_fma_under_contract_alone() -> None:
    for scope, fuses in (("none", False), ("contract", True), ("reassoc", False)):
        body = f"t = fx.thread_idx.x\nwith fx.arith.fastmath('{scope}'):\n    x = A[t] * A[0] + A[1]\nA[t] = x"
        text = str(compile_body(body).show("isa"))
        assert bool(re.search(r"v_(pk_)?fma", text)) == fuses and ("v_add_f32" in text) != fuses


def lines(name: str, body: str) -> list[str]:
    """The operations of one name in the IR of a kernel, or of LLVM."""
    compiled = compile_body(f"t = fx.thread_idx.x\nx, y = A[t], A[0]\n{body}")
    both = str(compiled.show("ir")).splitlines() + str(compiled.show("llvm")).splitlines()
    return [line.strip() for line in both if re.search(rf"(= |llvm\.){re.escape(name)}\b", line)]


OPERATIONS = {
    "x + y": ("arith.addf", "fadd"),
    "x - y": ("arith.subf", "fsub"),
    "x * y": ("arith.mulf", "fmul"),
    "x / y": ("arith.divf", "fdiv"),
    "-x": ("arith.negf", "fneg"),
    "abs(x)": ("math.absf", "call"),
    "fx.max(x, y)": ("arith.maximumf", "call"),
    "fx.minnumf(x, y)": ("arith.minnumf", "call"),
    "(x < y).select(x, y)": ("arith.cmpf", "fcmp"),
    "fx.Vector.filled(2, x, fx.Float32).reduce('add')": ("vector.reduction", "call"),
}


@pytest.mark.parametrize("expression", OPERATIONS)
def test_every_float_operation_carries_the_flags(expression: str) -> None:
    mlir, llvm = OPERATIONS[expression]
    scoped = f"with fx.arith.fastmath('nnan|nsz'):\n    z = {expression}\nA[t] = z"
    made = lines(mlir, scoped)
    assert made and all("fastmath<nnan,nsz>" in line for line in made)
    assert any("nnan nsz" in line for line in lines(llvm, scoped))
    assert all("fastmath" not in line for line in lines(mlir, f"z = {expression}\nA[t] = z"))


def test_conversions_are_exact_in_any_scope() -> None:
    """`x.to(Float16).to(Float32)` rounds: it says so."""
    a = np.linspace(1, 2, 192, dtype=np.float32)
    expected = a[:64].astype(np.float16).astype(np.float32)
    body = TRIPLES + "    with fx.arith.fastmath('fast'):\n        A[t] = a.to(fx.Float16).to(fx.Float32)"
    kernel_of(body)["launch"](a)
    assert np.array_equal(a[:64], expected)


def test_scopes_nest_and_end_and_hold_for_a_kernel_launched_in_one() -> None:
    def flags() -> str:
        return str(attributes().get("fastmath", "none"))

    seen: list[str] = []

    def look(*expected: str) -> None:
        seen.append(flags())

    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, look: fx.Constexpr):
            look()
            with fx.arith.fastmath("contract"):
                look()
                with fx.arith.fastmath(fx.arith.FastMathFlags.none):
                    look()
                look()
                try:
                    with fx.arith.fastmath("fast"):
                        raise KeyError
                except KeyError:
                    look()
            look()
            A[fx.thread_idx.x] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor, look: fx.Constexpr):
            look()
            with fx.arith.fastmath("nnan"):
                k(A, look).launch(grid=1, block=64)
            look()
    """)
    names["launch"](np.zeros(64, np.float32), look)
    nnan, contract = "#arith.fastmath<nnan>", "#arith.fastmath<contract>"
    assert seen == ["none", nnan, contract, "none", contract, contract, nnan, "none"]


def test_a_trace_that_fails_in_a_scope_leaves_none() -> None:
    with pytest.raises(TraceError):
        compile_body("with fx.arith.fastmath('fast'):\n    x = A[0] & 1")
    assert "fastmath" not in str(compile_body("A[0] = A[1] * A[2]").show("ir"))


@pytest.mark.parametrize(
    "body, message, hint",
    [
        ("with fx.arith.fastmath('quick'):\n    pass", "'quick' is no fast-math flag", "none, reassoc, nnan"),
        ("with fx.arith.fastmath(3.5):\n    pass", "3.5 is no fast-math flag", "join them with |"),
        ("with fx.arith.fastmath(None):\n    pass", "None is no fast-math flag", "join them with |"),
        ("x = fx.arith.addf(A[0], 1.0, fastmath='fma')", "'fma' is no fast-math flag", "contract"),
    ],
)
def test_what_names_no_flags_is_refused(body: str, message: str, hint: str) -> None:
    with pytest.raises(TraceError) as caught:
        compile_body(body)
    assert message in caught.value.message and hint in (caught.value.hint or "")
    assert caught.value.where is not None and caught.value.where.line == 3


def test_a_scope_outside_of_a_kernel_would_hold_for_nothing() -> None:
    with pytest.raises(TraceError, match="inside an @flyc.kernel or @flyc.jit function only") as caught, \
            fx.arith.fastmath("fast"):
        pass
    assert "open the scope in the kernel" in (caught.value.hint or "")


def test_flags_are_mlirs() -> None:
    from mlir import ir
    from mlir.dialects import arith

    assert {f.name: f.value for f in arith.FastMathFlags} | {"none": 0, "fast": 127} == {
        name: member.value for name, member in FastMathFlags.__members__.items()
    }
    assert flags_of(arith.FastMathFlags.nsz) is FastMathFlags.nsz
    with ir.Context():
        both = ir.Attribute.parse("#arith.fastmath<nnan,contract>")
    assert flags_of(both) == FastMathFlags.nnan | FastMathFlags.contract


def test_known_numbers_fold_exactly_whatever_the_flags() -> None:
    assert fx.arith.divf(1.0, fx.Float32(3.0), fastmath="fast").value == float(np.float32(1) / np.float32(3))
    assert math.isnan(fx.arith.max(fx.Float32(math.nan), 1.0, fastmath="nnan").value)
    result: Any = fx.arith.MulFOp(fx.Float32(2.0), 4.0).result
    assert result.value == 8.0
