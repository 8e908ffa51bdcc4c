"""Instructions that a chip has and that the software device refuses by name, each with the reason."""

from __future__ import annotations

_REASONS = {
    "it synchronises waves across workgroups (GWS), which needs a driver that reserves the hardware":
        "ds_gws_barrier ds_gws_init ds_gws_sema_br ds_gws_sema_p ds_gws_sema_release_all ds_gws_sema_v",
    "it returns from a trap handler, and there is none here": "s_rfe_b64 s_rfe_restore_b64",
    "it ends a wave for a debugger or a graphics pipeline, and there is none here":
        "s_endpgm_ordered_ps_done s_endpgm_saved",
    "it asks about address translation, and there is none here": "s_atc_probe s_atc_probe_buffer",
}
REFUSED = {name: reason for reason, names in _REASONS.items() for name in names.split()}
