"""The one error family of flylab.

Every error that a user can meet is a `FlylabError`. It carries the message in the user's words, the place in the
user's source (when there is one) and one way to mend it, and prints as

    my_kernel.py, line 18, in vector_add
        fx.copy(atom, tA, rA)
        ^^^^^^^^^^^^^^^^^^^^^
    the copy moves 4 elements, but 'rA' holds 8
    hint: give the atom 256 bits, or slice 'rA' to (4,)
"""

from __future__ import annotations

import linecache
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class SourceLine:
    """A place in the user's source: a file (or notebook cell), a line counted from 1, and optional columns from 0.

    >>> print(SourceLine("k.py", 18, "x = y", function="f"))
    k.py, line 18, in f
        x = y
    """

    file: str
    line: int
    text: str = ""
    column: int | None = None
    end_column: int | None = None
    function: str | None = None

    @classmethod
    def of(cls, file: str, line: int, column: int | None = None, end_column: int | None = None,
           function: str | None = None) -> SourceLine:
        """The place with its text, read from the file or from linecache (cells, `exec`)."""
        return cls(file, line, linecache.getline(file, line).rstrip("\n"), column, end_column, function)

    def __str__(self) -> str:
        place = cell_name(self.file) or self.file
        where = f"{place}, line {self.line}" + (f", in {self.function}" if self.function else "")
        if not self.text.strip():
            return where
        lines = [where, "    " + self.text.strip()]
        if self.column is not None and self.end_column is not None and self.end_column > self.column:
            indent = len(self.text) - len(self.text.lstrip())
            # A statement of several lines is underlined to the end of its first.
            width = min(self.end_column, len(self.text)) - self.column
            lines.append("    " + " " * (self.column - indent) + "^" * max(width, 1))
        return "\n".join(lines)


def cell_name(file: str) -> str | None:
    """`cell In[3]` for the file name of a notebook cell; None for any other file."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    named = shell.compile.format_code_name(file) if shell is not None else None
    return f"cell {named[1]}" if named and named[0] == "Cell" else None


class FlylabError(Exception):
    """Base of all errors of flylab: a message, where it happened in the user's source, and a hint."""

    def __init__(self, message: str, *, where: SourceLine | None = None, hint: str | None = None):
        self.message = message
        self.where = where
        self.hint = hint
        super().__init__(message)

    def __str__(self) -> str:
        parts = [str(self.where)] if self.where else []
        parts.append(self.message)
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows: the error in the user's words, without the frames inside flylab."""
        if self.where is None:
            raise AttributeError("an error without a place shows Python's traceback")
        return [f"\x1b[31m{type(self).__name__}\x1b[39m: {self}"]

    def at(self, where: SourceLine | None) -> FlylabError:
        """The same error, placed at `where` unless it already has a place."""
        if self.where is None:
            self.where = where
        return self


class LayoutError(FlylabError, ValueError):
    """A layout that cannot exist, or an operation that no layout can represent."""


class TraceError(FlylabError):
    """A kernel that cannot be traced: its Python does something that has no meaning on the device."""


class NotSupportedError(TraceError):
    """A part of the language that flylab knows of and does not do; the message names it."""


class ArgumentError(FlylabError, TypeError):
    """A launch argument that does not fit the parameter it is given for."""


class CompileError(FlylabError):
    """A pass or the code generator refused the program."""


class ToolchainError(FlylabError):
    """A tool or package that is needed is missing; the hint names the command that brings it."""


class DeviceError(FlylabError):
    """A kernel went wrong while it ran, or no device can run it."""


class UnknownInstruction(DeviceError):
    """An instruction, or a form of one, that the software device does not execute."""


class OutOfBounds(DeviceError):
    """A kernel touched memory that none of its arguments holds."""
