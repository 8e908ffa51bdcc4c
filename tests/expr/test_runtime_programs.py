"""Random programs of the layout algebra with runtime numbers: the device gives what Python gives."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import flylab
from flylab import layout as rules
from flylab.errors import LayoutError
from flylab.layout import Layout, Swizzle
from flylab.layout.int_tuple import map_leaves
from tests.expr.programs import THREADS, Program, in_python, on_device


def written(leaf: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """The text of a tuple of one to three modes, which may nest once."""
    modes = st.one_of(leaf, leaf, leaf, st.lists(leaf, min_size=2, max_size=2).map(_tuple))
    return st.lists(modes, min_size=1, max_size=3).map(_tuple)


def _tuple(items: list[str]) -> str:
    return "(" + ", ".join(items) + ",)"


NUMBERS = ["n[0]", "n[1]", "n[2]"]
EXTENTS = st.sampled_from([*NUMBERS, *NUMBERS, "1", "2", "3", "4", "8", "16"])
STRIDES = st.sampled_from([*NUMBERS, "0", "1", "2", "5", "8", "64"])
TILES = st.sampled_from(["1", "2", "4", "8", "Layout(4, 2)", "Layout((2, 2), (4, 1))", "(2,)", "(4, 2)", "(None, 8)",
                         "(2, None)", "(Layout(2, 2), 4)", "(n[1],)", "n[1]", "(n[0], 2)"])


@st.composite
def layouts(draw: st.DrawFn) -> str:
    """A layout, as an expression of `lib` and the numbers `n`."""
    shape = draw(written(EXTENTS))
    kind = draw(st.sampled_from(["make_layout", "make_identity_layout", "make_ordered_layout", "strided", "padded"]))
    if kind == "strided":
        strides = [draw(STRIDES) for _ in re.findall(r"[^(), ]+", shape)]
        found = iter(strides)
        return f"lib.make_layout({shape}, {re.sub('[^(), ]+', lambda _: next(found), shape)})"
    if kind == "padded":
        stride = draw(st.sampled_from(["(n[1] + 4, 1)", "(1, n[0] * 2)", "(64, n[2])"]))
        return f"lib.make_layout((n[0], n[1]), {stride})"
    order = f", {draw(st.permutations([0, 1, 2]))[: len(eval(shape, {'n': (2, 2, 2)}))]}" if "order" in kind else ""
    return f"lib.{kind}({shape}{order})"


BY_MODE = st.one_of(
    st.builds("lib.{}(x, {})".format, st.sampled_from(["logical_divide", "zipped_divide", "tiled_divide",
                                                       "flat_divide", "composition"]), TILES),
    st.builds("lib.{}(x, lib.make_layout({}))".format,
              st.sampled_from(["blocked_product", "raked_product"]), st.sampled_from(["(2, 3)", "(n[0], 2)", "n[1]"])),
    st.sampled_from([
        "lib.coalesce(x, (1,))", "lib.group(x, 0, 1)", "lib.select(x, [0])", "lib.take(x, 0, 1)", "x[0]",
        "lib.append(x, lib.make_layout(n[2], 1))", "lib.prepend(x, Layout(2, 1))",
        "lib.make_layout_like(x)", "lib.make_fragment_layout_like(x)", "lib.tile_to_shape(x, (n[0] * 8, n[1] * 16))",
        "lib.make_layout(lib.get_shape(x))",
    ]),
)
OF_THE_WHOLE = st.one_of(
    st.builds("lib.{}(x, {})".format, st.sampled_from(["logical_divide", "composition"]),
              st.sampled_from(["4", "Layout(4, 2)", "Layout((2, 2), (4, 1))", "Layout(2, 8)", "lib.make_layout(n[0])",
                               "lib.make_layout((4, n[0]))"])),
    st.builds("lib.logical_product(x, lib.make_layout({}))".format, st.sampled_from(["(2, 3)", "(n[0], 2)", "n[1]"])),
    st.sampled_from([
        "lib.coalesce(x)", "lib.filter(x)", "lib.right_inverse(x)",
        "lib.left_inverse(x)", "lib.recast_layout(x, 16, 8)", "lib.recast_layout(x, 8, 16)",
        "lib.make_composed_layout(Swizzle(3, 3, 3), n[0], x)", "lib.make_composed_layout(Swizzle(2, 0, -2), x)",
        "lib.composition(Swizzle(2, 1, 3), x)", "lib.make_layout(x, lib.make_layout(n[1], 64))",
        "lib.composition(lib.make_layout(n[0] * n[1] * 512, 3), x)",
    ]),
)
OF_MODES = ["lib.get_flat_coord(t, lib.get_shape(x))", "lib.int_tuple_product_each(lib.get_shape(x))",
            "lib.idx2crd(t, lib.get_shape(x))", "lib.dice(lib.get_shape(x), (1,) * lib.rank(x))", "lib.cosize(x)"]
OF_MAPS = ["lib.crd2idx(t, x)", "lib.get_1d_coord(t, lib.get_shape(x))", "lib.ceil_div(lib.size(x), n[1])"]


@st.composite
def sources(draw: st.DrawFn) -> tuple[str, list[str], list[str], bool]:
    """A layout, steps and results. What coalesces may have more modes in the kernel, where less is known: after such a
    step come no steps and no results by mode."""
    by_mode, whole = draw(st.lists(BY_MODE, max_size=2)), draw(st.lists(OF_THE_WHOLE, max_size=2))
    if draw(st.integers(0, 7)) == 0:
        whole.append("lib.complement(x, n[0] * 64)")  # its last mode may have an extent of 1
    asked = st.sampled_from(OF_MAPS if whole else OF_MAPS + OF_MODES)
    results = draw(st.lists(asked, min_size=1, max_size=3, unique=True))
    return draw(layouts()), by_mode + whole, results, draw(st.booleans())


def compiled(make: str, steps: list[str], results: list[str], named: bool) -> Program:
    """The program that these expressions are: of the module `lib`, the numbers `n` and the thread `t`."""
    lines = [f"x = {line}" for line in (make, *steps)]
    body = "; ".join(f"{line}; note(x)" for line in lines)
    names: dict[str, Any] = {"Layout": Layout, "Swizzle": Swizzle, "note": lambda x: None}
    text = f"def program(lib, n, t):\n    a, b, c = n; {body}\n    return [lib.size(x), {', '.join(results)}]"
    # A number that has a name of the program's is known to be one number wherever it stands.
    for expression, name in zip(NUMBERS, "abc", strict=True) if named else ():
        text = text.replace(expression, name)
    exec(text, names)
    return names["program"]  # type: ignore[no-any-return]


def form(program: Program, numbers: tuple[int, ...]) -> Any:
    """How the layouts of the program nest, and which of their numbers are 0 and 1."""
    seen: list[Any] = []
    program.__globals__["note"] = lambda x: seen.append(map_leaves(lambda n: min(n, 2), x.shape))
    program(rules, numbers, 0)
    program.__globals__["note"] = lambda x: None
    return seen


FACTS = st.fixed_dictionaries({"div": st.sampled_from([1, 2, 4, 8]), "low": st.just(1)})


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@settings(max_examples=settings.default.max_examples // 2)
@given(sources(), st.lists(FACTS, min_size=3, max_size=3), st.data())
def test_a_program_gives_on_the_device_what_it_gives_in_python(chip: str, source: Any, facts: Any, data: Any) -> None:
    program = compiled(*source)
    numbers = st.tuples(*[st.integers(1, 12).map(lambda k, by=fact["div"]: k * by) for fact in facts])
    values = data.draw(st.lists(numbers, min_size=2, max_size=3))
    with flylab.use(chip):
        try:
            tables = on_device(program, facts, values)
        except LayoutError as error:
            assert error.hint
            assume(False)
    usual = form(program, (8 * 1009, 8 * 1013, 8 * 1019))
    for given_values, table in zip(values, tables, strict=True):
        # An extent that happens to be 1 has no stride in Python, and may have one in the kernel.
        try:
            if form(program, given_values) != usual:
                continue
        except LayoutError:
            continue
        wanted = in_python(program, given_values)
        # An integer past the end extends the last mode.
        inside = wanted[:, 0].min(initial=THREADS)
        assert (table[:inside] == wanted[:inside]).all(), (source, given_values, table[:4], wanted[:4])
