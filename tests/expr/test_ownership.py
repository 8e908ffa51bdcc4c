"""A value of the device has a meaning only in the kernel or launcher whose trace made it; elsewhere it is refused."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from tests.samples import cell

SMALL, LARGE = np.zeros(64, np.float32), np.zeros(128, np.float32)

# A cell whose `go(A)` works once and keeps a value, which its second trace (another shape) would use; the name given.
KEPT: dict[str, tuple[str, str]] = {
    "a cached helper": ("@functools.cache\ndef lane():\n    return fx.thread_idx.x % 64", "A[lane()] = 1.0"),
    "a default": ("def lane(kept={}):\n    return kept.setdefault(0, fx.thread_idx.x)", "A[lane()] = 1.0"),
    "a list": ("kept = []", "kept.append(fx.thread_idx.x)\nA[kept[0]] = 1.0"),
    "a global": ("Z = None", "global Z\nZ = fx.thread_idx.x if Z is None else Z\nA[Z] = 1.0"),
    "a vector": ("kept = []", "kept.append(A[0] + fx.Vector.filled(2, 1.0, fx.Float32))\nA[0] = kept[0][1]"),
    "a pointer": ("kept = []", "kept.append(fx.get_iter(A))\nkept[0][1] = 1.0"),
    "a value of MLIR": ("kept = []", "kept.append(fx.thread_idx.x.value)\nA[fx.Int32(kept[0])] = 1.0"),
}


def launcher(setup: str, body: str) -> Any:
    names: dict[str, Any] = cell(f"""
{setup}

@flyc.kernel
def k(A: fx.Tensor):
    {body.replace(chr(10), chr(10) + "    ")}

@flyc.jit
def go(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
""".replace("@functools", "import functools\n@functools"))
    return names


@pytest.mark.parametrize("name", KEPT)
def test_a_value_kept_from_an_earlier_trace(name: str) -> None:
    names = launcher(*KEPT[name])
    names["go"](SMALL.copy())
    with pytest.raises(TraceError, match="belongs to another kernel or launch, and the kernel 'k' uses it") as caught:
        names["go"](LARGE.copy())
    assert "make it anew in this kernel" in str(caught.value.hint)
    assert caught.value.where is not None and caught.value.where.function in ("k", "lane")


def test_a_global_is_named() -> None:
    names = launcher(*KEPT["a global"])
    names["go"](SMALL.copy())
    with pytest.raises(TraceError, match="'Z' belongs"):
        names["go"](LARGE.copy())


def test_after_the_launch() -> None:
    """The wrapper refuses; the text of MLIR's own value, which no wrapper guards, is still what it was."""
    names = launcher("kept = []", "x = fx.thread_idx.x + 1\nkept.append(x)\nkept.append(x.value)\nA[x - 1] = 1.0")
    names["go"](SMALL.copy())
    wrapper, raw = names["kept"]
    for use in (lambda: wrapper.value, lambda: wrapper + 1, lambda: wrapper.to(fx.Float32), lambda: wrapper < 2):
        with pytest.raises(TraceError, match="used after its kernel was traced") as caught:
            use()
        assert "write it into a tensor" in str(caught.value.hint)
    assert repr(wrapper) == "Int32(?)"
    assert "arith.addi" in str(raw)


def test_two_kernels_of_one_object() -> None:
    class Layer:
        tiles: Any = None

        @flyc.kernel
        def first(self, A: fx.Tensor):
            self.tiles = fx.logical_divide(A, 4)
            A[0] = 1.0

        @flyc.kernel
        def second(self, A: fx.Tensor):
            fx.slice(self.tiles, (None, 0)).fill(2.0)

        @flyc.jit
        def go(self, A: fx.Tensor):
            self.first(A).launch(grid=1, block=64)
            self.second(A).launch(grid=1, block=64)

    with pytest.raises(TraceError, match="this Tensor belongs to another kernel or launch, and the kernel 'second'"):
        Layer().go(SMALL)


@pytest.mark.parametrize("body, name", [("B[n] = 1.0", "n"), ("B[0] = A[0]", "A"), ("B[0] = (n + 1) * 2.0", "n")])
def test_a_nested_kernel_and_the_launchers_values(body: str, name: str) -> None:
    @flyc.jit
    def go(A: fx.Tensor, n: fx.Int32):
        names = cell(f"def make(A, n):\n    @flyc.kernel\n    def k(B: fx.Tensor):\n        {body}\n    return k")
        names["make"](A, n)(A).launch(grid=1, block=64)

    message = f"'{name}' belongs to the launcher 'go', and the kernel 'k' uses it"
    with pytest.raises(TraceError, match=message) as caught:
        go(SMALL, 3)
    assert caught.value.hint == "pass it to the kernel as a parameter"


def test_a_launcher_and_a_kernels_values() -> None:
    kept: list[Any] = []

    @flyc.kernel
    def k(A: fx.Tensor):
        kept.append(fx.thread_idx.x)
        A[0] = 1.0

    @flyc.jit
    def go(A: fx.Tensor):
        k(A).launch(grid=1, block=64)
        k(A).launch(grid=kept[0] + 1, block=64)

    with pytest.raises(TraceError, match="belongs to the kernel 'k', and the launcher 'go' uses it"):
        go(SMALL)


def test_what_may_be_kept() -> None:
    """Numbers known while tracing belong to nobody."""

    @functools.cache
    def two() -> Any:
        return fx.Int32(1) + 1

    @flyc.kernel
    def k(A: fx.Tensor):
        A[two()] = two().to(fx.Float32)

    @flyc.jit
    def go(A: fx.Tensor):
        k(A).launch(grid=1, block=64)

    for size in (64, 128):
        data = np.zeros(size, np.float32)
        go(data)
        assert data[2] == 2.0 and data.sum() == 2.0
