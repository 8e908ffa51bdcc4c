"""The settings of a kernel descriptor: what an `.amdhsa_kernel` block for these chips may hold, and in which bounds."""

from __future__ import annotations

import difflib

# Far more than any kernel takes.
KERNARG_BYTES = 1 << 20
_WORD = (1 << 32) - 1
# Source: LLVM 22's AMDGPU usage guide, AMDHSA kernel assembler directives: those for GFX9 and for all.
SETTINGS: dict[str, tuple[int, int]] = {
    "group_segment_fixed_size": (0, _WORD), "private_segment_fixed_size": (0, _WORD),
    "kernarg_size": (0, KERNARG_BYTES), "next_free_vgpr": (0, 512), "next_free_sgpr": (0, 102),
    "accum_offset": (4, 256), "user_sgpr_count": (0, 16), "user_sgpr_kernarg_preload_length": (0, 16),
    "user_sgpr_kernarg_preload_offset": (0, 16), "system_vgpr_workitem_id": (0, 2), "wavefront_size32": (0, 0),
    **dict.fromkeys(("float_round_mode_32", "float_round_mode_16_64", "float_denorm_mode_32",
                     "float_denorm_mode_16_64"), (0, 3)),
    **dict.fromkeys((
        "user_sgpr_private_segment_buffer", "user_sgpr_dispatch_ptr", "user_sgpr_queue_ptr",
        "user_sgpr_kernarg_segment_ptr", "user_sgpr_dispatch_id", "user_sgpr_flat_scratch_init",
        "user_sgpr_private_segment_size", "uses_dynamic_stack", "enable_private_segment",
        "system_sgpr_private_segment_wavefront_offset", "system_sgpr_workgroup_id_x", "system_sgpr_workgroup_id_y",
        "system_sgpr_workgroup_id_z", "system_sgpr_workgroup_info", "reserve_vcc", "reserve_flat_scratch",
        "reserve_xnack_mask", "dx10_clamp", "ieee_mode", "fp16_overflow", "tg_split", "exception_fp_ieee_invalid_op",
        "exception_fp_denorm_src", "exception_fp_ieee_div_zero", "exception_fp_ieee_overflow",
        "exception_fp_ieee_underflow", "exception_fp_ieee_inexact", "exception_int_div_zero"), (0, 1)),
}


def unknown_setting(name: str) -> str | None:
    """None for a setting of these chips, else a hint.

    >>> unknown_setting("ieee_mode"), unknown_setting("ieee_mod")
    (None, 'did you mean .amdhsa_ieee_mode?')
    """
    if name in SETTINGS:
        return None
    near = difflib.get_close_matches(name, SETTINGS, 1)
    return f"did you mean .amdhsa_{near[0]}?" if near else "leave it out"
