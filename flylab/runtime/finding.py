"""The compilation for a call: one made before, if nothing that it read has changed, one from disk, or a new one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from flylab import settings
from flylab.compiler.dependencies import Dependencies
from flylab.compiler.jit import Launcher
from flylab.compiler.passing import HostArgument
from flylab.compiler.signature import CONSTEXPR, STREAM
from flylab.compiler.users import PLAIN, exact
from flylab.errors import FlylabError
from flylab.locks import fork_safe_lock
from flylab.places import of_traceback
from flylab.runtime.arguments import Bound
from flylab.runtime.cache.keeping import Input, found_or_made
from flylab.runtime.compiled import Compiled, build
from flylab.runtime.device import Device
from flylab.runtime.native_output import shown_in_cells

_lock = fork_safe_lock()


def find(launcher: Launcher, bound: list[Bound], device: Device) -> Compiled:
    """The compilation for these argument kinds: one made before, if nothing that it read has changed, or a new one."""
    return find_with_dependencies(launcher, bound, device)[0]


def find_with_dependencies(launcher: Launcher, bound: list[Bound], device: Device) -> tuple[Compiled, Dependencies]:
    """The same, and what it read."""
    level = settings.OPT_LEVEL.value()
    hosts = [b.host for b in bound]
    key = (device.target.arch, level, tuple(_bucket(h) for h in hosts if h.kind != STREAM))
    constants = {h.name: h.spec for h in hosts if h.kind == CONSTEXPR}
    known: list[tuple[Compiled, Dependencies]] = launcher.specialisations.get(key, [])
    for compiled, dependencies in known:
        if dependencies.fit(constants):
            return compiled, dependencies
    shown_in_cells()
    try:
        made = found_or_made(Input(launcher, hosts, device.target, level),
                             lambda: build(launcher, hosts, device.target, level))
    except FlylabError as error:
        raise error.at(of_traceback(error.__traceback__)) from error.__cause__
    if settings.DUMP_IR.flag():
        _dump(made)
    read = Dependencies.of([launcher, *made.functions.values()], constants)
    with _lock:  # another thread may have made one meanwhile
        known = launcher.specialisations.get(key, [])
        launcher.specialisations[key] = [pair for pair in known if not pair[1].changed()] + [(made, read)]
    return made, read


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
