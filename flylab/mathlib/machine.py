"""What a recipe computes with, and the steps that several recipes share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

Value = Any
"""A number, or a vector of numbers, of a machine. Values of one kind have Python's operators: + - * / and comparisons
on floats; + - & | ^, << and >> (which keeps the sign) on integers; & | ~ on truth values. A Python number beside one is
a constant of its kind."""


class Machine(Protocol):
    """The steps of a recipe beside operators. Kinds are f16, bf16, f32, f64, i32, i64 and i1."""

    def constant(self, value: float, beside: Value) -> Value:
        """A Python number as a value of the kind of another."""

    def to(self, x: Value, kind: str) -> Value:
        """A float in another float kind, rounded to nearest even."""

    def fma(self, x: Value, y: Value, z: Value | float) -> Value:
        """x * y + z, rounded once; `y` may be a Python number."""

    def select(self, condition: Value, x: Value, y: Value) -> Value:
        """`x` where the condition holds, else `y`; one of them may be a Python number."""

    def rounded(self, x: Value, how: str) -> Value:
        """A float as an integral one: `how` is roundeven, trunc, floor, ceil or round (halves away from zero)."""

    def absolute(self, x: Value) -> Value:
        """|x|."""

    def with_sign(self, x: Value, sign: Value) -> Value:
        """|x| with the sign of `sign`, of a NaN and of zero too."""

    def sqrt(self, x: Value) -> Value:
        """The square root, rounded correctly."""

    def scaled(self, x: Value, exponent: Value) -> Value:
        """x * 2**exponent, rounded once; the exponent an i32."""

    def integer(self, x: Value) -> Value:
        """A float that is an integer of 32 bits as an i32; any i32 for what is none."""

    def number(self, i: Value) -> Value:
        """A signed integer as f64."""

    def bits(self, x: Value) -> Value:
        """The bits of an f32 as i32, of an f64 as i64."""

    def of_bits(self, i: Value) -> Value:
        """The float with these bits."""

    def wide(self, i: Value) -> Value:
        """An i32, read as unsigned, as i64."""

    def low(self, i: Value) -> Value:
        """The low half of an i64, as i32."""

    def shifted_down(self, i: Value, count: Value | int) -> Value:
        """An integer shifted right, zeros coming in."""

    def product(self, x: Value, y: Value) -> Value:
        """The product of two integers, wrapped."""

    def where(self, condition: Value, compute: Callable[[], tuple[Value, ...]], other: Sequence[Value]) -> list[Value]:
        """What `compute` gives where the condition holds, and is only computed for; `other` elsewhere."""

    def loop(self, condition: Callable[[list[Value]], Value], step: Callable[[list[Value]], list[Value]],
             state: list[Value]) -> list[Value]:
        """The state after steps that go on while the condition holds for any element; a step too many changes nothing
        of what is used."""

    def smallest_normal(self, x: Value) -> float:
        """The least positive number of x's format that is not denormal."""

    def native(self, name: str, x: Value) -> Value:
        """An f32 function of the hardware or of LLVM's short form of it: for fast-math `afn` alone."""


def polynomial(m: Machine, x: Value, coefficients: Sequence[float]) -> Value:
    """c0 + c1 x + c2 x**2 ..., by Horner's rule."""
    result = m.fma(x, coefficients[-1], coefficients[-2])
    for value in reversed(coefficients[:-2]):
        result = m.fma(result, x, value)
    return result


def limited(m: Machine, x: Value, most: float) -> Value:
    """x, or `most` with its sign where it is larger in size; NaN stays."""
    return m.select(m.absolute(x) > most, m.with_sign(m.constant(most, x), x), x)

