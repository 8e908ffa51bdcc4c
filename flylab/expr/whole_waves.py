"""Instructions that take the registers of all lanes of a wave, whichever of them are switched on: matrix products.

The software device does as `flylab.emulator.handlers.matrix` says of EXEC. So all threads of a wave have to come to one
together: a block is whole waves, and `flylab.passes.whole_waves` sees to the branches and loops around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from flylab.dialect.operations import WHOLE_WAVES
from flylab.errors import Check, TraceError
from flylab.expr.checks import device_check, in_region
from flylab.expr.state import KernelState, require_kernel
from flylab.targets import WAVE_SIZE

MEND = f"give the block a multiple of {WAVE_SIZE} threads"


def require_whole_waves(what: str, name: str) -> None:
    """The kernel makes an instruction `name` of whole waves. Raises `TraceError` where its block has a part of one."""
    from mlir import ir

    kernel = require_kernel(what)
    if kernel.block is None:
        kernel.of_whole_waves.append(f"{what}: {name}")
    elif prod(kernel.block) % WAVE_SIZE:
        raise TraceError(f"{what}: {name} is done by {WAVE_SIZE} threads, and the block has {prod(kernel.block)}",
                         hint=MEND)
    if in_region() and WHOLE_WAVES not in kernel.operation.attributes:
        i32 = ir.IntegerType.get_signless(32)
        kernel.operation.attributes[WHOLE_WAVES] = ir.IntegerAttr.get(i32, len(kernel.checks))
        kernel.checks.append(Check(
            "the threads of a wave part here, and the matrix product inside takes the registers of all of them, also "
            "of those that do not come to it",
            hint="let a wave go one way: decide by thread_idx.x // 64, or by what is the same for its 64 threads; and "
                 "choose results thread by thread after the product: cond.select(x, y)"))


def check_launch(kernel: KernelState, block: Sequence[Any]) -> None:
    """Check a block that is known only at launch, where the kernel has such instructions: in the launcher."""
    if kernel.block is None and kernel.of_whole_waves:
        device_check(prod(block) % WAVE_SIZE == 0, f"{kernel.of_whole_waves[0]} is done by {WAVE_SIZE} threads, and "
                     "the block of this launch is no whole number of these", hint=MEND)
