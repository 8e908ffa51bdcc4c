"""R16: a notebook that is saved and opened without a kernel has the pictures of every view, as often as they like."""

from __future__ import annotations

import base64
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.notebooks import ROOT
from tests.viz.views import VIEWS

nbformat = pytest.importorskip("nbformat")
nbconvert = pytest.importorskip("nbconvert")
CELLS = ["from tests.viz.views import VIEWS", *[f"VIEWS[{name!r}]()" for name in VIEWS for _ in range(2)]]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The notebook as it is read back from its file."""
    nbclient = pytest.importorskip("nbclient")
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS])
    nbclient.NotebookClient(made, resources={"metadata": {"path": str(ROOT)}}).execute()
    file: Path = tmp_path_factory.mktemp("saved") / "saved.ipynb"
    nbformat.write(made, file)
    return nbformat.read(file, as_version=4)


def pictures(saved: Any) -> list[dict[str, str]]:
    return [output.data for cell in saved.cells[1:] for output in cell.outputs]


def test_the_saved_outputs_are_the_static_pictures(saved: Any) -> None:
    shown = pictures(saved)
    assert len(shown) == 2 * len(VIEWS)
    for data, name in zip(shown, [name for name in VIEWS for _ in range(2)], strict=True):
        assert data["image/svg+xml"] == VIEWS[name]().to_svg()
        assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
        assert data["text/plain"] == VIEWS[name]().scene.summary


def svgs(page: str) -> Counter[str]:
    """The SVG elements of a page that tell what they show, wherever they stand."""
    inside = [base64.b64decode(found).decode() for found in re.findall(r"data:image/svg\+xml;base64,([\w+/=]+)", page)]
    drawing = re.compile(r'<svg[^>]* role="img".*?</svg>', re.S)
    return Counter(found for text in [page, *inside] for found in drawing.findall(text))


@pytest.mark.parametrize("template", ["lab", "classic", "basic"])
def test_as_a_page_of_html(saved: Any, template: str) -> None:
    page, _ = nbconvert.HTMLExporter(template_name=template).from_notebook_node(saved)
    assert svgs(page) == Counter({make().to_svg().strip(): 2 for make in VIEWS.values()})
    ids = re.findall(r"<[a-z][^<>]*?\sid=\"([^\"]*)\"", page)
    assert [name for name, count in Counter(ids).items() if count > 1] == []
