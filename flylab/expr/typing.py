"""Parameter types that are not numbers or tensors: `fx.Constexpr[int]` and `fx.Stream`."""

from __future__ import annotations

from typing import Any


class Constexpr:
    """A compile-time constant: a parameter annotated `fx.Constexpr[int]` is a plain Python value in the kernel.

    Each value gives a kernel of its own.
    """

    def __init__(self, kind: Any = None):
        self.kind = kind

    def __class_getitem__(cls, kind: Any) -> Constexpr:
        return cls(kind)

    def __repr__(self) -> str:
        return f"Constexpr[{getattr(self.kind, '__name__', self.kind)}]" if self.kind is not None else "Constexpr"


class Stream:
    """A stream of the device to launch on: `fx.Stream(None)` is the default one.

    `value` is a stream handle of HIP, an object with one (`torch.cuda.Stream`), or None. The software device runs
    every launch at once and has no streams.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any = None):
        self.value = value

    def __repr__(self) -> str:
        return f"Stream({self.value!r})"
