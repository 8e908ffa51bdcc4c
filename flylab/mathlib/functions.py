"""The functions of `fx.math` on floats, one row each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.mathlib import error_function, exponential, logarithm, simple, trigonometric
from flylab.mathlib.machine import Machine, Value

SINGLE = ("f32",)
"""Computed in f32; f16 and bf16 are converted to it and back."""
WIDE = ("f32", "f64")
OWN = ("f16", "f32", "f64")
EVERY = ("f16", "bf16", "f32", "f64")


@dataclass(frozen=True)
class Function:
    """A function: its name in `fx.math` and MLIR, its recipe, and the formats that the recipe computes in.

    `native` is the recipe under fast-math `afn`, where there is a shorter one, in f32 alone. `truth`: it gives a truth
    value. `steps`: the formats in which the operation is itself a step of recipes, and stays.
    """

    name: str
    recipe: Callable[..., Any]
    operands: int = 1
    kinds: tuple[str, ...] = SINGLE
    native: Callable[..., Any] | None = None
    truth: bool = False
    steps: tuple[str, ...] = ()
    results: int = 1

    def __call__(self, m: Machine, operands: tuple[Value, ...], kind: str, native: bool = False) -> tuple[Value, ...]:
        """The results on operands of a float kind, in that kind (or truth values)."""
        inner = self.kind_within(kind)
        recipe = self.native if native and self.native and inner == "f32" else self.recipe
        found = recipe(m, *(m.to(x, inner) for x in operands))
        results = found if isinstance(found, tuple) else (found,)
        return results if self.truth else tuple(m.to(m.to(x, inner), kind) for x in results)

    def kind_within(self, kind: str) -> str:
        """The format that operands of a format are computed in; "" for one that the function does not have."""
        return kind if kind in self.kinds else "" if kind == "f64" else "f32"


def _native(name: str) -> Callable[[Machine, Value], Value]:
    """LLVM's short form of a function."""
    return lambda m, x: m.native(f"llvm.{name}", x)


FUNCTIONS = {f.name: f for f in (
    Function("absf", simple.absf, kinds=EVERY, steps=EVERY),
    Function("copysign", simple.copysign, 2, kinds=EVERY, steps=("f16", "bf16", "f32")),
    Function("fma", simple.fma, 3, kinds=OWN, steps=OWN),
    *(Function(name, getattr(simple, name), kinds=OWN) for name in ("floor", "ceil", "trunc", "roundeven")),
    Function("round", simple.round_away, kinds=OWN),
    Function("clampf", simple.clampf, 3, kinds=OWN),
    *(Function(name, getattr(simple, name), kinds=OWN, truth=True) for name in (
        "isnan", "isinf", "isfinite", "isnormal")),
    Function("sqrt", simple.sqrt, kinds=WIDE, native=simple.native_sqrt),
    Function("rsqrt", simple.rsqrt, kinds=WIDE, native=simple.native_rsqrt),
    *(Function(name, getattr(exponential, name), native=_native(name)) for name in ("exp", "exp2")),
    *(Function(name, getattr(exponential, name)) for name in ("expm1", "sinh", "cosh")),
    Function("tanh", exponential.tanh, native=exponential.native_tanh),
    *(Function(name, getattr(logarithm, name), native=_native(name)) for name in ("log", "log2", "log10")),
    *(Function(name, getattr(logarithm, name)) for name in ("log1p", "asinh", "acosh", "atanh", "cbrt")),
    Function("powf", logarithm.powf, 2),
    *(Function(name, getattr(trigonometric, name), native=_native(name)) for name in ("sin", "cos")),
    Function("sincos", trigonometric.sincos, native=trigonometric.native_sincos, results=2),
    Function("tan", trigonometric.tan, native=trigonometric.native_tan),
    *(Function(name, getattr(trigonometric, name)) for name in ("asin", "acos", "atan")),
    Function("atan2", trigonometric.atan2, 2),
    *(Function(name, getattr(error_function, name)) for name in ("erf", "erfc")),
)}
