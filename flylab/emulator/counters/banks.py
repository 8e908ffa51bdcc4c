"""Counting accesses of LDS: native code for the phases and the bank conflicts of `flylab.lds_banks`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.emulator.counters.tally import ACCESSES, CYCLES, PHASES, Seen, Tally, gain_at
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.memory import access, lds, lds_m0
from flylab.emulator.probes.probe import Frame, Piece, Site
from flylab.emulator.state import M0, WAVE_SIZE
from flylab.lds_banks import ROWS, WORD, Phases, phases

SIGNATURE = "void @(ptr %tally, i64 %lanes, i32 %first, i32 %size, i32 %accesses)"
Where = Callable[[Frame], tuple[Value, Value]]
COUNTERS = ("ds_append", "ds_consume")
ALIGNING = "ds_condxchg32_rtn_b64"
"""The one whose addresses are rounded down to multiples of 8."""


def helper(rule: Phases) -> str:
    """The name of the native function that counts by a rule."""
    return f"{rule.arch} {rule.like}"


def write(rule: Phases, name: str) -> str:
    """The native function: what the pattern of a tally adds, whose first lane is at byte `first` of a word.

    In each phase the words of the lanes are put in the list of their bank, unless they are there.
    """
    b = Builder()
    most = max(len(phase) for phase in rule.lanes)  # words of a bank: a lane has one there at most
    lengths, words, masks = (b.let(f"alloca {type_}, align 64", "ptr").name for type_ in (
        f"[{rule.banks} x i8]", f"[{rule.banks * most} x i32]", f"[{len(rule.lanes)} x i64]"))
    b.store(b.vector(rule.masks, "i64"), masks, 64)
    lanes, first, size = Value(b, "%lanes", "i64"), Value(b, "%first", "i32"), Value(b, "%size", "i32")
    distances, zero = b.at("%tally", Tally.lds_distances.offset), b.const(0, "i64")
    with b.repeat(len(rule.lanes), zero, zero) as phase:
        b.store(b.const(0, "i8", rule.banks), lengths, 64)
        served = lanes & b.load(b.at(masks, phase.index.shl(3)), "i64", align=8)
        with b.set_bits(served) as (lane, _):
            at = b.load(b.at(distances, lane.shl(2)), "i32") + first
            count = ((at & WORD - 1) + size + (WORD - 1)).shr(2)
            with b.set_bits(count.to("i64").like(1).shl(count.to("i64")) - 1) as (number, _):
                _put(b, at.sar(2) + number.to("i32"), rule.banks, most, lengths, words)
        fullest = b.call(f"llvm.vector.reduce.umax.v{rule.banks}i8", "i8", 0, b.load(lengths, "i8", rule.banks, 64))
        phase.values = [phase.values[0] + served.cmp("ne", 0).to("i64"), phase.values[1] + fullest.to("i64")]
    accesses = Value(b, "%accesses", "i32").to("i64")
    for gain, value in ((ACCESSES, lanes.cmp("ne", 0).to("i64")), (PHASES, phase.values[0]),
                        (CYCLES, phase.values[1])):
        b.store(value * accesses, gain_at(b, "%tally", "lds", gain), 8)
    b.do("ret void")
    return b.function(name, SIGNATURE)


def _put(b: Builder, word: Value, banks: int, most: int, lengths: str, words: str) -> None:
    """Puts a word in the list of its bank, unless it is there."""
    bank, there = (word & banks - 1).to("i64"), b.fresh("there")
    length_at, row = b.at(lengths, bank), b.at(words, bank * (4 * most))
    length = b.load(length_at, "i8", align=1).to("i64")
    with b.set_bits(length.like(1).shl(length) - 1) as (number, _):
        b.leave_when(b.load(b.at(row, number.shl(2)), "i32").cmp("eq", word), there)
    b.store(word, b.at(row, length.shl(2)))
    b.store((length + 1).to("i8"), length_at, 1)
    b.jump(there)
    b.label(there)


HELPERS = {helper(rule): partial(write, rule) for rule in ROWS.values()}


def pieces(site: Site) -> list[Piece]:
    """What counts the LDS accesses of an instruction, its second place with the first: they differ by whole words."""
    where = addressing(site)
    if where is None:
        return []
    rule = phases(site.kernel.target.arch, site.instruction.mnemonic)
    return [Piece(f"banks {where.__name__}", partial(_count, where, helper(rule)), (rule.size, rule.accesses),
                  (helper(rule),))]


def addressing(site: Site) -> Where | None:
    """What gives the addresses of an access of LDS; None for an instruction that makes none.

    The first word of the piece that uses it is the bytes of a lane.
    """
    effects, mnemonic = site.effects, site.instruction.mnemonic
    if effects.to_lds:
        return straight
    if effects.space != "lds" or not (effects.load or effects.store or effects.atomic):
        return None
    if mnemonic == ALIGNING:
        return aligned
    return counter if mnemonic in COUNTERS else by_lane if "addtid" in mnemonic else plain


def _count(where: Where, name: str, frame: Frame) -> None:
    """Counts an access. Its cost hangs on where within its word the first byte is, as all may move by whole words."""
    b = frame.b
    first, distances = where(frame)
    within = first & WORD - 1
    seen = Seen(b, frame.tally, "lds", frame.exec, distances, within.to("i64"))
    with b.when(seen.is_new()):
        seen.keep()
        frame.call(name, frame.tally, frame.exec, within, frame.word(0), frame.word(1))
    seen.count()


# Each of these gives a byte offset of LDS and how far each lane's is from it, i32 modulo 2**32.


def plain(frame: Frame) -> tuple[Value, Value]:
    """Addresses in a vector register, from the first active lane's."""
    b = frame.b
    row = b.at("%v", slot(b, lds.ADDRESS))
    first = b.load(b.at(row, (frame.exec.count("cttz") & WAVE_SIZE - 1).shl(2)), "i32")
    return first + slot(b, lds.FIRST_PLACE), b.load(row, "i32", WAVE_SIZE, 64) - first.splat(WAVE_SIZE)


def aligned(frame: Frame) -> tuple[Value, Value]:
    """Addresses in a vector register, rounded down to multiples of 8."""
    b = frame.b
    row = b.load(b.at("%v", slot(b, lds.ADDRESS)), "i32", WAVE_SIZE, 64)
    return b.const(0, "i32"), row + slot(b, lds.FIRST_PLACE).splat(WAVE_SIZE) & -8


def counter(frame: Frame) -> tuple[Value, Value]:
    """One word for all lanes, at M0."""
    return _at_m0(frame.b, lds_m0.OFFSET), frame.b.const(0, "i32", WAVE_SIZE)


def by_lane(frame: Frame) -> tuple[Value, Value]:
    """Words side by side from M0 on, in the order of the lanes."""
    return _at_m0(frame.b, lds_m0.OFFSET), frame.b.vector(range(0, WORD * WAVE_SIZE, WORD), "i32")


def straight(frame: Frame) -> tuple[Value, Value]:
    """The data of lanes side by side from M0 on; those that a buffer clamps write zeros."""
    steps = frame.b.vector(range(WAVE_SIZE), "i32") * frame.word(0).splat(WAVE_SIZE)
    return _at_m0(frame.b, access.OFFSET), steps


def _at_m0(b: Builder, offset_slot: int) -> Value:
    return b.load(b.at("%s", 4 * M0), "i32") + slot(b, offset_slot)
