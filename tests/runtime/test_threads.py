"""Many threads that compile and launch at once: own results, one compilation for one kind of arguments, own devices."""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import flylab
from flylab.codegen import amdgpu
from flylab.errors import DeviceError, TraceError
from flylab.runtime import finding
from tests.samples import cell

THREADS = 8
TEXT = """
scale = 1.0

@flyc.kernel
def k(A: fx.Tensor, v: fx.Constexpr[float]):
    A[fx.thread_idx.x] = v * scale

@flyc.jit
def launch(A: fx.Tensor, v: fx.Constexpr[float]):
    k(A, v).launch(grid=1, block=64)
"""


def at_once(work: Callable[[int], Any]) -> list[Any]:
    """What `work(number)` gives in each of eight threads that begin at once. Raises what one of them raises."""
    begin = threading.Barrier(THREADS)

    def run(number: int) -> Any:
        begin.wait(60)
        return work(number)

    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(run, range(THREADS)))


def launched(launch: Any, value: float) -> np.ndarray:
    A = np.zeros(64, np.float32)
    launch(A, value)
    return A


@pytest.mark.parametrize("cached", ["0", "1"])
def test_one_compilation_for_one_kind_of_arguments(monkeypatch: pytest.MonkeyPatch, cached: str) -> None:
    builds: Counter[float] = Counter()
    emitted: Counter[Any] = Counter()
    build, emit = finding.build, amdgpu.Optimised._emit

    def counted(launcher: Any, arguments: Any, *rest: Any) -> Any:
        builds[arguments[1].spec] += 1
        return build(launcher, arguments, *rest)

    def counted_emit(self: Any, kind: str) -> Any:
        emitted[self.bitcode, kind] += 1
        return emit(self, kind)

    monkeypatch.setattr(finding, "build", counted)
    monkeypatch.setattr(amdgpu.Optimised, "_emit", counted_emit)
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", cached)
    offset = 100.0 * int(cached)
    for _ in range(2):
        launch = cell(TEXT)["launch"]

        def work(number: int, launch: Any = launch) -> None:
            for step in range(6):
                value = offset + (number + step) % 4 + 1
                assert (launched(launch, value) == value).all()

        at_once(work)
    each = 1 if cached == "1" else 2
    assert builds == {offset + value: each for value in range(1, 5)}
    assert set(emitted.values()) == {1}  # the files of the two cells are in their bitcode


def test_what_threads_read_may_change_meanwhile() -> None:
    """A launch gives what holds before or after a change, never something else, and never an error."""
    names = cell(TEXT)

    def work(number: int) -> None:
        for step in range(8):
            names["scale"] = float(1 + (number + step) % 2)
            assert launched(names["launch"], 3.0)[0] in (3.0, 6.0)

    at_once(work)


def test_each_thread_has_its_device() -> None:
    launch = cell(TEXT)["launch"]

    def work(number: int) -> None:
        chip = ("gfx942", "gfx950")[number % 2]
        with flylab.use(chip):
            for value in range(1, 6):
                A = np.zeros(64, np.float32)
                assert launch(A, float(value)).device.target.arch == chip and (value == A).all()
            assert str(flylab.device()) == f"emulated:{chip}"

    at_once(work)
    assert str(flylab.device()) == "emulated:gfx942"


def test_tasks_and_contexts() -> None:
    launch = cell(TEXT)["launch"]

    async def task(number: int) -> None:
        chip = ("gfx942", "gfx950")[number % 2]
        with flylab.use(chip):
            await asyncio.sleep(0)
            A = np.zeros(64, np.float32)
            assert launch(A, 2.0).device.target.arch == chip and (A == 2.0).all()
            await asyncio.sleep(0)
            assert flylab.device().target.arch == chip

    async def all_tasks() -> None:
        await asyncio.gather(*map(task, range(8)))
        assert (await asyncio.to_thread(launched, launch, 4.0) == 4.0).all()

    asyncio.run(all_tasks())
    assert (contextvars.copy_context().run(launched, launch, 5.0) == 5.0).all()
    with flylab.use("gfx950"):
        context = contextvars.copy_context()
    assert context.run(flylab.device).target.arch == "gfx950" and flylab.device().target.arch == "gfx942"


def test_an_error_stays_in_its_thread() -> None:
    launch = cell(TEXT)["launch"]

    def work(number: int) -> bool:
        A = np.zeros(64 if number % 2 else 32, np.float32)
        try:
            launch(A, 7.0)
        except DeviceError as error:
            assert "out of bounds" in str(error) and "shape (32,)" in str(error)
            return False
        return bool((A == 7.0).all())

    assert at_once(work) == [False, True] * (THREADS // 2)


def test_a_compilation_inside_of_a_trace_is_refused() -> None:
    other = cell(TEXT)["launch"]
    names = cell(TEXT.replace("    k(A, v).launch", "    flyc.compile(other, numpy_array, v)\n    k(A, v).launch"))
    names |= {"other": other, "numpy_array": np.zeros(64, np.float32)}
    with pytest.raises(TraceError, match="'launch' is compiled in a launcher or kernel that is traced") as caught:
        launched(names["launch"], 2.0)
    assert caught.value.where is not None and caught.value.where.line == 9
    assert caught.value.hint == "compile it before; a launcher that is called here runs as a part of this one"
    assert (launched(other, 2.0) == 2.0).all()


def test_two_launchers_that_call_each_other() -> None:
    """From several threads, over branches that end."""
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, v: fx.Constexpr[int]):
            A[fx.thread_idx.x] = v

        @flyc.jit
        def even(A: fx.Tensor, n: fx.Constexpr[int], v: fx.Constexpr[int]):
            if n == 0:
                k(A, v).launch(grid=1, block=64)
            else:
                odd(A, n - 1, v)

        @flyc.jit
        def odd(A: fx.Tensor, n: fx.Constexpr[int], v: fx.Constexpr[int]):
            if n > 0:
                even(A, n - 1, v)
    """)

    def work(number: int) -> float:
        A = np.zeros(64, np.float32)
        names[("even", "odd")[number % 2]](A, 6 + number, number + 1)
        return float(A[63])

    assert at_once(work) == [number + 1.0 for number in range(THREADS)]
