"""The pages and pictures in a real Chromium: text fits, what belongs together lights up, accessible in both themes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from flylab.viz import View
from flylab.viz.passes import REMOVED
from flylab.viz.picture import Rect, Text
from tests.viz.views import VIEWS

pytestmark = pytest.mark.browser
THEMES = ("light", "dark")


@pytest.fixture
def show(browser: Any) -> Iterator[Any]:
    """`show(html, "dark")` opens a page that may not reach the network, and fails on an error of its script."""
    pages = []

    def opened(html: str, theme: str = "light") -> Any:
        page = browser.new_page(viewport={"width": 1200, "height": 800}, color_scheme=theme)
        pages.append(page)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: errors.append(f"asked for {request.url}"))
        page.set_content(html)
        page.errors = errors
        return page

    yield opened
    for page in pages:
        assert page.errors == []
        page.close()


BOXES = """() => [...document.querySelectorAll("svg text")].map(t => {
  const b = t.getBBox(); return [t.textContent, b.x, b.y, b.x + b.width, b.y + b.height]; })"""


@pytest.mark.parametrize("name", VIEWS)
def test_no_text_leaves_its_cell_or_meets_another(name: str, show: Any) -> None:
    picture = VIEWS[name]().picture
    boxes = show(VIEWS[name]().to_svg()).evaluate(BOXES)
    texts = [item for item in picture.items if isinstance(item, Text)]
    assert sorted(box[0] for box in boxes) == sorted(text.text for text in texts)
    cells = [item for item in picture.items if isinstance(item, Rect) and item.key]
    for text, left, top, right, bottom in boxes:
        assert left >= 0 and top >= 0 and right <= picture.width and bottom <= picture.height, text
        x, y = (left + right) / 2, (top + bottom) / 2
        for cell in cells:
            if cell.x <= x <= cell.x + cell.w and cell.y <= y <= cell.y + cell.h:
                assert cell.x <= left and right <= cell.x + cell.w, text
                assert cell.y - 1 <= top and bottom <= cell.y + cell.h + 1, text
    boxes.sort(key=lambda box: box[2])
    for k, one in enumerate(boxes):
        for other in boxes[k + 1 :]:
            if other[2] >= one[4] - 2:
                break
            apart = one[3] <= other[1] + 0.5 or other[3] <= one[1] + 0.5
            assert apart or other[4] <= one[2] + 2, (one, other)


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["columns", "nested", "shared", "pipeline"])
def test_axe_finds_nothing(name: str, theme: str, show: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page = show(VIEWS[name]().to_html(), theme)
    result = axe.Axe().run(page)
    assert result.violations_count == 0, result.generate_report()


@pytest.mark.parametrize("theme", THEMES)
def test_the_theme_follows_the_system_and_the_button(theme: str, show: Any) -> None:
    page = show(VIEWS["columns"]().to_html(), theme)
    ground = "getComputedStyle(document.querySelector('svg > rect')).fill"
    light, dark = "rgb(255, 255, 255)", "rgb(13, 17, 23)"
    assert page.evaluate(ground) == (dark if theme == "dark" else light)
    page.click("#theme")
    assert page.evaluate(ground) == (light if theme == "dark" else dark)
    page.click("#theme")
    assert page.evaluate(ground) == (dark if theme == "dark" else light)


def lit(page: Any, selector: str) -> list[int]:
    """The positions, among the elements of a selector, of those with the thick stroke that lights them."""
    return page.evaluate("""selector => [...document.querySelectorAll(selector)]
        .map((e, k) => getComputedStyle(e).strokeWidth === "2.5px" ? k : -1).filter(k => k >= 0)""", selector)


@pytest.mark.parametrize("name", ["partition", "shared"])
def test_hovering_an_element_lights_those_of_its_thread(name: str, show: Any) -> None:
    view = VIEWS[name]()
    page = show(view.to_html())
    keys = page.evaluate("[...document.querySelectorAll('svg [data-k]')].map(e => e.dataset.k)")
    target = keys.index("tv-2")
    page.locator("svg [data-k]").nth(target).hover()
    assert lit(page, "svg [data-k]") == [k for k, key in enumerate(keys) if key == "tv-2"]
    # Every element that Python's focus names and that is drawn: none of these two views' thread 2 is thinned away.
    assert len(lit(page, "svg [data-k]")) == len(view.scene.focus("thread", 2)["element"])
    page.mouse.move(0, 0)
    assert lit(page, "svg [data-k]") == []


def lit_lines(page: Any) -> list[str]:
    return page.evaluate("""() => { const lit = getComputedStyle(document.documentElement).getPropertyValue("--lit");
        const probe = document.body.appendChild(document.createElement("p")); probe.style.background = lit;
        const colour = getComputedStyle(probe).backgroundColor; probe.remove();
        return [...document.querySelectorAll(".l")].filter(e => getComputedStyle(e).backgroundColor === colour)
          .filter(e => e.offsetParent).map(e => e.querySelector(":scope > span").textContent); }""")


def expected_lines(view: View, number: int) -> list[str]:
    line, source = view.scene.facet("line"), view.scene.facet("source")
    rows = view.scene.focus("source", source.ints("number").index(number))["line"]
    return [line["text"][k] for k in rows if line.ints("mark")[k] != REMOVED]


def test_hovering_a_line_lights_its_python_line_in_every_pane(show: Any) -> None:
    view = VIEWS["pipeline"]()
    page = show(view.to_html())
    page.locator("[data-k=line-22]").first.hover()
    assert lit_lines(page) == expected_lines(view, 22)
    assert len(lit_lines(page)) > 20


def test_a_click_pins_until_escape_and_scrolls_the_other_panes(show: Any) -> None:
    view = VIEWS["pipeline"]()
    page = show(view.to_html())
    page.add_style_tag(content=".code { height: 90px !important; }")
    page.locator(".code").first.locator("[data-k=line-19]").click()
    page.locator("h1").hover()
    assert lit_lines(page) == expected_lines(view, 19)
    seen = page.evaluate("""[...document.querySelectorAll(".code")].map(pane => {
        const box = pane.getBoundingClientRect(), line = pane.querySelector("[data-k=line-19]:not(.gone)");
        const place = line.getBoundingClientRect(); return place.top >= box.top && place.bottom <= box.bottom; })""")
    assert all(seen) and len(seen) == 9
    page.keyboard.press("Escape")
    assert lit_lines(page) == []


def test_boxes_hide_a_pane_and_show_removed_lines(show: Any) -> None:
    page = show(VIEWS["pipeline"]().to_html())
    displays = "[...document.querySelectorAll('.l.gone')].map(e => getComputedStyle(e).display)"
    assert page.evaluate(displays) == ["none"] * (4 + 13 + 6 + 7)
    page.check("#removed")
    assert page.evaluate(displays) == ["flex"] * (4 + 13 + 6 + 7)
    assert page.locator(".pane:visible").count() == 9
    page.locator("input[data-pane]").nth(1).uncheck()
    assert page.locator(".pane:visible").count() == 8


def test_a_long_line_can_be_scrolled_to_its_end(show: Any) -> None:
    page = show(VIEWS["pipeline"]().to_html())
    right = page.evaluate("""() => { const pane = document.querySelector(".code"); pane.scrollLeft = 1e6;
        const ends = [...pane.querySelectorAll(".l > span")].map(e => e.getBoundingClientRect().right);
        return [Math.max(...ends), pane.getBoundingClientRect().right, pane.scrollLeft]; }""")
    assert right[2] > 0 and right[0] <= right[1] + 1


def test_the_page_holds_every_line_for_the_browsers_search(show: Any) -> None:
    view = VIEWS["pipeline"]()
    page = show(view.to_html())
    line = view.scene.facet("line")
    expected = [text for text, mark in zip(line["text"], line.ints("mark"), strict=True) if mark != REMOVED]
    assert page.evaluate("[...document.querySelectorAll('.l > span')].map(e => e.textContent)") == expected
