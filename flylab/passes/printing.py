"""Printing IR for people: the text without its location clutter, and the Python line of each line of it."""

from __future__ import annotations

import re
from typing import Any

from flylab.passes.recording import lines_of

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_USE = re.compile(r' loc\((#loc\d*|unknown|"[^"]*"(?::\d+:\d+|\(#loc\d*\))?)\)')
_PLACE = re.compile(r'("[^"]*"):(\d+):\d+')


def text_with_lines(module: Any, file: str) -> tuple[str, tuple[int | None, ...]]:
    """The text of a module, and for each line the line in the Python file `file` (None for what is from elsewhere)."""
    from mlir import ir

    # The file as locations spell it, with MLIR's escapes.
    quoted = str(ir.Location.file(file, 0, 0)).removeprefix("loc(").removesuffix(":0:0)")
    places: dict[str, int | None] = {}
    body: list[str] = []
    for line in lines_of(module.operation.get_asm(enable_debug_info=True)):
        alias = _ALIAS.match(line)
        if alias:
            places[alias[1]] = _line_of(alias[2], places, quoted)
        elif not line.startswith("#di_"):  # debug scopes of LLVM, of no use to a reader
            body.append(line)
    texts, lines = [], []
    for line in body:
        # Function arguments have locations too; the operation's own is the last.
        uses = _USE.findall(line)
        texts.append(_USE.sub("", line))
        lines.append(_line_of(uses[-1], places, quoted) if uses else None)
    return "\n".join(texts), tuple(lines)


def _line_of(location: str, places: dict[str, int | None], file: str) -> int | None:
    if location in places:
        return places[location]
    place = _PLACE.search(location)
    if place:
        return int(place[2]) if place[1] == file else None
    inner = re.search(r"#loc\d*", location)
    return places.get(inner[0]) if inner else None
