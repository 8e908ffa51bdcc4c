"""The disk cache among processes: one compiles and the others read, forked, spawned and killed ones too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest

from flylab.runtime.cache.store import Store

ROOT = Path(__file__).parents[3]

# Kernels that differ by a global number, in a module of the user's; `run(n)` launches the one of that number.
KERNELS = '''
import numpy as np
import flylab.compiler as flyc
import flylab.expr as fx

def of(number):
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        t = fx.thread_idx.x
        if t < n:
            A[t] = A[t] + number

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=1, block=64)

    return launch

launches = [of(number) for number in range(20)]

def run(number):
    array = np.arange(64, dtype="f4")
    kept = launches[number](array, 50).compiled.kept
    want = np.arange(64, dtype="f4")
    want[:50] += number
    assert np.array_equal(array, want), number
    return kept
'''


@pytest.fixture
def module(tmp_path: Path) -> Path:
    folder = tmp_path / "user"
    folder.mkdir()
    (folder / "numbered.py").write_text(KERNELS)
    return folder


def process(module: Path, text: str, **variables: str) -> subprocess.Popen[str]:
    """A Python process that runs a text, with the kernels importable as `numbered`."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(module)])} | variables
    return subprocess.Popen([sys.executable, "-c", textwrap.dedent(text)], text=True, stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, cwd=module)


def output(started: subprocess.Popen[str]) -> list[str]:
    """The lines of a process that ends well, and says nothing of errors or warnings."""
    out, err = started.communicate(timeout=120)
    assert started.returncode == 0 and not err, err
    return out.splitlines()


ONE = """
    import sys
    import numbered
    print(numbered.run(3))
    print(sorted({name.partition(".")[0] for name in sys.modules} & {"mlir"}))
"""


def test_a_process_with_what_another_made(disk_cache: Path, module: Path) -> None:
    """No MLIR is loaded; nor LLVM for the chip, which a launch on the software device has no use for."""
    assert output(process(module, ONE)) == ["kept on disk", "['mlir']"]
    more = ONE + """
    from flylab.codegen import amdgpu
    print(amdgpu._llvm.cache_info().currsize)
    """
    assert output(process(module, more, PYTHONHASHSEED="7")) == ["read from disk", "[]", "0"]


def test_a_launch_of_what_another_process_made_imports_nothing(disk_cache: Path, module: Path) -> None:
    """What it needs was imported where the launchers were defined; the bindings of HIP are only looked for."""
    text = """
        import sys
        import numbered
        before = set(sys.modules)
        print(numbered.run(3))
        print([name for name in set(sys.modules) - before if not name.startswith("rocm")])
    """
    assert output(process(module, text))[0] == "kept on disk"
    assert output(process(module, text)) == ["read from disk", "[]"]


def test_many_processes_and_one_empty_folder(disk_cache: Path, module: Path) -> None:
    """Every result is right, nothing is left half done, and the log tells that no kernel was compiled twice."""
    text = """
        import numbered, random
        order = list(range(5))
        random.Random({seed}).shuffle(order)
        print([numbered.run(n) for n in order])
    """
    started = [process(module, text.format(seed=seed)) for seed in range(4)]
    for each in started:
        output(each)
    store = Store(disk_cache, 1 << 30)
    times = Counter(words[2] for words in store.log())
    assert len(times) == 5 and set(times.values()) == {1}
    assert {name for _, _, path in store.files() for name in [Path(path).name] if "." not in name} == set(times)
    assert not list(disk_cache.rglob("*.partial"))
    assert output(process(module, "import numbered; print({numbered.run(n) for n in range(5)})")) == [
        "{'read from disk'}"]


def test_a_process_killed_while_it_compiles(disk_cache: Path, module: Path) -> None:
    """Who waits for it goes on at once, and compiles."""
    killed = process(module, """
        import sys, numbered
        from flylab.runtime import finding
        def build(*arguments):
            print("compiling", flush=True)
            sys.stdin.read()
        finding.build = build
        numbered.run(3)
    """)
    assert killed.stdout is not None and killed.stdout.readline() == "compiling\n"
    waiting = process(module, """
        import sys, numbered
        from flylab.runtime.cache import file_lock
        real = file_lock.time.sleep
        def sleep(seconds):
            print("waiting", flush=True)
            file_lock.time.sleep = real
            real(seconds)
        file_lock.time.sleep = sleep
        print(numbered.run(3))
    """)
    assert waiting.stdout is not None and waiting.stdout.readline() == "waiting\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert output(waiting) == ["kept on disk"]


def test_threads(disk_cache: Path, module: Path) -> None:
    """Many threads with one kernel, and a kernel each, in a process that starts with nothing."""
    assert output(process(module, """
        import numbered
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(6) as pool:
            print(len(list(pool.map(numbered.run, [1, 1, 1, 2, 3, 1]))))
    """)) == ["6"]
    assert set(Counter(words[2] for words in Store(disk_cache, 1 << 30).log()).values()) == {1}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_children(disk_cache: Path, module: Path, how: str) -> None:
    """Children of a process that has launched launch what it did, and what is new."""
    text = f"""
        import multiprocessing, numbered
        if __name__ == "__main__":
            print(numbered.run(1))
            with multiprocessing.get_context({how!r}).Pool(2) as pool:
                print(sorted(pool.map(numbered.run, [1, 2, 3, 2])))
    """
    script = module / "main.py"
    script.write_text(textwrap.dedent(text))
    first, rest = output(process(module, f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"))
    assert first == "kept on disk" and rest.count("on disk") + rest.count("from disk") == 4
    times = Counter(words[2] for words in Store(disk_cache, 1 << 30).log())
    assert len(times) == 3 and max(times.values()) == 1


def test_an_edit_of_flylab_is_another_compiler(disk_cache: Path, module: Path) -> None:
    """What this process imported is what counts, and not what lies there when it launches."""
    import shutil

    package = module / "flylab"
    shutil.copytree(ROOT / "flylab", package, ignore=shutil.ignore_patterns("__pycache__"))
    path = {"PYTHONPATH": str(module)}
    text = f"""
        import numbered, flylab
        assert flylab.__file__ == {str(package / "__init__.py")!r}
        EDIT
        print(numbered.run(1))
    """
    assert output(process(module, text.replace("EDIT", ""), **path)) == ["kept on disk"]
    edit = f"open({str(package / 'passes' / 'canonicalize.py')!r}, 'a').write('# edited')"
    assert output(process(module, text.replace("EDIT", edit), **path)) == ["read from disk"]
    assert output(process(module, text.replace("EDIT", ""), **path)) == ["kept on disk"]


def test_without_a_home(module: Path, tmp_path: Path) -> None:
    """The default folder needs one; a user without is served all the same."""
    text = """
        import os, pathlib
        def refuse(self):
            if str(self).startswith("~"):
                raise RuntimeError("Could not determine home directory.")
            return self
        pathlib.Path.expanduser = refuse
        for name in ("FLYLAB_RUNTIME_CACHE_DIR", "FLYDSL_RUNTIME_CACHE_DIR"):
            os.environ.pop(name, None)
        os.environ["FLYLAB_RUNTIME_ENABLE_CACHE"] = "1"
        import numbered
        print(numbered.run(1))
    """
    assert output(process(module, text)) == ["not kept on disk: this user has no home folder"]
