"""What all tests share: golden files, and `--update-golden`, which writes them anew."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files, compare none")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden("vector_add.mlir", text)` compares a text with `golden/vector_add.mlir` beside the test's file."""
    folder = Path(str(request.path)).parent / "golden"

    def compare(name: str, text: str) -> None:
        file = folder / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        elif not file.is_file():
            pytest.fail(f"no golden file {file.name}: `make golden` writes it; read it before you commit it")
        elif (before := file.read_text(encoding="utf-8")) != text:
            lines = difflib.unified_diff(before.splitlines(), text.splitlines(), name, "now", lineterm="", n=2)
            pytest.fail("\n".join([f"{name} changed; `make golden` accepts it", *lines]), pytrace=False)

    return compare
