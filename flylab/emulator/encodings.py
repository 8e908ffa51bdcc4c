"""Which instructions a chip has, and which have the encodings that move lanes (DPP) and parts of registers (SDWA).

Source: LLVM 22's assembler for gfx942 and gfx950, which a test asks about every name here (tests/emulator/
test_encodings.py), and the CDNA3 and CDNA4 ISA documents.
"""

from __future__ import annotations

import re

from flylab.emulator.operands import OperandError

# What gfx950 adds: patterns of whole mnemonics.
GFX950_ONLY = re.compile("|".join((
    r"buffer_atomic_pk_add_bf16", r"ds_read_b64_tr_b(4|8|16)", r"ds_read_b96_tr_b6", r"global_load_lds_dwordx[34]",
    r"buffer_load_dwordx[34]_lds", r"v_ashr_pk_[iu]8_i32", r"v_bitop3_b(16|32)", r"v_cvt_f32_bf16",
    r"v_cvt_pk_b?f16_f32", r"v_cvt_scalef32_\w+", r"v_cvt_sr_b?f16_f32", r"v_dot2c?_f32_bf16",
    r"v_(pk_)?(max|min)imum3_f(16|32)", r"v_permlane(16|32)_swap_b32", r"v_prng_b32", r"v_mfma_ld_scale_b32",
    r"v_mfma(_scale)?_f32_(16x16x128|32x32x64)_f8f6f4", r"v_mfma_f32_(16x16x32|32x32x16)_b?f16",
    r"v_mfma_i32_(16x16x64|32x32x32)_i8", r"v_smfmac_f32_(16x16x64|32x32x32)_b?f16",
    r"v_smfmac_f32_(16x16x128|32x32x64)_(bf|fp)8_(bf|fp)8", r"v_smfmac_i32_(16x16x128|32x32x64)_i8")))
# What it leaves out.
GFX942_ONLY = re.compile(r"v_mfma_f32_(16x16x8|32x32x4)_?xf32")

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

# What the chips have and the device refuses, and why.
REFUSED = {
    **dict.fromkeys(("s_rfe_b64", "s_rfe_restore_b64"), "it returns from a trap handler, and there is none"),
    **dict.fromkeys(("s_cbranch_i_fork", "s_cbranch_g_fork", "s_cbranch_join"),
                    "the software device has no stack of forks: branch on EXEC instead"),
    "s_setvskip": "vector instructions cannot be skipped: branch around them",
    "s_sendmsghalt": "nothing could wake the wave again",
    "s_endpgm_ordered_ps_done": "it ends a pixel shader",
    "v_screen_partition_4se_b32": "its table is for graphics and stands in no document of these chips",
}


def has_dpp(name: str) -> bool:
    """True where an instruction has a DPP encoding (`name` without a suffix)."""
    return name in DPP


def has_sdwa(name: str) -> bool:
    """True where an instruction has an SDWA encoding.

    >>> has_sdwa("v_add_f32"), has_sdwa("v_cmp_eq_u32"), has_sdwa("v_fmac_f32"), has_dpp("v_fmac_f32")
    (True, True, False, True)
    """
    return (name in DPP or name.startswith("v_cmp")) and not _NO_SDWA.fullmatch(name)


def is_on(name: str, arch: str) -> bool:
    """True where a chip has an instruction that the device knows at all.

    >>> is_on("v_prng_b32", "gfx942"), is_on("v_prng_b32", "gfx950")
    (False, True)
    """
    return not (GFX950_ONLY if arch == "gfx942" else GFX942_ONLY).fullmatch(name)


def check(name: str, suffix: str, arch: str) -> None:
    """Raises `OperandError` where a chip has no such instruction, or not in the encoding that the suffix names."""
    if not is_on(name, arch):
        raise OperandError(f"{arch} has no {name}")
    if suffix == "_dpp" and not has_dpp(name) or suffix == "_sdwa" and not has_sdwa(name):
        raise OperandError(f"{name} has no {suffix[1:].upper()} encoding on {arch}")
