"""How definedness goes through instructions that move single lanes, swap rows of lanes, or find a register by M0."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from flylab.codegen.assembly.effects import Span
from flylab.emulator.checks.definedness.lanes import Equation, propagate
from flylab.emulator.checks.definedness.places import (
    SGPR_ORIGIN,
    SGPR_VALID,
    VECTOR,
    Item,
    Known,
    Words,
    items,
    place_of,
    row_of,
    row_shadow,
)
from flylab.emulator.decoding.operands import CONSTANT, parse_operand
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.probe import Frame, Piece, Site
from flylab.emulator.probes.shadow import RowShadow
from flylab.emulator.state import M0, NUMBERED_SGPRS, WAVE_SIZE


def _at(site: Site, operand: int) -> Span | None:
    """The register that an operand names, or None for a constant."""
    spans = (*site.effects.writes, *site.effects.reads)
    return next((s for s in spans if s.operand == operand), None)


def _read_lane(site: Site) -> Piece:
    """v_readfirstlane and v_readlane: all bits as the one lane."""
    words, operands = Words(), site.instruction.operands
    result, source = (_at(site, n) for n in range(2))
    assert result and source
    words.values += [place_of(result, site.registers), place_of(source, site.registers)]
    kind = _lane_kind(words, site, 2) if len(operands) > 2 else "first"

    def emit(frame: Frame) -> None:
        b, known = frame.b, Known(frame, frame.exec)
        row = Item(VECTOR, 1)
        lane, chosen = _lane(frame, kind, 2)
        bit = (known.lanes(row).shr(lane) & 1).to("i32") & chosen
        number = frame.word(0) * 4
        b.store(b.const(0, "i32") - bit, b.at(frame.shadow, number + SGPR_VALID))
        b.store(known.origin(row), b.at(frame.shadow, number + SGPR_ORIGIN))

    return Piece(f"read lane {kind}", emit, tuple(words.values))


def _write_lane(site: Site) -> Piece:
    """v_writelane: one lane as the scalar, of which any bit will do, as it may be a mask of lanes that is spilled."""
    words = Words()
    result, source = _at(site, 0), _at(site, 1)
    assert result
    words.values += [place_of(result, site.registers), place_of(source, site.registers) if source else 0]
    kind = _lane_kind(words, site, 2)

    def emit(frame: Frame) -> None:
        b = frame.b
        lane, _ = _lane(frame, kind, 2)
        row, bit = row_shadow(b, frame.shadow, frame.word(0)), b.const(1, "i64").shl(lane)
        valid = b.field(row, RowShadow, "valid")
        if source is None:
            b.set_field(row, RowShadow, "valid", valid | bit)
            return
        number = frame.word(1) * 4
        defined = b.load(b.at(frame.shadow, number + SGPR_VALID), "i32").cmp("ne", 0)
        b.set_field(row, RowShadow, "valid", defined.select(valid | bit, valid & ~bit))
        origin = b.load(b.at(frame.shadow, number + SGPR_ORIGIN), "i32")
        b.set_field(row, RowShadow, "origin", defined.select(b.field(row, RowShadow, "origin"), origin))

    return Piece(f"write lane {source is None} {kind}", emit, tuple(words.values))


def _lane_kind(words: Words, site: Site, operand: int) -> str:
    """Puts the number of a lane, or of the register that has it, in the next word."""
    parsed = parse_operand(site.instruction.operands[operand])
    words.values.append(int(parsed.value) if parsed.kind == CONSTANT else parsed.index)
    return parsed.kind


def _lane(frame: Frame, kind: str, word: int) -> tuple[Value, Value]:
    """The number of a lane, an i64, and 1 where it is defined, an i32."""
    b = frame.b
    one = b.const(1, "i32")
    if kind == "first":
        return frame.exec.count("cttz") & 63, one
    if kind == CONSTANT:
        return (frame.word(word) & 63).to("i64"), one
    at = frame.word(word) * 4
    valid = b.load(b.at(frame.shadow, at + SGPR_VALID), "i32").cmp("eq", -1)
    return (b.load(b.at("%s", at), "i32") & 63).to("i64"), valid.to("i32")


def _swap_rows(rows: int, site: Site) -> Piece:
    """v_permlane16_swap and v_permlane32_swap: the odd rows of the first against the even rows of the second."""
    words = Words()
    for span in site.effects.writes:
        words.values.append(place_of(span, site.registers))
    odd = sum(1 << lane for lane in range(WAVE_SIZE) if lane & rows)

    def emit(frame: Frame) -> None:
        b, known = frame.b, Known(frame, frame.exec)
        pair = [Item(VECTOR, n) for n in range(2)]
        first, second = (known.lanes(item) for item in pair)
        origins = [known.origin(item) for item in pair]
        mask = b.const(odd - (1 << 64), "i64")
        new = first & ~mask | (second & ~mask).shl(rows), second & mask | (first & mask).shr(rows)
        for item, old, valid, own, other in zip(pair, (first, second), new, origins, origins[::-1], strict=True):
            row = known.row(item)
            b.set_field(row, RowShadow, "valid", old & ~frame.exec | valid & frame.exec)
            b.set_field(row, RowShadow, "origin", (old & frame.exec).cmp("eq", frame.exec).select(other, own))

    return Piece(f"swap rows {rows}", emit, tuple(words.values))


MOVES: dict[str, Callable[[Site], Piece]] = {
    "v_readfirstlane_b32": _read_lane, "v_readlane_b32": _read_lane, "v_writelane_b32": _write_lane,
    "v_permlane16_swap_b32": partial(_swap_rows, 16), "v_permlane32_swap_b32": partial(_swap_rows, 32)}


def relative_piece(site: Site) -> Iterator[Piece]:
    """Results of instructions whose registers M0 picks: they are defined, wherever they are."""
    text = site.instruction.operands[0]
    result = parse_operand(text)
    if site.instruction.mnemonic.startswith("s_movrels"):
        words = Words()
        found = items(Span("s", result.index, result.count, 0), site.registers, words)
        yield propagate([Equation(item) for item in found], words.values)
    elif site.instruction.mnemonic.startswith("s_movreld"):
        yield Piece(f"relative scalar {result.count}", partial(_emit_scalar, count=result.count), (result.index,))
    else:
        for span in site.effects.writes:
            if span.file != "s":
                rows = site.registers.end_of_vectors // (4 * WAVE_SIZE) - span.count
                yield Piece(f"relative row {span.count}", partial(_emit_row, count=span.count),
                            (row_of(span, site.registers), rows))


def _emit_scalar(frame: Frame, count: int) -> None:
    b = frame.b
    number = frame.word(0) + b.load(b.at("%s", 4 * M0), "i32")
    with b.when(number.cmp("ule", NUMBERED_SGPRS - count)):
        for n in range(count):
            b.store(b.const(-1, "i32"), b.at(frame.shadow, number * 4 + (SGPR_VALID + 4 * n)))


def _emit_row(frame: Frame, count: int) -> None:
    """VGPR indexing: M0 has the index, and a bit that says whether it counts for the result."""
    b = frame.b
    state = b.load(b.at("%s", 4 * M0), "i32")
    number = frame.word(0) + (state.shr(15) & 1).cmp("ne", 0).select(state & 0xFF, 0)
    with b.when(number.cmp("ule", frame.word(1))):
        for n in range(count):
            _define(b, row_shadow(b, frame.shadow, number + n), frame.exec)


def _define(b: Builder, row: str, lanes: Value) -> None:
    b.set_field(row, RowShadow, "valid", b.field(row, RowShadow, "valid") | lanes)
