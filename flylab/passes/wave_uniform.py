"""What is the same in all lanes of a wave that are on, and whether the wave's first lane is among them.

Told by how a value is computed, never by known bits: what is not known to be the same counts as not the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from flylab.dialect.types import Ptr, of_mlir
from flylab.passes.known_values import maker
from flylab.passes.regions import LOOPS, STRUCTURED, crossings, end_of
from flylab.passes.rewriter import axis_of, function_of
from flylab.targets import WAVE_SIZE

SAME = frozenset({"gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "rocdl.readfirstlane", "fly.first_lane"})
"""Operations whose result is the same in a wave, whatever they are given."""
COMPUTED = frozenset({"from_llvm_ptr", "to_llvm_ptr", "add_offset", "recast_iter", "make_buffer_ptr", "ptrtoint",
                      "inttoptr", "shared_alloc", "shared_part", "shared_dynamic"})  # fmt: skip
"""Fly operations whose result is the same where their operands are, as that of all of arith and vector."""
CASTS = ("arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi", "arith.trunci")
DIVISIONS = ("arith.divui", "arith.divsi", "arith.floordivsi")
SHIFTS = ("arith.shrui", "arith.shrsi")


def has_first_lane(op: Any) -> bool:
    """Whether the wave's first lane does an operation wherever any of its lanes does."""
    conditions: list[Any] = []
    around = op.parent
    while around is not None and around.name in STRUCTURED:
        conditions += _conditions(around)
        around = around.parent
    return same_in_wave(conditions)


def same_in_wave(values: Iterable[Any]) -> bool:
    """Whether values are the same in all lanes of a wave that compute them."""
    waiting, seen = list(values), set()
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        needed = _computed_from(value)
        if needed is None:
            return False
        waiting += needed
    return True


def _conditions(op: Any) -> list[Any]:
    """The values by which structured control flow is gone through."""
    if op.name == "scf.while":
        return list(end_of(op, 0).operands)[:1]
    return list(op.operands)[: 1 if op.name == "scf.if" else 3]


def _computed_from(value: Any) -> Sequence[Any] | None:
    """The values that are the same where this one is; None where nothing says so."""
    op = maker(value)
    if op is None or op.name in STRUCTURED:
        return _crossed(value, op)
    if op.name in SAME or _of_whole_waves(op):
        return ()
    dialect, _, name = op.name.partition(".")
    if dialect in ("arith", "vector") or dialect == "fly" and name in COMPUTED:
        return list(op.operands)
    if op.name in ("fly.ptr_load", "fly.copy_atom_load"):
        spec = of_mlir(op.operands[0].type)
        return list(op.operands) if isinstance(spec, Ptr) and spec.space != "register" else None
    return None


def _crossed(value: Any, op: Any) -> Sequence[Any] | None:
    """Of an argument of a block, or a result of structured control flow."""
    if op is None:
        op = value.owner.owner.operation
        if op.name not in LOOPS:
            return ()  # what a kernel is given
    found = _conditions(op)
    for row in crossings(op):
        for index, names in enumerate(zip(*[each for each in (row.arguments, row.results) if each], strict=True)):
            if value in names:
                found += row.incoming(index)
    return found


def _of_whole_waves(op: Any) -> bool:
    """Whether an operation gives a thread's number divided by a wave's threads, or an id that is one for a wave."""
    if op.name == "gpu.thread_id":
        sizes = _block(op)
        inner = 1
        for size in sizes[: axis_of(op)]:
            inner *= size
        return axis_of(op) > 0 and inner % WAVE_SIZE == 0 and inner > 0
    if op.name not in (*DIVISIONS, *SHIFTS, "arith.andi"):
        return False
    divisor = _constant(op.operands[1])
    if divisor is None or not _is_thread_x(op.operands[0]):
        return False
    if op.name in SHIFTS:
        return divisor >= WAVE_SIZE.bit_length() - 1
    return divisor % WAVE_SIZE == 0 and divisor != 0


def _is_thread_x(value: Any) -> bool:
    """Whether a value is the thread's number along x, of which a wave has 64 that begin at a multiple of it, or that
    and a multiple of 64 which the wave has."""
    op = maker(value)
    while op is not None and op.name in (*CASTS, "arith.addi"):
        first = op.operands[0]
        if op.name == "arith.addi":
            first, *others = sorted(op.operands, key=_is_whole)
            if not _is_whole(others[0]) or not same_in_wave(others):
                return False
        op = maker(first)
    if op is None or op.name != "gpu.thread_id" or axis_of(op) != 0:
        return False
    x, *others = _block(op) or (0,)
    return x > 0 and (x % WAVE_SIZE == 0 or all(size == 1 for size in others))


def _is_whole(value: Any) -> bool:
    """Whether a value is seen to be a multiple of a wave's threads."""
    op = maker(value)
    while op is not None and op.name in CASTS:
        op = maker(op.operands[0])
    if op is None or op.name not in ("arith.constant", "arith.muli", "arith.shli"):
        return False
    factor = _constant(op.results[0] if op.name == "arith.constant" else op.operands[1])
    return factor is not None and (factor >= WAVE_SIZE.bit_length() - 1 if op.name == "arith.shli"
                                   else factor % WAVE_SIZE == 0)


def _block(op: Any) -> tuple[int, ...]:
    attributes = function_of(op).attributes
    return tuple(attributes["known_block_size"]) if "known_block_size" in attributes else ()


def _constant(value: Any) -> int | None:
    op = maker(value)
    return int(op.attributes["value"].value) if op is not None and op.name == "arith.constant" else None
