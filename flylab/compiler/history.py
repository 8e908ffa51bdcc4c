"""The last two compilations that a kernel or launcher was part of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass
class History:
    """They are shared by all functions of one name in one module: one defined anew goes on where the last one was."""

    last: Any = None
    before: Any = None
    found: str = ""
    """Where the last call found its compilation, "" where it made one: of the calls that looked for one."""

    @classmethod
    def of(cls, function: Any, decorator: str) -> History:
        """That of the kernel or launcher that stands under the function's name while it is defined, or a new one."""
        old = function.__globals__.get(function.__name__)
        same = function.__name__ == function.__qualname__ and getattr(old, "decorator", None) == decorator
        return getattr(old, "history", None) or cls() if same else cls()

    def add(self, compilation: Any) -> None:
        """Another compilation was made, or read from disk."""
        self.last, self.before, self.found = compilation, self.last, ""
