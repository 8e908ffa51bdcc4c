"""Instructions that AMD's pseudo-code cannot judge, each with the reason. A test fails when an entry has no cause.

The document is wrong or vague where a second source says otherwise: LLVM's constant folding, its instruction selection
for these chips (which relies on what the hardware does), or the division that its sequences must give.
"""

from __future__ import annotations

LANES = "the document moves registers between lanes, which a run of one lane cannot"
TABLES = "the hardware answers from tables, to an accuracy that AMD publishes; test_instructions holds a bound"
NO_TEXT = "the document has no entry, or calls one that it does not have"
MOVES = "an accumulator register is moved; the document has no entry"
_BY_REASON = {
    LANES: "v_readfirstlane_b32 v_readlane_b32 v_writelane_b32 ds_bpermute_b32 ds_permute_b32 "
           "v_permlane16_swap_b32 v_permlane32_swap_b32",
    TABLES: "v_rcp_f32 v_rcp_iflag_f32 v_rsq_f16 v_rsq_f32 v_rsq_f64 v_sqrt_f16 v_sqrt_f32 v_sqrt_f64 v_exp_f16 "
            "v_exp_f32 v_exp_legacy_f32 v_log_f16 v_log_f32 v_log_legacy_f32 v_sin_f16 v_sin_f32 v_cos_f16 v_cos_f32",
    NO_TEXT: "v_fma_mix_f32 v_fma_mixlo_f16 v_maximum3_f32 v_minimum3_f32 v_pk_maximum3_f16 v_pk_minimum3_f16 "
             "v_cvt_sr_bf16_f32 v_cvt_sr_f16_f32 v_fma_mixhi_f16 v_mul_lo_i32",
    "the document does not say that a float becomes the nearest byte, as the rounding mode has it":
        "v_cvt_pk_u8_f32 v_cvt_pkaccum_u8_f32",
    MOVES: "v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32",
    "the document rounds floor(x + 0.5), which loses the sign of a zero; LLVM selects it for llvm.roundeven":
        "v_rndne_f16 v_rndne_f32 v_rndne_f64",
    "the document lets x - floor(x) round up to 1; LLVM selects it for min(x - floor(x), the last number before 1)":
        "v_fract_f16 v_fract_f32 v_fract_f64",
    "the document takes the exponent field of zeros and denormals, LLVM selects it for llvm.frexp":
        "v_frexp_exp_i32_f32 v_frexp_exp_i32_f64 v_frexp_exp_i16_f16",
    "the document leaves the result unset where it does not scale, and asks for denormals of a wider format; LLVM's "
    "divisions round correctly with what is here (test_differential)":
        "v_div_scale_f32 v_div_scale_f64",
    "the document multiplies by one power of two alone, with which no small quotient is right; LLVM's divisions "
    "round correctly with this device (test_differential)":
        "v_div_fmas_f32 v_div_fmas_f64",
    "the document asks for the exponent of the denominator, which is neither infinite nor NaN there, where it must "
    "mean the quotient's":
        "v_div_fixup_f32 v_div_fixup_f64",
    "the document keeps the low 53 of all digits of 2 / pi, shifted, where it must mean those before the point":
        "v_trig_preop_f64",
    "the document slices bits 63 to 32 of a value that it names as 32 bits": "v_pk_mov_b32",
}
UNJUDGED = {name: reason for reason, names in _BY_REASON.items() for name in names.split()}
