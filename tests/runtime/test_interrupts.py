"""Ctrl-C (the stop button) in a real notebook kernel: at once, the session lives, and the next call is right."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notebooks import Notebook, notebook

CELL = """
import time
from flylab.codegen import amdgpu
from flylab.runtime.cache import file_lock, store

@flyc.kernel
def k(A: fx.Tensor, v: fx.Constexpr[float]):
    A[fx.thread_idx.x] = v

@flyc.jit
def launch(A: fx.Tensor, v: fx.Constexpr[float]):
    k(A, v).launch(grid=1, block=64)

@flyc.kernel
def endless(A: fx.Tensor):
    i = fx.Int32(0)
    while A[0] == 0.0:
        i += 1
        A[1] = i.to(fx.Float32)

@flyc.jit
def launch_endless(A: fx.Tensor):
    endless(A).launch(grid=1, block=64)

def right(v):
    A = np.zeros(64, np.float32)
    launch(A, v)
    return bool((A == v).all())

def slowly(function, *arguments, seconds=1.0):
    print("in the middle", flush=True)
    time.sleep(seconds)
    return function(*arguments)
"""
STOPPED = "KeyboardInterrupt"


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder: Path = tmp_path_factory.mktemp("cache")
    with notebook(FLYLAB_RUNTIME_CACHE_DIR=str(folder), FLYLAB_RUNTIME_ENABLE_CACHE="1") as opened:
        opened.printed(CELL)
        yield opened


def stopped(live: Notebook, cell: str, then: str) -> None:
    """A cell that prints "in the middle" is stopped there; another one prints True after that."""
    shown = live.interrupted(cell, "in the middle")
    assert STOPPED in shown.error and "not stopped" not in shown.stdout
    assert live.printed(then) == "True\n"


def test_in_a_compile_of_llvm(live: Notebook) -> None:
    live.printed("optimise = amdgpu._optimise\namdgpu._optimise = lambda *a: slowly(optimise, *a)")
    stopped(live, "right(1.0); print('not stopped')", "amdgpu._optimise = optimise\nprint(right(1.0))")


def test_in_a_trace(live: Notebook) -> None:
    kernel = "@flyc.kernel\ndef k(A: fx.Tensor, v: fx.Constexpr[float]):\n    slow()\n    A[fx.thread_idx.x] = v\n"
    live.printed("def slow():\n    slowly(int, seconds=60)\n" + kernel)
    stopped(live, "right(2.0); print('not stopped')", "def slow(): pass\nprint(right(2.0))")


def test_in_the_wait_for_another_process(live: Notebook) -> None:
    """Others hold the locks of the cache for a while; a file that is opened again counts as another."""
    live.printed("""
import fcntl, os
locks = os.path.join(os.environ["FLYLAB_RUNTIME_CACHE_DIR"], "locks")
os.makedirs(locks, exist_ok=True)
files = [os.open(f"{locks}/{slot:02x}", os.O_RDWR | os.O_CREAT) for slot in range(store.LOCKS)]
for file in files:
    fcntl.flock(file, fcntl.LOCK_EX)
acquire = file_lock._acquire
file_lock._acquire = lambda file, wait: slowly(acquire, file, wait, seconds=0)
""")
    stopped(live, "right(3.0); print('not stopped')",
            "for file in files: os.close(file)\nfile_lock._acquire = acquire\nprint(right(3.0))")


def test_in_the_wait_for_another_thread(live: Notebook) -> None:
    live.printed("import threading\nheld = launch.turn()\nleave = threading.Event()\n"
                 "def hold():\n    with held: leave.wait()\nthreading.Thread(target=hold).start()")
    stopped(live, "print('in the middle', flush=True); right(4.0); print('not stopped')",
            "leave.set()\nprint(right(4.0))")


def test_in_a_launch(live: Notebook) -> None:
    stopped(live, "A = np.zeros(64, np.float32); print('in the middle', flush=True); launch_endless(A); "
            "print('not stopped')", "print(A[1] >= 0 and right(5.0))")


def test_many_times(live: Notebook) -> None:
    """Wherever it comes in a loop of compilations and launches."""
    cell = """
print("in the middle", flush=True)
while True:
    number += 1.0
    assert right(number)
"""
    live.printed("number = 100.0")
    for _ in range(6):
        stopped(live, cell, "print(right(6.0) and right(number) and right(number + 1))")
