"""`flylab lab`: the command that it becomes, in a checkout, from a wheel, and where JupyterLab is missing."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from flylab.cli.lab import TOUR, opened
from tests.cli.conftest import start
from tests.house.rules import ROOT

ROOT_USER = ["--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []


def test_a_checkout_opens_the_tour() -> None:
    assert (ROOT / TOUR).is_file()
    assert opened(None, ROOT) == [
        f"--ServerApp.root_dir={ROOT}", "--LabApp.default_url=/lab/tree/notebooks/00_tour.ipynb", *ROOT_USER]


def test_a_wheel_opens_the_current_folder_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                      capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert opened(None, tmp_path / "site-packages") == [f"--ServerApp.root_dir={tmp_path}", *ROOT_USER]
    assert "the tour is not part of an installed flylab" in capsys.readouterr().err


def test_folders_and_notebooks(tmp_path: Path) -> None:
    book = tmp_path / "my book#1.ipynb"
    book.write_text("{}")
    assert opened(str(tmp_path), ROOT)[0] == f"--ServerApp.root_dir={tmp_path}"
    assert opened(str(book), ROOT)[:2] == [f"--ServerApp.root_dir={tmp_path}",
                                           "--LabApp.default_url=/lab/tree/my%20book%231.ipynb"]
    inside = opened(str(ROOT / "notebooks" / "01_language.ipynb"), ROOT)
    assert inside[:2] == [f"--ServerApp.root_dir={ROOT}", "--LabApp.default_url=/lab/tree/notebooks/01_language.ipynb"]


@pytest.mark.parametrize("place, words", [("nowhere", "there is no nowhere"), ("k.py", "flylab run k.py runs a")])
def test_places_that_are_none(flylab: Any, tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "k.py").write_text("")
    done = flylab("lab", place)
    assert done.code == 2 and words in done.err


@pytest.mark.parametrize("missing", ["jupyterlab", "ipykernel"])
def test_jupyterlab_is_missing(flylab: Any, monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr("flylab.cli.lab.find_spec", lambda name: None if name == missing else real("json"))
    done = flylab("lab")
    assert done.code == 1 and "is not installed" in done.err
    assert f"hint: {sys.executable} -m pip install '{ROOT}[notebook]'" in done.err


def stand_in(folder: Path) -> None:
    """A `jupyterlab` that prints its options, and ends with 5."""
    for name in ("jupyterlab", "ipykernel"):
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text("")
    (folder / "jupyterlab" / "__main__.py").write_text("import sys; print(sys.argv[1:]); sys.exit(5)")


def test_it_becomes_jupyterlab_with_the_options_after_two_dashes(tmp_path: Path) -> None:
    stand_in(tmp_path)
    process = start("lab", "--", "--no-browser", "--port", "9000",
                    env={"PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)])})
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (5, "")
    assert out == f"{[*opened(None, ROOT), '--no-browser', '--port', '9000']}\n"


def test_from_an_installed_package(tmp_path: Path) -> None:
    """As pip installs it: flylab in a folder without notebooks beside it."""
    shutil.copytree(ROOT / "flylab", tmp_path / "site" / "flylab", ignore=shutil.ignore_patterns("__pycache__"))
    stand_in(tmp_path / "site")
    (tmp_path / "work").mkdir()
    process = start("lab", env={"PYTHONPATH": str(tmp_path / "site")}, cwd=tmp_path / "work")
    out, err = process.communicate(timeout=60)
    assert process.returncode == 5 and "the notebooks are in flylab's repository" in err.lower()
    assert f"--ServerApp.root_dir={tmp_path / 'work'}" in out and "default_url" not in out
