"""A stand-in for a runtime integer: it knows only what the algebra promises to use, and counts the operations."""

from __future__ import annotations

from typing import Any


class Opaque:
    """A hidden integer with `*`, `+`, `//` and `%` by an int on the right, and `+` of two of its kind."""

    def __init__(self, hidden: int, operations: list[str]):
        self.hidden, self.operations = hidden, operations

    def _by(self, name: str, other: Any, result: int) -> Opaque:
        self.operations.append(name)
        return Opaque(result, self.operations)

    def __mul__(self, factor: Any) -> Opaque:
        assert type(factor) is int and factor not in (0, 1)
        return self._by("*", factor, self.hidden * factor)

    def __add__(self, other: Any) -> Opaque:
        assert type(other) in (int, Opaque) and other != 0
        return self._by("+", other, self.hidden + (other.hidden if isinstance(other, Opaque) else other))

    def __floordiv__(self, divisor: Any) -> Opaque:
        assert type(divisor) is int and divisor > 1
        return self._by("//", divisor, self.hidden // divisor)

    def __mod__(self, divisor: Any) -> Opaque:
        assert type(divisor) is int and divisor > 1
        return self._by("%", divisor, self.hidden % divisor)

    def __index__(self) -> int:
        raise AssertionError("a runtime value has no number while a kernel is traced")

    __bool__ = __index__  # type: ignore[assignment]


def revealed(value: Any) -> Any:
    """The hidden numbers of a result that may hold runtime values."""
    if isinstance(value, tuple):
        return tuple(map(revealed, value))
    return value.hidden if isinstance(value, Opaque) else value
