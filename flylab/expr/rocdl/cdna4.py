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
from flylab.expr.rocdl.mfma import MFMA_Scale

MFMAScale = MFMA_Scale

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
    "MFMAScale",
    "MFMA_Scale",
]


def __getattr__(name: str) -> Any:
    raise missing("fx.rocdl.cdna4", name, globals())
