"""The check of missing waits: real kernels with one s_waitcnt taken out or weakened, against an oracle; and by hand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from flylab.kernels.copy.transpose_swizzled import transpose
from flylab.kernels.copy.vector_copy import vector_copy
from flylab.kernels.gemm.tiled_mma import tiled_mma
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
from flylab.codegen.assembly.effects import effects
from flylab.codegen.isa import Instruction
from flylab.emulator import Program
from flylab.emulator.checks.pending import suspects
from flylab.emulator.debugger.begin import begin
from flylab.emulator.debugger.copies import Copies
from flylab.emulator.execution.geometry import Geometry
from flylab.errors import CheckError
from tests.emulator.checks.waits_oracle import unprotected
from tests.emulator.toolchain import CHIPS, assembly

Found = set[tuple[int, int]]


def _copy() -> list[np.ndarray]:
    a = np.arange(2048, dtype=np.int32)
    arrays = [a, np.zeros_like(a)]
    vector_copy(*arrays, VEC=4)
    return arrays


def _transpose() -> list[np.ndarray]:
    a = np.arange(64 * 64, dtype=np.float32).reshape(64, 64)
    arrays = [a, np.zeros_like(a)]
    transpose(*arrays, 64, 64)
    return arrays


def _gemm() -> list[np.ndarray]:
    arrays = [np.ones((64, 96), np.float16), np.ones((64, 96), np.float16), np.zeros((64, 64), np.float32)]
    tiled_mma(*arrays, 64, 64, 96)
    return arrays


KERNELS = {"vector copy": _copy, "transpose": _transpose, "tiled mma": _gemm}


@dataclass
class Recorded:
    """A launch of a real kernel that can be done again with other assembly, and what its first wave executes."""

    program: Program
    args: tuple[Any, ...]
    trace: list[int]
    arrays: list[np.ndarray]

    @property
    def instructions(self) -> tuple[Instruction, ...]:
        return self.program.isa.kernels[self.args[0]].instructions

    def text_with(self, edits: dict[int, str]) -> str:
        """The assembly with the instructions of these numbers replaced."""
        lines = self.program.isa.text.splitlines()
        for number, text in edits.items():
            lines[self.instructions[number].isa_line - 1] = f"\t{text}"
        return "\n".join(lines)

    def findings(self, edits: dict[int, str]) -> Found:
        """(load, use) that the check tells of."""
        program = Program.from_assembly(self.text_with(edits))
        try:
            program.launch_packed(*self.args, check=("waits",))
        except CheckError as error:
            assert all(f.kind == "missing wait" for f in error.findings)
            return {(f.others[0], f.instruction) for f in error.findings}
        return set()

    def expected(self, edits: dict[int, str]) -> Found:
        return unprotected((n, edits.get(n, self.instructions[n].text)) for n in self.trace)


def _record(run: Any, monkeypatch: pytest.MonkeyPatch) -> Recorded:
    launches: list[tuple[Program, tuple[Any, ...]]] = []
    launch_packed = Program.launch_packed

    def spy(self: Program, *args: Any, **named: Any) -> Any:
        launches.append((self, args))
        return launch_packed(self, *args, **named)

    monkeypatch.setattr(Program, "launch_packed", spy)
    arrays = run()
    monkeypatch.undo()
    ((program, args),) = launches
    kernel, grid, block, segment, buffers, shared = args[:6]
    geometry = Geometry.of(program.isa.kernels[kernel], grid, block, shared)
    debugger = begin(program, kernel, geometry, segment, Copies(buffers), 0, None, 1 << 20)
    trace = []
    while (instruction := debugger.instruction) is not None:
        trace.append(instruction.index)
        debugger.step()
    return Recorded(program, args, trace, arrays)


def _edits(instructions: tuple[Instruction, ...]) -> Iterator[dict[int, str]]:
    """Each wait taken out, and each of its counters weakened by one."""
    for instruction in instructions:
        if instruction.mnemonic == "s_waitcnt":
            yield {instruction.index: "s_nop 0"}
            for counter, count in re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", instruction.text):
                weaker = instruction.text.replace(f"{counter}({count})", f"{counter}({int(count) + 1})")
                yield {instruction.index: weaker}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", KERNELS)
def test_each_wait_that_is_taken_out_of_a_real_kernel_is_told(
        name: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with flylab.use(chip):
        recorded = _record(KERNELS[name], monkeypatch)
    assert recorded.findings({}) == recorded.expected({}) == set()
    wanted = {}
    for edit in _edits(recorded.instructions):
        wanted[str(edit)] = recorded.expected(edit)
        assert recorded.findings(edit) == wanted[str(edit)], edit
    assert sum(map(bool, wanted.values())) >= 2


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", KERNELS)
def test_compiled_kernels_are_proven_before_the_launch(name: str, chip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of them needs watching but, where there is LDS, the counters."""
    with flylab.use(chip):
        recorded = _record(KERNELS[name], monkeypatch)
    for kernel in recorded.program.isa.kernels.values():
        every = [effects(i, kernel.target) for i in kernel.instructions]
        found = suspects([i.mnemonic for i in kernel.instructions], [i.operands for i in kernel.instructions],
                         kernel.labels, every)
        assert not found.registers
    assert recorded.expected({i.index: "s_nop 0" for i in recorded.instructions if i.mnemonic == "s_waitcnt"})


HEAD = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  v_mov_b32_e32 v9, 0
  s_waitcnt lgkmcnt(0)
"""


def _told(body: str, chip: str = "gfx942", head: str = HEAD) -> list[tuple[str, str, int, str]]:
    """Of each finding: registers, counter and count of the wait that would do, and the text of the use."""
    text = assembly(head + body + "\n  s_endpgm\n", chip, vgprs=32, group_segment_fixed_size=4096)
    program = Program.from_assembly(text)
    try:
        program.launch(grid=1, block=64, args=[np.zeros(1024, "i4")], check=("waits",))
    except CheckError as error:
        instructions = program.isa.kernels["k"].instructions
        return [(f.details["registers"], f.details["counter"], f.details["count"], instructions[f.instruction].text)
                for f in error.findings]
    return []


LOAD, LOAD2 = "global_load_dword v2, v1, s[4:5]", "global_load_dword v3, v1, s[4:5] offset:4"
USE = "v_add_u32_e32 v8, 1, v2"


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("body, wanted", [
    # In order: a wait for all but the later ones will do. Stores count too.
    (f"{LOAD}\n {LOAD2}\n s_waitcnt vmcnt(1)\n {USE}", []),
    (f"{LOAD}\n {LOAD2}\n s_waitcnt vmcnt(2)\n {USE}", [("v2", "vmcnt", 1, USE)]),
    (f"{LOAD}\n global_store_dword v1, v9, s[4:5]\n s_waitcnt vmcnt(1)\n {USE}", []),
    (f"{LOAD}\n global_store_dword v1, v2, s[4:5]", [("v2", "vmcnt", 0, "global_store_dword v1, v2, s[4:5]")]),
    # Once told, a register counts as arrived; another register of the same load does not.
    ("global_load_dwordx2 v[2:3], v1, s[4:5]\n v_mov_b32_e32 v8, v2\n v_mov_b32_e32 v8, v2\n v_mov_b32_e32 v8, v3",
     [("v2", "vmcnt", 0, "v_mov_b32_e32 v8, v2"), ("v3", "vmcnt", 0, "v_mov_b32_e32 v8, v3")]),
    # Overwriting: by a load that comes back later, no; by anything else, yes.
    (f"{LOAD}\n {LOAD}\n s_waitcnt vmcnt(0)\n {USE}", []),
    (f"{LOAD}\n v_mov_b32_e32 v2, 0", [("v2", "vmcnt", 0, "v_mov_b32_e32 v2, 0")]),
    (f"{LOAD}\n ds_read_b32 v2, v9", [("v2", "vmcnt", 0, "ds_read_b32 v2, v9")]),
    ("ds_read_b32 v2, v9\n ds_read_b32 v2, v9\n s_waitcnt lgkmcnt(0)", []),
    (f"{LOAD}\n global_load_short_d16_hi v2, v1, s[4:5]\n s_waitcnt vmcnt(0)", []),
    # LDS is in order, scalar memory is not, nor both together.
    ("ds_read_b32 v2, v9\n ds_read_b32 v3, v9\n s_waitcnt lgkmcnt(1)\n v_mov_b32_e32 v8, v2", []),
    ("ds_read_b32 v2, v9\n s_load_dword s6, s[4:5], 0x0\n s_waitcnt lgkmcnt(1)\n v_mov_b32_e32 v8, v2",
     [("v2", "lgkmcnt", 0, "v_mov_b32_e32 v8, v2")]),
    ("s_load_dwordx2 s[6:7], s[4:5], 0x0\n s_load_dword s8, s[4:5], 0x8\n s_waitcnt lgkmcnt(1)\n s_mov_b64 vcc, s[6:7]",
     [("s[6:7]", "lgkmcnt", 0, "s_mov_b64 vcc, s[6:7]")]),
    ("s_memtime vcc\n s_nop 0\n v_cndmask_b32_e32 v8, v1, v1, vcc",
     [("vcc", "lgkmcnt", 0, "v_cndmask_b32_e32 v8, v1, v1, vcc")]),
    ("s_load_dword s6, s[4:5], 0x0\n s_load_dword s6, s[4:5], 0x4\n s_waitcnt lgkmcnt(0)",
     [("s6", "lgkmcnt", 0, "s_load_dword s6, s[4:5], 0x4")]),
    # Flat memory raises both counters and comes back in any order.
    (f"v_mov_b32_e32 v4, s4\n v_mov_b32_e32 v5, s5\n flat_load_dword v2, v[4:5]\n s_waitcnt vmcnt(0)\n {USE}",
     [("v2", "lgkmcnt", 0, USE)]),
    (f"{LOAD}\n v_mov_b32_e32 v4, s4\n v_mov_b32_e32 v5, s5\n flat_load_dword v3, v[4:5]\n s_waitcnt vmcnt(1)\n {USE}",
     [("v2", "vmcnt", 0, USE)]),
    # Neither a barrier nor a jump waits, and the end needs no wait.
    (f"{LOAD}\n s_barrier\n {USE}", [("v2", "vmcnt", 0, USE)]),
    (LOAD, []),
    # By number, as LLVM's assembler encodes vmcnt(0) and lgkmcnt(0) alone.
    (f"{LOAD}\n s_waitcnt 0xf70\n {USE}", []),
    (f"{LOAD}\n s_waitcnt 0xc07f\n {USE}", [("v2", "vmcnt", 0, USE)]),
    # Atomics that return fill a register; those that do not fill none.
    ("global_atomic_add v2, v1, v9, s[4:5] sc0\n v_mov_b32_e32 v8, v2", [("v2", "vmcnt", 0, "v_mov_b32_e32 v8, v2")]),
    ("global_atomic_add v1, v9, s[4:5]\n v_mov_b32_e32 v8, v9", []),
    ("ds_bpermute_b32 v2, v1, v9\n v_mov_b32_e32 v8, v2", [("v2", "lgkmcnt", 0, "v_mov_b32_e32 v8, v2")]),
    # Loads to LDS fill no register.
    ("s_mov_b32 m0, 0\n global_load_lds_dword v1, s[4:5]\n v_mov_b32_e32 v8, v2", []),
])
def test_by_hand(body: str, wanted: list[tuple[str, str, int, str]], chip: str) -> None:
    assert _told(body, chip) == wanted


def test_only_lanes_that_a_load_fills_are_pending() -> None:
    half = f"s_mov_b64 exec, 0xffff\n {LOAD}\n s_mov_b64 exec, {{}}\n {{}}"
    assert _told(half.format("-1", USE)) == [("v2", "vmcnt", 0, USE)]
    assert _told(half.format("0xff0000", USE)) == []
    assert _told(half.format("0xff0000", "v_readlane_b32 s6, v2, 0")) == [
        ("v2", "vmcnt", 0, "v_readlane_b32 s6, v2, 0")]
    # A load with no lane counts, and fills nothing.
    nothing = f"s_mov_b64 exec, 0\n {LOAD}\n s_mov_b64 exec, -1\n {{}}"
    assert _told(nothing.format(USE)) == []
    assert _told(f"{LOAD}\n" + nothing.format(f"s_waitcnt vmcnt(1)\n {USE}")) == []
    # Both halves of a branch fill their lanes, and both are pending after it.
    halves = half.format("0xffff0000", f"{LOAD}\n s_mov_b64 exec, 0xff\n {USE}")
    assert _told(halves) == [("v2", "vmcnt", 0, USE)]


def test_a_way_around_the_wait_is_told_only_where_it_is_taken() -> None:
    body = f"{LOAD}\n s_cmp_eq_u32 s2, {{}}\n s_cbranch_scc1 skip\n s_waitcnt vmcnt(0)\nskip:\n {USE}"
    assert _told(body.format(0)) == [("v2", "vmcnt", 0, USE)]
    assert _told(body.format(1)) == []


def test_a_loop_that_loads_ahead() -> None:
    """Two loads are on their way around the loop: a wait for all but one is enough, one for all but two is not."""
    body = f"""s_mov_b32 s6, 3
 {LOAD}
loop:
 {LOAD2}
 s_waitcnt vmcnt({{}})
 {USE}
 {LOAD}
 s_waitcnt vmcnt(1)
 v_add_u32_e32 v8, 1, v3
 s_sub_u32 s6, s6, 1
 s_cmp_lg_u32 s6, 0
 s_cbranch_scc1 loop
"""
    assert _told(body.format(1)) == []
    assert _told(body.format(2)) == [("v2", "vmcnt", 1, USE)] * 2  # of two loads


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("load, more, counter, most", [
    (LOAD, "global_store_dword v1, v9, s[4:5]", "vmcnt", 63),
    ("ds_read_b32 v2, v9", "ds_write_b32 v9, v1", "lgkmcnt", 15)])
def test_a_full_counter_waits_by_itself(load: str, more: str, counter: str, most: int, chip: str) -> None:
    """vmcnt has 6 bits and lgkmcnt 4: with as many operations behind it, a load is back. LLVM counts on it."""
    assert _told(f"{load}\n" + f"{more}\n" * (most - 1) + USE, chip) == [("v2", counter, most - 1, USE)]
    assert _told(f"{load}\n" + f"{more}\n" * most + USE, chip) == []
    # What comes back in any order may be the one that made room.
    scalar = "s_load_dword s6, s[4:5], 0x0\n"
    told = _told(f"{load}\n{scalar}" + f"{more}\n" * most + USE, chip)
    assert told == ([] if counter == "vmcnt" else [("v2", "lgkmcnt", 0, USE)])


def test_calls_are_watched_everywhere() -> None:
    body = f"""{LOAD}
 s_getpc_b64 s[8:9]
 s_add_u32 s8, s8, 20
 s_addc_u32 s9, s9, 0
 s_swappc_b64 s[30:31], s[8:9]
 s_waitcnt vmcnt(0)
 s_endpgm
 {USE}
 s_setpc_b64 s[30:31]
"""
    assert _told(body) == [("v2", "vmcnt", 0, USE)]


def test_the_words_of_a_finding() -> None:
    text = assembly(f"{HEAD}{LOAD}\n {USE}\n s_endpgm\n")
    with pytest.raises(CheckError) as caught:
        Program.from_assembly(text).launch(grid=3, block=64, args=[np.zeros(64, "i4")], check=("waits",))
    lines = str(caught.value).splitlines()
    does = "is used before the load that fills it has been waited for"
    assert lines[0] == f"v2 {does}: '{LOAD}' (byte 0x14, ISA line 11)"
    thread = "block (0, 0, 0), thread (0, 0, 0)"
    assert lines[1].strip() == f"in {thread} of kernel 'k', at '{USE}' (byte 0x1c, ISA line 12)"
    assert lines[-1] == "hint: s_waitcnt vmcnt(0) before it would do"


_OPERATIONS = st.sampled_from([
    "global_load_dword v{a}, v1, s[4:5]", "global_load_dwordx2 v[{e}:{f}], v1, s[4:5]", "ds_read_b32 v{a}, v9",
    "global_store_dword v1, v{a}, s[4:5]", "ds_write_b32 v9, v{a}", "s_load_dword s{s}, s[4:5], 0x0",
    "v_add_u32_e32 v{a}, v{b}, v{c}", "v_mov_b32_e32 v{a}, s{s}", "s_add_u32 s{s}, s{s}, 1", "s_waitcnt vmcnt({n})",
    "s_waitcnt lgkmcnt({n})", "s_waitcnt vmcnt({n}) lgkmcnt({m})", "s_barrier"])
_SMALL = st.integers(0, 3)


@st.composite
def _line(draw: st.DrawFn) -> str:
    even = 2 * draw(st.integers(5, 6))
    places = {name: 10 + draw(_SMALL) for name in "abc"}
    return draw(_OPERATIONS).format(e=even, f=even + 1, s=10 + draw(_SMALL), n=draw(_SMALL), m=draw(_SMALL), **places)


@settings(max_examples=60, deadline=None)
@given(st.lists(_line(), min_size=4, max_size=24), st.integers(1, 3))
def test_random_programs_are_told_of_as_the_oracle_has_it(lines: list[str], rounds: int) -> None:
    """Straight on, and around a loop."""
    head = [line.strip() for line in HEAD.strip().splitlines()] + [f"s_mov_b32 s8, {rounds}"]
    tail = ["s_sub_u32 s8, s8, 1", "s_cmp_lg_u32 s8, 0", "s_cbranch_scc1 again", "s_endpgm"]
    body = [*lines, *tail[:-1]]
    trace = [*enumerate(head), *[(len(head) + n, t) for _ in range(rounds) for n, t in enumerate(body)]]
    text = assembly("\n".join([*head, "again:", *body, "s_endpgm"]) + "\n", vgprs=32, group_segment_fixed_size=4096)
    found: Found = set()
    try:
        Program.from_assembly(text).launch(grid=1, block=64, args=[np.zeros(1024, "i4")], check=("waits",))
    except CheckError as error:
        found = {(f.others[0], f.instruction) for f in error.findings}
    assert found == unprotected(trace)
