"""Environment variables: what each may hold, where a value comes from, and that nothing else reads the environment."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from flylab import settings
from flylab.errors import FlylabError
from flylab.settings import FLAG, FOLDER, Setting, choice, number, size
from tests.house.rules import ROOT, tracked

# It compares the variables of all rows at each launch, and so reads them its own way.
OF_ALL_ROWS = "flylab/runtime/fast/surroundings.py"
READERS = {"environ", "environb", "getenv", "getenvb"}


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for row in settings.ALL for name in row.names]:
        monkeypatch.delenv(name, raising=False)


def test_each_variable_has_one_row_and_a_default_of_its_kind() -> None:
    names = [name for row in settings.ALL for name in row.names]
    assert len(names) == len(set(names)) and len(settings.ALL) > 12
    assert all(row.default or row.unset for row in settings.ALL)
    for row in settings.ALL:
        if row.default:
            row.value()


@pytest.mark.parametrize("row", [row for row in settings.ALL if row.kind.wrong], ids=lambda row: row.name)
def test_the_error_names_the_variable_that_was_set(row: Setting[object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HOME", raising=False)
    for name in reversed(row.names):
        monkeypatch.setenv(name, "~nobody-of-this-name/x")
        assert row.source == name
        with pytest.raises(FlylabError) as caught:
            row.value()
        assert caught.value.message.startswith(f"{name}='~nobody-of-this-name/x' ")
        assert caught.value.hint


@pytest.mark.parametrize("text, value", [("8", 8), ("64", 64), ("7", None), ("65", None), ("+9", None), ("9.0", None),
                                         ("\u0668", None), ("\u00b2", None), (" 9", None), ("0x9", None)])
def test_numbers(text: str, value: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Setting("TRIED", "9", number(8, 64, "a number"), "")
    monkeypatch.setenv("FLYLAB_TRIED", text)
    if value is not None:
        assert row.value() == value
    else:
        with pytest.raises(FlylabError, match="is no number from 8 to 64"):
            row.value()


@pytest.mark.parametrize("text, value", [
    ("8", 8), ("1k", 1024), ("1K", 1024), ("3KiB", 3072), ("2MB", 2 << 20), ("512M", 512 << 20), ("1g", 1 << 30),
    ("1T", 1 << 40), ("2T", None), ("7", None), ("M", None), ("1.5G", None), ("1 G", None), ("-1K", None),
    ("\u0668K", None), ("8B", None), ("1Ki", None), ("1MM", None),
])
def test_sizes(text: str, value: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    row = Setting("TRIED", "9", size(8, 1 << 40), "")
    monkeypatch.setenv("FLYLAB_TRIED", text)
    if value is not None:
        assert row.value() == value
    else:
        with pytest.raises(FlylabError, match="is no number of bytes from 8 to .*\nhint: .*4096, 512M or 2G"):
            row.value()


def test_choices_and_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Setting("TRIED", "~/x", FOLDER, "").value() == tmp_path / "x"
    row = Setting("TRIED", "one", choice("one", "two", "three"), "")
    monkeypatch.setenv("FLYDSL_TRIED", "two")
    assert row.value() == "two"
    monkeypatch.setenv("FLYDSL_TRIED", "Two")
    with pytest.raises(FlylabError, match="FLYDSL_TRIED='Two' is none of one, two, three\nhint: use one, two or three"):
        row.value()


def test_a_foreign_variable_has_neither_prefix_nor_alias(monkeypatch: pytest.MonkeyPatch) -> None:
    row = Setting("TRIED", "0", FLAG, "", foreign=True)
    monkeypatch.setenv("FLYLAB_TRIED", "1")
    assert (row.names, row.source, row.value()) == (("TRIED",), None, False)
    monkeypatch.setenv("TRIED", "1")
    assert (row.source, row.value()) == ("TRIED", True)


def readers(text: str) -> list[str]:
    """The names of a text that read the environment, unless they only write it or hand it on whole."""
    tree = ast.parse(text)
    handed_on = [unpacked for node in ast.walk(tree) if isinstance(node, ast.Dict)
                 for key, unpacked in zip(node.keys, node.values, strict=True) if key is None]
    written = [target.value for node in ast.walk(tree) if isinstance(node, ast.Assign)
               for target in node.targets if isinstance(target, ast.Subscript)]
    return [f"line {node.lineno}: {ast.unparse(node)}" for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and node.attr in READERS and node not in [*handed_on, *written]
            or isinstance(node, ast.Name) and node.id in READERS
            or isinstance(node, ast.alias) and node.name in READERS]


def test_the_search_finds_each_way_to_read() -> None:
    ways = ["os.environ['A']", "os.getenv('A')", "from os import environ", "'A' in os.environ", "environ.get('A')"]
    assert all(readers(way) for way in ways)
    assert not readers("os.environ['A'] = '1'") and not readers("run({**os.environ, 'A': '1'})")


def test_nothing_but_the_rows_reads_the_environment() -> None:
    texts = {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8")
             for file in tracked("flylab/*.py", "kernels/*.py")}
    assert len(texts) > 300 and "for row in settings.ALL" in texts.pop(OF_ALL_ROWS)
    del texts["flylab/settings.py"]
    found = [f"{name}: {line}" for name, text in texts.items() for line in readers(text)]
    assert found == []


def test_the_table_of_the_readme_is_the_rows() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = re.search(r"^\| variable \| default \| meaning \|\n\|---\|---\|---\|\n((?:\|.*\n)+)", text, re.M)
    assert table
    wanted = "".join(f"| `{row.names[0]}` | {f'`{row.default}`' if row.default else row.unset} | {row.meaning} |\n"
                     for row in settings.ALL)
    assert table[1] == wanted, f"the table has to be\n{wanted}"
