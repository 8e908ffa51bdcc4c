"""What the encodings of an instruction have room for: the words of a mnemonic's suffix, literals, scalar registers.

The instructions with an encoding that moves lanes (DPP) or picks parts of registers (SDWA) are the same on both chips.

Source: CDNA3 and CDNA4 ISA documents, as LLVM's assembler holds them (tests/emulator/test_encodings.py compares).
"""

from __future__ import annotations

import re
import struct

from flylab.codegen.encoding import (
    DPP,
    LITERAL_IN_VECTOR,
    encoding_of,
    has_long,
    has_short,
    integer,
    is_inline,
    is_literal,
    is_short,
    literal_place,
    operand_type,
    short_sources,
)
from flylab.codegen.isa import Instruction
from flylab.emulator.operands import CONSTANT, SCALAR, VECTOR, OperandError, parse_operand
from flylab.emulator.table import Row

# Of the instructions with DPP, the ones without an SDWA encoding, beside all that touch 64 bits; comparisons have SDWA
# and no DPP.
_NO_SDWA = re.compile(r"v_dot\w+|v_f?mac_f(16|32)|v_cmp\w*64|\w*[fb]64\w*")

_TAKES_ACCUMULATORS = re.compile(r"v_(accvgpr|mfma|smfmac)_")
# Which operand of these is an accumulator register.
_ACCUMULATOR_AT = {"v_accvgpr_read_b32": 1, "v_accvgpr_write_b32": 0}
# The scalar instructions whose encoding holds a number of 16 bits.
_WITH_NUMBER = ("s_movk_", "s_cmovk_", "s_cmpk_", "s_addk_", "s_mulk_")
# The instructions beside packed and mixed ones whose long encoding picks halves of registers by op_sel.
HAS_OP_SEL = frozenset(f"v_{name}" for name in """
add_i16 alignbit_b32 alignbyte_b32 ashr_pk_i8_i32 ashr_pk_u8_i32 cvt_pknorm_i16_f16 cvt_pknorm_u16_f16 cvt_sr_bf16_f32
cvt_sr_f16_f32 div_fixup_f16 fma_f16 mad_f16 mad_i16 mad_i32_i16 mad_u16 mad_u32_u16 max3_f16 max3_i16 max3_u16 med3_f16
med3_i16 med3_u16 min3_f16 min3_i16 min3_u16 pack_b32_f16 sub_i16 cvt_pk_fp8_f32 cvt_pk_bf8_f32
cvt_scalef32_pk_fp8_f32 cvt_scalef32_pk_fp8_f16 cvt_scalef32_pk_fp8_bf16 cvt_scalef32_pk_bf8_f32 cvt_scalef32_pk_bf8_f16
cvt_scalef32_pk_bf8_bf16""".split())
# Those that negate sources and take magnitudes of them, though they only move bits.
SIGNED_BITS = frozenset(("v_cndmask_b32", "v_cvt_f32_bf16", "v_pack_b32_f16"))
# What stands about a register's name.
_BARE = re.compile(r"neg\(|abs\(|sext\(|[-|)]")
# Long encodings that the assembler takes by the other suffix too.
_LANE_NAMES = ("v_readlane_b32", "v_writelane_b32")


def has_dpp(name: str) -> bool:
    """True where an instruction has a DPP encoding (`name` without a suffix)."""
    return name in DPP


def has_sdwa(name: str) -> bool:
    """True where an instruction has an SDWA encoding.

    >>> has_sdwa("v_add_f32"), has_sdwa("v_cmp_eq_u32"), has_sdwa("v_fmac_f32"), has_dpp("v_fmac_f32")
    (True, True, False, True)
    """
    return (name in DPP or name.startswith("v_cmp")) and not _NO_SDWA.fullmatch(name)


def check_encoding(name: str, instruction: Instruction) -> None:
    """Raises `OperandError` where an instruction lacks the encoding that its text asks for, or that has no room for it.

    `name` is its mnemonic without a suffix.
    """
    suffix = instruction.mnemonic[len(name):]
    encoding = encoding_of(instruction.mnemonic, instruction.operands, instruction.modifiers)
    vector = name.startswith("v_")
    has = {"_dpp": has_dpp, "_sdwa": has_sdwa, "_e32": lambda n: has_short(n) or n in _LANE_NAMES, "_e64": has_long}
    if encoding and not has[encoding](name) or not vector and suffix:
        raise OperandError(f"{name} has no {(encoding or suffix)[1:].upper()} encoding")
    if encoding == "_e32" and name not in _LANE_NAMES:
        if instruction.modifiers:
            raise OperandError(f"its encoding of 4 bytes has no room for '{instruction.modifiers[0]}'")
        if not is_short(name, instruction.operands):
            raise OperandError("its encoding of 4 bytes takes a register or constant without modifiers as its first "
                               "source, a vector register as its second, and VCC where it takes a mask")
    if encoding != "_sdwa" and any(text.startswith("sext(") for text in instruction.operands):
        raise OperandError("only an instruction with the suffix _sdwa extends signs by sext()")
    if encoding == "_dpp":
        sources = short_sources(name, instruction.operands)
        if sources is None or not all(parse_operand(text).kind == VECTOR for text in sources):
            raise OperandError("DPP moves the lanes of a vector register only")


def check_sources(instruction: Instruction, row: Row | None) -> None:
    """Raises `OperandError` where an instruction reads more scalar registers and constants than it has room for.

    A vector instruction reads one scalar register or one constant of 32 bits, a scalar one a single such constant.
    `row` is its row of the operation table, where it has one.
    Source: CDNA3 ISA, "Scalar inputs" of vector instructions; the same register or constant may stand twice.
    """
    type_ = operand_type(instruction.mnemonic)
    if not instruction.mnemonic.startswith("v_"):
        if row is not None and len(literals := sorted({o for o in instruction.operands if is_literal(o, type_)})) > 1:
            raise OperandError(f"it has room for one constant of 32 bits, and not for {' and '.join(literals)}")
        if instruction.mnemonic.startswith(_WITH_NUMBER) and len(instruction.operands) == 2 and (
                parse_operand(instruction.operands[0]).kind == CONSTANT or integer(instruction.operands[1]) is None):
            raise OperandError("it takes a scalar register and a whole number")
        return
    encoding = encoding_of(instruction.mnemonic, instruction.operands, instruction.modifiers)
    found = dict.fromkeys(("vcc",) if row is not None and ".vcc" in row.sources else ())
    in_opcode = literal_place(instruction.mnemonic) * instruction.mnemonic.startswith(LITERAL_IN_VECTOR)
    for n, text in enumerate(instruction.operands):
        operand = parse_operand(text)
        if operand.accumulator and not _TAKES_ACCUMULATORS.match(instruction.mnemonic):
            raise OperandError(f"of vector instructions only those of matrices and v_accvgpr_* take {text}")
        if operand.kind == VECTOR and _ACCUMULATOR_AT.get(instruction.mnemonic) == n and not operand.accumulator:
            raise OperandError(f"an accumulator register such as a0 is needed where it names {text}")
        if n < (1 if row is None else len(row.named_results)):
            continue
        if operand.kind == SCALAR and not (n == 2 and text == "m0" and instruction.mnemonic == "v_writelane_b32"):
            found[_BARE.sub("", text)] = None
        elif operand.kind == CONSTANT and (is_literal(text, type_) or n == in_opcode):
            if encoding != "_e32" and not _is_high_half(instruction.mnemonic, text):
                raise OperandError(f"its encoding has no room for the constant {text[:60]}")
            found[text[:60]] = None
    if len(found) > 1:
        raise OperandError(f"it reads {' and '.join(found)}, and a vector instruction reads one scalar register or one "
                           "constant of 32 bits")


def _is_high_half(mnemonic: str, text: str) -> bool:
    """True for the high half of a double that the encoding has a code for."""
    value = integer(text)
    if value is None or "f64" not in mnemonic or not 0 <= value < 1 << 32:
        return False
    (double,) = struct.unpack("<d", (value << 32).to_bytes(8, "little"))
    return is_inline(double)
