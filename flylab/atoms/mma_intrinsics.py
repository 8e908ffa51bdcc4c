"""LLVM's intrinsic of each matrix instruction: its name, and the types in which it takes A, B and C.

Source: LLVM 22, IntrinsicsAMDGPU.td; the tests give every row to LLVM, for every chip that has it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from flylab.mfma import INSTRUCTIONS, Mfma, Operand
from flylab.targets import TARGETS

PREFIX = "llvm.amdgcn."
_SCALAR = {"f64": "f64", "f32": "f32", "i32": "i32"}


@dataclass(frozen=True)
class Intrinsic:
    """The name, and MLIR's types of A, B, and of C and the result."""

    name: str
    a: str
    b: str
    c: str

    @property
    def python_name(self) -> str:
        """Its name in `fx.rocdl`.

        >>> from flylab.mfma import mfma
        >>> intrinsic(mfma("v_mfma_f32_16x16x16_bf16")).python_name
        'mfma_f32_16x16x16bf16_1k'
        """
        return self.name.removeprefix(PREFIX).replace(".", "_")


@cache
def intrinsic(row: Mfma) -> Intrinsic:
    """The intrinsic of an instruction. What has no scales is, of f8f6f4, the scaled one with none.

    >>> from flylab.mfma import mfma
    >>> intrinsic(mfma("v_mfma_i32_16x16x32_i8"))
    Intrinsic(name='llvm.amdgcn.mfma.i32.16x16x32.i8', a='i64', b='i64', c='vector<4xi32>')
    """
    family = "smfmac" if row.sparse else "mfma.scale" if row.mixed else "mfma"
    shape = f"{row.m}x{row.n}x{row.k}"
    kinds = "f8f6f4" if row.mixed else row.a_type if row.a_type not in ("fp8", "bf8") else f"{row.a_type}.{row.b_type}"
    separator = "" if _is_first(row) else "."
    suffix = ".1k" if _is_1k(row) else ""
    name = f"{PREFIX}{family}.{row.result}.{shape}{separator}{kinds}{suffix}"
    result = _vector(row.result, row.result_items)
    return Intrinsic(name, _source(row, row.a, row.a_type), _source(row, row.b, row.b_type), result)


def _is_first(row: Mfma) -> bool:
    """True of those that CDNA1 and CDNA2 had, in whose names the type follows the shape at once."""
    newer = row.sparse or row.mixed or row.a_type in ("xf32", "fp8", "bf8") or set(row.chips) != set(TARGETS)
    return not newer and (row.a_type != "i8" or row.blocks > 1)


def _is_1k(row: Mfma) -> bool:
    return row.a_type == "bf16" and _is_first(row)


def _vector(element: str, count: int) -> str:
    return _SCALAR[element] if count == 1 else f"vector<{count}x{element}>"


def _source(row: Mfma, operand: Operand, kind: str) -> str:
    if operand.bits <= 8:
        words = operand.registers
        return "i64" if words == 2 and not row.sparse else _vector("i32", words)
    # What came before the bf16 of LLVM takes its bits.
    element = {"xf32": "f32", "bf16": "i16" if set(row.chips) == set(TARGETS) else "bf16"}.get(kind, kind)
    return _vector(element, operand.items)


@cache
def by_python_name() -> dict[str, Mfma]:
    """The instructions by the names of their intrinsics in `fx.rocdl`."""
    return {intrinsic(row).python_name: row for row in INSTRUCTIONS.values() if row.scaled or not row.mixed}
