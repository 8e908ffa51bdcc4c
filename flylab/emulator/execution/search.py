"""The search of the memory that an access falls in, as native code."""

from __future__ import annotations

import ctypes

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.state import RANGE_OFFSET, READ_DWORDS, WRITE, Launch, Range, Worker


def check_text(name: str) -> str:
    """The lowest lane of `mask` whose access of `size` bytes lies in no buffer, or -1.

    The addresses in `Worker.addresses` become the host's. `does` is READ, WRITE or READ_DWORDS. The record remembers
    the last buffer it found, but for those with holes, which are looked at each time.
    """
    b = Builder()
    size, does = Value(b, "%size", "i64"), Value(b, "%does", "i64")
    ranges, launch = b.field("%w", Worker, "ranges").name, b.field("%w", Worker, "launch").name
    known = b.at("%r", RANGE_OFFSET)
    b.do("%at = alloca i64")
    bits = b.set_bits(Value(b, "%mask", "i64"))
    with bits as (lane, _):
        place = b.at(b.at("%w", Worker.addresses.offset), lane * 8)
        address = b.load(place, "i64", align=8)
        last = b.at(ranges, b.load(known, "i64", align=8))
        with b.when(_inside(b, last, address, size, does)):
            b.store(address + b.field(last, Range, "distance"), place, 8)
            b.jump(bits.tail)
            b.label(b.fresh("unreached"))
        b.set_field("%w", Worker, "cursor", 0)
        with b.forever() as (following, missing):
            at = b.field("%w", Worker, "cursor") + ctypes.sizeof(Range)
            b.leave_when(at.cmp("uge", b.field(launch, Launch, "range_count") * ctypes.sizeof(Range)), missing)
            b.set_field("%w", Worker, "cursor", at)
            range_ = b.at(ranges, at)
            with b.when(_inside(b, range_, address, size, does)):
                marks = b.field(range_, Range, "marks")
                with b.when(b.let(f"icmp eq ptr {marks.name}, null", "i1")):
                    b.store(at, known, align=8)
                with b.when(b.let(f"icmp ne ptr {marks.name}, null", "i1")):
                    _leave_in_hole(b, range_, marks.name, (address, size, does), following)
                b.store(address + b.field(range_, Range, "distance"), place, 8)
                b.jump(bits.tail)
                b.label(b.fresh("unreached"))
        b.do(f"ret {lane.typed}")
        b.label(b.fresh("unreached"))
    b.do("ret i64 -1")
    return b.function(name, "i64 @(ptr %w, ptr %r, i64 %mask, i64 %size, i64 %does)")


def _leave_in_hole(b: Builder, range_: str, marks: str, access: tuple[Value, Value, Value], target: str) -> None:
    """Leaves where a byte of an access (address, size, does) in a range is that of no element."""
    address, size, does = access
    first = (address - b.field(range_, Range, "low")).modulo(b.field(range_, Range, "period"))
    shift, dwords = b.field(range_, Range, "unit"), does.cmp("eq", READ_DWORDS)
    unit = shift.like(1).shl(shift)
    b.store(dwords.select(first, first & -unit), "%at", 8)
    with b.forever() as (_, end):
        at = b.load("%at", "i64", align=8)
        b.leave_when(at.cmp("uge", first + size), end)
        b.leave_when(b.load(b.at(marks, at.shr(shift)), "i8", align=1).cmp("eq", 0), target)
        b.store(at + dwords.select(unit.like(4), unit), "%at", 8)


def _inside(b: Builder, range_: str, address: Value, size: Value, does: Value) -> Value:
    high = does.cmp("eq", WRITE).select(b.field(range_, Range, "write_high"), b.field(range_, Range, "high"))
    return (b.field(range_, Range, "low").cmp("ule", address) & address.cmp("ult", high) &
            size.cmp("ule", high - address))
