"""Registers that an operand's text names: their file, and their numbers in it."""

from __future__ import annotations

import re
from functools import lru_cache

# Scalar registers by their hardware number, then what has none and is numbered after them.
NUMBERED_SGPRS = 102
VCC, M0, EXEC, SCC, MODE, SINK, APERTURES = 106, 124, 126, 128, 129, 130, 132
SGPR_COUNT = 144
SGPR_NAMES = {"flat_scratch": 102, "xnack_mask": 104, "vcc": VCC, "m0": M0, "exec": EXEC, "src_scc": SCC, "scc": SCC,
              "src_shared_base": APERTURES, "src_shared_limit": APERTURES + 2, "src_private_base": APERTURES + 4,
              "src_private_limit": APERTURES + 6}
_SINGLE = ("m0", "scc", "src_scc")
# The longest number of a register has three digits.
_REGISTER = re.compile(r"([vsa])(?:(\d{1,3})|\[(\d{1,3}):(\d{1,3})\])")
# Source modifiers about a register's name.
_WRAPPED = re.compile(r"(?:neg\(|abs\(|sext\(|[-|])*([a-z][\w\[:\]]*)[|)]*")


@lru_cache(maxsize=4096)
def named_registers(text: str) -> tuple[str, int, int] | None:
    """The registers side by side that an operand's text names: their file, the number of the first, and how many.

    None where it names none. The file is "v", "a" or "s".

    >>> named_registers("s[4:7]"), named_registers("vcc_hi")
    (('s', 4, 4), ('s', 107, 1))
    """
    if found := _REGISTER.fullmatch(text):
        file, one, first, last = found.groups()
        return (file, int(one), 1) if one is not None else (file, int(first), int(last) - int(first) + 1)
    if text in SGPR_NAMES:
        return ("s", SGPR_NAMES[text], 1 if text in _SINGLE else 2)
    name, _, half = text.rpartition("_")
    if half in ("lo", "hi") and name in SGPR_NAMES:
        return ("s", SGPR_NAMES[name] + (half == "hi"), 1)
    return None


@lru_cache(maxsize=4096)
def registers_of(text: str) -> tuple[str, int, int] | None:
    """As `named_registers`, with source modifiers about the name.

    >>> registers_of("-|v3|"), registers_of("sext(v1)"), registers_of("-1")
    (('v', 3, 1), ('v', 1, 1), None)
    """
    found = _WRAPPED.fullmatch(text)
    return named_registers(found[1]) if found else None


def register_name(file: str, first: int, count: int = 1) -> str:
    """How assembly names registers side by side.

    >>> register_name("v", 3), register_name("s", 4, 2), register_name("s", 106, 2), register_name("s", 127)
    ('v3', 's[4:5]', 'vcc', 'exec_hi')
    """
    if file == "s" and first >= NUMBERED_SGPRS:
        start = max(at for at in SGPR_NAMES.values() if at <= first)
        name = min((name for name, at in SGPR_NAMES.items() if at == start), key=len)
        return name if name in _SINGLE or first == start and count > 1 else f"{name}_{'hi' if first > start else 'lo'}"
    return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"
