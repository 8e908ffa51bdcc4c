"""The layout algebra beside the pip package `tensor-layouts` in one run. Run by hand.

    .venv/bin/python tests/benchmarks/bench_layout_algebra.py

Both sides get the same operands. They are drawn at random, and made anew for every round, so that no call finds what an
earlier one has left. The sides take turns, round by round; a row has the median of the rounds of each and their ratio
(the goal: at least 3), first for the operation alone, then with the layouts of its operands made inside of the clock.
Counted are operands of which both sides make the same map, which are nearly all of them.

Then all offsets of nested swizzled layouts of 65,536 elements, as a numpy array (the goal: under 2 ms).
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import tensor_layouts as peer  # noqa: E402

import flylab.layout as ours  # noqa: E402
from flylab.errors import LayoutError  # noqa: E402

GOAL, GOAL_MS = 3.0, 2.0
RANKS = (2, 3, 4)


class Written(tuple):
    """A layout as (shape, stride), to be made by either side."""


Operands = tuple[Any, ...]


def strides_of(chance: random.Random, extents: list[int], gap: int = 1) -> list[int]:
    """Strides that put the modes into any order, with a factor of up to `gap` left free below each."""
    strides, span = [0] * len(extents), 1
    for i in chance.sample(range(len(extents)), len(extents)):
        span *= chance.choice([1, gap])
        strides[i], span = span, span * extents[i]
    return strides


def layout(chance: random.Random, rank: int, gap: int = 1) -> Written:
    """A layout of `rank` modes in any order; a third of them nest."""
    extents = [chance.choice([2, 4, 8, 16]) for _ in range(rank)]
    modes = [((e // 2, 2), (s, s * e // 2)) if chance.random() < 1 / 3 else (e, s)
             for e, s in zip(extents, strides_of(chance, extents, gap), strict=True)]
    return Written(zip(*modes, strict=True))


def walked(chance: random.Random, rank: int) -> Operands:
    """A layout, and one of as many modes that walks through its elements in another order."""
    extents = [chance.choice([2, 4]) for _ in range(rank)]
    return layout(chance, rank), Written((tuple(extents), tuple(strides_of(chance, extents))))


def tiled(*choices: int) -> Callable[[random.Random, int], Operands]:
    """A layout, and an extent for each of its modes."""
    return lambda chance, rank: (layout(chance, rank), tuple(chance.choice(choices) for _ in range(rank)))


def by_layout(chance: random.Random, rank: int) -> Operands:
    """A layout, and a layout to divide the whole of it."""
    stride = chance.choice([1, 2, 4, (1, 2), (1, 8), (2, 4), (8, 1)])
    return layout(chance, rank), Written(((2, 2) if isinstance(stride, tuple) else chance.choice([2, 4]), stride))


Row = tuple[Callable[..., Any], Callable[..., Any], Callable[[random.Random, int], Operands]]
ROWS: dict[str, Row] = {
    "composition": (ours.composition, peer.compose, walked),
    "logical_divide, tile": (ours.logical_divide, peer.logical_divide, tiled(1, 2, 4)),
    "logical_divide, uneven": (ours.logical_divide, peer.logical_divide, tiled(2, 3, 5)),
    "logical_divide, layout": (ours.logical_divide, peer.logical_divide, by_layout),
    "complement": (ours.complement, peer.complement, lambda chance, rank: (layout(chance, rank, 2), 1 << 20)),
    "right_inverse": (ours.right_inverse, peer.right_inverse, lambda chance, rank: (layout(chance, rank),)),
}

SWIZZLED = [
    "S<3,3,3> o 0 o (64,(16,64)):(64,(1,4096))",
    "S<3,4,3> o 16 o ((8,8),(4,(16,16))):((1,64),(16,(4096,512)))",
    "S<2,3,3> o 0 o ((2,2,2,2),(2,2,2,2),((4,4),(4,4))):((1,4,16,64),(2,8,32,128),((256,4096),(1024,16384)))",
]


def made(side: Any, operands: Operands) -> Operands:
    """The operands, with the layouts of one side."""
    return tuple([side.Layout(*each) if isinstance(each, Written) else each for each in operands])


def agree(row: Row, operands: Operands) -> bool:
    """Whether both sides give a result, and the same map."""
    try:
        theirs = row[1](*made(peer, operands))
        return ours.same_map(row[0](*made(ours, operands)), ours.Layout(theirs.shape, theirs.stride))
    except (LayoutError, peer.LayoutError):
        return False


def microseconds(side: Any, function: Callable[..., Any], drawn: list[Operands], inside: bool) -> float:
    """The time of one call on new layouts, which are made outside or inside of the clock."""
    ready = drawn if inside else [made(side, operands) for operands in drawn]
    start = time.perf_counter()
    if inside:
        for operands in ready:
            function(*made(side, operands))
    else:
        for operands in ready:
            function(*operands)
    return (time.perf_counter() - start) / len(drawn) * 1e6


def compare(name: str, rank: int, calls: int, rounds: int) -> None:
    """Measures one operation at one rank, and prints its line."""
    row = ROWS[name]
    chance = random.Random(rank)
    candidates = [row[2](chance, rank) for _ in range(calls)]
    drawn = [operands for operands in candidates if agree(row, operands)]
    columns = []
    for inside in (False, True):
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            times[0].append(microseconds(ours, row[0], drawn, inside))
            times[1].append(microseconds(peer, row[1], drawn, inside))
        mine, theirs = map(statistics.median, times)
        columns.append(f"{mine:6.2f} us, theirs {theirs:6.2f}: {theirs / mine:5.2f}" + "!" * (theirs / mine < GOAL))
    print(f"{name:23} rank {rank}, {len(drawn):4} of {calls}   alone {columns[0]}   with operands {columns[1]}")


def offsets_ms(layout_: Any, rounds: int) -> float:
    """The median time of all offsets, in milliseconds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        layout_.offsets()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--calls", type=int, default=500, help="different operands of each row (500)")
    parser.add_argument("--rounds", type=int, default=15, help="rounds of each side (15)")
    options = parser.parse_args()
    if options.calls < 1 or options.rounds < 1:
        parser.error("--calls and --rounds count from 1")
    print(f"a ratio under the goal of {GOAL:.0f} has a '!'")
    for name in ROWS:
        for rank in RANKS:
            compare(name, rank, options.calls, options.rounds)
    for written in SWIZZLED:
        whole = ours.parse(written)
        print(f"{ours.size(whole)} offsets of {written}: {offsets_ms(whole, 10 * options.rounds):.2f} ms "
              f"(goal {GOAL_MS:.0f})")


if __name__ == "__main__":
    main()
