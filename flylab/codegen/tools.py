"""Other people's tools that a machine may have: in ROCm, on PATH, or in the pip package ziglang."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from flylab import installing, settings
from flylab.errors import ToolchainError


def find_tool(names: Sequence[str], what: str) -> list[str]:
    """The command of the first tool that there is, of these names: on PATH, in ROCm, or in ziglang (the first name).

    Raises `ToolchainError` where there is none; `what` says what it is for.
    """
    for name in names:
        if on_path := shutil.which(name):
            return [on_path]
    roots = [row.value() for row in (settings.ROCM_PATH, settings.HIP_PATH) if row.source]
    for candidate in (root / "llvm" / "bin" / names[0] for root in [*roots, Path("/opt/rocm")]):
        if candidate.exists():
            return [str(candidate)]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", names[0]]
    raise ToolchainError(
        f"no {what} for AMD code objects was found (looked for {names[0]} on PATH, in ROCm and in the package ziglang)",
        hint=f"{installing.extra('aot')}, or install {_package(names[0])} or ROCm; everything but .hsaco files works "
             "without it",
    )


def _package(name: str) -> str:
    return {"ld.lld": "lld"}.get(name, name)


def run_tool(command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Run a tool to its end. Raises `ToolchainError` where it cannot be started."""
    try:
        return subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        name = Path(command[0]).name
        raise ToolchainError(
            f"{command[0]} cannot be run: {error}", hint=f"put another {name} on PATH, or remove this one"
        ) from None
