"""flylab: a kernel lab in a notebook for AMD MI300X and MI350X.

    import flylab.compiler as flyc
    import flylab.expr as fx
    from flylab import viz

Importing this module imports nothing else: each package below is imported when it is first named, so that layouts and
pictures work where MLIR, LLVM and torch are not installed.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# What `flylab.NAME` reaches: a package, or an attribute of a module as "module:attribute".
_LAZY = {
    "compiler": "flylab.compiler",
    "debug": "flylab.runtime.debug:debug",
    "device": "flylab.runtime.device:current",
    "emulator": "flylab.emulator",
    "errors": "flylab.errors",
    "expr": "flylab.expr",
    "kernels": "flylab.kernels",
    "layout": "flylab.layout",
    "model": "flylab.model",
    "use": "flylab.runtime.device:use",
    "viz": "flylab.viz",
    "watch": "flylab.runtime.watching:watch",
}


def __getattr__(name: str) -> Any:
    """Import what `_LAZY` lists under `name`."""
    if name not in _LAZY:
        raise AttributeError(f"module 'flylab' has no attribute {name!r}")
    module, _, attribute = _LAZY[name].partition(":")
    value = import_module(module)
    return getattr(value, attribute) if attribute else value


def __dir__() -> list[str]:
    return ["__version__", *_LAZY]
