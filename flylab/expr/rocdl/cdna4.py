"""What gfx950 (CDNA4) brought, by its chip's name: `fx.rocdl.cdna4`; refused on gfx942."""

from __future__ import annotations

from typing import Any

from flylab.expr.numeric import CLASSES
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
from flylab.expr.rocdl.instructions import call
from flylab.expr.rocdl.mfma import MFMA_Scale
from flylab.expr.rocdl.table import ROWS
from flylab.expr.vector import Vector

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


def cvt_sr_f32_to_bf16(x: Any, rand: Any) -> Any:
    """A Float32 as a BFloat16, rounded up or down by chance: the 16 high bits of `rand` are added to what is cut off.

    Source: CDNA4 ISA, V_CVT_SR_BF16_F32.
    """
    old = Vector.filled(2, 0, CLASSES["BFloat16"])
    return call(ROWS["cvt_sr_bf16_f32"], None, (old, x, rand, False))[0]


def __getattr__(name: str) -> Any:
    raise missing("fx.rocdl.cdna4", name, globals())
