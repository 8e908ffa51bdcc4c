"""The hardware registers of s_getreg and s_setreg: their numbers, and the operand that names a field of one.

Source: CDNA3 ISA, "Hardware registers", and LLVM 22's names of them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from flylab.codegen.assembly.encoding import integer

MODE_ID, HW_ID, XCC_ID = 1, 4, 20
NUMBERS = {"HW_REG_MODE": MODE_ID, "HW_REG_STATUS": 2, "HW_REG_TRAPSTS": 3, "HW_REG_HW_ID": HW_ID,
           "HW_REG_GPR_ALLOC": 5, "HW_REG_LDS_ALLOC": 6, "HW_REG_IB_STS": 7, "HW_REG_SH_MEM_BASES": 15,
           "HW_REG_XCC_ID": XCC_ID}
_HWREG = re.compile(r"hwreg\((\w+)(?:,\s*(\d{1,3}),\s*(\d{1,3}))?\)")


class HardwareField(NamedTuple):
    """A field of a hardware register: the register's number, the field's first bit and its bits."""

    register: int
    first: int
    size: int


def hardware_field(text: str) -> HardwareField | None:
    """The field that an operand names, as `hwreg(NAME, first, size)` or as the encoding's 16 bits; None for neither.

    >>> hardware_field("hwreg(HW_REG_MODE, 4, 2)"), hardware_field("hwreg(20)"), hardware_field("0xf801")
    (HardwareField(register=1, first=4, size=2), HardwareField(register=20, first=0, size=32), \
HardwareField(register=1, first=0, size=32))
    """
    found, code = _HWREG.fullmatch(text), integer(text)
    if found:
        number = NUMBERS.get(found[1], integer(found[1]))
        return None if number is None else HardwareField(number, int(found[2] or 0), int(found[3] or 32))
    if code is not None and 0 <= code < 1 << 16:
        return HardwareField(code & 63, code >> 6 & 31, (code >> 11) + 1)
    return None
