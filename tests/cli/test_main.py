"""The program: commands, help, exit codes, and streams that are closed, full, or not of UTF-8."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from flylab.cli import output
from flylab.cli.main import COMMANDS, parser
from tests.cli.conftest import start
from tests.house.rules import ROOT

NAMES = [command.__name__.rpartition(".")[2] for command in COMMANDS]


def test_the_package_has_the_program() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["scripts"] == {"flylab": "flylab.cli.main:main"}
    assert NAMES == ["doctor", "lab", "compile", "run", "env"]


@pytest.mark.parametrize("name", NAMES)
def test_help_has_an_example(flylab: Any, name: str) -> None:
    done = flylab(name, "--help")
    assert done.code == 0 and re.search(rf"^flylab {name}\b", done.out, re.M) and len(done.out.splitlines()) < 70


def test_every_example_of_the_help_is_a_command() -> None:
    made = parser()
    texts = [command.EPILOG for command in COMMANDS] + [made.epilog]
    found = [re.split(r" {2,}", line)[0] for text in texts for line in text.splitlines()]
    examples = [line.split(" -- ")[0].split()[1:] for line in found if line.startswith("flylab ")]
    assert len(examples) >= 12
    for example in examples:
        made.parse_args(example)


@pytest.mark.parametrize("arguments, words", [
    ([], "required: COMMAND\nhint: see flylab --help"),
    (["complie"], "invalid choice: 'complie'"), (["complie"], "did you mean 'compile'?"),
    (["env", "--jsn"], "unrecognized arguments: --jsn\nhint: did you mean '--json'?"),
    (["compile"], "required: FILE[:NAME]\nhint: see flylab compile --help"),
    (["lab", "--port", "9000"], "unrecognized arguments: --port\nhint: JupyterLab's options go after --"),
    (["run"], "required: FILE[:LAUNCHER]\nhint: see flylab run --help"),
    (["doctor", "--js"], "unrecognized arguments: --js"),
])
def test_a_wrong_command_line(flylab: Any, arguments: list[str], words: str) -> None:
    done = flylab(*arguments)
    assert (done.code, done.out) == (2, "") and words in done.err and "Traceback" not in done.err


@pytest.mark.parametrize("arguments, code, kind", [
    (["env", "--json", "--jsn"], 2, "UsageError"), (["compile", "nowhere.py", "--json"], 2, "UsageError"),
    (["run", "broken.py:x", "--json", "-a", "n=1"], 1, "FlylabError"),
    (["compile", "--json", "broken.py"], 1, "FlylabError"),
])
def test_json_is_printed_where_the_command_is_wrong_too(flylab: Any, tmp_path: Path, arguments: list[str], code: int,
                                                        kind: str) -> None:
    (tmp_path / "broken.py").write_text("\n1 / 0\n")
    done = flylab(*arguments)
    found = json.loads(done.out)
    assert (done.code, found["exit_code"], found["errors"][0]["kind"]) == (code, code, kind)
    assert found["errors"][0]["line"] == (2 if code == 1 else None) and done.err.startswith("error: ")
    assert flylab("run", "nowhere.py", "--", "--json").out == ""


def test_the_version(flylab: Any) -> None:
    import flylab as package

    assert flylab("--version").out == f"flylab {package.__version__}\n"


def test_nobody_reads_the_output() -> None:
    process = start("env")
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (141, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="a system without /dev/full")
def test_the_disk_is_full() -> None:
    with open("/dev/full", "w") as full:
        process = start("env", "--json", stdout=full)
    assert process.stderr is not None
    assert process.wait(60) == 1 and process.stderr.read().startswith("error: the output cannot be written: ")


def test_a_closed_output() -> None:
    done = subprocess.run(["sh", "-c", f"{sys.executable} -m flylab env >&-"], text=True, stderr=subprocess.PIPE,
                          env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 2 and done.stderr.startswith("error: the standard output is closed")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_a_terminal_that_is_not_of_utf_8(encoding: str) -> None:
    process = start("env", env={"PYTHONIOENCODING": encoding, "FLYLAB_DUMP_DIR": "Ordner-ł-λ", "PYTHONUTF8": "0"})
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and err == ""
    assert r"Ordner-\u0142-\u03bb" in out
    process = start("env", "--json", env={"PYTHONIOENCODING": encoding, "FLYLAB_DUMP_DIR": "Ordner-ł"})
    assert r"Ordner-\u0142" in process.communicate(timeout=60)[0]


def test_tables_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is narrow, the last column stands below, and numbers stand in columns."""
    monkeypatch.setattr(output, "_columns", lambda: 40)
    made = output.table([("a" * 20, "b" * 15, "words " * 12)], ("first", "second", "meaning"))
    assert all(len(line) <= 40 for line in made.splitlines())
    assert made.splitlines()[2:4] == [f"{'a' * 20}  {'b' * 15}", "    words words words words words words"]
    numbers = [(name, *range(12)) for name in ("first", "second")]
    turned = output.table(numbers, ("kernel", *"abcdefghijkl"), right=range(1, 13)).splitlines()
    assert [line.split() for line in turned] == [["kernel", "first", "second"],
                                                 *([c, str(n), str(n)] for n, c in enumerate("abcdefghijkl"))]


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="a system without terminals")
@pytest.mark.parametrize("plain", [{}, {"NO_COLOR": "1"}])
def test_colours_are_for_terminals(plain: dict[str, str]) -> None:
    ours, theirs = os.openpty()
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"}
    process = subprocess.run([sys.executable, "-m", "flylab", "nothing"], stderr=theirs, stdin=theirs,
                             env={**environment, "PYTHONPATH": str(ROOT), **plain})
    said = os.read(ours, 10_000).decode()
    os.close(theirs), os.close(ours)
    assert process.returncode == 2 and ("\x1b[31merror:\x1b[0m" in said) == (not plain) and "error:" in said


def test_it_starts_without_compilers_and_numbers() -> None:
    """What a command does not need is not imported: `flylab env` and `--help` are there at once."""
    script = ("import sys; from flylab.cli.main import main; main(['env']); "
              "sys.exit(' '.join({'numpy', 'mlir', 'llvmlite', 'torch', 'matplotlib'} & set(sys.modules)) or 0)")
    done = subprocess.run([sys.executable, "-c", script], text=True, capture_output=True,
                          env={"PYTHONPATH": str(ROOT), "PATH": ""})
    assert (done.returncode, done.stderr) == (0, "")
