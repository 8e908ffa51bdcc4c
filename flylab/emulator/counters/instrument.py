"""The counters as an instrument: which instructions get which pieces.

Executions and active lanes are counted once a *run*: instructions that follow each other, so that whoever executes the
first executes all, with the same EXEC. So most instructions have no probe at all.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence

from flylab.codegen.assembly.effects import Effects, effects
from flylab.codegen.isa import IsaKernel
from flylab.emulator.counters import banks, lines
from flylab.emulator.counters.tally import Tally, add
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.linking import END_OF_FUNCTION, Code
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.probes.probe import Frame, Piece, Site
from flylab.emulator.probes.shadow import Template
from flylab.emulator.state import EXEC

# Jumps to addresses that registers hold: they may go anywhere.
TO_REGISTERS = ("s_setpc_b64", "s_swappc_b64")


def run_starts(kernel: IsaKernel) -> list[int]:
    """Of each instruction the first of its run: where control may arrive, or after EXEC may have changed."""
    arrivals = set(kernel.labels.values())
    anywhere = any(i.mnemonic in TO_REGISTERS for i in kernel.instructions)
    starts: list[int] = []
    ended = True
    for number, instruction in enumerate(kernel.instructions):
        starts.append(number if ended or anywhere or number in arrivals else starts[-1])
        ended = instruction.mnemonic == END_OF_FUNCTION or _ends_run(effects(instruction, kernel.target))
    return starts


def _run_starts(code: Code) -> list[int]:
    return run_starts(code.kernel)


def _ends_run(found: Effects) -> bool:
    return found.kind in ("branch", "end") or found.relative or any(
        span.file == "s" and EXEC - span.count < span.first < EXEC + 2 for span in found.writes)


def _count_run(frame: Frame) -> None:
    add(frame.b, frame.tally, "executions", 1)
    add(frame.b, frame.tally, "lanes", frame.exec.call("ctpop"))


class Counting:
    """The instrument."""

    name = "counters"
    tally_bytes = ctypes.sizeof(Tally)
    helpers: Mapping[str, Callable[[str], str]] = {**banks.HELPERS, **lines.HELPERS}
    kinds: Mapping[int, Callable[[Entry, Scene], Finding]] = {}

    def pieces(self, site: Site) -> Sequence[Piece]:
        """What the probe of an instruction counts."""
        return list(self._pieces(site))

    def _pieces(self, site: Site) -> Iterator[Piece]:
        number = site.instruction.index
        if site.once(_run_starts)[number] == number:
            yield Piece("run", _count_run)
        yield from lines.pieces(site)
        yield from banks.pieces(site)

    def prepare(self, template: Template, kernel: IsaKernel, registers: Registers) -> None:
        """Counters keep nothing with a wave."""


INSTRUMENT = Counting()
