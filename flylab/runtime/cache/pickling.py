"""A compilation that is pickled: as on disk, with its kernels by their names, as Python pickles functions."""

from __future__ import annotations

from typing import Any

from flylab.compiler.dependencies import Dependencies
from flylab.compiler.kernel import TracedFunction
from flylab.compiler.passing import HostArgument
from flylab.runtime.cache import entry
from flylab.runtime.compiled import Compiled
from flylab.targets import Target


def reduced(made: Compiled) -> tuple[Any, ...]:
    """What `Compiled.__reduce__` gives. Pickling it raises `TraceError` where a name does not lead to its kernel.

    A constant that was changed after compiling is not the one that it is for: what is unpickled takes none there.
    """
    kernels = tuple(made.functions.values())
    return _again, (entry.to_bytes(made, (), kernels), made.launcher, made.arguments, made.target, made.opt_level,
                    kernels, made.code, made.kept, [name for name, each in made.constants.items() if each.is_same()])


def _again(data: bytes, launcher: TracedFunction, arguments: list[HostArgument], target: Target, level: int,
           kernels: tuple[TracedFunction, ...], code: Any, kept: str, same: list[str]) -> Compiled:
    made = entry.from_bytes(data, launcher, arguments, target, level, (), kernels, code)
    made.kept = kept
    constants = {argument.name: argument.spec for argument in arguments if argument.name in same}
    made.constants = {each.name: each for each in Dependencies.of([launcher, *kernels], constants).constants}
    return made
