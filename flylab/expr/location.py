"""Where in the user's source an operation comes from: the innermost frame that is neither flylab's nor Python's own."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType, TracebackType
from typing import Any

from flylab.errors import SourceLine

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_KERNELS = os.path.join(_HERE, "kernels") + os.sep
_LIBRARY = os.path.dirname(os.__file__) + os.sep
_own_file: dict[str, bool] = {}
_spans: dict[CodeType, list[tuple[int | None, int | None, int | None, int | None]]] = {}


def is_own(filename: str) -> bool:
    """True for a file of flylab itself; the kernels that ship with it count as a user's."""
    own = _own_file.get(filename)
    if own is None:
        own = filename.startswith(_HERE) and not filename.startswith(_KERNELS)
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


def _position(code: CodeType, instruction: int, fallback: int) -> tuple[int, int | None, int | None]:
    """Line, first column and last column (None where not known) of a byte code instruction."""
    spans = _spans.get(code)
    if spans is None:
        spans = _spans[code] = list(code.co_positions())
    line, end_line, column, end_column = spans[instruction // 2]
    if line is None:
        return fallback, None, None
    if end_line != line and column is not None:
        end_column = 10_000  # The statement goes on: underline to the end of this line.
    return line, column, end_column


def here() -> SourceLine | None:
    """The user's line that is running now."""
    frame = user_frame()
    return None if frame is None else _source_line(frame.f_code, frame.f_lasti, frame.f_lineno)


def _source_line(code: CodeType, instruction: int, fallback: int) -> SourceLine:
    line, column, end_column = _position(code, instruction, fallback)
    return SourceLine.of(code.co_filename, line, column, end_column, code.co_name)


_locations: dict[tuple[str, int, int], Any] = {}


def mlir_location() -> Any:
    """The MLIR location of the user's line that is running now (columns count from 1 there)."""
    from mlir import ir

    frame = user_frame()
    if frame is None:
        return ir.Location.unknown()
    line, column, _ = _position(frame.f_code, frame.f_lasti, frame.f_lineno)
    key = (frame.f_code.co_filename, line, (column or 0) + 1)
    found = _locations.get(key)
    if found is None:
        found = _locations[key] = ir.Location.file(*key)
    return found


def name_of(value: Any, fallback: str) -> str:
    """The name that the user's frame has for an object, quoted; else `fallback`."""
    frame = user_frame()
    if frame is not None:
        for name, bound in frame.f_locals.items():
            if bound is value and not name.startswith("_"):
                return f"'{name}'"
    return fallback


def of_traceback(traceback: TracebackType | None) -> SourceLine | None:
    """The innermost line of user code that an exception passed through."""
    found = None
    while traceback is not None:
        if not _is_passed_over(traceback.tb_frame):
            found = (traceback.tb_frame.f_code, traceback.tb_lasti, traceback.tb_lineno)
        traceback = traceback.tb_next
    return None if found is None else _source_line(*found)
