"""`flylab env`: values, where they come from, what is wrong with them, and names that are none."""

from __future__ import annotations

import json
from typing import Any

import pytest

from flylab import settings


def rows(flylab: Any) -> dict[str, Any]:
    return {row["name"]: row for row in json.loads(flylab("env", "--json").out)["variables"]}


def test_every_variable_is_there_with_its_meaning(flylab: Any) -> None:
    found = rows(flylab)
    assert list(found) == [row.names[0] for row in settings.ALL]
    table = flylab("env")
    assert table.code == 0
    lines = table.out.splitlines()
    assert all(any(line.startswith(row.names[0] + " ") and line.endswith(row.meaning) for line in lines)
               for row in settings.ALL)


def test_where_a_value_comes_from(flylab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYDSL_DUMP_IR", "1")
    monkeypatch.setenv("FLYLAB_CHECK", "all")
    monkeypatch.setenv("ARCH", "gfx950")
    found = rows(flylab)
    assert (found["FLYLAB_DUMP_IR"]["value"], found["FLYLAB_DUMP_IR"]["source"]) == ("1", "FLYDSL_DUMP_IR")
    assert (found["FLYLAB_CHECK"]["value"], found["FLYLAB_CHECK"]["source"]) == ("all", "FLYLAB_CHECK")
    assert (found["ARCH"]["value"], found["ARCH"]["source"], found["ARCH"]["error"]) == ("gfx950", "ARCH", None)
    assert found["FLYLAB_COMPILE_OPT_LEVEL"]["source"] is None and found["FLYLAB_COMPILE_OPT_LEVEL"]["value"] == "2"


@pytest.mark.parametrize("name, text, words", [
    ("FLYDSL_DUMP_IR", "perhaps", "FLYDSL_DUMP_IR='perhaps' is neither yes nor no"),
    ("FLYLAB_COMPILE_OPT_LEVEL", "4", "FLYLAB_COMPILE_OPT_LEVEL='4' is no number from 0 to 3"),
    ("FLYLAB_DEVICE", "gfx90a", "FLYLAB_DEVICE='gfx90a': no device is called 'gfx90a'"),
    ("ARCH", "sm_90", "ARCH='sm_90': unknown chip 'sm_90'"),
    ("ARCH", "emulated:gfx950", "ARCH='emulated:gfx950': unknown chip 'emulated:gfx950'"),
    ("FLYLAB_PRINTF_BYTES", "1x", "FLYLAB_PRINTF_BYTES='1x' is no number of bytes from 64"),
    ("FLYLAB_EMULATOR_THREADS", "0", "FLYLAB_EMULATOR_THREADS='0' is no number from 1"),
])
def test_a_wrong_value_is_an_error(flylab: Any, monkeypatch: pytest.MonkeyPatch, name: str, text: str,
                                   words: str) -> None:
    monkeypatch.setenv(name, text)
    done = flylab("env")
    assert done.code == 1 and f"error: {words}" in done.out and "hint: " in done.out
    row = next(row for row in rows(flylab).values() if row["error"])
    assert row["error"].startswith(words) and row["source"] == name


def test_names_that_are_none_and_names_that_are_hidden(flylab: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_CHEK", "all")
    monkeypatch.setenv("FLYDSL_DUMPDIR", "x")
    monkeypatch.setenv("FLYLAB_QQQQQQQQQQ", "x")
    monkeypatch.setenv("FLYDSL_CHECK", "all")
    monkeypatch.setenv("FLYLAB_CHECK", "none")
    monkeypatch.setenv("FLYLAB_ARCH", "gfx950")
    monkeypatch.setenv("FLYDSL_ROCM_PATH", "/x")
    monkeypatch.setenv("FLYLAB_VERBOSE", "1")
    done = flylab("env")
    assert done.code == 0
    assert "FLYLAB_ARCH is set, and no variable of flylab; did you mean ARCH?\n" in done.out
    assert "FLYDSL_ROCM_PATH is set, and no variable of flylab; did you mean ROCM_PATH?\n" in done.out
    assert "FLYLAB_VERBOSE is set, and no variable of flylab\n" in done.out
    assert "FLYLAB_CHEK is set, and no variable of flylab; did you mean FLYLAB_CHECK?\n" in done.out
    assert "FLYDSL_DUMPDIR is set, and no variable of flylab; did you mean FLYDSL_DUMP_DIR?\n" in done.out
    assert "FLYLAB_QQQQQQQQQQ is set, and no variable of flylab\n" in done.out
    assert "FLYDSL_CHECK is set too, and FLYLAB_CHECK wins\n" in done.out
    unknown = json.loads(flylab("env", "--json").out)["unknown"]
    assert {"name": "FLYLAB_CHEK", "nearest": "FLYLAB_CHECK"} in unknown
