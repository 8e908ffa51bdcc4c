"""What a loop carries from round to round: found by tracing the body, on trial, until nothing else changes in it.

At first it is the numbers, vectors and pointers in those variables that the body binds and reads. Whatever else turns
out to have changed is carried the next time; what stays as it was is not carried at all.
"""

from __future__ import annotations

import types
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flylab.compiler.control.again import trace_again
from flylab.compiler.control.aliases import note
from flylab.compiler.control.branch import MISSING, no_value
from flylab.compiler.control.containers import items, shown, store
from flylab.compiler.control.memory import Memory
from flylab.compiler.control.regions import Block
from flylab.compiler.control.snapshot import Heap, Unbound, variables
from flylab.compiler.control.values import (
    NOTHING,
    Copy,
    Joined,
    Leaf,
    Mismatch,
    Tree,
    apart,
    ir_value,
    join,
    kind_of,
    same,
    widen,
)
from flylab.compiler.syntax.liveness import Names
from flylab.dtypes import dtype_text
from flylab.errors import TraceError
from flylab.expr.numeric import CLASSES

Place = Any
"""A variable by its name, an item by (id of its container, key), or a state by ("state", number)."""


@dataclass
class Carried:
    """One place that a loop carries: its value before, and what stands for it at the head."""

    start: Leaf | Tree
    joined: Joined
    shown: str
    is_read: bool
    """Whether the body sees it at its head; else only its last value counts."""
    arguments: list[Any] | None = None


class State:
    """The places of one loop: what they are before it, what it carries, and what its body left in them."""

    def __init__(self, memory: Memory, frame: FrameType, init: list[Any] | None, runs: bool):
        self.memory = memory
        self.rounds = 0
        self.site = site = memory.site
        self.frame = frame
        self.init = init
        self.runs = runs
        """Whether the body is known to run at least once."""
        self.first: Names = frozenset()
        """The names that certainly have a value after the first round, which is known to begin."""
        self.before = variables(frame, site.names)
        self.heap = Heap(frame, site.names, site.reads)
        self.carried: dict[Place, Carried] = {}
        for name in site.names:
            self._name(name)
        for i, value in enumerate(init or ()):
            self.carry(("state", i), value, f"state[{i}]")
        self._remember()

    def _remember(self) -> None:
        """Carry the items of containers that earlier traces found to change."""
        paths = {c.path: key for key, c in self.heap.containers.items()} if self.memory.items else {}
        for path, at in self.memory.items:
            if path in paths:
                held = dict(items(self.heap.containers[paths[path]].held))
                if at in held and kind_of(held[at]) is not None:
                    self.carry((paths[path], at), held[at], self.shown((paths[path], at)))

    def named(self, place: Place) -> Any:
        """A place by what is the same each time that the loop is traced."""
        is_item = not isinstance(place, str) and place[0] != "state"
        return (self.heap.containers[place[0]].path, place[1]) if is_item else place

    def shown(self, place: Place) -> str:
        """What an error calls a place."""
        if isinstance(place, str):
            return f"'{place}'"
        container = self.heap.containers[place[0]]
        return f"'{container.path}{shown(container.object, place[1])}'"

    def note_format(self, place: Place, joined: Joined) -> None:
        """Remember what a place became that began as a Python number."""
        start = self.carried[place].start
        if isinstance(start, Leaf) and isinstance(start.value, (bool, int, float)):
            self.memory.formats[self.named(place)] = joined

    def _name(self, name: str) -> None:
        value = self.before.get(name)
        bound = name in self.before and not isinstance(value, Unbound)
        if name in self.site.stops:
            self.carried[name] = Carried(Leaf(False), widen(Leaf(False)), name, False)
        elif bound and name in self.site.head and name in self.site.inner:
            self.carry(name, value, f"'{name}'")

    def carry(self, place: Place, value: Any, shown: str) -> None:
        """Carry the numbers, vectors and pointers in a place's value, if it has any."""
        tree = apart(value)
        joined = widen(tree)
        if isinstance(value, (bool, int, float)):
            joined = self.memory.formats.get(self.named(place), joined)
        if joined.slots or place[0] == "state":
            self.carried[place] = Carried(tree, joined, shown, True)

    def enter(self, block: Block) -> None:
        """Give the block an argument for each slot."""
        for each in self.carried.values():
            each.arguments = [block.argument(slot.kind.mlir()) for slot in each.joined.slots]

    def at_head(self) -> dict[Place, Any]:
        """What each place is at the head, of the block's arguments."""
        found, copies = {}, list[Copy]()
        for place, each in self.carried.items():
            if each.is_read:
                is_nothing = isinstance(each.start, Leaf) and each.start.value is NOTHING and not each.joined.slots
                found[place] = NOTHING if is_nothing else each.joined.rebuilt(iter(each.arguments or ()), copies)
        note(copies, self.frame, self.site, {n: v for n, v in found.items() if isinstance(n, str)})
        return found

    def put(self, values: dict[Place, Any], names: tuple[str, ...]) -> tuple[Any, ...]:
        """Fill the containers; the values of the variables of these names."""
        for place, value in values.items():
            if isinstance(place, tuple) and place[0] != "state":
                store(self.heap.containers[place[0]].object, place[1], value)
        return tuple([self._value(n, values) for n in names])

    def _value(self, name: str, values: dict[Place, Any]) -> Any:
        if name in values:
            return values[name]
        if name in self.site.stops:
            return False
        return self.before.get(name, no_value(name, self.site))

    def states(self, values: dict[Place, Any]) -> list[Any]:
        """The values that `init=` began."""
        return [values["state", i] for i in range(len(self.init or ()))]

    def restore(self) -> None:
        """Put the containers back."""
        self.heap.restore(self.heap.changes())


class End:
    """What the body left: the places that changed, taken apart where the body ends."""

    def __init__(self, state: State, head: dict[Place, Any], yielded: list[Any] | None, is_test: bool = False):
        self.state = state
        self.is_test = is_test
        """Whether it is that of a test, which is asked at least once, rather than of a body."""
        self.now: dict[Place, Any] = dict(variables(state.frame, state.site.names))
        for name in state.site.live | state.site.head:
            self._still_there(name)
        self.contents = state.heap.changes()
        for key, contents in self.contents.items():
            self._alike(key, contents)
            self.now.update({(key, at): value for at, value in items(contents)})
        self.now.update({("state", i): value for i, value in enumerate(yielded or ())})
        self.trees: dict[Place, Leaf | Tree] = {}
        for place, value in self.now.items():
            if place in state.carried or not self.stays(place, value):
                self.trees[place] = apart(value) if not isinstance(value, Unbound) else Leaf(NOTHING)
        for place in state.carried:
            if place not in self.trees:
                self.trees[place] = apart(head.get(place, NOTHING))

    def _still_there(self, name: str) -> None:
        """Refuse a variable that had a value before the loop, and has none after a round."""
        now = self.now.get(name, MISSING)
        is_there = now.is_partial is False if isinstance(now, Unbound) else now is not MISSING
        if is_there or self._before(name) is MISSING:  # what nothing reads afterwards is not kept
            return
        site = self.state.site
        raise TraceError(f"'{name}' has no value, or not on all paths, at the end of a round of {site.what}"
                         + _line((site.lines or {}).get(name, (None, None))[1]),
                         hint=f"take away the `del {name}`, or give it a value again")

    def stays(self, place: Place, value: Any) -> bool:
        """Whether a place is what it was before the loop."""
        before = self._before(place)
        return before is not MISSING and same(before, value)

    def _before(self, place: Place) -> Any:
        if isinstance(place, str):
            value = self.state.before.get(place, MISSING)
            return MISSING if isinstance(value, Unbound) else value
        return dict(items(self.state.heap.containers[place[0]].held)).get(place[1], MISSING)

    def _alike(self, key: int, contents: Any) -> None:
        container, site = self.state.heap.containers[key], self.state.site
        held = container.held
        if isinstance(container.object, types.CellType) and held.keys() != contents.keys():
            raise TraceError(f"'{container.path}' first gets a value, or loses it, in {site.what}",
                             hint=f"give '{container.path}' a value before the loop")
        if isinstance(held, dict):
            new = sorted(map(str, held.keys() ^ contents.keys()))
            if new:
                raise TraceError(f"'{container.path}' gets or loses {new[0]!r} in {site.what}",
                                 hint=f"give '{container.path}' that entry before the loop")
        elif isinstance(held, set):
            raise TraceError(f"the set '{container.path}' changes in {site.what}", hint="use a list of Booleans")
        elif len(held) != len(contents):
            raise TraceError(
                f"'{container.path}' has {len(held)} items before a round of {site.what}, and {len(contents)} after it",
                hint="a list keeps its length in a loop of the device: make it long enough before, or unroll the loop "
                "with fx.range_constexpr",
            )

    def more(self) -> bool:
        """Carry what turned out to change; whether the body has to be traced again."""
        found = [self._extend(place) for place in list(self.trees)]
        self.state.rounds += 1
        if any(found) and self.state.rounds > 2:
            self._carry_all()
        return any(found)

    def _carry_all(self) -> None:
        """Carry every number in the containers that change: one may only change once another does, as in a queue."""
        for key in self.contents:
            for at, value in items(self.state.heap.containers[key].held):
                if (key, at) not in self.state.carried and kind_of(value) is not None:
                    self.state.carry((key, at), value, self.state.shown((key, at)))

    def _extend(self, place: Place) -> bool:
        state, tree = self.state, self.trees[place]
        each = state.carried.get(place)
        if each is not None:
            return self._adapt(place, each, tree)
        if isinstance(place, str) and place not in state.site.live and place not in state.site.head:
            return False
        if not isinstance(place, str):
            state.memory.items[state.named(place)] = None
        before = self._before(place)
        read = not isinstance(place, str) or (place in state.site.head and place in state.site.inner)
        runs = state.runs or self.is_test or place in state.first
        if before is MISSING or (not read and runs):
            if not runs or isinstance(tree, Leaf) and tree.value is NOTHING:
                return False  # no value where the loop does not run
            joined = widen(tree, state.heap.containers)
            state.carried[place] = Carried(Leaf(NOTHING), joined, state.shown(place), self.is_test)
            return True
        start = apart(before)
        if not isinstance(start, Leaf) and not isinstance(place, str):
            del state.memory.items[state.named(place)]  # only numbers, vectors and pointers
        state.carried[place] = Carried(start, self._joined(place, start, tree), state.shown(place), read)
        return True

    def _adapt(self, place: Place, each: Carried, tree: Leaf | Tree) -> bool:
        """A place whose end is no value of what was carried: a Python number begins in the format that it ends in."""
        try:
            each.joined.take(tree, "")
            return False
        except Mismatch as error:
            try:
                joined = join(each.start, tree, facts=False, old=self.state.heap.containers)
            except Mismatch as other:
                trace_again(other)
                raise self._differs(place, each, other) from None
            kinds = [[s.kind.text for s in j.slots] for j in (joined, each.joined)]
            if kinds[0] == kinds[1]:
                raise self._differs(place, each, error) from None
            each.joined = joined
            self.state.note_format(place, joined)
            return True

    def _joined(self, place: Place, start: Leaf | Tree, tree: Leaf | Tree) -> Joined:
        try:
            return join(start, tree, facts=False, old=self.state.heap.containers)
        except Mismatch as error:
            trace_again(error)
            raise self._differs(place, None, error) from None

    def _differs(self, place: Place, each: Carried | None, error: Mismatch) -> TraceError:
        site = self.state.site
        shown = self.state.shown(place) if each is None else each.shown
        before, inside = (site.lines or {}).get(place, (None, None)) if isinstance(place, str) else (None, None)
        if place == "__result__":
            return TraceError(f"the function returns {error.b} in {site.what}, and {error.a} elsewhere",
                              hint="return values of one type")
        name, classes = shown.strip("'") + error.path, {dtype_text(c.dtype): f"fx.{n}" for n, c in CLASSES.items()}
        hint = error.hint("start with what it becomes, or keep what it is")
        if error.a in classes and error.b in classes:
            hint = (f"start with {name} = {classes[error.b]}(...), or end the body with "
                    f"{name} = {classes[error.a]}(...)")
        return TraceError(
            f"loop variable '{name}' starts as {error.a}{_line(before)} but is {error.b} at the end of the "
            f"body{_line(inside)}",
            hint=hint,
        )

    def values(self, places: dict[Place, Carried]) -> list[Any]:
        """The MLIR values that the next round gets, made at the insertion point."""
        return [ir_value(leaf, slot) for place, each in places.items()
                for leaf, slot in zip(each.joined.take(self.trees[place], ""), each.joined.slots, strict=True)]


def starts(places: dict[Place, Carried]) -> list[Any]:
    """The MLIR values that the first round gets."""
    return [ir_value(leaf, slot) for each in places.values()
            for leaf, slot in zip(each.joined.take(each.start, ""), each.joined.slots, strict=True)]


def _line(line: int | None) -> str:
    return f" (line {line})" if line is not None else ""

