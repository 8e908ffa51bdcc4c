"""What is known of code objects, by identity, for as long as each of them lives."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import Generic, TypeVar

T = TypeVar("T")


class ByCode(Generic[T]):
    """A value for each of some code objects. Python takes codes for equal whose files or lines differ, so identity
    counts; an entry goes when its code does.

    >>> known = ByCode()
    >>> one, two = (compile("x", "<file>", "eval") for _ in range(2))
    >>> known[one] = 1
    >>> one == two, known.get(one), known.get(two), len(known)
    (True, 1, None, 1)
    >>> del one
    >>> len(known)
    0
    """

    def __init__(self) -> None:
        self._kept: dict[int, tuple[weakref.ref[CodeType], T]] = {}

    def __setitem__(self, code: CodeType, value: T) -> None:
        number, kept = id(code), self._kept
        kept[number] = weakref.ref(code, lambda _: kept.pop(number, None)), value

    def __contains__(self, code: CodeType) -> bool:
        return id(code) in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, code: CodeType) -> T | None:
        """The value of a code object; None where there is none."""
        found = self._kept.get(id(code))
        return None if found is None else found[1]
