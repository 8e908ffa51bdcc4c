"""Where something happened in the user's source: lines of files and notebook cells, and the frames that count.

What counts is the innermost frame that is neither flylab's nor Python's own.
"""

from __future__ import annotations

import linecache
import os
import sys
from dataclasses import dataclass
from types import CodeType, FrameType, TracebackType
from typing import Any

from flylab.by_code import ByCode

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_KERNELS = os.path.join(_HERE, "kernels") + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_own_file: dict[str, bool] = {}
_spans: ByCode[list[tuple[int | None, int | None, int | None, int | None]]] = ByCode()
TEXTS: dict[str, list[str]] = {}
"""The lines of files that were edited after their import, as they were at the import."""


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
        lines = TEXTS.get(file) or linecache.getlines(file)
        text = lines[line - 1].rstrip("\n") if 1 <= line <= len(lines) else ""
        return cls(file, line, text, column, end_column, function)

    @property
    def name(self) -> str:
        """The cell as a notebook numbers it, or the file without its folders."""
        return cell_name(self.file) or os.path.basename(self.file)

    @property
    def place(self) -> str:
        """The file, or the cell as a notebook numbers it, and the line.

        >>> SourceLine("k.py", 18, "x = y").place
        'k.py, line 18'
        """
        return f"{cell_name(self.file) or self.file}, line {self.line}"

    def __str__(self) -> str:
        where = self.place + (f", in {self.function}" if self.function else "")
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
    shell = ipython()
    named = shell.compile.format_code_name(file) if shell is not None else None
    return f"cell {named[1]}" if named and named[0] == "Cell" else None


def ipython() -> Any:
    """IPython's shell where one runs (a notebook's kernel has one), or None."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def is_own(filename: str) -> bool:
    """True for a file of flylab itself, or a text that it wrote; the kernels that ship with it count as a user's."""
    own = _own_file.get(filename)
    if own is None:
        own = filename.startswith((_HERE, "<flylab ")) and not filename.startswith(_KERNELS)
        _own_file[filename] = own
    return own


def user_frame() -> FrameType | None:
    """The innermost frame of user code on this thread's stack, or None."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_passed_over(frame):
        frame = frame.f_back
    return frame


def _is_passed_over(frame: FrameType) -> bool:
    """True for frames of flylab, of Python's own library, and of code that a library generated (dataclasses)."""
    file = frame.f_code.co_filename
    if file == "<string>":
        return str(frame.f_globals.get("__name__")).startswith("flylab.")
    return is_own(file) or file.startswith(("<frozen", _LIBRARY)) and "-packages" not in file


def position(code: CodeType, instruction: int, fallback: int) -> tuple[int, int | None, int | None]:
    """Line, first column and last column (None where not known) of a byte code instruction."""
    found = _spans.get(code)
    if found is None:
        found = _spans[code] = list(code.co_positions())
    line, end_line, column, end_column = found[instruction // 2]
    if line is None:
        return fallback, None, None
    if end_line != line and column is not None:
        end_column = 10_000  # The statement goes on: underline to the end of this line.
    return line, column, end_column


def here() -> SourceLine | None:
    """The user's line that is running now."""
    frame = user_frame()
    return None if frame is None else _source_line(frame.f_code, frame.f_lasti, frame.f_lineno)


def _function_name(code: CodeType) -> str:
    """The function that code stands in: that of a lambda or a comprehension written in it is its own."""
    names = [name for name in code.co_qualname.split(".") if not name.startswith("<")]
    return names[-1] if names else code.co_name


def _source_line(code: CodeType, instruction: int, fallback: int) -> SourceLine:
    line, column, end_column = position(code, instruction, fallback)
    return SourceLine.of(code.co_filename, line, column, end_column, _function_name(code))


def of_traceback(traceback: TracebackType | None) -> SourceLine | None:
    """The innermost line of user code that an exception passed through."""
    found = _users_entry(traceback)
    return None if found is None else _source_line(found.tb_frame.f_code, found.tb_lasti, found.tb_lineno)


def user_frame_of(traceback: TracebackType | None) -> FrameType | None:
    """The frame of that line."""
    found = _users_entry(traceback)
    return None if found is None else found.tb_frame


def _users_entry(traceback: TracebackType | None) -> TracebackType | None:
    found = None
    while traceback is not None:
        if not _is_passed_over(traceback.tb_frame):
            found = traceback
        traceback = traceback.tb_next
    return found


def user_part(traceback: TracebackType | None, foreseen: bool = False) -> TracebackType | None:
    """A traceback without the frames of flylab; all of it where flylab itself went wrong, and did not foresee it."""
    entries: list[TracebackType] = []
    entry = traceback
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    own = [is_own(entry.tb_frame.f_code.co_filename) for entry in entries]
    if not foreseen and own[-1:] == [True]:
        return traceback
    kept: TracebackType | None = None
    for entry, is_flylabs in zip(reversed(entries), reversed(own), strict=True):
        if not is_flylabs:
            kept = TracebackType(kept, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return kept
