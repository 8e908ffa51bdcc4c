"""What a compilation is made with, besides its input: flylab's own files, the tools, and installed packages."""

from __future__ import annotations

import importlib.util
import os
import platform
import sys
from functools import cache
from typing import Any

from flylab.compiler.own_files import SOURCE

TOOLS = (("mlir", "_mlir_libs"), ("llvmlite", "binding"))
"""The packages of MLIR and LLVM, and where in each its libraries lie."""


def identity() -> tuple[Any, ...]:
    """What decides, for this process, what the compiler makes of an input. Nothing is imported for it."""
    return SOURCE, sys.version, platform.machine(), *(_libraries(*tool) for tool in TOOLS)


@cache
def _libraries(package: str, folder: str) -> tuple[Any, ...]:
    """The names, sizes and times of the shared libraries of a package: what an update of it changes."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        return ()
    found = []
    for place in spec.submodule_search_locations or ():
        try:
            with os.scandir(os.path.join(place, folder)) as entries:
                found += [(e.name, *_stamp(e.path)) for e in entries if ".so" in e.name or ".dylib" in e.name]
        except OSError:
            continue
    return tuple(sorted(found))


@cache
def installed(module: str) -> tuple[Any, ...]:
    """Which release of an installed package a module belongs to: the version that it says, and when it was put there.

    The files of a package that is installed anew are new, all of them, whatever its version says.
    """
    top = sys.modules.get(module.partition(".")[0])
    version = getattr(top, "__version__", None)
    files = {getattr(m, "__file__", None) or "" for m in (top, sys.modules.get(module))}
    return str(version), *(_stamp(file) for file in sorted(files) if file)


def _stamp(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_size, found.st_mtime_ns
