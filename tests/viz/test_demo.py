"""The demo's page in a real Chromium: colours of code in both themes, a narrow screen, the numbers of the cells."""

from __future__ import annotations

import io
from typing import Any

import pytest

from flylab import viz
from flylab.lab.demo import page
from flylab.layout import Layout

pytestmark = pytest.mark.browser
CODE = 'def add(a, b):  # a sum\n    return f"{a}" if a else 12 + b\n'
TABLE = "| station | what it is |\n|---|---|\n| 8 | `viz.layout`, `viz.tv`, `viz.pipeline`, `viz.a_long_name` |"


@pytest.fixture(scope="module")
def demo() -> str:
    """The page of a notebook that was run: text with a table, and two cells with numbers of their own."""
    v4 = pytest.importorskip("nbformat.v4")
    view = viz.layout(Layout((8, 32), (32, 1)))
    bundle, metadata = view._repr_mimebundle_()
    picture = v4.new_output("execute_result", bundle, metadata=metadata, execution_count=7)
    printed = v4.new_output("stream", name="stdout", text="cell In[3], line 2\n")
    return page(v4.new_notebook(cells=[
        v4.new_markdown_cell(f"# The tour\n\n{TABLE}"),
        v4.new_code_cell(CODE, execution_count=3, outputs=[printed]),
        v4.new_code_cell("viz.layout(rows)", execution_count=7, outputs=[picture]),
    ]), "the tour")


def opened(browser: Any, html: str, theme: str, width: int) -> Any:
    shown = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=theme)
    shown.set_content(html)
    return shown


def test_code_has_colours_of_its_theme_that_can_be_read(browser: Any, demo: str) -> None:
    found = {}
    for theme in ("light", "dark"):
        axe = pytest.importorskip("axe_playwright_python.sync_playwright")
        shown = opened(browser, demo, theme, 390)
        found[theme] = shown.evaluate("""[...document.querySelectorAll(".highlight pre span")]
            .filter(e => e.textContent.trim()).map(e => getComputedStyle(e).color)""")
        result = axe.Axe().run(shown)
        assert result.violations_count == 0, result.generate_report()
        shown.close()
    # Comment, keyword, string, number and name at least differ from each other, and every one between the themes.
    assert min(len(set(colours)) for colours in found.values()) >= 4
    assert all(light != dark for light, dark in zip(found["light"], found["dark"], strict=True))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_corners_of_a_code_box_are_the_pages_ground(theme: str, browser: Any, demo: str) -> None:
    import matplotlib.image

    shown = opened(browser, demo, theme, 1200)
    box = shown.locator(".highlight pre").first
    assert box.evaluate("e => getComputedStyle(e).borderTopRightRadius") == "6px"
    pixels = matplotlib.image.imread(io.BytesIO(box.screenshot()))
    ground = shown.evaluate("getComputedStyle(document.body).backgroundColor")
    corner = "rgb({}, {}, {})".format(*(round(float(v) * 255) for v in pixels[0, -1, :3]))
    assert corner == ground
    shown.close()


@pytest.mark.parametrize("width", [320, 390, 960, 1200])
def test_the_page_does_not_overflow_sideways(width: int, browser: Any, demo: str) -> None:
    shown = opened(browser, demo, "light", width)
    assert shown.evaluate("document.documentElement.scrollWidth") <= width
    drawn = shown.evaluate("e => [e.getBoundingClientRect().width, e.naturalWidth]",
                           shown.query_selector(".output_svg img"))
    # On a narrow screen a picture keeps its size, and scrolls; small writing could not be read.
    assert drawn[0] == drawn[1] or width == 960
    shown.close()


def test_a_cell_shows_the_number_that_its_errors_name(browser: Any, demo: str) -> None:
    shown = opened(browser, demo, "light", 390)
    visible = shown.evaluate("""[...document.querySelectorAll(".prompt")].filter(e => e.offsetParent)
        .map(e => e.textContent.trim())""")
    assert visible == ["In\N{NO-BREAK SPACE}[3]:", "In\N{NO-BREAK SPACE}[7]:"]
    shown.close()
