"""Occupancy of a launch: waves and workgroups on a compute unit, what limits them, and how far the next step is."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from flylab.codegen.assembly.occupancy import LDS, SCALAR, VECTOR, Needs, Occupancy, of_workgroups
from flylab.errors import FlylabError
from flylab.model.listing import listing, threads_of

MOST_SCALARS = 102
"""Scalar registers that a kernel can name."""


@dataclass(frozen=True)
class Cliff:
    """The nearest change of one resource that changes the waves of a compute unit.

    `change` is in registers, bytes of LDS, or threads; `waves_per_cu` is what a compute unit holds then.
    """

    resource: str
    change: int
    waves_per_cu: int
    waves_per_simd: int

    def __str__(self) -> str:
        unit = "bytes of LDS" if self.resource == LDS else self.resource
        unit = unit if abs(self.change) > 1 else unit.replace("registers", "register").replace("bytes", "byte")
        step = f"{abs(self.change)} {'fewer' if self.change < 0 else 'more'} {unit}"
        return f"{step}: {self.waves_per_simd} waves per SIMD ({self.waves_per_cu} per CU)"

    __repr__ = __str__


@dataclass(frozen=True)
class LaunchOccupancy:
    """What a launch's workgroups take, how many of them a compute unit holds, and the cliffs on both sides."""

    kernel: str
    needs: Needs
    occupancy: Occupancy
    cliffs: tuple[Cliff, ...]

    @property
    def waves_per_simd(self) -> int:
        """Waves of the fullest SIMD."""
        return self.occupancy.waves_per_simd

    @property
    def limiter(self) -> str:
        """The resource that allows the fewest workgroups."""
        return self.occupancy.limiter

    def __str__(self) -> str:
        needs, found = self.needs, self.occupancy
        lines = [f"occupancy (modelled) of '{self.kernel}' on {needs.chip}, workgroups of {needs.threads} threads: "
                 f"{found}",
                 f"  {found.workgroups} workgroups, {found.waves_per_cu} waves on a CU; a wave takes "
                 f"{needs.allocated_vector} vector registers of {needs.chip.vgprs_per_lane}, a workgroup "
                 f"{needs.allocated_lds} bytes of LDS of {needs.chip.lds_bytes}"]
        lines += [f"  by {name}: {waves} waves per SIMD" for name, waves in found.limits.items()]
        return "\n".join(lines + [f"  {cliff}" for cliff in self.cliffs])

    __repr__ = __str__


def occupancy(kernel: Any, block: int | None = None, lds: int = 0) -> LaunchOccupancy:
    """The occupancy of a launch with `block` threads a workgroup and `lds` bytes of LDS beside the kernel's own.

    `kernel` is an `@flyc.kernel` function that was compiled, what a launch returned, or a listing. Without `block` it
    is the workgroup that the kernel is compiled for, else the largest that it allows.

    Raises `FlylabError` for a workgroup or an amount of LDS that the kernel cannot be launched with.

    >>> from flylab.codegen.isa import Isa
    >>> text = '''.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
    ... k:
    ...   s_endpgm
    ... .amdhsa_kernel k
    ...   .amdhsa_next_free_vgpr 84
    ...   .amdhsa_next_free_sgpr 16
    ...   .amdhsa_accum_offset 84
    ... .end_amdhsa_kernel'''
    >>> print(occupancy(Isa.parse(text).kernels["k"], block=256))
    occupancy (modelled) of 'k' on gfx942, workgroups of 256 threads: 5 waves per SIMD, limited by vector registers
      5 workgroups, 20 waves on a CU; a wave takes 88 vector registers of 512, a workgroup 0 bytes of LDS of 65536
      by waves: 8 waves per SIMD
      by vector registers: 5 waves per SIMD
      by scalar registers: 8 waves per SIMD
      by barriers: 16 waves per SIMD
      4 fewer vector registers: 6 waves per SIMD (24 per CU)
      13 more vector registers: 4 waves per SIMD (16 per CU)
      12801 more bytes of LDS: 4 waves per SIMD (16 per CU)
    """
    kernel = listing(kernel)
    chip = kernel.target
    most = min(kernel.max_workgroup, chip.max_workgroup)
    block = threads_of(kernel, block)
    if not 1 <= block <= most:
        raise FlylabError(f"a workgroup of {block} threads, and kernel '{kernel.name}' allows 1 to {most}",
                          hint=f"ask for block={most} or less")
    needs = kernel.needs(block, kernel.lds_bytes + lds)
    if lds < 0 or needs.lds > chip.lds_bytes:
        raise FlylabError(f"kernel '{kernel.name}' with {kernel.lds_bytes} bytes of static and {lds} of dynamic LDS "
                          f"takes {needs.lds}, and a workgroup of {chip} has {chip.lds_bytes}",
                          hint="use smaller tiles or fewer stages")
    return LaunchOccupancy(kernel.name, needs, of_workgroups(needs), tuple(_cliffs(needs)))


def _cliffs(needs: Needs) -> Iterable[Cliff]:
    """The nearest changes down and up of each resource that change the waves of a compute unit."""
    chip = needs.chip
    ways: tuple[tuple[str, int, int, Callable[[int], Needs]], ...] = (
        (VECTOR, needs.vector, chip.vgprs_per_lane, lambda n: replace(needs, vector=n)),
        (SCALAR, needs.scalar, MOST_SCALARS, lambda n: replace(needs, scalar=n)),
        (LDS, needs.lds, chip.lds_bytes, lambda n: replace(needs, lds=n)))
    for resource, used, most, changed in ways:
        for candidates in (range(used - 1, -1, -1), range(used + 1, most + 1)):
            cliff = _first_change(needs, candidates, changed)
            if cliff is not None:
                found = of_workgroups(changed(cliff))
                yield Cliff(resource, cliff - used, found.waves_per_cu, found.waves_per_simd)


def _first_change(needs: Needs, candidates: range, changed: Callable[[int], Needs]) -> int | None:
    """The first amount of a resource with which the waves of a compute unit are others; None where none is.

    More of a resource never allows more waves: from the first that changes them on, all do, so halving finds it.
    """
    now = of_workgroups(needs).waves_per_cu
    at = bisect.bisect_left(candidates, True, key=lambda n: of_workgroups(changed(n)).waves_per_cu != now)
    return candidates[at] if at < len(candidates) else None
