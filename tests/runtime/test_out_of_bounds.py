"""Accesses outside of a tensor in kernels of the language: what the error says, on both chips."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
from flylab.errors import OutOfBounds
from tests.samples import cell, kernel_of

ROOT = Path(__file__).resolve().parents[2]
BOTH = "A: fx.Tensor, B: fx.Tensor"


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.delenv("FLYLAB_CHECK", raising=False)
    monkeypatch.setenv("FLYLAB_DEVICE", f"emulated:{request.param}")
    return str(request.param)


def test_a_row_with_and_without_its_mask() -> None:  # D05
    masked = kernel_of("t = fx.thread_idx.x\nif t < 3:\n    A[t] = A[t] + 1.0", block=4)["launch"]
    masked(row := np.zeros(3, np.float32))
    assert row.tolist() == [1, 1, 1]
    bare = kernel_of("t = fx.thread_idx.x\nA[t] = A[t] + 1.0", block=4)["launch"]
    with pytest.raises(OutOfBounds) as caught:
        bare(np.zeros(3, np.float32))
    assert "right after the end of 'A' (shape (3,), strides (1,), f32), at element 3, and dim" in str(caught.value)
    assert "block (0, 0, 0), thread (3, 0, 0)" in str(caught.value) and caught.value.where.line == 4


def test_the_views_of_users() -> None:  # D04
    double = kernel_of("t = fx.thread_idx.x\nB[t] = A[t]", BOTH, block=4)["launch"]
    base, out = np.arange(5, dtype=np.float32), np.zeros(4, np.float32)
    with pytest.raises(OutOfBounds, match=r"of 'A' \(shape \(3,\), strides \(2,\), f32\), at element 3, and dim"):
        double(base[::2], out)
    flat = kernel_of("""
        p = fx.get_iter(A)
        t = fx.thread_idx.x
        B[t] = p[t]
    """, BOTH, block=4)["launch"]
    with pytest.raises(OutOfBounds, match=r"between the elements of 'A' .*, 4 bytes after the start of element 0"):
        flat(base[::2], out)
    with flylab.watch(check=None):
        flat(base[::2], out)
    assert out.tolist() == [0, 1, 2, 3]
    flat(np.broadcast_to(np.arange(4, dtype=np.float32), (3, 4)), out)
    part = np.arange(20, dtype=np.float32).reshape(4, 5)[1:3, 1:4]
    with pytest.raises(OutOfBounds, match=r"of 'A' \(shape \(2, 3\), strides \(5, 1\), f32\), at element \(0, 3\)"):
        flat(part, out)


def test_what_a_buffer_cuts_off() -> None:
    launch = kernel_of("t = fx.thread_idx.x\nB[t] = fx.rocdl.make_buffer_tensor(A)[t]", BOTH)["launch"]
    A, B = np.ones(10, np.float32), np.ones(64, np.float32)
    assert launch(A, B).reports[0].clamped == 54
    assert B.tolist() == [1] * 10 + [0] * 54
    with flylab.watch(check="all"), pytest.raises(OutOfBounds) as caught:
        launch(A, B)
    assert "cut off by its buffer descriptor: right after the end of 'A' (shape (10,)" in str(caught.value)
    assert "thread (10, 0, 0)" in str(caught.value) and caught.value.where.line == 4


def test_a_launcher_gets_addresses_of_the_device() -> None:
    """The same for each launch, however the arrays lie on the host."""
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor):
            fx.recast_iter(fx.Int64, fx.get_iter(B))[0] = fx.ptrtoint(fx.get_iter(A))

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor):
            k(A, B).launch(grid=1, block=1)
    """)
    found = []
    keep: list[Any] = []
    for _ in range(3):
        memory = np.zeros(1 << 14, np.uint8)
        keep.append(memory)
        a, b = (memory[at:][:256].view(np.float32) for at in (0, 4096))
        names["launch"](a, b)
        found.append(int(b.view(np.int64)[0]))
    assert found == [1 << 44] * 3


def test_the_second_statement_of_a_loop_in_a_cell() -> None:  # D09
    pytest.importorskip("IPython")
    text = """
        import numpy as np
        import flylab.compiler as flyc, flylab.expr as fx

        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor):
            t = fx.thread_idx.x
            for i in range(4):
                x = A[t]
                B[t + 16 * i] = x + 1.0

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor):
            k(A, B).launch(grid=2, block=16)

        launch(np.zeros(16, np.float32), np.zeros(60, np.float32))
    """
    script = textwrap.dedent(f"""
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.history_manager.enabled = False
        shell.run_cell({textwrap.dedent(text).strip()!r}, store_history=True)
    """)
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr
    assert "OutOfBounds\x1b[39m: cell In[1], line 9, in k\n    B[t + 16 * i] = x + 1.0\n" in done.stdout
    assert "right after the end of 'B' (shape (60,), strides (1,), f32), at element 60, and dimension 0" in done.stdout
    assert "block (0, 0, 0), thread (12, 0, 0)" in done.stdout
