"""A compilation is read from disk, or made and put there: what `flylab.runtime.finding` asks where memory has none."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flylab import settings
from flylab.compiler.dependencies import Dependencies
from flylab.compiler.kernel import TracedFunction
from flylab.compiler.passing import HostArgument
from flylab.compiler.signature import CONSTEXPR, STREAM
from flylab.dialect.types import MemRef, Ptr
from flylab.errors import FlylabError
from flylab.locks import IMPORTING
from flylab.runtime.cache import entry
from flylab.runtime.cache.fingerprint import Fingerprint, Unfit
from flylab.runtime.cache.identity import identity
from flylab.runtime.cache.kept_code import KeptCode
from flylab.runtime.cache.relocate import is_movable
from flylab.runtime.cache.store import Store
from flylab.runtime.compiled import Compiled
from flylab.targets import Target

READ, KEPT = "read from disk", "kept on disk"


@dataclass(frozen=True)
class Input:
    """What a compilation is made of."""

    launcher: TracedFunction
    arguments: list[HostArgument]
    target: Target
    level: int

    @property
    def constants(self) -> dict[str, Any]:
        """The constants among the arguments, by name."""
        return {a.name: a.spec for a in self.arguments if a.kind == CONSTEXPR}

    def fingerprint(self) -> Fingerprint:
        """All that the input says, as plain data. Raises `Unfit` where it cannot be said."""
        constants = self.constants
        return Fingerprint(self.launcher, constants, Dependencies.of([self.launcher], constants))


@dataclass(frozen=True)
class Place:
    """Where a compilation is in a store, by the name that its input has."""

    store: Store
    name: str
    input: Input
    files: tuple[str, ...]
    traced: Sequence[TracedFunction]

    def read(self) -> Compiled | None:
        """What is there; None where nothing is, or nothing that can be read."""
        data = self.store.read(self.name)
        if data is None:
            return None
        given = self.input
        try:
            made = entry.from_bytes(data, given.launcher, given.arguments, given.target, given.level, self.files,
                                    self.traced, None)
        except (ValueError, KeyError, IndexError, TypeError, SyntaxError, AttributeError) as error:
            self.store.warn_damaged(self.name, str(error))
            return None
        made.code = self._code(lambda: _optimised(made))
        made.kept = READ
        return made

    def write(self, made: Compiled) -> str:
        """Puts a compilation there; what became of it, in words."""
        try:
            if _name(self.input, self.input.fingerprint()) != self.name:
                return "not kept on disk: what it reads was changed while it was traced"
            data = entry.to_bytes(made, self.files, self.traced)
        except Unfit as error:
            return f"not kept on disk: {error}"
        except ValueError:
            return "not kept on disk: a kernel of it, or a file's name, is made while it is traced"
        code = made.code
        made.code = self._code(lambda: code)
        if not self.store.write(self.name, data):
            return "not kept on disk: " + (f"{self.store.folder} cannot be written" if self.store.fits(data) else
                                            f"it is larger than {settings.CACHE_BYTES.names[0]}={self.store.most}")
        self.store.note(f"{self.name} {self.input.launcher.name} {self.input.target}")
        return KEPT

    def _code(self, optimise: Callable[[], Any]) -> KeptCode:
        return KeptCode(self.store, self.name, self.files, optimise)


def found_or_made(given: Input, make: Callable[[], Compiled]) -> Compiled:
    """The compilation of an input: from disk, or of `make()`, and then on disk.

    Other processes that make the same wait for this one. Raises what `make` raises.
    """
    place = _place(given)
    if isinstance(place, str):
        made = make()
        made.kept = place
        return made
    found = place.read()
    if found is None:
        with place.store.alone(place.name):
            found = place.read()
            if found is None:
                found = make()
                found.kept = place.write(found)
    return found


def _place(given: Input) -> Place | str:
    """Where it is on disk, or why it is not kept there, in words."""
    if not settings.ENABLE_CACHE.value():
        return f"not kept on disk: {settings.ENABLE_CACHE.names[0]}=0"
    try:
        folder = settings.CACHE_DIR.value()
    except FlylabError:
        if settings.CACHE_DIR.source:
            raise
        return "not kept on disk: this user has no home folder"
    try:
        found = given.fingerprint()
        name = _name(given, found)
    except Unfit as error:
        return f"not kept on disk: {error}"
    return Place(_store(folder, settings.CACHE_BYTES.value()), name, given, tuple(found.files), tuple(found.traced))


_store = functools.cache(Store)


def _optimised(made: Compiled) -> Any:
    with IMPORTING:
        from flylab.codegen import amdgpu

    return amdgpu.optimise(made.llvm, made.target, made.opt_level)


def _name(given: Input, fingerprint: Fingerprint) -> str:
    """The name of an input: a digest of all that decides what is made of it."""
    arguments = [(a.name, a.kind, _spec(fingerprint, a.spec)) for a in given.arguments if a.kind != STREAM]
    fixed = [None if is_movable(file) else file for file in fingerprint.files]
    whole = identity(), given.target.arch, given.level, arguments, fingerprint.plain, fixed
    return hashlib.sha256(repr(whole).encode()).hexdigest()[:40]


def _spec(fingerprint: Fingerprint, spec: Any) -> Any:
    # What a layout has at runtime has no value that could be told, and a text.
    return str(spec) if isinstance(spec, (MemRef, Ptr)) else fingerprint.of(spec)
