"""Assembly in a kernel: `asm(text, constraints, operands, result)`; and what the published language has here.

An instruction that LLVM knows is better made by a function of `fx.rocdl`: LLVM schedules it, and shares and drops it.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import TraceError
from flylab.expr.numeric import CLASSES, Numeric
from flylab.expr.raw import typed
from flylab.expr.rocdl.immediates import immediate
from flylab.expr.rocdl.instructions import call, require_chip
from flylab.expr.rocdl.table import GFX950, ROWS
from flylab.expr.state import require_kernel
from flylab.expr.vector import Vector


def cvt_off_f32_i4(src_i32: Any, byte_sel: Any = None) -> Any:
    """The low 4 bits of a byte of `src_i32` (the lowest, or `byte_sel`), read as a signed integer, / 16: a Float32.

    Source: CDNA3 ISA, V_CVT_OFF_F32_I4.
    """
    given = typed(src_i32)
    if byte_sel is not None and isinstance(given, Numeric):
        word: Any = CLASSES["Uint32"](given)
        given = word >> 8 * immediate("cvt_off_f32_i4", "byte_sel", byte_sel, 0, 3)
    return call(ROWS["cvt_off_f32_i4"], None, (given,))


def cvt_pk_bf16_f32(src_a_f32: Any, src_b_f32: Any) -> Any:
    """Two Float32 as BFloat16, rounded to even, in one Int32: `src_a_f32` in the low half. Only gfx950 has it.

    Source: CDNA4 ISA, V_CVT_PK_BF16_F32.
    """
    what = "rocdl.cvt_pk_bf16_f32"
    require_chip(require_kernel(what), what, GFX950)
    pair = [typed(each) for each in (src_a_f32, src_b_f32)]
    float32 = CLASSES["Float32"]
    pair = [float32(each) if isinstance(each, (int, float)) and not isinstance(each, bool) else each for each in pair]
    for each in pair:
        if type(each) is not float32:
            raise TraceError(f"{what} of {each!r}", hint="give two Float32: x.to(fx.Float32)")
    vector = Vector.from_elements(pair, float32).to(CLASSES["BFloat16"])
    return vector.bitcast(CLASSES["Int32"])[0]
