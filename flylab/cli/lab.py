"""`flylab lab`: JupyterLab with the tour, with a notebook, or in a folder."""

from __future__ import annotations

import argparse
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

import flylab
from flylab import installing
from flylab.cli.output import say
from flylab.cli.usage import Parser, UsageError
from flylab.errors import ToolchainError

HELP = "start JupyterLab with the tour, a notebook or a folder"
EPILOG = """\
flylab lab                                   the tour, in a checkout; else the current folder
flylab lab my.ipynb -- --no-browser --port 9000     what follows -- goes to JupyterLab
"""
ROOT = Path(flylab.__file__).resolve().parents[1]
TOUR = Path("notebooks") / "00_tour.ipynb"
NEEDED = {"jupyterlab": "JupyterLab", "ipykernel": "the kernel of notebooks (ipykernel)"}


def add_arguments(parser: Parser) -> None:
    """The options of `flylab lab`."""
    parser.rest = "JupyterLab's"
    parser.add_argument("place", nargs="?", metavar="FOLDER|NOTEBOOK", help="what to open (default: the tour)")


def execute(options: argparse.Namespace) -> int:
    """Become JupyterLab. Raises `ToolchainError` where it is missing, `UsageError` for a place that is not there."""
    for module, name in NEEDED.items():
        if find_spec(module) is None:
            raise ToolchainError(f"{name} is not installed in {sys.prefix}", hint=installing.extra("notebook"))
    command = [sys.executable, "-m", "jupyterlab", *opened(options.place, ROOT), *options.rest]
    sys.stdout.flush()
    os.execv(sys.executable, command)


def opened(place: str | None, root: Path) -> list[str]:
    """JupyterLab's options for a place: its root folder, and the notebook that it shows first.

    In a checkout (`root` has the tour) no place is the tour; elsewhere it is the current folder.
    """
    path = Path(place) if place is not None else root / TOUR
    if place is None and not path.is_file():
        say("the tour is not part of an installed flylab: this opens the current folder. "
            "The notebooks are in flylab's repository")
        path = Path.cwd()
    if not path.exists():
        raise UsageError(f"there is no {path}", hint="give a folder or a notebook that is there")
    if path.is_file() and path.suffix != ".ipynb":
        raise UsageError(f"{path} is no notebook", hint=f"flylab run {path} runs a script")
    path = path.resolve()
    folder = root if path.is_relative_to(root) and path.is_file() and (root / TOUR).is_file() else path.parent
    if path.is_dir():
        folder = path
    options = [f"--ServerApp.root_dir={folder}"]
    if path.is_file():
        options.append(f"--LabApp.default_url=/lab/tree/{quote(path.relative_to(folder).as_posix())}")
    # Jupyter wants to be told that it may run as root, as in a container.
    return [*options, "--allow-root"] if hasattr(os, "geteuid") and os.geteuid() == 0 else options
