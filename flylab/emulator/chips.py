"""Which instructions only one of the chips has; all others of the operation table are on both.

Source: CDNA3 and CDNA4 ISA documents, as LLVM's assembler holds them (tests/emulator/test_chips.py compares).
"""

from __future__ import annotations

from flylab.targets import TARGETS

# Names, or beginnings of names where they end in *.
_ONLY = {
    "gfx942": "v_mfma_f32_16x16x8_xf32 v_mfma_f32_16x16x8xf32 v_mfma_f32_32x32x4_xf32 v_mfma_f32_32x32x4xf32",
    "gfx950": """
        buffer_atomic_pk_add_bf16 ds_read_b64_tr_* ds_read_b96_tr_b6
        global_load_lds_dwordx3 global_load_lds_dwordx4
        v_ashr_pk_* v_bitop3_* v_maximum3_f32 v_minimum3_f32 v_pk_maximum3_f16 v_pk_minimum3_f16
        v_permlane16_swap_b32 v_permlane32_swap_b32 v_prng_b32
        v_cvt_f32_bf16 v_cvt_pk_bf16_f32 v_cvt_pk_f16_f32 v_cvt_sr_bf16_f32 v_cvt_sr_f16_f32 v_cvt_scalef32_*
        v_dot2_f32_bf16 v_dot2c_f32_bf16
        v_mfma_ld_scale_b32 v_mfma_scale_* v_mfma_f32_16x16x128_f8f6f4 v_mfma_f32_32x32x64_f8f6f4
        v_mfma_f32_16x16x32_bf16 v_mfma_f32_16x16x32bf16 v_mfma_f32_16x16x32_f16 v_mfma_f32_16x16x32f16
        v_mfma_f32_32x32x16_bf16 v_mfma_f32_32x32x16bf16 v_mfma_f32_32x32x16_f16 v_mfma_f32_32x32x16f16
        v_mfma_i32_16x16x64_i8 v_mfma_i32_16x16x64i8 v_mfma_i32_32x32x32_i8 v_mfma_i32_32x32x32i8
        v_smfmac_f32_16x16x128_* v_smfmac_f32_16x16x64_bf16 v_smfmac_f32_16x16x64_f16 v_smfmac_f32_32x32x32_bf16
        v_smfmac_f32_32x32x32_f16 v_smfmac_f32_32x32x64_* v_smfmac_i32_16x16x128_i8 v_smfmac_i32_32x32x64_i8
    """,
}
_NAMES = {arch: frozenset(n for n in text.split() if n[-1] != "*") for arch, text in _ONLY.items()}
_BEGINNINGS = {arch: tuple(n[:-1] for n in text.split() if n[-1] == "*") for arch, text in _ONLY.items()}


def chips_with(mnemonic: str) -> tuple[str, ...]:
    """The chips that have an instruction, given that some chip has it; the name is without its encoding's suffix.

    >>> chips_with("v_add_f32"), chips_with("v_prng_b32"), chips_with("v_mfma_f32_32x32x4_xf32")
    (('gfx942', 'gfx950'), ('gfx950',), ('gfx942',))
    """
    only = [arch for arch, names in _NAMES.items() if mnemonic in names or mnemonic.startswith(_BEGINNINGS[arch])]
    return tuple(only) or tuple(TARGETS)
