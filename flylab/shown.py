"""Text that a notebook cell shows as it is: with its lines, and without quotation marks."""

from __future__ import annotations


class Text(str):
    """A text whose `repr` is itself, so that a cell or a prompt that ends in it shows what `print` does.

    >>> Text("two\\nlines")
    two
    lines
    """

    def __repr__(self) -> str:
        return str(self)
