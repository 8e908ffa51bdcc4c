"""The compilation for a call: one made before, if nothing that it read has changed, one from disk, or a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flylab import settings
from flylab.compiler.dependencies import Dependencies
from flylab.compiler.jit import Launcher
from flylab.compiler.passing import HostArgument
from flylab.compiler.running import current_trace
from flylab.compiler.signature import CONSTEXPR, STREAM
from flylab.compiler.users import PLAIN, exact
from flylab.compiler.why import Compilation
from flylab.errors import FlylabError, TraceError
from flylab.places import of_traceback
from flylab.runtime.arguments import Bound
from flylab.runtime.cache.keeping import READ, Input, found_or_made
from flylab.runtime.compiled import Compiled, build
from flylab.runtime.device import Device
from flylab.runtime.native_output import shown_in_cells

IN_MEMORY = "in memory"
"""Where a compilation was found that this process has."""


def find(launcher: Launcher, bound: list[Bound], device: Device) -> Compiled:
    """The compilation for these argument kinds: one made before, if nothing that it read has changed, or a new one.

    Of threads that ask for the same at once, one makes it. Raises `TraceError` while something is traced.
    """
    level = settings.OPT_LEVEL.value()
    hosts = [b.host for b in bound]
    key = (device.target.arch, level, tuple(_bucket(h) for h in hosts if h.kind != STREAM))
    constants = {h.name: h.spec for h in hosts if h.kind == CONSTEXPR}
    found = _known(launcher, key, constants)
    if found is not None:
        return found
    if current_trace() is not None:  # and two could wait for each other
        raise TraceError(
            f"'{launcher.name}' is compiled in a launcher or kernel that is traced",
            hint="compile it before; a launcher that is called here runs as a part of this one",
        )
    with launcher.turn():
        return _known(launcher, key, constants) or _made(launcher, key, Input(launcher, hosts, device.target, level))


def _known(launcher: Launcher, key: Any, constants: dict[str, Any]) -> Compiled | None:
    for compiled, dependencies in launcher.specialisations.get(key, ()):
        if dependencies.fit(constants):
            for function in (launcher, *compiled.functions.values()):
                function.history.found = IN_MEMORY
            found: Compiled = compiled
            return found
    return None


def _made(launcher: Launcher, key: Any, given: Input) -> Compiled:
    shown_in_cells()
    try:
        made = found_or_made(given, lambda: build(launcher, given.arguments, given.target, given.level))
    except FlylabError as error:
        raise error.at(of_traceback(error.__traceback__)) from error.__cause__
    if settings.DUMP_IR.value():
        _dump(made)
    read = Dependencies.of([launcher, *made.functions.values()], given.constants)
    made.constants = {constant.name: constant for constant in read.constants}
    chosen = {"chip": given.target.arch, settings.OPT_LEVEL.names[0]: given.level}
    found = "on disk" if made.kept == READ else ""
    Compilation(launcher, tuple(made.functions.values()), chosen, given.arguments, read, found).note()
    known = launcher.specialisations.get(key, ())
    launcher.specialisations[key] = [pair for pair in known if not pair[1].changed()] + [(made, read)]
    return made


def _bucket(host: HostArgument) -> Any:
    """A part of the key of compilations. An object's own hash and `__eq__` decide nothing here."""
    if host.kind != CONSTEXPR:
        return host.spec
    return exact(host.spec) if type(host.spec) in PLAIN else type(host.spec)


def _dump(made: Compiled) -> None:
    folder = settings.DUMP_DIR.text()
    try:
        made.dump(Path(folder).expanduser())
    except OSError as error:
        raise FlylabError(
            f"the dump cannot be written: {error} ({settings.DUMP_DIR.names[0]}={folder!r}, "
            f"and {settings.DUMP_IR.names[0]} asks for it)",
            hint=f"set {settings.DUMP_DIR.names[0]} to a folder that can be written, or {settings.DUMP_IR.names[0]}=0",
        ) from None
