"""Reading the text of int tuples, layouts, swizzles, composed layouts and tiles, the inverse of `str`."""

from __future__ import annotations

import re
from typing import Any

from flylab.errors import LayoutError
from flylab.layout.basis import Basis
from flylab.layout.int_tuple import DEEPEST, leaves, shown
from flylab.layout.layout import Layout
from flylab.layout.runtime_int import is_number, parse_runtime
from flylab.layout.swizzle import ComposedLayout, Swizzle

_TOKEN = re.compile(r"\s*((?:[A-Za-z0-9_*]{1,200})?\?(?:\{[^{}]{1,99}\})?(?:E[0-9]{1,9})*"
                    r"|-?[0-9]{1,100}(?:E[0-9]{1,9})*"
                    r"|S<\s*[0-9]{1,9}\s*,\s*[0-9]{1,9}\s*,\s*-?[0-9]{1,9}\s*>|[(),:*|\[\]o])")


class _Reader:
    """The tokens of one text, read from left to right."""

    def __init__(self, source: str):
        self.source = source
        self.tokens: list[tuple[str, int]] = []
        at, end = 0, len(source.rstrip())
        while at < end:
            match = _TOKEN.match(source, at)
            if not match:
                raise self.error(at)
            self.tokens.append((match[1], match.start(1)))
            at = match.end()
        self.next = 0
        self.open = 0

    def error(self, at: int) -> LayoutError:
        found = f"unexpected {self.source[at]!r} at character {at}" if at < len(self.source) else "it ends too early"
        return LayoutError(f"cannot read {self.source!r} as a layout: {found}",
                           hint="write it as (8,16):(1,8), S<3,3,3> o 0 o (64,64):(64,1) or [4|8]")

    def peek(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    def place(self) -> int:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else len(self.source)

    def take(self, *wanted: str) -> str:
        token = self.peek()
        if not token or wanted and token not in wanted:
            raise self.error(self.place())
        self.next += 1
        return token

    def items(self, read: Any, separator: str, close: str) -> tuple[Any, ...]:
        if self.open == DEEPEST:
            raise self.error(self.place())
        self.open += 1
        self.take()
        items = [read()]
        while self.take(separator, close) == separator:
            items.append(read())
        self.open -= 1
        return tuple(items)

    def int_tuple(self) -> Any:
        token = self.peek()
        if token == "(":
            return self.items(self.int_tuple, ",", ")")
        if token == "*":
            self.take()
            return None
        named, mark, rest = token.rpartition("?")
        number, *path = (rest if mark else token).split("E")
        whole = token.strip("-")[:1].isdigit()
        value = parse_runtime(named + mark + number) if mark else int(number) if whole else None
        if value is None:
            raise self.error(self.place())
        self.take()
        if not path:
            return value
        indices = tuple(map(int, path))
        return Basis(value, indices) if type(value) is int else value * Basis(1, indices)

    def term(self) -> Any:
        """A swizzle, a tile, a layout or an int tuple."""
        if self.peek().startswith("S<"):
            return Swizzle(*map(int, self.take()[2:-1].split(",")))
        if self.peek() == "[":
            return self.items(self.term, "|", "]")
        value = self.int_tuple()
        if self.peek() != ":":
            return value
        self.take()
        if self.peek() == "*":
            raise self.error(self.place())
        return Layout(value, self.int_tuple())

    def whole(self) -> Any:
        places = [self.place()]
        parts: list[Any] = [self.term()]
        while self.peek() == "o":
            self.take()
            places.append(self.place())
            parts.append(self.term())
        if len(parts) % 2 == 0 and self.is_offset(parts[0], places[0]):
            # The offset comes first where there is no outer part.
            parts.insert(0, None)
            places.insert(0, 0)
        if self.next < len(self.tokens) or len(parts) % 2 == 0:
            raise self.error(self.place())
        # Composition groups from the left: what stands before the last offset is the outer part.
        result = parts[0]
        for i in range(1, len(parts), 2):
            if not self.is_offset(parts[i], places[i]):
                raise self.error(places[i])
            result = ComposedLayout(result, parts[i], parts[i + 1])
        return result

    def is_offset(self, part: Any, place: int) -> bool:
        """Whether a part is a number or a coordinate; a tile in brackets is neither."""
        return self.source[place] != "[" and all(map(is_number, leaves(part)))


def parse(source: str) -> Any:
    """The value that `str` or `text` wrote: an int tuple, a Layout, Swizzle, ComposedLayout, or a tile as a tuple.

    Raises LayoutError naming the first character that does not fit.

    >>> parse("(4,(2,8)):(1,(4,8))"), parse("[4:2|[2|*]]")
    (Layout((4, (2, 8)), (1, (4, 8))), (Layout(4, 2), (2, None)))
    >>> str(parse("S<3,3,3> o 0 o (64,64):(64,1)"))
    'S<3,3,3> o 0 o (64,64):(64,1)'
    >>> parse("(0,8) o (4,8):(1E0,1E1)")(3, 5)
    (3, 13)
    """
    if not isinstance(source, str):
        raise LayoutError(f"{shown(source)} is not a text", hint='give a text such as "(8,16):(1,8)"')
    return _Reader(source).whole()


def tile_text(tile: Any, levels: int = DEEPEST) -> str:
    """The text of a tile, with `|` between modes, `*` for None, and `...` for what lies deeper than `levels`.

    >>> tile_text((Layout(4, 2), (2, None)))
    '[4:2|[2|*]]'
    """
    if isinstance(tile, (tuple, list)):
        inner = [tile_text(each, levels - 1) for each in tile] if levels else ["..."]
        return "[" + "|".join(inner) + "]"
    return "*" if tile is None else str(tile)
