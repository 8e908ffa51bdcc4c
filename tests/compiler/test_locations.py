"""Every operation knows its line: after tracing none is without one, and each stage's links lead to the right lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.compiler.trace import trace
from flylab.dialect.context import entered
from flylab.passes.rewriter import operations, source_line
from flylab.runtime.arguments import bind
from flylab.targets import target
from tests.kernels import reference_kernels
from tests.samples import cell, kernel_of

F32 = np.zeros(4096, np.float32)
MATRIX = np.zeros((32, 32), np.float32)


@dataclass
class Pair:
    a: Any
    b: Any


def in_odd_places(A: fx.Tensor) -> None:
    """Operations made inside of Python's library and of generated code."""
    import functools
    import operator

    t = fx.thread_idx.x
    total = functools.reduce(operator.add, [t, t * 2, t * 3])
    pair = Pair(total + 1, [x + 1 for x in (t, total)])
    A[t] = fx.Float32(pair.a + sorted(pair.b, key=lambda v: v.bounds or (0, 0))[0])


@flyc.jit
def odd(A: fx.Tensor) -> None:
    flyc.kernel(in_odd_places)(A).launch(grid=1, block=64)


CASES = {
    "copy": (reference_kernels.layout_copy, (F32, F32, 4096)),
    "square": (reference_kernels.square, (F32, F32, 4096)),
    "gemm": (reference_kernels.gemm, (MATRIX, MATRIX, MATRIX, 32, 32, 32)),
    "odd": (odd, (F32,)),
}


def traced(launcher: Any, args: tuple[Any, ...]) -> Iterator[Any]:
    """Every operation of the traced module but the module itself."""
    values = launcher.signature.bind(args, {})
    hosts = [bind(p, values[p.name]).host for p in launcher.signature.parameters]
    with entered():
        module = trace(launcher, hosts, target("gfx942")).module
        yield from operations(module.operation)


@pytest.mark.parametrize("name", CASES)
def test_no_operation_without_a_line(name: str) -> None:
    launcher, args = CASES[name]
    count = 0
    for op in traced(launcher, args):
        where = source_line(op.location)
        assert where is not None, str(op)
        assert where.file in (reference_kernels.__file__, __file__), (op.name, where)
        assert where.text.strip(), (op.name, where)
        count += 1
    assert count > 10


@pytest.mark.parametrize("name", ["copy", "square", "gemm"])
def test_links_of_every_stage_lead_into_the_traced_functions(name: str) -> None:
    launcher, args = CASES[name]
    compiled = flyc.compile(launcher, *args)
    functions = [launcher, *compiled.functions.values()]
    allowed = {
        line
        for f in functions
        for line in range(f.source.first_line, f.source.first_line + len(f.source.text.splitlines()))
    }
    for stage in compiled.stages():
        linked = {line for line in stage.lines if line is not None}
        assert linked, stage.name
        # The gpu.module is made by the call that compiles, which is not in the kernels' file.
        assert linked <= allowed, (stage.name, linked - allowed)


def by_line(stage: Any, word: str) -> set[int | None]:
    return {line for line, text in zip(stage.lines, stage.text.splitlines(), strict=True) if word in text}


def test_links_name_the_right_lines() -> None:
    names = kernel_of("""
        t = fx.thread_idx.x
        x = A[t]
        y = (x *
             x)
        A[t] = y
    """)
    compiled = flyc.compile(names["launch"], np.zeros(64, np.float32))
    stages = {s.name: s for s in compiled.stages()}
    assert by_line(stages["source"], "x = A[t]") == {4}
    assert by_line(stages["rewritten"], "x = A[t]") == {4}
    assert by_line(stages["ir"], "arith.mulf") == {5}
    assert by_line(stages["convert-fly-to-rocdl"], "llvm.load") == {4}
    assert by_line(stages["llvm"], "fmul") == {5}
    assert by_line(stages["llvm"], "store") == {7}
    assert by_line(stages["isa"], "global_load_dword") == {4}
    assert by_line(stages["isa"], "v_mul_f32") == {5}
    assert by_line(stages["isa"], "global_store_dword") == {7}
    sources = {i.mnemonic: i.source for i in compiled.isa.kernels["k"].instructions}
    mul = sources["v_mul_f32_e32"]
    assert mul is not None and mul[1] == 5


def test_lines_of_other_files_link_to_none() -> None:
    helper = cell("# 1\n# 2\n# 3\n# 4\n# 5\n# 6\n# 7\n# 8\n# 9\n# 10\n# 11\ndef twice(x):\n    return x + x\n")
    names = kernel_of("A[0] = twice(A[1])")
    names["twice"] = helper["twice"]
    compiled = flyc.compile(names["launch"], np.zeros(64, np.float32))
    stages = {s.name: s for s in compiled.stages()}
    assert by_line(stages["ir"], "arith.addf") == {None}
    assert by_line(stages["llvm"], "fadd") == {None}
    assert by_line(stages["isa"], "v_add_f32") == {None}
    assert by_line(stages["isa"], "global_store_dword") == {3}
    # Seen from the launcher, whose file is that of the kernel, nothing differs.
    assert [s.lines for s in names["launch"].stages()[2:]] == [s.lines for s in names["k"].stages()[2:]]


@pytest.mark.parametrize("file", ["k.py", "a b/größe.py", "<cell 'x\"y'>", "C:\\k.py", '/abs/loc("k").py'])
def test_odd_names_of_files(file: str) -> None:
    import linecache

    text = (
        "@flyc.kernel\ndef k(A: fx.Tensor):\n    A[0] = A[1] * 3.0\n"
        "@flyc.jit\ndef launch(A: fx.Tensor):\n    k(A).launch(grid=1, block=64)\n"
    )
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"fx": fx, "flyc": flyc}
    exec(compile(text, file, "exec"), names)
    compiled = flyc.compile(names["launch"], np.zeros(64, np.float32))
    stages = {s.name: s for s in compiled.stages()}
    assert by_line(stages["ir"], "arith.mulf") == {3}
    assert by_line(stages["llvm"], "fmul") == {3}
    assert by_line(stages["isa"], "v_mul_f32") == {3}
