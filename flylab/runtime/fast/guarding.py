"""Whether what a compilation read is still the same, as a plan asks."""

from __future__ import annotations

from collections.abc import Callable

from flylab.compiler.jit import Launcher
from flylab.compiler.signature import CONSTEXPR
from flylab.runtime.compiled import Compiled


def guard_of(launcher: Launcher, compiled: Compiled) -> Callable[[], bool]:
    """A function that says whether a compilation of the launcher may be used again."""
    known = (pair for pairs in launcher.specialisations.values() for pair in pairs)
    dependencies = next(read for made, read in known if made is compiled)
    constants = {a.name: a.spec for a in compiled.arguments if a.kind == CONSTEXPR}
    return lambda: dependencies.fit(constants)
