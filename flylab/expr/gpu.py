"""Threads, waves and blocks: `gpu.thread_id("x")`, `gpu.thread_idx.x`, `gpu.lane_id()`, `gpu.barrier()`.

Ids are Int32 values that know their range, so that `//` and `%` by a positive number need no sign handling.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flylab.errors import TraceError
from flylab.expr.emit import op
from flylab.expr.formats import Int32
from flylab.expr.helpers import check_unpacked
from flylab.expr.operators import refuse
from flylab.expr.planned import UnknownName, missing
from flylab.expr.shuffle import (
    lane_id,
    num_warp_threads,
    shuffle,
    shuffle_down,
    shuffle_idx,
    shuffle_up,
    shuffle_xor,
)
from flylab.expr.state import require_kernel

__all__ = [
    "Tuple3D",
    "barrier",
    "block_dim",
    "block_id",
    "block_idx",
    "block_size",
    "grid_dim",
    "grid_size",
    "known_block_size",
    "lane_id",
    "num_warp_threads",
    "shuffle",
    "shuffle_down",
    "shuffle_idx",
    "shuffle_up",
    "shuffle_xor",
    "thread_id",
    "thread_idx",
]
DIMENSIONS = ("x", "y", "z")
MAX_GRID = (2**31 - 1, 2**16 - 1, 2**16 - 1)
"""The largest grid in each dimension. Source: HIP's device properties for these chips."""
MAX_BLOCK = 1024


def _dimension(what: str, dim: Any) -> int:
    if dim not in DIMENSIONS:
        raise TraceError(f"gpu.{what}({dim!r})", hint='the dimension is "x", "y" or "z"')
    return DIMENSIONS.index(dim)


def _read(what: str, dim: Any, bounds: tuple[int, int]) -> Int32:
    from mlir import ir

    attributes = {"dimension": ir.Attribute.parse(f"#gpu<dim {dim}>")}
    index = op(f"gpu.{what}", [], ir.IndexType.get(), attributes)
    return Int32(index, bounds=bounds)


def thread_id(dim: str = "x") -> Int32:
    """The thread's index in its block, an Int32 from 0 to the block's extent less one."""
    kernel, axis = require_kernel("gpu.thread_id"), _dimension("thread_id", dim)
    return _read("thread_id", dim, (0, (kernel.block[axis] if kernel.block else MAX_BLOCK) - 1))


def block_id(dim: str = "x") -> Int32:
    """The block's index in the grid, an Int32."""
    kernel, axis = require_kernel("gpu.block_id"), _dimension("block_id", dim)
    return _read("block_id", dim, (0, (kernel.grid[axis] or MAX_GRID[axis]) - 1))


def block_size(dim: str = "x") -> Int32:
    """How many threads a block has in one dimension; a known number where the launch gives one."""
    kernel, axis = require_kernel("gpu.block_dim"), _dimension("block_dim", dim)
    return Int32(kernel.block[axis]) if kernel.block else _read("block_dim", dim, (1, MAX_BLOCK))


def grid_size(dim: str = "x") -> Int32:
    """How many blocks the grid has in one dimension, an Int32."""
    kernel, axis = require_kernel("gpu.grid_dim"), _dimension("grid_dim", dim)
    known = kernel.grid[axis]
    return _read("grid_dim", dim, (known or 1, known or MAX_GRID[axis]))


def known_block_size() -> tuple[int, int, int] | None:
    """The block that the kernel is compiled for, as plain ints: of its launch, or of `known_block_size=`.

    None where the launch takes its block from a number of the device.
    """
    return require_kernel("gpu.known_block_size").block


class Tuple3D:
    """The attribute spelling of an id or size: `thread_idx.x`, `.y`, `.z`; `x, y, z = thread_idx` unpacks it."""

    __slots__ = ("_of", "name")

    def __init__(self, name: str, of: Any):
        self.name = name
        self._of = of

    def __repr__(self) -> str:
        return f"fx.{self.name}"

    def __call__(self, dim: Any = "x") -> Any:
        axis = dim if dim in DIMENSIONS else "x"
        raise TraceError(f"{self!r} is no function", hint=f"write gpu.{self.name}.{axis}")

    def __iter__(self) -> Iterator[Any]:
        check_unpacked(repr(self), len(DIMENSIONS))
        return map(self._of, DIMENSIONS)

    def __len__(self) -> int:
        return len(DIMENSIONS)

    def __getitem__(self, axis: Any) -> Any:
        try:
            return self._of(DIMENSIONS[axis])
        except (IndexError, TypeError):
            raise TraceError(f"{self!r}[{axis!r}]", hint="index it by 0, 1 or 2; or write .x, .y, .z") from None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise UnknownName(f"{self!r} has no attribute {name!r}", hint="it has .x, .y and .z")

    x = property(lambda self: self._of("x"))
    y = property(lambda self: self._of("y"))
    z = property(lambda self: self._of("z"))


refuse(Tuple3D, "compute with one dimension of it: fx.thread_idx.x")
thread_idx = Tuple3D("thread_idx", thread_id)
block_idx = Tuple3D("block_idx", block_id)
block_dim = Tuple3D("block_dim", block_size)
grid_dim = Tuple3D("grid_dim", grid_size)


def barrier() -> None:
    """Wait until every thread of the block is here; memory written before is seen after."""
    require_kernel("gpu.barrier")
    op("gpu.barrier", [])


def __getattr__(name: str) -> Any:
    if name == "SharedAllocator":  # it is made of views, which are made of this module
        from flylab.expr.shared import SharedAllocator

        return SharedAllocator
    raise missing("fx.gpu", name, globals())
