"""How many bytes an AMDGPU instruction takes, from its text: what turns a listing into addresses.

Source: the encodings of AMD's CDNA3 and CDNA4 ISA documents. A scalar or 32-bit vector encoding takes 4 bytes, and 4
more where a source is a literal, that is a constant the encoding has no code for; every other encoding takes 8.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache

EIGHT_BYTE_SCALAR = ("s_load_", "s_buffer_load_", "s_scratch_load_", "s_store_", "s_buffer_store_", "s_scratch_store_",
                     "s_dcache_", "s_memtime", "s_memrealtime", "s_atc_probe", "s_atomic_", "s_buffer_atomic_",
                     "s_setreg_imm32_b32")
NO_LITERAL_SCALAR = ("s_movk_", "s_cmovk_", "s_cmpk_", "s_addk_", "s_mulk_", "s_getreg_", "s_setreg_", "s_call_",
                     "s_nop", "s_endpgm", "s_branch", "s_cbranch_", "s_barrier", "s_setkill", "s_waitcnt", "s_sethalt",
                     "s_sleep", "s_setprio", "s_sendmsg", "s_trap", "s_icache_", "s_incperflevel", "s_decperflevel",
                     "s_ttracedata", "s_set_gpr_idx_off", "s_set_gpr_idx_mode", "s_wakeup", "s_endpgm_saved")
FOUR_BYTE_VECTOR = ("v_readfirstlane_b32", "v_nop", "v_clrexcp", "v_swap_b32")
LITERAL_IN_VECTOR = ("v_fmamk_", "v_fmaak_", "v_madmk_", "v_madak_")
INLINE_FLOATS = {0.0, 0.5, 1.0, 2.0, 4.0}
# LLVM prints 0.15915494 or, for doubles, 0.15915494309189532.
INV_TWO_PI = 1 / (2 * math.pi)
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


def is_inline(value: int | float) -> bool:
    """True for a constant that the encoding has a code for.

    >>> [is_inline(x) for x in (64, 65, -16, 0xfffffff0, 1.0, 1.5, 0.15915494)]
    [True, False, True, True, True, False, True]
    """
    if isinstance(value, float):
        return abs(value) in INLINE_FLOATS or abs(value - INV_TWO_PI) < 1e-8
    return -16 <= (value - (1 << 32) if value >> 31 == 1 else value) <= 64


def is_register(operand: str) -> bool:
    """True for a register's text (with or without a sign, `|...|`, and the like).

    >>> is_register("-|v3|"), is_register("s[0:1]"), is_register("0x10")
    (True, True, False)
    """
    bare = operand.strip("-|)").removeprefix("neg(").removeprefix("abs(").removeprefix("sext(").strip("|")
    return _REGISTER.match(bare) is not None


@lru_cache(maxsize=4096)
def is_literal(operand: str) -> bool:
    """True for a source constant that takes 4 bytes of its own.

    >>> [is_literal(x) for x in ("64", "65", "-16", "0x3f800001", "1.0", "1.5", "v0", "0.15915494")]
    [False, True, False, True, False, True, False, False]
    """
    if is_register(operand):
        return False
    value = number(operand)
    if value is None:
        value = number(operand.strip("|").removeprefix("-").strip("|"))
    return value is None or not is_inline(value)  # what is no number is a symbol, to be relocated


def size_of(mnemonic: str, operands: tuple[str, ...]) -> int:
    """Bytes of one instruction.

    >>> size_of("s_add_u32", ("s0", "s1", "0x100")), size_of("v_fma_f32", ("v0", "v1", "v2", "v3"))
    (8, 8)
    """
    if mnemonic.startswith("s_"):
        if mnemonic.startswith(EIGHT_BYTE_SCALAR):
            return 8
        if mnemonic.startswith(NO_LITERAL_SCALAR):
            return 4
    elif mnemonic.startswith(LITERAL_IN_VECTOR) or not (mnemonic.endswith("_e32") or mnemonic in FOUR_BYTE_VECTOR):
        return 8
    return 8 if any(map(is_literal, operands)) else 4
