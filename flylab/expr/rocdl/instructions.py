"""The rows of `table.py` as functions: operands checked and converted, the result as a number or Vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.dtypes import INT, UINT
from flylab.errors import NotSupportedError, TraceError
from flylab.expr.emit import intrinsic, mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric
from flylab.expr.raw import typed
from flylab.expr.rocdl.immediates import immediate, integers
from flylab.expr.rocdl.table import ROWS, Operand, Row
from flylab.expr.state import KernelState, require_kernel
from flylab.expr.types import NAMES, of_type
from flylab.expr.vector import Vector

NOTES = {"log": ", to base 2", "sin": ", of 2 pi x", "cos": ", of 2 pi x"}
"""What the names of MLIR do not say."""

LOSES_OLD = "cvt_scalef32_sr_pk_fp4_"
"""Rows whose `old` LLVM 22 puts in another register than the result, so that its bytes are lost: they are kept here."""


def function_of(row: Row) -> Callable[..., Any]:
    """The function of a row: the format of its result, or None, then its operands."""

    def instruction(res: Any, *operands: Any, **named: Any) -> Any:
        return call(row, res, operands, named)

    note = NOTES.get(row.name, "")
    takes = ", ".join(f"{o.name}: {_shown(o)}" for o in row.operands)
    instruction.__name__ = instruction.__qualname__ = row.name
    instruction.__doc__ = (
        f"`{row.name}(res, {', '.join(o.name for o in row.operands)})`: LLVM's `{row.intrinsic}`{note}.\n\n"
        f"It takes {takes}, and gives {row.result.replace('T', 'the format of ' + row.operands[0].name)}; `res` is "
        f"that format, or None. On {' and '.join(row.chips)}. Raises `TraceError` for operands of other formats."
    )
    return instruction


def _shown(operand: Operand) -> str:
    if operand.count:
        return "a bool known while tracing" if operand.count == 2 else f"an int from 0 to {operand.count - 1}"
    return " or ".join(operand.formats).replace("T", "the same")


def call(row: Row, res: Any, operands: tuple[Any, ...], named: dict[str, Any] | None = None) -> Any:
    """The instruction of a row on these operands. Raises `NotSupportedError` on a chip that does not have it."""
    what = f"rocdl.{row.name}"
    require_chip(require_kernel(what), what, row.chips)
    given = [*operands, *[named.pop(o.name) for o in row.operands[len(operands):] if named and o.name in named]]
    if len(given) != len(row.operands) or named:
        raise TraceError(f"{what} of {len(given) + len(named or ())} operands",
                         hint=f"it takes {what}(res, {', '.join(o.name for o in row.operands)})")
    first = "T"
    values = []
    for operand, value in zip(row.operands, given, strict=True):
        if operand.count:
            values.append(_immediate(what, operand, value))
            continue
        formats = tuple(first if f == "T" else f for f in operand.formats)
        text, found = _converted(what, operand.name, formats, value)
        first = text if first == "T" else first
        values.append(found)
    kind, lanes = format_of(first if row.result == "T" else row.result)
    asked, count = _result(what, res, kind, lanes)
    found = intrinsic(row.intrinsic, values, mlir_type(kind.dtype, lanes))
    whole: Any = Vector(found, lanes, kind) if lanes else kind(found)
    if row.name.startswith(LOSES_OLD):
        byte = 0xFF << 8 * immediate(what, row.operands[-1].name, given[-1], 0, 3)
        whole = whole & byte | kind(values[0]) & ~byte
    return whole if (asked, count) == (kind, lanes) else bits_as(whole, asked, count)


def require_chip(kernel: KernelState, what: str, chips: tuple[str, ...]) -> None:
    """Refuse an instruction that the chip of the trace does not have: LLVM would end the process."""
    if kernel.target.arch not in chips:
        raise NotSupportedError(f"{what}: {kernel.target.arch} has no such instruction",
                                hint=f"it is of {' and '.join(chips)}")


def format_of(text: str) -> tuple[Any, int]:
    """The class and the count of a row's format.

    >>> kind, lanes = format_of("2xbf16")
    >>> kind.__name__, lanes
    ('BFloat16', 2)
    """
    count, _, element = text.rpartition("x")
    return CLASSES[NAMES[element].name], int(count or 0)


def _immediate(what: str, operand: Operand, value: Any) -> Any:
    number = immediate(what, operand.name, int(value) if isinstance(value, bool) else value, 0, operand.count - 1)
    bits = 1 if operand.count == 2 else 32
    attributes = integers({"value": (number, bits)})
    return op("arith.constant", [], attributes["value"].type, attributes)


def _converted(what: str, name: str, formats: tuple[str, ...], value: Any) -> tuple[str, Any]:
    """Which of the formats an operand has, and its MLIR value.

    Words of integers are taken for each other where they have as many bits: four Int8 as one i32.
    """
    given = typed(value)
    if isinstance(given, (bool, int, float)) and "x" not in formats[0]:
        fits = [f for f in formats if not isinstance(given, float) or format_of(f)[0].dtype.is_float]
        given = format_of(fits[0])[0](given) if fits else given
    for text in formats:
        kind, lanes = format_of(text)
        if isinstance(given, (Numeric, Vector)) and _has(given, kind, lanes):
            whole = bits_as(given, kind, lanes)
            return text, whole.value if lanes else whole.ir_value()
    shown = f"{given.numel} {given.dtype.dtype}" if isinstance(given, Vector) else (
        str(given.dtype) if isinstance(given, Numeric) else repr(value))
    raise TraceError(f"{what}: the {name} is {name_of(value, 'a value')} of {shown}, and it takes "
                     f"{' or '.join(formats)}", hint=f"convert it: x.to(fx.{format_of(formats[0])[0].dtype})")


def _has(given: Any, kind: Any, lanes: int) -> bool:
    """Whether a number or vector has a format, or is of integers with as many bits."""
    own, count = (given.dtype, given.numel) if isinstance(given, Vector) else (type(given), 0)
    if own.dtype.mlir == kind.dtype.mlir and count == lanes:
        return True
    return bool(kind.dtype.kind in (INT, UINT) and not own.dtype.is_float and own.dtype.bits >= 8
                and own.dtype.bits * max(count, 1) == kind.dtype.bits * max(lanes, 1))


def bits_as(value: Any, kind: Any, lanes: int) -> Any:
    """The bits of a number or vector as a number (`lanes` 0) or vector of another format with as many."""
    if isinstance(value, Numeric) and not lanes:
        return value if type(value) is kind else value.bitcast(kind)
    vector = value if isinstance(value, Vector) else Vector.from_elements([value], type(value))
    seen = vector if vector.dtype is kind else vector.bitcast(kind)
    return seen if lanes else seen[0]


def _result(what: str, res: Any, kind: Any, lanes: int) -> tuple[Any, int]:
    """The class and count that the result is asked in: that of the row, or integers with as many bits."""
    if res is None:
        return kind, lanes
    asked, count = of_type(res)
    same = (asked.dtype.mlir, count) == (kind.dtype.mlir, lanes)
    integer = not asked.dtype.is_float and not kind.dtype.is_float
    if not same and not (integer and asked.dtype.bits * max(count, 1) == kind.dtype.bits * max(lanes, 1)):
        gives = f"{lanes} {kind.dtype}" if lanes else str(kind.dtype)
        raise TraceError(f"{what}: a result of {res}, and it gives {gives}", hint="give that format, or None")
    return (kind if same and str(res) == kind.dtype.mlir else asked), count


FUNCTIONS = {name: function_of(row) for name, row in ROWS.items()}


def perm_b32(src_hi: Any, src_lo: Any, sel: Any) -> Any:
    """Four bytes picked out of eight by the bytes of `sel`: 0 to 3 are those of `src_lo`, 4 to 7 those of `src_hi`.

    8 to 11 give the sign of bytes 1, 3, 5 and 7, 12 gives 0, more gives 0xff. Source: CDNA3 ISA, V_PERM_B32.
    """
    return call(ROWS["perm"], None, (src_hi, src_lo, sel))
