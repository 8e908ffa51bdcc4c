"""Whether anything that a compilation read has changed, told by identity alone, in about a microsecond.

`Dependencies.fit` compares what was read by meaning, which takes tens of microseconds. A guard is made at a moment when
all fits, and says yes while every place still holds the very same objects and none of them was changed in place. It
never says yes where `fit` would say no. It may say no where all means the same (a constant set to an equal one): then
`fit` decides, and a new guard is made.

The tests of names and functions become one generated expression; what is in containers, classes and objects is compared
in bulk. A guard keeps functions, classes and plain values alive, so that none of their identities is taken by another
object. Arrays and other objects it refers to weakly: one that is gone is not the same as any.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

from flylab.compiler.dependencies import Dependencies
from flylab.compiler.meaning import (
    CONTENTS,
    MAX_DEPTH,
    MISSING,
    attributes,
    classes,
    contents,
    held,
    is_by_state,
    is_counted,
    is_immutable,
    is_watched,
    operations,
    state,
    version,
)
from flylab.compiler.reads import NOTHING, Test, Unguarded
from flylab.compiler.users import PLAIN, exact

Guard = Callable[[], bool]

FIXED = (tuple, frozenset, slice, range, property, staticmethod, classmethod, types.MethodType)
"""What holds the same for ever."""


def never() -> bool:
    """The guard of what cannot be told to be the same by identity."""
    return False


def guard_of(dependencies: Dependencies, constants: dict[str, Any] | None = None) -> Guard:
    """A function that is true only while all that a compilation read, and these constants, are what they are now.

    `constants` are those of a call by their names, the ones of the compilation by default; that the very same objects
    are given again, the caller tells. The guard is `never` where `dependencies` do not fit now, or where identity does
    not tell.
    """
    given = dependencies.given if constants is None else constants
    try:
        snapshot = Snapshot(dependencies, given)
        guard = snapshot.guard()
    except Unguarded:
        return never
    # In this order: what another thread changes after the snapshot, one of the two notices.
    return guard if dependencies.fit(given) and guard() else never


class Snapshot:
    """What the places hold now, as tests."""

    def __init__(self, dependencies: Dependencies, constants: dict[str, Any]):
        self.names = dependencies.names
        self.objects: dict[int, tuple[str, Any]] = {}
        self.texts: dict[str, None] = {}
        self.checks: list[Callable[[], bool]] = []
        self.seen: dict[Any, Any] = {}
        places = [item.read for item in dependencies.items]
        for place in places:
            for test in place.tests():
                self._add(test)
        self._look([*(place() for place in places), *constants.values()])

    def guard(self) -> Guard:
        """The generated function."""
        texts = [*self.texts]
        if self.checks:
            texts.append(f"all(map({self._name(operator.call)}, {self._name(tuple(self.checks))}))")
        names = ", ".join(name for name, _ in self.objects.values())
        made = _factory(names, "\n        and ".join(texts) or "True")
        guard: Guard = made(*(value for _, value in self.objects.values()))
        return guard

    def _add(self, test: Test) -> None:
        text, objects, expected = test
        read = text.format(*map(self._name, objects))
        if expected is NOTHING:
            self.texts[read] = None
            return
        kept = held(expected)
        name = self._name(kept)
        weak = kept is not expected
        self.texts[f"(x := {read}) is not None and x is {name}()" if weak else f"{read} is {name}"] = None

    def _name(self, value: Any) -> str:
        return self.objects.setdefault(id(value), (f"v{len(self.objects)}", value))[0]

    def _look(self, values: Iterable[Any]) -> None:
        """Look at values, at what they hold, and at their attributes: nearer ones first, as `meaning` counts depth."""
        level = list(values)
        for depth in range(MAX_DEPTH + 1):
            after: list[Any] = []
            while level:
                value = level.pop()
                if id(value) not in self.seen and type(value) not in PLAIN:
                    self.seen[id(value)] = value
                    level += self._contents(value)
                    if depth < MAX_DEPTH and type(value) not in CONTENTS and is_watched(value):
                        after += self._attributes(value)
            level = after

    def _contents(self, value: Any) -> Iterable[Any]:
        if isinstance(value, types.FunctionType):
            self._add(("{0}.__code__", (value,), value.__code__))
            if not value.__dict__:
                self._add(("not {0}.__dict__", (value,), NOTHING))
        if is_counted(type(value)):
            self._check(_is_version, value, version(value))
        inside = contents(value)
        if inside is not None and not isinstance(value, FIXED):
            again = contents(value) or ()
            if len(inside) == len(again) and all(map(operator.is_, inside, again)):
                self._check(_holds, value, Objects(inside))
            elif PLAIN.issuperset(map(type, inside)):
                self._check(_holds_equal, value, tuple(map(exact, inside)))
            else:
                raise Unguarded
        return inside or ()

    def _attributes(self, value: Any) -> list[Any]:
        kind = type(value)
        by_state = contents(value) is None and is_by_state(kind)
        found = list(attributes(value, self.names))
        for each in classes(value):
            self._class(each)
        if not is_immutable(kind):
            self._check(_is_of, value, kind)
        if not isinstance(value, type):
            self._own(value, None if by_state else {*self.names, *operations(value)})
        found += state(value) if by_state else ()
        members = {n for c in kind.__mro__ for n, d in vars(c).items() if isinstance(d, types.MemberDescriptorType)}
        if slots := [(n, v) for n, v in found if n in members]:
            self._check(_stores, value, tuple(n for n, _ in slots), Objects(v for _, v in slots))
        return [v for _, v in found if v is not MISSING]

    def _class(self, kind: type) -> None:
        """A class has the same bases, and everything in it is the same."""
        if is_immutable(kind) or ("class", id(kind)) in self.seen:
            return
        self.seen["class", id(kind)] = kind
        self._add(("{0}.__mro__", (kind,), kind.__mro__))
        space = vars(kind)
        self.checks.append(functools.partial(_is_space, space, [*space], Objects(space.values())))

    def _own(self, value: Any, names: set[str] | None) -> None:
        """An object's own attributes are the same: those called one of `names`, or all of them."""
        space = getattr(value, "__dict__", None)
        if space is None:
            return
        if type(space) is not dict:
            raise Unguarded
        if names is None:
            self._check(_is_state, value, [*space], Objects(space.values()))
            return
        present = [n for n in names if n in space]
        if isinstance(value, (types.ModuleType, types.FunctionType)):
            self._add(("{0}.__dict__", (value,), space))
            for name in present:
                self._add((f"{{0}}[{name!r}]", (space,), space[name]))
            self._add(("{0}.keys().isdisjoint({1})", (space, frozenset(names.difference(present))), NOTHING))
        else:
            absent = frozenset(names.difference(present))
            self._check(_has, value, present, Objects(space[n] for n in present), absent)

    def _check(self, function: Callable[..., bool], value: Any, *rest: Any) -> None:
        kept = held(value)
        read = functools.partial(_kept, value) if kept is value else kept
        self.checks.append(functools.partial(function, read, *rest))


class Objects:
    """Objects in their order, to be the very same again."""

    def __init__(self, values: Iterable[Any]):
        given = list(values)
        self.held = [held(v) for v in given]
        self.weak = [i for i, v in enumerate(given) if self.held[i] is not v]

    def are(self, values: list[Any]) -> bool:
        """Whether these are they."""
        these = self.held
        if len(values) != len(these):
            return False
        if self.weak:
            these = these.copy()
            for i in self.weak:
                these[i] = these[i]()
                if these[i] is None:
                    return False
        return all(map(operator.is_, values, these))


def _kept(value: Any) -> Any:
    return value


def _holds(read: Callable[[], Any], objects: Objects) -> bool:
    value = read()
    return value is not None and objects.are(list(contents(value) or ()))


def _holds_equal(read: Callable[[], Any], expected: tuple[Any, ...]) -> bool:
    value = read()
    return value is not None and tuple(map(exact, contents(value) or ())) == expected


def _is_of(read: Callable[[], Any], kind: type) -> bool:
    return type(read()) is kind


def _is_version(read: Callable[[], Any], expected: int | None) -> bool:
    return version(read()) == expected


def _stores(read: Callable[[], Any], names: tuple[str, ...], objects: Objects) -> bool:
    value = read()
    return value is not None and objects.are(list(map(getattr, repeat(value), names, repeat(MISSING))))


def _is_space(space: Any, names: list[str], objects: Objects) -> bool:
    return objects.are([*space.values()]) and [*space] == names


def _is_state(read: Callable[[], Any], names: list[str], objects: Objects) -> bool:
    value = read()
    return value is not None and _is_space(value.__dict__, names, objects)


def _has(read: Callable[[], Any], names: list[str], objects: Objects, absent: frozenset[str]) -> bool:
    value = read()
    if value is None:
        return False
    space = value.__dict__
    return objects.are(list(map(space.get, names, repeat(MISSING)))) and space.keys().isdisjoint(absent)


@functools.lru_cache(maxsize=256)
def _factory(names: str, test: str) -> Callable[..., Guard]:
    """What makes a guard from its objects; guards of one form share their code."""
    text = (
        f"def make({names}):\n  def guard():\n    try:\n      return (\n        {test})\n"
        "    except Exception:\n      return False\n  return guard\n"
    )
    space: dict[str, Any] = {}
    exec(compile(text, "<flylab guard>", "exec"), space)
    made: Callable[..., Guard] = space["make"]
    return made
