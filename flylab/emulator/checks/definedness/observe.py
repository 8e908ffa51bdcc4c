"""Where a value is looked at: what is undefined there is reported, and counts as defined from then on.

A value is looked at as an address, as data that goes to global memory, as the condition of a branch, and as what goes
into EXEC. Nothing is looked at where no lane is active: LLVM lets such code run on what comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from flylab.emulator.checks.definedness.lds import note_of
from flylab.emulator.checks.definedness.places import (
    MASK,
    SCALAR_ORIGIN,
    SGPR_ORIGIN,
    SGPR_VALID,
    Item,
    Known,
    row_shadow,
)
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.probe import Frame, Piece, find
from flylab.emulator.probes.shadow import RowShadow, WaveShadow
from flylab.emulator.state import PRIVATE_APERTURE, SCC, SHARED_APERTURE, VCC, WAVE_SIZE

ADDRESS, DATA, BRANCH, INTO_EXEC = range(201, 205)
"""The kinds of findings, one for each way of looking at a value."""
ROWS, SCALARS = "observed rows", "observed scalars"


def observe_rows(span: tuple[int, int], kind: int, generic: int = -1) -> Piece:
    """Vector registers, a row and a count, that are looked at in active lanes.

    `generic` is the row of the high half of flat addresses: only lanes that lead to global memory count.
    """
    words = [*span, kind, *([generic] if generic >= 0 else [])]
    return Piece(f"observe rows {span[1]} {generic >= 0}", lambda frame: _emit_rows(frame, span[1], generic >= 0),
                 tuple(words), (ROWS,))


def _emit_rows(frame: Frame, count: int, generic: bool) -> None:
    b = frame.b
    known = Known(frame, frame.exec)
    every = b.const(-1, "i64")
    for n in range(count):
        every = every & known.lanes(Item("v", 0, n))
    with b.when((frame.exec & ~every).cmp("ne", 0)):
        lanes = frame.exec & b.field(frame.shadow, WaveShadow, "initial_exec")
        if generic:
            high = b.load(b.at("%v", frame.word(3).to("i64") * (4 * WAVE_SIZE)), "i32", WAVE_SIZE, 64)
            local = high.cmp("eq", SHARED_APERTURE >> 32) | high.cmp("eq", PRIVATE_APERTURE >> 32)
            lanes = lanes & ~local.recast("i64", 0)
        frame.call(ROWS, "%w", frame.shadow, lanes, frame.index, frame.word(2).to("i64"), frame.word(0), frame.word(1))


def observe_scalars(first: int, count: int, kind: int) -> Piece:
    """Scalar registers that are looked at as a whole."""
    words = (first, count, kind)
    return Piece(f"observe scalars {count}", lambda frame: _emit_scalars(frame, count), words, (SCALARS,))


def _emit_scalars(frame: Frame, count: int) -> None:
    b = frame.b
    place = b.at(frame.shadow, frame.word(0) * 4 + SGPR_VALID)
    every = b.load(place, "i32")
    for n in range(1, count):
        every = every & b.load(b.at(place, 4 * n), "i32")
    with b.when(every.cmp("ne", -1)):
        _scalars(frame, frame.word(0), frame.word(1), frame.word(2).to("i64"), frame.exec, frame.exec)


def _scalars(frame: Frame, first: Value, count: Value, kind: Value, lanes: Value, bits: Value) -> None:
    """Calls the helper: `lanes` are those concerned, of a mask `bits` those that count."""
    frame.call(SCALARS, "%w", frame.shadow, lanes, frame.index, kind, first, count, bits)


def observe_condition(number: int) -> Piece:
    """SCC, or VCC as a condition: that it is not 0 is known where a bit that is defined is set."""
    if number == SCC:
        return observe_scalars(SCC, 1, BRANCH)
    return Piece("observe vcc", _emit_vcc, (), (SCALARS,))


def _emit_vcc(frame: Frame) -> None:
    b = frame.b
    valid = b.load(b.at(frame.shadow, SGPR_VALID + 4 * VCC), "i64")
    set_ = b.load(b.at("%s", 4 * VCC), "i64") & valid
    with b.when(valid.cmp("ne", -1) & set_.cmp("eq", 0)):
        _scalars(frame, b.const(VCC, "i32"), b.const(2, "i32"), b.const(BRANCH, "i64"), frame.exec & ~valid, frame.exec)


def into_exec(frame: Frame, bits: Value, sources: Sequence[Value], count: int) -> None:
    """Bits that go into EXEC and are undefined, from scalar registers: reported in lanes that are active."""
    b = frame.b
    lanes = bits & frame.exec & b.field(frame.shadow, WaveShadow, "initial_exec")
    with b.when(lanes.cmp("ne", 0)):
        for number in sources:
            _scalars(frame, number, b.const(count, "i32"), b.const(INTO_EXEC, "i64"), lanes, lanes)


def rows_into_exec(items: Sequence[Item], words: Sequence[int]) -> Piece:
    """Sources of v_cmpx, whose result goes into EXEC."""
    key = "into exec " + " ".join(map(str, items))

    def emit(frame: Frame) -> None:
        b, known = frame.b, Known(frame, frame.exec)
        every = b.const(-1, "i64")
        for item in items:
            every = every & known.lanes(item)
        with b.when((frame.exec & ~every).cmp("ne", 0)):
            for item in items:
                number, one, kind = known.number(item), b.const(1, "i32"), b.const(INTO_EXEC, "i64")
                if item.kind == "v":
                    lanes = frame.exec & b.field(frame.shadow, WaveShadow, "initial_exec")
                    frame.call(ROWS, "%w", frame.shadow, lanes, frame.index, kind, number, one)
                elif item.kind != MASK:
                    _scalars(frame, number, one, kind, frame.exec, frame.exec)

    return Piece(key, emit, tuple(words), (ROWS, SCALARS))


def _rows_text(name: str) -> str:
    """Reports each of some rows that is undefined in some lanes: (worker, shadow, lanes, index, kind, row, count)."""
    b = Builder()
    lanes, index, kind = (Value(b, f"%{n}", "i64") for n in ("lanes", "index", "kind"))
    with b.set_bits(_numbers(b)) as (number, _):
        row = Value(b, "%first", "i32") + number.to("i32")
        shadow = row_shadow(b, "%shadow", row)
        valid = b.field(shadow, RowShadow, "valid")
        undefined = lanes & ~valid
        with b.when(undefined.cmp("ne", 0)):
            _find(b, index, kind, undefined, row, b.field(shadow, RowShadow, "origin"))
            b.set_field(shadow, RowShadow, "valid", valid | lanes)
    b.do("ret void")
    return b.function(name, "void @(ptr %w, ptr %shadow, i64 %lanes, i64 %index, i64 %kind, i32 %first, i32 %count)")


def _scalars_text(name: str) -> str:
    """Reports each of some scalar registers of which a bit is undefined, as `_rows_text` does.

    Of what goes into EXEC and of VCC, `bits` are those that count.
    """
    b = Builder()
    lanes, index, kind, bits = (Value(b, f"%{n}", "i64") for n in ("lanes", "index", "kind", "bits"))
    first = Value(b, "%first", "i32")
    masked = kind.cmp("eq", INTO_EXEC) | first.cmp("eq", VCC)
    with b.when(lanes.cmp("eq", 0)):
        b.do("ret void")
        b.label(b.fresh("unreached"))
    with b.set_bits(_numbers(b)) as (nth, _):
        number = first + nth.to("i32")
        place = b.at("%shadow", number * 4 + SGPR_VALID)
        valid = b.load(place, "i32")
        half = (number & 1).cmp("ne", 0).select(bits.shr(32), bits).to("i32")
        wanted = masked.select(half, -1)
        with b.when((wanted & ~valid).cmp("ne", 0)):
            origin = b.load(b.at("%shadow", number * 4 + SGPR_ORIGIN), "i32")
            _find(b, index, kind, lanes, number | SCALAR_ORIGIN, origin)
            b.store(valid | wanted, place)
    b.do("ret void")
    return b.function(name, "void @(ptr %w, ptr %shadow, i64 %lanes, i64 %index, i64 %kind, i32 %first, i32 %count, "
                            "i64 %bits)")


def _numbers(b: Builder) -> Value:
    """A bit for each of the `count` registers."""
    return b.const(1, "i64").shl(Value(b, "%count", "i32").to("i64")) - 1


def _find(b: Builder, index: Value, kind: Value, lanes: Value, register: Value, origin: Value) -> None:
    """Leaves a finding: its key is the origin; with it go the lanes, the register, the origin, the bytes of LDS."""
    find(b, "%w", index, kind, lanes.count("cttz"), origin, lanes, register, origin, note_of(b, "%shadow", origin))


HELPERS: Mapping[str, Callable[[str], str]] = {ROWS: _rows_text, SCALARS: _scalars_text}
