"""How handlers count the changes of memory that they make: never too few, and none where a value stays as it was."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.emulator import Program
from flylab.emulator.execution import run
from flylab.emulator.handlers.changes import counting
from flylab.emulator.handlers.ir import Builder
from flylab.emulator.handlers.record import HANDLER
from tests.emulator.toolchain import assembly

START = "  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32_e32 v1, 2, v0\n  v_mov_b32_e32 v6, 0\n"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[run.Run]:
    """The launches that were made."""
    found: list[run.Run] = []
    original = run.Run.run
    monkeypatch.setattr(run.Run, "run", lambda self: (found.append(self), original(self))[1])
    return found


def launched(runs: list[run.Run], body: str, memory: np.ndarray, block: int = 64, lds: int = 1024) -> int:
    """The changes that a kernel counts on an array."""
    text = assembly(START + body + "\n  s_endpgm", group_segment_fixed_size=lds)
    Program.from_assembly(text).launch(grid=1, block=block, args=[memory])
    return runs[-1].changes()


@pytest.mark.parametrize("body, wanted", [
    ("  v_mov_b32_e32 v2, v0\n  s_mov_b64 exec, 0x70\n  global_store_dword v1, v2, s[4:5]", 3),
    ("  s_mov_b64 exec, 0xf1\n  global_store_dword v1, v6, s[4:5]", 0),
    ("  s_mov_b64 exec, 0xf1\n  v_mov_b32_e32 v2, 9\n  global_store_byte v1, v2, s[4:5]", 5),
    ("  global_atomic_add v1, v0, s[4:5]", 63), ("  global_atomic_umax v1, v6, s[4:5]", 0),
    ("  global_atomic_or v6, v0, s[4:5]", 6), ("  global_atomic_swap v1, v6, s[4:5]", 0),
    ("  v_mov_b32_e32 v2, 5\n  v_mov_b32_e32 v3, 0\n  global_atomic_cmpswap v6, v[2:3], s[4:5]", 1),
    ("  v_mov_b32_e32 v2, 5\n  v_mov_b32_e32 v3, 4\n  global_atomic_cmpswap v6, v[2:3], s[4:5]", 0),
    ("  v_mov_b32_e32 v2, 0\n  v_mov_b32_e32 v3, 0\n  global_atomic_cmpswap v6, v[2:3], s[4:5]", 0),
    ("  s_mov_b64 exec, 3\n  v_mov_b32_e32 v2, 0xdeadbeef\n  ds_write_b32 v1, v2\n  ds_write_b32 v1, v2", 2),
    ("  global_load_dword v2, v1, s[4:5]\n  v_add_u32_e32 v2, v2, v1\n  ds_read_b32 v3, v1", 0),
])
def test_what_changes_is_counted(runs: list[run.Run], body: str, wanted: int) -> None:
    """By hand: the lanes that write another value than is there, of an array of zeros."""
    assert launched(runs, body, np.zeros(64, "i4")) == wanted


@pytest.mark.parametrize("body", [
    "  global_store_dword v1, v0, s[4:5]", "  ds_write_b32 v1, v0", "  ds_add_u32 v1, v0",
    "  v_lshlrev_b32_e32 v4, 3, v0\n  global_store_dwordx2 v4, v[0:1], s[4:5]",
    "  v_lshlrev_b32_e32 v4, 3, v0\n  ds_write_b64 v4, v[0:1]",
    "  s_mov_b64 exec, 1\n  v_mov_b32_e32 v2, 9\n  ds_write_b8 v1, v2"])
def test_a_change_is_never_missed(runs: list[run.Run], body: str) -> None:
    assert launched(runs, body, np.zeros(1024, "i4")) > 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=64, max_size=64), st.integers(0, (1 << 63) - 1))
def test_scattered_stores(values: list[int], lanes: int) -> None:
    """As many changes as there are active lanes whose value is another one; brute force."""
    memory = np.array([1, 2] * 32, "i4")
    source = np.array(values, "i4")
    wanted = int(sum(lanes >> n & 1 and memory[n] != source[n] for n in range(64)))
    both = np.concatenate([memory, source])
    body = (f"  global_load_dword v2, v1, s[4:5] offset:256\n  s_mov_b32 exec_lo, {lanes & 0xFFFFFFFF:#x}\n"
            f"  s_mov_b32 exec_hi, {lanes >> 32:#x}\n  global_store_dword v1, v2, s[4:5]")
    found: list[run.Run] = []
    original = run.Run.run
    run.Run.run = lambda self: (found.append(self), original(self))[1]  # type: ignore[method-assign,assignment,func-returns-value]
    try:
        assert launched(found, body, both) == wanted
    finally:
        run.Run.run = original  # type: ignore[method-assign]


def handler(*lines: str) -> str:
    b = Builder()
    for line in lines:
        b.do(line)
    b.do("ret i32 1")
    return b.function("h", HANDLER)


def counted(text: str) -> list[str]:
    """What is added to the changes, of each addition."""
    return re.findall(r"add i64 %changes\d+, (\S+)", counting(text).split("ret i32")[0].rpartition("getelementptr")[0])


def test_registers_the_record_and_the_worker_are_no_memory() -> None:
    text = handler("%a = getelementptr i8, ptr %v, i64 256", "%b = getelementptr i8, ptr %a, i64 %n",
                   "store i32 1, ptr %b, align 4", "store i64 2, ptr %w, align 8", "store i64 2, ptr %r, align 8",
                   "store <16 x i32> splat (i32 1), ptr %s, align 4")
    assert counting(text) == text


@pytest.mark.parametrize("line, wanted", [
    ("store i32 1, ptr %p, align 4", ["%changes3"]), ("store <4 x i32> %x, ptr %p, align 1", ["%changes5"]),
    ("store <64 x i32> %x, ptr %p, align 1", ["1"]), ("store float %x, ptr %p", ["1"]),
    ("store ptr %x, ptr %p", ["1"]), ("store atomic i32 1, ptr %p monotonic, align 4", ["1"]),
    ("call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 8, i1 false)", ["1"]),
    ("%x = atomicrmw add ptr %p, i32 %y seq_cst", ["%changes3"]),
    ("%x = cmpxchg ptr %p, i32 %y, i32 %z seq_cst seq_cst", ["%changes4"]),
])
def test_every_way_to_write(line: str, wanted: list[str]) -> None:
    text = handler("%p = inttoptr i64 %n to ptr", line)
    assert counted(text) == wanted
    assert counted(handler("%l = load ptr, ptr %w, align 8", "%p = getelementptr i8, ptr %l, i64 4", line)) == wanted


def test_a_block_of_many_stores_is_one_change() -> None:
    text = handler("%p = inttoptr i64 %n to ptr", *["store i32 1, ptr %p, align 4"] * 5)
    assert counted(text) == ["1"]


def test_other_functions_stay_as_they_are() -> None:
    text = handler("%p = inttoptr i64 %n to ptr", "store i32 1, ptr %p, align 4").replace("ptr %r, ", "")
    assert counting(text) == text
