"""What gfx950 (CDNA4) brought, by its chip's name: `fx.rocdl.cdna4`; refused on gfx942."""

from __future__ import annotations

from typing import Any

from flylab.expr.planned import missing
from flylab.expr.rocdl.copies import (
    BufferLoadAsyncLDS,
    BufferLoadAsyncLDS32b,
    BufferLoadAsyncLDS96b,
    BufferLoadAsyncLDS128b,
    GlobalLoadAsyncLDS,
    GlobalLoadAsyncLDS32b,
    GlobalLoadAsyncLDS96b,
    GlobalLoadAsyncLDS128b,
    LDSReadTrans,
)

__all__ = [
    "BufferLoadAsyncLDS",
    "BufferLoadAsyncLDS32b",
    "BufferLoadAsyncLDS96b",
    "BufferLoadAsyncLDS128b",
    "GlobalLoadAsyncLDS",
    "GlobalLoadAsyncLDS32b",
    "GlobalLoadAsyncLDS96b",
    "GlobalLoadAsyncLDS128b",
    "LDSReadTrans",
]


def __getattr__(name: str) -> Any:
    raise missing("fx.rocdl.cdna4", name, globals())
