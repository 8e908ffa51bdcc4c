"""AMD's buffers: `make_buffer_tensor` and the copies that need one; and its operations of a wave."""

from __future__ import annotations

from typing import Any

from flylab.errors import NotSupportedError, TraceError
from flylab.expr.algebra import traced
from flylab.expr.enums import (
    AddressSpace,
    SyncScope,
    TargetAddressSpace,
    is_generic_address_space,
    is_target_address_space,
)
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES
from flylab.expr.planned import missing
from flylab.expr.rocdl import cdna3, cdna4, inline_asm
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
    BufferCopyLDS64b,
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
from flylab.expr.select import ceildiv, minimum
from flylab.expr.state import require_kernel
from flylab.expr.tensor import Tensor
from flylab.expr.views import make_buffer
from flylab.layout import cosize, get_leaves

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
    "BufferCopyLDS64b",
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
    "iglp_opt",
    "inline_asm",
    "is_generic_address_space",
    "is_target_address_space",
    "make_buffer_tensor",
    "mov_dpp",
    "perm_b32",
    "permlane16_swap",
    "permlane32_swap",
    "readfirstlane",
    "readlane",
    "s_barrier",
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
]
globals().update(FUNCTIONS)
MAX_RECORDS = 0xFFFFFFFF
"""The largest byte count of a buffer descriptor. Source: CDNA3 ISA, "Buffer resource descriptor"."""


_cosize = traced(cosize)


def make_buffer_tensor(tensor: Tensor, max_size: bool = False, *, num_records_bytes: Any = None) -> Tensor:
    """The tensor behind a buffer descriptor: reads outside of it give 0, writes outside are dropped.

    The descriptor covers exactly the tensor's bytes; `num_records_bytes` sets another number, `max_size=True` turns
    the check off up to the 4 GiB that a descriptor reaches: what is farther away is still outside. Raises `TraceError`
    for a tensor of 4 GiB or more, which a descriptor cannot cover.
    """
    require_kernel("make_buffer_tensor")
    if not isinstance(tensor, Tensor) or tensor.space != "global":
        raise TraceError(
            f"make_buffer_tensor: {name_of(tensor, repr(tensor))} is not a tensor in global memory",
            hint="give an fx.Tensor parameter or a view of one",
        )
    layout = tensor.spec.facts()
    if min([stride if isinstance(stride, int) else stride.low for stride in get_leaves(layout.stride)]) < 0:
        raise TraceError(
            f"make_buffer_tensor: {name_of(tensor, 'the tensor')} {layout} has a negative stride, or one that may be, "
            "and a buffer reaches forward from its first element only",
            hint="copy it with fx.UniversalCopy, or flip the array on the host",
        )
    if num_records_bytes is not None and (
        isinstance(num_records_bytes, bool) or not isinstance(num_records_bytes, int)
    ):
        raise NotSupportedError(
            "make_buffer_tensor(num_records_bytes=) takes a number known while tracing",
            hint="pass it as an fx.Constexpr[int] parameter",
        )
    if tensor.spec.is_runtime and not max_size and num_records_bytes is None:
        count = minimum(CLASSES["Int64"](_cosize(tensor)), MAX_RECORDS)
        return make_buffer(tensor, minimum(ceildiv(count * tensor.spec.dtype.bits, 8), MAX_RECORDS))
    covered = 0 if tensor.spec.is_runtime else -(-cosize(layout) * tensor.spec.dtype.bits // 8)
    records = MAX_RECORDS if max_size else covered if num_records_bytes is None else num_records_bytes
    # An offset beyond 32 bits becomes the largest that an access of 16 bytes can have: no tensor reaches there.
    if not 0 <= records <= MAX_RECORDS or covered == records > MAX_RECORDS - 15:
        raise TraceError(
            f"make_buffer_tensor: {name_of(tensor, 'the tensor')} spans {records} bytes, a buffer "
            f"descriptor covers at most {MAX_RECORDS}",
            hint="slice the tensor into parts below 4 GiB first, or copy it with fx.UniversalCopy",
        )
    return make_buffer(tensor, records)


globals().update(CALLS)  # mfma_f32_16x16x16f16 and so on


def __getattr__(name: str) -> Any:
    raise refused(name) or missing("fx.rocdl", name, globals())
