"""What steers time and not results: waits for memory, barriers of the wave and the block, priorities, and the order
that LLVM's scheduler may give to instructions.

LLVM itself puts in every wait that a result needs. Those here are for kernels that order their memory by hand. Memory
operations may still move across them; `gpu.barrier()` is the barrier that orders memory too.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import NotSupportedError, TraceError
from flylab.expr.emit import intrinsic
from flylab.expr.rocdl.immediates import emit, immediate
from flylab.expr.state import require_kernel

COUNTERS = {"vmcnt": 63, "lgkmcnt": 15, "expcnt": 7}
"""The counters of `s_waitcnt`, and the largest number of each, which waits for nothing.

Source: CDNA3 ISA, "S_WAITCNT"; CDNA4 has the same.
"""
MASKS = {
    "ALU": 0x1, "VALU": 0x2, "SALU": 0x4, "MFMA": 0x8, "VMEM": 0x10, "VMEM read": 0x20, "VMEM write": 0x40,
    "DS": 0x80, "DS read": 0x100, "DS write": 0x200, "transcendental": 0x400,
}
"""The bits of a scheduling mask. Source: LLVM's AMDGPU usage guide, `llvm.amdgcn.sched.barrier`."""
ALL_MASKS = sum(MASKS.values())
MOST = 2**31 - 1
_MASK_HINT = "a sum of " + ", ".join(f"{bit:#x} ({name})" for name, bit in MASKS.items())


def waitcnt_code(vmcnt: int = 63, lgkmcnt: int = 15, expcnt: int = 7) -> int:
    """The number that gfx9's `s_waitcnt` encodes its counters in.

    >>> hex(waitcnt_code(vmcnt=0)), hex(waitcnt_code(lgkmcnt=0)), hex(waitcnt_code(vmcnt=17))
    ('0xf70', '0xc07f', '0x4f71')

    Source: CDNA3 ISA, "S_WAITCNT": vmcnt in bits 3:0 and 15:14, expcnt in 6:4, lgkmcnt in 11:8.
    """
    return (vmcnt & 0xF) | expcnt << 4 | lgkmcnt << 8 | (vmcnt >> 4) << 14


def s_waitcnt(bitfield: Any = None, *, vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Wait until at most so many memory operations of the wave are open; a counter left out is not waited for.

    `vmcnt` (0 to 63) counts loads and stores of global memory and buffers, `lgkmcnt` (0 to 15) those of LDS and scalar
    loads, `expcnt` (0 to 7) exports. `bitfield` is the instruction's own number in place of the three. Raises
    `TraceError` for numbers out of range, and for both ways at once.
    """
    given = {"vmcnt": vmcnt, "lgkmcnt": lgkmcnt, "expcnt": expcnt}
    named = {name: count for name, count in given.items() if count is not None}
    if bitfield is not None:
        if named:
            raise TraceError(f"rocdl.s_waitcnt of a number and of {', '.join(named)}", hint="give one or the other")
        code = immediate("rocdl.s_waitcnt", "bitfield", bitfield, 0, 2**16 - 1)
    else:
        code = waitcnt_code(**{n: immediate("rocdl.s_waitcnt", n, c, 0, COUNTERS[n]) for n, c in named.items()})
    emit("rocdl.s_waitcnt", "rocdl.s.waitcnt", bitfield=(code, 32))


def sched_barrier(mask: Any) -> None:
    """No instruction may be moved across this place, but of the kinds whose bits `mask` has (`MASKS`); 0: none may.

    Source: LLVM's AMDGPU usage guide, `llvm.amdgcn.sched.barrier`.
    """
    code = immediate("rocdl.sched_barrier", "mask", mask, 0, ALL_MASKS, _MASK_HINT)
    emit("rocdl.sched_barrier", "rocdl.sched.barrier", mask=(code, 32))


def sched_group_barrier(mask: Any, size: Any, group_id: Any) -> None:
    """The next `size` instructions of the kinds in `mask` (`MASKS`) come here, in the order of such calls.

    Calls of one `group_id` are ordered among themselves. Source: LLVM's AMDGPU usage guide,
    `llvm.amdgcn.sched.group.barrier`.
    """
    what = "rocdl.sched_group_barrier"
    code = immediate(what, "mask", mask, 0, ALL_MASKS, _MASK_HINT)
    count, group = immediate(what, "size", size, 0, MOST), immediate(what, "group_id", group_id, 0, MOST)
    emit(what, "rocdl.sched.group.barrier", mask=(code, 32), size=(count, 32), groupId=(group, 32))


def sched_mfma(cnt: Any) -> None:
    """`sched_group_barrier` of `cnt` matrix instructions in group 0."""
    sched_group_barrier(MASKS["MFMA"], cnt, 0)


def sched_vmem(cnt: Any) -> None:
    """`sched_group_barrier` of `cnt` reads of global memory or buffers in group 0."""
    sched_group_barrier(MASKS["VMEM read"], cnt, 0)


def sched_dsrd(cnt: Any) -> None:
    """`sched_group_barrier` of `cnt` reads of LDS in group 0."""
    sched_group_barrier(MASKS["DS read"], cnt, 0)


def sched_dswr(cnt: Any) -> None:
    """`sched_group_barrier` of `cnt` writes of LDS in group 0."""
    sched_group_barrier(MASKS["DS write"], cnt, 0)


def iglp_opt(variant: Any) -> None:
    """Have LLVM interleave the instructions of this basic block by one of its strategies.

    0: small GEMM; 1: small GEMM, one wave; 2: exponentials between MFMAs, as attention has them; 3: a simpler form of
    2. Source: LLVM's AMDGPU usage guide, `llvm.amdgcn.iglp.opt`.
    """
    emit("rocdl.iglp_opt", "rocdl.iglp.opt", variant=(immediate("rocdl.iglp_opt", "variant", variant, 0, 3), 32))


def s_setprio(priority: Any) -> None:
    """The wave's priority among those of its SIMD from here on: 0 (lowest) to 3."""
    code = immediate("rocdl.s_setprio", "priority", priority, 0, 3)
    emit("rocdl.s_setprio", "rocdl.s.setprio", priority=(code, 16))


def s_sleep(count: Any) -> None:
    """The wave sleeps for about 64 * `count` clocks, `count` from 0 to 127. Source: CDNA3 ISA, S_SLEEP."""
    emit("rocdl.s_sleep", "rocdl.s.sleep", count=(immediate("rocdl.s_sleep", "count", count, 0, 127), 32))


def s_nop(count: Any) -> None:
    """The wave does nothing for `count` + 1 issue slots, `count` from 0 to 15. Source: CDNA3 ISA, S_NOP."""
    emit("rocdl.s_nop", "rocdl.s.nop", count=(immediate("rocdl.s_nop", "count", count, 0, 15), 16))


def s_barrier() -> None:
    """Wait until every wave of the block is here; memory is not ordered by it, as by `gpu.barrier()`."""
    emit("rocdl.s_barrier", "rocdl.s.barrier")


def wave_barrier() -> None:
    """LLVM moves no memory operation across this place; no instruction."""
    require_kernel("rocdl.wave_barrier")
    intrinsic("llvm.amdgcn.wave.barrier", [])


def asyncmark() -> None:
    """Ends a group of asynchronous copies into LDS, which `wait_asyncmark` waits for; no instruction."""
    require_kernel("rocdl.asyncmark")


def wait_asyncmark(count: Any = 0) -> None:
    """Wait until every asynchronous copy into LDS before the last `asyncmark` is done: `s_waitcnt(vmcnt=0)`.

    Raises `NotSupportedError` for a `count` above 0, the groups that may stay open: LLVM 22 does not count them. To
    leave n copies open, see `BufferCopyLDS`.
    """
    if immediate("rocdl.wait_asyncmark", "count", count, 0, MOST):
        raise NotSupportedError(
            f"rocdl.wait_asyncmark({count}): LLVM 22 does not count the copies between marks",
            hint="count them yourself: rocdl.s_waitcnt(vmcnt=n); rocdl.s_barrier(), where n copies into LDS may stay "
            "open, each stage in an allocation of its own",
        )
    s_waitcnt(vmcnt=0)
