"""README's picture is the one that the tour shows."""

from __future__ import annotations

import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_readme_shows_what_the_tour_shows() -> None:
    picture = ROOT / "notebooks" / "pictures" / "pipeline.svg"
    assert f"]({picture.relative_to(ROOT)})" in (ROOT / "README.md").read_text()
    tour = json.loads((ROOT / "notebooks" / "00_tour.ipynb").read_text())
    shown = ["".join(output["data"]["image/svg+xml"]) for cell in tour["cells"] for output in cell.get("outputs", ())
             if "image/svg+xml" in output.get("data", {})]
    assert picture.read_text() in shown
