"""What a call chooses for what follows, or for a `with` block: the device, what launches are watched for."""

from __future__ import annotations

import threading
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class _Choice(Generic[T]):
    """A choice (None leaves it to the environment), and what holds again after its block."""

    value: T | None = None
    before: _Choice[T] | None = None


class Choices(Generic[T]):
    """All choices of one thing.

    A choice holds until the next: inside a `with` block of another one to the block's end, in the main thread for the
    process, in another thread for that thread. A notebook may run each cell in a copied context, so that a context
    variable alone would forget; one in a block must not move what other threads run on.
    """

    def __init__(self, name: str):
        self._plain: _Choice[T] = _Choice()
        self._scoped: ContextVar[_Choice[T] | None] = ContextVar(name, default=None)

    def current(self) -> T | None:
        """What is chosen now, or None."""
        return (self._scoped.get() or self._plain).value

    def choose(self, value: T | None) -> Chosen[T]:
        """Chooses, from now on; the result can make it the choice of a block instead."""
        return Chosen(self, value)


class Chosen(Generic[T]):
    """One choice; `enter` and `leave` make it hold for a block alone."""

    def __init__(self, choices: Choices[T], value: T | None):
        self._of = choices
        self._outer = choices._scoped.get()
        self._choice = _Choice(value, self._outer and self._outer.before)
        self._plain_before = choices._plain
        if self._outer is None and threading.current_thread() is threading.main_thread():
            choices._plain = self._choice
        else:
            choices._scoped.set(self._choice)

    def enter(self) -> None:
        """What the call chose holds for the block alone now."""
        of = self._of
        if of._plain is self._choice:
            of._plain = self._plain_before
        before = of._scoped.get()
        of._scoped.set(_Choice(self._choice.value, self._outer if before is self._choice else before))

    def leave(self) -> None:
        """The end of the block."""
        inner = self._of._scoped.get()
        self._of._scoped.set(inner and inner.before)
