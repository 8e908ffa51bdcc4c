"""Atomic operations at a pointer: `fx.atomic_add(p, x)` and its kin give the number that was there before.

The pointer's element format decides what is done: signed or unsigned, float or integer; a vector of two Float16 or
BFloat16 is added as one. Each is the chip's own instruction where it has one, which for floats in global memory holds
for coarse-grained memory of the device itself: what hipMalloc and torch give.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.atoms.atomics import OWN_MEMORY, RMW
from flylab.errors import TraceError
from flylab.expr.emit import mlir_type, op
from flylab.expr.enums import AtomicOrdering, SyncScope, member
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES
from flylab.expr.pointers import require_pointer, to_llvm_ptr
from flylab.expr.raw import typed
from flylab.expr.recast import aligned
from flylab.expr.state import require_kernel
from flylab.expr.tensor import Pointer
from flylab.expr.vector import Vector

ORDERS = {"not_atomic": 0, "unordered": 1, "monotonic": 2, "acquire": 4, "release": 5, "acq_rel": 6, "seq_cst": 7}
"""MLIR's numbers of LLVM's orderings."""


@dataclass(frozen=True)
class Atomic:
    """A row: LLVM's number of the operation for signed and unsigned integers and for floats; None where it has none."""

    signed: int
    unsigned: int
    real: int | None
    reals: tuple[str, ...] = ("Float32", "Float64")


PACKED = ("Float16", "BFloat16")
"""The formats of which two are added as one word."""
ROWS = {name: Atomic(*RMW[name]) for name in ("xchg", "and", "or", "xor", "max", "min")}
ROWS |= {name: Atomic(*RMW[name], ("Float32", "Float64", *PACKED)) for name in ("add", "sub")}
INTEGERS = ("Int32", "Uint32", "Int64", "Uint64")
_KINDS = "Int32, Uint32, Int64 or Uint64"


def _rmw(name: str, ptr: Any, value: Any, syncscope: Any, ordering: Any) -> Any:
    """One atomic operation; the old number, or Vector of two."""
    what = f"atomic_{name}"
    require_kernel(f"fx.{what}")
    row, scope, order = ROWS[name], _scope(what, syncscope), _order(what, ordering)
    given = _operand(what, ptr, value)
    kind = ptr.dtype
    if kind.dtype.is_float:
        code = row.real
        _check_real(what, row, kind, isinstance(given, Vector))
        if name == "sub":  # x - y is x + -y, bit by bit, and chips add
            code, given = ROWS["add"].real, -given
    else:
        code = row.signed if kind.dtype.signed else row.unsigned
        _check_integer(what, kind, given)
    return _emit(ptr, given, code, scope, order)


def _emit(ptr: Pointer, given: Any, code: Any, scope: str, order: int) -> Any:
    from mlir import ir

    lanes = given.numel if isinstance(given, Vector) else 0
    dtype = ptr.dtype.dtype
    size = dtype.bits // 8 * max(lanes, 1)
    place = aligned(ptr, size, ptr.dtype, f"{lanes} {dtype}" if lanes else "")
    i64, unit = ir.IntegerType.get_signless(64), ir.UnitAttr.get()
    attributes = {
        "bin_op": ir.IntegerAttr.get(i64, code), "ordering": ir.IntegerAttr.get(i64, order),
        "alignment": ir.IntegerAttr.get(i64, size), "syncscope": ir.StringAttr.get(scope),
        **dict.fromkeys(OWN_MEMORY, unit),
    }
    value = given.value if lanes else given.ir_value()
    old = op("llvm.atomicrmw", [to_llvm_ptr(place), value], mlir_type(dtype, lanes), attributes)
    return Vector(old, given.shape, ptr.dtype) if lanes else ptr.dtype(old)


def _operand(what: str, ptr: Any, value: Any) -> Any:
    """The value in the pointer's format."""
    require_pointer(ptr, what)
    if ptr.spec.space not in ("global", "shared"):
        raise TraceError(f"{what} in {ptr.spec.space} memory, and atomic operations are of global memory and LDS",
                         hint="take the tensor's own pointer: fx.get_iter(tensor)")
    given = typed(value)
    if isinstance(given, (bool, int, float)):
        return ptr.dtype(given)
    kind = given.dtype if isinstance(given, Vector) else type(given)
    if kind is not ptr.dtype:
        shown = getattr(getattr(kind, "dtype", None), "name", kind.__name__)
        raise TraceError(f"{what}: {name_of(value, 'the value')} is a {shown}, the pointer is to {ptr.spec.dtype}",
                         hint=f"convert it: .to(fx.{ptr.spec.dtype}); or fx.recast_iter the pointer")
    return given


def _check_real(what: str, row: Atomic, kind: Any, is_vector: bool) -> None:
    name = kind.dtype.name
    if row.real is None:
        raise TraceError(f"{what} of {kind.dtype}", hint=f"the chips have it for {_KINDS}")
    if name not in row.reals:
        raise TraceError(f"{what} of {kind.dtype}", hint=f"the chips have it for {_KINDS}, {', '.join(row.reals)}")
    if is_vector != (name in PACKED):
        how = f"give two as one: fx.Vector.from_elements([x, y], fx.{name})" if name in PACKED else "one for each"
        raise TraceError(f"{what} of a {'vector' if is_vector else 'single'} {kind.dtype}", hint=how)


def _check_integer(what: str, kind: Any, given: Any) -> None:
    if isinstance(given, Vector):
        raise TraceError(f"{what} of a vector of {kind.dtype}", hint="one for each element")
    if kind.dtype.name not in INTEGERS:
        raise TraceError(f"{what} of {kind.dtype}", hint=f"the chips have it for {_KINDS}")


def _scope(what: str, given: Any) -> str:
    return str(member(SyncScope, SyncScope.Agent if given is None else given, f"{what}(syncscope=)").value)


def _order(what: str, given: Any, name: str = "ordering") -> int:
    order = member(AtomicOrdering, given, f"{what}({name}=)")
    if order in (AtomicOrdering.NotAtomic, AtomicOrdering.Unordered):
        raise TraceError(f"{what}({name}={order}): it is atomic", hint="the weakest is fx.AtomicOrdering.Monotonic")
    return ORDERS[order.value]


def _function(name: str, does: str) -> Any:
    def atomic(ptr: Pointer, value: Any, *, syncscope: Any = None,
               ordering: AtomicOrdering = AtomicOrdering.Monotonic) -> Any:
        return _rmw(name, ptr, value, syncscope, ordering)

    atomic.__name__ = atomic.__qualname__ = f"atomic_{name}"
    atomic.__doc__ = (
        f"Atomically {does}; the number that was there before.\n\n"
        "`syncscope` is whose operations it is atomic with, the chip's if left out. Raises `TraceError` for formats "
        "that the chips have it not for, and for a value that is not of the pointer's format."
    )
    return atomic


atomic_add = _function("add", "add `value` to the number at `ptr`")
atomic_sub = _function("sub", "subtract `value` from the number at `ptr`")
atomic_and = _function("and", "keep the bits of `value` in the integer at `ptr`")
atomic_or = _function("or", "set the bits of `value` in the integer at `ptr`")
atomic_xor = _function("xor", "flip the bits of `value` in the integer at `ptr`")
atomic_max = _function("max", "put the greater of `value` and the number at `ptr` there")
atomic_min = _function("min", "put the less of `value` and the number at `ptr` there")
atomic_xchg = _function("xchg", "put `value` in the place of the number at `ptr`")


def atomic_fmax(ptr: Pointer, value: Any, *, is_positive: bool | None = None, syncscope: Any = None,
                ordering: AtomicOrdering = AtomicOrdering.Monotonic) -> Any:
    """`atomic_max` of floats that are no NaN, with an integer instruction where the sign of `value` is known.

    A Float32 in global memory has no maximum of its own on these chips, and LLVM makes a loop of compare and swap. With
    `is_positive` (True: 0 or more, False: below 0, for all threads) it is one instruction, on the number's bits.
    """
    return _by_sign("max", ptr, value, is_positive, syncscope, ordering)


def atomic_fmin(ptr: Pointer, value: Any, *, is_positive: bool | None = None, syncscope: Any = None,
                ordering: AtomicOrdering = AtomicOrdering.Monotonic) -> Any:
    """`atomic_min` of floats that are no NaN: see `atomic_fmax`."""
    return _by_sign("min", ptr, value, is_positive, syncscope, ordering)


def _by_sign(name: str, ptr: Any, value: Any, is_positive: bool | None, syncscope: Any, ordering: Any) -> Any:
    """Floats of one sign order as their bits do: of 0 or more as signed integers, below 0 backwards as unsigned."""
    given = _operand(f"atomic_f{name}", ptr, value)
    if isinstance(given, Vector) or not ptr.dtype.dtype.is_float:
        raise TraceError(f"atomic_f{name} of {given!r}", hint=f"fx.atomic_{name} is that of integers")
    if is_positive is None or ptr.dtype.dtype.name not in ("Float32", "Float64"):
        return _rmw(name, ptr, given, syncscope, ordering)
    kind = CLASSES[f"{'Int' if is_positive else 'Uint'}{ptr.dtype.dtype.bits}"]
    way = name if is_positive else {"max": "min", "min": "max"}[name]
    old = _rmw(way, aligned(ptr, 1, kind), given.bitcast(kind), syncscope, ordering)
    return old.bitcast(ptr.dtype)


def atomic_cas(ptr: Pointer, cmp: Any, val: Any, *, syncscope: Any = None,
               success_ordering: AtomicOrdering = AtomicOrdering.Monotonic,
               failure_ordering: AtomicOrdering = AtomicOrdering.Monotonic, weak: bool = False) -> tuple[Any, Any]:
    """Atomically put `val` in the place of an integer that equals `cmp`; the number that was there, and whether it did.

    A `weak` one may also fail where the numbers are equal. Raises `TraceError` as `atomic_add`, and for an ordering of
    the failure that releases.
    """
    from mlir import ir

    what = "atomic_cas"
    require_kernel(f"fx.{what}")
    scope = _scope(what, syncscope)
    orders = [_order(what, success_ordering, "success_ordering"), _order(what, failure_ordering, "failure_ordering")]
    if orders[1] in (ORDERS["release"], ORDERS["acq_rel"]):
        raise TraceError(f"{what}(failure_ordering={failure_ordering}): a failure stores nothing that it could release",
                         hint="give fx.AtomicOrdering.Monotonic, Acquire or SeqCst")
    given = [_operand(what, ptr, each) for each in (cmp, val)]
    for each in given:
        _check_integer(what, ptr.dtype, each)
    bits = ptr.dtype.dtype.bits
    i64 = ir.IntegerType.get_signless(64)
    attributes = {"success_ordering": ir.IntegerAttr.get(i64, orders[0]), "syncscope": ir.StringAttr.get(scope),
                  "failure_ordering": ir.IntegerAttr.get(i64, orders[1]),
                  "alignment": ir.IntegerAttr.get(i64, bits // 8), **({"weak": ir.UnitAttr.get()} if weak else {})}
    address = to_llvm_ptr(aligned(ptr, bits // 8, ptr.dtype))
    pair = op("llvm.cmpxchg", [address, *[each.ir_value() for each in given]],
              ir.Type.parse(f"!llvm.struct<(i{bits}, i1)>"), attributes)
    parts = [op("llvm.extractvalue", [pair], kind, {"position": ir.DenseI64ArrayAttr.get([index])})
             for index, kind in enumerate([mlir_type(ptr.dtype.dtype), mlir_type(CLASSES["Boolean"].dtype)])]
    return ptr.dtype(parts[0]), CLASSES["Boolean"](parts[1])
