"""The matrix instructions as they are: `rocdl.mfma_f32_16x16x16f16(result_type, operands)`, one function each.

The names are those of LLVM's intrinsics, and so are the operands:

    mfma_*                    a, b, c, cbsz, abid, blgp
    smfmac_*                  a, b, c, index, cbsz, abid
    mfma_scale_*_f8f6f4       a, b, c, cbsz, blgp, opsel_a, scale_a, opsel_b, scale_b

A vector of 8-bit elements is taken as the words that hold it: `v.bitcast(fx.Int64)[0]`, `v.bitcast(fx.Int32)`. Where
both scales are a known 0 and both opsel 0, LLVM takes the instruction without scales.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from flylab.atoms.mma_intrinsics import Intrinsic, by_python_name, intrinsic
from flylab.dtypes import DTYPES
from flylab.errors import TraceError
from flylab.expr.emit import constant
from flylab.expr.emit import intrinsic as call
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric
from flylab.expr.raw import typed
from flylab.expr.rocdl.immediates import immediate
from flylab.expr.state import require_kernel
from flylab.expr.vector import Vector
from flylab.expr.whole_waves import require_whole_waves
from flylab.expr.words import word
from flylab.mfma import FORMATS, Mfma
from flylab.shown import a_kind

_VECTOR = re.compile(r"vector<(\d+)x(\w+)>")
_WORDS = 8
"""The registers in which a source of f8f6f4 may be given, also where its format fills fewer."""


def _fields(row: Mfma) -> dict[str, int]:
    """What follows the matrices, by name: the largest number of what the instruction holds in itself, -1 of a word."""
    if row.mixed:
        last = len(FORMATS) - 1
        return {"cbsz": last, "blgp": last, "opsel_a": 3, "scale_a": -1, "opsel_b": 3, "scale_b": -1}
    if row.sparse:
        return {"index": -1, "cbsz": 1, "abid": 16 // row.a.items - 1}
    blocks = row.blocks if row.broadcasts else 1
    changes_b = row.permutes or row.result == "f64"  # it permutes the lanes of B, or says what is negated
    return {"cbsz": blocks.bit_length() - 1, "abid": blocks - 1, "blgp": 7 if changes_b else 0}


def _function(name: str, row: Mfma) -> Callable[..., Any]:
    """The function of an instruction."""

    def function(result_type: Any, operands: Sequence[Any]) -> Any:
        return _call(f"rocdl.{name}", row, result_type, operands)

    function.__name__ = function.__qualname__ = name
    names = ", ".join(["a", "b", "c", *_fields(row)])
    kinds = intrinsic(row)
    sources = "words of the formats that cbsz and blgp name" if row.mixed else f"A {kinds.a}, B {kinds.b}"
    function.__doc__ = (
        f"A matrix product of a wave, by the instruction {row.name}: `{name}(result_type, [{names}])`.\n\n"
        f"    {sources}, C and the result {kinds.c}. Raises `TraceError` for other operands, and on a chip other than "
        f"{' and '.join(row.chips)}."
    )
    return function


def _call(what: str, row: Mfma, result_type: Any, operands: Sequence[Any]) -> Any:
    chip = require_kernel(what).target.arch
    if chip not in row.chips:
        raise TraceError(f"{what} is of {' and '.join(row.chips)}, and the kernel is compiled for {chip}",
                         hint=f"compile for {row.chips[0]}: flylab.use(\"{row.chips[0]}\")")
    require_whole_waves(what, row.name)
    fields = _fields(row)
    if not isinstance(operands, (list, tuple)) or len(operands) != 3 + len(fields):
        count = f"{len(operands)} operands" if isinstance(operands, (list, tuple)) else repr(operands)
        raise TraceError(f"{what} takes {3 + len(fields)} operands, and {count} are given",
                         hint=f"call it as {what.removeprefix('rocdl.')}(type, [a, b, c, {', '.join(fields)}])")
    given, numbers = operands[:3], operands[3:]
    rest = [word(what, name, number).ir_value() if most < 0 else immediate(what, name, number, 0, most)
            for (name, most), number in zip(fields.items(), numbers, strict=True)]
    if row.mixed:
        row = row.with_formats(rest[0], rest[1])
    kinds = intrinsic(row)
    _check_result(what, result_type, kinds)
    values = [_source(what, letter, value, kind, row.mixed and letter != "c")
              for letter, value, kind in zip("abc", given, (kinds.a, kinds.b, kinds.c), strict=True)]
    rest = [constant(number, DTYPES["Int32"]) if isinstance(number, int) else number for number in rest]
    return typed(call(kinds.name, [*values, *rest], values[2].type))


def _check_result(what: str, kind: Any, kinds: Intrinsic) -> None:
    if kind is not None and str(kind) != kinds.c:
        raise TraceError(f"{what} gives {kinds.c}, and its result type is {kind}",
                         hint=f"give {_shown(kinds.c)}, or None")


def _shown(kind: str) -> str:
    found = _VECTOR.fullmatch(kind)
    return f"T.vec({found[1]}, T.{found[2]})" if found else f"T.{kind}"


def _source(what: str, letter: str, given: Any, kind: str, longer: bool) -> Any:
    """The MLIR value of A, B or C; of those that may be `longer`, up to 8 words."""
    value = typed(given)
    if not isinstance(value, (Vector, Numeric)):
        raise TraceError(f"{what}: {letter} is {name_of(given, repr(given))}, {a_kind(given)}",
                         hint=f"give a value of type {kind}")
    found = value.ir_value()
    text, wanted = str(found.type), _VECTOR.fullmatch(kind)
    if text == kind:
        return found
    words = _VECTOR.fullmatch(text)
    if longer and wanted and words and words[2] == "i32" and int(wanted[1]) <= int(words[1]) <= _WORDS:
        return found
    raise TraceError(f"{what}: {letter} is {name_of(given, 'a value')} of type {text}, and the instruction takes "
                     f"{kind}", hint=_mend(value, kind))


def _mend(value: Any, kind: str) -> str:
    """How to make a value of a type from one with as many bits; else what to give."""
    found = _VECTOR.fullmatch(kind)
    count, element = (int(found[1]), found[2]) if found else (1, kind)
    row = next(d for d in DTYPES.values() if d.mlir == element)
    if isinstance(value, Vector) and value.numel * value.dtype.dtype.bits == count * row.bits:
        return f"read its bits: v.bitcast(fx.{row}){'' if found else '[0]'}"
    return f"give {count} elements of fx.{row}" if found else f"give a number of fx.{row}"


CALLS = {name: _function(name, row) for name, row in by_python_name().items()}
"""The functions by their names."""
