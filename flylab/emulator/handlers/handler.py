"""What scalar and vector handlers of rows share: sources to values, values to bits."""

from __future__ import annotations

import math
from typing import Any

from flylab.emulator.decoding.table import Type
from flylab.emulator.handlers.forms import Form, Source
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.numbers.float_mode import apply, denormals_field, flushed, sign_bit
from flylab.emulator.numbers.rounding import Rounding, narrow


class Handler:
    """What scalar and vector handlers share: sources to values, values to result bits."""

    lanes = 0

    def __init__(self, form: Form):
        self.form, self.b = form, Builder()
        apply(form.mode, self.b, form.row, Rounding)

    def raw(self, source: Source, registers: int) -> Value:
        """The 32 or 64 bits of a scalar register or constant, in every lane."""
        type_ = "i64" if registers == 2 else "i32"
        if source.kind == "k":
            return slot(self.b, source.slot, type_).splat(self.lanes)
        return self.b.load(self.b.at("%s", slot(self.b, source.slot)), type_).splat(self.lanes)

    def value(self, source: Source, type_: Type) -> Value:
        """A source as the row's function wants it, modifiers applied."""
        bits = self.raw(source, type_.registers)
        if source.select:
            bits = _selected(bits, source)
        if type_.registers == 1 and type_.integer == "i16":
            bits = bits.to("i16")
        whole = bits
        if type_.is_float:
            bits = flushed(self.form.mode, bits, type_, 1)
        may_be_zero = bits is not whole or bool(source.control) and self.form.zero_fill
        if source.absolute:
            bits = bits & ~sign_bit(type_)
        if source.negative:
            bits = bits ^ sign_bit(type_)
        if not type_.is_float:
            return bits
        value = bits.bits(type_.bits)
        # Else LLVM makes x + (y or zero) into "x, or x + y", and a signalling NaN x stays one.
        return (value.call("arithmetic.fence") if may_be_zero else value).to(type_.value)

    def result(self, value: Value, type_: Type) -> Value:
        """The bits of a result: scaled, clamped, rounded to its format."""
        if not type_.is_float:
            return value
        scaled = self.scaled(type_)
        if scaled:
            value = scaled.select(value * self.form.scale, value)
        if self.form.clamp:
            nan = value.cmp("uno", value)
            zeroed = self.b.where(self.form.mode.flag(self.b, "dx10_clamp"), nan)
            low = (value.cmp("ugt", 0.0) & ~zeroed).select(value, 0.0)
            value = low.cmp("ogt", 1.0).select(1.0, low)
        value = self.half(value) if type_.bits == "half" else value
        bits = flushed(self.form.mode, value.bits(type_.integer), type_, 2)
        if scaled:  # it makes -0 positive
            bits = (scaled & (bits & ~sign_bit(type_)).cmp("eq", 0)).select(0, bits)
        return bits

    def half(self, value: Value) -> Value:
        """A result as a half; where the mode says so, one beyond the range is the largest unless it was infinite."""
        found = narrow(value)
        if self.b.saturate is False or value.type == "half":
            return found
        beyond = found.call("fabs").cmp("oeq", math.inf) & value.call("fabs").cmp("one", math.inf)
        return self.b.where(self.b.saturate, beyond).select(found.like(65504.0).call("copysign", found), found)

    def scaled(self, type_: Type) -> Value | None:
        """Where the output modifier (mul:2, mul:4, div:2) counts: not in IEEE mode, nor where denormals are given.

        Source: AMD's ISA documents, "Output modifiers".
        """
        if self.form.scale == 1.0:
            return None
        b = self.b
        yes = b.const(True, "i1", self.lanes)
        return ~(b.where(self.form.mode.flag(b, denormals_field(type_), 2), yes) | b.where(b.ieee, yes))

    def computed(self, arguments: list[Value]) -> tuple[Any, ...]:
        """The results of the row's function."""
        row = self.form.row
        function = row.clamped if self.form.clamp and row.clamped else row.compute
        found = function(*arguments)
        return found if isinstance(found, tuple) else (found,)


def _selected(bits: Value, source: Source) -> Value:
    """A byte or half of a register, extended to 32 bits."""
    kind, _, number = source.select.partition("_")
    size = 8 if kind == "BYTE" else 16
    up = bits.shl(32 - size - size * int(number))
    return up.sar(32 - size) if source.sign_extend else up.shr(32 - size)
