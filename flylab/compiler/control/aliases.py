"""Containers that control flow made anew, while another name still leads to an old one.

Where one arm binds a name to another list, no Python object is "the one or the other": a new one stands for both. That
is right as long as neither the new nor the old ones change; if one does, what Python does depends on the path.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flylab.compiler.control.containers import contents_of, inside, same_contents
from flylab.compiler.control.values import Copy
from flylab.compiler.syntax.hooking import Site
from flylab.compiler.users import PLAIN, is_library
from flylab.errors import TraceError
from flylab.expr.state import active
from flylab.places import SourceLine, here


@dataclass(frozen=True)
class Alias:
    """A container of several that must not change: what they held, and what made it so."""

    objects: tuple[Any, ...]
    held: tuple[Any, ...]
    site: Site
    where: SourceLine | None


def note(copies: list[Copy], frame: FrameType, site: Site, assigned: dict[str, Any]) -> None:
    """Note those of a site's new containers whose originals are reached otherwise; `assigned` are its variables."""
    if not copies:
        return
    paths = [(i, id(original)) for copy in copies for i, original in enumerate(copy.originals)]
    shared = {original for i, original in paths if paths.count((i, original)) > 1}  # under two names on one path
    reached = shared | _reached({original for _, original in paths}, _roots(frame, assigned))
    assert active.function is not None
    for copy in copies:
        if not reached.isdisjoint(map(id, copy.originals)):
            objects = (copy.made, *copy.originals)
            active.function.aliases.append(Alias(objects, tuple(map(contents_of, objects)), site, here()))


def _roots(frame: FrameType, assigned: dict[str, Any]) -> Iterable[Any]:
    """What the variables of a frame, and of the user's frames that it runs in, lead to."""
    yield from (v for n, v in frame.f_locals.items() if n not in assigned)
    yield from assigned.values()
    outer = frame.f_back
    while outer is not None:
        if not is_library(outer.f_code.co_filename) and outer.f_locals is not outer.f_globals:
            yield from outer.f_locals.values()
        outer = outer.f_back


def _reached(wanted: set[int], roots: Iterable[Any]) -> set[int]:
    todo, seen, found = list(roots), set[int](), set[int]()
    while todo:
        value = todo.pop()
        if type(value) in PLAIN or id(value) in seen:
            continue
        seen.add(id(value))
        if id(value) in wanted:
            found.add(id(value))
        todo += [v for v, _ in inside(value, contents_of(value), "")]
    return found


def check_aliases() -> None:
    """Raises `TraceError` where a container changed that a site made anew, or one that it stands for."""
    assert active.function is not None
    for alias in active.function.aliases:
        for value, held in zip(alias.objects, alias.held, strict=True):
            if not same_contents(held, contents_of(value)):
                kind = type(value).__name__
                raise TraceError(
                    f"a {kind} is the same one under two names, or not, by what {alias.site.what} decides, "
                    "and one of the two changes later",
                    where=alias.where,
                    hint=f"give each name a {kind} of its own (ys = list(xs)), or assign to its items in "
                    f"{alias.site.what}, not to the name",
                )
