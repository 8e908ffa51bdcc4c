"""Waits, priorities and scheduling: the instructions and comments that LLVM makes of each, and refusals."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from flylab.expr.rocdl.schedule import COUNTERS, waitcnt_code
from tests.samples import cell, kernel_of

# Each call with its intrinsic in LLVM IR. The wheel's numbers for these waits are the same.
CALLS = {
    "s_waitcnt(vmcnt=3)": "s.waitcnt(i32 3955)",
    "s_waitcnt(lgkmcnt=2, expcnt=1)": "s.waitcnt(i32 49695)",
    "s_waitcnt(fx.Int32(49695))": "s.waitcnt(i32 49695)",
    "cdna3.s_waitcnt(17)": "s.waitcnt(i32 20337)",
    "cdna3.s_waitcnt()": "s.waitcnt(i32 53119)",
    "wait_asyncmark()": "s.waitcnt(i32 3952)",
    "s_setprio(2)": "s.setprio(i16 2)",
    "s_sleep(9)": "s.sleep(i32 9)",
    "s_nop(4)": "s.nop(i16 4)",
    "s_barrier()": "s.barrier()",
    "sched_barrier(0)": "sched.barrier(i32 0)",
    "sched_barrier(0x7ff)": "sched.barrier(i32 2047)",
    "iglp_opt(1)": "iglp.opt(i32 1)",
    "sched_mfma(1)": "sched.group.barrier(i32 8, i32 1, i32 0)",
    "sched_dsrd(2)": "sched.group.barrier(i32 256, i32 2, i32 0)",
    "sched_dswr(3)": "sched.group.barrier(i32 512, i32 3, i32 0)",
    "sched_vmem(4)": "sched.group.barrier(i32 32, i32 4, i32 0)",
    "sched_group_barrier(0x10, 5, 6)": "sched.group.barrier(i32 16, i32 5, i32 6)",
}
# What is left of each as an instruction, in a kernel of its own.
INSTRUCTIONS = {
    "s_setprio(2)": "s_setprio 2",
    "s_sleep(9)": "s_sleep 9",
    "s_nop(4)": "s_nop 4",
    "s_barrier()": "s_barrier",
}


def compiled_with(calls: Iterable[str]) -> Any:
    """A kernel that makes these calls and writes a 7, run over two waves."""
    body = "\n".join(f"        fx.rocdl.{call}" for call in calls)
    launch = cell(f"""
    @flyc.kernel
    def k(A: fx.Tensor):
{body}
        A[fx.thread_idx.x] = 7.0

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=128)
    """)["launch"]
    A = np.zeros(128, np.float32)
    compiled = flyc.compile(launch, A)
    compiled(A)
    assert (A == 7).all()
    return compiled


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(request.param):
        yield


def test_each_call_is_its_intrinsic_in_order() -> None:
    text = str(compiled_with(CALLS).show("llvm"))
    assert re.findall(r"call void @llvm\.amdgcn\.(.*)", text) == list(CALLS.values())


@pytest.mark.parametrize("call", INSTRUCTIONS)
def test_each_call_is_its_instruction(call: str) -> None:
    lines = [" ".join(line.split()) for line in str(compiled_with([call]).show("isa")).splitlines()]
    assert lines.count(INSTRUCTIONS[call]) == 1


def test_a_wait_is_its_instruction() -> None:
    """LLVM drops a wait for less than can be open, and so the loads here are more."""
    names = kernel_of("""
        i = fx.thread_idx.x
        loaded = [A[i + 64 * k] for k in range_constexpr(4)]
        fx.rocdl.sched_barrier(0)
        fx.rocdl.s_waitcnt(vmcnt=2)
        fx.rocdl.sched_barrier(0)
        fx.rocdl.s_setprio(1)
        for k in range_constexpr(4):
            A[i + 64 * k] = loaded[k] + 1.0
    """)
    A = np.arange(256, dtype=np.float32)
    compiled = flyc.compile(names["launch"], A)
    compiled(A)
    assert np.array_equal(A, np.arange(1, 257))
    assert re.search(r"(global_load.*\n\s*){4}s_waitcnt vmcnt\(2\)\n\s*s_setprio 1\n", str(compiled.show("isa")))


def test_a_scheduling_barrier_holds_the_order() -> None:
    """Without it LLVM starts both loads first; with it the second load stays behind the first store."""
    orders = []
    for between in ("", "fx.rocdl.sched_barrier(0)"):
        names = kernel_of(f"""
            i = fx.thread_idx.x
            A[i + 64] = A[i] + 1.0
            {between or "pass"}
            A[i + 192] = A[i + 128] + 1.0
        """)
        A = np.arange(256, dtype=np.float32)
        compiled = flyc.compile(names["launch"], A)
        compiled(A)
        assert (A[64:128] == A[:64] + 1).all() and (A[192:] == A[128:192] + 1).all()
        orders.append(re.findall(r"global_(load|store)", compiled.code.assembly))
    assert orders == [["load", "load", "store", "store"], ["load", "store", "load", "store"]]


def test_the_wait_is_encoded_as_llvm_does() -> None:
    """Every counter alone and the three together, against LLVM's own assembler."""
    chosen = [*({name: n} for name, most in COUNTERS.items() for n in range(most + 1)),
              *({"vmcnt": v, "lgkmcnt": g, "expcnt": e} for v in (0, 15, 16, 63) for g in (0, 15) for e in (0, 7))]
    text = "\n".join("s_waitcnt " + " ".join(f"{k}({n})" for k, n in each.items()) for each in chosen)
    found = subprocess.run(["llvm-mc-22", "-triple=amdgcn", "-mcpu=gfx942", "-show-encoding"], input=text,
                           capture_output=True, text=True, check=True).stdout
    codes = [int(low, 16) | int(high, 16) << 8 for low, high in re.findall(r"encoding: \[0x(..),0x(..),", found)]
    assert codes == [waitcnt_code(**each) for each in chosen]


@pytest.mark.parametrize("call, message, hint", [
    ("s_waitcnt(vmcnt=64)", "a vmcnt of 64, and it goes from 0 to 63", "0 to 63"),
    ("s_waitcnt(lgkmcnt=-1)", "a lgkmcnt of -1", "0 to 15"),
    ("s_waitcnt(expcnt=8)", "a expcnt of 8", "0 to 7"),
    ("s_waitcnt(3, vmcnt=1)", "of a number and of vmcnt", "one or the other"),
    ("s_waitcnt(1 << 16)", "a bitfield of 65536", "0 to 65535"),
    ("s_setprio(4)", "a priority of 4", "0 to 3"),
    ("s_setprio(1.0)", "the priority is 1.0, and it takes an integer", "0 to 3"),
    ("sched_barrier(True)", "the mask is True, and it takes an integer", "0x8 (MFMA)"),
    ("sched_barrier(0x800)", "a mask of 2048", "0x100 (DS read)"),
    ("sched_group_barrier(8, -1, 0)", "a size of -1", "0 to"),
    ("iglp_opt(4)", "a variant of 4", "0 to 3"),
    ("s_sleep(128)", "a count of 128", "0 to 127"),
    ("wait_asyncmark(1)", "LLVM 22 does not count", "rocdl.s_waitcnt(vmcnt=n)"),
    ("sched_mfma(fx.thread_idx.x)", "of the device, and the instruction holds it", "Constexpr"),
])
def test_refusals(call: str, message: str, hint: str) -> None:
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        flyc.compile(kernel_of(f"fx.rocdl.{call}")["launch"], np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 3
    assert hint in str(caught.value.hint)


def test_only_in_a_kernel() -> None:
    with pytest.raises(TraceError, match="only has a meaning inside an @flyc.kernel"):
        fx.rocdl.s_barrier()
