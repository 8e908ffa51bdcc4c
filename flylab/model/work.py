"""What a launch asks of the chip, from its listing and its counters: the model's input, independent of its parameters.

A `Work` holds averages of one workgroup. It is small plain data, so it can be kept, and scaled to a launch that is too
large to be run: the first workgroups are run, and the others are taken to do the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Any, Protocol

from flylab.codegen.assembly.effects import Effects, effects
from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.assembly.occupancy import Needs, of_workgroups
from flylab.codegen.isa import IsaKernel
from flylab.emulator.log import AccessLog
from flylab.errors import FlylabError
from flylab.model.caches import cache_shares
from flylab.model.coalescing import LINE_BYTES
from flylab.model.listing import listing, threads_of
from flylab.model.path import Wait, path_of
from flylab.targets import Target, target

DIES = 8
"""Compute dies of every product."""
ALONE = ("x1_2b_f32", "x1_4b_f32", "x1_16b_f32", "x2_f32", "x4_f32", "x4_f64", "x4_4b_f64")
"""Ends of the names of matrix instructions (on f32 and f64) under which no vector instruction issues.

Source: AMD's matrix instruction calculator, "execution".
"""


class Counted(Protocol):
    """What was counted in a launch: its workgroups, and by the name of a figure an entry for each instruction.

    The figures are those of `flylab.emulator.counters`: executions, bytes, accesses, lines, lds_cycles. The
    instructions are the kernel's, then those of what it calls.
    """

    @property
    def workgroups(self) -> int:
        """Workgroups that were run."""
        ...

    def __getitem__(self, figure: str) -> Any: ...


@dataclass(frozen=True)
class Work:
    """Averages of one workgroup, and what it occupies.

    `counts` are executions of waves by kind ("valu", "trans", "packed", "salu", "vmem", "lds", ...), and "mfma_passes"
    (of these "mfma_alone", under which no vector instruction issues), "lds_cycles", "lines", "cache_accesses", "bytes"
    (of the lanes), "stored" (those of them that are written), "line_bytes" (what the L2 is asked for), and "anew" (what
    the L2 reads once more). `issue` and `waits` are those of one wave.
    """

    kernel: str
    arch: str
    threads: int
    vector: int
    scalar: int
    lds: int
    groups: int
    """Workgroups of the launch."""
    counted: int
    """Workgroups that were run."""
    counts: Mapping[str, float]
    issue: float
    """Issue slots of one wave, and those in which it waits for nothing but its last matrix instruction."""
    waits: tuple[Wait, ...]

    @property
    def chip(self) -> Target:
        """The chip that it was counted on."""
        return target(self.arch)

    @property
    def waves(self) -> int:
        """Waves of a workgroup."""
        return -(-self.threads // self.chip.wave_size)

    def as_json(self) -> dict[str, Any]:
        """Itself as data that JSON holds."""
        return {**asdict(self), "waits": [astuple(wait) for wait in self.waits]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Work:
        """What `as_json` made."""
        return cls(**{**data, "waits": tuple(Wait(*wait) for wait in data["waits"])})


def work(kernel: Any, counters: Counted | None = None, block: int | None = None, lds: int = 0,
         log: AccessLog | None = None, launched: int | None = None) -> Work:
    """The work of a launch with `block` threads a workgroup and `lds` bytes of dynamic LDS that was counted.

        with flylab.watch(counters=True):
            run = launch(a, b)
        work = flylab.model.work(run)

    `kernel` is what the launch returned; or an `@flyc.kernel` function that was compiled, or a listing, and then the
    `counters` are needed. Without `block` it is the workgroup that the kernel is compiled for.

    A `log` of one workgroup tells what its caches keep, where `launched` workgroups (else those counted) are launched;
    without one the L2 is asked for each byte of a load or a store, but not for a line twice.

    Raises `FlylabError` where the counters are not of this kernel, and for one that calls functions.
    """
    counters = _counters(kernel, counters)
    kernel = listing(kernel)
    block = threads_of(kernel, block)
    instructions, groups = kernel.instructions, counters.workgroups
    executions = [int(n) for n in counters["executions"]]
    if len(executions) < len(instructions) or groups < 1 or not executions[0]:
        raise FlylabError(f"{len(executions)} counters of {groups} workgroups for the {len(instructions)} instructions "
                          f"of kernel '{kernel.name}'", hint="give those of a launch of this kernel")
    if any(executions[len(instructions):]):
        raise FlylabError(f"kernel '{kernel.name}' calls functions, and the model follows the kernel's own text",
                          hint="let the compiler inline them")
    what = [effects(instruction, kernel.target) for instruction in instructions]
    needs = kernel.needs(block, kernel.lds_bytes + lds)
    totals = _totals(kernel, what, counters)
    times = [n / (groups * needs.waves) for n in executions[:len(instructions)]]
    if log is not None:
        totals |= _cached(totals, log, needs, launched or groups)
    issue, waits = path_of(kernel, what, times)
    counts = {name: total / groups for name, total in sorted(totals.items()) if total}
    return Work(kernel.name, kernel.target.arch, block, needs.vector, needs.scalar, needs.lds, groups, groups, counts,
                issue, waits)


def _counters(kernel: Any, given: Counted | None) -> Counted:
    found: Counted | None = getattr(kernel, "counters", None) if given is None else given
    if found is None or not hasattr(found, "workgroups"):
        raise FlylabError("the counters of a launch are needed", hint="flylab.model.work(run) has them, where run is "
                          "what a launch returned inside of `with flylab.watch(counters=True):`")
    arch = listing(kernel).target.arch
    if getattr(found, "chip", arch) != arch:
        raise FlylabError(f"these counters are of {getattr(found, 'chip', '')}, and the kernel was compiled for {arch}",
                          hint="flylab.model.work(run) takes both from one launch")
    return found


def _totals(kernel: IsaKernel, what: Sequence[Effects], counters: Counted) -> dict[str, float]:
    totals: defaultdict[str, float] = defaultdict(float)
    figures = (counters[name][:len(what)] for name in ("executions", "bytes", "accesses", "lines", "lds_cycles"))
    for instruction, effect, *found in zip(kernel.instructions, what, *figures, strict=True):
        executions, moved, accesses, lines, lds_cycles = (int(n) for n in found)
        totals[_kind(instruction.mnemonic, effect)] += executions
        totals["mfma_passes"] += effect.passes * executions
        if effect.passes and base_name(instruction.mnemonic).endswith(ALONE):
            totals["mfma_alone"] += effect.passes * executions
        totals["lds_cycles"] += lds_cycles
        totals["lines"] += lines
        totals["cache_accesses"] += accesses
        if lines:
            totals["bytes"] += moved
            totals["line_bytes"] += min(lines * LINE_BYTES, moved)
            totals["stored"] += moved if effect.store else 0
    return totals


def _cached(totals: Mapping[str, float], log: AccessLog, needs: Needs, launched: int) -> dict[str, float]:
    """The bytes that the L2 is asked for, and reads anew, by the parts of the lines that the log tells."""
    units = needs.chip.compute_units
    resident = max(min(of_workgroups(needs).workgroups, -(-launched // units)), 1)
    found = cache_shares(log, resident, units // DIES)
    bytes_ = totals["lines"] * LINE_BYTES
    return {"line_bytes": found.asked_of_l2 * bytes_, "anew": found.read_anew * bytes_}


def scaled(counted: Work, groups: int) -> Work:
    """The work of a launch of more (or fewer) workgroups, each of which does what the counted ones did on average.

    That holds where workgroups are alike: for those at the end of an array, and for data-dependent loops, it does not.
    """
    if groups < 1:
        raise FlylabError(f"a launch of {groups} workgroups", hint="a launch has at least one")
    return replace(counted, groups=groups)


def fit(sizes: Sequence[float], works: Sequence[Work], size: float) -> Work:
    """The work at a `size` (of K, or of trips) by a straight line through those counted at other sizes, least squares.

    It assumes that each count is linear in the size, as that of a loop is whose body stays the same: the kernel's text,
    registers and LDS must be those of every size. Issue slots and the times of waits go along.

    Raises `FlylabError` for fewer than two sizes, and for works of different kernels.
    """
    first = works[0] if works else None
    if first is None or len(set(sizes)) < 2 or len(sizes) != len(works):
        raise FlylabError(f"{len(works)} works of {len(set(sizes))} sizes make no line", hint="give two or more sizes")
    if any(_shape(other) != _shape(first) for other in works):
        raise FlylabError("works of different launches make no line",
                          hint="count one kernel with one block at each size, of which only the trips differ")
    names = sorted({name for each in works for name in each.counts})
    counts = {name: _line(sizes, [each.counts.get(name, 0.0) for each in works], size) for name in names}
    waits = tuple(replace(wait, times=_line(sizes, [each.waits[n].times for each in works], size),
                          runs=_line(sizes, [each.waits[n].runs for each in works], size))
                  for n, wait in enumerate(first.waits))
    return replace(first, counts=counts, issue=_line(sizes, [each.issue for each in works], size), waits=waits)


def _shape(each: Work) -> tuple[object, ...]:
    return (each.kernel, each.arch, each.threads, each.vector, each.scalar, each.lds,
            [(wait.kind, wait.distance, wait.passes, wait.behind) for wait in each.waits])


def _line(sizes: Sequence[float], values: Sequence[float], size: float) -> float:
    """The value at `size` of the least-squares line; never below 0."""
    middle, mean = sum(sizes) / len(sizes), sum(values) / len(values)
    spread = sum((s - middle) ** 2 for s in sizes)
    slope = sum((s - middle) * (v - mean) for s, v in zip(sizes, values, strict=True)) / spread
    return max(mean + slope * (size - middle), 0.0)


def _kind(mnemonic: str, effect: Effects) -> str:
    """The count that an instruction belongs to. Packed f32 operations take the vector unit twice as long."""
    if effect.kind == "valu" and mnemonic.startswith("v_pk_") and mnemonic.split("_e")[0].endswith("_f32"):
        return "packed"
    return "vmem" if effect.kind in ("flat", "scratch") else effect.kind
