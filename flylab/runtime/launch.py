"""A launch: bind the arguments, find or make the compilation, and run what the launcher launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flylab.compiler.jit import Launcher
from flylab.compiler.meaning import differences, meaning
from flylab.compiler.passing import HostArgument
from flylab.compiler.shown_meaning import shown
from flylab.compiler.signature import CONSTEXPR, STREAM
from flylab.errors import ArgumentError, FlylabError
from flylab.passes.host import HostCheck, HostLine, Launch
from flylab.runtime.arguments import Bound, bind, seen_as
from flylab.runtime.backend import Backend, Held, backend_of
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import Device, current
from flylab.runtime.finding import find
from flylab.runtime.run import Run, seen


def compile_only(launcher: Launcher, args: tuple[Any, ...], named: dict[str, Any]) -> Compiled:
    """Compile for the current device without running."""
    return find(launcher, bound_to(launcher, args, named), current())


def fitting(compiled: Compiled, args: tuple[Any, ...], named: dict[str, Any]) -> tuple[Device, list[Bound]]:
    """Where a compilation runs now, and the arguments of a call of it.

    Raises `ArgumentError` where one is of another kind than it was compiled for (another shape, format or constant, or
    a constant that was changed since).
    """
    bound = bound_to(compiled.launcher, args, named)
    bound = [seen_as(mine, given) for mine, given in zip(compiled.arguments, bound, strict=True)]
    for mine, given in zip(compiled.arguments, bound, strict=True):
        _check_same(compiled, mine, given.host)
    now = current()
    return Device(now.kind, compiled.target, now.ordinal), bound


def _check_same(compiled: Compiled, mine: HostArgument, given: HostArgument) -> None:
    """Raises `ArgumentError` for an argument that is not what a compilation is for."""
    hint = "call the launcher itself, which compiles what its arguments need"
    if mine.kind == given.kind == CONSTEXPR:
        constant = compiled.constants.get(mine.name)
        if constant is None:
            name = compiled.launcher.name
            raise ArgumentError(f"'{mine.name}' was changed between compiling '{name}' and pickling that", hint=hint)
        for name, was, now in differences(mine.name, constant.was, meaning(given.spec, constant.names)):
            if name == mine.name and mine.spec is not given.spec:
                break
            raise ArgumentError(f"'{name}' was {shown(was)} when it was compiled, and is {shown(now)}", hint=hint)
        else:
            return
    elif mine.kind == given.kind and (mine.kind == STREAM or meaning(mine.spec) == meaning(given.spec)):
        return
    raise ArgumentError(f"'{mine.name}' was compiled for {mine.spec}, and gets {given.spec}", hint=hint)


def bound_to(launcher: Any, args: tuple[Any, ...], named: dict[str, Any]) -> list[Bound]:
    """The arguments of a call, matched with the launcher's parameters."""
    values = launcher.signature.bind(args, named)
    return [bind(p, values[p.name]) for p in launcher.signature.parameters]


def run_bound(device: Device, compiled: Compiled, bound: list[Bound]) -> Run:
    """Run what a launcher launches, on arguments that are bound."""
    backend = backend_of(device)
    stream = next((b.value for b in bound if b.host.kind == STREAM), None)
    with backend.hold(bound) as held:
        return execute(device, backend, compiled, operands(bound, held.pointers), held, stream)


def operands(bound: list[Bound], pointers: Sequence[int]) -> list[Any]:
    """The values of a launcher's runtime arguments. `pointers` are what its kernels get for the tensors, in order."""
    tensors = iter(pointers)
    return [value for b in bound for value in b.operands(tensors)]


def execute(device: Device, backend: Backend, compiled: Compiled, values: list[Any], held: Held, stream: Any) -> Run:
    """Run what a launcher launches for the values of its runtime arguments."""
    reports, running = [], compiled.launcher.name
    try:
        for launch in launches(compiled, values):
            running = launch.kernel
            with placed(compiled, launch):
                reports.append(backend.launch(compiled, launch, held, stream))
    except BaseException:
        seen(Run(device, compiled, tuple(reports)), running)
        raise
    return seen(Run(device, compiled, tuple(reports)))


def launches(compiled: Compiled, values: list[Any]) -> Iterator[Launch]:
    """What a launcher launches, in order; what it checks and prints between is done on the way."""
    # The last is in place of the buffer for what a kernel prints: each launch has its own.
    for step in compiled.host.steps([*values, 0]):
        if isinstance(step, HostCheck):
            if not step.holds:
                raise compiled.checks[""][step.number].failed()
        elif isinstance(step, HostLine):
            words = [word & 0xFFFFFFFF for word in step.words]
            print(compiled.lines[None][step.site].filled(words), end="")
        else:
            yield step


@contextmanager
def placed(compiled: Compiled, launch: Launch) -> Iterator[None]:
    """Errors inside get the user's line of a launch, where they have none."""
    try:
        yield
    except FlylabError as error:
        raise error.at(error.where or compiled.launch_lines[launch.kernel]) from error.__cause__
