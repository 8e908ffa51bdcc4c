"""The published module `flydsl.expr.primitive`: each of its names is one of `flylab.expr`."""

from __future__ import annotations

from typing import Any

import flylab.expr as fx


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(fx, name)
