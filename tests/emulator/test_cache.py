"""Compiled handlers on disk: kept, found again, and made anew where a file is damaged."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from flylab.emulator.handlers import jit, kept
from flylab.errors import ToolchainError
from tests.emulator.toolchain import assembly

TEXT = assembly("  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32_e32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
                "  global_store_dword v1, v0, s[4:5]\n  s_endpgm")
COUNT = 10  # five of the kernel, four of the core, the past-end
SCRIPT = textwrap.dedent(f"""
    import numpy
    from flylab.emulator import Program
    from flylab.emulator.handlers import jit
    compiled = []
    original = jit._Host._compile
    jit._Host._compile = lambda self, text: (compiled.append(text), original(self, text))[1]
    found = numpy.zeros(64, "i4")
    Program.from_assembly({TEXT!r}).launch(grid=1, block=64, args=[found], check=None)
    print(found.tolist() == list(range(64)), len(compiled))
""")


ROOT = Path(__file__).parents[2]


def run(directory: Path | str, before: str = "", root: Path = ROOT, fails: str = "",
        **environment: str) -> tuple[bool, int]:
    """A fresh process with this cache: whether the result is right, and how many handlers it compiled.

    `root` is the directory with the package; `fails` is what its error says where it is to fail.
    """
    variables = {"FLYLAB_EMULATOR_CACHE_DIR": str(directory), "PATH": ""} | environment
    done = subprocess.run([sys.executable, "-c", before + SCRIPT], capture_output=True, text=True, timeout=120,
                          env=variables, cwd=root)
    if fails:
        assert done.returncode and fails in done.stderr, done.stderr
        return False, -1
    assert done.returncode == 0, done.stderr
    right, count = done.stdout.split()
    return right == "True", int(count)


def objects(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.o"))


def test_kept_and_found_again(tmp_path: Path) -> None:
    right, compiled = run(tmp_path)
    assert right and compiled == len(objects(tmp_path)) == COUNT
    assert run(tmp_path) == (True, 0)
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".o"]


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"", lambda data: data[:-9] + b"x" * 9,
                                    lambda data: b"\0" * len(data)])
def test_a_damaged_file_is_made_again(tmp_path: Path, damage: object) -> None:
    run(tmp_path)
    before = {path: path.read_bytes() for path in objects(tmp_path)}
    for path, data in list(before.items())[::2]:
        path.write_bytes(damage(data))  # type: ignore[operator]
    assert run(tmp_path) == (True, len(list(before)[::2]))
    assert {path: path.read_bytes() for path in objects(tmp_path)} == before


@pytest.mark.parametrize("changed", ["flylab/emulator/numbers/semantics.py", "flylab/mfma.py"])
def test_what_was_made_with_other_source_is_not_found(tmp_path: Path, changed: str) -> None:
    """A process has read the package, which is then changed, as by an update; the process launches after that."""
    shutil.copytree(ROOT / "flylab", tmp_path / "flylab", ignore=shutil.ignore_patterns("__pycache__"))
    update = textwrap.dedent(f"""
        import flylab.emulator.program
        assert flylab.__file__ == {str(tmp_path / "flylab" / "__init__.py")!r}
        with open({changed!r}, "a") as file:
            file.write("# changed")
    """)
    assert run(tmp_path / "kept", update, root=tmp_path) == (True, COUNT)
    assert run(tmp_path / "kept", root=tmp_path) == (True, COUNT)
    assert run(tmp_path / "kept", root=tmp_path) == (True, 0)


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a file where a directory should be")
    assert run(file) == (True, COUNT)
    assert run(file, "import warnings; warnings.simplefilter('error')\n", fails="CacheWarning: the software device's "
               f"handlers: nothing can be kept in {file} (Not a directory, see FLYLAB_EMULATOR_CACHE_DIR)")
    assert run("~nobody-of-this-name/x", fails="FLYLAB_EMULATOR_CACHE_DIR='~nobody-of-this-name/x' needs a home folder")


def test_handlers_of_versions_that_nobody_uses_go(tmp_path: Path) -> None:
    """When another version writes its first; what is used now stays, and whatever is not a version's folder."""
    used, old, mine = tmp_path / f"{kept.FOLDER}used", tmp_path / f"{kept.FOLDER}old", tmp_path / "mine"
    for folder in (used, old, mine):
        (folder / "ab").mkdir(parents=True)
        (folder / "ab" / "some.o").write_bytes(b"x")
    (tmp_path / f"{kept.FOLDER}file").write_text("mine")
    long_ago = time.time() - kept.UNUSED - 10
    for path in (old, mine, tmp_path / f"{kept.FOLDER}file"):
        os.utime(path, (long_ago, long_ago))
    kept.sweep(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {used.name, "mine", f"{kept.FOLDER}file"}
    first = kept.Kept(tmp_path, "a version")
    first.write("cd" * 32, b"code")
    (folder,) = set(tmp_path.iterdir()) - {used, mine, tmp_path / f"{kept.FOLDER}file"}
    os.utime(folder, (long_ago, long_ago))
    assert kept.Kept(tmp_path, "a version").read("cd" * 32) == b"code"
    kept.sweep(tmp_path)
    assert folder.exists() and first.read("cd" * 32) == b"code"
    assert kept.Kept(tmp_path, "another").read("cd" * 32) is None


def test_a_directory_from_the_home(tmp_path: Path) -> None:
    assert run("~/kept", HOME=str(tmp_path)) == (True, COUNT)
    assert len(objects(tmp_path / "kept")) == COUNT


def test_a_user_without_home_runs_uncached(tmp_path: Path) -> None:
    """Neither HOME nor an entry in the list of users, as in a container with a number for a user."""
    nobody = textwrap.dedent("""
        import pwd

        def missing(user):
            raise KeyError(user)

        pwd.getpwuid = missing
    """)
    assert run("", nobody) == (True, COUNT)


FORK = textwrap.dedent(f"""
    import os, signal, threading, time, numpy
    from flylab.emulator import Program
    from flylab.emulator.handlers import jit

    def launched(body):
        found = numpy.zeros(64, "i4")
        text = {TEXT!r}.replace("s_endpgm", body + "\\n  s_endpgm")
        Program.from_assembly(text).launch(grid=4, block=64, args=[found])
        return found.tolist() == list(range(64))

    original, inside = jit._Host._compile, threading.Event()

    def slowly(self, text):
        inside.set()
        time.sleep(0.3)
        return original(self, text)

    launched("s_nop 0")
    jit._Host._compile = slowly
    thread = threading.Thread(target=launched, args=["v_add_u32_e32 v1, v1, v0"])
    thread.start()
    inside.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(0 if launched("v_add_u32_e32 v1, v1, v0") and launched("v_sub_u32_e32 v1, v1, v0") else 1)
    thread.join()
    print(os.waitpid(child, 0)[1], launched("v_sub_u32_e32 v1, v1, v0"))
""")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_a_child_of_a_fork_can_launch(tmp_path: Path) -> None:
    """The fork comes while another thread compiles; the child compiles and launches for itself."""
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=120,
                          env={"FLYLAB_EMULATOR_CACHE_DIR": str(tmp_path)}, cwd=ROOT)
    assert done.stdout == "0 True\n", done.stderr


def test_a_handler_that_calls_out_is_refused() -> None:
    """Its entry in the offset table would shift the constants of all handlers that are linked after it."""
    def write(name: str) -> str:
        return (f"declare double @sin(double)\ndefine double @{name}(double %x) {{\n"
                "  %y = call double @sin(double %x)\n  ret double %y\n}")

    with pytest.raises(ToolchainError, match="LLVM made calls of sin for this processor"):
        jit.addresses({"test: calls sin": write})
