"""What is being traced on this thread: the compiler sets it, the expressions read it.

A value of the device belongs to the function (kernel or launcher) whose trace made it, and there to the region: the
function itself, or an arm or a body of its runtime control flow. It has no meaning in any other function, nor once its
region is left.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flylab.errors import Check, TraceError
from flylab.targets import Target

Extents = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class FunctionState:
    """One trace of a function: its name, its operation in the module, and the chip that it is compiled for."""

    name: str
    operation: Any
    target: Target
    terms: dict[Any, Any] = field(default_factory=dict)
    """Of the integers that layouts have held, by MLIR value and format: which number each is, as a Term, or None."""
    names: set[str] = field(default_factory=set)
    """The names in these."""
    checks: list[Check] = field(default_factory=list)
    """The function's checks, by their numbers in the IR."""
    lines: list[Any] = field(default_factory=list)
    """What its calls of `fx.printf` print, a Line each, by the call's number."""
    unfinished: dict[Any, BaseException | None] = field(default_factory=dict)
    """The blocks that are still traced on trial, with the exception that left each."""

    shared: list[Any] = field(default_factory=list)
    """What was allocated in LDS, an Allocation each, as `flylab.expr.shared` says."""

    aliases: list[Any] = field(default_factory=list)
    """The containers that must not change, as `flylab.compiler.control.aliases` says."""

    def reserved(self, base: str) -> str:
        """A name that no other number of this function has: `base`, or with a number behind it."""
        name, count = base, 1
        while name in self.names:
            count += 1
            name = f"{base}_{count}"
        self.names.add(name)
        return name

    kind = "launcher"


@dataclass(frozen=True, eq=False)
class KernelState(FunctionState):
    """One trace of a kernel: also its block, and the extents of its grid, where they are known."""

    block: Extents | None = None
    grid: tuple[int | None, int | None, int | None] = (None, None, None)
    slices: dict[Any, list[Any]] = field(default_factory=dict)
    """The threads of each tiled copy and MMA whose parts of memory it takes: see `flylab.expr.thread_slices`."""
    of_whole_waves: list[str] = field(default_factory=list)
    """The first of its instructions that take whole waves, where its block is known only at launch."""
    kind = "kernel"


class Region:
    """A part of a function whose values live together: all of it, or one arm or body of runtime control flow."""

    __slots__ = ("function", "what", "parent", "is_open", "is_inlined", "block")

    def __init__(self, function: FunctionState, what: str = "", parent: Region | None = None):
        self.function = function
        self.what = what
        """What a user calls it: the `if` on line 12."""
        self.parent = parent
        self.is_open = True
        self.is_inlined = False
        """Whether what was traced in it became a part of its parent."""
        self.block: Any = None
        """What the compiler traces it into, where it is a part."""

    def lives_on(self) -> bool:
        """Whether its values have a meaning where tracing stands."""
        region = self
        while region.is_inlined and region.parent is not None:
            region = region.parent
        return region.is_open


class _Active(threading.local):
    function: FunctionState | None = None
    region: Region | None = None
    """The innermost region of it that is open."""
    latest: Any = None
    """The value that was made last."""
    fastmath: int = 0
    """The fast-math flags of the scope that float operations are made in."""


active = _Active()


def in_arm() -> bool:
    """Whether what is traced now stands in an arm of an `if` of the device, where only some threads may go."""
    region = active.region
    while region is not None and region.block is not None:
        if region.block.is_arm:
            return True
        region = region.parent
    return False


def current_kernel() -> KernelState | None:
    """The kernel being traced on this thread, or None (in a launcher, or outside of a trace)."""
    return active.function if isinstance(active.function, KernelState) else None


def require_kernel(what: str) -> KernelState:
    """The kernel being traced. Raises `TraceError` in a launcher and outside of a trace."""
    kernel = current_kernel()
    if kernel is None:
        raise TraceError(
            f"{what} only has a meaning inside an @flyc.kernel function",
            hint="do it in the kernel: a launcher runs on the host, which has no thread, no registers and no data",
        )
    return kernel


@contextmanager
def tracing(function: FunctionState) -> Iterator[None]:
    """Mark `function` as the one being traced: a launcher in no fast-math scope, a kernel in that of its launch."""
    before = active.function, active.region, active.fastmath
    active.function, active.region = function, Region(function)
    if not isinstance(function, KernelState):
        active.fastmath = 0
    try:
        yield
    finally:
        while active.region is not None and active.region.block is not None:  # an error left these
            active.region.block.leave()
        active.function, active.region, active.fastmath = before
        active.latest = None


class Owned:
    """Holds a value of the device: `value` gives it in the function that it belongs to, and is an error elsewhere.

    The operations of a trace are gone when it ends; MLIR would read freed memory, or refuse the whole module.
    """

    __slots__ = ("_value", "_region")

    def _own(self, value: Any) -> None:
        """Hold an MLIR value. Raises `TraceError` for one that another function made."""
        self._value = value
        self._region, function = active.region, active.function
        if function is not None and value is not active.latest and not _is_inside(value, function.operation):
            raise _foreign(self, None)

    @property
    def value(self) -> Any:
        """The MLIR value, or a Python number. Raises `TraceError` in another function than the one that made it, and
        outside of the arm or loop that did."""
        region = self._region
        if region is not None and region is not active.region:
            if region.function is not active.function:
                raise _foreign(self, region.function)
            if not region.is_open and not region.lives_on():
                raise _left(self, region)
        return self._value


def _is_inside(value: Any, function: Any) -> bool:
    """True for a value made by an operation in `function`, or an argument of it."""
    owner = value.owner
    operation = getattr(owner, "owner", owner)  # the owner of a block argument is its block
    while operation is not None:
        if operation.operation == function:
            return True
        operation = operation.parent
    return False


def _left(value: Any, region: Region) -> TraceError:
    from flylab.expr.location import name_of

    return TraceError(
        f"{name_of(value, f'this {type(value).__name__}')} was made inside of {region.what}, and is used outside of it",
        hint="keep it in a variable, a list, a dict or an attribute that has a value before: these are carried out",
    )


def _foreign(value: Any, owner: FunctionState | None) -> TraceError:
    from flylab.expr.location import name_of

    name, here = name_of(value, f"this {type(value).__name__}"), active.function
    if here is None:
        return TraceError(
            f"{name} is a value of the device, and is used after its {owner.kind if owner else 'function'} was traced",
            hint="write it into a tensor in the kernel, and read the tensor after the launch",
        )
    if owner is not None and owner.kind != here.kind:
        hint = "pass it to the kernel as a parameter" if here.kind == "kernel" else (
            "a kernel has no results but what it writes into tensors"
        )
        return TraceError(
            f"{name} belongs to the {owner.kind} '{owner.name}', and the {here.kind} '{here.name}' uses it", hint=hint
        )
    return TraceError(
        f"{name} belongs to another kernel or launch, and the {here.kind} '{here.name}' uses it",
        hint=f"make it anew in this {here.kind}: a value of the device must not be kept (cached, global, in an object)",
    )
