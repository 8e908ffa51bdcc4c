"""Assembly in a kernel: `asm(text, constraints, operands, result)`; and what the published language has here.

An instruction that LLVM knows is better made by a function of `fx.rocdl`: LLVM schedules it, and shares and drops it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr.emit import mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric
from flylab.expr.planned import missing
from flylab.expr.raw import typed
from flylab.expr.rocdl.immediates import immediate, integers
from flylab.expr.rocdl.instructions import call, require_chip
from flylab.expr.rocdl.table import GFX950, ROWS
from flylab.expr.rocdl.wave import readfirstlane, typed_value
from flylab.expr.state import require_kernel
from flylab.expr.types import of_type
from flylab.expr.vector import Vector

WORDS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32)
"""How many registers LLVM can hold a value in."""
MOST_WORDS = {"v": 128, "s": 32, "a": 128}
"""How many registers of each kind one call may have, so that LLVM always finds them."""
REGISTER = re.compile(r"[vsa]")
CLOBBER = re.compile(r"~\{(?:memory|scc|vcc|v(\d+)|a(\d+)|s(\d+))\}")
LAST = (255, 255, 101)
"""The last VGPR, AGPR and SGPR."""
_HINT = "write '=v,v,s,i,0': v, s and a are registers, i a known integer, a digit the register of that result"


@dataclass(frozen=True)
class _Constraint:
    """One operand of the text: whether it is a result, and "v", "s", "a", "i", or the result that shares its register.
    """

    is_result: bool
    kind: str


def asm(text: str, constraints: str, operands: Any = (), result: Any = None, *, has_side_effects: bool = False) -> Any:
    """Assembly of the chip at this place: `asm("v_not_b32 $0, $1", "=v,v", [x], fx.Int32)`.

    `$0`, `$1` ... are the results and then the operands, in the order of `constraints`, which are LLVM's: `v` is a
    VGPR, `s` an SGPR (an operand there has the value of the first lane), `a` an AGPR, `i` an integer known while
    tracing, a digit the same register as that result, `=` begins a result, `=&` one that is written before all operands
    are read, `~{...}` names what else is changed (`~{memory}`, `~{vcc}`, `~{v7}`). `result` is the type of what it
    gives: a format, `T.vec(4, T.f32)`, a tuple of these for several, None for nothing, which is only kept with
    `has_side_effects`. Numbers have 16 or 32 bits or whole words. `$$` is a dollar.

    Whether it is assembly of the chip is found when it runs, or where the object is made. Raises `TraceError` for
    constraints that do not fit their operands.
    """
    what = "inline_asm.asm"
    require_kernel(what)
    kinds = result if isinstance(result, (tuple, list)) else [] if result is None else [result]
    results = [_loaded(kind) for kind in kinds]
    given = [typed_value(each) for each in (operands if isinstance(operands, (tuple, list)) else [operands])]
    wanted = _constraints(what, constraints)
    _check_counts(what, wanted, len(results), len(given))
    _check_text(what, text, len(wanted))
    if not results and not has_side_effects:
        raise TraceError(f"{what} that gives nothing and has no side effects: LLVM drops it",
                         hint="give has_side_effects=True, or a result")
    values = _values(what, [c for c in wanted if not c.is_result], given, results)
    _check_registers(what, wanted, results, given)
    found = _emit(text, constraints, values, results, has_side_effects)
    return None if result is None else tuple(found) if isinstance(result, (tuple, list)) else found[0]


def _loaded(kind: Any) -> tuple[Any, int]:
    """The class and count of a result; `fx.Float32x4` is a class with both."""
    lanes = getattr(kind, "lanes", None)
    return (kind.dtype, lanes) if isinstance(lanes, int) else of_type(kind)


def _constraints(what: str, text: Any) -> list[_Constraint]:
    found = []
    for part in str(text).replace(" ", "").split(","):
        clobber = CLOBBER.fullmatch(part)
        if clobber:
            numbers = zip(clobber.groups(), LAST, strict=True)
            if any(number is not None and int(number) > last for number, last in numbers):
                raise TraceError(f"{what}: '{part}' names a register that the chip does not have",
                                 hint="they are v0 to v255, a0 to a255, s0 to s101")
            continue
        kind = part.removeprefix("=").removeprefix("&")
        is_result = part.startswith("=")
        if not (REGISTER.fullmatch(kind) or not is_result and re.fullmatch(r"i|\d", kind)):
            raise TraceError(f"{what}: the constraint '{part}'", hint=_HINT)
        found.append(_Constraint(is_result, kind))
    if [c.is_result for c in found] != sorted([c.is_result for c in found], reverse=True):
        raise TraceError(f"{what}: in '{text}' a result comes after an operand", hint="results, with =, come first")
    return found


def _check_counts(what: str, wanted: list[_Constraint], results: int, operands: int) -> None:
    count = sum(c.is_result for c in wanted)
    if (count, len(wanted) - count) != (results, operands):
        raise TraceError(f"{what}: the constraints have {count} results and {len(wanted) - count} operands, and there "
                         f"are {results} and {operands}", hint=_HINT)


def _check_text(what: str, text: Any, count: int) -> None:
    """Refuse what would end LLVM: numbers of operands that there are not, and its alternatives."""
    if not isinstance(text, str) or not text.strip():
        raise TraceError(f"{what}({text!r}): no assembly", hint="give its text: 'v_not_b32 $0, $1'")
    for found in re.findall(r"\$(\$|\d+|.?)", text.replace("\n", " ")):
        if found != "$" and not (found.isdigit() and int(found) < count):
            raise TraceError(f"{what}: '${found}' in the text, and there are {count} results and operands",
                             hint=f"they are $0 to ${count - 1}; $$ is a dollar" if count else "$$ is a dollar")
    if "{" in text or "}" in text:
        raise TraceError(f"{what}: a brace in the text, which LLVM reads as alternatives", hint="leave them out")


def _values(what: str, wanted: list[_Constraint], given: list[Any], results: list[tuple[Any, int]]) -> list[Any]:
    values = []
    for constraint, value in zip(wanted, given, strict=True):
        shown = name_of(value, repr(value))
        if constraint.kind == "i":
            number = immediate(what, "operand for 'i'", value, -(2**31), 2**32 - 1)
            signed = number - 2**32 if number >= 2**31 else number
            attributes = integers({"value": (signed, 32)})
            values.append(op("arith.constant", [], attributes["value"].type, attributes))
            continue
        if constraint.kind.isdigit():
            index = int(constraint.kind)
            if index >= len(results) or _bits(*results[index]) != _bits_of(value):
                raise TraceError(f"{what}: {shown} shares the register of result {index}, which has other bits",
                                 hint="give it the result's width; results count from 0")
        values.append(_raw(readfirstlane(None, value) if constraint.kind == "s" and _is_runtime(value) else value))
    return values


def _is_runtime(value: Any) -> bool:
    return isinstance(value, Vector) or not value.is_static


def _raw(value: Any) -> Any:
    return value.value if isinstance(value, Vector) else value.ir_value()


def _bits(kind: Any, lanes: int) -> int:
    return int(kind.dtype.bits * max(lanes, 1))


def _bits_of(value: Any) -> int:
    return _bits(value.dtype, value.numel) if isinstance(value, Vector) else _bits(type(value), 0)


def _check_registers(what: str, wanted: list[_Constraint], results: list[tuple[Any, int]], given: list[Any]) -> None:
    """Refuse values that no registers hold, and more than LLVM may find."""
    used = dict.fromkeys(MOST_WORDS, 0)
    sizes = [(_bits(*each), each[0]) for each in results]
    sizes += [(_bits_of(each), each.dtype if isinstance(each, Vector) else type(each)) for each in given]
    for constraint, (bits, kind) in zip(wanted, sizes, strict=True):
        if constraint.kind == "i":
            continue
        is_whole = bits == 16 or bits % 32 == 0 and bits // 32 in WORDS
        if not is_whole or kind.dtype.kind == BOOL or kind.dtype.bits < 8 or kind.dtype.is_small_float:
            raise TraceError(f"{what}: a value of {bits} bits of {kind.dtype}, which LLVM puts in no register",
                             hint="give 16 or 32 bits, or whole words: x.to(fx.Int32), v.bitcast(fx.Int32)")
        if constraint.kind in used:
            used[constraint.kind] += max(bits // 32, 1)
    for kind, count in used.items():
        if count > MOST_WORDS[kind]:
            raise TraceError(f"{what}: {count} registers '{kind}' in one call, and at most {MOST_WORDS[kind]} are "
                             "sure to be found", hint="make several calls")


def _emit(text: str, constraints: str, values: list[Any], results: list[tuple[Any, int]], kept: bool) -> list[Any]:
    from mlir import ir

    types = [mlir_type(kind.dtype, lanes) for kind, lanes in results]
    whole = None if not types else types[0] if len(types) == 1 else ir.Type.parse(
        f"!llvm.struct<({', '.join(map(str, types))})>")
    attributes = {"asm_string": ir.StringAttr.get(text),
                  "constraints": ir.StringAttr.get(str(constraints).replace(" ", ""))}
    if kept:
        attributes["has_side_effects"] = ir.UnitAttr.get()
    made = op("llvm.inline_asm", values, whole, attributes)
    raws = [made] if len(types) == 1 else [
        op("llvm.extractvalue", [made], kind, {"position": ir.DenseI64ArrayAttr.get([index])})
        for index, kind in enumerate(types)]
    return [Vector(raw, lanes, kind) if lanes else kind(raw)
            for raw, (kind, lanes) in zip(raws, results, strict=True)]


def __getattr__(name: str) -> Any:
    raise missing("fx.rocdl.inline_asm", name, globals())


def cvt_off_f32_i4(src_i32: Any, byte_sel: Any = None) -> Any:
    """The low 4 bits of a byte of `src_i32` (the lowest, or `byte_sel`), read as a signed integer, / 16: a Float32.

    Source: CDNA3 ISA, V_CVT_OFF_F32_I4.
    """
    given = typed(src_i32)
    if byte_sel is not None and isinstance(given, Numeric):
        word: Any = CLASSES["Uint32"](given)
        given = word >> 8 * immediate("cvt_off_f32_i4", "byte_sel", byte_sel, 0, 3)
    return call(ROWS["cvt_off_f32_i4"], None, (given,))


def cvt_pk_bf16_f32(src_a_f32: Any, src_b_f32: Any) -> Any:
    """Two Float32 as BFloat16, rounded to even, in one Int32: `src_a_f32` in the low half. Only gfx950 has it.

    Source: CDNA4 ISA, V_CVT_PK_BF16_F32.
    """
    what = "rocdl.cvt_pk_bf16_f32"
    require_chip(require_kernel(what), what, GFX950)
    pair = [typed(each) for each in (src_a_f32, src_b_f32)]
    float32 = CLASSES["Float32"]
    pair = [float32(each) if isinstance(each, (int, float)) and not isinstance(each, bool) else each for each in pair]
    for each in pair:
        if type(each) is not float32:
            raise TraceError(f"{what} of {each!r}", hint="give two Float32: x.to(fx.Float32)")
    vector = Vector.from_elements(pair, float32).to(CLASSES["BFloat16"])
    return vector.bitcast(CLASSES["Int32"])[0]
