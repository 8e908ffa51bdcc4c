"""An estimate of a launch's time: what it asks of each resource, what bounds it, and what latency is left exposed.

Every resource gets the clocks that the busiest compute unit (or die, or the whole device) needs for its part of the
launch. A wave's own path, with what it waits for, is one more: as many workgroups as fit hide each other's waits. The
times are joined as a norm: the largest counts, and the others a little. All of it is a model, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flylab.codegen.assembly.occupancy import Needs, of_workgroups
from flylab.errors import FlylabError
from flylab.model.machine import Figure, Product, product
from flylab.model.parameters import Parameters
from flylab.model.path import BARRIER, LDS, MATRIX, MEMORY, SCALAR, Wait
from flylab.model.work import Work

DEFAULT = Parameters()


@dataclass(frozen=True)
class Traffic:
    """Bytes of memory that a launch reads and writes, each byte once: so many at least go beyond the caches."""

    read: float
    written: float = 0

    @property
    def total(self) -> float:
        """All of them."""
        return self.read + self.written


@dataclass(frozen=True)
class Estimate:
    """The modelled time of a launch; `microseconds` are at `clock`, and no measurement.

    `shares` are the microseconds that each resource alone would take; `bound_by` is the largest of these.
    """

    work: Work
    product: Product
    clock: Figure
    microseconds: float
    shares: Mapping[str, float]
    launch: float
    """Microseconds that a launch takes before and after its work, in `microseconds` too."""

    @property
    def cycles(self) -> float:
        """Clocks of the engine, without those of the launch itself."""
        return (self.microseconds - self.launch) * self.clock.value

    @property
    def bound_by(self) -> str:
        """The resource that takes longest; "launch" where that is the launch itself."""
        times = {**self.shares, "launch": self.launch}
        return max(times, key=lambda name: times[name])

    def __str__(self) -> str:
        lines = [f"'{self.work.kernel}' on {self.product.name}, {self.work.groups} workgroups of {self.work.threads} "
                 f"threads: {self.cycles:.4g} cycles, {self.microseconds:.4g} us, modelled at {self.clock}; "
                 f"bound by {self.bound_by}"]
        lines += [f"  {name}: {time:.4g} us (modelled)" for name, time in
                  sorted(self.shares.items(), key=lambda pair: -pair[1]) if time > 0]
        return "\n".join([*lines, f"  launch: {self.launch:.4g} us (modelled)"])


def estimate(work: Work, traffic: Traffic, chip: str | Product | None = None, clock: str | float = "peak",
             parameters: Parameters = DEFAULT) -> Estimate:
    """The modelled time of a launch of `work` that moves `traffic` beyond the caches, on a product at a clock.

    Raises `FlylabError` for a product of another chip than it was counted on, and where no workgroup fits.
    """
    known = product(chip if chip is not None else work.arch)
    if known.chip != work.chip:
        raise FlylabError(f"this work was counted on {work.arch}, and {known.name} is {known.chip}",
                          hint=f"count it on {known.chip}")
    at = known.clock(clock)
    needs = Needs(work.chip, work.vector, work.scalar, work.lds, work.threads)
    resident = of_workgroups(needs).workgroups
    if not resident:
        raise FlylabError(f"no workgroup of kernel '{work.kernel}' fits a compute unit", hint="see model.occupancy")
    clocks = _clocks(work, known, resident, parameters)
    shares = {name: found / at.value for name, found in clocks.items()}
    shares |= {"memory": _memory(traffic, known, parameters)}
    power = parameters.overlap.value
    busy = sum(time ** power for time in shares.values()) ** (1 / power)
    return Estimate(work, known, at, busy + parameters.launch.value, shares, parameters.launch.value)


def _clocks(work: Work, known: Product, resident: int, p: Parameters) -> dict[str, float]:
    """The clocks of each resource, on the busiest compute unit or die."""
    def count(name: str) -> float:
        return work.counts.get(name, 0.0)

    units = work.chip.compute_units
    mine = -(-work.groups // units)
    simds = min(work.chip.simds_per_cu, mine * work.waves)
    vector = p.issue.value * count("valu") + p.packed.value * count("packed") + p.transcendental.value * count("trans")
    scalar = p.issue.value * (count("salu") + count("branch") + count("smem") + count("wait") + count("barrier"))
    memory = max(count("cache_accesses") / p.accesses_per_clock.value, count("lines"),
                 count("bytes") / p.l1_bytes_per_clock.value)
    rounds = mine / resident if mine > resident else 1.0
    return {
        "vector units": mine * vector / simds,
        "matrix units": mine * p.issue.value * count("mfma_passes") / simds,
        "scalar units": mine * scalar / simds,
        "LDS": mine * count("lds_cycles"),
        "vector memory": mine * memory,
        "L2": work.groups * count("line_bytes") / known.dies / known.l2_bytes_per_clock,
        "loads in flight": mine * count("line_bytes") / p.bytes_in_flight.value * p.memory_latency.value,
        "starting waves": work.groups * work.waves * p.wave_launch.value / known.dies,
        "a wave's path": rounds * (work.issue * p.issue.value + sum(exposed(wait, p) for wait in work.waits)),
    }


def exposed(wait: Wait, p: Parameters) -> float:
    """Clocks for which a wave alone stands still at a wait: what is left of the latency after what it issued since."""
    latency = {MEMORY: p.memory_latency.value, LDS: p.lds_latency.value, SCALAR: p.scalar_latency.value,
               BARRIER: p.barrier.value, MATRIX: p.issue.value * (wait.passes + p.matrix_gap.value)}[wait.kind]
    return wait.times * max(latency - p.issue.value * wait.distance, 0.0)


def _memory(traffic: Traffic, known: Product, p: Parameters) -> float:
    """Microseconds of the memory beyond the L2: of the Infinity Cache where all fits that, else of HBM.

    Results are published for launches that are repeated, so what fits the cache is there.
    """
    if traffic.total <= known.infinity_cache_bytes * (1 + 1 / 64):
        return traffic.total / (known.infinity_cache.value * p.infinity_cache.value) * 1e6
    return (traffic.read / p.hbm_read.value + traffic.written / p.hbm_write.value) / known.hbm.value * 1e6
