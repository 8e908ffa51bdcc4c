"""Ctrl-C during a compile: it returns at once, LLVM ends behind it, and the next compile and a fork work."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from flylab.background import interruptible

# A thread's exp of 1024 floats takes LLVM seconds.
SLOW = """
define amdgpu_kernel void @k(ptr addrspace(1) %a) {
  %x = load <1024 x float>, ptr addrspace(1) %a
  %z = call <1024 x float> @llvm.exp.v1024f32(<1024 x float> %x)
  store <1024 x float> %z, ptr addrspace(1) %a
  ret void
}
declare <1024 x float> @llvm.exp.v1024f32(<1024 x float>)
"""
QUICK = "define amdgpu_kernel void @k() {\n  ret void\n}"
COMPILE = f"""
from flylab.codegen import amdgpu
from flylab.targets import target
compile_slowly = lambda: amdgpu.assemble({SLOW!r}, target("gfx942"))
compile_quickly = lambda: "s_endpgm" in str(amdgpu.assemble({QUICK!r}, target("gfx950")))
"""
# One handler after the other, each slowed down.
HANDLERS = """
import time
from flylab.emulator.handlers import jit
from flylab.emulator.instructions.control import _write_nothing
original = jit._Host._compile
jit._Host._compile = lambda self, text: (time.sleep(0.2), original(self, text))[1]
compile_slowly = lambda: jit.addresses({f"slow {n}": _write_nothing for n in range(12)})
compile_quickly = lambda: min(jit.addresses({"slow 3": _write_nothing, "quick": _write_nothing}).values()) > 0
"""
INTERRUPTED = """
import os, signal, threading
compile_quickly()
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    compile_slowly()
except KeyboardInterrupt:
    print("going on:", "flylab-native" in [t.name for t in threading.enumerate()])
"""


def script(*parts: str, directory: Path) -> str:
    done = subprocess.run([sys.executable, "-c", "\n".join(parts)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "FLYLAB_EMULATOR_CACHE_DIR": str(directory)})
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", [COMPILE, HANDLERS], ids=["kernel", "handlers"])
def test_ctrl_c_during_a_compile(kind: str, tmp_path: Path) -> None:
    found = script(kind, INTERRUPTED, "print(compile_quickly())", directory=tmp_path)
    assert found == "going on: True\nTrue\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("kind", [COMPILE, HANDLERS], ids=["kernel", "handlers"])
def test_a_child_can_compile_while_an_interrupted_compile_goes_on(kind: str, tmp_path: Path) -> None:
    found = script(kind, INTERRUPTED, textwrap.dedent("""
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            os._exit(0 if compile_quickly() else 1)
        print(os.waitpid(child, 0)[1], compile_quickly())
    """), directory=tmp_path)
    assert found == "going on: True\n0 True\n"


def test_errors_come_through() -> None:
    with pytest.raises(ZeroDivisionError):
        interruptible(divmod, 1, 0)


def test_only_the_main_thread_has_another_do_the_work() -> None:
    names: list[str] = []
    thread = threading.Thread(target=lambda: names.append(interruptible(lambda: threading.current_thread().name)),
                              name="mine")
    thread.start()
    thread.join()
    assert names == ["mine"] and interruptible(lambda: threading.current_thread().name) == "flylab-native"
