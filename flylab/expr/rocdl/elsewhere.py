"""Names of MLIR's rocdl dialect and of the published language that are instructions of other chips: who has them.

Source: the features of LLVM 22's AMDGPU target.
"""

from __future__ import annotations

import re

from flylab.errors import NotSupportedError
from flylab.targets import TARGETS

GFX12, GFX1250, RDNA = "gfx12 and gfx1250", "gfx1250", "gfx11 and later RDNA chips"
CHIPS = [
    (r"wmma_.*|swmmac_.*|WMMA\w*", "gfx11, gfx12 and gfx1250 (wave32 matrix instructions)"),
    (r"tdm_.*|make_(tiled_)?tdm_atom|make_tensor_.*|tensor_.*|.*TDM.*|l2_prefetch_tile", GFX1250),
    (r"cluster|cluster_.*|s_wakeup_barrier|s_get_named_barrier_state|ds_atomic_.*barrier.*", GFX1250),
    (r"(global_(load|store)|load|store)_async_.*|raw_ptr_buffer_load_async_lds|s_wait_(asynccnt|tensorcnt)", GFX1250),
    (r"cvt_scale_pk\w+|cvt_scalef32_(sr_)?pk(8|16)_\w+|tanh|disable_xdl_arb_stall", GFX1250),
    (r"(flat|global)_prefetch|cdna5", GFX1250),
    (r"s_wait_(loadcnt|storecnt|dscnt|expcnt)|s_barrier_\w+|s_get_barrier_state", GFX12),
    (r"global_load_tr\w*|ds_load_tr\w+|permlane(x)?16_var", GFX12),
    (r"dot4_f32_\w+|sudot\d|fdot2_(f16_f16|bf16_bf16)", RDNA),
    (r"permlanex16|permlane16", "gfx10 and later RDNA chips"),
    (r"rdna3|rdna4", "RDNA chips"),
]
"""Patterns of names, and who has what they name."""
INSTEAD = {"s_wait_loadcnt": "rocdl.s_waitcnt(vmcnt=n)", "s_wait_storecnt": "rocdl.s_waitcnt(vmcnt=n)",
           "s_wait_dscnt": "rocdl.s_waitcnt(lgkmcnt=n)", "s_wait_expcnt": "rocdl.s_waitcnt(expcnt=n)",
           "tanh": "fx.math.tanh(x)", "ds_load_tr": "fx.rocdl.cdna4.LDSReadTrans on gfx950",
           "WMMA": "fx.rocdl.MFMA"}


def refused(name: str) -> NotSupportedError | None:
    """The error for a name of other chips, or None."""
    chips = next((chips for pattern, chips in CHIPS if re.fullmatch(pattern, name)), None)
    if chips is None:
        return None
    instead = next((text for start, text in INSTEAD.items() if name.startswith(start)), None)
    return NotSupportedError(f"fx.rocdl.{name} is of {chips}, and flylab compiles for {' and '.join(TARGETS)}",
                             hint=f"use {instead}" if instead else "leave it out in kernels for these chips")
