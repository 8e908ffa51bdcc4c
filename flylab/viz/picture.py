"""A picture as a list of rectangles, lines and texts in pixels: laid out once, then written as SVG, PNG or HTML."""

from __future__ import annotations

from dataclasses import dataclass

# Width of one character over its size. DejaVu Sans Mono and Menlo have 0.602, the widest of the common ones; the
# proportional estimate is that of DejaVu Sans, wider than system-ui and Arial. So nothing is cut in another font.
MONO_ADVANCE = 0.602
SANS_ADVANCE = 0.60
PAGE_WIDTH = 960  # a notebook cell's output, in pixels


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle; `fill` and `stroke` are `#rrggbb` or the name of a role (see palette)."""

    x: float
    y: float
    w: float
    h: float
    fill: str
    stroke: str = ""
    stroke_width: float = 1
    key: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    stroke: str = "line"
    width: float = 1


@dataclass(frozen=True, slots=True)
class Text:
    """A line of text with its baseline at `y`, in spans of (text, colour)."""

    x: float
    y: float
    spans: tuple[tuple[str, str], ...]
    size: float = 11
    anchor: str = "start"
    bold: bool = False
    mono: bool = True

    @property
    def text(self) -> str:
        """The text without its colours."""
        return "".join(part for part, _ in self.spans)

    @property
    def width(self) -> float:
        """An upper estimate of the width in pixels, in any common font."""
        return text_width(self.text, self.size, self.mono)


Item = Rect | Line | Text


@dataclass(frozen=True)
class Picture:
    """Items in drawing order on a sheet of `width` x `height` pixels, with the words that stand in for it."""

    width: int
    height: int
    title: str
    desc: str
    items: tuple[Item, ...]


def text_width(text: str, size: float, mono: bool = True) -> float:
    """An upper estimate of a text's width in pixels.

    >>> text_width("ab", 10)
    12.04
    """
    return len(text) * size * (MONO_ADVANCE if mono else SANS_ADVANCE)


def fit(text: str, width: float, size: float, mono: bool = True) -> str:
    """`text`, cut with an ellipsis where it is wider than `width` pixels.

    >>> fit("global_load_dwordx4", 50, 10)
    'global_…'
    """
    room = max(1, int(width / (size * (MONO_ADVANCE if mono else SANS_ADVANCE)) + 1e-6))
    return text if len(text) <= room else text[: room - 1] + "…"


def label(x: float, y: float, text: str, colour: str = "ink", size: float = 11, anchor: str = "start",
          bold: bool = False, mono: bool = True) -> Text:
    """A text of one colour.

    >>> label(0, 10, "T3").text
    'T3'
    """
    return Text(x, y, ((text, colour),), size, anchor, bold, mono)
