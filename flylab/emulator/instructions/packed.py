"""Instructions on halves of registers, one row each: 16-bit integers, and the packed forms that work on two at once."""

from __future__ import annotations

from functools import partial
from typing import Any

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder, Slots
from flylab.emulator.decoding.modifiers import Modifiers
from flylab.emulator.decoding.operands import VECTOR, OperandError, bounded, operands_of
from flylab.emulator.decoding.table import PACKED_FAMILY, VECTOR_FAMILY, Row, rows
from flylab.emulator.handlers.forms import Form, Source
from flylab.emulator.instructions.floats import fma
from flylab.emulator.numbers.semantics import extreme, extreme_nan, integer_median, three


def _extremes(kind: str, sign: str) -> list[tuple[Any, ...]]:
    def low(x: Any, y: Any) -> Any:
        return x.call(sign + "min", y)

    def high(x: Any, y: Any) -> Any:
        return x.call(sign + "max", y)

    return [
        (f"v_min_{kind}16", "b16 = b16 b16", low), (f"v_max_{kind}16", "b16 = b16 b16", high),
        (f"v_min3_{kind}16", "b16 = b16 b16 b16", three(low)), (f"v_max3_{kind}16", "b16 = b16 b16 b16", three(high)),
        (f"v_med3_{kind}16", "b16 = b16 b16 b16", integer_median(sign == "s")),
    ]


def _saturating(name: str) -> Any:
    return lambda x, y: x.call(name, y)


def _multiply_add_clamped(signed: bool) -> Any:
    """x * y + z of 16 bits, saturating."""

    def compute(x: Any, y: Any, z: Any) -> Any:
        total = x.to("i32", signed) * y.to("i32", signed)
        total = total.to("i64", signed) + z.to("i64", signed)
        low, high = (-(1 << 15), (1 << 15) - 1) if signed else (0, (1 << 16) - 1)
        return total.call("smax", low).call("smin", high).to("i16")

    return compute


HALF_INTEGERS = [
    ("v_add_u16", "b16 = b16 b16", lambda x, y: x + y, _saturating("uadd.sat")),
    ("v_add_i16", "b16 = b16 b16", lambda x, y: x + y, _saturating("sadd.sat")),
    ("v_sub_u16", "b16 = b16 b16", lambda x, y: x - y, _saturating("usub.sat")),
    ("v_sub_i16", "b16 = b16 b16", lambda x, y: x - y, _saturating("ssub.sat")),
    ("v_subrev_u16", "b16 = b16 b16", lambda x, y: y - x, lambda x, y: y.call("usub.sat", x)),
    ("v_mul_lo_u16", "b16 = b16 b16", lambda x, y: x * y),
    ("v_mad_u16", "b16+ = b16 b16 b16", lambda x, y, z: x * y + z, _multiply_add_clamped(False)),
    ("v_mad_i16", "b16+ = b16 b16 b16", lambda x, y, z: x * y + z, _multiply_add_clamped(True)),
    ("v_mad_legacy_u16", "b16 = b16 b16 b16", lambda x, y, z: x * y + z, _multiply_add_clamped(False)),
    ("v_mad_legacy_i16", "b16 = b16 b16 b16", lambda x, y, z: x * y + z, _multiply_add_clamped(True)),
    ("v_lshlrev_b16", "b16 = b16 b16", lambda n, x: x.shl(n)),
    ("v_lshrrev_b16", "b16 = b16 b16", lambda n, x: x.shr(n)),
    ("v_ashrrev_i16", "b16 = b16 b16", lambda n, x: x.sar(n)),
    ("v_sat_pk_u8_i16", "b16 = b32", lambda x: _saturated_byte(x, 0) | _saturated_byte(x, 16).shl(8)),
    ("v_pack_b32_f16", "b32 = b16 b16", lambda x, y: x.to("i32") | y.to("i32").shl(16)),
    *_extremes("i", "s"), *_extremes("u", "u"),
]


def _saturated_byte(x: Any, at: int) -> Any:
    """The signed half at a bit of x as an unsigned byte, saturating, in 16 bits."""
    return x.shr(at).to("i16").call("smax", 0).call("smin", 255)


def _packed(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The packed form of a row on halves."""
    names, signature, *functions = row
    return (" ".join(name.replace("v_", "v_pk_", 1) for name in names.split()), signature.replace("+", ""), *functions)


PACKED_HALVES = [_packed(row) for row in HALF_INTEGERS if row[0] not in (
    "v_subrev_u16", "v_sat_pk_u8_i16", "v_pack_b32_f16") and "3_" not in row[0] and "legacy" not in row[0]]
PACKED_FLOATS = [
    ("v_pk_add_f16", "f16 = f16 f16", lambda x, y: x + y),
    ("v_pk_mul_f16", "f16 = f16 f16", lambda x, y: x * y),
    ("v_pk_fma_f16", "f16d = f16d f16d f16d", fma),
    ("v_pk_max_f16", "f16b = f16b f16b", extreme(True)),
    ("v_pk_min_f16", "f16b = f16b f16b", extreme(False)),
    ("v_pk_maximum3_f16", "f16 = f16 f16 f16", three(extreme_nan(True))),
    ("v_pk_minimum3_f16", "f16 = f16 f16 f16", three(extreme_nan(False))),
    ("v_pk_add_f32", "f32 = f32 f32", lambda x, y: x + y),
    ("v_pk_mul_f32", "f32 = f32 f32", lambda x, y: x * y),
    ("v_pk_fma_f32", "f32 = f32 f32 f32", fma),
]



def _truth_table(entries: int, *sources: Any) -> Any:
    """A bitwise function of three sources by its truth table: bit n is the result for sources (n>>2, n>>1, n) & 1."""
    result = sources[0] & 0
    for n in range(8):
        if entries >> n & 1:
            term = sources[0] if n & 4 else ~sources[0]
            for source, bit in zip(sources[1:], (2, 1), strict=True):
                term = term & (source if n & bit else ~source)
            result = result | term
    return result


def _bitwise(type_: str, decoder: Decoder, instruction: Instruction) -> Coded:
    """v_bitop3: a row of its own for each truth table."""
    entries, rest = 0, []
    for word in instruction.modifiers:
        if word.startswith("bitop3:"):
            entries = bounded(word.partition(":")[2], 0, 255, "the truth table")
        else:
            rest.append(word)
    name = f"v_bitop3_{type_}:{entries}"
    row = Row(name, VECTOR_FAMILY, (type_,), (type_,) * 3, partial(_truth_table, entries))
    return decoder.computing(row, instruction, rest)


PAIR_OF = Row("v_pk_mov_b32", VECTOR_FAMILY, ("b64",), ("b32", "b32"),
              lambda x, y: x.to("i64") | y.to("i64").shl(32))
SWAP = Row("v_swap_b32", VECTOR_FAMILY, ("b32", "b32"), ("b32", "b32"), lambda x, y: (y, x))


def _move_pair(decoder: Decoder, instruction: Instruction) -> Coded:
    """v_pk_mov_b32: the low half from a half of the first source, the high half from one of the second, by op_sel."""
    result, *sources = operands_of(instruction, 3)
    words = Modifiers.of(instruction.modifiers)
    for word in instruction.modifiers:
        if not word.startswith("op_sel"):
            raise OperandError(f"it takes no '{word}'")
    slots = Slots([decoder.registers.offset(result, 2, VECTOR)])
    found = [decoder.half(slots, source, "b32", words, n, half=0) for n, source in enumerate(sources)]
    return Coded.of(Form(PAIR_OF, (0,), tuple(found)), slots)


def _swap(decoder: Decoder, instruction: Instruction) -> Coded:
    """v_swap_b32: both operands are read, then both written."""
    slots = Slots(decoder.registers.offset(operand, 1, VECTOR) for operand in operands_of(instruction, 2))
    return Coded.of(Form(SWAP, (0, 1), (Source(VECTOR, 0), Source(VECTOR, 1))), slots)


DECODERS = {"v_pk_mov_b32": _move_pair, "v_swap_b32": _swap} | {
    f"v_bitop3_{type_}": partial(_bitwise, type_) for type_ in ("b16", "b32")}
ROWS = rows(VECTOR_FAMILY, HALF_INTEGERS) | rows(PACKED_FAMILY, [*PACKED_HALVES, *PACKED_FLOATS])
