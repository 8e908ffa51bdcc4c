"""Launchers that are defined anew and dropped, as an edited cell does: nothing keeps them, and memory stays flat."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

from tests.notebooks import ROOT
from tests.samples import kernel_of


def test_nothing_keeps_a_launcher_that_is_dropped() -> None:
    A = np.zeros(64, np.float32)

    def once(value: float) -> list[weakref.ref]:
        names = kernel_of(f"def helper(x):\n    return x + {value}\nA[fx.thread_idx.x] = helper(1.0)")
        names["launch"](A)
        assert A[0] == 1.0 + value
        return [weakref.ref(kept) for kept in (names["launch"], names["k"], names["launch"].last)]

    found = [reference for value in range(2, 12) for reference in once(value)]
    gc.collect()
    assert [reference() for reference in found] == [None] * 30


FLAT = """
import ctypes, gc, os
import numpy as np
from tests.samples import kernel_of

libc, A = ctypes.CDLL(None), np.zeros(64, np.float32)

def kilobytes():
    gc.collect()
    libc.malloc_trim(0)
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024

def define_and_run(count):
    for value in range(count):
        kernel_of(f"A[fx.thread_idx.x] = {value}.0")["launch"](A)
        assert A[0] == value

define_and_run(60)
before = kilobytes()
define_and_run(120)
print((kilobytes() - before) / 120)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and trims glibc's heap")
def test_memory_stays_flat() -> None:
    """LLVM's pass managers alone were 60 KB for each compilation, and its code another 10."""
    done = subprocess.run([sys.executable, "-c", FLAT], cwd=ROOT, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 30
