"""Programs that run in Python with numbers, and in a kernel with parameters of the device.

A program is a function of a module (`flylab.layout`, or `flylab.expr`), three integers and a thread; what it gives must
be the same, for each of 64 threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import flylab.expr as fx
from flylab import layout as rules
from flylab.layout import leaves
from tests.samples import cell

THREADS, RESULTS = 64, 32
RUN = cell("""
    @flyc.kernel
    def k(out: fx.Tensor, a: fx.Int32, b: fx.Int32, c: fx.Int32, body: fx.Constexpr):
        body(out, (a, b, c), fx.thread_idx.x)

    @flyc.jit
    def launch(out: fx.Tensor, a: fx.Int32, b: fx.Int32, c: fx.Int32, body: fx.Constexpr):
        k(out, a, b, c, body).launch(grid=1, block=64)
""")["launch"]
Program = Callable[[Any, tuple[Any, ...], Any], list[Any]]


def flat(results: list[Any]) -> list[Any]:
    """The numbers of the results; tuples are coordinates or shapes."""
    return [leaf for result in results for leaf in leaves(result)]


def on_device(program: Program, facts: list[dict[str, int]], values: list[tuple[int, ...]]) -> list[np.ndarray]:
    """What each thread computes, for each of the value sets, by one compilation."""

    def body(out: Any, numbers: Any, thread: Any) -> None:
        given = zip(numbers, facts, strict=True)
        known = tuple([fx.assume(number, **fact) if fact else number for number, fact in given])
        for i, result in enumerate(flat(program(fx, known, thread))):
            out[thread, i] = fx.Int64(result)

    tables = []
    for given_values in values:
        out = np.zeros((THREADS, RESULTS), np.int64)
        RUN(out, *given_values, body)
        tables.append(out)
    return tables


def in_python(program: Program, numbers: tuple[int, ...]) -> np.ndarray:
    """The same table, computed with the numbers."""
    table = np.zeros((THREADS, RESULTS), np.int64)
    for thread in range(THREADS):
        found = flat(program(rules, numbers, thread))
        table[thread, : len(found)] = found
    return table


def check(program: Program, values: list[tuple[int, ...]], facts: list[dict[str, int]] | None = None) -> None:
    facts = facts or [{}] * 3
    for numbers, table in zip(values, on_device(program, facts, values), strict=True):
        wanted = in_python(program, numbers)
        assert (table == wanted).all(), (numbers, table[:4], wanted[:4])
