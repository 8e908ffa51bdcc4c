"""R16: what native libraries print shows in the cell that made them print: ipykernel's part, and ours."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from tests.notebooks import Notebook, notebook

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="ipykernel reads no file descriptors on Windows")
CELL = """
import ctypes, os, threading
from flylab.codegen import amdgpu
libc = ctypes.CDLL(None)

@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = VALUE

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)

VALUE, A = 1.0, np.zeros(64, np.float32)
launch(A)
"""
NOISY = """
def noisy(*arguments, optimise=amdgpu._optimise):
    libc.puts(f"C in {threading.current_thread().name}".encode())
    os.write(1, b"descriptor 1\\n")
    os.write(2, b"descriptor 2\\n")
    return optimise(*arguments)

amdgpu._optimise = noisy
"""


@pytest.fixture(scope="module")
def live() -> Iterator[Notebook]:
    with notebook(PYTHONUNBUFFERED="") as opened:  # set, it takes the buffer from C's stdout too
        opened.printed(CELL, NOISY)
        yield opened


def test_of_the_main_thread(live: Notebook) -> None:
    native = "libc.puts(b'from C'); os.write(1, b'written\\n'); os.write(2, b'error\\n')"
    shown = live.run(native + "; print('Python\\n', end='')")  # in one piece: ipykernel's threads write between two
    assert sorted(shown.stdout.splitlines()) == ["Python", "from C", "written"] and shown.stderr == "error\n"
    assert live.printed("print('next')") == "next\n"


def test_of_another_thread(live: Notebook) -> None:
    thread = "thread = threading.Thread(target=libc.puts, args=[b'from a thread'])"
    shown = live.run(f"{thread}\nthread.start()\nthread.join()")
    assert shown.stdout == "from a thread\n"


def test_while_compiling(live: Notebook) -> None:
    shown = live.run("VALUE = 2.0\nlaunch(A)\nprint(f'{A[0]}\\n', end='')")
    assert sorted(shown.stdout.splitlines()) == ["2.0", "C in flylab-native", "descriptor 1"]
    assert shown.stderr == "descriptor 2\n"


def test_more_than_a_pipe_holds(live: Notebook) -> None:
    shown = live.run("for n in range(5000): libc.puts(b'%4d ' % n + b'x' * 60)")
    assert [int(line.split()[0]) for line in shown.stdout.splitlines()] == list(range(5000))


def test_a_cell_that_fails_and_one_that_captures(live: Notebook) -> None:
    shown = live.run("libc.puts(b'before it fails'); 1 / 0")
    assert shown.stdout == "before it fails\n" and "ZeroDivisionError" in shown.error
    assert live.printed("%%capture out\nlibc.puts(b'not of Python'); print('captured')") == "not of Python\n"
    assert live.printed("print(out.stdout, end='')") == "captured\n"
