"""Which values are the same for all threads of a wave.

A value is, where nothing that it is computed from, and nothing that decides which way led to it, differs from lane to
lane. Of an integer computed from the thread's number it is known which bits may differ: of `thread_idx.x` the lowest 6,
of `thread_idx.x // 64` none, and so none of the comparison `thread_idx.x < 128`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from flylab.passes.known_values import in_order, known_integer, maker
from flylab.passes.regions import LOOPS, STRUCTURED, crossings, deciding
from flylab.passes.rewriter import axis_of, function_of
from flylab.targets import WAVE_SIZE

ANY = -1
"""The bits that may differ, where nothing is known."""

ALIKE = frozenset({"rocdl.readfirstlane", "rocdl.readlane", "rocdl.ballot", "fly.first_lane"})
"""What gives all lanes the same, whatever it is given. The rest of `rocdl` may not: some of it moves between lanes."""

GIVEN = frozenset({"arith.constant", "gpu.block_id", "gpu.block_dim", "gpu.grid_dim", "fly.shared_alloc",
                   "fly.shared_dynamic"})
"""What has no operands, and is the same for a block."""

CALLS = frozenset({"llvm.call_intrinsic", "llvm.inline_asm"})
"""What may give each lane anything."""


def has_first_lane(op: Any) -> bool:
    """Whether the wave's first lane does an operation wherever any of its lanes does: they go there together."""
    around = op.parent
    while around is not None and around.name in STRUCTURED:
        if not all(map(is_uniform, deciding(around))):
            return False
        around = around.parent
    return True


def is_uniform(value: Any, by_bits: bool = True) -> bool:
    """Whether all lanes of a wave that come to a value are known to see the same.

    Without `by_bits`, whether it does not depend on the thread at all.
    """
    waiting, seen = [value], {value}
    while waiting:
        top = waiting.pop()
        if by_bits and varying_bits(top) == 0:
            continue
        needed = _comes_from(top)
        if needed is None:
            return False
        waiting += [each for each in needed if each not in seen]
        seen.update(needed)
    return True


def _comes_from(value: Any) -> Sequence[Any] | None:
    """What must be uniform for a value to be; None where it is known to differ, or may."""
    op = maker(value)
    if op is None:
        return _handed_in(value)
    if op.name in ALIKE:
        return []
    if op.name in STRUCTURED:
        return [*crossings(op)[-1].incoming(value.result_number), *deciding(op)]
    if op.name in CALLS or op.name.startswith("rocdl.") or "atomic" in op.name:
        return None
    operands = list(op.operands)
    return operands if operands or op.name in GIVEN else None


def _handed_in(argument: Any) -> Sequence[Any]:
    """What a block's argument may be. Those of a kernel are the same for all."""
    parent = argument.owner.owner.operation
    if parent.name not in LOOPS:
        return []
    for row in crossings(parent):
        first = row.arguments[0] if row.arguments else None
        if first is not None and first.owner == argument.owner and argument.arg_number >= first.arg_number:
            return [*row.incoming(argument.arg_number - first.arg_number), *deciding(parent)]
    return deciding(parent)  # the count of an scf.for


def varying_bits(value: Any) -> int:
    """The bits of an integer that may differ from lane to lane, as far as its operations tell."""
    known: dict[Any, int] = {}
    for each in in_order(value, known, _operands):
        op = maker(each)
        rule = _RULES.get(op.name) if op is not None else None
        if op is None:
            known[each] = 0 if each.owner.owner.operation.name not in STRUCTURED else ANY
        elif op.name == "gpu.thread_id":
            known[each] = _of_thread(op)
        else:
            known[each] = 0 if op.name in GIVEN else rule(op, [known[v] for v in op.operands]) if rule else ANY
    return known[value]


def _operands(value: Any) -> Sequence[Any]:
    op = maker(value)
    return list(op.operands) if op is not None and op.name in _RULES else []


def _of_thread(op: Any) -> int:
    """Of a thread's index: a wave is 64 threads in a row, x fastest."""
    attributes = function_of(op).attributes
    if "known_block_size" not in attributes:
        return ANY
    x, y, z = attributes["known_block_size"]
    axis = axis_of(op)
    below = (1, x, x * y)[axis]
    if below % WAVE_SIZE == 0 or (x, y, z)[axis] == 1:
        return 0
    rest = (y * z, z, 1)[axis]
    return WAVE_SIZE - 1 if below == 1 and (rest == 1 or x % WAVE_SIZE == 0) else ANY


_CASTS = ("arith.index_cast", "arith.index_castui", "arith.extui", "arith.extsi", "arith.trunci")


def _zeros(value: Any) -> int:
    """How many of the lowest bits of an integer are seen to be 0."""
    op = maker(value)
    while op is not None and op.name in _CASTS:
        op = maker(op.operands[0])
    if op is None or op.name not in ("arith.constant", "arith.muli", "arith.shli"):
        return 0
    factor = known_integer(op.results[0] if op.name == "arith.constant" else op.operands[1]) or 0
    return factor if op.name == "arith.shli" else max((factor & -factor).bit_length() - 1, 0)


def _added(op: Any, bits: list[int]) -> int:
    """Of a sum: what differs stays below a number that all lanes share, and that has zeros there."""
    for mine, other in ((0, 1), (1, 0)):
        if bits[other] == 0 <= bits[mine] < 1 << _zeros(op.operands[other]):
            return bits[mine]
    return _upward(op, bits)


def _upward(op: Any, bits: list[int]) -> int:
    """Of a sum or product: the lowest bit that differs changes those above it."""
    both = bits[0] | bits[1]
    return -(both & -both)


def _shifted(op: Any, bits: list[int], left: bool, scale: bool) -> int:
    """Of a shift by a known number, or of a product or quotient of a known power of 2."""
    count = known_integer(op.operands[1])
    if count is not None and scale:
        count = count.bit_length() - 1 if count > 0 and count & (count - 1) == 0 else None
    if count is None or not 0 <= count < 64:
        return _upward(op, bits) if left and scale else ANY if any(bits) else 0
    return bits[0] << count if left else bits[0] >> count


def _remainder(op: Any, bits: list[int]) -> int:
    size = known_integer(op.operands[1])
    return bits[0] & (size - 1) if size and size > 0 and size & (size - 1) == 0 else ANY if any(bits) else 0


def _masked(op: Any, bits: list[int]) -> int:
    mask = known_integer(op.operands[1])
    return bits[0] | bits[1] if mask is None else bits[0] & mask


_ORDERS = {2: 0, 5: 0, 6: 0, 9: 0, 3: 1, 4: 1, 7: 1, 8: 1}
"""Of arith.cmpi's orders: x < c and x >= c are told by c, x <= c and x > c by c + 1."""


def _compared(op: Any, bits: list[int]) -> int:
    """The lowest bits do not matter beside a number that has zeros there."""
    if not any(bits):
        return 0
    bound, order = known_integer(op.operands[1]), _ORDERS.get(int(op.attributes["predicate"].value))
    if bound is None or order is None or bits[0] < 0:
        return 1
    return 0 if (bound + order) % (1 << bits[0].bit_length()) == 0 else 1


_RULES: dict[str, Callable[[Any, list[int]], int]] = {
    "arith.index_cast": lambda op, bits: bits[0],
    "arith.index_castui": lambda op, bits: bits[0],
    "arith.extui": lambda op, bits: bits[0],
    "arith.extsi": lambda op, bits: bits[0] if bits[0] in range(1 << 31) else ANY,
    "arith.trunci": lambda op, bits: bits[0],
    "arith.addi": _added,
    "arith.subi": _upward,
    "arith.muli": lambda op, bits: _shifted(op, bits, left=True, scale=True),
    "arith.divui": lambda op, bits: _shifted(op, bits, left=False, scale=True),
    "arith.floordivsi": lambda op, bits: _shifted(op, bits, left=False, scale=True),
    "arith.remui": _remainder,
    "arith.shli": lambda op, bits: _shifted(op, bits, left=True, scale=False),
    "arith.shrui": lambda op, bits: _shifted(op, bits, left=False, scale=False),
    "arith.shrsi": lambda op, bits: _shifted(op, bits, left=False, scale=False),
    "arith.andi": _masked,
    "arith.ori": lambda op, bits: bits[0] | bits[1],
    "arith.xori": lambda op, bits: bits[0] | bits[1],
    "arith.cmpi": _compared,
}
"""The bits of a result that may differ, of those of the operands."""
