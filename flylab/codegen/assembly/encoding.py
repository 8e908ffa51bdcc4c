"""How many bytes an AMDGPU instruction takes, from its text: what turns a listing into addresses.

Source: the encodings of AMD's CDNA3 and CDNA4 ISA documents. A scalar or 32-bit vector encoding takes 4 bytes, and 4
more where a source is a literal, that is a constant the encoding has no code for; every other encoding takes 8.
"""

from __future__ import annotations

import math
import re
import struct
from functools import lru_cache

EIGHT_BYTE_SCALAR = ("s_load_", "s_buffer_load_", "s_scratch_load_", "s_store_", "s_buffer_store_", "s_scratch_store_",
                     "s_dcache_", "s_memtime", "s_memrealtime", "s_atc_probe", "s_atomic_", "s_buffer_atomic_",
                     "s_setreg_imm32_b32")
NO_LITERAL_SCALAR = ("s_movk_", "s_cmovk_", "s_cmpk_", "s_addk_", "s_mulk_", "s_getreg_", "s_setreg_", "s_call_",
                     "s_nop", "s_endpgm", "s_branch", "s_cbranch_", "s_barrier", "s_setkill", "s_waitcnt",
                     "s_sethalt", "s_sleep", "s_setprio", "s_sendmsg", "s_trap", "s_icache_", "s_incperflevel",
                     "s_decperflevel", "s_ttracedata", "s_set_gpr_idx_off", "s_set_gpr_idx_on", "s_set_gpr_idx_mode",
                     "s_wakeup", "s_endpgm_saved")
LITERAL_IN_VECTOR = ("v_fmamk_", "v_fmaak_", "v_madmk_", "v_madak_")
# The vector instructions with one or two sources that have a DPP encoding.
DPP = frozenset(f"v_{name}" for name in """
add_co_u32 add_f16 add_f32 add_u16 add_u32 addc_co_u32 and_b32 ashrrev_i16 ashrrev_i32 bfrev_b32 ceil_f16 ceil_f32
ceil_f64 cndmask_b32 cos_f16 cos_f32 cvt_f16_f32 cvt_f16_i16 cvt_f16_u16 cvt_f32_bf16 cvt_f32_bf8 cvt_f32_f16
cvt_f32_f64 cvt_f32_fp8 cvt_f32_i32 cvt_f32_u32 cvt_f32_ubyte0 cvt_f32_ubyte1 cvt_f32_ubyte2 cvt_f32_ubyte3 cvt_f64_f32
cvt_f64_i32 cvt_f64_u32 cvt_flr_i32_f32 cvt_i16_f16 cvt_i32_f32 cvt_i32_f64 cvt_norm_i16_f16 cvt_norm_u16_f16
cvt_off_f32_i4 cvt_pk_f32_bf8 cvt_pk_f32_fp8 cvt_rpi_i32_f32 cvt_u16_f16 cvt_u32_f32 cvt_u32_f64 dot2c_f32_bf16
dot2c_f32_f16 dot2c_i32_i16 dot4c_i32_i8 dot8c_i32_i4 exp_f16 exp_f32 exp_legacy_f32 ffbh_i32 ffbh_u32 ffbl_b32
floor_f16 floor_f32 floor_f64 fmac_f32 fmac_f64 fract_f16 fract_f32 fract_f64 frexp_exp_i16_f16 frexp_exp_i32_f32
frexp_exp_i32_f64 frexp_mant_f16 frexp_mant_f32 frexp_mant_f64 ldexp_f16 log_f16 log_f32 log_legacy_f32 lshlrev_b16
lshlrev_b32 lshrrev_b16 lshrrev_b32 mac_f16 max_f16 max_f32 max_i16 max_i32 max_u16 max_u32 min_f16 min_f32 min_i16
min_i32 min_u16 min_u32 mov_b32 mov_b64 mul_f16 mul_f32 mul_hi_i32_i24 mul_hi_u32_u24 mul_i32_i24 mul_lo_u16
mul_u32_u24 nop not_b32 or_b32 pk_fmac_f16 prng_b32 rcp_f16 rcp_f32 rcp_f64 rcp_iflag_f32 rndne_f16 rndne_f32 rndne_f64
rsq_f16 rsq_f32 rsq_f64 sat_pk_u8_i16 screen_partition_4se_b32 sin_f16 sin_f32 sqrt_f16 sqrt_f32 sqrt_f64 sub_co_u32
sub_f16 sub_f32 sub_u16 sub_u32 subb_co_u32 subbrev_co_u32 subrev_co_u32 subrev_f16 subrev_f32 subrev_u16 subrev_u32
trunc_f16 trunc_f32 trunc_f64 xnor_b32 xor_b32""".split())
# Those that have a short encoding and no DPP; comparisons have both a short and a long one.
_SHORT_ONLY = frozenset("""v_accvgpr_mov_b32 v_clrexcp v_fmaak_f32 v_fmamk_f32 v_madak_f16 v_madmk_f16
v_permlane16_swap_b32 v_permlane32_swap_b32 v_readfirstlane_b32 v_swap_b32""".split())
_ALWAYS_SHORT = _SHORT_ONLY - {"v_clrexcp", "v_permlane16_swap_b32", "v_permlane32_swap_b32"}
SUFFIXES = ("_e32", "_e64", "_sdwa", "_dpp")
_DPP_WORD = re.compile(r"(quad_perm|row_\w+|wave_\w+|bank_mask|bound_ctrl)\b")
_SDWA_WORD = re.compile(r"(dst_sel|dst_unused|src[01]_sel):")
# Where the text may leave out VCC: the beginnings of names, how many operands there are without it, and its place.
_IMPLIED_VCC = (("v_cmp", 2, 0), ("v_cndmask_b32", 3, 3), ("v_add_co_u32", 3, 1), ("v_sub_co_u32", 3, 1),
                ("v_subrev_co_u32", 3, 1))
_NAMES_VCC = tuple(beginning for beginning, _, _ in _IMPLIED_VCC)
_WRAPPED = re.compile(r"-|\||neg\(|abs\(|sext\(")
# The source modifiers before and behind a constant, whose own sign is none of them.
_MODIFIERS = re.compile(r"^(?:-?(?:\||abs\()|neg\()+|[|)]+$")
_AFTER_V, _WRAPS = frozenset("0123456789["), frozenset("-|nas")
INLINE_FLOATS = {0.0, 0.5, 1.0, 2.0, 4.0}
# LLVM prints 0.15915494 or, for doubles, 0.15915494309189532.
INV_TWO_PI = 1 / (2 * math.pi)
_INV_TWO_PI_BITS = {16: 0x3118, 32: 0x3E22F983, 64: 0x3FC45F306DC9C882}
_INLINE_BITS = {bits: {_INV_TWO_PI_BITS[bits], *(
    int.from_bytes(struct.pack(code, sign * value), "little") for value in INLINE_FLOATS - {0.0} for sign in (1, -1))}
    for bits, code in ((16, "<e"), (32, "<f"), (64, "<d"))}
_TYPES = re.compile(r"[bfiu](?:16|32|64)")
_REGISTER = re.compile(r"[vsa]\d+$|[vsa]\[|ttmp|vcc|exec|m0$|scc$|flat_scratch|xnack_mask|src_|null$|off$|lds_direct")


# LLVM's forms of a number; its integers have 64 bits at most.
_INTEGER = re.compile(r"(-?)(?:0x([0-9a-fA-F]{1,16})|0b([01]{1,64})|(0[0-7]{0,22})|([1-9][0-9]{0,19}))")
_FLOAT = re.compile(r"-?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?")


def integer(text: str) -> int | None:
    """The integer that assembly text spells (0x, 0b, a leading 0 for octal), or None where it spells none.

    >>> [integer(x) for x in ("64", "-0x10", "010", "0b11", "1_0", "x")]
    [64, -16, 8, 3, None, None]
    """
    found = _INTEGER.fullmatch(text)
    if found is None:
        return None
    sign, *digits = found.groups()
    (value,) = (int(part, base) for part, base in zip(digits, (16, 2, 8, 10), strict=True) if part)
    return -value if sign else value


def number(text: str) -> int | float | None:
    """The integer or finite float that assembly text spells, or None where it spells none.

    >>> [number(x) for x in ("0x10", "1.5", "-2e3", "nan", "1e999")]
    [16, 1.5, -2000.0, None, None]
    """
    if not _FLOAT.fullmatch(text):
        return integer(text)
    value = float(text)
    return value if math.isfinite(value) else None


def is_inline(value: int | float, type_: str = "b32") -> bool:
    """True for a constant that the encoding has a code for; an integer also where it is the bits of such a float.

    `type_` is that of the operand, as `operand_type` has it. Of 16 bits, only floats take a float's bits.

    >>> [is_inline(x) for x in (64, 65, -16, 0xfffffff0, 1.0, 1.5, 0.15915494, 0x3f800000)]
    [True, False, True, True, True, False, True, True]
    """
    if isinstance(value, float):
        return abs(value) in INLINE_FLOATS or abs(value - INV_TWO_PI) < 1e-8
    bits = int(type_[1:])
    if -16 <= (value - (1 << bits) if value >> (bits - 1) == 1 else value) <= 64:
        return True
    return value in _INLINE_BITS[bits] and (bits > 16 or type_[0] == "f")


@lru_cache(maxsize=4096)
def operand_type(mnemonic: str) -> str:
    """The type of the sources, which an instruction's name ends with: a letter and a width.

    >>> operand_type("v_cvt_f32_f16_e32"), operand_type("s_and_b64"), operand_type("s_nop")
    ('f16', 'b64', 'b32')
    """
    found = _TYPES.findall(base_name(mnemonic))
    return str(found[-1]) if found else "b32"


def is_register(operand: str) -> bool:
    """True for a register's text (with or without a sign, `|...|`, and the like).

    >>> is_register("-|v3|"), is_register("s[0:1]"), is_register("0x10")
    (True, True, False)
    """
    bare = operand.strip("-|)").removeprefix("neg(").removeprefix("abs(").removeprefix("sext(").strip("|")
    return _REGISTER.match(bare) is not None


@lru_cache(maxsize=4096)
def is_literal(operand: str, type_: str = "b32") -> bool:
    """True for a source constant that takes 4 bytes of its own; `type_` is the operand's.

    >>> [is_literal(x) for x in ("64", "65", "-16", "0x3f800001", "1.0", "1.5", "v0", "0.15915494", "neg(-3)", "-|17|")]
    [False, True, False, True, False, True, False, False, False, False]
    """
    if is_register(operand):
        return False
    value = number(operand)
    if value is None:
        value = number(_MODIFIERS.sub("", operand))
    return value is None or not is_inline(value, type_)  # what is no number is a symbol, to be relocated


@lru_cache(maxsize=4096)
def base_name(mnemonic: str) -> str:
    """The mnemonic without what names its encoding."""
    for suffix in SUFFIXES:
        if mnemonic.endswith(suffix):
            return mnemonic[:-len(suffix)]
    return mnemonic


def has_short(name: str) -> bool:
    """True where a vector instruction has an encoding of 4 bytes (VOP1, VOP2, VOPC); `name` has no suffix."""
    return name in DPP or name in _SHORT_ONLY or name.startswith("v_cmp")


def has_long(name: str) -> bool:
    """True where a vector instruction has an encoding of 8 bytes without literals (VOP3, VOP3P)."""
    return name not in _ALWAYS_SHORT


def encoding_of(mnemonic: str, operands: tuple[str, ...], modifiers: tuple[str, ...] = ()) -> str:
    """Which encoding a vector instruction has, as the suffix that names it; "" for any other instruction.

    Without a suffix it is the shortest that has room for what is written, as LLVM's assembler chooses.

    >>> encoding_of("v_add_f32", ("v1", "s2", "v3")), encoding_of("v_add_f32", ("v1", "v2", "s3"))
    ('_e32', '_e64')
    """
    name = base_name(mnemonic)
    if not name.startswith("v_"):
        return ""
    if len(name) < len(mnemonic):
        return mnemonic[len(name):]
    if name in DPP and any(map(_DPP_WORD.match, modifiers)):
        return "_dpp"
    if has_short(name) and any(map(_SDWA_WORD.match, modifiers)):
        return "_sdwa"
    fits = not has_long(name) or has_short(name) and not modifiers and is_short(name, operands)
    return "_e32" if fits else "_e64"


def short_sources(name: str, operands: tuple[str, ...]) -> list[str] | None:
    """The one or two sources of a short encoding, or None where VCC is not where such an encoding has it."""
    first, *rest = operands or ("",)
    if name.startswith("v_cmp"):
        return rest if first in ("vcc", "exec") else None
    if "_co_u32" in name:
        if rest[:1] != ["vcc"]:
            return None
        del rest[0]
    if name.startswith(("v_addc_", "v_subb_", "v_subbrev_", "v_cndmask_")):
        return rest[:2] if rest[2:] == ["vcc"] else None
    if name.startswith(LITERAL_IN_VECTOR):
        del rest[literal_place(name) - 1:literal_place(name)]
    return rest


def with_implied(mnemonic: str, operands: tuple[str, ...]) -> tuple[str, ...]:
    """The operands, with the VCC that a short encoding may leave out.

    >>> with_implied("v_cndmask_b32", ("v0", "v1", "v2")), with_implied("v_cmp_eq_u32_e32", ("v0", "v1"))
    (('v0', 'v1', 'v2', 'vcc'), ('vcc', 'v0', 'v1'))
    """
    if mnemonic.startswith(_NAMES_VCC) and not mnemonic.endswith(("_e64", "_sdwa", "_dpp")):
        for beginning, count, place in _IMPLIED_VCC:
            if len(operands) == count and mnemonic.startswith(beginning):
                return *operands[:place], "vcc", *operands[place:]
    return operands


def literal_place(name: str) -> int:
    """Which operand of v_fmamk, v_fmaak and their kin is the constant that their encoding holds."""
    return 3 if "ak_" in name else 2


def is_short(name: str, operands: tuple[str, ...]) -> bool:
    """True where the short encoding has room for the operands: a source of any sort, then a vector register."""
    sources = short_sources(name, operands)
    return sources is not None and all(
        text[:1] == "v" and text[1:2] in _AFTER_V for text in sources[1:]) and not any(
        text[:1] in _WRAPS and _WRAPPED.match(text) and number(text) is None for text in sources)


def size_of(mnemonic: str, operands: tuple[str, ...], modifiers: tuple[str, ...] = ()) -> int:
    """Bytes of one instruction.

    >>> size_of("s_add_u32", ("s0", "s1", "0x100")), size_of("v_fma_f32", ("v0", "v1", "v2", "v3"))
    (8, 8)
    """
    if mnemonic.startswith("s_"):
        if mnemonic.startswith(EIGHT_BYTE_SCALAR):
            return 8
        if mnemonic.startswith(NO_LITERAL_SCALAR):
            return 4
    elif mnemonic.startswith(LITERAL_IN_VECTOR) or encoding_of(mnemonic, operands, modifiers) != "_e32":
        return 8
    type_ = operand_type(mnemonic)
    return 8 if any(is_literal(text, type_) for text in operands) else 4
