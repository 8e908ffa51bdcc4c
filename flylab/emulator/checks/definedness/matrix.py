"""How definedness goes through a matrix instruction: D = C + A x B, whatever EXEC says.

A lane of A that is undefined leaves its row of D undefined, one of B its column, one of C its own element. Of a sparse
A the indices count like A itself, of scaled operands the scales like what they scale.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

from flylab.codegen.assembly.effects import Effects, Span
from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import Instruction
from flylab.emulator.checks.definedness.places import VECTOR, Item, Known, Words, items
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.handlers.ir import Value
from flylab.emulator.probes.probe import Frame, Piece
from flylab.emulator.probes.shadow import RowShadow
from flylab.emulator.state import WAVE_SIZE
from flylab.mfma import Mfma, mfma

QUARTER = WAVE_SIZE // 4


@dataclass(frozen=True)
class Parts:
    """The registers of a matrix instruction: of A (and what counts like it), of B, of C (where it is none) and of D."""

    row: Mfma
    a: tuple[Item, ...]
    b: tuple[Item, ...]
    c: tuple[Item, ...]
    d: tuple[Item, ...]
    broadcast: tuple[int, int]
    permuted: int

    @property
    def key(self) -> str:
        """What tells its code from that of others."""
        row, parts = self.row, (" ".join(map(str, part)) for part in (self.a, self.b, self.c, self.d))
        return f"matrix {row.m} {row.blocks} {row.result} {' | '.join(parts)} {self.broadcast} {self.permuted}"


def matrix_piece(instruction: Instruction, effects: Effects, registers: Registers) -> Piece:
    """The piece that keeps the result of a matrix instruction."""
    row, words = mfma(base_name(instruction.mnemonic)), Words()
    of = partial(items, registers=registers, words=words, kind=VECTOR)
    by_operand: dict[int, list[Span]] = {}
    for span in effects.reads:
        by_operand.setdefault(span.operand, []).append(span)

    def taken(*operands: int) -> tuple[Item, ...]:
        return tuple(item for n in operands for span in by_operand.get(n, ()) for item in of(span))

    numbers = {name: int(value) for name, _, value in (word.partition(":") for word in instruction.modifiers)
               if value.isdigit()}
    broadcast = (numbers.get("cbsz", 0), numbers.get("abid", 0)) if row.broadcasts else (0, 0)
    permuted = numbers.get("blgp", 0) if row.permutes and not row.sparse else 0
    # Operands: D, A, B, then C or the indices of a sparse A, whose C is D; then the scales of A and B.
    a, c = ((1, 3), (0,)) if row.sparse else ((1, 4), (3,))
    parts = Parts(row, taken(*a), taken(2, 5), taken(*c), tuple(of(effects.writes[0])), broadcast, permuted)
    return Piece(parts.key, lambda frame: _emit(frame, parts), tuple(words.values))


def _emit(frame: Frame, parts: Parts) -> None:
    b = frame.b
    known = Known(frame, b.const(-1, "i64"))
    every = b.const(-1, "i64")
    for item in (*parts.a, *parts.b, *parts.c):
        every = every & known.lanes(item)
    for item in parts.d:
        known.number(item)
    some, fast, end = (b.fresh(prefix) for prefix in ("some", "fast", "end"))
    b.branch(every.cmp("ne", -1), some, fast)
    b.label(fast)
    if parts.c != parts.d:  # else it is there already
        for item in parts.d:
            b.set_field(known.row(item), RowShadow, "valid", -1)
    b.jump(end)
    b.label(some)
    _some(known, parts)
    b.jump(end)
    b.label(end)


def _some(known: Known, parts: Parts) -> None:
    """Where something is undefined."""
    b, row = known.b, parts.row
    of_a, of_b = (_undefined(known, side) for side in (parts.a, parts.b))
    rows = _folded(_broadcast(of_a, *parts.broadcast), row.m * row.blocks)
    columns = _folded(_permuted(of_b, parts.permuted), row.n * row.blocks)
    origin = known.first_origin((*parts.a, *parts.b), b.const(-1, "i64"))
    each = row.result_bits // 32
    undefined = [_of_item(rows, columns, row, item) for item in range(row.result_items)]
    results = []
    for n, item in enumerate(parts.d):
        bad, by = undefined[n // each], origin
        if parts.c:  # of a double both halves
            halves = parts.c[n // each * each:n // each * each + each]
            own = _undefined(known, halves)
            by = own.cmp("ne", 0).select(known.first_origin(halves, own), by)
            bad = bad | own
        results.append((item, ~bad, by))
    for item, valid, by in results:
        place = known.row(item)
        b.set_field(place, RowShadow, "valid", valid)
        b.set_field(place, RowShadow, "origin", by)


def _undefined(known: Known, side: tuple[Item, ...]) -> Value:
    """The lanes of which one of the registers is undefined."""
    found = known.b.const(0, "i64")
    for item in side:
        found = found | ~known.lanes(item)
    return found


def _of_item(rows: Value, columns: Value, row: Mfma, item: int) -> Value:
    """The lanes of an item of D whose row of A or whose column of B is undefined."""
    ones = (1 << row.n) - 1
    found = rows.like(0)
    for group in range(WAVE_SIZE // row.n):
        block, line = _places(row.m, row.blocks, row.result)[item, group]
        bit = rows.shr(block * row.m + line) & 1
        here = ((bit.like(0) - bit) | columns.shr(block * row.n)) & ones
        found = found | (here.shl(group * row.n) if group else here)
    return found


@lru_cache(maxsize=32)
def _places(m: int, blocks: int, result: str) -> dict[tuple[int, int], tuple[int, int]]:
    """By item and group of n lanes of D: the block and the row."""
    row = Mfma("", m, m, 1, blocks, "f32", "f32", result, ())
    found = {}
    for block in range(blocks):
        for line in range(m):
            item, lane = row.result_place(block, line, 0)
            found[item, lane // m] = block, line
    return found


def _folded(lanes: Value, size: int) -> Value:
    """Lanes that hold other elements of K of the same row or column, as one."""
    step = WAVE_SIZE // 2
    while step >= size:
        lanes = (lanes | lanes.shr(step)) & ((1 << step) - 1)
        step //= 2
    return lanes


def _broadcast(lanes: Value, cbsz: int, abid: int) -> Value:
    """A as cbsz has it: the lanes of block `abid` of 64 >> cbsz stand for all."""
    return _repeated(lanes, WAVE_SIZE >> cbsz, abid) if cbsz else lanes


def _permuted(lanes: Value, blgp: int) -> Value:
    """B as blgp has it: half of the lanes for all, all turned by a quarter, or a quarter for all."""
    turned: tuple[Callable[[], Value], ...] = (
        lambda: lanes, lambda: _repeated(lanes, 2 * QUARTER, 0), lambda: _repeated(lanes, 2 * QUARTER, 1),
        lambda: lanes.shr(QUARTER) | lanes.shl(WAVE_SIZE - QUARTER),
        *(partial(_repeated, lanes, QUARTER, n) for n in range(4)))
    return turned[blgp]()


def _repeated(lanes: Value, size: int, number: int) -> Value:
    """A group of `size` lanes in the place of all."""
    group = (lanes.shr(size * number) if number else lanes) & ((1 << size) - 1)
    while size < WAVE_SIZE:
        group = group | group.shl(size)
        size *= 2
    return group
