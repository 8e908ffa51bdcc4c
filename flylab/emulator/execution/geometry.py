"""The shape of a launch, checked against the kernel and its chip."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flylab.codegen.isa import IsaKernel
from flylab.emulator.arguments import whole
from flylab.emulator.execution.residents import workgroups_per_unit
from flylab.emulator.state import WAVE_SIZE
from flylab.errors import DeviceError

# Counted in 64 bits by several threads.
MOST_WORKGROUPS = 1 << 48
MOST_PRIVATE_BYTES = 1 << 28
Dims = tuple[int, int, int]


@dataclass(frozen=True)
class Geometry:
    """Workgroups, threads of each, and bytes of dynamic LDS."""

    grid: Dims
    block: Dims
    shared: int

    @property
    def workgroups(self) -> int:
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        return math.prod(self.block)

    @property
    def waves(self) -> int:
        return -(-self.threads // WAVE_SIZE)

    def lds_bytes(self, kernel: IsaKernel) -> int:
        """Bytes of LDS that a workgroup has, static and dynamic."""
        return kernel.lds_bytes + self.shared

    @classmethod
    def of(cls, kernel: IsaKernel, grid: int | Sequence[int], block: int | Sequence[int], shared: int) -> Geometry:
        """A launch's shape, checked against the kernel and its chip."""
        found = cls(_dims("grid", grid), _dims("block", block), whole("the dynamic LDS", shared))
        if kernel.required_workgroup not in ((), found.block):
            raise DeviceError(f"a block of {_times(found.block)} threads does not fit kernel '{kernel.name}', which is "
                              f"compiled for {_times(kernel.required_workgroup)} exactly",
                              hint=f"launch it with block={kernel.required_workgroup}")
        limit = min(kernel.max_workgroup, kernel.target.max_workgroup)
        if found.threads > limit:
            raise DeviceError(f"a block of {_times(found.block)} = {found.threads} threads is too large for kernel "
                              f"'{kernel.name}', which allows {limit}",
                              hint="launch smaller blocks, or compile it for a larger workgroup")
        for axis, groups, threads in zip("xyz", found.grid, found.block, strict=True):
            if groups * threads >= 1 << 32:
                raise DeviceError(f"a grid of {groups} blocks of {threads} threads overflows 32 bits along {axis}")
        if found.workgroups > MOST_WORKGROUPS:
            raise DeviceError(f"a grid of {_times(found.grid)} = {found.workgroups} blocks is more than the software "
                              f"device counts, {MOST_WORKGROUPS}")
        lds = found.lds_bytes(kernel)
        if found.shared < 0:
            raise DeviceError(f"the dynamic LDS is {shared} bytes, and 0 or more are possible")
        if lds > kernel.target.lds_bytes:
            raise DeviceError(f"kernel '{kernel.name}' with {kernel.lds_bytes} bytes of static and {found.shared} of "
                              f"dynamic LDS takes {lds}, and a workgroup of {kernel.target} has "
                              f"{kernel.target.lds_bytes}")
        if not workgroups_per_unit(kernel, found.waves, lds):
            raise DeviceError(f"a block of {found.threads} threads does not fit a compute unit of {kernel.target}, "
                              f"where kernel '{kernel.name}' with {kernel.vector_registers} vector registers has "
                              f"{kernel.occupancy}", hint="launch smaller blocks, or compile it for a larger workgroup")
        private = kernel.scratch_bytes * WAVE_SIZE * found.waves
        if private > MOST_PRIVATE_BYTES:
            raise DeviceError(f"a block of {found.threads} threads with {kernel.scratch_bytes} bytes of private memory "
                              f"each takes {private}, and the software device gives a block {MOST_PRIVATE_BYTES}")
        return found


def _dims(name: str, value: int | Sequence[int]) -> Dims:
    several = isinstance(value, list | tuple) or getattr(value, "ndim", 0) == 1
    numbers = tuple(whole(f"the {name}", n) for n in (value if several else (value,)))  # type: ignore[union-attr]
    if not 1 <= len(numbers) <= 3:
        raise DeviceError(f"the {name} has {len(numbers)} dimensions, and one to three are possible")
    if min(numbers) < 1:
        raise DeviceError(f"the {name} {_times(numbers)} is empty", hint="each dimension is at least 1")
    return (*numbers, 1, 1)[:3]  # type: ignore[return-value]


def _times(numbers: Sequence[int]) -> str:
    return " x ".join(map(str, numbers))
