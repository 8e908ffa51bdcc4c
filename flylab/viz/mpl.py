"""A picture drawn by matplotlib: for PNG, and for those who want to go on in a matplotlib figure."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from flylab.errors import ToolchainError
from flylab.viz.picture import MONO_ADVANCE, Line, Picture, Rect, Text
from flylab.viz.svg import fixed

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 100


def figure(picture: Picture) -> Figure:
    """The picture as a matplotlib figure of its size in pixels at 100 dpi; not registered with pyplot."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ToolchainError("PNG pictures need matplotlib, which is not installed",
                             hint="pip install matplotlib; to_svg, to_html and to_text work without it") from error
    result = Figure(figsize=(picture.width / DPI, picture.height / DPI), dpi=DPI, facecolor=fixed("paper"))
    FigureCanvasAgg(result)
    axes = result.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, picture.width), ylim=(picture.height, 0))
    axes.axis("off")
    draw: dict[type, Callable[..., None]] = {Rect: _rects, Line: _lines, Text: _texts}
    for order, (kind, run) in enumerate(groupby(picture.items, key=type)):
        draw[kind](axes, list(run), order)
    return result


def png(picture: Picture, scale: float = 2) -> bytes:
    """The picture as PNG bytes, `scale` pixels for each of its own.

    256 colours are enough for these pictures, and make the file a third as large as true colour does: a notebook keeps
    it beside the SVG.
    """
    drawn: Any = figure(picture)
    drawn.set_dpi(DPI * scale)
    with warnings.catch_warnings():
        # A comment in the user's source may hold any sign; where the font lacks it, a box is drawn.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        drawn.canvas.draw()
    from PIL import Image  # matplotlib needs it, so it is there

    pixels = Image.fromarray(np.asarray(drawn.canvas.buffer_rgba())).convert("RGB")
    buffer = io.BytesIO()
    pixels.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "png")
    return buffer.getvalue()


def _rects(axes: Any, rects: list[Rect], order: int) -> None:
    from matplotlib.collections import PolyCollection

    corners = [[(r.x, r.y), (r.x + r.w, r.y), (r.x + r.w, r.y + r.h), (r.x, r.y + r.h)] for r in rects]
    axes.add_collection(PolyCollection(
        corners, facecolors=[fixed(r.fill) if r.fill else "none" for r in rects],
        edgecolors=[fixed(r.stroke) if r.stroke else "none" for r in rects],
        linewidths=[r.stroke_width * 72 / DPI for r in rects], zorder=order), autolim=False)


def _lines(axes: Any, lines: list[Line], order: int) -> None:
    from matplotlib.collections import LineCollection

    axes.add_collection(LineCollection(
        [[(n.x1, n.y1), (n.x2, n.y2)] for n in lines], colors=[fixed(n.stroke) for n in lines],
        linewidths=[n.width * 72 / DPI for n in lines], zorder=order), autolim=False)


def _texts(axes: Any, texts: list[Text], order: int) -> None:
    align = {"start": "left", "middle": "center", "end": "right"}
    for text in texts:
        family = "DejaVu Sans Mono" if text.mono else "DejaVu Sans"
        size = text.size if text.mono else text.size * 0.9  # DejaVu Sans is wide beside a page's system font
        x = text.x
        for part, colour in text.spans:
            axes.text(x, text.y, part, color=fixed(colour), fontsize=size * 72 / DPI, family=family,
                      weight="bold" if text.bold else "normal", ha=align[text.anchor], va="baseline", zorder=order,
                      parse_math=False)
            x += len(part) * text.size * MONO_ADVANCE
