"""Launches in processes that are out of the ordinary: at their end, with other options, without a home or a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.notebooks import ROOT

KERNELS = """
import numpy as np
import flylab.compiler as flyc
import flylab.expr as fx

@flyc.kernel
def k(A: fx.Tensor, v: fx.Float32):
    fx.printf("{}", v) if PRINTS else None
    A[fx.thread_idx.x] = v

@flyc.jit
def launch(A: fx.Tensor, v: fx.Float32):
    k(A, v).launch(grid=1, block=64)

PRINTS = False

def right(v, n=64):
    A = np.zeros(n, np.float32)
    launch(A, v)
    return bool((A[:64] == v).all() and not A[64:].any())
"""


def run(folder: Path, program: str, *options: str, drop: str = "", **environment: str) -> tuple[int, str, str]:
    """The exit code and what a program prints; `kernels_here.right` launches."""
    (folder / "kernels_here.py").write_text(KERNELS)
    (folder / "program.py").write_text("import sys\nfrom kernels_here import right\n" + program)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(folder)]),
           "FLYLAB_RUNTIME_ENABLE_CACHE": "1", **environment}
    env.pop(drop, None)
    done = subprocess.run([sys.executable, *options, str(folder / "program.py")], cwd=folder, text=True,
                          capture_output=True, timeout=120, env=env)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("before", ["", "right(1.0)\n"], ids=["the first launch", "a later one"])
def test_at_exit(before: str, tmp_path: Path) -> None:
    program = "import atexit\natexit.register(lambda: print(right(2.0), right(3.0, 128)))\n" + before
    assert run(tmp_path, program) == (0, "True True\n", "")


def test_from_a_finaliser(tmp_path: Path) -> None:
    """Also one that the garbage collection calls in the middle of a compilation."""
    program = """
import gc
class Last:
    def __init__(self):
        self.itself = self
    def __del__(self):
        done.append(right(2.0))
done = []
Last()
gc.collect()
Last()
gc.set_threshold(1)
print(right(3.0, 128), right(4.0, 192), set(done))
gc.set_threshold(700)
"""
    assert run(tmp_path, program) == (0, "True True {True}\n", "")


def test_at_the_very_end_of_a_process(tmp_path: Path) -> None:
    """Python is taken apart there; a finaliser's failure is told, and no more than that."""
    code, out, err = run(tmp_path, "class Last:\n    def __del__(self):\n        right(2.0)\nsys.kept = Last()\n")
    assert code == 0 and out == "" and "Fatal" not in err and "Segmentation" not in err


def test_with_work_in_flight(tmp_path: Path) -> None:
    program = """
import threading, time
def busy(kind):
    number = 0
    while True:
        right(1.0, 64 * (1 + number % 40) if kind else 64)
        number += 1
for kind in (0, 0, 1, 1):
    threading.Thread(target=busy, args=[kind], daemon=True).start()
time.sleep(1)
print("leaves")
"""
    assert run(tmp_path, program) == (0, "leaves\n", "")


def test_a_module_loaded_again_and_kernels_of_the_old_one(tmp_path: Path) -> None:
    program = """
import importlib, kernels_here
old = right
print(old(1.0), importlib.reload(kernels_here).right(2.0), old(3.0, 128), kernels_here.right(4.0, 128))
"""
    assert run(tmp_path, program) == (0, "True True True True\n", "")


@pytest.mark.parametrize("options", [
    ["-O"], ["-OO"], ["-W", "error", "-bb"], ["-X", "dev", "-W", "error"], ["-X", "tracemalloc"],
], ids=" ".join)
def test_options_of_python(options: list[str], tmp_path: Path) -> None:
    assert run(tmp_path, "print(right(1.0), right(2.0, 128))", *options) == (0, "True True\n", "")


@pytest.mark.parametrize("seed", ["0", "1", "4294967295"])
def test_seeds_of_hashes(seed: str, tmp_path: Path) -> None:
    """They are no part of what is kept on disk: what one process made, another reads."""
    program = "right(1.0)\nfrom kernels_here import launch\nprint(launch.last.kept)"
    assert run(tmp_path, "right(1.0)", PYTHONHASHSEED="5", FLYLAB_RUNTIME_CACHE_DIR=str(tmp_path))[0] == 0
    found = run(tmp_path, program, PYTHONHASHSEED=seed, FLYLAB_RUNTIME_CACHE_DIR=str(tmp_path))
    assert found == (0, "read from disk\n", "")


def test_a_working_folder_that_was_deleted(tmp_path: Path) -> None:
    program = "import os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')\nprint(right(1.0), right(2.0, 128))"
    assert run(tmp_path, program) == (0, "True True\n", "")


def test_no_home(tmp_path: Path) -> None:
    """Neither HOME nor an entry of the system's list of users says where it is."""
    program = """
import pwd
def unknown(*_):
    raise KeyError("no such user")
pwd.getpwuid = pwd.getpwnam = unknown
from kernels_here import launch
print(right(1.0), right(2.0, 128), launch.last.kept)
"""
    environment = {"FLYLAB_RUNTIME_CACHE_DIR": "", "FLYLAB_EMULATOR_CACHE_DIR": ""}
    assert run(tmp_path, program, drop="HOME", **environment) == (
        0, "True True not kept on disk: this user has no home folder\n", "")


@pytest.mark.parametrize("stream", ["None", "io.StringIO()", "io.TextIOWrapper(io.BytesIO(), encoding='ascii')"])
def test_unusual_streams(stream: str, tmp_path: Path) -> None:
    program = f"""
import io, kernels_here
kernels_here.PRINTS = True
err, sys.stdout, sys.stderr = sys.stderr, {stream}, {stream}
print(right(1.0), right(2.0, 128), file=err)
if isinstance(sys.stdout, io.StringIO):
    print(sys.stdout.getvalue() == "1.0\\n" * 64 + "2.0\\n" * 64, file=err)
"""
    told = "True True\n" + "True\n" * ("StringIO" in stream)
    assert run(tmp_path, program) == (0, "", told)


def test_a_closed_stream_is_an_error_of_python(tmp_path: Path) -> None:
    """The results are there all the same."""
    program = """
import kernels_here, numpy as np
kernels_here.PRINTS = True
err = sys.stderr
sys.stdout.close()
A = np.zeros(64, np.float32)
try:
    kernels_here.launch(A, 1.0)
except ValueError as error:
    print(error, (A == 1.0).all(), file=err)
"""
    assert run(tmp_path, program) == (0, "", "I/O operation on closed file. True\n")
