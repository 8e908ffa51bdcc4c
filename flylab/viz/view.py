"""A `View`: a scene with its renderers. It shows itself at the end of a notebook cell."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flylab.errors import FlylabError
from flylab.locks import cached_property
from flylab.viz import grid_paint, grid_text, html, mpl, passes_page, passes_paint, svg
from flylab.viz.picture import Picture
from flylab.viz.scene import Scene

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Bundle = tuple[dict[str, str], dict[str, dict[str, int]]]  # contents by MIME type, and the size of some


@dataclass(frozen=True)
class Painter:
    """How scenes of one kind become a static picture and text, and the body of a page where that is more than both."""

    picture: Callable[[Scene], Picture]
    text: Callable[[Scene], str]
    body: Callable[[Scene], str] | None = None


_GRID = Painter(grid_paint.paint, grid_text.text)
PAINTERS = {"layout": _GRID, "tv": _GRID,
            "pipeline": Painter(passes_paint.paint, passes_paint.text, passes_page.body)}


class View:
    """A scene that draws itself: as SVG, PNG, an HTML page, text, or a matplotlib figure.

    The SVG is the same, byte for byte, for the same content. A cell shows SVG, with PNG where SVG is not trusted and
    one line of text where neither can be shown.

    :raises FlylabError: for a scene of a kind that has no painter.

    >>> from flylab.viz import layout
    >>> from flylab.layout import make_layout
    >>> view = layout(make_layout((2, 2), (1, 2)))
    >>> view.to_svg().startswith("<svg"), view.to_html().startswith("<!doctype html>")
    (True, True)
    """

    def __init__(self, scene: Scene):
        if scene.kind not in PAINTERS:
            raise FlylabError(f"no view draws a scene of kind {scene.kind!r}", hint="one of " + ", ".join(PAINTERS))
        self.scene = scene
        self._painter = PAINTERS[scene.kind]

    @cached_property
    def picture(self) -> Picture:
        """The static picture: rectangles, lines and texts in pixels."""
        return self._painter.picture(self.scene)

    def to_svg(self) -> str:
        """One SVG element on a light ground of its own, without ids."""
        return svg.render(self.picture)

    def to_png(self, scale: float = 2) -> bytes:
        """The static picture as PNG bytes, `scale` pixels for each of the picture's.

        :raises ToolchainError: where matplotlib is not installed.
        """
        return mpl.png(self.picture, scale)

    def to_mpl(self) -> Figure:
        """The static picture as a matplotlib figure, in pixels from the top left corner.

        :raises ToolchainError: where matplotlib is not installed.
        """
        return mpl.figure(self.picture)

    def to_html(self) -> str:
        """A page of its own, with light and dark themes, that needs no network."""
        own = self._painter.body
        body = own(self.scene) if own else html.figure(self.picture, self.to_text())
        return html.page(self.scene.title, self.scene.summary, body)

    def to_text(self) -> str:
        """The view in characters, for a terminal."""
        return self._painter.text(self.scene)

    def save(self, path: str | Path) -> Path:
        """Write the view to a file of the kind that its name says: .svg, .png, .html, .txt or .json (the scene).

        :returns: the path.
        :raises FlylabError: for another ending, or where the file cannot be written.

        >>> import tempfile
        >>> from flylab.layout import make_layout
        >>> from flylab.viz import layout
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     layout(make_layout((4, 8), (8, 1))).save(f"{folder}/rows.svg").name
        'rows.svg'
        """
        path = Path(path)
        writers: dict[str, Callable[[], str | bytes]] = {
            ".svg": self.to_svg, ".png": self.to_png, ".html": self.to_html, ".txt": lambda: self.to_text() + "\n",
            ".json": lambda: json.dumps(self.scene.to_json()) + "\n"}
        kinds = ", ".join(writers)
        if path.suffix.lower() not in writers:
            raise FlylabError(f"a view is saved as {kinds}, and the name {path.name!r} ends in none of them",
                              hint=f'view.save("{path.stem or "view"}.svg")')
        content = writers[path.suffix.lower()]()
        try:
            path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        except OSError as error:
            raise FlylabError(f"{str(path)!r} cannot be written: {error.strerror}",
                              hint="name a file in a folder that exists and that you may write to") from error
        return path

    def __repr__(self) -> str:
        return self.scene.summary

    def __str__(self) -> str:
        return self.to_text()

    def _repr_mimebundle_(self, include: Collection[str] | None = None, exclude: Collection[str] | None = None,
                          **_: Any) -> Bundle:
        make: dict[str, Callable[[], str]] = {
            "image/svg+xml": self.to_svg,
            "image/png": lambda: base64.b64encode(self.to_png()).decode("ascii"),
            "text/plain": lambda: repr(self),
        }
        data = {mime: render() for mime, render in make.items()
                if (not include or mime in include) and mime not in (exclude or ())}
        # The PNG has two pixels for each of the picture's; without its size it would be shown twice as large.
        size = {"width": self.picture.width, "height": self.picture.height}
        return data, {"image/png": size} if "image/png" in data else {}
