"""The listing of a kernel, from what a user has at hand: its function, a launcher, or what a launch returned."""

from __future__ import annotations

import math
from typing import Any

from flylab.codegen.isa import IsaKernel
from flylab.errors import FlylabError


def listing(kernel: Any) -> IsaKernel:
    """The listing itself, or that of the last compilation of a kernel's function, of a launcher, or of a run.

    Raises `FlylabError` for anything else, for a function that was not compiled yet, and for a launcher or a run of
    several kernels.
    """
    if isinstance(kernel, IsaKernel):
        return kernel
    compiled = getattr(kernel, "compiled", kernel)
    made = compiled if hasattr(compiled, "isa") or not callable(compiled) else compiled()
    kernels: dict[str, IsaKernel] | None = getattr(getattr(made, "isa", None), "kernels", None)
    if kernels is None:
        raise FlylabError(f"a kernel is needed, and this is of type {type(kernel).__name__}",
                          hint="pass the @flyc.kernel function after a launch, or what the launch returned")
    names = [name for name in kernels if made.functions.get(name) is kernel] or list(kernels)
    if len(names) != 1:
        raise FlylabError(f"one kernel is needed, and these were compiled: {', '.join(names)}",
                          hint=f'pass one of them: k.compiled().isa.kernels["{names[0]}"]')
    return kernels[names[0]]


def threads_of(kernel: IsaKernel, block: Any) -> int:
    """The threads of a workgroup: as asked, else those that the kernel is compiled for, else as many as it allows.

    Raises `FlylabError` for what is no whole number.
    """
    if block is None:
        most = min(kernel.max_workgroup, kernel.target.max_workgroup)
        return math.prod(kernel.required_workgroup) if kernel.required_workgroup else most
    if not isinstance(block, int):
        raise FlylabError(f"block is {block!r}", hint="it is the threads of a workgroup: block=256 for (16, 16)")
    return block
