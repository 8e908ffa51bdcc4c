"""Which instructions have the encodings that move lanes (DPP) and pick parts of registers (SDWA), on both chips alike.

Source: CDNA3 and CDNA4 ISA documents, as LLVM's assembler holds them (tests/emulator/test_encodings.py compares).
"""

from __future__ import annotations

import re

from flylab.emulator.operands import OperandError

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
# Of those, the ones without an SDWA encoding, beside all that touch 64 bits; comparisons have SDWA and no DPP.
_NO_SDWA = re.compile(r"v_dot\w+|v_f?mac_f(16|32)|v_cmp\w*64|\w*[fb]64\w*")


def has_dpp(name: str) -> bool:
    """True where an instruction has a DPP encoding (`name` without a suffix)."""
    return name in DPP


def has_sdwa(name: str) -> bool:
    """True where an instruction has an SDWA encoding.

    >>> has_sdwa("v_add_f32"), has_sdwa("v_cmp_eq_u32"), has_sdwa("v_fmac_f32"), has_dpp("v_fmac_f32")
    (True, True, False, True)
    """
    return (name in DPP or name.startswith("v_cmp")) and not _NO_SDWA.fullmatch(name)


def check_encoding(name: str, suffix: str) -> None:
    """Raises `OperandError` where an instruction lacks the encoding that the suffix of its mnemonic names."""
    if suffix == "_dpp" and not has_dpp(name) or suffix == "_sdwa" and not has_sdwa(name):
        raise OperandError(f"{name} has no {suffix[1:].upper()} encoding")
