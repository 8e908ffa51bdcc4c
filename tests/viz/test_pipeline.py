"""`viz.pipeline`: which stages are shown, how lines are linked and marked, what a static picture leaves out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.compiler as flyc
from flylab import viz
from flylab.errors import FlylabError
from flylab.passes.recording import Stage
from flylab.viz.passes import ADDED, REMOVED, SAME, panes
from flylab.viz.passes_paint import excerpt
from tests.samples import cell, compile_body
from tests.viz.sample import stage, vector_add

OPERATION = st.sampled_from(["%0 = a.b", "%1 = a.b", "c.d %0", "c.d %1", "e.f", "return"])
TEXT = st.lists(OPERATION, min_size=1, max_size=12)


def mlir(name: str, lines: list[str], changed: bool = True) -> Stage:
    return Stage(name, "mlir", "\n".join(lines), tuple(range(1, len(lines) + 1)), changed)


def test_only_what_changed_is_shown_and_the_rest_is_named() -> None:
    view = viz.pipeline(vector_add())
    assert [pane.name for pane in panes(view.scene) if pane.order] == [
        "source", "ir", "fly-rewrite-func-signature", "fly-canonicalize", "fly-layout-lowering", "convert-fly-to-rocdl",
        "convert-gpu-to-rocdl", "llvm", "isa"]
    words = " ".join(item.text for item in view.picture.items if hasattr(item, "text"))
    assert "No change: rewritten, fly-int-swizzle-simplify, canonicalize (2 times)," in words
    assert view.to_html().count("no change</li>") == 7


def test_a_kernel_gives_its_stages_and_its_name() -> None:
    class Kernel:
        name = "vector_add"

        def stages(self) -> tuple[Stage, ...]:
            return tuple(vector_add())

    view = viz.pipeline(Kernel())
    assert view.scene.title == "vector_add"
    assert view.scene.facet("line")["text"] == viz.pipeline(vector_add()).scene.facet("line")["text"]


def test_lines_are_linked_to_python_both_ways() -> None:
    scene = viz.pipeline(vector_add()).scene
    line, source = scene.facet("line"), scene.facet("source")
    stages = [s for s in vector_add() if s.changed]
    for row, number in enumerate(source.ints("number")):
        lit = set(scene.focus("source", row)["line"])
        assert lit == {k for k, n in enumerate(line.ints("source")) if n == number}
        shown = sum(line.ints("mark")[k] != REMOVED for k in lit)
        assert shown == sum(links.count(number) for links in (s.lines for s in stages))
    for row, number in enumerate(line.ints("source")):
        found = scene.focus("line", row).get("source", [])
        assert [source.ints("number")[k] for k in found] == ([number] if number else [])


def test_only_python_lines_that_reach_further_have_a_colour() -> None:
    source = viz.pipeline(vector_add()).scene.facet("source")
    ranks = dict(zip(source.ints("number"), source.ints("rank"), strict=True))
    assert ranks == {12: -1, 13: 0, 14: -1, 15: 1, 16: 2, 17: 3, 18: 4, 19: 5, 20: 6, 21: -1, 22: 7}


@given(TEXT, TEXT)
def test_the_marks_rebuild_both_texts(before: list[str], after: list[str]) -> None:
    scene = viz.pipeline([mlir("a", before), mlir("b", after)]).scene
    second = panes(scene)[1]
    if before == after:
        assert second.order == 0 and not second.rows
        return
    assert [row.text for row in second.rows if row.mark != REMOVED] == after
    assert [row.number for row in second.rows if row.mark != REMOVED] == list(range(len(after)))
    assert len(before) == sum(row.mark != ADDED for row in second.rows)
    assert (second.added, second.removed) == tuple(
        sum(row.mark == mark for row in second.rows) for mark in (ADDED, REMOVED))
    assert second.added or second.removed


def test_numbers_of_values_alone_are_no_change_beside_others() -> None:
    before = ["%0 = a.x", "%1 = a.dead", "%2 = a.y %0", "return %2"]
    after = ["%0 = a.x", "%1 = a.y %0", "return %1"]
    pane = panes(viz.pipeline([mlir("a", before), mlir("dce", after)]).scene)[1]
    assert [(row.text, row.mark) for row in pane.rows] == [
        ("%0 = a.x", SAME), ("%1 = a.dead", REMOVED), ("%1 = a.y %0", SAME), ("return %1", SAME)]


def test_quotes_that_the_rewriter_changed_are_no_change_beside_others() -> None:
    source = Stage("source", "python", "@kernel\nx = f(\"a\")\ny = x", (4, 5, 6))
    rewritten = Stage("rewritten", "python", "x = f('a')\ny = x", (5, 6))
    pane = panes(viz.pipeline([source, rewritten]).scene)[1]
    assert [(row.text, row.mark) for row in pane.rows] == [("@kernel", REMOVED), ("x = f('a')", SAME), ("y = x", SAME)]


def test_a_compilation_is_called_after_its_launcher() -> None:
    class Launcher:
        name = "launch"

    class Compiled:
        launcher = Launcher()

        def stages(self) -> Iterator[Stage]:
            yield from vector_add()

    assert viz.pipeline(Compiled()).scene.title == "launch"


def test_a_pass_that_only_rewires_values_is_shown() -> None:
    pane = panes(viz.pipeline([mlir("a", ["b.c %0", "d"]), mlir("swap", ["b.c %1", "d"])]).scene)[1]
    assert [(row.text, row.mark) for row in pane.rows] == [("b.c %0", REMOVED), ("b.c %1", ADDED), ("d", SAME)]


def test_changed_locations_alone_are_no_change() -> None:
    stages = [Stage(name, "mlir", f"%0 = a.b : i32 loc(#loc{k})\n", (k,)) for k, name in ((1, "a"), (2, "b"))]
    assert [pane.order for pane in panes(viz.pipeline(stages).scene)] == [1, 0]


def test_a_long_stage_is_cut_in_the_picture_and_whole_in_the_page() -> None:
    body = "\n".join(f"%{k} = arith.addi %{k}, %x : i32 @ 13" for k in range(440))
    view = viz.pipeline([*vector_add()[:1], stage("ir", "mlir", body), vector_add()[-1]])
    assert "… 413 more lines" in view.to_svg()
    assert "%439" not in view.to_svg() and "%439" in view.to_html()
    assert len(view.to_svg()) < 200_000


@given(TEXT, TEXT, st.integers(4, 20))
def test_an_excerpt_accounts_for_every_line(before: list[str], after: list[str], limit: int) -> None:
    pane = panes(viz.pipeline([mlir("a", before), mlir("b", [*after, "end"])]).scene)[1]
    rows = excerpt(pane, limit)
    assert len(rows) <= limit
    counted = sum(int(row.split()[1]) if isinstance(row, str) else row.mark != REMOVED for row in rows)
    hidden = sum(row.mark == REMOVED for row in pane.rows)
    assert pane.lines <= counted + hidden and counted <= pane.lines + hidden


def two_kernels() -> dict[str, Any]:
    """A cell with a helper, two kernels (lines 5 to 8 and 11 to 13) and their launcher, compiled."""
    names = cell("""
        def twice(A, i):
            return A[i] * 2.0

        @flyc.kernel
        def first(A: fx.Tensor):
            i = gpu.thread_id("x")
            x = twice(A, i)
            A[i] = x + 1.0

        @flyc.kernel
        def second(A: fx.Tensor):
            A[gpu.thread_id("x")] = 3.0

        @flyc.jit
        def launch(A: fx.Tensor):
            first(A).launch(grid=1, block=64)
            second(A).launch(grid=1, block=64)
    """)
    names["compiled"] = flyc.compile(names["launch"], np.zeros(64, np.float32))
    return names


@pytest.mark.parametrize(("name", "lines"), [("first", range(4, 9)), ("second", range(10, 13))])
def test_only_lines_of_the_source_pane_are_linked(name: str, lines: range) -> None:
    names = two_kernels()
    beyond = [s for s in names[name].stages() if s.language != "python"]
    assert {n for s in beyond for n in s.lines if n} - set(lines), "nothing is of another function here"
    view = viz.pipeline(names[name])
    assert set(view.scene.facet("source").ints("number")) == set(lines)
    badges = {int(n) for n in re.findall(r"<u[^>]*>(\d+)</u>", view.to_html())}
    assert badges == set(lines)
    shown = {pane.name: [row.source for row in pane.rows if row.mark != REMOVED]
             for pane in panes(view.scene) if pane.order and pane.language != "python"}
    assert {"ir", "llvm", "isa"} <= set(shown)
    for one in beyond:
        if one.name in shown:
            assert shown[one.name] == [n if n in lines else 0 for n in one.lines]


def test_a_called_functions_instructions_stand_among_the_kernels() -> None:
    names = two_kernels()
    isa = next(pane for pane in panes(viz.pipeline(names["first"]).scene) if pane.language == "isa")
    rows = excerpt(isa, 40)
    shown = [" ".join(row.text.split()) for row in rows if not isinstance(row, str)]
    kernel = names["compiled"].isa.kernels["first"]
    assert shown == [i.text for i in kernel.instructions]
    assert any(i.source[1] == 2 for i in kernel.instructions), "none is the helper's"
    others = [row for row in rows if isinstance(row, str)]
    assert len(others) == 2 and all(row.endswith("lines of other functions or of none") for row in others)


def test_the_summary_counts_instructions_and_not_directives() -> None:
    names = two_kernels()
    kernels = names["compiled"].isa.kernels
    count = sum(len(kernel.instructions) for kernel in kernels.values())
    assert repr(viz.pipeline(names["first"])).endswith(f"; 5 lines of Python became {count} instructions of 2 kernels")
    compiled = compile_body('A[gpu.thread_id("x")] = 1.0')
    [kernel] = compiled.isa.kernels.values()
    assert repr(viz.pipeline(compiled)).endswith(f" lines of Python became {len(kernel.instructions)} instructions")


@pytest.mark.parametrize("odd", ["\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\ud800"])
def test_lines_end_where_python_ends_them(odd: str, tmp_path: Path) -> None:
    source = f"x = 1  # a{odd}b\ny = 2\nz = 3\n"
    view = viz.pipeline([Stage("source", "python", source, (5, 6, 7)), Stage("isa", "isa", "s_nop 0", (7,))])
    pane = panes(view.scene)[0]
    assert [(row.text, row.source) for row in pane.rows] == [("x = 1  # a\ufffdb", 5), ("y = 2", 6), ("z = 3", 7)]
    view.save(tmp_path / "view.html")


@given(TEXT, TEXT)
def test_stages_of_one_name_are_told_apart(before: list[str], after: list[str]) -> None:
    named = [mlir("ir", ["start"]), mlir("canonicalize", before), mlir("canonicalize", after)]
    plain = [mlir("ir", ["start"]), mlir("one", before), mlir("two", after)]
    assert [pane.rows for pane in panes(viz.pipeline(named).scene)] == [
        pane.rows for pane in panes(viz.pipeline(plain).scene)]


def test_the_text_lists_the_passes() -> None:
    lines = viz.pipeline(vector_add(), title="add").to_text().splitlines()
    assert lines[0] == "add" and len(lines) == 17
    assert lines[2].split() == ["-", "rewritten", "no", "change"]
    assert lines[3].split() == ["2", "ir", "mlir", "26", "lines"]
    assert lines[5].split() == ["4", "fly-canonicalize", "mlir", "25", "lines", "+0", "-4"]


def test_a_single_stage_is_drawn() -> None:
    view = viz.pipeline([vector_add()[0]])
    assert repr(view) == "pipeline: 1 step, 1 shown; 11 lines of Python became 11 lines of Python"
    assert "vector_add" in view.to_svg()


@pytest.mark.parametrize(("call", "message"), [
    (lambda: viz.pipeline(3), "viz.pipeline draws a kernel with its stages, and this is int"),
    (lambda: viz.pipeline("source"), "and this is str"),
    (lambda: viz.pipeline(vector_add(), title=3), "title=3 is not a string"),
    (lambda: viz.pipeline([]), "there are no stages to draw"),
    (lambda: viz.pipeline(["x"]), "a pipeline is a sequence of Stage, and it holds str"),
])
def test_refusals(call, message: str) -> None:
    with pytest.raises(FlylabError) as caught:
        call()
    assert message in caught.value.message and caught.value.hint
