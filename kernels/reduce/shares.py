"""What the reductions share: elements past the end, the sum over a wave in registers, the sum over a block."""

import flylab.expr as fx
from flylab.expr import gpu, range_constexpr

BLOCK, WAVE = 256, 64
"""Threads of a block and lanes of a wave."""


def load(A, i, whole):
    """A[i] as a Float32. Where blocks reach past the end (not `whole`), 0 there."""
    if whole:
        return fx.Float32(A[i])
    x = fx.Float32(0.0)
    if i < A.shape[0]:
        x = fx.Float32(A[i])
    return x


def wave_sum(x, width=WAVE):
    """The sum over each group of `width` lanes, in all of them: lanes exchange registers, in log2(width) steps."""
    for step in range_constexpr(width.bit_length() - 1):
        x = x + gpu.shuffle_xor(x, width >> (step + 1))
    return x


def block_sum(x, tid, slots):
    """The sum over a block, in its first wave: each wave's own in registers, and one slot of LDS for each wave."""
    x = wave_sum(x)
    if tid % WAVE == 0:
        slots[tid // WAVE] = x
    gpu.barrier()
    waves = fx.size(slots)
    return wave_sum(slots[tid % waves], waves)
