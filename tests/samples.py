"""Helpers that the tests of the compiler's way share, beside the reference's kernels."""

from __future__ import annotations

import linecache
import sys
import textwrap
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any

import numpy as np

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.expr import gpu, range_constexpr
from flylab.runtime.compiled import Compiled

_cells = count(1)


def cell(text: str, **more: Any) -> dict[str, Any]:
    """Run a text the way a notebook runs a cell, under a name of its own; its names with `more`, and `FILE`."""
    text = textwrap.dedent(text).lstrip("\n")
    file = f"<cell {next(_cells)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"fx": fx, "flyc": flyc, "gpu": gpu, "range_constexpr": range_constexpr, "FILE": file}
    names.update(more)
    exec(compile(text, file, "exec", dont_inherit=True), names)
    return names


def kernel_of(body: str, parameters: str = "A: fx.Tensor", block: int | str = 64) -> dict[str, Any]:
    """A cell with a kernel of this body (from line 3 on) over A, launched over one block by `launch(A)`."""
    inner = textwrap.indent(textwrap.dedent(body).strip("\n"), "    ")
    names = ", ".join(p.split(":")[0].strip() for p in parameters.split(", "))
    return cell(
        f"@flyc.kernel\ndef k({parameters}):\n{inner}\n\n"
        f"@flyc.jit\ndef launch({parameters}):\n    k({names}).launch(grid=1, block={block})\n"
    )


def compile_body(body: str, dtype: Any = np.float32) -> Compiled:
    """The compilation of a kernel of this body over `A` (64 elements)."""
    compiled: Compiled = flyc.compile(kernel_of(body)["launch"], np.zeros(64, dtype))
    return compiled


def on_device(function: Any, *inputs: Any, out: Any) -> Any:
    """`function` of one element of each of one or two inputs, for all elements, on the software device.

    The result is an array of numpy's dtype `out`.
    """
    result = np.zeros(len(inputs[0]), out)
    padding = -len(result) % 64
    arrays = [np.concatenate([np.asarray(i), np.ones(padding, np.asarray(i).dtype)]) for i in inputs]
    padded = np.zeros(len(result) + padding, out)

    @flyc.kernel
    def apply_kernel(tensors: fx.Constexpr, *, R: fx.Tensor, P: fx.Tensor, Q: fx.Tensor):
        i = gpu.block_id("x") * 64 + gpu.thread_id("x")
        R[i] = function(*(t[i] for t in (P, Q)[:tensors]))

    @flyc.jit
    def apply(R: fx.Tensor, P: fx.Tensor, Q: fx.Tensor, n: fx.Constexpr[int]):
        apply_kernel(len(inputs), R=R, P=P, Q=Q).launch(grid=n // 64, block=64)

    apply(padded, arrays[0], arrays[-1], len(padded))
    return padded[: len(result)]


def in_threads(work: Callable[[int], None], count: int) -> None:
    """Call `work` with 0 to `count` - 1, each in a thread, switching between them often; the first error of any."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(work, range(count)))
    finally:
        sys.setswitchinterval(before)
