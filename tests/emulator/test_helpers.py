"""The threads of launches: kept between them, shared by callers at once, begun anew after a fork, gone at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.emulator.execution import helpers, run
from tests.emulator.toolchain import assembly

# Each thread of each workgroup adds its number plus the workgroup's to an element of its own.
ADD = assembly("""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_lshl_b32 s3, s2, 6
  v_add_u32_e32 v2, s3, v0
  v_lshlrev_b32_e32 v1, 2, v2
  s_waitcnt lgkmcnt(0)
  global_atomic_add v1, v2, s[4:5]
  s_endpgm""")
ENDLESS = assembly(".L0:\n  s_add_u32 s9, s9, 1\n  s_addc_u32 s10, s10, 0\n  s_branch .L0\n  s_endpgm", arguments=0)


def names() -> list[str]:
    return sorted(thread.name for thread in threading.enumerate() if thread.name.startswith("flylab-helper"))


def test_helpers_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "3")
    device, found = Program.from_assembly(ADD), np.zeros(64 * 64, "i4")
    for _ in range(5):
        device.launch(grid=64, block=64, args=[found])
    first = names()
    for _ in range(20):
        device.launch(grid=64, block=64, args=[found])
    assert first == names() and len(first) >= 2
    assert np.array_equal(found, 25 * np.arange(64 * 64))


def test_many_threads_launch_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "3")
    device, found = Program.from_assembly(ADD), [np.zeros(64 * 64, "i4") for _ in range(8)]

    def work(array: np.ndarray) -> None:
        for _ in range(20):
            device.launch(grid=64, block=64, args=[array])

    threads = [threading.Thread(target=work, args=(array,)) for array in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(array, 20 * np.arange(64 * 64)) for array in found)
    assert not run._running


def test_work_that_no_helper_began_is_taken_back() -> None:
    begin, hold, done = threading.Event(), threading.Event(), list[int]()
    tasks = [helpers.submit(lambda: (begin.set(), hold.wait(), None)[-1], 0) for _ in range(len(names()) + 1)]
    late = helpers.submit(lambda: done.append(1), 0)
    if names():
        begin.wait(10)
    late.finish()
    hold.set()
    for task in tasks:
        task.finish()
    assert done == []


def test_an_error_in_a_helper_is_the_launch_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when there is no memory for another workgroup; the launch goes on until a helper has come to it."""
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "2")
    original = run.Context

    def context(launch: run.Run) -> run.Context:
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError("no more")
        return original(launch)

    monkeypatch.setattr(run, "Context", context)
    with pytest.raises(MemoryError, match="no more"):
        Program.from_assembly(ENDLESS).launch(grid=100, block=64, args=[])
    monkeypatch.undo()
    found = np.zeros(64 * 64, "i4")
    Program.from_assembly(ADD).launch(grid=64, block=64, args=[found])
    assert np.array_equal(found, np.arange(64 * 64))


def script(text: str) -> str:
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "FLYLAB_EMULATOR_THREADS": "3"})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_fork_has_helpers_of_its_own() -> None:
    found = script(f"""
        import os, signal, threading, numpy as np
        from flylab.emulator import Program
        device = Program.from_assembly({ADD!r})

        def right():
            found = np.zeros(64 * 64, "i4")
            for _ in range(10):
                device.launch(grid=64, block=64, args=[found])
            helpers = [t for t in threading.enumerate() if t.name.startswith("flylab-helper")]
            return np.array_equal(found, 10 * np.arange(64 * 64)) and len(helpers) == 2

        before = right()
        child = os.fork()
        if child == 0:
            signal.alarm(30)
            os._exit(0 if right() else 1)
        print(before, os.waitpid(child, 0)[1], right())
    """)
    assert found == "True 0 True\n"


def test_python_ends_while_a_launch_goes_on() -> None:
    """A daemon thread in a launch without an end does not keep Python, and does not end in freed memory."""
    found = script(f"""
        import threading, time
        from flylab.emulator import Program
        from flylab.emulator.execution import run
        device = Program.from_assembly({ENDLESS!r})
        threading.Thread(target=lambda: device.launch(grid=100, block=64, args=[]), daemon=True).start()
        while not run._running:
            time.sleep(0.01)
        print("end")
    """)
    assert found == "end\n"
