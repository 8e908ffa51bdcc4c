"""R08: a module is imported, its file edited, deleted or never there, and then comes the first call.

What runs is what was imported, or it is refused: for kernels, launchers and plain helpers.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import py_compile
import sys
import types
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flylab.errors import TraceError
from tests.samples import kernel_of

KERNELS = """import helpers_of_{number} as helpers
import flylab.compiler as flyc
import flylab.expr as fx


@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = helpers.chosen(A[fx.thread_idx.x]) + 1.0


@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""
HELPERS = """def chosen(x):
    if x > 3.0:
        return x * 2.0
    return x
"""
_numbers = count()


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., types.ModuleType]]:
    """Imports a module of kernels and one of helpers, from their files."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load() -> types.ModuleType:
        number = next(_numbers)
        (tmp_path / f"kernels_of_{number}.py").write_text(KERNELS.format(number=number))
        (tmp_path / f"helpers_of_{number}.py").write_text(HELPERS)
        importlib.invalidate_caches()
        return importlib.import_module(f"kernels_of_{number}")

    yield load
    for name in [n for n in sys.modules if n.startswith(("kernels_of_", "helpers_of_"))]:
        del sys.modules[name]


def edit(module: types.ModuleType, change: Callable[[str], str | None]) -> None:
    """Edit the file of a module, or delete it, as a later second would."""
    file = Path(str(module.__file__))
    text = change(file.read_text())
    if text is None:
        file.unlink()
    else:
        file.write_text(text)
        os.utime(file, (2_000_000_000 + next(_numbers),) * 2)


def ran(launch: Any, value: float = 5.0) -> float:
    a = np.full(64, value, np.float32)
    launch(a)
    return float(a[0])


EDITS: dict[str, Callable[[str], str | None]] = {
    "three lines on top": lambda text: "# 1\n# 2\n# 3\n" + text,
    "the body alone": lambda text: text.replace("+ 1.0", "+ 7.0").replace("2.0", "9.0"),
    "a constant's type alone": lambda text: text.replace("1.0", "1").replace("2.0", "2"),
    "a nested part alone": lambda text: text.replace("helpers.chosen(A", "(lambda v: v)(A"),
    "another function in its place": lambda text: "def other(x):\n    return x\n" * 8,
    "no Python any more": lambda text: text.replace("def ", "def def "),
    "empty": lambda text: "",
    "deleted": lambda text: None,
}


@pytest.mark.parametrize("name", EDITS)
def test_r08_kernels_and_launchers_run_as_they_were_imported(name: str, imported: Any) -> None:
    module = imported()
    edit(module, EDITS[name])
    assert ran(module.launch) == 11.0
    assert module.k.source.text.startswith("@flyc.kernel\ndef k(A: fx.Tensor):\n    A[fx.thread_idx.x] = helpers.ch")


@pytest.mark.parametrize("name", EDITS)
def test_r08_a_helper_is_refused_unless_its_text_is_there(name: str, imported: Any) -> None:
    """A module without kernels is read at the first call, so that its text may be another than what was imported."""
    module = imported()
    edit(module.helpers, EDITS[name])
    if name == "a nested part alone":  # which is not in this file
        assert ran(module.launch) == 11.0
        return
    with pytest.raises(TraceError) as caught:
        ran(module.launch)
    said = str(caught.value)
    missing = "cannot be found" in said and name in ("empty", "deleted")
    assert missing or "the file changed after its import" in said and "importlib.reload" in said


def test_r08_a_helper_whose_lines_moved_back_is_read(imported: Any) -> None:
    module = imported()
    text = Path(str(module.helpers.__file__)).read_text()
    edit(module.helpers, lambda text: "# 1\n" + text)
    edit(module.helpers, lambda _: text + "\nmore = 1\n")
    assert ran(module.launch) == 11.0


def test_r08_errors_show_the_line_that_was_imported(tmp_path: Path, imported: Any) -> None:
    module = imported()
    edit(module, lambda text: "# 1\n# 2\n# 3\n" + text)
    module.helpers = types.SimpleNamespace(chosen=lambda x: x.nothing_like_it)
    with pytest.raises(Exception, match="nothing_like_it"):
        ran(module.launch)
    module.helpers = types.SimpleNamespace()
    with pytest.raises(AttributeError):
        ran(module.launch)
    assert module.k.signature.where().text == "@flyc.kernel"


def test_r08_reloaded_it_is_what_the_file_says_now(imported: Any) -> None:
    module = imported()
    old = module.launch
    edit(module, lambda text: "# 1\n# 2\n# 3\n" + text.replace("+ 1.0", "+ 7.0"))
    importlib.reload(module)
    assert ran(module.launch) == 17.0
    # The old launcher calls the kernel that stands in its module now.
    assert ran(old) == 17.0


def test_r08_a_module_that_is_only_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source.py"
    source.write_text(KERNELS.format(number="none").replace("import helpers_of_none as helpers\n", "helpers = None\n"))
    compiled = py_compile.compile(str(source), cfile=str(tmp_path / "only_bytecode.pyc"), doraise=True)
    assert compiled
    source.unlink()
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("only_bytecode")
    with pytest.raises(TraceError, match="the source text of 'launch' cannot be found") as caught:
        ran(module.launch)
    assert "file or a notebook cell" in (caught.value.hint or "")


def test_r08_bytecode_that_is_older_than_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two edits in one second, of texts of one length: Python imports what it compiled of the first."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.syspath_prepend(str(tmp_path))
    file = tmp_path / "stale_rules.py"
    for factor in ("2.0", "9.0"):
        file.write_text(HELPERS.replace("2.0", factor))
        os.utime(file, (1_500_000_000,) * 2)
        if factor == "2.0":
            py_compile.compile(str(file), doraise=True)
    rules = importlib.import_module("stale_rules")
    assert rules.chosen(5.0) == 10.0
    names = kernel_of("A[fx.thread_idx.x] = chosen(A[fx.thread_idx.x])")
    names["chosen"] = rules.chosen
    with pytest.raises(TraceError, match="the file changed after its import"):
        ran(names["launch"])


def test_r08_a_file_whose_asserts_pytest_writes_anew() -> None:
    """Its code is not that of its text, so its text is taken as it was when it was imported."""
    from _pytest.assertion.rewrite import AssertionRewritingHook

    def shifted(x: Any) -> Any:
        assert x is not None, "asserted"
        return x * 2.0 if x > 3.0 else x

    assert isinstance(__loader__, AssertionRewritingHook)  # type: ignore[name-defined]
    names = kernel_of("A[fx.thread_idx.x] = shifted(A[fx.thread_idx.x])")
    names["shifted"] = shifted
    assert ran(names["launch"]) == 10.0
