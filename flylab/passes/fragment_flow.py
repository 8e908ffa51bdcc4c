"""Which elements of fragments cross control flow, and in which pieces.

A loop or a branch hands over what is stored to inside of it and may be read afterwards, cut at the borders of the
accesses inside: each access there is one piece, or several whole ones, and costs no operation. Elements are bits of an
int: bit i is element i; a border before element i is bit i too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flylab.passes.fragments import Fragment, Place
from flylab.passes.regions import block_of

Live = dict[Fragment, int]
"""The elements of each fragment that may be read before they are stored to again."""


@dataclass(eq=False)
class Access:
    """A load or store of `count` elements at a place."""

    place: Place
    count: int
    is_store: bool
    elements: int = 0
    """Those that it may access."""
    borders: int = 0
    is_certain: bool = False
    """Whether it accesses all of them: the place is known."""

    def __post_init__(self) -> None:
        starts = self.place.within(self.count)
        for start in starts:
            self.elements |= span(start, self.count)
            self.borders |= 1 << start | 1 << start + self.count
        self.is_certain = len(starts) == 1


@dataclass
class Effect:
    """What code does with a fragment: reads before it stores, certainly stores, may store; the borders of accesses.

    `fresh` are the elements that some way through stores to without having read them; `untouched` those that some way
    through neither reads nor stores to.
    """

    read: int = 0
    killed: int = 0
    stored: int = 0
    borders: int = 0
    fresh: int = 0
    untouched: int = -1

    def then(self, other: Effect, is_certain: bool = True) -> None:
        """Add what comes after it, certainly or perhaps."""
        self.fresh |= other.fresh & self.untouched
        self.untouched &= other.untouched if is_certain else -1
        self.read |= other.read & ~self.killed
        self.killed |= other.killed if is_certain else 0
        self.stored |= other.stored
        self.borders |= other.borders


Effects = dict[Fragment, Effect]


@dataclass(frozen=True)
class Flow:
    """What each block does in order (accesses, and operations with regions), and what crosses those."""

    inside: dict[Any, list[tuple[Any, Access | None]]]
    crossing: dict[Any, list[tuple[Fragment, int, int]]] = field(default_factory=dict)
    """Of each operation with regions: (fragment, first element, count) of the pieces that it hands over.

    By its first block: MLIR's hash of an operation changes with its operands.
    """
    _effects: dict[Any, list[Effects]] = field(default_factory=dict)

    def analyse(self, block: Any) -> None:
        """Find what crosses the operations of an outermost block, and those inside of them."""
        self._effects_of(block)
        self._backward(block, {})

    def stored(self, op: Any) -> list[Fragment]:
        """The fragments that an operation with regions stores to."""
        return [f for f, effect in _together(op.name, self._effects[block_of(op)]).items() if effect.stored]

    def fresh(self, op: Any, fragment: Fragment) -> int:
        """The elements that an iteration of a loop may store to with no iteration having read them before."""
        return _together(op.name, self._effects[block_of(op)]).get(fragment, Effect()).fresh

    def _effects_of(self, block: Any) -> Effects:
        total: Effects = {}
        for op, access in self.inside.get(block, ()):
            if access is not None:
                mine = total.setdefault(access.place.fragment, Effect())
                elements = access.elements
                if access.is_store:
                    killed = elements if access.is_certain else 0
                    mine.then(Effect(0, killed, elements, access.borders, fresh=elements, untouched=~killed))
                else:
                    mine.then(Effect(elements, 0, 0, access.borders, untouched=~elements))
                continue
            regions = [self._effects_of(block_of(op, i)) for i in range(len(op.regions))]
            self._effects[block_of(op)] = regions
            for fragment, effect in _together(op.name, regions).items():
                total.setdefault(fragment, Effect()).then(effect)
        # A fragment that is made in a block is new each time that the block runs.
        return {f: effect for f, effect in total.items() if f.alloca.block != block}

    def _backward(self, block: Any, live: Live) -> Live:
        """What is live before a block, by what is live after it; notes what crosses the operations in it."""
        for op, access in reversed(self.inside.get(block, ())):
            if access is None:
                live = self._across(op, live)
                continue
            fragment = access.place.fragment
            if not access.is_store:
                live[fragment] = live.get(fragment, 0) | access.elements
            elif access.is_certain:
                live[fragment] = live.get(fragment, 0) & ~access.elements
        return live

    def _across(self, op: Any, after: Live) -> Live:
        effects = self._effects[block_of(op)]
        total = _together(op.name, effects)
        if op.name == "scf.if":
            kept = after
            before = [self._backward(block_of(op, i), dict(after)) for i in range(2)]
            found = _union(*before)
        elif op.name == "scf.for":
            found = kept = _union(after, _before(effects[0], {}))
            self._backward(block_of(op), dict(kept))
        else:
            condition, body = effects
            found = _before(condition, _union(after, _before(body, {})))
            kept = _union(after, _before(body, found))
            self._backward(block_of(op), dict(kept))
            self._backward(block_of(op, 1), dict(found))
            kept = _union(kept, found)
        self.crossing[block_of(op)] = [
            (fragment, start, count)
            for fragment, effect in total.items()
            for start, count in pieces(effect.stored & kept.get(fragment, 0), effect.borders)
        ]
        return found


def _before(effects: Effects, after: Live) -> Live:
    """What is live before code with these effects, by what is live after it."""
    found = dict(after)
    for fragment, effect in effects.items():
        found[fragment] = effect.read | found.get(fragment, 0) & ~effect.killed
    return found


def _union(*lives: Live) -> Live:
    found: Live = {}
    for live in lives:
        for fragment, elements in live.items():
            found[fragment] = found.get(fragment, 0) | elements
    return found


def _together(name: str, regions: list[Effects]) -> Effects:
    """What an operation does by what its regions do."""
    total: Effects = {}
    for fragment in {fragment: None for region in regions for fragment in region}:
        found = [region.get(fragment, Effect()) for region in regions]
        mine = total[fragment] = Effect()
        for i, effect in enumerate(found):
            # The first region of a while runs at least once; after it, or in its place, the others may.
            mine.then(effect, is_certain=name == "scf.while" and i == 0)
        if name == "scf.if":
            mine.killed = found[0].killed & found[1].killed
            mine.fresh = found[0].fresh | found[1].fresh
            mine.untouched = found[0].untouched | found[1].untouched
    return total


def span(start: int, count: int) -> int:
    """The bits of `count` elements from `start` on."""
    return (1 << count) - 1 << start


def pieces(elements: int, borders: int) -> Iterator[tuple[int, int]]:
    """The runs of bits that are set, cut at borders, as (first, count).

    >>> list(pieces(0b1110111, 0b10))
    [(0, 1), (1, 2), (4, 3)]
    """
    at = 0
    while elements >> at:
        at += _lowest(elements >> at)
        end = at + _lowest(~(elements >> at))
        cuts = borders >> at + 1
        if cuts:
            end = min(end, at + 1 + _lowest(cuts))
        yield at, end - at
        at = end


def _lowest(bits: int) -> int:
    """The place of the lowest bit that is set."""
    return (bits & -bits).bit_length() - 1
