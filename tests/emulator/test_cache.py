"""Compiled handlers on disk: kept, found again, and made anew where a file is damaged."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.emulator.toolchain import assembly

TEXT = assembly("  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32_e32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
                "  global_store_dword v1, v0, s[4:5]\n  s_endpgm")
SCRIPT = textwrap.dedent(f"""
    import numpy
    from flylab.emulator import Program, jit
    compiled = []
    original = jit._Host._compile
    jit._Host._compile = lambda self, text: (compiled.append(text), original(self, text))[1]
    found = numpy.zeros(64, "i4")
    Program.from_assembly({TEXT!r}).launch(grid=1, block=64, args=[found])
    print(found.tolist() == list(range(64)), len(compiled))
""")


def run(directory: Path) -> tuple[bool, int]:
    """A fresh process with this cache: whether the result is right, and how many handlers it compiled."""
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=120,
                          env={"FLYLAB_EMULATOR_CACHE_DIR": str(directory), "PATH": ""}, cwd=Path(__file__).parents[2])
    assert done.returncode == 0, done.stderr
    right, count = done.stdout.split()
    return right == "True", int(count)


def objects(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.o"))


def test_kept_and_found_again(tmp_path: Path) -> None:
    right, compiled = run(tmp_path)
    assert right and compiled == len(objects(tmp_path)) == 8  # five of the kernel, two of the core, the past-end
    assert run(tmp_path) == (True, 0)
    assert not [p for p in tmp_path.rglob("*") if p.is_file() and p.suffix != ".o"]


@pytest.mark.parametrize("damage", [lambda data: data[:100], lambda data: b"", lambda data: data[:-9] + b"x" * 9,
                                    lambda data: b"\0" * len(data)])
def test_a_damaged_file_is_made_again(tmp_path: Path, damage: object) -> None:
    run(tmp_path)
    before = {path: path.read_bytes() for path in objects(tmp_path)}
    for path, data in list(before.items())[::2]:
        path.write_bytes(damage(data))  # type: ignore[operator]
    assert run(tmp_path) == (True, len(before) // 2)
    assert {path: path.read_bytes() for path in objects(tmp_path)} == before


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("a file where a directory should be")
    assert run(file) == (True, 8)
