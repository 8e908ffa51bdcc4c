"""AMD's own operations of a wave: `ballot`, `readfirstlane`, `readlane`, `ds_bpermute`.

Each takes the format of its result first: an fx class, an MLIR type, or None for that of the value.
"""

from __future__ import annotations

from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr.emit import mlir_type, op
from flylab.expr.numeric import CLASSES, Integer, Numeric, as_numeric, is_mlir_value
from flylab.expr.raw import typed
from flylab.expr.state import require_kernel
from flylab.expr.vector import Vector
from flylab.expr.words import of_words, words_of


def ballot(kind: Any, predicate: Any) -> Any:
    """The lanes in which a Boolean holds, as a bit each: an integer of 64 bits, the same in every lane.

    A lane that does not take part has a 0. Source: LLVM's AMDGPU usage guide, `llvm.amdgcn.ballot`.
    """
    require_kernel("rocdl.ballot")
    holds = as_numeric(predicate)
    if holds.dtype.kind != BOOL:
        raise TraceError(f"rocdl.ballot of a {holds.dtype}", hint="give a Boolean: rocdl.ballot(None, x != 0)")
    found = check_format("rocdl.ballot", kind, CLASSES["Int64"], CLASSES["Int64"].dtype.bits)
    return found(op("rocdl.ballot", [holds.ir_value()], mlir_type(found.dtype)))


def readfirstlane(kind: Any, value: Any) -> Any:
    """The value of the first lane that takes part, the same in every lane; a number or Vector of any format."""
    return _moved("rocdl.readfirstlane", kind, value)


def readlane(kind: Any, value: Any, lane: Any) -> Any:
    """The value of one lane, the same in every lane. `lane` is an integer that every lane agrees on."""
    return _moved("rocdl.readlane", kind, value, after=[int32("rocdl.readlane", "lane", lane)])


def ds_bpermute(kind: Any, byte_address: Any, value: Any) -> Any:
    """The value of the lane `byte_address` / 4 (modulo 64); 0 where that lane does not take part.

    Source: CDNA3 ISA, DS_BPERMUTE_B32.
    """
    what = "rocdl.ds_bpermute"
    return _moved(what, kind, value, before=[int32(what, "byte_address", byte_address)])


def _moved(what: str, kind: Any, value: Any, before: Any = (), after: Any = ()) -> Any:
    """An operation on each word of a value."""
    require_kernel(what)
    given = typed_value(value)
    i32 = mlir_type(CLASSES["Int32"].dtype)
    words = [op(what, [*before, word, *after], i32) for word in words_of(given)]
    if isinstance(given, Vector):
        return of_words(words, given)
    return of_words(words, check_format(what, kind, type(given), given.dtype.bits)(0))


def typed_value(value: Any) -> Any:
    """A number or Vector as it is; MLIR's and Python's numbers as the language's."""
    given = typed(value)
    return given if isinstance(given, Vector) else as_numeric(given)


def int32(what: str, name: str, given: Any) -> Any:
    """An integer of the device or known, as an MLIR value of 32 bits."""
    number = as_numeric(given)
    if not isinstance(number, Integer):
        raise TraceError(f"{what}: the {name} is a {number.dtype}", hint="give an integer")
    return CLASSES["Int32"](number).ir_value()


def check_format(what: str, kind: Any, own: type[Numeric], bits: int) -> type[Numeric]:
    """The class of a result; an MLIR type says nothing of signs, which are the value's own."""
    found = own
    if isinstance(kind, type) and issubclass(kind, Numeric):
        found = kind
    elif kind is not None:
        text = str(kind)
        names = [c for c in CLASSES.values() if c.dtype.mlir == text]
        if is_mlir_value(kind) or not names:
            raise TraceError(f"{what}({kind!r}, ...): no number format", hint="give fx.Int32, or None for the value's")
        found = own if own.dtype.mlir == text else names[0]
    if found.dtype.bits != bits:
        raise TraceError(f"{what}: a result of {found.dtype}, and the value has {bits} bits",
                         hint=f"give the format of the value, {own.dtype}, and convert the result")
    return found
