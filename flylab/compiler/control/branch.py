"""Runtime `if`, and choices in expressions: both arms are traced, and what they leave behind is merged."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import Any

from flylab.compiler.control.again import trace_again
from flylab.compiler.control.aliases import note
from flylab.compiler.control.containers import items, shown, store
from flylab.compiler.control.regions import Block, yield_from
from flylab.compiler.control.snapshot import Container, Heap, Unbound, variables
from flylab.compiler.control.values import NOTHING, Copy, Joined, Leaf, Mismatch, Tree, apart, ir_value, join, same
from flylab.compiler.syntax.exits import RETURNED
from flylab.compiler.syntax.hooking import Site
from flylab.errors import TraceError
from flylab.expr.location import mlir_location

MISSING = object()


class Static:
    """An `if` that Python decides."""

    runtime = False

    def __init__(self, holds: bool):
        self.then, self.orelse = holds, not holds

    def begin(self) -> None:
        """Nothing: the arm is a part of where it stands."""

    def end(self) -> None:
        """Nothing either."""


HOLDS, FAILS = Static(True), Static(False)


class Arm:
    """One traced arm: its block, and what it left in variables and containers, taken apart inside of it."""

    def __init__(self, block: Block):
        self.block = block
        self.values: dict[str, Any] = {}
        self.contents: dict[int, Any] = {}
        """Of each container that it changed, what it holds."""
        self.trees: dict[Any, Leaf | Tree] = {}
        """The variables, by name, and the changed items, by container and key."""
        self.result: Leaf | Tree = Leaf(None)


class Branch:
    """A runtime `if`. The rewritten code runs each arm between `begin` and `end`, and takes the merged variables."""

    runtime = True
    then = orelse = True

    def __init__(self, condition: Any, site: Site, frame: FrameType):
        self.condition = condition.value
        self.site = site
        self.frame: FrameType | None = frame
        self.location = mlir_location()
        self.before = variables(frame, site.names)
        self.heap = Heap(frame, site.names, site.reads)
        self.arms: list[Arm] = []

    def begin(self) -> None:
        """Trace an arm from here on."""
        arm = Arm(Block(f"an arm of {self.site.what}" if self.site.kind == "if" else self.site.what, is_arm=True))
        self.arms.append(arm)
        arm.block.enter()

    def end(self) -> None:
        """The arm is traced: keep what it left."""
        arm = self.arms[-1]
        with arm.block.leaving():
            assert self.frame is not None
            self._keep(arm, variables(self.frame, self.site.names), self.heap.changes())

    def _keep(self, arm: Arm, values: dict[str, Any], contents: dict[int, Any]) -> None:
        """Take apart what the arm left, while its values can be asked."""
        arm.values, arm.contents = values, contents
        for name, value in values.items():
            if name in self.site.live and not isinstance(value, Unbound):
                arm.trees[name] = apart(value)
        for key, held in contents.items():
            before = dict(items(self.heap.containers[key].held))
            for at, value in items(held):
                if not same(value, before.get(at, MISSING)):
                    arm.trees[key, at] = apart(value)

    def other(self) -> tuple[Any, ...]:
        """The variables as they were, for the other arm."""
        self.heap.restore(self.arms[0].contents)
        return tuple([self._was(name) for name in self.site.names])

    def _was(self, name: str) -> Any:
        return self.before.get(name, no_value(name, self.site))

    def merged(self) -> tuple[Any, ...]:
        """The variables after both arms."""
        if len(self.arms) == 1:
            self._skip()
        return self._merge()[0]

    def value_of(self, then: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
        """The value of an expression: that of one function where the condition holds, else of the other."""
        for function in (then, orelse):
            self.begin()
            self.arms[-1].result = apart(function())
            self.end()
            if function is then:
                self.other()
        return self._merge()[1]

    def _skip(self) -> None:
        """The arm that is not there: everything stays as it was, but that the flag of a guard is set."""
        self.heap.restore(self.arms[0].contents)
        arm = Arm(Block(self.site.what, is_arm=True))
        self.arms.append(arm)
        arm.block.enter()
        flag = dict.fromkeys(self.site.guards, True) if len(self.site.guards) == 1 else {}
        self._keep(arm, self.before | flag, {})
        arm.block.leave()

    def _merge(self) -> tuple[tuple[Any, ...], Any]:
        """The merged variables, and the merged result of an expression."""
        then, orelse = self.arms
        self.heap.restore(orelse.contents)
        merge = Merge(self.site, self.heap)
        names = {n: self._name(merge, n) for n in self.site.names}
        result = merge.add("the result", then.result, orelse.result, "")
        self._containers(merge)
        values, copies = merge.build(self.condition, then.block, orelse.block, self.location)
        found = {n: values[v.index] if isinstance(v, Merged) else v for n, v in names.items()}
        for container, key, index in merge.stores:
            store(container, key, values[index])
        assert self.frame is not None
        note(copies, self.frame, self.site, found | {"": values[result]})
        self.frame, self.arms, self.before = None, [], {}  # they would live as long as the function runs
        return tuple(found.values()), values[result]

    def _name(self, merge: Merge, name: str) -> Any:
        """The value of a variable, or what it is merged to."""
        then, orelse = self.arms
        values = [arm.values.get(name, MISSING) for arm in (then, orelse)]
        if values[0] is values[1] and values[0] is not MISSING:
            return values[0]
        if name not in self.site.live:
            return Unbound(name, f"is not kept by {self.site.what}", "read it before")
        missing = [v is MISSING or isinstance(v, Unbound) for v in values]
        if self.site.guards == (RETURNED,) and missing == [False, True]:  # who has returned reads nothing any more
            return Merged(merge.add(f"'{name}'", then.trees[name], Leaf(NOTHING), name))
        if any(missing):
            given = [v for v in values if isinstance(v, Unbound) and (all(missing) or v.is_partial)]
            return given[0] if given else one_sided(name, self.site, missing[0])
        return Merged(merge.add(f"'{name}'", then.trees[name], orelse.trees[name], name))

    def _containers(self, merge: Merge) -> None:
        then, orelse = self.arms
        for key in set(then.contents) | set(orelse.contents):
            container = self.heap.containers[key]
            contents = [arm.contents.get(key, container.held) for arm in self.arms]
            if isinstance(container.object, types.CellType) and self._has_none(container, contents):
                continue
            _check_alike(container.path, contents, self.site, isinstance(container.object, dict))
            container.hold(contents[0])
            others = dict(items(contents[1]))
            for at, value in items(contents[0]):
                if not same(value, others[at]):
                    trees = [arm.trees.get((key, at)) or apart(v)
                             for arm, v in ((then, value), (orelse, others[at]))]
                    name = f"'{container.path}{shown(container.object, at)}'"
                    merge.stores.append((container.object, at, merge.add(name, trees[0], trees[1], "")))

    def _has_none(self, container: Container, contents: list[Any]) -> bool:
        """Whether a variable of another function has a value after one arm only; it has none from here on."""
        missing = [not c or isinstance(c[""], Unbound) for c in contents]
        if any(missing):
            container.object.cell_contents = one_sided(container.path, self.site, missing[0])
        return any(missing)


@dataclass(frozen=True)
class Merged:
    """A variable that is the merge of this number."""

    index: int


def _check_alike(path: str, contents: list[Any], site: Site, in_order: bool) -> None:
    """Refuse a container that has other keys, or another length, on the other path."""
    a, b = contents
    if isinstance(a, dict):
        apart = sorted(map(str, a.keys() ^ b.keys()))
        if apart:
            raise TraceError(f"'{path}' has {apart[0]!r} in one arm of {site.what} only",
                             hint=f"give '{path}' that entry before {site.what}, or in both arms")
        if in_order and list(a) != list(b):
            raise TraceError(f"'{path}' has its entries in another order after the other arm of {site.what}",
                             hint=f"give '{path}' its entries before {site.what}, and set them in the arms")
    elif isinstance(a, set) and a != b:
        raise TraceError(f"the set '{path}' differs after the arms of {site.what}", hint="use a list of Booleans")
    elif len(a) != len(b):
        raise TraceError(
            f"'{path}' has {len(a)} items after one arm of {site.what}, and {len(b)} after the other",
            hint="a list keeps its length: make it long enough before, and assign to its items",
        )


def no_value(name: str, site: Site) -> Unbound:
    """A variable that had no value before a site."""
    return Unbound(name, f"has no value before {site.what}", f"give '{name}' a value before {site.what}")


def one_sided(name: str, site: Site, missing_then: bool) -> Unbound:
    """A variable that only one arm gives a value."""
    if missing_then and not site.has_else:
        reason = f"has no value where {site.what} holds"
    else:
        reason = f"has a value only where {site.what} {'does not hold' if missing_then else 'holds'}"
    where = ", or in its other arm" if site.has_else else ", or in an `else` of it" if site.kind == "if" else ""
    return Unbound(name, reason, f"give '{name}' a value before {site.what}{where}", is_partial=True)


class Merge:
    """The values that two arms merge into, and the operation that does it."""

    def __init__(self, site: Site, heap: Heap):
        self.site, self.heap = site, heap
        self.entries: list[tuple[Joined, list[Any], list[Any]]] = []
        self.stores: list[tuple[Any, Any, int]] = []

    def add(self, shown: str, a: Leaf | Tree, b: Leaf | Tree, name: str) -> int:
        """One more value to merge; its number."""
        try:
            joined = join(a, b, old=self.heap.containers)
            self.entries.append((joined, joined.take(a, ""), joined.take(b, "")))
        except Mismatch as error:
            trace_again(error)
            raise self._differs(shown, name, error) from None
        return len(self.entries) - 1

    def _differs(self, shown: str, name: str, error: Mismatch) -> TraceError:
        if name == "__result__":
            return TraceError(f"the function returns {error.a} on one path and {error.b} on another"
                              + (f" (at {error.path})" if error.path else ""),
                              hint="return values of one type: convert one of them, with fx.Float32(x) or .to(...)")
        return TraceError(
            f"{shown}{error.path} is {error.a} where {self.site.what} holds, and {error.b} otherwise",
            hint=error.hint("give it one type in both arms: convert one of them, with fx.Float32(x) or .to(...)"),
        )

    def build(self, condition: Any, then: Block, orelse: Block, location: Any) -> tuple[list[Any], list[Copy]]:
        """Make the operation of the two blocks; the merged values, in the order in which they were added, and the
        containers among them."""
        from mlir import ir

        slots = [slot for joined, _, _ in self.entries for slot in joined.slots]
        sides = [leaf for _, a, _ in self.entries for leaf in a], [leaf for _, _, b in self.entries for leaf in b]
        for block, leaves in zip((then, orelse), sides, strict=True):
            with block.at_end():
                values = [ir_value(leaf, slot) for leaf, slot in zip(leaves, slots, strict=True)]
            yield_from(block, values)
        made = ir.Operation.create("scf.if", results=[s.kind.mlir() for s in slots], operands=[condition], regions=2,
                                   loc=location)
        then.move_to(made.regions[0])
        orelse.move_to(made.regions[1])
        results = iter(made.results)
        copies: list[Copy] = []
        return [joined.rebuilt(results, copies) for joined, _, _ in self.entries], copies
