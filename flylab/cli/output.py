"""What commands print: tables, JSON, colours where a terminal has them, errors as sentences."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, TextIO

from flylab import settings
from flylab.errors import FlylabError
from flylab.places import of_traceback

RED, GREEN, YELLOW = 31, 32, 33


def prepare() -> bool:
    """Make the standard streams fit for any text; whether there is a standard output.

    A stream that is closed is replaced by one that leads nowhere. What a terminal's encoding lacks is shown by its
    number, and is no error.
    """
    there = sys.stdout is not None
    if not there:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - it lives as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure") and stream.encoding.lower().replace("-", "") != "utf8":
            stream.reconfigure(errors="backslashreplace")
    return there


def discard() -> None:
    """Let nothing more be written to the standard output, which nobody reads."""
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    os.dup2(sys.stdout.fileno(), 1)


def paint(text: str, colour: int, stream: TextIO | None = None) -> str:
    """The text in a colour, where the stream is a terminal and NO_COLOR is not set."""
    stream = stream or sys.stdout
    return f"\x1b[{colour}m{text}\x1b[0m" if stream.isatty() and not settings.NO_COLOR.source else text


def say(text: str) -> None:
    """Print a line for the person who waits, beside what the command gives."""
    print(text, file=sys.stderr, flush=True)


def say_error(error: FlylabError) -> None:
    """Print an error as its sentence."""
    say(f"{paint('error:', RED, sys.stderr)} {error}")


def plain(error: BaseException) -> dict[str, Any]:
    """An error as plain data: its kind, the message, the hint, and the place in the user's source."""
    where, message, hint = None, str(error), None
    if isinstance(error, FlylabError):
        where, message, hint = error.where, error.message, error.hint
    where = where or of_traceback(error.__traceback__)
    return {"kind": type(error).__name__, "message": message, "hint": hint,
            "file": where.file if where else None, "line": where.line if where else None}


def print_json(value: Any) -> None:
    """Print a value as JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=not _is_unicode()))


def _is_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


def table(rows: Sequence[Sequence[Any]], heading: Sequence[str] = (), right: Sequence[int] = ()) -> str:
    """Rows as columns, the first line the heading; columns of the numbers in `right` are set to the right.

    Where a terminal ends, the last column is wrapped, or stands below where it has no room at all; a table of numbers
    that is wider has its rows as columns.

    >>> print(table([("a", 7), ("bb", 128)], ("name", "size"), right=[1]))
    name  size
    a        7
    bb     128
    """
    cells = [[str(cell) for cell in row] for row in ([heading] if heading else []) + list(rows)]
    if right and heading and _width(cells) > _columns() >= _width(turned := [*zip(*cells, strict=True)]):
        return table(turned)
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = []
    for row in cells:
        padded = [cell.rjust(w) if n in right else cell.ljust(w)
                  for n, (cell, w) in enumerate(zip(row, widths, strict=True))]
        lines.append(_wrapped("  ".join([*padded[:-1], ""]), padded[-1].rstrip()))
    return "\n".join(lines)


def _columns() -> int:
    """The width of the terminal; of what is none, more than any table has."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def _width(cells: Sequence[Sequence[str]]) -> int:
    return sum(2 + max(map(len, column)) for column in zip(*cells, strict=True)) - 2


def _wrapped(before: str, last: str) -> str:
    columns = _columns()
    if len(before) + len(last) <= columns:
        return (before + last).rstrip()
    if columns - len(before) < 20:
        below = textwrap.fill(last, columns, initial_indent="    ", subsequent_indent="    ")
        return f"{before.rstrip()}\n{below}"
    return textwrap.fill(last, columns, initial_indent=before, subsequent_indent=" " * len(before))
