"""The short form of MLIR, line by line, and the colouring of words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.passes.recording import LANGUAGES
from flylab.viz.code import short_mlir, spans

LINES = [
    ('%3 = "fly.slice"(%1, %2) : (!fly.layout<"(8,16):(1,8)">, !fly.int_tuple<"(*,?)">) -> !fly.layout<"8:1">',
     "%3 = fly.slice %1, %2 : layout<8:1>"),
    ('"fly.store"(%16, %13) {width = 32 : i32} : (vector<1xf32>, !fly.memref<"f32, global, 1:0">) -> ()',
     "fly.store %16, %13 {width = 32 : i32}"),
    ('%0 = "fly.static"() : () -> !fly.int_tuple<"(4,(2,?))">', "%0 = fly.static : int_tuple<(4,(2,?))>"),
    ('%8 = "fly.make_coord"(%0, %1) <{operandSegmentSizes = array<i32: 2, 0>}> : (index, index) -> index',
     "%8 = fly.make_coord %0, %1 : index"),
    ('%5:2 = "scf.for"(%a, %b, %c, %d, %e) ({', "%5:2 = scf.for %a, %b, %c, %d, %e {"),
    ('"gpu.func"() <{function_type = (!llvm.ptr<1>) -> ()}> ({', "gpu.func {function_type = (ptr<1>) -> ()} {"),
    ('"cf.cond_br"(%c, %a)[^bb1, ^bb2] <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (i1, i32) -> ()',
     "cf.cond_br %c, %a [^bb1, ^bb2]"),
    ('  }) {gpu.kernel, sym_name = "k"} : () -> ()', "  }"),
    ("  }, {", "  }, {"),
    ('^bb0(%arg0: !fly.memref<"f32, global, 8:1">):', "^bb0(%arg0: memref<f32, global, 8:1>):"),
    ("%4 = arith.addi %2, %3 : i32 loc(#loc5)", "%4 = arith.addi %2, %3 : i32"),
    ('%4 = arith.addi %2, %3 : i32 loc("k.py":18:4)', "%4 = arith.addi %2, %3 : i32"),
    ('%4 = arith.addi %2, %3 : i32 loc(callsite("f"("k.py":1:2) at "k.py":3:4))', "%4 = arith.addi %2, %3 : i32"),
    ('#loc5 = loc("k.py":18:4)', '#loc5 = loc("k.py":18:4)'),
    ('%1 = "fly.print"(%0) <{format = "a ) {b"}> : (i32) -> i32', '%1 = fly.print %0 {format = "a ) {b"} : i32'),
    ('%1:2 = "fly.split"(%0) : (i32) -> (i32, !fly.layout<"8:1">)', "%1:2 = fly.split %0 : (i32, layout<8:1>)"),
    ('"fly.broken"(%0', '"fly.broken"(%0'),
    ("", ""),
]


@pytest.mark.parametrize(("line", "short"), LINES)
def test_short_form(line: str, short: str) -> None:
    assert short_mlir(line) == short
    assert short_mlir("    " + line) == ("    " + short).rstrip()


PIECES = st.sampled_from(['"fly.a"', "(", ")", "<{", "}>", "({", "})", "%0", " = ", ", ", " : ", "->", '"', "loc(", "x",
                          '!fly.layout<"8:1">', "{a = 1}", "[^bb1]", "\\"])


@given(st.lists(PIECES, max_size=14).map("".join))
def test_no_text_breaks_the_short_form(line: str) -> None:
    short = short_mlir(line)
    assert "\n" not in short and len(short) <= len(line) + 4


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])), st.sampled_from(LANGUAGES))
def test_the_spans_are_the_line(line: str, language: str) -> None:
    assert "".join(text for text, _ in spans(line, language)) == line


@pytest.mark.parametrize(("language", "line", "text", "role"), [
    ("python", "tid = x  # note", "# note", "muted"), ("python", "for i in y:", "for", "word"),
    ("mlir", "%0 = fly.load %1 {width = 32} : vector<1xf32>", " : vector<1xf32>", "muted"),
    ("mlir", "%0 = fly.load %1 {width = 32} : f32", "fly.load", "word"),
    ("llvm", "  %4 = load float, ptr %9, align 4", "load", "word"), ("llvm", "  ret void", "  ret", "word"),
    ("isa", "\ts_waitcnt vmcnt(0)", "\ts_waitcnt", "word"), ("isa", "\t.p2align 8", "\t.p2align 8", "muted"),
])
def test_words_have_their_colour(language: str, line: str, text: str, role: str) -> None:
    assert (text, role) in spans(line, language)
