"""What an instruction that the device lacks may have been meant to be: a slip of the pen, or another chip's name."""

from __future__ import annotations

import re
from collections.abc import Collection
from difflib import get_close_matches

# How newer chips (gfx11 and on) name what these chips have, as patterns and what stands here instead.
_MEMORY = r"((?:global|flat|scratch|buffer|s|s_buffer)_(?:load|store))_"
_NEWER = [(re.compile(pattern), text) for pattern, text in (
    (_MEMORY + "b32", r"\1_dword"), (_MEMORY + "b64", r"\1_dwordx2"), (_MEMORY + "b96", r"\1_dwordx3"),
    (_MEMORY + "b128", r"\1_dwordx4"), (_MEMORY + "b256", r"\1_dwordx8"), (_MEMORY + "b512", r"\1_dwordx16"),
    (_MEMORY + "b16", r"\1_short"), (_MEMORY + "b8", r"\1_byte"), (_MEMORY + "u8", r"\1_ubyte"),
    (_MEMORY + "i8", r"\1_sbyte"), (_MEMORY + "u16", r"\1_ushort"), (_MEMORY + "i16", r"\1_sshort"),
    (r"ds_load_(\w+)", r"ds_read_\1"), (r"ds_store_(\w+)", r"ds_write_\1"),
    (r"(v_\w+?)_nc_(\w+)", r"\1_\2"), (r"(v_\w+?)_co_ci_(u32)", r"\1c_co_\2"))]


def suggestion(name: str, known: Collection[str]) -> str:
    """A hint for a mnemonic that is none of `known`, which are those of the chip; `name` has no suffix.

    >>> suggestion("global_load_b64", ["global_load_dwordx2"]), suggestion("v_ad_u32", ["v_add_u32", "v_add_f32"])
    ("newer chips name it so: here it is 'global_load_dwordx2'", "did you mean 'v_add_u32'?")
    """
    if name.lower() in known:
        return f"mnemonics are in small letters: '{name.lower()}'"
    for pattern, text in _NEWER:
        found = pattern.fullmatch(name)
        if found and (here := found.expand(text)) in known:
            return f"newer chips name it so: here it is '{here}'"
    if name.startswith("v_wmma_"):
        return "the matrix instructions of these chips are v_mfma_* and v_smfmac_*"
    close = get_close_matches(name, sorted(known), n=1, cutoff=0.8)
    listed = "notebooks/reference/instructions.md lists what there is"
    return f"did you mean '{close[0]}'?" if close else listed
