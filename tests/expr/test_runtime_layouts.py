"""Layouts with runtime extents and strides: a kernel computes with them what Python computes with the numbers.

A program is one Python function of a module (the layout algebra, or `flylab.expr`) and three integers. It runs in
Python with the numbers, and in a kernel with parameters of the device; both must agree, for each of 64 threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab import layout as rules
from flylab.errors import LayoutError
from flylab.layout import ComposedLayout, Layout, Swizzle, leaves, size
from tests.samples import cell

THREADS, RESULTS = 64, 12
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
        known = tuple(fx.assume(number, **fact) for number, fact in zip(numbers, facts, strict=True))
        for i, result in enumerate(flat(program(fx, known, thread))):
            out[thread, i] = fx.Int64(result)

    tables = []
    for given_values in values:
        out = np.zeros((THREADS, RESULTS), np.int64)
        RUN(out, *given_values, body)
        tables.append(out)
    return tables


def in_python(program: Program, numbers: tuple[int, ...]) -> np.ndarray:
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


@st.composite
def shapes(draw: st.DrawFn, depth: int = 2) -> Any:
    """A shape of one to three modes; the leaf -k stands for the runtime number k - 1."""
    modes = []
    for _ in range(draw(st.integers(1, 3))):
        if depth and draw(st.integers(0, 4)) == 0:
            modes.append(draw(shapes(depth - 1)))
        else:
            modes.append(draw(st.sampled_from([-1, -2, -3, 1, 2, 3, 4, 8, 16])))
    return tuple(modes)


def filled(tree: Any, numbers: tuple[Any, ...]) -> Any:
    if isinstance(tree, tuple):
        return tuple(filled(each, numbers) for each in tree)
    return numbers[-tree - 1] if isinstance(tree, int) and tree < 0 else tree


@st.composite
def layouts(draw: st.DrawFn) -> Callable[[Any, tuple[Any, ...]], Any]:
    """How to make a layout of a module and the numbers."""
    shape = draw(shapes())
    kind = draw(st.sampled_from(["compact", "ordered", "strided", "identity", "padded"]))
    if kind == "compact":
        return lambda lib, n: lib.make_layout(filled(shape, n))
    if kind == "identity":
        return lambda lib, n: lib.make_identity_layout(filled(shape, n))
    if kind == "ordered":
        order = tuple(draw(st.permutations(range(len(shape)))))
        return lambda lib, n: lib.make_ordered_layout(filled(shape, n), order)
    if kind == "strided":
        stride = rules.int_tuple.map_leaves(lambda _: draw(st.sampled_from([-1, -2, -3, 0, 1, 2, 5, 8, 64])), shape)
        return lambda lib, n: lib.make_layout(filled(shape, n), filled(stride, n))
    return lambda lib, n: lib.make_layout((filled(shape, n), n[1]), (lib.make_layout(filled(shape, n)).stride, n[0] * 4))


TILES = st.one_of(
    st.sampled_from([1, 2, 4, 8]),
    st.builds(Layout, st.sampled_from([2, 4]), st.sampled_from([1, 2, 4])),
    st.lists(st.sampled_from([None, 1, 2, 4, 8, Layout(2, 2)]), min_size=1, max_size=2).map(tuple),
)
DIVIDES = ["logical_divide", "zipped_divide", "tiled_divide", "flat_divide"]
PRODUCTS = ["logical_product", "zipped_product", "blocked_product", "raked_product"]


@st.composite
def steps(draw: st.DrawFn) -> Callable[[Any, Any, tuple[Any, ...]], Any]:
    """One operation on a layout."""
    kind = draw(st.sampled_from(["divide", "divide", "product", "composition", "coalesce", "modes", "complement",
                                 "inverse", "recast", "swizzle", "runtime tile", "filter"]))
    if kind == "divide":
        name, tile = draw(st.sampled_from(DIVIDES)), draw(TILES)
        return lambda lib, layout, n: getattr(lib, name)(layout, tile)
    if kind == "product":
        name = draw(st.sampled_from(PRODUCTS))
        extents = draw(st.sampled_from([(2, 3), (-1, 2), (-2, -3), (4,)]))
        return lambda lib, layout, n: getattr(lib, name)(layout, lib.make_layout(filled(extents, n)))
    if kind == "composition":
        inner = draw(st.sampled_from([Layout(4, 1), Layout(4, 2), Layout((2, 2), (4, 1)), (2, None), Layout(2, 8), 4]))
        return lambda lib, layout, n: lib.composition(layout, inner)
    if kind == "modes":
        return draw(st.sampled_from([
            lambda lib, layout, n: lib.group(layout, 0, 1), lambda lib, layout, n: lib.select(layout, [0]),
            lambda lib, layout, n: lib.append(layout, lib.make_layout(n[2], 1)), lambda lib, layout, n: layout[0],
            lambda lib, layout, n: lib.take(layout, 0, 1), lambda lib, layout, n: lib.prepend(layout, Layout(2, 1)),
        ]))
    if kind == "complement":
        return lambda lib, layout, n: lib.complement(layout, n[0] * 64)
    if kind == "inverse":
        name = draw(st.sampled_from(["right_inverse", "left_inverse"]))
        return lambda lib, layout, n: getattr(lib, name)(layout)
    if kind == "recast":
        widths = draw(st.sampled_from([(16, 8), (8, 16), (32, 16)]))
        return lambda lib, layout, n: lib.recast_layout(layout, *widths)
    if kind == "swizzle":
        swizzle = Swizzle(*draw(st.sampled_from([(1, 0, 1), (2, 1, 3), (3, 3, 3), (2, 0, -2)])))
        return lambda lib, layout, n: lib.make_composed_layout(swizzle, n[0], layout)
    if kind == "runtime tile":
        return lambda lib, layout, n: lib.zipped_divide(layout, lib.make_tile(n[1]))
    return lambda lib, layout, n: getattr(lib, kind)(layout)


@st.composite
def programs(draw: st.DrawFn) -> Program:
    make, changes = draw(layouts()), draw(st.lists(steps(), max_size=3))

    def program(lib: Any, numbers: tuple[Any, ...], thread: Any) -> list[Any]:
        layout = make(lib, numbers)
        for change in changes:
            layout = change(lib, layout, numbers)
        shape = lib.get_shape(layout)
        results = [lib.crd2idx(thread, layout), lib.size(layout), lib.get_1d_coord(thread, shape)]
        if lib is rules and isinstance(layout, (Layout, ComposedLayout)) and not size(layout):
            raise LayoutError("an empty layout")
        return results

    return program


FACTS = st.fixed_dictionaries({"div": st.sampled_from([1, 2, 4, 8]), "low": st.just(1)})


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@settings(max_examples=200)
@given(programs(), st.lists(FACTS, min_size=3, max_size=3), st.data())
def test_a_program_gives_on_the_device_what_it_gives_in_python(chip: str, program: Program, facts: Any,
                                                               data: Any) -> None:
    numbers = st.tuples(*[st.integers(1, 12).map(lambda k, by=fact["div"]: k * by) for fact in facts])
    values = data.draw(st.lists(numbers, min_size=2, max_size=3))
    with flylab.use(chip):
        try:
            tables = on_device(program, facts, values)
        except LayoutError as error:
            assert error.hint
            assume(False)
    for given_values, table in zip(values, tables, strict=True):
        wanted = in_python(program, given_values)
        # An integer past the end extends the last mode of more than one element, which a runtime extent may be or not.
        inside = wanted[:, 1].min(initial=THREADS)
        assert (table[:inside] == wanted[:inside]).all(), (given_values, table[:4], wanted[:4])
