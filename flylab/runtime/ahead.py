"""What a launch imports, imported where a launcher is defined: a first call whose compilation is on disk is quick then.

MLIR is not part of it, since only what is not on disk needs it.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

MODULES = ("flylab.runtime.fast.calling", "flylab.runtime.hip", "flylab.emulator.program")


@cache
def load() -> None:
    """Import it, once a process. Raises `ImportError` where a part is not installed."""
    *_, device = map(import_module, MODULES)
    device.load()
