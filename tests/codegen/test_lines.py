"""Lines for what LLVM put in by itself: the rule by brute force, and in texts of LLVM's."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import flylab.compiler as flyc
from flylab.codegen.isa import Isa
from flylab.codegen.lines import attributed, with_lines
from flylab.targets import target
from tests.samples import cell

CHIP = target("gfx942")

PLACES = st.lists(st.tuples(st.sampled_from([None, None, 1, 2, 3, 4]), st.booleans()), min_size=1, max_size=12)


def by_definition(places, starts, number):
    """The place of one instruction, as the module's text says."""
    if places[number] is not None:
        return places[number]
    begin = max((n for n in range(number + 1) if starts[n]), default=0)
    end = min((n for n in range(number + 1, len(places)) if starts[n]), default=len(places))
    before = [place for place in places[begin:number] if place is not None]
    behind = [place for place in places[number:end] if place is not None]
    earlier = [place for place in places[:begin] if place is not None]
    if before:
        return before[-1]
    if behind:
        return behind[0]
    # A block without a place goes on with what the text before it has, or begins with the first place of all.
    if begin:
        return by_definition(places, starts, begin - 1)
    assert not earlier
    return next((place for place in places if place is not None), None)


@given(PLACES)
def test_the_rule(pairs):
    places, starts = [place for place, _ in pairs], [start for _, start in pairs]
    assert attributed(places, starts) == [by_definition(places, starts, number) for number in range(len(places))]


TEXT = """\
k:
	.file	1 "/lab" "k.py"
	.loc	1 3 5 prologue_end
	s_load_dword s0, s[0:1], 0x0
	s_cbranch_execz .LBB0_2
	.loc	1 4 7
	ds_write_b32 v1, v2
	.loc	1 0 7 is_stmt 0
	v_mov_b32_e32 v3, v2
.LBB0_2:
	.loc	1 0 5
	s_or_b64 exec, exec, s[2:3]
	.file	2 "/lab" "helper.py"
	.loc	2 9 1
	v_mov_b32_e32 v4, v2
	s_branch .LBB0_3
.Ltmp5:
	.loc	1 0 1
	s_nop 0
.LBB0_3:
	s_endpgm
.Lfunc_end0:
	.size	k, .Lfunc_end0-k
other:
	.loc	1 0 1
	s_nop 1
	.loc	1 20 1
	s_endpgm
	.amdgpu_metadata
---
amdhsa.version:
  - 1
...
	.end_amdgpu_metadata"""


def places(text):
    """The line in force at each instruction; a file must be declared before."""
    files, found, place = set(), [], None
    for line in text.partition(".amdgpu_metadata")[0].splitlines():
        words = line.split() or ["."]
        if words[0] == ".file":
            assert words[1] not in files
            files.add(words[1])
        elif words[0] == ".loc":
            assert words[1] in files
            place = (words[1], int(words[2])) if int(words[2]) else None
        elif line.startswith("\t") and words[0][0] != ".":
            found.append((words[0], place))
    return found


def test_a_text():
    text = with_lines(TEXT, CHIP)
    assert places(text) == [
        ("s_load_dword", ("1", 3)), ("s_cbranch_execz", ("1", 3)), ("ds_write_b32", ("1", 4)),
        ("v_mov_b32_e32", ("1", 4)),        # of several lines: that before it
        ("s_or_b64", ("2", 9)),             # begins a block: the first behind it
        ("v_mov_b32_e32", ("2", 9)), ("s_branch", ("2", 9)), ("s_nop", ("2", 9)), ("s_endpgm", ("2", 9)),
        ("s_nop", ("1", 20)), ("s_endpgm", ("1", 20))]

    def rest(text):
        return [line for line in text.splitlines() if not line.strip().startswith((".file", ".loc"))]

    assert rest(text) == rest(TEXT) and "prologue_end" in text
    assert with_lines(text, CHIP) == text


def test_a_function_without_any_line_stays_without():
    text = "k:\n\t.file 1 \"k.py\"\n\t.loc\t1 7\n\ts_endpgm\nf:\n\t.loc\t1 0 0\n\ts_nop 0\n\ts_endpgm"
    assert with_lines(text, CHIP) == text and [place for _, place in places(text)] == [("1", 7), None, None]


HELPER = cell("# its lines are none of the kernel's\n" * 30 + """def pick(c, A, i):
    x = fx.Float32(0.0)
    if c:
        x = A[i]
    return x
""")
KERNEL = """
@flyc.kernel
def k(A: fx.Tensor):
    t = fx.thread_idx.x
    x = pick(A[t] > 1.0, A, t + 64)
    A[t] = x + pick(x > 4.0, A, t + 128)

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""


def test_a_line_of_a_helpers_file_is_no_line_of_the_kernels():
    """What a branch gives has the place of the branch, which may be in another file than the kernel."""
    names = cell("pick = None\n" + KERNEL)
    names["pick"] = HELPER["pick"]
    compiled = flyc.compile(names["launch"], np.zeros(256, np.float32))
    kernel = next(iter(Isa.parse(compiled.code.assembly).kernels.values()))
    lines = {(i.source[0], i.source[1]) for i in kernel.instructions if i.source}
    assert {file for file, _ in lines} == {names["FILE"], HELPER["FILE"]}
    assert {line for file, line in lines if file == HELPER["FILE"]} <= set(range(31, 36))
    # The kernel's lines, with the line before them: all that it has are in its body or where it ends.
    assert {line for file, line in lines if file == names["FILE"]} <= set(range(3, 9))
    assert all(i.source for i in kernel.instructions)
