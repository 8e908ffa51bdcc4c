"""The copy operations that AMD's chips have of their own: through buffers, past the registers into LDS, transposing."""

from __future__ import annotations

from typing import Any

from flylab.atoms import CopyOp, copy_op
from flylab.atoms.copy import (
    BUFFER,
    BUFFER_ASYNC_LDS,
    BUFFER_ATOMIC,
    BUFFER_LDS,
    GLOBAL_ASYNC_LDS,
    LDS_TRANS,
)
from flylab.expr.aliases import VectorAlias
from flylab.expr.copy_ops import atomic_operation, of_operation, of_width
from flylab.expr.enums import AtomicOp
from flylab.expr.numeric import numeric_class


def BufferCopy(bit_size: int, cache_modifier: int = 0) -> CopyOp:
    """A copy of 8, 16, 32, 64, 96 or 128 bits by one thread, between a buffer tensor and registers.

    `cache_modifier` is a sum of 1 (sc0), 2 (nt: data that is not used again) and 16 (sc1).

    >>> print(BufferCopy(128, cache_modifier=2))
    fly_rocdl.cdna3.buffer_copy<128, cache = 2>

    Raises `LayoutError` for other widths and modifiers.
    """
    return copy_op(BUFFER, bit_size, cache=cache_modifier)


BufferCopy8b = of_width(BufferCopy, 8)
BufferCopy16b = of_width(BufferCopy, 16)
BufferCopy32b = of_width(BufferCopy, 32)
BufferCopy64b = of_width(BufferCopy, 64)
BufferCopy96b = of_width(BufferCopy, 96)
BufferCopy128b = of_width(BufferCopy, 128)


def BufferCopyLDS(bit_size: int, cache_modifier: int = 0) -> CopyOp:
    """A copy from a buffer tensor straight into LDS: 32 bits by each thread, on gfx950 also 96 and 128.

    The chip puts what lane i of a wave loads at the first lane's destination plus i times the bytes of one: the
    destination of the first lane counts, and the others' must lie so, also where a branch or a predicate leaves lanes
    out. It is done when `s_waitcnt(vmcnt=0)` is.

    LLVM 22 waits for all loads of an LDS allocation before that is read, and at `fx.gpu.barrier()` for all there are.
    To leave n in flight, give each stage an allocation of its own, and have the waves wait for the others and meet with
    `rocdl.s_waitcnt(vmcnt=n)` and `rocdl.s_barrier()`.

    Raises `LayoutError` for other widths.
    """
    return copy_op(BUFFER_LDS, bit_size, cache=cache_modifier)


BufferCopyLDS32b = of_width(BufferCopyLDS, 32)
BufferCopyLDS64b = of_width(BufferCopyLDS, 64)
BufferCopyLDS96b = of_width(BufferCopyLDS, 96)
BufferCopyLDS128b = of_width(BufferCopyLDS, 128)


def BufferLoadAsyncLDS(bit_size: int, cache_modifier: int = 0) -> CopyOp:
    """As `BufferCopyLDS`, by the same instruction: the compiler waits for it as said there."""
    return copy_op(BUFFER_ASYNC_LDS, bit_size, cache=cache_modifier)


def GlobalLoadAsyncLDS(bit_size: int, cache_modifier: int = 0) -> CopyOp:
    """As `BufferLoadAsyncLDS`, from global memory, where nothing bounds the address."""
    return copy_op(GLOBAL_ASYNC_LDS, bit_size, cache=cache_modifier)


BufferLoadAsyncLDS32b = of_width(BufferLoadAsyncLDS, 32)
BufferLoadAsyncLDS96b = of_width(BufferLoadAsyncLDS, 96)
BufferLoadAsyncLDS128b = of_width(BufferLoadAsyncLDS, 128)
GlobalLoadAsyncLDS32b = of_width(GlobalLoadAsyncLDS, 32)
GlobalLoadAsyncLDS96b = of_width(GlobalLoadAsyncLDS, 96)
GlobalLoadAsyncLDS128b = of_width(GlobalLoadAsyncLDS, 128)


def LDSReadTrans(trans_granularity: int, bit_size: int) -> CopyOp:
    """A transposing read of LDS by groups of 16 threads (gfx950): of elements of 4, 8 or 16 bits, 64 bits a thread; of
    6 bits, 96.

    What the 16 threads address is a matrix of 16 columns in row-major order, and thread t receives its column t.

    >>> print(LDSReadTrans(16, 64))
    fly_rocdl.cdna4.lds_read_trans<trans = 16b, 64>

    Raises `LayoutError` for other pairs.
    """
    return copy_op(LDS_TRANS, bit_size, trans_granularity)


def BufferAtomic(atomic_op: AtomicOp, val_type: Any) -> CopyOp:
    """A copy from registers that combines each element with the one in a buffer tensor, as one step.

    `val_type` is as `fx.UniversalAtomic` has it. What lies outside of the buffer is not changed.

    Raises `LayoutError` for what no chip has an instruction for.
    """
    return atomic_operation(BUFFER_ATOMIC, atomic_op, val_type, "", "fx.rocdl.BufferAtomic")


BufferAtomicAdd = of_operation(BufferAtomic, AtomicOp.Add)
BufferAtomicMax = of_operation(BufferAtomic, AtomicOp.Max)
BufferAtomicMin = of_operation(BufferAtomic, AtomicOp.Min)


def BufferAtomicPkAdd(val_type: Any) -> CopyOp:
    """An atomic addition of two elements side by side, of Float16 or (on gfx950) BFloat16, to a buffer tensor."""
    return BufferAtomic(AtomicOp.Add, VectorAlias(numeric_class(val_type), 2))
