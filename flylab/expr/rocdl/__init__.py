"""AMD's buffers: `make_buffer_tensor` and the copies that need one; and its operations of a wave."""

from __future__ import annotations

from typing import Any

from flylab.expr.enums import (
    AddressSpace,
    SyncScope,
    TargetAddressSpace,
    is_generic_address_space,
    is_target_address_space,
)
from flylab.expr.planned import missing
from flylab.expr.rocdl import cdna3, cdna4, copies, inline_asm
from flylab.expr.rocdl.buffers import get_buffer_rsrc, make_buffer_ptr, make_buffer_tensor, s_buffer_load
from flylab.expr.rocdl.copies import (
    BufferAtomic,
    BufferAtomicAdd,
    BufferAtomicMax,
    BufferAtomicMin,
    BufferAtomicPkAdd,
    BufferCopy,
    BufferCopy8b,
    BufferCopy16b,
    BufferCopy32b,
    BufferCopy64b,
    BufferCopy96b,
    BufferCopy128b,
    BufferCopyLDS,
    BufferCopyLDS32b,
    BufferCopyLDS96b,
    BufferCopyLDS128b,
)
from flylab.expr.rocdl.elsewhere import refused
from flylab.expr.rocdl.inline_asm import cvt_pk_bf16_f32
from flylab.expr.rocdl.instructions import FUNCTIONS, perm_b32
from flylab.expr.rocdl.lanes import (
    dpp,
    ds_swizzle,
    mov_dpp,
    permlane16_swap,
    permlane32_swap,
    update_dpp,
    writelane,
)
from flylab.expr.rocdl.mfma import MFMA, SMFMAC, WMMA, WMMAScale
from flylab.expr.rocdl.mfma_calls import CALLS
from flylab.expr.rocdl.raw_buffers import (
    raw_ptr_buffer_atomic_cmpswap,
    raw_ptr_buffer_atomic_fadd,
    raw_ptr_buffer_atomic_fmax,
    raw_ptr_buffer_atomic_smax,
    raw_ptr_buffer_atomic_umin,
    raw_ptr_buffer_load,
    raw_ptr_buffer_store,
)
from flylab.expr.rocdl.schedule import (
    asyncmark,
    iglp_opt,
    s_barrier,
    s_nop,
    s_setprio,
    s_sleep,
    s_waitcnt,
    sched_barrier,
    sched_dsrd,
    sched_dswr,
    sched_group_barrier,
    sched_mfma,
    sched_vmem,
    wait_asyncmark,
    wave_barrier,
)
from flylab.expr.rocdl.wave import ballot, ds_bpermute, readfirstlane, readlane

__all__ = [
    "AddressSpace",
    "BufferAtomic",
    "BufferAtomicAdd",
    "BufferAtomicMax",
    "BufferAtomicMin",
    "BufferAtomicPkAdd",
    "BufferCopy",
    "BufferCopy8b",
    "BufferCopy16b",
    "BufferCopy32b",
    "BufferCopy64b",
    "BufferCopy96b",
    "BufferCopy128b",
    "BufferCopyLDS",
    "BufferCopyLDS32b",
    "BufferCopyLDS96b",
    "BufferCopyLDS128b",
    "SyncScope",
    "TargetAddressSpace",
    "MFMA",
    "SMFMAC",
    "WMMA",
    "WMMAScale",
    "asyncmark",
    "ballot",
    "cdna3",
    "cdna4",
    "cvt_pk_bf16_f32",
    "dpp",
    "ds_bpermute",
    "ds_swizzle",
    "get_buffer_rsrc",
    "iglp_opt",
    "inline_asm",
    "is_generic_address_space",
    "is_target_address_space",
    "make_buffer_ptr",
    "make_buffer_tensor",
    "mov_dpp",
    "perm_b32",
    "permlane16_swap",
    "permlane32_swap",
    "raw_ptr_buffer_atomic_cmpswap",
    "raw_ptr_buffer_atomic_fadd",
    "raw_ptr_buffer_atomic_fmax",
    "raw_ptr_buffer_atomic_smax",
    "raw_ptr_buffer_atomic_umin",
    "raw_ptr_buffer_load",
    "raw_ptr_buffer_store",
    "readfirstlane",
    "readlane",
    "s_barrier",
    "s_buffer_load",
    "s_nop",
    "s_setprio",
    "s_sleep",
    "s_waitcnt",
    "sched_barrier",
    "sched_dsrd",
    "sched_dswr",
    "sched_group_barrier",
    "sched_mfma",
    "sched_vmem",
    "update_dpp",
    "wait_asyncmark",
    "wave_barrier",
    "writelane",
    *FUNCTIONS,
    *CALLS,
]
globals().update(FUNCTIONS | CALLS)  # one function for each row of their tables: mfma_f32_16x16x16f16 and so on


def __getattr__(name: str) -> Any:
    if name == "BufferCopyLDS64b":  # published, and no chip has it: making one is refused
        return copies.BufferCopyLDS64b
    raise refused(name) or missing("fx.rocdl", name, globals())
