"""A page of its own for a view: styles, script and pictures inline, light and dark, no network."""

from __future__ import annotations

from functools import cache
from html import escape
from pathlib import Path

from flylab.viz import svg
from flylab.viz.palette import DARK, LIGHT
from flylab.viz.picture import Picture

STATIC = Path(__file__).parent / "static"


@cache
def _static(name: str) -> str:
    return (STATIC / name).read_text(encoding="utf-8")


def _variables(theme: dict[str, str], scheme: str) -> str:
    return "".join(f"--{role}:{colour};" for role, colour in theme.items()) + f"color-scheme:{scheme}"


def page(title: str, summary: str, body: str) -> str:
    """A whole page; the reader's system chooses the theme, the button changes it.

    >>> page("a", "b", "<p>c</p>").startswith("<!doctype html>")
    True
    """
    light, dark = _variables(LIGHT, "light"), _variables(DARK, "dark")
    themes = (f":root{{{light}}}\n@media (prefers-color-scheme: dark) {{ :root{{{dark}}} }}\n"
              f":root.light{{{light}}}\n:root.dark{{{dark}}}\n")
    return "\n".join([
        "<!doctype html>", '<html lang="en">', '<head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(title)}</title>", f"<style>\n{themes}{_static('page.css')}</style></head>", "<body>",
        f'<header><h1>{escape(title)}</h1><p>{escape(summary)}</p>'
        '<button id="theme" type="button">Light or dark</button></header>',
        f"<main>\n{body}\n</main>", f"<script>\n{_static('page.js')}</script>", "</body></html>\n",
    ])


def figure(picture: Picture, text: str) -> str:
    """A static picture in the page's theme, what belongs together lit under the pointer, and its text below.

    >>> figure(Picture(10, 10, "a", "b", ()), "words").count("<svg")
    1
    """
    drawing = svg.render(picture, svg.themed, keyed=True)
    return (f'<div class="figure" tabindex="0" role="region" aria-label="Picture">\n{drawing}</div>\n'
            f'<details><summary>As text</summary><pre tabindex="0" role="region" aria-label="Text">{escape(text)}</pre>'
            "</details>")
