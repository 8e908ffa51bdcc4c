"""Instructions that a chip has and that the software device refuses by name, each with the reason."""

from __future__ import annotations

REASONS = {
    "it synchronises waves across workgroups (GWS), which needs a driver that reserves the hardware":
        "ds_gws_barrier ds_gws_init ds_gws_sema_br ds_gws_sema_p ds_gws_sema_release_all ds_gws_sema_v",
    "it returns from a trap handler, and there is none here": "s_rfe_b64 s_rfe_restore_b64",
    "the software device has no stack of forks: branch on EXEC":
        "s_cbranch_i_fork s_cbranch_g_fork s_cbranch_join",
    "vector instructions cannot be skipped: branch around them": "s_setvskip",
    "nothing here could wake the wave again": "s_sendmsghalt",
    "its table is for graphics, and no document of these chips has it": "v_screen_partition_4se_b32",
    "it ends a wave for a debugger or a graphics pipeline, and there is none here":
        "s_endpgm_ordered_ps_done s_endpgm_saved",
    "no matrix instruction that assembly text can name takes its scales; v_mfma_scale_f32_* has them as operands":
        "v_mfma_ld_scale_b32",
}
REFUSED = {name: reason for reason, names in REASONS.items() for name in names.split()}
