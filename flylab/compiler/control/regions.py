"""Blocks that are traced on trial: entered, left, thrown away, or made the regions of an operation.

What an arm or a body gives is only known once it was traced, and MLIR wants to know it when the operation is made. So
each is traced into a block of a scratch operation first, and moved into the final one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flylab.compiler.running import current_trace
from flylab.errors import TraceError
from flylab.expr.emit import op
from flylab.expr.location import mlir_location
from flylab.expr.state import Region, active
from flylab.places import of_traceback


class Block:
    """A block traced on trial, in the place where tracing stands; `what` is what an error calls it."""

    def __init__(self, what: str, is_trial: bool = False, is_arm: bool = False):
        from mlir import ir

        self.what = what
        self.is_trial = is_trial
        """Whether it becomes a part of where it stands, if nothing in it is decided on the device."""
        self.is_arm = is_arm
        """Whether only the threads go there for which a condition holds, or does not."""
        self.location = mlir_location()
        # No operation of a finished module: it only holds the block while that is traced.
        self.holder = ir.Operation.create("scf.execute_region", regions=1, loc=self.location)
        self.block = self.holder.regions[0].blocks.append()
        self.region: Region | None = None
        self.loop: Any = None
        """The runtime loop whose body, or test, it is."""
        self._point: Any = None
        function = active.function
        assert function is not None
        function.unfinished[self] = None
        self._before = dict(function.terms), set(function.names), len(function.aliases), len(function.shared)
        trace = current_trace()
        self._mark = trace.mark() if trace is not None else None

    def argument(self, mlir_type: Any) -> Any:
        """A new argument of the block."""
        active.latest = self.block.add_argument(mlir_type, self.location)
        return active.latest

    def enter(self) -> None:
        """Trace into the block."""
        from mlir import ir

        assert active.function is not None
        self.region = Region(active.function, self.what, active.region)
        self.region.block = self
        self._point = ir.InsertionPoint(self.block)
        self._point.__enter__()
        active.region = self.region

    def leave(self, error: BaseException | None = None) -> None:
        """Trace where it was entered; also out of blocks inside of it, which an exception left behind."""
        if error is not None and active.function is not None:
            active.function.unfinished[self] = error
        while active.region is not self.region and active.region is not None and active.region.block is not None:
            active.region.block.leave()
        if active.region is self.region and self.region is not None:
            self._point.__exit__(None, None, None)
            self.region.is_open = False
            active.region = self.region.parent

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Do what is left to do in the block, and leave it, also where that fails."""
        try:
            yield
        except BaseException as failure:
            self.leave(failure)
            raise
        self.leave()

    def at_end(self) -> Any:
        """An insertion point at the end of the block, for what the operation that gets it needs there."""
        from mlir import ir

        return ir.InsertionPoint(self.block)

    def move_to(self, region: Any) -> None:
        """Make it the block of a region of the final operation."""
        self.block.append_to(region)
        self._erase()

    def inline(self) -> None:
        """Put its operations where it stands: what was traced on trial is what is wanted."""
        for each in list(self.block.operations):
            each.operation.move_before(self.holder)
        self._erase()
        assert self.region is not None
        self.region.is_inlined = True

    def drop(self) -> None:
        """Throw it away, with all that was traced into it."""
        function = active.function
        assert function is not None
        opened = list(function.unfinished)
        for inner in opened[opened.index(self) + 1:]:
            del function.unfinished[inner]
        terms, names, aliases, shared = self._before
        del function.aliases[aliases:], function.shared[shared:]
        function.terms.clear()
        function.terms.update(terms)
        function.names.clear()
        function.names.update(names)
        self._erase()
        active.latest = None
        trace = current_trace()
        if trace is not None and self._mark is not None:
            trace.back_to(self._mark)

    def _erase(self) -> None:
        assert active.function is not None
        active.function.unfinished.pop(self, None)
        self.holder.erase()


def yield_from(block: Block, values: list[Any], name: str = "scf.yield") -> None:
    """End a block with its terminator."""
    with block.at_end():
        op(name, values, loc=block.location)


def check_finished() -> None:
    """Raises `TraceError` where an exception left an arm, or a body, and was caught: it is one thread's, not all's."""
    assert active.function is not None
    for block, error in active.function.unfinished.items():
        left = "was not traced to its end" if error is None else f"was left by {type(error).__name__}: {error}"
        raise TraceError(
            f"{block.what} {left}, which was caught outside of it; the device decides who goes there",
            where=None if error is None else of_traceback(error.__traceback__),
            hint="catch it where it is raised: while tracing, it is raised for all threads",
        )
