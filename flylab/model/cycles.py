"""An estimate of a launch's time: what it asks of each resource, what bounds it, and what latency is left exposed.

Every resource gets the clocks that the busiest compute unit (or die, or the whole device) needs for its part of the
launch; what the caches keep is part of the work. A wave's own path, with what it waits for, is one more: as many
workgroups as fit hide each other's waits. The times are joined as a norm: the largest counts, and the others a little.
All of it is a model, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from flylab.codegen.assembly.occupancy import Needs, of_workgroups
from flylab.errors import FlylabError
from flylab.model.coalescing import LINE_BYTES
from flylab.model.machine import Figure, Product, product
from flylab.model.parameters import Parameters
from flylab.model.path import BARRIER, LDS, MATRIX, MEMORY, SCALAR, UNIT, Wait, standing
from flylab.model.work import Work
from flylab.shown import a_kind

DEFAULT = Parameters()


@dataclass(frozen=True)
class Traffic:
    """Bytes of memory that a launch reads and writes, each byte once: so many at least go beyond the caches."""

    read: float
    written: float = 0

    def __post_init__(self) -> None:
        if self.read < 0 or self.written < 0:
            raise FlylabError(f"{self.read} bytes read and {self.written} written", hint="neither is negative")

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
    busy: float
    """Microseconds of the work itself: the `shares` together."""

    @property
    def cycles(self) -> float:
        """Clocks of the engine that the work itself takes."""
        return self.busy * self.clock.value

    @property
    def bound_by(self) -> str:
        """The resource that takes longest; "launch" where the next launch comes later than its work ends."""
        if self.microseconds > self.busy:
            return "launch"
        return max(self.shares, key=lambda name: self.shares[name])

    def __str__(self) -> str:
        groups = f"{self.work.groups} workgroup{'s' * (self.work.groups > 1)}"
        lines = [f"'{self.work.kernel}' on {self.product.name}, {groups} of {self.work.threads} threads, modelled at "
                 f"{self.clock}:",
                 f"  {self.microseconds:.4g} us, {self.cycles:.4g} cycles (modelled), bound by {self.bound_by}"]
        lines += [f"    {name}: {time:.4g} us (modelled)" for name, time in
                  sorted(self.shares.items(), key=lambda pair: -pair[1]) if time > 0]
        return "\n".join(lines)

    __repr__ = __str__


def estimate(work: Work, traffic: Traffic, chip: str | Product | None = None, clock: str | float = "peak",
             parameters: Parameters = DEFAULT) -> Estimate:
    """The modelled time of a launch of `work` that moves `traffic` beyond the caches, on a product at a clock.

        estimate(work(run), Traffic(read=A.nbytes + B.nbytes, written=C.nbytes))

    >>> from flylab.model.work import Work
    >>> counts = {"valu": 4000.0, "lds_cycles": 100.0}
    >>> one = Work("k", "gfx950", 256, 32, 16, 0, 256, 8, counts, 1000.0, ())
    >>> print(estimate(one, Traffic(1e9), "MI355X"))
    'k' on MI355X, 256 workgroups of 256 threads, modelled at 2400 MHz [S]:
      158.2 us, 3.797e+05 cycles (modelled), bound by memory
        memory: 158.2 us (modelled)
        vector units: 1.667 us (modelled)
        a wave's path: 1.667 us (modelled)
        starting waves: 0.1333 us (modelled)
        LDS: 0.04167 us (modelled)

    Raises `FlylabError` for a product of another chip than it was counted on, and where no workgroup fits.
    """
    if not isinstance(work, Work) or not isinstance(traffic, Traffic):
        raise FlylabError(f"an estimate from {a_kind(work)} and {a_kind(traffic)}",
                          hint="estimate(model.work(run), model.Traffic(read=A.nbytes, written=B.nbytes))")
    known = product(chip if chip is not None else work.arch)
    if known.chip != work.chip:
        raise FlylabError(f"this work was counted on {work.arch}, and {known.name} is {known.chip}",
                          hint=f"count it on {known.chip}")
    at = known.clock(clock)
    needs = Needs(work.chip, work.vector, work.scalar, work.lds, work.threads)
    resident = of_workgroups(needs).workgroups
    if not resident:
        raise FlylabError(f"no workgroup of kernel '{work.kernel}' fits a compute unit", hint="see model.occupancy")
    clocks = _clocks(work, known, resident, _latency(work, parameters), parameters)
    shares = {name: found / at.value for name, found in clocks.items()}
    shares |= {"memory": _memory(traffic, work.groups * work.counts.get("anew", 0.0), known, parameters)}
    busy = _together(list(shares.values()), parameters.overlap.value)
    return Estimate(work, known, at, max(busy, parameters.least.value), shares, busy)


def _together(times: list[float], power: float) -> float:
    """The norm of times: the largest, and a little of the others."""
    largest = max(times)
    return largest * sum((time / largest) ** power for time in times) ** (1 / power) if largest else 0.0


def _latency(work: Work, p: Parameters) -> float:
    """Clocks of a load: of one that goes to the L2, and of one that the L1 answers, by their shares."""
    touched = work.counts.get("lines", 0.0) * LINE_BYTES
    far = min(work.counts.get("line_bytes", 0.0) / touched, 1.0) if touched else 1.0
    return far * p.memory_latency.value + (1 - far) * p.l1_latency.value


def _clocks(work: Work, known: Product, resident: int, latency: float, p: Parameters) -> dict[str, float]:
    """The clocks of each resource, on the busiest compute unit or die."""
    def count(name: str) -> float:
        return work.counts.get(name, 0.0)

    def latencies(wait: Wait) -> float:
        return {MEMORY: latency, LDS: p.lds_latency.value, SCALAR: p.scalar_latency.value, BARRIER: p.barrier.value,
                MATRIX: p.issue.value * (wait.passes + p.matrix_gap.value),
                UNIT: p.issue.value * wait.passes}[wait.kind]

    units = work.chip.compute_units
    mine = -(-work.groups // units)
    simds = min(work.chip.simds_per_cu, mine * work.waves)
    vector = p.issue.value * count("valu") + p.packed.value * count("packed") + p.transcendental.value * count("trans")
    scalar = p.issue.value * (count("salu") + count("branch") + count("smem") + count("wait") + count("barrier"))
    memory = max(count("cache_accesses") / p.accesses_per_clock.value, count("lines"),
                 count("bytes") / p.l1_bytes_per_clock.value)
    matrix = p.issue.value * count("mfma_passes")
    if matrix:
        matrix += vector * count("mfma_alone") / count("mfma_passes")
    rounds = mine / resident if mine > resident else 1.0
    return {
        "vector units": mine * vector / simds,
        "matrix units": mine * matrix / simds,
        "scalar units": mine * scalar / simds,
        "LDS": mine * count("lds_cycles"),
        "vector memory": mine * memory,
        "L2": work.groups * count("line_bytes") / known.dies / known.l2_bytes_per_clock,
        "loads in flight": mine * count("line_bytes") / p.bytes_in_flight.value * p.memory_latency.value,
        "starting waves": work.groups * work.waves * p.wave_launch.value / known.dies,
        "a wave's path": rounds * (work.issue * p.issue.value + standing(work.waits, latencies, p.issue.value)),
    }


def _memory(traffic: Traffic, anew: float, known: Product, p: Parameters) -> float:
    """Microseconds of the memory beyond the L2: of the Infinity Cache where all fits that, else of HBM.

    Results are published for launches that are repeated, so what fits the cache is there. `anew` are bytes that are
    read once more.
    """
    if traffic.total <= known.infinity_cache_bytes * (1 + 1 / 64):
        return (traffic.total + anew) / (known.infinity_cache.value * p.infinity_cache.value) * 1e6
    return ((traffic.read + anew) / p.hbm_read.value + traffic.written / p.hbm_write.value) / known.hbm.value * 1e6
