"""No operation without a place: after tracing, each operation leads to a line of the kernel's file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mlir import ir

import flylab.compiler as flyc
from flylab.dialect.context import entered
from tests.benchmarks.cold import vector_add

FILE = Path(vector_add.__file__)
CODE_LINES = range(1, FILE.read_text().count("\n") + 1)


def inner_operations(root: Any) -> Iterator[Any]:
    """Every operation inside `root`, but for the modules, which stand for the whole file."""
    for region in root.regions:
        for block in region.blocks:
            for view in block.operations:
                if view.operation.name not in ("gpu.module", "builtin.module"):
                    yield view.operation
                yield from inner_operations(view.operation)


def without_place(root: Any, file: str) -> list[str]:
    """The operations inside `root` whose location names no line of `file`."""
    line = re.compile(rf'{re.escape(file)}":(\d+):')
    places = {op: [int(number) for number in line.findall(str(op.location))] for op in inner_operations(root)}
    return [f"{op.name} at {op.location}" for op, lines in places.items() if not set(lines) & set(CODE_LINES)]


@pytest.mark.parametrize("launcher", [vector_add.launch_scalar, vector_add.launch_wide], ids=["scalar", "wide"])
def test_every_traced_operation_has_a_place(launcher: Any) -> None:
    a, b, c = (np.ones(4096, np.float32) for _ in range(3))
    made = flyc.compile(launcher, a, b, c, 4096)
    with entered():
        traced = ir.Module.parse(made.traced_text)
        assert len(list(inner_operations(traced.operation))) > 20
        assert without_place(traced.operation, FILE.name) == []


def test_an_operation_without_a_place_is_found() -> None:
    text = 'func.func @f() { %a = arith.constant 1 : i32 loc(unknown)\n return loc("k.py":3:1) } loc("k.py":2:1)'
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        module = ir.Module.parse(text)
        assert without_place(module.operation, "k.py") == ["arith.constant at loc(unknown)"]
