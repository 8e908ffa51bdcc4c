"""Formatted loads and stores: `buffer_load_format_*` and `tbuffer_*`, whose data is converted on the way.

The format is the instruction's (tbuffer) or the descriptor's, which then also says which component goes to which
register (DST_SEL). A component that the format lacks reads 0, the fourth 1. An element is in range as a whole.
A format that the ISA does not have, a store of fewer components than the format has, and a store to floats of 10 and 11
bits are faults. Source: CDNA3 ISA, "Memory buffer instructions", "Buffer data" (the table of data formats).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from flylab.emulator.handlers.ir import Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.memory.access import BASE, FORMAT, Access, fault_of_wave
from flylab.emulator.memory.buffers import BufferPlace
from flylab.emulator.memory.formats import (
    COUNT_AT,
    FLOAT,
    NUMBERS_AT,
    RESERVED,
    ROW,
    SINT,
    SIZE_AT,
    SNORM,
    SSCALED,
    UINT,
    UNORM,
    USCALED,
    table,
)
from flylab.emulator.memory.moves import VectorAccess
from flylab.emulator.numbers.rounding import narrow
from flylab.emulator.state import BAD_FORMAT

ONE = 0x3F800000


@dataclass(frozen=True)
class Form:
    """What makes a handler beside its `Access`: components, where the format is, halves ("", "low" or "high")."""

    count: int
    from_descriptor: bool
    half: str = ""


class Formatted(VectorAccess):
    """A load or store of up to four components."""

    def __init__(self, access: Access, form: Form):
        super().__init__(access)
        self.form = form

    def begin(self) -> None:
        """Room for an element, the format's row of the table, and the refusal of one that cannot be."""
        super().begin()
        self.b.do("%element = alloca [4 x i32], align 16")
        self.find_format()

    def find_format(self) -> None:
        """Sets what the format says: the bytes of an element above all."""
        b, form = self.b, self.form
        text = "".join(f"\\{byte:02X}" for byte in table())
        b.intrinsics["formats"] = f'@formats = private constant [{len(table())} x i8] c"{text}"'
        word = b.load(b.at(b.at("%s", slot(b, BASE)), 12), "i32")
        code = word.shr(12) & 0x7F if form.from_descriptor else slot(b, FORMAT)
        # In a descriptor NUM_FORMAT is below DATA_FORMAT, in an instruction above.
        data, self.number = (code.shr(3) & 15, code & 7) if form.from_descriptor else (code & 15, code.shr(4))
        self.select = word if form.from_descriptor else word.like(0o7654)
        self.format = b.at("@formats", data * ROW)
        self.components = self.field(COUNT_AT)
        known = self.field(NUMBERS_AT).shr(self.number.call("umin", RESERVED)) & 1
        wrong = known.cmp("eq", 0) | self.number.cmp("eq", RESERVED)
        if self.access.store:
            wrong = wrong | self.components.cmp("ugt", form.count) | (
                self.number.cmp("eq", FLOAT) & self.field(2).cmp("ult", 12))
        fault_of_wave(b, BAD_FORMAT, self.exec, wrong, (data | self.number.shl(4)).to("i64"), form.count)
        assert isinstance(self.place, BufferPlace)
        self.place.size, self.place.formatted = self.field(SIZE_AT).to("i64"), True

    def field(self, at: Value | int) -> Value:
        """A byte of the format's row as i32."""
        b = self.b
        return b.load(b.at(self.format, at), "i8", align=1).to("i32")

    def one(self, lane: Value, pointer: str, piece: Value | None) -> None:
        b = self.b
        b.store(b.const(0, "i32", 4), "%element", 16)
        if self.access.store:
            self.pack(lane)
            self.copy(pointer, "%element")
        else:
            self.copy("%element", pointer)
            with self.each() as (n, _):
                self.put(lane, n, self.component(n))

    def each(self) -> AbstractContextManager[tuple[Value, str]]:
        """A loop over the components of the registers."""
        return self.b.set_bits(self.b.const((1 << self.form.count) - 1, "i64"))

    def chosen(self, n: Value) -> Value:
        """What DST_SEL says for register n: 0, 1, or 4 and the component's number."""
        return self.select.shr(n.to("i32") * 3) & 7

    def copy(self, target: str, source: str) -> None:
        """The element's bytes: 1, 2, or whole dwords. No memcpy: a handler that calls out of itself moves the offset
        table by which MCJIT finds the constants of all others."""
        b, size = self.b, self.field(SIZE_AT)
        for type_, at, here in (("i8", 0, size.cmp("eq", 1)), ("i16", 0, size.cmp("eq", 2)),
                                *(("i32", at, size.cmp("ugt", max(at, 2))) for at in (0, 4, 8, 12))):
            with b.when(here):
                b.store(b.load(b.at(source, at), type_, align=1), b.at(target, at), 1)

    def drop(self, lane: Value, piece: Value | None) -> None:
        if not self.access.store:
            with self.each() as (n, _):
                self.put(lane, n, self.chosen(n).cmp("eq", 1).select(self.unit(), 0))

    def unit(self) -> Value:
        """1 as the format's kind of number."""
        return self.is_integer().select(self.number.like(1), ONE)

    def is_integer(self) -> Value:
        return self.number.cmp("eq", UINT) | self.number.cmp("eq", SINT)

    def component(self, n: Value) -> Value:
        """What register n gets: the component that DST_SEL names, 0 or 1."""
        chosen = self.chosen(n)
        which = chosen - 4
        there = which.cmp("ult", self.components)
        value = self.decoded(there.select(which, 0))
        absent = (chosen.cmp("eq", 1) | chosen.cmp("eq", 7)).select(self.unit(), 0)
        return there.select(value, absent)

    def place_of(self, which: Value) -> tuple[str, Value, Value]:
        """A component's dword of the element, its first bit and its bits."""
        dword, first, bits = (self.field((which * 3 + n).to("i64")) for n in range(3))
        return self.b.at("%element", dword.to("i64")), first, bits

    def decoded(self, which: Value) -> Value:
        """A component as the 32 bits of a register."""
        b = self.b
        dword, first, bits = self.place_of(which)
        up = b.load(dword, "i32").shl(self.less(first, bits))
        free = bits.like(32) - bits
        field, signed = up.shr(free), up.sar(free)
        most = (bits.like(-1).shr(free)).to_float("float", False)
        unorm = field.to_float("float", False) / most
        snorm = signed.to_float("float", True) / bits.like(0x7FFFFFFF).shr(free).to_float("float", False)
        small = field.shl((bits.cmp("eq", 16)).select(bits.like(0), bits.like(15) - bits)).to("i16")
        floating = bits.cmp("eq", 32).select(field, small.bits("half").to("float").bits("i32"))
        found = floating
        for number, value in ((UNORM, unorm), (SNORM, snorm.cmp("olt", -1.0).select(-1.0, snorm)),
                              (USCALED, field.to_float("float", False)), (SSCALED, signed.to_float("float", True)),
                              (UINT, field), (SINT, signed)):
            found = self.number.cmp("eq", number).select(value.bits("i32"), found)
        return found

    @staticmethod
    def less(first: Value, bits: Value) -> Value:
        """How far a field is from the upper end of its dword."""
        return first.like(32) - first - bits

    def half_at(self, n: Value, lane: Value) -> str:
        """Where the half of a register is that is component n."""
        return self.b.at(self.register_at(n.shr(1), lane), 2 if self.form.half == "high" else (n & 1).shl(1))

    def put(self, lane: Value, n: Value, value: Value) -> None:
        """A component in its register, or half of one."""
        b = self.b
        if not self.form.half:
            b.store(value, self.register_at(n, lane))
            return
        short = self.is_integer().select(value.to("i16"), narrow(value.bits("float")).bits("i16"))
        b.store(short, self.half_at(n, lane), 2)

    def taken(self, lane: Value, n: Value) -> Value:
        """What register n holds, as 32 bits."""
        b = self.b
        if not self.form.half:
            return b.load(self.register_at(n, lane), "i32")
        short = b.load(self.half_at(n, lane), "i16", align=2)
        wide = self.number.cmp("eq", SINT).select(short.to("i32", True), short.to("i32"))
        return self.is_integer().select(wide, short.bits("half").to("float").bits("i32"))

    def pack(self, lane: Value) -> None:
        """The components into the element; register n holds the component that DST_SEL names."""
        b = self.b
        with self.each() as (n, _):
            which = self.chosen(n) - 4
            with b.when(which.cmp("ult", self.components)):
                dword, first, bits = self.place_of(which)
                most = bits.like(-1).shr(bits.like(32) - bits)
                field = self.encoded(self.taken(lane, n), bits, most) & most
                b.store(b.load(dword, "i32") | field.shl(first), dword)

    def encoded(self, value: Value, bits: Value, most: Value) -> Value:
        """A register's 32 bits as a component's, of which those above its size do not count."""
        x, half = value.bits("float"), most.shr(1)
        number = x.cmp("uno", x).select(0.0, x)
        positive = number.call("maxnum", 0.0)
        unit = positive.call("minnum", 1.0) * most.to_float("float", False)
        both = number.call("maxnum", -1.0).call("minnum", 1.0) * half.to_float("float", False)
        small = bits.cmp("eq", 32).select(value, narrow(x).bits("i16").to("i32"))
        found = self.number.cmp("eq", FLOAT).select(small, value)
        whole = number.to_int("i32", True)
        for kind, scaled in ((UNORM, unit.call("roundeven").to_int("i32", False)),
                             (SNORM, both.call("roundeven").to_int("i32", True)),
                             (USCALED, positive.to_int("i32", False).call("umin", most)),
                             (SSCALED, whole.call("smin", half).call("smax", ~half))):
            found = self.number.cmp("eq", kind).select(scaled, found)
        return found
