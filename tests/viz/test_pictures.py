"""Pictures: golden files, the same bytes from every process, ids, PNG and matplotlib, colours."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import struct
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from flylab import viz
from flylab.errors import FlylabError, ToolchainError
from flylab.layout import Layout, Swizzle, make_composed_layout
from flylab.passes.recording import Stage
from flylab.viz.palette import CATEGORIES, DARK, HEAT, LIGHT, contrast, ink_on
from flylab.viz.picture import PAGE_WIDTH, Line, Rect, Text
from tests.viz.views import VIEWS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", VIEWS)
def test_golden(name: str, golden) -> None:
    view = VIEWS[name]()
    golden(f"{name}.svg", view.to_svg())
    golden(f"{name}.txt", f"{view!r}\n{view}\n")


def test_other_processes_write_the_same_bytes() -> None:
    program = ("import hashlib\nfrom tests.viz.views import VIEWS\n"
               "for make in VIEWS.values():\n"
               "    v = make()\n"
               "    print(hashlib.sha256((v.to_svg() + v.to_html() + v.to_text()).encode()).hexdigest())\n")
    views = [make() for make in VIEWS.values()]
    here = [hashlib.sha256((v.to_svg() + v.to_html() + v.to_text()).encode()).hexdigest() for v in views]
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
        run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
        assert run.stderr == ""
        assert run.stdout.split() == here


def test_svg_needs_no_matplotlib() -> None:
    program = ("import sys\nsys.modules['matplotlib'] = None\nfrom tests.viz.views import VIEWS\n"
               "v = VIEWS['columns']()\nv.to_svg(), v.to_html(), v.to_text()\nv.to_png()\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert ToolchainError.__name__ in run.stderr and "hint: pip install matplotlib" in run.stderr


@pytest.mark.parametrize("name", VIEWS)
def test_svg_is_sound_and_described(name: str) -> None:
    view = VIEWS[name]()
    root = ElementTree.fromstring(view.to_svg())
    space = "{http://www.w3.org/2000/svg}"
    assert root.get("role") == "img"
    title, desc, ground = list(root)[:3]
    assert (title.tag, desc.tag) == (space + "title", space + "desc")
    assert root.get("aria-label") == f"{title.text}: {desc.text}"
    assert not [element for element in root.iter() if element.get("id")]
    assert title.text == view.scene.title and view.scene.summary in desc.text
    assert ground.get("fill") == "#ffffff" and ground.get("width") == root.get("width")
    assert "var(" not in view.to_svg() and "var(--ink)" in view.to_html()


@pytest.mark.parametrize("name", VIEWS)
def test_a_page_may_hold_a_picture_any_number_of_times(name: str) -> None:
    """A picture has no ids, and those of a view's own page are there once."""
    assert not re.findall(r'\bid="', VIEWS[name]().to_svg())
    ids = re.findall(r'\bid="([^"]+)"', VIEWS[name]().to_html())
    assert "theme" in ids and len(ids) == len(set(ids))
    assert set(re.findall(r'aria-labelledby="([^"]+)"', VIEWS[name]().to_html())) <= set(ids)


@pytest.mark.parametrize("name", VIEWS)
def test_nothing_leaves_the_sheet(name: str) -> None:
    picture = VIEWS[name]().picture
    assert picture.width <= PAGE_WIDTH
    for item in picture.items:
        if isinstance(item, Rect):
            box = (item.x, item.y, item.x + item.w, item.y + item.h)
        elif isinstance(item, Line):
            box = (item.x1, item.y1, item.x2, item.y2)
        else:
            assert isinstance(item, Text)
            left = item.x - item.width * {"start": 0, "middle": 0.5, "end": 1}[item.anchor]
            box = (left, item.y - item.size, left + item.width, item.y + item.size * 0.3)
        assert box[0] >= 0 and box[1] >= 0 and box[2] <= picture.width and box[3] <= picture.height, item


def test_a_cell_gets_svg_png_and_one_line_of_text() -> None:
    view = VIEWS["columns"]()
    bundle, metadata = view._repr_mimebundle_()
    assert set(bundle) == {"image/svg+xml", "image/png", "text/plain"}
    assert bundle["image/svg+xml"] == view.to_svg()
    assert base64.b64decode(bundle["image/png"]) == view.to_png()
    assert bundle["text/plain"] == "layout (8,16):(1,8), 128 elements, offsets 0 to 127"
    # The PNG has twice the picture's pixels, and is shown at the picture's size, as the SVG is.
    width, height = struct.unpack(">II", base64.b64decode(bundle["image/png"])[16:24])
    assert metadata == {"image/png": {"width": width // 2, "height": height // 2}}
    assert f'width="{width // 2}" height="{height // 2}"' in bundle["image/svg+xml"]
    assert set(view._repr_mimebundle_(include=["text/plain"])[0]) == {"text/plain"}
    data, metadata = view._repr_mimebundle_(exclude=["image/png"])
    assert set(data) == {"image/svg+xml", "text/plain"} and metadata == {}


@pytest.mark.parametrize(("name", "content"), [
    ("view.svg", lambda view: view.to_svg().encode()), ("view.PNG", lambda view: view.to_png()),
    ("view.html", lambda view: view.to_html().encode()), ("view.txt", lambda view: f"{view}\n".encode())])
def test_a_view_is_saved_as_its_name_says(name: str, content, tmp_path: Path) -> None:
    view = VIEWS["columns"]()
    assert view.save(str(tmp_path / name)) == tmp_path / name
    assert (tmp_path / name).read_bytes() == content(view)


def test_a_saved_scene_draws_the_same_view(tmp_path: Path) -> None:
    view = VIEWS["pipeline"]()
    scene = viz.Scene.from_json(json.loads(view.save(tmp_path / "view.json").read_text()))
    assert viz.View(scene).to_html() == view.to_html()


@pytest.mark.parametrize(("name", "message", "hint"), [
    ("view.pdf", ".svg, .png, .html, .txt, .json, and the name 'view.pdf' ends in none of them", "view.svg"),
    ("view", "the name 'view' ends in none", "view.svg"),
    ("none/view.svg", "view.svg' cannot be written: No such file or directory", "folder that exists")])
def test_a_view_that_cannot_be_saved(name: str, message: str, hint: str, tmp_path: Path) -> None:
    with pytest.raises(FlylabError) as caught:
        VIEWS["columns"]().save(tmp_path / name)
    assert message in caught.value.message and hint in caught.value.hint
    assert not list(tmp_path.iterdir())


def test_the_package_names_only_what_it_offers() -> None:
    assert dir(viz) == sorted(viz.__all__) == ["Scene", "View", "layout", "pipeline", "tv"]


def test_a_bare_layout_draws_itself_in_a_cell() -> None:
    from IPython.core.formatters import DisplayFormatter

    formatter = DisplayFormatter()
    formatter.active_types = ["image/svg+xml", "image/png", "text/plain"]
    for bare in (Layout((8, 16), (1, 8)), make_composed_layout(Swizzle(2, 0, 3), Layout((8, 8), (8, 1)))):
        data, metadata = formatter.format(bare)
        assert set(metadata["image/png"]) == {"width", "height"}
        assert data["image/svg+xml"] == viz.layout(bare).to_svg()
        assert data["text/plain"] == repr(viz.layout(bare))
    data, _ = formatter.format(Layout((0, 4), (1, 1)))
    assert data == {"text/plain": "Layout((0, 4), (1, 1))"}


@pytest.mark.parametrize("name", ["columns", "shared", "pipeline"])
def test_png_has_the_size_of_the_picture_and_its_colours(name: str) -> None:
    import matplotlib.image
    import numpy as np

    view = VIEWS[name]()
    png = view.to_png(scale=2)
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", png[16:24]) == (2 * view.picture.width, 2 * view.picture.height)
    pixels = np.rint(matplotlib.image.imread(io.BytesIO(png))[:, :, :3] * 255).astype(int)
    rects = [r for r in view.picture.items if isinstance(r, Rect) and r.fill.startswith("#") and min(r.w, r.h) >= 8]
    assert len(rects) >= 12
    for rect in rects:
        expected = [int(rect.fill[k : k + 2], 16) for k in (1, 3, 5)]
        corner = pixels[int(2 * rect.y) + 8, int(2 * rect.x) + 8]  # inside of a frame, before the writing
        assert abs(corner - expected).max() <= 8, rect  # of 256 colours, the nearest


def test_mpl_gives_a_figure_in_the_pictures_pixels() -> None:
    view = VIEWS["columns"]()
    figure = view.to_mpl()
    assert [round(v * 100) for v in figure.get_size_inches()] == [view.picture.width, view.picture.height]
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written == [part for item in view.picture.items if isinstance(item, Text) for part, _ in item.spans]


@pytest.mark.parametrize("name", VIEWS)
def test_the_png_font_has_every_sign(name: str) -> None:
    from matplotlib import font_manager, ft2font

    for mono, family in ((True, "DejaVu Sans Mono"), (False, "DejaVu Sans")):
        known = ft2font.FT2Font(font_manager.findfont(family)).get_charmap()
        texts = [t.text for t in VIEWS[name]().picture.items if isinstance(t, Text) and t.mono is mono]
        assert {sign for text in texts for sign in text if ord(sign) not in known} == set()


def test_signs_that_xml_or_the_font_lack_do_no_harm(recwarn: pytest.WarningsRecorder) -> None:
    view = viz.pipeline([Stage("source", "python", "x = '\x1b\u6f22 <&>'", (1,))])
    assert "\u6f22" in ElementTree.tostring(ElementTree.fromstring(view.to_svg()), encoding="unicode")
    view.to_png()
    assert not recwarn.list


ODD = "\x0b\x0c\x1b\x1c\x85\u2028\ud800"  # line ends for some, nothing at all for others


@pytest.mark.parametrize("make", [lambda title: viz.layout(Layout((2, 2), (1, 2)), title=title),
                                  lambda title: viz.tv(Layout((2, 2), (1, 2)), (2, 2), title=title),
                                  lambda title: viz.pipeline([Stage("s", "python", "x", (1,))], title=title)])
def test_any_title_is_one_line_that_every_renderer_writes(make, tmp_path: Path) -> None:
    view = make(f"a\nb{ODD}")
    assert view.scene.title == "a b" + "\ufffd" * len(ODD)
    for ending in ("svg", "html", "txt", "png", "json"):
        view.save(tmp_path / f"view.{ending}")
    assert ElementTree.fromstring(view.to_svg())[0].text == view.scene.title
    assert len(make("long " * 600).scene.title) == 200
    for title in (5, b"rows", ["rows"]):
        with pytest.raises(FlylabError, match="is not a string"):
            make(title)


def test_cividis_is_matplotlibs() -> None:
    import matplotlib

    table = matplotlib.colormaps["cividis"]
    assert list(HEAT) == ["#" + "".join(f"{round(v * 255):02x}" for v in table(i)[:3]) for i in range(256)]


def test_writing_can_be_read_on_every_ground() -> None:
    assert min(contrast(ink_on(c), c) for c in (*HEAT, *CATEGORIES)) >= 4.5
    for theme in (LIGHT, DARK):
        words = set(theme) - {"paper", "panel", "line", "lit"}
        assert min(contrast(theme[w], theme[g]) for w in words for g in ("paper", "panel", "lit")) >= 4.5


def test_one_layout_has_one_picture_whatever_its_title() -> None:
    one, two = (viz.layout(Layout((4, 4), (1, 4)), title=t) for t in ("a", "b"))
    assert one.scene.digest != two.scene.digest
    rects = [[item for item in view.picture.items if isinstance(item, Rect)] for view in (one, two)]
    assert rects[0] == rects[1]
