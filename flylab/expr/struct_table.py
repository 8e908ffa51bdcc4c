"""The bytes of a struct as a table, and offsets of several things in one piece of memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flylab.expr.struct_layout import Laid, alignof, checked_align, kind_of, name_of_kind, round_up, sizeof


@dataclass(frozen=True)
class Table:
    """The bytes of a struct or union, field by field: prints as text, and in a notebook as a table.

    `rows` are (offset, size, alignment, field, type); padding has the field "" and the alignment 1.
    """

    kind: Laid
    rows: tuple[tuple[int, int, int, str, str], ...]

    HEAD = ("offset", "size", "align", "field", "type")

    @property
    def title(self) -> str:
        """The type's name, with its size and alignment."""
        word = "union" if self.kind.is_union else "struct"
        return f"{word} {self.kind.__name__}: {self.kind.size} bytes, aligned to {self.kind.align}"

    def __str__(self) -> str:
        cells = [self.HEAD, *(tuple(map(str, row)) for row in self.rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(self.HEAD))]
        aligned = [[cell.rjust(w) if column < 3 else cell.ljust(w)
                    for column, (cell, w) in enumerate(zip(row, widths, strict=True))] for row in cells]
        lines = ("  ".join(row) for row in aligned)
        return "\n".join([self.title, *(line.rstrip() for line in lines)])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{name}</th>" for name in self.HEAD)
        rows = []
        for row in self.rows:
            style = "" if row[3] else ' style="opacity: 0.6"'
            rows.append(f"<tr{style}>" + "".join(f"<td>{escape(str(cell))}</td>" for cell in row) + "</tr>")
        return (f"<table><caption>{escape(self.title)}</caption><thead><tr>{head}</tr></thead>"
                f"<tbody>{''.join(rows)}</tbody></table>")


def table_of(kind: Laid) -> Table:
    """The table of a struct or union; fields of fields are listed below them, with their offsets in the whole."""
    return Table(kind, tuple(_rows(kind, 0, "")))


def _rows(kind: Laid, base: int, prefix: str) -> Iterator[tuple[int, int, int, str, str]]:
    at = 0
    for field in kind.fields.values():
        if field.offset > at and not kind.is_union:
            yield base + at, field.offset - at, 1, "", "padding"
        yield base + field.offset, field.size, field.align, prefix + field.name, name_of_kind(field.kind)
        if isinstance(field.kind, Laid):
            yield from _rows(field.kind, base + field.offset, f"{prefix}{field.name}.")
        at = max(at, field.offset + field.size)
    if at < kind.size:
        yield base + at, kind.size - at, 1, "", "padding"


class Arena:
    """Offsets for things that are placed one after the other, each at a multiple of its alignment.

    >>> import flylab.expr as fx
    >>> arena = Arena()
    >>> arena.allocate(fx.Array[fx.Float16, 3]), arena.allocate(fx.Float64), arena.size
    (0, 8, 16)
    """

    def __init__(self, base_alignment: int = 16):
        self.alignment = checked_align(base_alignment, None, f"Arena({base_alignment!r})")
        """Bytes that its start is aligned to: the largest alignment that was needed."""
        self.size = 0
        """Bytes so far."""

    def allocate(self, kind: Any, alignment: int = 1) -> int:
        """The offset in bytes of a new thing of this type."""
        kind, asked = kind_of(kind, "what an Arena allocates")
        align = max(asked, alignof(kind), checked_align(alignment, None, "allocate"))
        offset = round_up(self.size, align)
        self.size, self.alignment = offset + sizeof(kind), max(self.alignment, align)
        return offset
