"""When registers count as equal: all bits, but for NaNs that the ISA leaves the payload of open."""

from __future__ import annotations

import re

import numpy as np

from flylab.emulator.program import device_tables
from tests.emulator.oracles.forms import Case

# Instructions whose NaN the ISA spells out: an operand's, made quiet.
SPELLED = re.compile(r"v_(pk_)?(max|min|med3|div_fixup)")
# Of these the ISA says too when a signalling NaN becomes quiet; every other one makes it so.
CHOOSING = re.compile(r"v_(pk_)?(max|min|med3)")
# Of those that are no rows of the table, the ones that give floats.
_SINGLE = re.compile(r"v_cvt_(pk_)?f32_(fp8|bf8)$|v_dot2c?_f32_")
_FORMATS = {"16": (np.uint16, 0x7C00, 0x0200), "32": (np.uint32, 0x7F800000, 0x00400000),
            "64": (np.uint64, 0x7FF0000000000000, 0x0008000000000000)}
Registers = tuple[np.ndarray, np.ndarray]


def _float_result(case: Case) -> tuple[str, int]:
    """The width of a case's float results, and how many of them lie in v0 and v1; ("", 0) where it has none."""
    row = device_tables()[0].get(case.mnemonic)
    if _SINGLE.match(case.mnemonic):
        return "32", 2 if "_pk_" in case.mnemonic else 1
    if case.mnemonic == "v_pk_fmac_f16":
        return "16", 2
    if row is None or not row.named_results or row.named_results[0][0] != "f":
        return "", 0
    width = row.named_results[0].rstrip("+db")[1:]
    return width, 2 if row.family == "packed" else 1


def _results(case: Case, v: np.ndarray) -> tuple[np.ndarray, str]:
    """The float results as rows of numbers of their width."""
    width, count = _float_result(case)
    if not width:
        return v[:0], ""
    pair = np.ascontiguousarray(v[:2].T).view(_FORMATS[width][0])  # a lane's numbers side by side
    if width == "16":  # of 16 bits, SDWA and op_sel can write either half
        return pair[:, :2], width
    return pair[:, :count], width


def _is_quiet(bits: np.ndarray, width: str) -> np.ndarray:
    unsigned, exponent, quiet = _FORMATS[width]
    both = unsigned(exponent | quiet)
    return (bits & both) == both


def differences(case: Case, device: Registers, oracle: Registers, bits: int = 0xFFFFFFFF,
                any_nan: bool = False) -> list[str]:
    """Where registers differ; `bits` are those of a 32-bit register that count.

    `any_nan` makes only the oracle's canonical NaN equal to every quiet one, else every quiet NaN is equal to another
    where the ISA leaves it open.
    """
    wrong = ((device[0] ^ oracle[0]) & np.uint32(bits)) != 0
    ours, width = _results(case, device[0])
    if width and (any_nan or not SPELLED.match(case.mnemonic)):
        theirs, _ = _results(case, oracle[0])
        unsigned, exponent, quiet = _FORMATS[width]
        open_ = theirs == unsigned(exponent | quiet) if any_nan else _is_quiet(theirs, width)
        equal = (ours == theirs) | open_ & _is_quiet(ours, width)
        if not CHOOSING.match(case.mnemonic):
            equal |= _is_quiet(theirs | unsigned(quiet), width) & (ours == theirs | unsigned(quiet))
        if width == "64":
            wrong[0:2] &= ~equal[:, 0]
        elif width == "32":
            for n in range(equal.shape[1]):
                wrong[n] &= ~equal[:, n]
        else:
            wrong[0] &= ~(equal[:, 0] & (equal[:, 1] | (not bits >> 16)))
    found = [f"v{row} lane {lane}: device {device[0][row, lane]:#x}, oracle {oracle[0][row, lane]:#x}"
             for row, lane in np.argwhere(wrong)[:4]]
    return found + [f"scalar {at}: device {device[1][at]:#x}, oracle {oracle[1][at]:#x}"
                    for (at,) in np.argwhere(device[1] != oracle[1])[:4]]
