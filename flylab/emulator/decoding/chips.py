"""Which instructions only one of the chips has; all others of the operation table are on both.

Of the matrix instructions, `flylab.mfma` says it.

Source: CDNA3 and CDNA4 ISA documents, as LLVM's assembler holds them (tests/emulator/test_chips.py compares).
"""

from __future__ import annotations

from functools import lru_cache

from flylab.mfma import INSTRUCTIONS, OLDER_NAMES, mfma
from flylab.targets import TARGETS

# Names, or beginnings of names where they end in *.
_ONLY = {
    "gfx950": """
        buffer_atomic_pk_add_bf16 ds_read_b64_tr_* ds_read_b96_tr_b6
        global_load_lds_dwordx3 global_load_lds_dwordx4
        v_ashr_pk_* v_bitop3_* v_maximum3_f32 v_minimum3_f32 v_pk_maximum3_f16 v_pk_minimum3_f16
        v_permlane16_swap_b32 v_permlane32_swap_b32 v_prng_b32
        v_cvt_f32_bf16 v_cvt_pk_bf16_f32 v_cvt_pk_f16_f32 v_cvt_sr_bf16_f32 v_cvt_sr_f16_f32 v_cvt_scalef32_*
        v_dot2_f32_bf16 v_dot2c_f32_bf16 v_mfma_ld_scale_b32
    """,
}
_NAMES = {arch: frozenset(n for n in text.split() if n[-1] != "*") for arch, text in _ONLY.items()}
_BEGINNINGS = {arch: tuple(n[:-1] for n in text.split() if n[-1] == "*") for arch, text in _ONLY.items()}


@lru_cache(maxsize=4096)
def chips_with(mnemonic: str) -> tuple[str, ...]:
    """The chips that have an instruction, given that some chip has it; the name is without its encoding's suffix.

    >>> chips_with("v_add_f32"), chips_with("v_prng_b32"), chips_with("v_mfma_f32_32x32x4_xf32")
    (('gfx942', 'gfx950'), ('gfx950',), ('gfx942',))
    """
    if mnemonic in INSTRUCTIONS or mnemonic in OLDER_NAMES:
        return mfma(mnemonic).chips
    only = [arch for arch, names in _NAMES.items() if mnemonic in names or mnemonic.startswith(_BEGINNINGS[arch])]
    return tuple(only) or tuple(TARGETS)


def lacking(arch: str, chips: tuple[str, ...]) -> str:
    """What an error says of an instruction, or a form of one, that a chip lacks and others have."""
    return f"{arch} has no such instruction, {' and '.join(chips)} has"
