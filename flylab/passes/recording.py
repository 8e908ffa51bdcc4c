"""What the compiler keeps to show: one `Stage` for each step of a kernel's way, from Python to ISA."""

from __future__ import annotations

from dataclasses import dataclass

LANGUAGES = ("python", "mlir", "llvm", "isa")


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
        if len(self.lines) != len(self.text.splitlines()):
            raise ValueError(f"stage {self.name!r} has {len(self.text.splitlines())} lines and {len(self.lines)} links")

    def __str__(self) -> str:
        return self.text
