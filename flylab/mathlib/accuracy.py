"""What each function of `fx.math` promises, one row each.

Distances are in ulp: units in the last place of the result's format at the exact value (2**-149 for Float32 where that
is denormal). Special values (zeros with their sign, infinities, NaN, and what is out of a function's domain) are those
of C, Annex F. Denormal arguments and results are kept in every format.

The rows of `PROMISED` hold for every argument, on any device and while tracing alike, since no step depends on an
instruction whose bits AMD does not publish. Those of `APPROXIMATE` are for fast-math `afn` and rest on what AMD states
for v_exp_f32, v_log_f32, v_rcp_f32, v_rsq_f32 and v_sqrt_f32 (1 ulp); for v_sin_f32 and v_cos_f32 it states
none, and 1 ulp is taken.
"""

from __future__ import annotations

from dataclasses import dataclass

Span = tuple[float, float]


@dataclass(frozen=True)
class Promise:
    """A bound in ulp for Float32, and for Float16 and BFloat16, which are computed in Float32 and rounded again.

    `spans` are intervals where the function is interesting, `near` points that its special places are close to: what
    measures it looks there closely, beside all magnitudes.
    """

    name: str
    single: float
    half: float = 0.501
    spans: tuple[Span, ...] = ()
    near: tuple[float, ...] = ()


# 0.501 is a rounding of a Float64 of about 35 right bits; 0.5 a correct rounding. exp and exp2, which compute in
# Float32, were measured on every Float32: 0.976 and 0.911.
PROMISED = {p.name: p for p in (
    Promise("sqrt", 0.5, 0.5, ((0.0, 10.0),), (1.0,)),
    Promise("rsqrt", 0.501, 0.501, ((0.0, 10.0),), (1.0,)),
    Promise("cbrt", 0.501, spans=((-30.0, 30.0),), near=(1.0, 8.0)),
    Promise("exp", 1.0, spans=((-104.0, 89.0), (-1.0, 1.0)), near=(0.0, 88.72284, -87.33655, -103.97208, -48.8659)),
    Promise("exp2", 1.0, spans=((-150.0, 128.0), (-1.0, 1.0)), near=(0.0, 0.5, 128.0, -126.0, -149.0, -126.4997)),
    Promise("expm1", 0.501, spans=((-20.0, 89.0), (-1.0, 1.0)), near=(0.0, 88.72284, -0.3465736)),
    Promise("log", 0.501, spans=((0.0, 4.0),), near=(1.0, 0.70710677, 1.4142135)),
    Promise("log2", 0.501, spans=((0.0, 4.0),), near=(1.0, 0.70710677, 1.4142135)),
    Promise("log10", 0.501, spans=((0.0, 4.0),), near=(1.0, 0.70710677, 1.4142135)),
    Promise("log1p", 0.501, spans=((-1.0, 3.0),), near=(-1.0, -0.29289323, 0.41421357)),
    Promise("powf", 0.501, spans=((0.5, 2.0), (-60.0, 60.0)), near=(1.0, -1.0, 2.0)),
    Promise("sin", 0.501, spans=((-10.0, 10.0), (-1e6, 1e6), (2.0**29, 2.0**31), (2.0**100, 2.0**128))),
    Promise("cos", 0.501, spans=((-10.0, 10.0), (-1e6, 1e6), (2.0**29, 2.0**31), (2.0**100, 2.0**128))),
    Promise("tan", 0.501, spans=((-10.0, 10.0), (-1e6, 1e6), (2.0**29, 2.0**31), (2.0**100, 2.0**128))),
    Promise("asin", 0.501, spans=((-1.0, 1.0),), near=(1.0, -1.0)),
    Promise("acos", 0.501, spans=((-1.0, 1.0),), near=(1.0, -1.0)),
    Promise("atan", 0.501, spans=((-4.0, 4.0),), near=(0.41421357, 2.4142135)),
    Promise("atan2", 0.501, spans=((-4.0, 4.0),), near=(1.0, 0.41421357)),
    Promise("sinh", 0.501, spans=((-90.0, 90.0), (-1.0, 1.0)), near=(89.41599,)),
    Promise("cosh", 0.501, spans=((-90.0, 90.0), (-1.0, 1.0)), near=(89.41599,)),
    Promise("tanh", 0.501, spans=((-10.0, 10.0), (-1.0, 1.0)), near=(9.010913,)),
    Promise("asinh", 0.501, spans=((-4.0, 4.0),)),
    Promise("acosh", 0.501, spans=((1.0, 4.0),), near=(1.0,)),
    Promise("atanh", 0.501, spans=((-1.0, 1.0),), near=(1.0, -1.0)),
    Promise("erf", 0.501, spans=((-4.1, 4.1), (-1.0, 1.0)), near=(3.9192059,)),
    Promise("erfc", 0.501, spans=((-4.0, 10.1), (-1.0, 1.0)), near=(10.0546875, 9.194)),
)}


@dataclass(frozen=True)
class Approximation:
    """Under `afn`: for Float32 arguments in [low, high] a bound in ulp, or where `absolute`, of the difference."""

    name: str
    low: float
    high: float
    bound: float
    absolute: bool = False


APPROXIMATE = {a.name: a for a in (
    Approximation("sqrt", 2.0**-120, 2.0**127, 2.0),
    Approximation("rsqrt", 2.0**-120, 2.0**127, 2.0),
    Approximation("exp", -87.0, 88.0, 70.0),
    Approximation("exp2", -126.0, 127.5, 2.0),
    Approximation("log", 2.0**-120, 2.0**127, 1.5e-5, True),
    Approximation("log2", 2.0**-120, 2.0**127, 1.5e-5, True),
    Approximation("log10", 2.0**-120, 2.0**127, 1e-5, True),
    Approximation("sin", -100.0, 100.0, 1e-5, True),
    Approximation("cos", -100.0, 100.0, 1e-5, True),
    Approximation("tan", -1.5, 1.5, 5e-5, True),
    Approximation("tanh", -100.0, 100.0, 2e-7, True),
)}
