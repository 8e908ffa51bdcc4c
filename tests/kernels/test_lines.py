"""Every instruction of the ready kernels has a line of the user's, in the assembly text itself."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytest.importorskip("torch")  # the arguments of some launches are its tensors

from tests.kernels.every import CHIPS, LAUNCHES, ROOT, compiled  # noqa: E402

SHARE = 0.95
USERS = tuple(str(ROOT / folder) + "/" for folder in ("kernels", "tests/benchmarks/cold"))
KERNEL_FILES = {file.relative_to(ROOT).as_posix() for file in (ROOT / "kernels").rglob("*.py")
                if "@flyc.kernel" in file.read_text()}
_FILE = re.compile(r'^\s*\.file\s+(\d+) (?:"(.*)" )?"(.*)"$', re.M)
_LOC = re.compile(r"^\s*\.loc\s+(\d+) (\d+)")


def lines_by_hand(text):
    """File and line of each instruction, read off the directives alone."""
    files = {number: f"{folder}/{name}" if folder else name for number, folder, name in _FILE.findall(text)}
    found, place = [], None
    for line in text.partition(".amdgpu_metadata")[0].splitlines():
        if loc := _LOC.match(line):
            place = files[loc[1]], int(loc[2])
        elif re.match(r"\t[a-z]", line):
            found.append(place)
    return found


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", LAUNCHES)
def test_the_share_of_instructions_with_a_line_of_the_users(name, chip):
    made = compiled(name, chip)
    found = lines_by_hand(made.code.assembly)
    good = [place for place in found if place and place[0].startswith(USERS) and place[1] > 0]
    assert len(found) == sum(len(kernel.instructions) for kernel in made.isa.kernels.values())
    assert len(good) >= SHARE * len(found), f"{len(good)} of {len(found)}"
    # The file has that line, and it is no empty one or comment.
    for file, line in set(good):
        text = Path(file).read_text(encoding="utf-8").splitlines()[line - 1].strip()
        assert text and not text.startswith("#"), (file, line)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", LAUNCHES)
def test_instructions_know_the_line_that_the_text_has(name, chip):
    made = compiled(name, chip)
    known = [i.source and i.source[:2] for kernel in made.isa.kernels.values() for i in kernel.instructions]
    assert known == lines_by_hand(made.code.assembly)


def test_no_file_with_a_kernel_is_left_out():
    launched = {function.source.file for name in LAUNCHES for function in compiled(name, "gfx950").functions.values()}
    assert {file.removeprefix(str(ROOT) + "/") for file in launched} >= KERNEL_FILES
