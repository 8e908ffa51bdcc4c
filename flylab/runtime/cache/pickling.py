"""A compilation that is pickled: as on disk, with its kernels by their names, as Python pickles functions."""

from __future__ import annotations

from typing import Any

from flylab.compiler.dependencies import Dependencies
from flylab.compiler.kernel import TracedFunction
from flylab.compiler.passing import HostArgument
from flylab.compiler.signature import CONSTEXPR
from flylab.errors import ArgumentError
from flylab.runtime.cache import entry
from flylab.runtime.compiled import Compiled
from flylab.targets import Target


def reduced(made: Compiled) -> tuple[Any, ...]:
    """What `Compiled.__reduce__` gives. Pickling it raises `TraceError` where a name does not lead to its kernel.

    Raises `ArgumentError` where a constant is not what it was when it was compiled.
    """
    for name in (name for constant in made.constants.values() for name in constant.changes()):
        raise ArgumentError(f"'{name}' was changed after '{made.launcher.name}' was compiled for it",
                            hint="compile it again before it is pickled")
    kernels = tuple(made.functions.values())
    return _again, (entry.to_bytes(made, (), kernels), made.launcher, made.arguments, made.target, made.opt_level,
                    kernels, made.code, made.kept)


def _again(data: bytes, launcher: TracedFunction, arguments: list[HostArgument], target: Target, level: int,
           kernels: tuple[TracedFunction, ...], code: Any, kept: str) -> Compiled:
    made = entry.from_bytes(data, launcher, arguments, target, level, (), kernels, code)
    made.kept = kept
    constants = {argument.name: argument.spec for argument in arguments if argument.kind == CONSTEXPR}
    made.constants = {each.name: each for each in Dependencies.of([launcher, *kernels], constants).constants}
    return made
