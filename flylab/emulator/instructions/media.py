"""Instructions on bytes and textures, one row each: sums of absolute differences, averages, cube maps, table pieces.

Source: the operation descriptions of AMD's CDNA3 and CDNA4 ISA documents. What they leave open stands at the row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import Any

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder, Slots
from flylab.emulator.decoding.modifiers import Modifiers
from flylab.emulator.decoding.operands import SCALAR, VECTOR, operands_of
from flylab.emulator.decoding.table import VECTOR_FAMILY, Row, rows
from flylab.emulator.handlers.forms import Source
from flylab.emulator.handlers.ir import Value
from flylab.emulator.numbers.semantics import biased_exponent, ldexp_double
from flylab.emulator.state import ROW_BYTES

# 2 / pi in binary: the bits after the point that v_trig_preop_f64 has.
TWO_OVER_PI_BITS = 1201


def _byte_sum(x: Value, y: Value, masked: bool) -> Value:
    """The sum of |x - y| over four unsigned bytes; `masked` leaves out those where y has 0."""
    total = x & 0
    for at in range(0, 32, 8):
        a, b = (x.shr(at) & 255, y.shr(at) & 255) if at else (x & 255, y & 255)
        difference = a.call("umax", b) - a.call("umin", b)
        total = total + (b.cmp("eq", 0).select(0, difference) if masked else difference)
    return total


def _sum(masked: bool, up: int, saturate: bool) -> Any:
    """The byte sum shifted left by `up`, + z."""

    def compute(x: Value, y: Value, z: Value) -> Value:
        found = _byte_sum(x, y, masked)
        found = found.shl(up) if up else found
        return found.call("uadd.sat", z) if saturate else found + z

    return compute


def _windows(x: Value, y: Value, masked: bool) -> list[Value]:
    """The byte sums of y against the four windows of x that begin at bytes 0 to 3."""
    return [_byte_sum((x.shr(at) if at else x).to("i32"), y, masked) for at in (0, 8, 16, 24)]


def _packed_sums(masked: bool, saturate: bool) -> Any:
    """Four 16-bit sums, each of a window and a half of z."""

    def compute(x: Value, y: Value, z: Value) -> Value:
        found = []
        for n, window in enumerate(_windows(x, y, masked)):
            part = (z.shr(16 * n) if n else z).to("i16")
            total = window.to("i16").call("uadd.sat", part) if saturate else window.to("i16") + part
            found.append(total.to("i64").shl(16 * n) if n else total.to("i64"))
        return reduce(or_, found)

    return compute


def _four_sums(saturate: bool) -> Any:
    def compute(x: Value, y: Value, *totals: Value) -> tuple[Value, ...]:
        pairs = zip(_windows(x, y, True), totals, strict=True)
        return tuple(w.call("uadd.sat", z) if saturate else w + z for w, z in pairs)

    return compute


def _average(x: Value, y: Value, up: Value) -> Value:
    """v_lerp_u8: the averages of the bytes, rounded up where the byte of the third source is odd."""
    found = []
    for at in range(0, 32, 8):
        a, b, one = (v.shr(at) if at else v for v in (x, y, up))
        mean = ((a & 255) + (b & 255) + (one & 1)).shr(1)
        found.append(mean.shl(at) if at else mean)
    return reduce(or_, found)


def _by_face(along_z: Any, along_y: Any, along_x: Any) -> Any:
    """A cube-map function: what it is where the longest part of (x, y, z) is z, else y, else x."""

    def compute(x: Value, y: Value, z: Value) -> Value:
        a, b, c = (v.call("fabs") for v in (x, y, z))
        longest_z = c.cmp("oge", a) & c.cmp("oge", b)
        return longest_z.select(along_z(x, y, z), b.cmp("oge", a).select(along_y(x, y, z), along_x(x, y, z)))

    return compute


def _signed(axis: Value, negative: Value | float, positive: Value | float) -> Value:
    if isinstance(negative, Value):
        return axis.cmp("olt", 0.0).select(negative, positive)
    return axis.cmp("olt", 0.0).select(axis.like(negative), axis.like(positive))


CUBE = [
    ("v_cubeid_f32", "f32 = f32 f32 f32", _by_face(lambda x, y, z: _signed(z, 5.0, 4.0),
                                                   lambda x, y, z: _signed(y, 3.0, 2.0),
                                                   lambda x, y, z: _signed(x, 1.0, 0.0))),
    ("v_cubesc_f32", "f32 = f32 f32 f32", _by_face(lambda x, y, z: _signed(z, -x, x), lambda x, y, z: x,
                                                   lambda x, y, z: _signed(x, z, -z))),
    ("v_cubetc_f32", "f32 = f32 f32 f32", _by_face(lambda x, y, z: -y, lambda x, y, z: _signed(y, -z, z),
                                                   lambda x, y, z: -y)),
    ("v_cubema_f32", "f32 = f32 f32 f32", _by_face(lambda x, y, z: z * 2.0, lambda x, y, z: y * 2.0,
                                                   lambda x, y, z: x * 2.0)),
]


def _two_over_pi(bits: int) -> int:
    """The first `bits` binary digits of 2 / pi after the point, by Machin's formula for pi."""
    guard = 64
    one = 1 << (bits + guard)

    def arctan_of_inverse(n: int) -> int:
        total, term, k = 0, one // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term, k = term // (n * n), k + 2
        return total

    pi = 4 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))
    return (2 << (2 * bits + guard)) // pi


def _preop(x: Value, segment: Value) -> Value:
    """v_trig_preop_f64: 53 bits of 2 / pi as a double, from a bit that the exponent of x and a segment number give.

    Bits below the smallest denormal are cut off, not rounded.
    """
    exponent = biased_exponent(x)
    shift = (segment & 31).to("i64") * 53 + (exponent - 1077).call("smax", 0)
    digits = _two_over_pi(TWO_OVER_PI_BITS)
    words = [digits << (64 * 20 - TWO_OVER_PI_BITS) >> (64 * (19 - n)) & (1 << 64) - 1 for n in range(20)]
    index, high, low = shift.shr(6), shift & 0, shift & 0
    for n, word in enumerate(words):
        constant = word - (1 << 64) * (word >> 63)
        high = index.cmp("eq", n).select(constant, high)
        low = index.cmp("eq", n - 1).select(constant, low)
    at = shift & 63
    piece = (high.shl(at) | low.shr(1).shr(63 - at)).shr(64 - 53)
    scale = exponent.cmp("uge", 1968).select(-53 + 128 - shift, -53 - shift)
    lost = (-1074 - scale).call("smax", 0).call("smin", 63)
    return ldexp_double(piece.shr(lost).shl(lost).to_float("double", False), scale.to("i32"))


def _shifted_bytes(signed: bool) -> Any:
    """v_ashr_pk: two numbers shifted right, each saturated to a byte."""
    low, high = (-128, 127) if signed else (0, 255)

    def compute(x: Value, y: Value, n: Value) -> Value:
        a, b = (v.sar(n & 31).call("smax", low).call("smin", high) & 255 for v in (x, y))
        return (a | b.shl(8)).to("i16")

    return compute


ROWS = rows(VECTOR_FAMILY, [
    ("v_lerp_u8", "b32 = b32 b32 b32", _average),
    ("v_msad_u8", "b32 = b32 b32 b32", _sum(True, 0, False), _sum(True, 0, True)),
    ("v_sad_hi_u8", "b32 = b32 b32 b32", _sum(False, 16, False), _sum(False, 16, True)),
    ("v_qsad_pk_u16_u8", "b64 = b64 b32 b64", _packed_sums(False, False), _packed_sums(False, True)),
    ("v_mqsad_pk_u16_u8", "b64 = b64 b32 b64", _packed_sums(True, False), _packed_sums(True, True)),
    *CUBE,
    ("v_trig_preop_f64", "f64 = f64 b32", _preop),
    ("v_cvt_off_f32_i4", "f32 = b32", lambda x: x.shl(28).sar(28).to_float("float", True) * (1 / 16)),
    ("v_ashr_pk_i8_i32", "b16+ = b32 b32 b32", _shifted_bytes(True)),
    ("v_ashr_pk_u8_i32", "b16+ = b32 b32 b32", _shifted_bytes(False)),
])
QUAD = Row("v_mqsad_u32_u8", VECTOR_FAMILY, ("b32",) * 4, ("b64", "b32", "b32", "b32", "b32", "b32"),
           _four_sums(False), _four_sums(True))


def _quad(decoder: Decoder, instruction: Instruction) -> Coded:
    """v_mqsad_u32_u8: as a row, its result and its third source are four registers each."""
    words = Modifiers.of(instruction.modifiers)
    words.check(QUAD, instruction)
    result, wide, bytes_, totals = operands_of(instruction, 4)
    registers = decoder.registers
    first, last = registers.offset(result, 4, VECTOR), registers.offset(totals, 4, VECTOR)
    slots = Slots(first + ROW_BYTES * n for n in range(4))
    sources = [Source(o.kind, slots.put(registers.offset(o, n, VECTOR, SCALAR))) for o, n in ((wide, 2), (bytes_, 1))]
    sources += [Source(VECTOR, slots.put(last + ROW_BYTES * n)) for n in range(4)]
    return decoder.formed(QUAD, range(4), sources, words, slots, instruction)


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {"v_mqsad_u32_u8": _quad}
