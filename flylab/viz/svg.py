"""A picture as SVG text: hand-written, so that the same picture gives the same bytes everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from html import escape
from itertools import groupby

from flylab.viz.palette import LIGHT
from flylab.viz.picture import Item, Line, Picture, Rect, Text

MONO = "ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace"
SANS = "system-ui,'Segoe UI',Helvetica,Arial,sans-serif"
Paint = Callable[[str], str]
words = partial(escape, quote=False)


def number(value: float) -> str:
    """A coordinate with at most two decimals, in its shortest form.

    >>> number(3.0), number(2.5), number(1.006)
    ('3', '2.5', '1.01')
    """
    return f"{value:.2f}".rstrip("0").rstrip(".")


def fixed(colour: str) -> str:
    """The light theme's value of a role; data colours stay.

    >>> fixed("paper"), fixed("#56b4e9")
    ('#ffffff', '#56b4e9')
    """
    return LIGHT.get(colour, colour)


def themed(colour: str) -> str:
    """A role as the page's CSS variable; data colours stay.

    >>> themed("ink")
    'var(--ink)'
    """
    return f"var(--{colour})" if colour in LIGHT else colour


def _style(item: Item) -> tuple[object, ...]:
    """What consecutive items must share to be written as one group."""
    if isinstance(item, Rect):
        return ("rect", item.fill, item.stroke, item.stroke_width, bool(item.key))
    if isinstance(item, Line):
        return ("line", item.stroke, item.width)
    return ("text", item.size, item.anchor, item.bold, item.mono)


def _outline(rect: Rect) -> str:
    w, h = number(rect.w), number(rect.h)
    return f"M{number(rect.x)} {number(rect.y)}h{w}v{h}h-{w}z"


def _rects(rects: list[Rect], paint: Paint, keyed: bool) -> str:
    """Rectangles of one style: one path, or where the page links them by key, an element each."""
    first = rects[0]
    style = f'fill="{paint(first.fill) if first.fill else "none"}"'
    if first.stroke:
        style += f' stroke="{paint(first.stroke)}" stroke-width="{number(first.stroke_width)}"'
    if not (keyed and first.key):
        return f'<path {style} d="{"".join(map(_outline, rects))}"/>'
    each = "".join(f'<path data-k="{escape(r.key)}" d="{_outline(r)}"/>' for r in rects)
    return f"<g {style}>{each}</g>"


def _lines(lines: list[Line], paint: Paint, _: bool) -> str:
    path = "".join(f"M{number(n.x1)} {number(n.y1)}L{number(n.x2)} {number(n.y2)}" for n in lines)
    return f'<path fill="none" stroke="{paint(lines[0].stroke)}" stroke-width="{number(lines[0].width)}" d="{path}"/>'


def _texts(texts: list[Text], paint: Paint, _: bool) -> str:
    first = texts[0]
    style = f'font-family="{MONO if first.mono else SANS}" font-size="{number(first.size)}"'
    style += f' text-anchor="{first.anchor}"' if first.anchor != "start" else ""
    style += ' font-weight="600"' if first.bold else ""
    return f"<g {style}>{''.join(_text(t, paint) for t in texts)}</g>"


def _text(text: Text, paint: Paint) -> str:
    (_, colour), *rest = text.spans
    head = f'<text x="{number(text.x)}" y="{number(text.y)}" fill="{paint(colour)}">'
    spans = [words(text.spans[0][0])]
    for part, tint in rest:
        spans.append(words(part) if tint == colour else f'<tspan fill="{paint(tint)}">{words(part)}</tspan>')
    return head + "".join(spans) + "</text>"


def render(picture: Picture, paint: Paint = fixed, keyed: bool = False) -> str:
    """The picture as one SVG element with title and description. It has no ids: a page may hold it any number of times.

    `paint` gives the value of a colour role; `keyed` keeps an element for each keyed rectangle, for linking.
    """
    writers: dict[object, Callable[..., str]] = {"rect": _rects, "line": _lines, "text": _texts}
    body = [writers[style[0]](list(run), paint, keyed) for style, run in groupby(picture.items, key=_style)]
    size = f'width="{picture.width}" height="{picture.height}" viewBox="0 0 {picture.width} {picture.height}"'
    names = f'aria-label="{escape(f"{picture.title}: {picture.desc}")}"'
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" {names} xml:space="preserve">',
        f"<title>{words(picture.title)}</title>",
        f"<desc>{words(picture.desc)}</desc>",
        f'<rect width="{picture.width}" height="{picture.height}" fill="{paint("paper")}"/>',
        *body,
        "</svg>\n",
    ])
