"""Check "registers": values that nobody wrote, of registers and of LDS, reported where they decide something.

As Valgrind's Memcheck does, it follows which lanes and bits are defined through all instructions (`definedness`), and
says nothing until one is looked at: as an address, as data that goes to global memory, by a branch, or in EXEC. So code
that copies, packs or selects undefined values and does not use them, as compilers make, is no finding.

What it does not tell: a half or byte of a vector register from the whole, read from LDS or not; private memory, which
counts as defined, so that spilled registers come back; which lanes DPP and its kin take a value from (defined where any
active lane is).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from flylab.codegen.assembly.effects import Span
from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import IsaKernel
from flylab.emulator.checks.definedness import lds, observe
from flylab.emulator.checks.definedness.at_start import defined_scalars
from flylab.emulator.checks.definedness.lanes import Equation, propagate
from flylab.emulator.checks.definedness.matrix import matrix_piece
from flylab.emulator.checks.definedness.moves import MOVES, relative_piece
from flylab.emulator.checks.definedness.places import MASK, NEVER, SCALAR_ORIGIN, Item, Words, items, place_of, row_of
from flylab.emulator.checks.definedness.rules import Reader, equations
from flylab.emulator.checks.definedness.scalars import scalar_piece
from flylab.emulator.checks.definedness.words import WORDS
from flylab.emulator.checks.lds_use import BY_LANE, GENERIC, lds_use
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.probes.probe import Piece, Site
from flylab.emulator.probes.shadow import ALL, Template
from flylab.emulator.state import EXEC, SCC, SGPR_COUNT, VCC

_UNTOUCHED = frozenset({EXEC, EXEC + 1})


class RegistersCheck:
    """The instrument of this check."""

    name = "registers"
    tally_bytes = 0
    helpers: Mapping[str, Callable[[str], str]] = {**observe.HELPERS, **lds.HELPERS}
    kinds: Mapping[int, Callable[[Entry, Scene], Finding]] = WORDS

    def pieces(self, site: Site) -> Sequence[Piece]:
        """What is looked at first, then what becomes of the results."""
        kind = site.effects.kind
        if kind in ("wait", "barrier", "end", "other"):
            return ()
        return [*_observed(site), *_results(site)]

    def prepare(self, template: Template, kernel: IsaKernel, registers: Registers) -> None:
        """Of a wave that begins, what its kernel's descriptor asks for is defined, and nothing else."""
        given = defined_scalars(kernel)
        for number in range(SGPR_COUNT):
            template.wave.sgpr_valid[number] = 0xFFFFFFFF if number in given else 0
            template.wave.sgpr_origin[number] = NEVER | SCALAR_ORIGIN | number
        for row, shadow in enumerate(template.rows):
            shadow.valid, shadow.origin = 0 if row else ALL, NEVER | row


def _observed(site: Site) -> Iterator[Piece]:
    """What an instruction looks at."""
    effects, name = site.effects, base_name(site.instruction.mnemonic)
    if effects.kind == "branch":
        for span in effects.reads:
            if span.operand < 0 and span.first in (SCC, VCC):
                yield observe.observe_condition(span.first)
            elif span.operand >= 0:
                yield from _looked_at(site, [span], observe.ADDRESS)
        return
    yield from _looked_at(site, effects.address, observe.ADDRESS)
    implied = [s for s in effects.reads if s.operand < 0 and s.first not in (SCC, VCC, EXEC)]
    if effects.space == "lds" or effects.to_lds or effects.relative:
        yield from _looked_at(site, implied, observe.ADDRESS)
    if name.startswith("s_set_gpr_idx"):
        yield from _looked_at(site, [s for s in effects.reads if s.operand >= 0], observe.ADDRESS)
    if (effects.store or effects.atomic) and effects.space not in ("lds", "scratch", ""):
        yield from _looked_at(site, effects.data, observe.DATA)


def _looked_at(site: Site, spans: Sequence[Span], kind: int) -> Iterator[Piece]:
    for span in spans:
        if span.file == "s":
            if span.first not in _UNTOUCHED:
                yield observe.observe_scalars(span.first, span.count, kind)
            continue
        generic = row_of(site.effects.address[0], site.registers) + 1 if (
            kind == observe.DATA and site.effects.space == "flat") else -1
        yield observe.observe_rows((row_of(span, site.registers), span.count), kind, generic)


def _results(site: Site) -> Iterator[Piece]:
    """What becomes of the registers and of LDS."""
    effects, kind = site.effects, site.effects.kind
    name = base_name(site.instruction.mnemonic)
    if kind == "mfma":
        yield matrix_piece(site.instruction, effects, site.registers)
    elif name in MOVES:
        yield MOVES[name](site)
    elif effects.relative or site.coded.indexed:
        yield from relative_piece(site)
    elif kind == "salu":
        yield from _scalar(site, name)
    elif kind in ("valu", "trans") or kind == "lds" and not effects.space:
        yield from _vector(site)
    elif kind == "lds" and not any(s.operand < 0 for s in effects.reads):
        yield from _lds(site, name)
    else:
        yield from _defined(site)
        yield from _beside_lds(site)


def _scalar(site: Site, name: str) -> Iterator[Piece]:
    from flylab.emulator.program import device_tables

    row = device_tables()[0].get(name)
    if row is None:
        yield from _defined(site)
    else:
        yield scalar_piece(row, site.instruction)


def _vector(site: Site) -> Iterator[Piece]:
    reader = Reader(site.instruction, site.effects, site.registers)
    into_exec = [s for s in site.effects.writes if s.first == EXEC and s.file == "s"]
    if into_exec:
        sources = [item for span in site.effects.reads for item in reader.source(span)]
        yield observe.rows_into_exec(sources, reader.words.values)
        yield from _defined(site)
    elif found := equations(reader):
        yield propagate(found, reader.words.values)


def _defined(site: Site, whole: bool = False) -> Iterator[Piece]:
    """All results are defined."""
    words = Words()
    found = [Equation(item) for span in site.effects.writes if not (span.file == "s" and span.first in _UNTOUCHED)
             for item in _written(span, site.registers, words)]
    if found:
        yield propagate(found, words.values, whole)


def _written(span: Span, registers: Registers, words: Words) -> list[Item]:
    if span.file != "s":
        return items(span, registers, words)
    word = words.put(place_of(span, registers))
    return [Item(MASK, word, n) for n in range(0, span.count - 1, 2)] + (
        [Item("s", word, span.count - 1)] if span.count % 2 else [])


def _lds(site: Site, name: str) -> Iterator[Piece]:
    """Reads, writes and atomics of LDS at addresses in a register."""
    effects, use = site.effects, lds_use(site)
    assert use is not None
    if effects.writes:
        result = row_of(effects.writes[0], site.registers)
        yield lds.read_piece(use.row, [offset for offset, _ in use.places], result, effects.bytes, effects.partial,
                             effects.cross_lane)
    if effects.store or "wrxchg" in name:
        yield lds.write_piece(use.row, use.places, effects.bytes)


def _beside_lds(site: Site) -> Iterator[Piece]:
    """Other ways to write to LDS: loads to it, flat stores, and lanes side by side."""
    use = lds_use(site)
    if use is None or not use.writes or use.atomic:
        return
    offset, data = use.places[0]
    if use.form == GENERIC:
        yield lds.generic_write_piece(use.row, offset, data, use.bytes)
    elif use.form == BY_LANE:
        yield lds.lanes_write_piece(offset, use.bytes, use.m0_bits, None if use.direct else data)


INSTRUMENT = RegistersCheck()
