"""The house rules, each held over the repository and tried on a text that breaks it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import rules

PYTHON = [file for file in rules.tracked("*.py") if "data" not in file.parts]
LIBRARY = [file for file in PYTHON if file.relative_to(rules.ROOT).parts[0] in {"flylab", "kernels"}]
NOTEBOOKS = rules.tracked("*.ipynb")
TEXTS = rules.tracked("*.py", "*.md", "*.ipynb", "*.toml", "*.js", "*.css", "Makefile", ".ci/run", "binder/*")

Rule = Callable[[str], list[str]]


def breaking(rule: Rule, files: list[Path]) -> dict[str, list[str]]:
    """What each file breaks, by its name; files that break nothing are left out."""
    assert files, "the rule reads no file"
    found = {str(file.relative_to(rules.ROOT)): rule(file.read_text(encoding="utf-8")) for file in files}
    return {name: broken for name, broken in found.items() if broken}


def test_files_and_functions_are_short() -> None:
    assert breaking(rules.too_long, PYTHON) == {}


def test_what_is_public_has_a_docstring() -> None:
    assert breaking(rules.without_docstring, LIBRARY) == {}


def test_nothing_is_put_off() -> None:
    assert breaking(rules.unfinished, PYTHON) == {}


def test_no_property_holds_a_lock() -> None:
    locks = rules.ROOT / "flylab/locks.py"
    assert breaking(rules.locked_properties, [file for file in LIBRARY if file != locks]) == {}


def test_no_path_of_one_machine() -> None:
    assert breaking(rules.foreign_paths, TEXTS) == {}


def test_notebooks_are_clean() -> None:
    assert breaking(rules.unclean_notebook, NOTEBOOKS) == {}


def test_kernels_is_no_package_of_its_own() -> None:
    # flylab/kernels/__init__.py is the package; one more would be written over it in the wheel.
    assert not (rules.ROOT / "kernels/__init__.py").exists()


LONG_FUNCTION = "def f():\n" + "    x = 1\n" * 60
METHOD = 'class A:\n    """One."""\n\n    def f(self):\n        x = 1\n        return x\n'


@pytest.mark.parametrize("rule, text, sentence", [
    (rules.too_long, "x = 1\n" * 501, "the file has 501 lines, more than 500"),
    (rules.too_long, LONG_FUNCTION, "line 1: f has 61 lines, more than 60"),
    (rules.too_long, "class A:\n" + LONG_FUNCTION.replace("\n", "\n    ").replace("def", "    async def"),
     "line 2: f has 61 lines, more than 60"),
    (rules.without_docstring, "x = 1\n", "the module has no docstring"),
    (rules.without_docstring, '"""Module."""\ndef f():\n    pass\n', "line 2: f has no docstring"),
    (rules.without_docstring, '"""Module."""\nclass A:\n    x = 1\n', "line 2: A has no docstring"),
    (rules.without_docstring, f'"""Module."""\n{METHOD}', "line 5: f has no docstring"),
    (rules.unfinished, "x = 1  # " + rules.UNFINISHED_WORDS[0] + ": later\n",
     "line 1: # " + rules.UNFINISHED_WORDS[0] + ": later"),
    (rules.unfinished, f"def f():\n    raise {rules.UNFINISHED_ERROR}\n", f"line 2: {rules.UNFINISHED_ERROR}"),
    (rules.locked_properties, "import os\nfrom functools import cache, cached_property\n",
     "line 2: cached_property of functools"),
    (rules.foreign_paths, "open('" + "/ho" + "me/me/x')\n", "line 1: " + "/ho" + "me/m"),
    (rules.foreign_paths, "\nopen('.." + "/shared/data')\n", "line 2: .." + "/shared"),
])
def test_a_broken_rule_is_found(rule: Rule, text: str, sentence: str) -> None:
    assert rule(text) == [sentence]


@pytest.mark.parametrize("rule, text", [
    (rules.too_long, "x = 1\n" * 500),
    (rules.too_long, LONG_FUNCTION.removesuffix("    x = 1\n")),
    (rules.without_docstring, '"""Module."""\ndef _f():\n    pass\n'),
    (rules.without_docstring, '"""Module."""\n' + METHOD.replace("x = 1\n        return x", "return 1")),
    (rules.without_docstring, ""),
    (rules.unfinished, "text = '" + rules.UNFINISHED_WORDS[0] + "'\n"),
    (rules.locked_properties, "from functools import cache\nfrom flylab.locks import cached_property\n"),
    (rules.foreign_paths, "https://example.org/ho" + "me/x and tests/work/x\n"),
])
def test_a_kept_rule_is_let_through(rule: Rule, text: str) -> None:
    assert rule(text) == []


def notebook(metadata: dict[str, object], *cells: dict[str, object]) -> str:
    plain = {"cell_type": "code", "metadata": {}, "source": ["x"], "execution_count": 1, "outputs": []}
    return json.dumps({"metadata": metadata, "cells": [{**plain, **cell} for cell in cells]})


@pytest.mark.parametrize("text, sentence", [
    (notebook({"widgets": {}}), "the notebook carries widget state"),
    (notebook({}, {}, {"execution_count": 3}), "the cells were not run in order, from the first to the last"),
    (notebook({}, {"execution_count": None}), "the cells were not run in order, from the first to the last"),
    (notebook({}, {"outputs": [{"output_type": "display_data", "data": {rules.WIDGET_TYPES[0]: {}}}]}),
     "cell 0 carries a widget"),
    (notebook({}, {"outputs": [{"output_type": "error", "ename": "A", "evalue": "b", "traceback": []}]}),
     "cell 0 shows an error and has no tag raises-exception"),
    (notebook({}, {"outputs": [{"output_type": "stream", "text": ["a\n", "/ro" + "ot/x\n"]}]}),
     "cell 0: " + "/ro" + "ot/x"),
])
def test_an_unclean_notebook_is_found(text: str, sentence: str) -> None:
    assert rules.unclean_notebook(text) == [sentence]


def test_a_clean_notebook_is_let_through() -> None:
    picture = {"output_type": "display_data", "data": {"image/png": "iVBORw0/ro" + "ot/"}}
    assert rules.unclean_notebook(notebook({}, {"outputs": [picture]}, {"execution_count": 2})) == []
