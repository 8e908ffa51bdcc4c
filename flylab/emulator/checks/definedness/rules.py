"""The rules of vector instructions: which sources each register of a result needs. The instructions are data.

By default a result needs all sources in the same lane. LLVM makes code that reads undefined registers and does not look
at what comes of it, so what builds a register of parts is defined where one of the parts is: a half that is not defined
is not told from one that is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from flylab.codegen.assembly.effects import Effects, Span
from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import Instruction
from flylab.emulator.checks.definedness.lanes import Equation
from flylab.emulator.checks.definedness.places import MASK, MOVED, Item, Words, items
from flylab.emulator.decoding.modifiers import Modifiers
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.state import VCC

# Instructions that build a register of parts, and the places of the sources that are no parts but say how.
PARTS: dict[str, tuple[int, ...]] = {
    "v_perm_b32": (2,), "v_pack_b32_f16": (), "v_sat_pk_u8_i16": (), "v_bfi_b32": (0,), "v_or_b32": (), "v_or3_b32": (),
    "v_lshl_or_b32": (1,), "v_and_or_b32": (), "v_alignbit_b32": (2,), "v_alignbyte_b32": (2,), "v_bitop3_b32": (),
    "v_bitop3_b16": (), "v_ashr_pk_i8_i32": (2,), "v_ashr_pk_u8_i32": (2,), "v_mqsad_u32_u8": (),
}
# Conversions of several numbers to one register of them.
_CONVERTED = re.compile(r"v_cvt_(scalef32_)?(sr_)?(\d*x?pk)")
# Of v_and a scalar or constant is a mask, and no part.
MASKED = "v_and_b32"
# 64-bit integers whose low half needs the low halves alone, and those that shift the high half down.
UPWARDS = frozenset({"v_lshlrev_b64", "v_lshl_add_u64", "v_mad_u64_u32", "v_mad_i64_i32"})
DOWNWARDS = frozenset({"v_lshrrev_b64", "v_ashrrev_i64"})
# Each register of the result from one of each source, as op_sel picks them.
HALVES = frozenset({"v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32"})
# A mask of lanes as the last source.
CARRIED = frozenset({"v_addc_co_u32", "v_subb_co_u32", "v_subbrev_co_u32", "v_div_fmas_f32", "v_div_fmas_f64"})
# The low half is all that these compute; what they leave above it does not matter.
LOW_HALF = frozenset({"v_fma_f16", "v_div_fixup_f16", "v_mad_f16", "v_mad_u16", "v_mad_i16"})

# The source whose lanes go to others, where it is not the first, as of DPP.
MOVES = {"ds_permute_b32": 1, "ds_bpermute_b32": 1}
TIED = 9


class Reader:
    """The operands of one instruction as items."""

    def __init__(self, instruction: Instruction, effects: Effects, registers: Registers):
        self.name = base_name(instruction.mnemonic)
        self.instruction, self.effects, self.registers = instruction, effects, registers
        self.words = Words()
        self.modifiers = instruction.modifiers
        self.first_source = 1 + max((s.operand for s in effects.writes), default=0)

    def of(self, span: Span, kind: str = "") -> list[Item]:
        """The registers of a span."""
        return items(span, self.registers, self.words, kind)

    def source(self, span: Span) -> list[Item]:
        """A source: a mask of lanes as one, and the source that DPP moves as such."""
        if span.file == "s" and self.is_mask(span):
            return self.of(span, MASK)[:1]
        moved = self.effects.cross_lane and span.file != "s" and self.place(span) == MOVES.get(self.name, 0)
        return self.of(span, MOVED) if moved else self.of(span)

    def is_mask(self, span: Span) -> bool:
        """True for a scalar pair that has a bit for each lane."""
        return self.name in CARRIED and span == [s for s in self.effects.reads if s.file == "s"][-1]

    def place(self, span: Span) -> int:
        """Which source a span is, from 0; that of a result that is read too is behind them all."""
        return span.operand - self.first_source if span.operand >= self.first_source else TIED

    def results(self) -> Iterator[tuple[Span, list[Item]]]:
        """The results: vector registers, or a mask of lanes."""
        for span in self.effects.writes:
            yield span, self.of(span, MASK)[:1] if span.file == "s" else self.of(span)


def equations(reader: Reader) -> list[Equation]:
    """What each register that a vector instruction writes needs."""
    return [equation for span, results in reader.results() for equation in _of_result(reader, span, results)]


def _of_result(reader: Reader, span: Span, results: list[Item]) -> list[Equation]:
    name, reads = reader.name, reader.effects.reads
    kept = reader.effects.partial and not reader.effects.cross_lane and not (
        name in LOW_HALF and not any(word.startswith("op_sel") for word in reader.modifiers))
    if name == "v_cndmask_b32":
        return [replace(_chosen(reader, results[0]), kept=kept)]
    if name == "v_swap_b32":
        other = next(s for s in reads if s.operand != span.operand)
        return [Equation(results[0], tuple(reader.of(other)))]
    if name == "v_mov_b64":
        return [Equation(result, (source,)) for result, source in zip(results, _first(reader, results), strict=True)
                ] if reads else [Equation(result) for result in results]
    if name in HALVES or name == "v_pk_mov_b32":
        return [Equation(result, tuple(_halves(reader, n))) for n, result in enumerate(results)]
    if len(results) == 2 and name in UPWARDS:
        low = tuple(item for s in reads for item in reader.source(s)[:1])
        return [Equation(results[0], low), Equation(results[1], _all(reader, reads))]
    if name in DOWNWARDS and reads:
        return _downwards(reader, results)
    parts = _parts(reader)
    if parts:
        needs = tuple(item for s in reads if s not in parts and s.file != "s" for item in reader.source(s))
        how = PARTS.get(name, ())
        needs += tuple(item for s in reads if s.file == "s" and reader.place(s) in how for item in reader.source(s))
        any_ = _all(reader, parts)
        return [Equation(result, needs, any_, kept=kept) for result in results]
    return [Equation(result, _all(reader, reads), kept=kept) for result in results]


def _all(reader: Reader, spans: Sequence[Span]) -> tuple[Item, ...]:
    return tuple(item for span in spans for item in reader.source(span))


def _first(reader: Reader, results: list[Item]) -> list[Item]:
    return (reader.source(reader.effects.reads[0]) * 2)[:len(results)]


def _parts(reader: Reader) -> list[Span]:
    """The sources that are parts of the result; nothing where the instruction computes."""
    name, reads = reader.name, reader.effects.reads
    if name == MASKED:
        vectors = [s for s in reads if s.file != "s"]
        return vectors if len(vectors) > 1 else []
    if name not in PARTS and not _CONVERTED.match(name):
        return []
    how = PARTS.get(name, ())
    return [s for s in reads if reader.place(s) not in how]


def _chosen(reader: Reader, result: Item) -> Equation:
    """v_cndmask: sources 0 and 1 by the lane's bit of the mask, which is VCC where the text has none."""
    by_place = {reader.place(s): s for s in reader.effects.reads}
    span = by_place.get(2)
    mask = reader.of(span, MASK)[0] if span else Item(MASK, reader.words.put(VCC))
    arms = [reader.source(by_place[n])[0] if n in by_place else None for n in range(2)]
    return Equation(result, choice=(arms[0], arms[1], mask))


def _halves(reader: Reader, half: int) -> Iterator[Item]:
    """Of each source the register that op_sel (of the high half op_sel_hi) picks; v_pk_mov has one for each half."""
    words = Modifiers.of(reader.modifiers)
    for span in reader.effects.reads:
        number = reader.place(span)
        if reader.name != "v_pk_mov_b32" or number == half:
            high = words.bit("op_sel_hi", number, default=1) if half else words.bit("op_sel", number)
            yield reader.of(span)[high if span.count > 1 else 0]


def _downwards(reader: Reader, results: list[Item]) -> list[Equation]:
    """A shift to the right: the low half has parts of both, the high half is of the high one."""
    value = next((s for s in reader.effects.reads if reader.place(s) == 1), None)
    how = tuple(item for s in reader.effects.reads if s is not value for item in reader.source(s))
    halves = tuple(reader.source(value)) if value else ()
    return [Equation(results[0], how, halves), Equation(results[1], (*how, *halves[1:]))]
