"""What the compiler keeps to show: one `Stage` for each step of a kernel's way, from Python to ISA."""

from __future__ import annotations

from dataclasses import dataclass

LANGUAGES = ("python", "mlir", "llvm", "isa")


def lines_of(text: str) -> list[str]:
    r"""The lines of a text as Python and LLVM count them: only `\n` ends one, unlike in `str.splitlines`.

    >>> lines_of("a\x0cb\nc\n")
    ['a\x0cb', 'c']
    """
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


@dataclass(frozen=True)
class Stage:
    """The text of a kernel after one step, and the Python line that each line of it came from.

    `name` is the step ("source", "rewritten", "ir", a pass's name, "llvm", "isa"). `lines[i]` is the line in the
    user's file (counted from 1) of line `i` of `text`, or None where a line came from none.
    """

    name: str
    language: str
    text: str
    lines: tuple[int | None, ...]
    changed: bool = True

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise ValueError(f"unknown language {self.language!r}")
        if len(self.lines) != len(lines_of(self.text)):
            raise ValueError(f"stage {self.name!r} has {len(lines_of(self.text))} lines and {len(self.lines)} links")

    def __str__(self) -> str:
        return self.text
