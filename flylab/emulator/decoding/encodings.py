"""What the encodings of an instruction have room for: the words of a mnemonic's suffix, literals, scalar registers.

The instructions with an encoding that moves lanes (DPP) or picks parts of registers (SDWA) are the same on both chips.

Source: CDNA3 and CDNA4 ISA documents, as LLVM's assembler holds them (tests/emulator/test_encodings.py compares).
"""

from __future__ import annotations

import re
import struct
from functools import lru_cache

from flylab.codegen.assembly.encoding import (
    DPP,
    EIGHT_BYTE_SCALAR,
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
from flylab.emulator.decoding.operands import CONSTANT, SCALAR, VECTOR, OperandError, parse_operand
from flylab.emulator.decoding.table import Row

# Of the instructions with DPP, the ones without an SDWA encoding, beside all that touch 64 bits; comparisons have SDWA
# and no DPP.
_NO_SDWA = re.compile(r"v_dot\w+|v_f?mac_f(16|32)|v_cmp\w*64|\w*[fb]64\w*")

_TAKE_ACCUMULATORS = ("v_accvgpr_", "v_mfma_", "v_smfmac_")
# Which operands of these are accumulator registers.
_ACCUMULATORS_AT = {"v_accvgpr_read_b32": (1,), "v_accvgpr_write_b32": (0,), "v_accvgpr_mov_b32": (0, 1)}
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


@lru_cache(maxsize=4096)
def _lacks(name: str, encoding: str) -> bool:
    """True where an instruction has no such encoding; of others than vector instructions no text names one."""
    if not name.startswith("v_"):
        return bool(encoding)
    has = {"_dpp": has_dpp, "_sdwa": has_sdwa, "_e32": has_short, "_e64": has_long}[encoding](name)
    return not has and not (encoding == "_e32" and name in _LANE_NAMES)


def check_form(name: str, instruction: Instruction, row: Row | None) -> None:
    """Raises `OperandError` where no encoding of an instruction has room for what its text says.

    `name` is its mnemonic without a suffix, `row` its row of the operation table, where it has one.
    """
    mnemonic, modifiers = instruction.mnemonic, instruction.modifiers
    vector = name.startswith("v_")
    encoding = encoding_of(mnemonic, instruction.operands, modifiers) if vector else mnemonic[len(name):]
    if _lacks(name, encoding):
        raise OperandError(f"{name} has no {encoding[1:].upper()} encoding")
    if len(modifiers) > 1:
        words = [word.partition(":")[0] for word in modifiers if "(" not in word]
        if len(set(words)) < len(words):
            raise OperandError(f"a modifier stands twice in '{' '.join(modifiers)[:80]}'")
    if vector:
        _check_vector(name, encoding, instruction)
        _check_sources(name, encoding, instruction, row)
    elif name.startswith("s_"):
        _check_scalar(name, instruction, row)


def _check_scalar(name: str, instruction: Instruction, row: Row | None) -> None:
    if instruction.modifiers and not name.startswith((*EIGHT_BYTE_SCALAR, "s_waitcnt")):
        for word in instruction.modifiers:
            if "(" not in word:
                raise OperandError(f"the modifier '{word}' is none of a scalar instruction")
    if row is None:
        return
    literals = sorted({text for text in instruction.operands if is_literal(text, operand_type(name))})
    if len(literals) > 1:
        raise OperandError(f"it has room for one constant of 32 bits, and not for {' and '.join(literals)}")
    if name.startswith(_WITH_NUMBER) and len(instruction.operands) == 2 and (
            parse_operand(instruction.operands[0]).kind == CONSTANT or integer(instruction.operands[1]) is None):
        raise OperandError("it takes a scalar register and a whole number")


def _check_vector(name: str, encoding: str, instruction: Instruction) -> None:
    """What a short encoding, and one that moves lanes, has room for."""
    if encoding == "_e32" and name not in _LANE_NAMES:
        if instruction.modifiers:
            raise OperandError(f"its encoding of 4 bytes has no room for '{instruction.modifiers[0]}'")
        if not is_short(name, instruction.operands):
            raise OperandError("its encoding of 4 bytes takes a register or constant without modifiers as its first "
                               "source, a vector register as its second, and VCC where it takes a mask")
    if encoding == "_dpp":
        sources = short_sources(name, instruction.operands)
        if sources is None or not all(parse_operand(text).kind == VECTOR for text in sources):
            raise OperandError("DPP moves the lanes of a vector register only")


def _check_sources(name: str, encoding: str, instruction: Instruction, row: Row | None) -> None:
    """A vector instruction reads one scalar register or one constant of 32 bits, which may stand twice.

    Source: CDNA3 ISA, "Scalar inputs" of vector instructions.
    """
    found = dict.fromkeys(("vcc",) if row is not None and ".vcc" in row.sources else ())
    in_opcode = literal_place(name) if name.startswith(LITERAL_IN_VECTOR) else 0
    accumulators, results = _ACCUMULATORS_AT.get(name, ()), 1 if row is None else len(row.named_results)
    for n, text in enumerate(instruction.operands):
        operand = parse_operand(text)
        if operand.accumulator and not name.startswith(_TAKE_ACCUMULATORS):
            raise OperandError(f"of vector instructions only those of matrices and v_accvgpr_* take {text}")
        if n in accumulators and not operand.accumulator:
            raise OperandError(f"an accumulator register such as a0 is needed where it names {text}")
        if operand.sign_extend and encoding != "_sdwa":
            raise OperandError("only an instruction with the suffix _sdwa extends signs by sext()")
        if n == in_opcode > 0 and operand.kind != CONSTANT:
            raise OperandError(f"a constant is needed where it names {text}")
        if n < results:
            continue
        if operand.kind == SCALAR and not (n == 2 and text == "m0" and name == "v_writelane_b32"):
            found[_BARE.sub("", text)] = None
        elif operand.kind == CONSTANT and (is_literal(text, operand_type(name)) or n == in_opcode):
            if encoding != "_e32" and not _is_high_half(name, text):
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
