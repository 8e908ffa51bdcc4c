"""What is being traced on this thread: the compiler sets it, the expressions read it.

A value of the device belongs to the function (kernel or launcher) whose trace made it, and has no meaning in any other.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from flylab.errors import TraceError

Extents = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class FunctionState:
    """One trace of a function: its name, and its operation in the module."""

    name: str
    operation: Any
    terms: dict[Any, Any] = field(default_factory=dict)
    """Of the integers that layouts have held, by MLIR value and format: which number each is, as a Term, or None."""
    names: set[str] = field(default_factory=set)
    """The names in these."""
    lines: list[Any] = field(default_factory=list)
    """What its calls of `fx.printf` print, a Line each, by the call's number."""

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
    kind = "kernel"


class _Active(threading.local):
    function: FunctionState | None = None
    latest: Any = None
    """The value that was made last."""


active = _Active()


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
    """Mark `function` as the one being traced."""
    before = active.function
    active.function = function
    try:
        yield
    finally:
        active.function = before
        active.latest = None


class Owned:
    """Holds a value of the device: `value` gives it in the function that it belongs to, and is an error elsewhere.

    The operations of a trace are gone when it ends; MLIR would read freed memory, or refuse the whole module.
    """

    __slots__ = ("_value", "_function")

    def _own(self, value: Any) -> None:
        """Hold an MLIR value. Raises `TraceError` for one that another function made."""
        self._value = value
        self._function = function = active.function
        if function is not None and value is not active.latest and not _is_inside(value, function.operation):
            raise _foreign(self, None)

    @property
    def value(self) -> Any:
        """The MLIR value, or a Python number. Raises `TraceError` in another function than the one that made it."""
        function = self._function
        if function is not None and function is not active.function:
            raise _foreign(self, function)
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
