"""Why a kernel or launcher was compiled again: its last two compilations compared, said in sentences."""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flylab.compiler.dependencies import Dependencies, Dependency
from flylab.compiler.in_place import is_same_code
from flylab.compiler.kernel import TracedFunction
from flylab.compiler.meaning import MISSING, differences
from flylab.compiler.passing import HostArgument
from flylab.compiler.reads import Cell, Defaults, Given
from flylab.compiler.shown_meaning import object_of, shown, shown_defaults
from flylab.compiler.signature import CONSTEXPR, TENSOR
from flylab.places import SourceLine

DECORATED = {"kernel": "kernel", "jit": "launcher"}


@dataclass(frozen=True)
class Compilation:
    """What decided about one compilation; `found` says where it was found, "" of one that was made."""

    launcher: TracedFunction
    kernels: tuple[TracedFunction, ...]
    settings: dict[str, Any]
    """What it was compiled for besides: the name of each setting, and its value."""
    arguments: list[HostArgument]
    dependencies: Dependencies
    found: str = ""

    def note(self) -> None:
        """Let the launcher and its kernels know."""
        for function in dict.fromkeys((self.launcher, *self.kernels)):
            function.history.add(self)

    def __str__(self) -> str:
        given = ", ".join(f"{a.name}: {_spec(a)}" for a in self.arguments)
        return ", ".join(f"{name} {value}" for name, value in self.settings.items()) + (f", with {given}" * bool(given))


def why(name: str, last: Compilation | None, before: Compilation | None, found: str) -> str:
    """The answer of `why_recompiled()`: sentences, one a line."""
    if last is None:
        return f"'{name}' has not been compiled yet"
    how, done = ("looked up", "search on disk") if last.found else ("compiled", "compilation")
    head = f"nothing was compiled: '{name}' was found {last.found}\n" if last.found else ""
    if found:
        head = f"the last call of '{name}' compiled nothing: it was found {found}\nits last {done}: "
    if before is None:
        return f"{head}'{name}' was {how} for the first time: {last}"
    reasons = list(changes(before, last)) or ["all that it read is the same, and the compilation before it was dropped"]
    return "\n".join([f"{head}'{name}' was {how} again, since", *(f"  {reason}" for reason in reasons)])


def changes(before: Compilation, last: Compilation) -> Iterator[str]:
    """What differs between two compilations, a sentence each."""
    for name, value in last.settings.items():
        if before.settings.get(name) != value:
            yield f"{name}: {before.settings.get(name)} -> {value}"
    yield from _arguments(before.arguments, last.arguments)
    if before.launcher.name != last.launcher.name:
        yield f"launcher '{last.launcher.name}' launches it, and not '{before.launcher.name}'"
    said: set[str] = set()
    older = {(f.decorator, f.name): f for f in (before.launcher, *before.kernels)}
    for function in (last.launcher, *last.kernels):
        old = older.get((function.decorator, function.name))
        if old is not None and old is not function:
            said.add(_defined_anew(function, old))
    for one, two in _pairs(before.dependencies, last.dependencies):
        for name, was, now in differences(one.name, one.was, two.was):
            said.add(_change(two, name, was, now))
    yield from sorted(said)


def _arguments(before: list[HostArgument], last: list[HostArgument]) -> Iterator[str]:
    older = {a.name: a for a in before}
    for argument in last:
        old = older.pop(argument.name, None)
        if old is None:
            yield f"argument '{argument.name}' is new: {_spec(argument)}"
        elif old.kind != argument.kind:
            yield f"argument '{argument.name}': a {old.kind} ({_spec(old)}) -> a {argument.kind} ({_spec(argument)})"
        elif argument.kind == TENSOR:
            for what, was, now in zip(("dtype", "shape", "strides", "alignment"), _parts(old), _parts(argument),
                                      strict=True):
                if was != now:
                    yield f"argument '{argument.name}': {what} {was} -> {now}"
        elif argument.kind != CONSTEXPR and _spec(old) != _spec(argument):
            yield f"argument '{argument.name}': {_spec(old)} -> {_spec(argument)}"
    for name in older:
        yield f"argument '{name}' is gone"


def _parts(argument: HostArgument) -> tuple[str, ...]:
    spec, layout = argument.spec, argument.spec.layout
    return str(spec.dtype), str(layout.shape), str(getattr(layout, "stride", layout)), f"{spec.align} bytes"


def _spec(argument: HostArgument) -> str:
    return str(getattr(argument.spec, "__name__", argument.spec))


def _pairs(before: Dependencies, last: Dependencies) -> Iterator[tuple[Dependency, Dependency]]:
    """What both read: the same place, or of the same name where a function was defined anew."""
    keys = {item.read.key: item for item in (*before.items, *before.constants)}
    names = defaultdict(list)
    for item in keys.values():
        names[type(item.read), item.name].append(item)
    for item in (*last.items, *last.constants):
        same = keys.get(item.read.key)
        others = names[type(item.read), item.name]
        if same is not None or len(others) == 1:
            yield same or others[0], item


def _change(item: Dependency, name: str, was: Any, now: Any) -> str:
    one, two = object_of(was), object_of(now)
    if isinstance(two, TracedFunction) and isinstance(one, TracedFunction):
        return _defined_anew(two, one)
    if isinstance(two, types.FunctionType) and isinstance(one, types.FunctionType):
        return _defined_anew(two, one, _code_of(was), _code_of(now))
    word = {Cell: "variable of a function around", Given: "argument"}.get(type(item.read), "global")
    if name != item.name:
        word = "argument" if word == "argument" else "attribute"
    if isinstance(item.read, Defaults):
        return f"defaults of '{item.read.function.__name__}': {shown_defaults(was)} -> {shown_defaults(now)}"
    named = f"{word} '{name}'"
    if MISSING in (now, two):
        return f"{named} is gone; it was {shown(was)}"
    if MISSING in (was, one):
        return f"{named} is new: {shown(now)}"
    if shown(was) == shown(now):
        holds = one is two is None  # it counts by what it holds, and which object it is does not matter
        return f"{named} {'holds what was changed' if holds else 'is another'}: {shown(now)}"
    return f"{named}: {shown(was)} -> {shown(now)}"


def _code_of(told: Any) -> types.CodeType | None:
    """The code of a function, from what its meaning says."""
    key = getattr(told, "key", told)
    return key[1].value if isinstance(key, tuple) and isinstance(object_of(key[1]), types.CodeType) else None


def _defined_anew(
    function: Any, old: Any, was: types.CodeType | None = None, now: types.CodeType | None = None
) -> str:
    word = DECORATED.get(getattr(function, "decorator", ""), "helper")
    plain = function.function if isinstance(function, TracedFunction) else function
    before = old.function if isinstance(old, TracedFunction) else old
    now, was = now or plain.__code__, was or before.__code__
    place = SourceLine.of(now.co_filename, now.co_firstlineno).place
    if plain is before:
        return f"{word} '{function.__name__}' has other code, of {place}"
    same = ", with the same text" if is_same_code(was, now) else ""
    return f"{word} '{function.__name__}' was defined anew in {place}{same}"
