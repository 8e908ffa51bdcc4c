"""A loop that is traced again, since what it carries began as a Python number and takes another format deeper inside.

`acc = 0`, and in a loop in the loop, or in an `if` there, `acc += x[i]`: at the head of the outer loop `acc` was taken
for an Int32, and is a Float32. Only the outer loop can begin with one.
"""

from __future__ import annotations

from typing import Any

from flylab.compiler.control.values import Joined, Leaf, Mismatch, join
from flylab.expr.numeric import Numeric
from flylab.expr.state import active


class Again(BaseException):
    """Leads out to the loop that is to be traced again; no error, and no `except Exception` of the user's stops it."""

    def __init__(self, loop: Any, place: Any, joined: Joined):
        super().__init__(f"{loop.site.what} is traced again")
        self.loop, self.place, self.joined = loop, place, joined


def trace_again(mismatch: Mismatch) -> None:
    """Raises `Again` where one of two numbers of different formats is a loop's, and began as Python's."""
    for value, other in (mismatch.leaves, mismatch.leaves[::-1]):
        found = _origin(value)
        if found is not None:
            loop, place = found
            carried = loop.state.carried[place]
            try:
                joined = join(carried.start, Leaf(other), facts=False)
            except Mismatch:
                continue
            if [s.kind.text for s in joined.slots] != [s.kind.text for s in carried.joined.slots]:
                raise Again(loop, place, joined)


def _origin(value: Any) -> tuple[Any, Any] | None:
    """The loop, and the place in what it carries, that a number at its head comes from, if that is Python's."""
    region = active.region
    while region is not None and isinstance(value, Numeric):
        loop = region.block.loop if region.block is not None else None
        if loop is not None:
            for place, each in loop.head_values.items():
                start = loop.state.carried[place].start
                if each is value and isinstance(start, Leaf):
                    if isinstance(start.value, (bool, int, float)):
                        return loop, place
                    value = start.value
                    break
        region = region.parent
    return None
