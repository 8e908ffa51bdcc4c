"""How `flylab/mathlib/coefficients.py` was made: `python -m tests.mathlib.fit` prints its rows anew.

Each row interpolates a smooth function at Chebyshev points, which is within a small factor of the best polynomial of
its degree. The functions are Python's and numpy's, or series where a quotient loses digits; numbers are doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial

HALF_LN2 = math.log(2) / 2 * 1.0001
EIGHTH = (math.sqrt(2) - 1) ** 2 * 1.001  # tan(pi / 8), squared
QUARTER = (math.pi / 4) ** 2 * 1.001
ERFC_CENTER, ERFC_END = 3.0, 10.2


@dataclass(frozen=True)
class Fit:
    """A polynomial for `function` on [low, high]; `bits` is what the relative error must be below, as 2**-bits."""

    name: str
    meaning: str
    function: Callable[[float], float]
    low: float
    high: float
    degree: int
    bits: float

    def coefficients(self) -> tuple[float, ...]:
        """The coefficients, lowest first."""
        wrapped = np.vectorize(self.function, otypes=[float])
        found = Chebyshev.interpolate(wrapped, self.degree, domain=[self.low, self.high])
        return tuple(map(float, found.convert(kind=Polynomial, domain=[-1, 1], window=[-1, 1]).coef))

    def error(self, coefficients: tuple[float, ...]) -> float:
        """The largest relative error of a polynomial on 5001 points."""
        points = np.linspace(self.low, self.high, 5001)
        exact = np.array([self.function(float(x)) for x in points])
        return float(np.max(np.abs(Polynomial(coefficients)(points) / exact - 1)))


def _over(function: Callable[[float], float], at_zero: float) -> Callable[[float], float]:
    """function(x) / x, and its limit at 0."""
    return lambda x: function(x) / x if x else at_zero


def _of_root(function: Callable[[float], float]) -> Callable[[float], float]:
    """function(sqrt(s)) / sqrt(s), for odd functions of slope 1."""
    return lambda s: function(math.sqrt(s)) / math.sqrt(s) if s else 1.0


def exp_rest(r: float) -> float:
    """(e**r - 1 - r) / r**2, by its series."""
    return sum(r**n / math.factorial(n + 2) for n in range(14))


def erf_exponent(t: float) -> float:
    """-log(erfc(a)) / a with a = 2 (t + 1)."""
    a = 2 * (t + 1)
    if a == 0:
        return 2 / math.sqrt(math.pi)
    return -math.log1p(-math.erf(a)) / a if a < 1 else -math.log(math.erfc(a)) / a


def erfc_scaled(q: float) -> float:
    """exp(a**2) erfc(a) (1 + 2 a) with q = (a - 3) / (a + 3)."""
    a = ERFC_CENTER * (1 + q) / (1 - q)
    return math.exp(a * a) * math.erfc(a) * (1 + 2 * a)


ROWS = (
    Fit("EXP_REST", "(e**r - 1 - r) / r**2", exp_rest, -HALF_LN2, HALF_LN2, 4, 22.7),
    Fit("EXP2_SLOPE", "(2**r - 1) / r", _over(lambda r: math.expm1(r * math.log(2)), math.log(2)), -0.5, 0.5, 5, 26.2),
    Fit("EXPM1", "(e**r - 1) / r", _over(math.expm1, 1.0), -HALF_LN2, HALF_LN2, 7, 37.4),
    Fit("LOG1P", "log(1 + f) / f", _over(math.log1p, 1.0), math.sqrt(0.5) - 1, math.sqrt(2) - 1, 12, 35.5),
    Fit("LOG1P_FINE", "log(1 + f) / f", _over(math.log1p, 1.0), math.sqrt(0.5) - 1, math.sqrt(2) - 1, 15, 43.3),
    Fit("SINE", "sin(sqrt s) / sqrt s", _of_root(math.sin), 0.0, QUARTER, 4, 37.5),
    Fit("COSINE", "cos(sqrt s)", lambda s: math.cos(math.sqrt(s)), 0.0, QUARTER, 5, 43.4),
    Fit("ARCTANGENT", "atan(sqrt s) / sqrt s", _of_root(math.atan), 0.0, EIGHTH, 6, 35.3),
    Fit("ERF_EXPONENT", "-log(erfc(a)) / a, a = 2 (t + 1)", erf_exponent, -1.0, 1.0, 15, 35.9),
    Fit("ERFC_SCALED", "exp(a**2) erfc(a) (1 + 2 a), q = (a - 3) / (a + 3)", erfc_scaled, -1.0,
        (ERFC_END - ERFC_CENTER) / (ERFC_END + ERFC_CENTER), 12, 33.9),
)

HEADER = '''"""The polynomials of the recipes, lowest coefficient first. `tests/mathlib/fit.py` made them."""

from __future__ import annotations
'''


def text() -> str:
    """The file."""
    parts = [HEADER]
    for row in ROWS:
        lines = "".join(f"    {value!r},\n" for value in row.coefficients())
        parts.append(f"# {row.meaning} on [{row.low:.6g}, {row.high:.6g}], relative error below 2**-{row.bits}\n"
                     f"{row.name} = (\n{lines})\n")
    return "\n".join(parts)


if __name__ == "__main__":
    print(text(), end="")
