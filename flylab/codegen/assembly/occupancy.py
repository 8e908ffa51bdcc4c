"""How many waves and workgroups a compute unit holds at once, by what each of its resources allows.

This is the one place that computes it: for a kernel's text, for the software device, which holds as many workgroups as
the chip would, and for the model.

Source: the unified register file and the allocation granules of CDNA3 and CDNA4 (ISA documents, LLVM 22); scalar
registers and barriers as in LLVM 22's AMDGPU target. LLVM's own figure leaves out the granule of LDS.
"""

from __future__ import annotations

from dataclasses import dataclass

from flylab.targets import Target

WAVES, VECTOR, SCALAR, LDS = "waves", "vector registers", "scalar registers", "LDS"
BARRIER, WORKGROUP = "barriers", "workgroup size"
BARRIERS = 16
"""Barriers of a compute unit, of which a workgroup of several waves takes one."""
FEW_SCALARS, WAVES_OF_MANY_SCALARS = 100, 7
"""More scalar registers than these allow 7 waves: 800 are shared, in sixteens."""


@dataclass(frozen=True)
class Needs:
    """What a workgroup takes: registers a lane (VGPRs and AccVGPRs together), scalar registers, bytes of LDS, threads.

    >>> from flylab.targets import target
    >>> Needs(target("gfx942"), vector=96, scalar=32, lds=0, threads=256).waves
    4
    """

    chip: Target
    vector: int
    scalar: int
    lds: int
    threads: int

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return -(-self.threads // self.chip.wave_size)

    @property
    def allocated_vector(self) -> int:
        """Vector registers that a wave takes, in granules."""
        granule = self.chip.vgpr_granule
        return max(-(-self.vector // granule), 1) * granule

    @property
    def allocated_lds(self) -> int:
        """Bytes of LDS that a workgroup takes, in granules."""
        return -(-self.lds // self.chip.lds_granule) * self.chip.lds_granule

    def waves_of_a_simd(self) -> dict[str, int]:
        """The waves that fit a SIMD by its slots, its vector registers and its scalar registers."""
        most = self.chip.waves_per_simd
        return {WAVES: most, VECTOR: self.chip.vgprs_per_lane // self.allocated_vector,
                SCALAR: WAVES_OF_MANY_SCALARS if self.scalar > FEW_SCALARS else most}

    def workgroups(self) -> dict[str, int]:
        """The workgroups that fit a compute unit by each resource alone; 0 where none does."""
        found = {name: self.chip.simds_per_cu * waves // self.waves for name, waves in self.waves_of_a_simd().items()}
        if self.waves > 1:
            found[BARRIER] = BARRIERS
        if self.lds:
            found[LDS] = self.chip.lds_bytes // self.allocated_lds
        return found


@dataclass(frozen=True)
class Occupancy:
    """Waves per SIMD (of the fullest one) and which resource is the limit; `limits` are those of each one alone.

    `workgroups` fit a compute unit at once, of `waves` waves each; 0 where not one does.
    """

    waves_per_simd: int
    limiter: str
    limits: dict[str, int]
    workgroups: int
    waves: int

    @property
    def waves_per_cu(self) -> int:
        """Waves that a compute unit holds at once."""
        return self.workgroups * self.waves

    def __str__(self) -> str:
        return f"{self.waves_per_simd} waves per SIMD, limited by {self.limiter}"


def best(needs: Needs) -> Occupancy:
    """What a kernel's best workgroup size allows, where its largest has `needs.threads`: the figure that LLVM prints.

    >>> from flylab.targets import target
    >>> str(best(Needs(target("gfx942"), vector=96, scalar=32, lds=0, threads=1024)))
    '5 waves per SIMD, limited by vector registers'
    """
    limits, groups = needs.waves_of_a_simd(), needs.workgroups()
    if LDS in groups:
        limits[LDS] = _waves(needs, groups[LDS])
    limiter = min(limits, key=lambda name: limits[name])
    return Occupancy(limits[limiter], limiter, limits, min(groups.values()), needs.waves)


def of_workgroups(needs: Needs) -> Occupancy:
    """What workgroups of exactly this size allow: only whole ones are taken in.

    >>> from flylab.targets import target
    >>> found = of_workgroups(Needs(target("gfx942"), vector=80, scalar=32, lds=0, threads=1024))
    >>> str(found), found.workgroups, found.limits["vector registers"]
    ('4 waves per SIMD, limited by workgroup size', 1, 6)
    """
    limits, groups = needs.waves_of_a_simd(), needs.workgroups()
    workgroups = min(groups.values())
    limits |= {name: _waves(needs, groups[name]) for name in (BARRIER, LDS) if name in groups}
    limiter = min(groups, key=lambda name: (groups[name], limits[name]))
    waves = _waves(needs, workgroups)
    if waves < limits[limiter]:
        limiter, limits[WORKGROUP] = WORKGROUP, waves
    return Occupancy(waves, limiter, limits, workgroups, needs.waves)


def _waves(needs: Needs, workgroups: int) -> int:
    """Waves of the fullest SIMD of a compute unit with so many workgroups."""
    return -(-workgroups * needs.waves // needs.chip.simds_per_cu)
