"""Chains of operations, and odd arguments: a right value or a LayoutError; never another exception, never a hang."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.layout as layout
from flylab.errors import LayoutError
from flylab.layout import ComposedLayout, E, Layout, Swizzle, make_identity_layout
from tests.layout import brute, right
from tests.layout.refusal import at_once

LARGEST = 4096  # what is compared one by one: coordinates, and how far they lead

ODD = [
    None, "x", "(4,8):(1,4)", b"ab", 1.5, float("nan"), True, (), {}, {1}, object(), range(3), int, [2, [3]], (2.0,),
    (1, "a"), (0,), 0, -1, 2**16, 2**70, (2**40, 3), (2,) * 40, (None, 3), (4, None), (1, (2, 3)), ((1,), ((2,), ())),
    np.int64(4), np.bool_(True), np.float32(2), np.arange(4), np.zeros((2, 2)), E(0), 2 * E(1, 0), (E(0), E(1)),
    Layout(0, 1), Layout((4, 0), (1, 4)), Layout((2**40, 3), (1, -5)), Layout((2**21, 2**21)), Layout((2,) * 30),
    Layout((2, 2), (2**62, 2**63)), Layout((3, 2), (1, 2)), Layout(4, -1), Layout((1, 1)), (Layout(2, 1), None),
    make_identity_layout((4, 8)), make_identity_layout((4, (1, 8))), Swizzle(3, 3, 3), Swizzle(1, 60, -2),
    ComposedLayout(Swizzle(2, 0, 3), 2**70, Layout((4, 8), (8, 1))),
    ComposedLayout(Layout((4, 8), (8, 1)), (0, 1), make_identity_layout((4, 8))),
]
USUAL = [
    1, 2, 4, 8, (4, 8), (2, 2), ((2, 2), 3), (2, None), (Layout(2, 1), 4), Layout(8, 1), Layout(4, 2), Layout(1, 0),
    Layout((4, 8)), Layout((4, 8), (8, 1)), Layout((4, 8), (1, 5)), Layout((4, (2, 3)), (2, (8, 16))),
    Layout(((2, 2), (2, 4)), ((0, 1), (0, 2))), "composition", "complement", "logical_divide", "crd2idx",
]
odd = st.sampled_from(ODD)
layouts = brute.layouts(most=64, low=-3, high=24) | brute.disjoint(most=48)
small = brute.layouts(most=8, high=6, extent=4) | brute.disjoint(most=8)
swizzles = st.builds(Swizzle, st.integers(0, 2), st.integers(0, 3), st.sampled_from([2, 3, -2]))
widths = st.sampled_from([8, 16, 32])


def _same_values(before: Layout, result: Layout) -> bool:
    return brute.table(result) == brute.table(before)


def _composed_after(before: Layout, outer: Layout, result: Layout) -> bool:
    return right.is_composition(outer, before, result)


def _swizzled(before: Layout, swizzle: Swizzle, offset: int, result: ComposedLayout) -> bool:
    return result.offsets().tolist() == [swizzle(offset + i) for i in brute.table(before)]


def _side_by_side(before: Layout, more: Layout, result: Layout) -> bool:
    return right.modes(result) == [*right.modes(before), more]


def _compact(before: Layout, result: Layout) -> bool:
    reached = set(brute.table(result))
    return result.shape == before.shape and reached == set(range(len(reached)))


def _if_it_stacks(check: Callable[..., bool]) -> Callable[..., bool]:
    """The check of a product, whose copies are at the smallest places for blocks that leave no other gaps."""
    return lambda before, tiler, result: not right.stacks(before) or check(before, tiler, result)


Link = tuple[Callable[..., Any], tuple[st.SearchStrategy[Any], ...], Callable[..., bool]]
LINKS: dict[str, Link] = {
    "composition": (layout.composition, (layouts,), right.is_composition),
    "composition after": (lambda value, outer: layout.composition(outer, value), (layouts,), _composed_after),
    "composition by tile": (layout.composition, (st.tuples(st.integers(1, 5), small),), right.is_composition_by_mode),
    "coalesce": (layout.coalesce, (), right.is_coalesced),
    "filter": (layout.filter, (), right.is_filtered),
    "complement": (layout.complement, (st.integers(1, 200),), right.is_complement),
    "right_inverse": (layout.right_inverse, (), right.is_right_inverse),
    "left_inverse": (layout.left_inverse, (), right.is_left_inverse),
    "logical_divide": (layout.logical_divide, (brute.disjoint(most=8),), right.is_division),
    "flat_divide": (layout.flat_divide, (brute.disjoint(most=8),), right.is_division),
    "zipped_divide": (layout.zipped_divide, (st.tuples(st.integers(1, 5), st.integers(1, 5)),),
                      right.is_division_by_mode),
    "tiled_divide": (layout.tiled_divide, (st.tuples(st.integers(1, 5)),), right.is_division_by_mode),
    "logical_product": (layout.logical_product, (small,), _if_it_stacks(right.is_product)),
    "zipped_product": (layout.zipped_product, (small,), _if_it_stacks(right.is_product)),
    "blocked_product": (layout.blocked_product, (small,), _if_it_stacks(right.is_blocked)),
    "raked_product": (layout.raked_product, (small,), _if_it_stacks(right.is_raked)),
    "recast_layout": (layout.recast_layout, (widths, widths), right.is_recast),
    "group": (lambda value: layout.group(value, 0), (), _same_values),
    "append": (layout.append, (small,), _side_by_side),
    "select": (lambda value, i: layout.select(value, [i]), (st.integers(0, 3),),
               lambda before, i, result: right.modes(result) == [right.modes(before)[i]]),
    "make_layout_like": (layout.make_layout_like, (), _compact),
    "make_fragment_layout_like": (layout.make_fragment_layout_like, (), _compact),
    "make_composed_layout": (lambda value, swizzle, offset: layout.make_composed_layout(swizzle, offset, value),
                             (swizzles, st.integers(0, 9)), _swizzled),
    "parse": (lambda value: layout.parse(str(value)), (), lambda before, result: result == before),
}


@st.composite
def links(draw: Any) -> tuple[str, tuple[Any, ...], bool]:
    """The name of an operation, its operands, and whether they are odd, as one in eight is."""
    name = draw(st.sampled_from(sorted(LINKS)))
    strange = draw(st.integers(0, 7)) == 0
    return name, tuple(draw(odd if strange else operand) for operand in LINKS[name][1]), strange


def _comparable(value: Any) -> bool:
    """Whether a layout is one of indices, has elements, and is small enough to be counted through."""
    if not isinstance(value, Layout):
        return True
    steps = [stride for _, stride in brute.flat(value)]
    reach = sum((extent - 1) * abs(stride) for extent, stride in brute.flat(value) if type(stride) is int)
    return all(type(step) is int for step in steps) and brute.size(value.shape) > 0 and \
        max(brute.size(value.shape), reach) <= LARGEST and len(steps) < 7


def _check(name: str, before: Any, operands: tuple[Any, ...], result: Any) -> None:
    """What comes out is right by brute force, where the layouts are small; under a swizzle the inner layouts count."""
    if isinstance(before, ComposedLayout) and isinstance(result, ComposedLayout):
        if (before.outer, before.offset) != (result.outer, result.offset) or name == "make_composed_layout":
            return
        before, result = before.inner, result.inner
    if isinstance(before, Layout) and all(map(_comparable, (before, *operands, result))):
        assert LINKS[name][2](before, *operands, result), f"{name} of {before} and {operands} is not {result}"


@given(layouts | odd, st.lists(links(), min_size=2, max_size=6))
def test_a_chain_gives_right_values_or_refuses(value: Any, chain: list[tuple[str, tuple[Any, ...], bool]]) -> None:
    for name, operands, strange in chain:
        result = at_once(lambda: LINKS[name][0](value, *operands))  # noqa: B023
        if isinstance(result, LayoutError):
            assert result.message and result.hint
            continue
        if not strange:
            _check(name, value, operands, result)
        value = result


# A dataclass holds what it is given; `levels` counts down for the functions themselves.
FUNCTIONS = sorted(set(layout.__all__) - {"Explanation", "Step"})


@st.composite
def _arguments(draw: Any, function: Callable[..., Any]) -> list[Any]:
    """As many arguments as there must be, and some of the others; odd ones and layouts."""
    count = 0
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == "levels" or parameter.default is not parameter.empty and draw(st.booleans()):
            break
        count += draw(st.integers(0, 3)) if parameter.kind is parameter.VAR_POSITIONAL else 1
    return [draw(st.sampled_from(ODD + USUAL)) for _ in range(count)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_any_arguments_are_answered_or_refused(name: str) -> None:
    function = getattr(layout, name)

    @given(_arguments(function))
    def call(arguments: list[Any]) -> None:
        result = at_once(lambda: function(*arguments))
        if isinstance(result, LayoutError):
            assert result.message and result.hint
        elif isinstance(result, (Layout, ComposedLayout, Swizzle, layout.Explanation)):
            assert str(result) and hash(repr(result))

    call()
