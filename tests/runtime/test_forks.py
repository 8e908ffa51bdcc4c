"""Processes that are forked, spawned or interrupted while others compile and launch: each goes on for itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.notebooks import ROOT

KERNELS = """
import numpy as np
import flylab
import flylab.compiler as flyc
import flylab.expr as fx

@flyc.kernel
def k(A: fx.Tensor, v: fx.Float32):
    A[fx.block_idx.x * 64 + fx.thread_idx.x] = v

@flyc.jit
def launch(A: fx.Tensor, v: fx.Float32):
    k(A, v).launch(grid=2, block=64)

def right(v, n=128):
    A = np.zeros(n, np.float32)
    launch(A, v)
    return bool((A[:128] == v).all() and not A[128:].any())
"""
WORKERS = """
import multiprocessing, sys
from kernels_here import right

class Data:
    def __len__(self):
        return 6

    def __getitem__(self, number):
        assert right(number, 128 + 64 * number)
        return float(number)

def work(number):
    return right(number) and right(number, 128 + number)

if __name__ == "__main__":
    assert right(1.0)
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(work, range(6)) == [True] * 6
    if sys.argv[1] == "fork":
        from torch.utils.data import DataLoader
        assert [batch.tolist() for batch in DataLoader(Data(), 2, num_workers=2)] == [[0, 1], [2, 3], [4, 5]]
    print("right", right(2.0))
"""
FORKED = """
import faulthandler, os, threading, time
from kernels_here import right
begin = threading.Event()

def busy():
    begin.set()
    number = 0
    while True:
        right(1.0, 128 + 64 * (number % 40))
        number += 1

for _ in range(3):
    threading.Thread(target=busy, daemon=True).start()
begin.wait()
for number in range(10):
    time.sleep(0.1)
    child = os.fork()
    if child == 0:
        faulthandler.dump_traceback_later(60, exit=True)
        os._exit(0 if right(2.0) and right(3.0, 128 + number) else 1)
    print(os.waitpid(child, 0)[1], flush=True)
os._exit(0)
"""


def script(folder: Path, text: str, *arguments: str, **environment: str) -> str:
    (folder / "kernels_here.py").write_text(KERNELS)
    (folder / "program.py").write_text(text)
    path = os.pathsep.join([str(ROOT), str(folder)])
    command = [sys.executable, "-W", "ignore::DeprecationWarning"]  # Python 3.12 warns of any fork beside threads
    done = subprocess.run([*command, "program.py", *arguments], cwd=folder, text=True, capture_output=True,
                          timeout=300, env={**os.environ, "PYTHONPATH": path, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers(method: str, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    if method != "spawn" and not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    assert script(tmp_path, WORKERS, method) == "right True\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("cached", ["0", "1"])
def test_a_fork_at_any_time(cached: str, tmp_path: Path) -> None:
    """While other threads import, compile, read the cache and launch."""
    assert script(tmp_path, FORKED, FLYLAB_RUNTIME_ENABLE_CACHE=cached) == "0\n" * 10
