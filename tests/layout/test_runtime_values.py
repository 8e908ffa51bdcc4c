"""Operations on layouts with runtime numbers give, for each number, what they give for the number itself."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from flylab import layout as rules
from flylab.errors import LayoutError, Undecided
from flylab.layout import Layout, RuntimeInt, Swizzle, leaves, parse, size
from flylab.layout.int_tuple import map_leaves
from tests.layout import brute
from tests.layout.valued import Valued, number_of, revealed


@st.composite
def hidden(draw: st.DrawFn, value: Any, low: int = 0) -> Any:
    """An int tuple of which some numbers are hidden behind facts that they fit."""
    def leaf(number: int) -> Any:
        if number < low or draw(st.booleans()):
            return number
        by = draw(st.sampled_from([d for d in (1, 2, 4, 8) if number % d == 0]))
        name = draw(st.sampled_from([None, f"v{number}"]))
        return Valued(RuntimeInt(0, None, by, draw(st.sampled_from([32, 64])), name), number)

    return map_leaves(leaf, value)


@st.composite
def partly(draw: st.DrawFn, layout: Layout) -> Layout:
    """The layout with some of its extents and strides hidden."""
    # An extent of 1 has no stride, and a stride of 0 has to be known.
    return Layout(draw(hidden(layout.shape, 2)), draw(hidden(layout.stride, 1)))


@given(brute.layouts(), st.data())
def test_coordinates_of_indices(layout: Layout, data: Any) -> None:
    try:
        rules.idx2crd(0, layout)
    except LayoutError:
        assume(False)
    runtime = data.draw(partly(layout))
    for index in data.draw(st.lists(st.integers(0, 2 * size(layout)), min_size=1, max_size=5)):
        coord = data.draw(st.integers(0, max(size(layout) - 1, 0)))
        for given_index in (layout(coord), index):
            if given_index not in _indices(layout):
                continue
            wanted = rules.idx2crd(given_index, layout)
            known = data.draw(hidden(given_index))
            assert revealed(rules.idx2crd(known, runtime)) == wanted
            shape = rules.idx2crd(given_index, layout.shape)
            assert revealed(rules.idx2crd(known, runtime.shape)) == shape


def _indices(layout: Layout) -> set[int]:
    return set(layout.offsets().tolist())


def test_indices_beyond_32_bits() -> None:
    for text, index in (("(4096,1048576):(1,4096)", 3_000_000_000), ("(8,2097152):(4194304,1)", 2**24 + 5)):
        layout = parse(text)
        runtime = Layout(layout.shape, map_leaves(lambda n: Valued(RuntimeInt(), n), layout.stride))
        for known in (index, Valued(RuntimeInt(bits=64), index), Valued(RuntimeInt(0, 2**32 - 1), index)):
            assert revealed(rules.idx2crd(known, runtime)) == rules.idx2crd(index, layout)


OPERATIONS: dict[str, Any] = {
    "coalesce": rules.coalesce, "filter": rules.filter, "right_inverse": rules.right_inverse,
    "left_inverse": rules.left_inverse, "make_layout_like": rules.make_layout_like,
    "make_fragment_layout_like": rules.make_fragment_layout_like,
    "narrower": lambda x: rules.recast_layout(x, 16, 8), "wider": lambda x: rules.recast_layout(x, 8, 16),
    "divided": lambda x: rules.logical_divide(x, 4),
    "by a layout": lambda x: rules.logical_divide(x, Layout((2, 2), (4, 1))),
    "zipped": lambda x: rules.zipped_divide(x, (2, None) if len(x) > 1 else (2,)),
    "composed": lambda x: rules.composition(x, Layout((2, 2), (2, 1))),
    "product": lambda x: rules.logical_product(x, Layout(3, 1)),
    "blocked": lambda x: rules.blocked_product(x, Layout(2, 1)),
    "swizzled": lambda x: rules.composition(Swizzle(2, 1, 2), x), "repeated": lambda x: rules.complement(x, 64),
}  # fmt: skip


@given(brute.layouts(), st.sampled_from(sorted(OPERATIONS)), st.data())
def test_operations(layout: Layout, name: str, data: Any) -> None:
    runtime, function = data.draw(partly(layout)), OPERATIONS[name]
    try:
        found = function(runtime)
    except Undecided as error:
        assert error.message and error.hint
        return
    except LayoutError:
        # What is refused for what is known of it is refused for the numbers.
        _refused(function, layout)
        return
    wanted = function(layout)
    found = revealed(found)
    if name == "repeated":
        # Whatever is put beside the layout, both together reach each index of the target once.
        assert size(found) >= size(wanted) and rules.cosize(found) >= rules.cosize(wanted) - 1
        return
    if name == "right_inverse":
        assert all(layout(found(i)) == i for i in range(size(found)))
        return
    assert size(found) == size(wanted)
    for i in range(min(size(wanted), 200)):
        assert found(i) == wanted(i), (str(runtime), str(found), str(wanted))


def _refused(function: Any, layout: Layout) -> None:
    try:
        function(layout)
    except LayoutError:
        return
    raise AssertionError(f"refused with runtime numbers only: {layout}")


@given(brute.layouts(), st.data())
def test_sizes_and_indices(layout: Layout, data: Any) -> None:
    runtime = data.draw(partly(layout))
    assert number_of(rules.size(runtime)) == rules.size(layout)
    assert number_of(rules.cosize(runtime)) == rules.cosize(layout)
    coord = rules.idx2crd(data.draw(st.integers(0, max(size(layout) - 1, 0))), layout.shape) if size(layout) else None
    if coord is not None:
        assert number_of(rules.crd2idx(data.draw(hidden(coord)), runtime)) == rules.crd2idx(coord, layout)
        assert number_of(rules.crd2idx(coord, runtime)) == layout(coord)
    assert len(list(leaves(runtime.shape))) == len(list(leaves(layout.shape)))
