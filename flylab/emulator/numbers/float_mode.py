"""The MODE register: its fields as data, and what of them a kernel's handlers are made for.

Source: CDNA3 ISA, "Mode register"; LLVM's AMDGPU usage page for the names in a kernel's descriptor. A field that the
kernel never writes is known when its handlers are made; the others are read as the wave runs. Floating-point exceptions
and their traps are not modelled: a kernel that asks for one is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flylab.codegen.isa import IsaKernel
from flylab.emulator.decoding.hwreg import MODE_ID, hardware_field
from flylab.emulator.decoding.table import TYPES, Row, Type
from flylab.emulator.handlers.ir import Builder, Value, width
from flylab.emulator.state import MODE
from flylab.errors import UnknownInstruction

# A field of a `Mode` that is read from the register when the wave runs.
DYNAMIC = -1


class Field(NamedTuple):
    """The place of a field in MODE, and its name and default in a kernel's descriptor."""

    first: int
    size: int
    setting: str
    default: int = 0

    @property
    def mask(self) -> int:
        """Its bits in the register."""
        return ((1 << self.size) - 1) << self.first


FIELDS = {
    "round_32": Field(0, 2, "float_round_mode_32"),
    "round_16_64": Field(2, 2, "float_round_mode_16_64"),
    "denormals_32": Field(4, 2, "float_denorm_mode_32"),
    "denormals_16_64": Field(6, 2, "float_denorm_mode_16_64", 3),
    "dx10_clamp": Field(8, 1, "dx10_clamp", 1),
    "ieee": Field(9, 1, "ieee_mode", 1),
    "fp16_overflow": Field(23, 1, "fp16_overflow"),
}
KNOWN_BITS = sum(field.mask for field in FIELDS.values())


class Mode(NamedTuple):
    """The float mode of a handler, each field a number or DYNAMIC.

    Rounding modes are those of `rounding`. Of denormals bit 0 says that they are taken, bit 1 that they are given.
    """

    round_32: int = 0
    round_16_64: int = 0
    denormals_32: int = 3
    denormals_16_64: int = 3
    dx10_clamp: int = 1
    ieee: int = 1
    fp16_overflow: int = 0

    @classmethod
    def of(cls, kernel: IsaKernel) -> Mode:
        """What a kernel's handlers are made for: its descriptor, and which fields its instructions write.

        Raises `UnknownInstruction` for a descriptor that asks for floating-point exceptions.
        """
        for name, value in kernel.descriptor.items():
            if name.startswith("exception_") and value:
                raise UnknownInstruction(f"kernel '{kernel.name}' asks for {name}: the software device has no traps on "
                                         "exceptions")
        written = 0
        for instruction in kernel.instructions:
            if instruction.mnemonic.startswith("s_setreg") and instruction.operands:
                field = hardware_field(instruction.operands[0])
                if field and field.register == MODE_ID:
                    written |= ((1 << field.size) - 1) << field.first
        return cls(**{name: DYNAMIC if known.mask & written else kernel.descriptor.get(known.setting, known.default)
                      for name, known in FIELDS.items()})

    def bits(self, b: Builder, name: str) -> int | Value:
        """A field's value: a number, or in a kernel that changes it an i32 read from the register."""
        value: int = getattr(self, name)
        if value != DYNAMIC:
            return value
        field = FIELDS[name]
        return b.load(b.at("%s", 4 * MODE), "i32").shr(field.first) & (field.mask >> field.first)

    def flag(self, b: Builder, name: str, bit: int = 1) -> bool | Value:
        """Whether a bit of a field is set: known, or an i1."""
        value = self.bits(b, name)
        return (value & bit).cmp("ne", 0) if isinstance(value, Value) else bool(value & bit)


def initial_mode(kernel: IsaKernel) -> int:
    """The MODE register at a wave's start."""
    return sum(kernel.descriptor.get(field.setting, field.default) << field.first for field in FIELDS.values())


def rounding_field(row: Row) -> str | None:
    """The field that rounds a row: that of its result, or where this is no float of its sources; None without floats.

    A double that becomes a float is rounded as doubles and halves are: so LLVM sets the mode for llvm.fptrunc.round.
    """
    formats = [TYPES[t].bits for t in (*row.results, *row.sources) if t in TYPES and TYPES[t].is_float]
    if not formats:
        return None
    from_double = any(TYPES[t].bits == "double" for t in row.named_sources if t in TYPES)
    return "round_32" if formats[0] == "float" and not from_double else "round_16_64"


def apply(mode: Mode, b: Builder, row: Row, rounding: Callable[[Value], Callable[..., Value]]) -> None:
    """Gives a handler's builder the mode of its row; `rounding` makes of a mode what rounds by it."""
    b.ieee, b.saturate = mode.flag(b, "ieee"), mode.flag(b, "fp16_overflow")
    name = rounding_field(row)
    how = mode.bits(b, name) if name else 0
    if how != 0:
        b.rounding = rounding(b.const(how, "i32") if isinstance(how, int) else how)


def flushed(mode: Mode, bits: Value, type_: Type, side: int) -> Value:
    """Float bits with denormals made zero, where the mode says so for sources (side 1) or results (side 2)."""
    kept = mode.flag(bits.b, denormals_field(type_), side)
    if kept is True:
        return bits
    exponent = {"half": 0x7C00, "float": 0x7F800000, "double": 0x7FF0000000000000}[type_.bits]
    tiny = (bits & exponent).cmp("eq", 0)
    if isinstance(kept, Value):
        tiny = tiny & ~kept.splat(bits.lanes)
    return tiny.select(bits & sign_bit(type_), bits)


def denormals_field(type_: Type) -> str:
    """The field of the mode that says whether denormals of a format are kept."""
    return "denormals_32" if type_.bits == "float" else "denormals_16_64"


def sign_bit(type_: Type) -> int:
    """The sign bit of a float's bits, as a signed constant."""
    return -(1 << (width(type_.bits) - 1))
