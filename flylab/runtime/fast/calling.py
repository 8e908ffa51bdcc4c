"""The first call of a kind, and any that is out of the ordinary; what it finds out, later calls find as a plan."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from flylab.compiler.dependencies import Dependencies
from flylab.compiler.guards import guard_of, never
from flylab.compiler.jit import Launcher
from flylab.compiler.signature import CONSTEXPR
from flylab.compiler.users import PLAIN
from flylab.runtime import launch
from flylab.runtime.arguments import Bound
from flylab.runtime.compiled import Compiled
from flylab.runtime.device import EMULATED, Device, current
from flylab.runtime.fast import software
from flylab.runtime.fast.binding import KEYED, Missed
from flylab.runtime.fast.plans import Plan, Plans
from flylab.runtime.fast.surroundings import Surroundings
from flylab.runtime.finding import IN_MEMORY, find
from flylab.runtime.run import Run

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def of_launcher(launcher: Launcher) -> Callable[..., Run]:
    """What calling an @flyc.jit function does: compile what its arguments need, once, and launch."""
    return _caller(Plans(launcher.signature), partial(_launch, launcher))


def of_compiled(compiled: Compiled) -> Callable[..., Run]:
    """What calling a compilation does: launch it on arguments of the kinds that it was compiled for."""
    return _caller(Plans(compiled.launcher.signature), partial(_run, compiled))


def _caller(plans: Plans, otherwise: Callable[[Plans, Any, Arguments], Run]) -> Callable[..., Run]:
    """A call goes by its plan, or the other way where it has none."""
    find = plans.find

    def call(*args: Any, **named: Any) -> Any:
        key = None
        if find is not None:
            try:
                done = find(*args, **named)
            except TypeError as error:
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                # Not even the first line of it ran: the arguments do not bind.
            else:
                if type(done) is not Missed:
                    return done
                key = done.key
        return otherwise(plans, key, (args, named))

    return call


def _launch(launcher: Launcher, plans: Plans, key: Any, arguments: Arguments) -> Run:
    """Launch where there is no plan for the arguments; `key` may be None."""
    before = None if key is None else Surroundings.now()
    device = current()
    bound = launch.bound_to(launcher, *arguments)
    compiled = find(launcher, bound, device)
    done = launch.run_bound(device, compiled, bound)
    if before is not None and _can_be_known(compiled, bound) and not plans.is_hopeless(key, before):
        read = _dependencies(launcher, compiled)
        if read is not None:
            standing, guard = before.test(), guard_of(read)
            fits = never if guard is never else _noting(launcher, compiled, lambda: standing() and guard())
            _learn(plans, key, before, fits, (device, compiled, bound))
    return done


def _noting(launcher: Launcher, compiled: Compiled, holds: Callable[[], bool]) -> Callable[[], bool]:
    """The same test; where it holds, `why_recompiled` can tell that the last call found its compilation."""
    histories = [function.history for function in (launcher, *compiled.functions.values())]

    def fits() -> bool:
        if not holds():
            return False
        for history in histories:
            history.found = IN_MEMORY
        return True

    return fits


def _dependencies(launcher: Launcher, compiled: Compiled) -> Dependencies | None:
    """What a compilation that was just found read; None where another thread saw that this changed, and let it go."""
    known = [pair for pairs in list(launcher.specialisations.values()) for pair in pairs]
    return next((read for made, read in known if made is compiled), None)


def _run(compiled: Compiled, plans: Plans, key: Any, arguments: Arguments) -> Run:
    """Run a compilation where there is no plan for the arguments.

    Raises `ArgumentError` where one is of another kind than it was compiled for.
    """
    before = None if key is None else Surroundings.now()
    device, bound = launch.fitting(compiled, *arguments)
    done = launch.run_bound(device, compiled, bound)
    if before is not None and _can_be_known(compiled, bound) and not plans.is_hopeless(key, before):
        _learn(plans, key, before, _while_same(compiled, before.test()), (device, compiled, bound))
    return done


def _while_same(compiled: Compiled, standing: Callable[[], bool]) -> Callable[[], bool]:
    """The same test, which holds only while the constants among the arguments are as they were when it was compiled."""
    constants = list(compiled.constants.values())
    if all(_is_fixed(constant.read()) for constant in constants):
        return standing
    guard = guard_of(Dependencies([], constants, set().union(*(constant.names for constant in constants))))
    return never if guard is never else lambda: standing() and guard()


def _learn(plans: Plans, key: Any, where: Surroundings, fits: Callable[[], bool],
           what: tuple[Device, Compiled, Sequence[Bound]]) -> None:
    device, compiled, bound = what
    if any(each.memory is not None and each.host.spec.align > KEYED for each in bound):
        return  # it relies on more of an address than the key holds
    if device.kind == EMULATED:
        made: Callable[..., Any] | None = software.plan(device, compiled, bound)
    else:
        from flylab.runtime.hip import planned

        made = planned.plan(device, compiled, bound)
    if made is not None:
        plans.add(key, Plan(where, fits, made))


def _can_be_known(compiled: Compiled, bound: Sequence[Bound]) -> bool:
    """Whether constants that count by identity in a key are the very ones that the compilation watches."""
    return all(
        given.host.spec is mine.spec or _is_fixed(given.host.spec)
        for mine, given in zip(compiled.arguments, bound, strict=True)
        if mine.kind == CONSTEXPR
    )


def _is_fixed(constant: Any) -> bool:
    return type(constant) in PLAIN or (type(constant) is tuple and all(map(_is_fixed, constant)))
