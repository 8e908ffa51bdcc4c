"""The fixture `golden` itself: it compares, it fails with the lines that differ, and it writes when asked to."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeconftest((ROOT / "tests" / "conftest.py").read_text())
    pytester.makepyfile("def test_text(golden):\n    golden('a.txt', 'one\\ntwo\\n')\n")
    return pytester


def test_equal_text_passes_and_a_change_fails(project: pytest.Pytester) -> None:
    file = project.mkdir("golden") / "a.txt"
    file.write_text("one\ntwo\n")
    project.runpytest().assert_outcomes(passed=1)
    file.write_text("one\nthree\n")
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["a.txt changed; `make golden` accepts it", "-three", "+two"])
    assert file.read_text() == "one\nthree\n"


def test_a_missing_file_fails_and_is_written_when_asked(project: pytest.Pytester) -> None:
    file = project.path / "golden" / "a.txt"
    result = project.runpytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*no golden file a.txt*"])
    assert not file.exists()
    project.runpytest("--update-golden").assert_outcomes(passed=1)
    assert file.read_text() == "one\ntwo\n"
