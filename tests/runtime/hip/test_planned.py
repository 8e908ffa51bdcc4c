"""Calls that have a plan on an attached GPU: what reaches the driver is what the first call gives it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import DeviceError, FlylabError
from flylab.runtime import launch as slow
from flylab.runtime.hip import library, synchronize
from flylab.runtime.hip.launching import Function
from tests.runtime.hip.standin import MI300A, MI300X, MI350X, StandIn, standing_in
from tests.samples import cell, in_threads

torch = pytest.importorskip("torch")

SCALED = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, factor: fx.Constexpr):
    i = gpu.block_id("x") * 64 + gpu.thread_id("x")
    if i < n:
        B[i] = A[i] * factor

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32, factor: fx.Constexpr = 3):
    k(A, B, n, factor).launch(grid=(fx.ceildiv(n, 64),), block=64)
"""
NUMBERS = """
@flyc.kernel
def k(A: fx.Tensor, a: fx.Int8, b: fx.Uint16, c: fx.Float32, d: fx.Float16, e: fx.Boolean, f: fx.Int64, g: fx.Uint64):
    A[0] = fx.Float64(a)
    A[1] = fx.Float64(b)
    A[2] = fx.Float64(c)
    A[3] = fx.Float64(d)
    A[4] = fx.Float64(fx.Int32(e))
    A[5] = fx.Float64(f)
    A[6] = fx.Float64(g)

@flyc.jit
def launch(A: fx.Tensor, a: fx.Int8, b: fx.Uint16, c: fx.Float32, d: fx.Float16, e: fx.Boolean, f: fx.Int64,
           g: fx.Uint64):
    k(A, a, b, c, d, e, f, g).launch(grid=1, block=1)
"""
SIZE = 100


@pytest.fixture
def gpu() -> Iterator[StandIn]:
    """A GPU that reads the host's memory where it is."""
    with standing_in(MI300A) as standin:
        yield standin


@pytest.fixture
def no_more_firsts(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """From then on a call that has no plan fails."""
    def fail(*given: Any) -> Any:
        raise AssertionError("a call without a plan")

    return lambda: monkeypatch.setattr(slow, "bound_to", fail)


def numbers(count: int = SIZE) -> np.ndarray[Any, Any]:
    return np.arange(count, dtype=np.float32)


def test_a_planned_launch_gives_the_driver_what_the_first_one_gave(
    gpu: StandIn, no_more_firsts: Callable[[], None]
) -> None:
    launch = cell(SCALED)["launch"]
    for make in (numbers, lambda: torch.arange(float(SIZE))):
        launch(make(), make(), SIZE)
    compiled = flyc.compile(launch, numbers(), numbers(), SIZE)
    compiled(numbers(), numbers(), SIZE)
    no_more_firsts()
    for call in (launch, compiled):
        for make in (numbers, lambda: torch.arange(float(SIZE))):
            if call is compiled and make is not numbers:
                continue
            for n in (SIZE, 64, 65, 1):
                gpu.forget_calls()
                a, out = make(), make()
                run = call(a, out, n)
                assert gpu.calls("hipModuleLaunchKernel") == [
                    f"hipModuleLaunchKernel k {-(-n // 64)} 1 1 64 1 1 0 (nil)"]
                wanted = f"k: grid ({-(-n // 64)}, 1, 1), block (64, 1, 1) (launched, not measured)"
                assert str(run.reports[0]) == wanted
                wanted = np.where(np.arange(SIZE) < n, 3 * numbers(), numbers())
                assert np.array_equal(np.asarray(out), wanted)  # a call with memory of the host waits for its end
    assert not gpu.errors


def test_numbers_of_every_format_are_packed_as_in_the_first_call(
    gpu: StandIn, no_more_firsts: Callable[[], None]
) -> None:
    launch, array = cell(NUMBERS)["launch"], np.zeros(7)
    launch(array, 0, 0, 0.0, 0.0, False, 0, 0)
    no_more_firsts()
    for given, wanted in [
        ((-128, 65535, 0.1, 0.1, True, -(1 << 40), 1 << 63), None),
        ((127, 1, 3, -2, False, 1 << 40, 0), None),
        ((-1, 2, -0.0, 1e-7, True, -1, 12), None),
        ((0, 0, 1e300, 1e6, np.bool_(True), np.int64(4), 4), (0, 0, np.inf, np.inf, 1, 4, 4)),
    ]:
        if wanted is not None:  # no format of `struct` rounds to infinity, so the first call's way does
            with pytest.raises(AssertionError, match="without a plan"):
                launch(array, *given)
            continue
        launch(array, *given)
        a, b, c, d, e, f, g = given
        assert list(array) == [a, b, np.float32(c), np.float16(d), e, f, g]


def test_what_is_staged_or_prints_or_loops_goes_the_way_of_the_first_call() -> None:
    with standing_in(MI300X) as hip:
        launch = cell(SCALED)["launch"]
        for _ in range(3):
            out = numbers()
            launch(numbers(), out, SIZE)
            assert np.array_equal(out, 3 * numbers())
        assert len(hip.calls("hipMalloc")) == 6
    with standing_in(MI300A) as hip:
        names = cell("""
            @flyc.kernel
            def k(A: fx.Tensor, i: fx.Int32):
                A[i] = A[i] + 1
                fx.printf("{}", i)
            @flyc.jit
            def launch(A: fx.Tensor, n: fx.Int32):
                for i in range(n):
                    k(A, i).launch(grid=1, block=1)
        """)
        for _ in range(3):
            array = np.zeros(4, "int32")
            names["launch"](array, 3)
            assert list(array) == [1, 1, 1, 0]


def test_several_launches_are_one_plan(gpu: StandIn, no_more_firsts: Callable[[], None]) -> None:
    launch = cell("""
        @flyc.kernel
        def add(A: fx.Tensor, x: fx.Int32):
            A[gpu.thread_id("x")] = A[gpu.thread_id("x")] + x
        @flyc.kernel
        def times(A: fx.Tensor, x: fx.Int32):
            A[gpu.thread_id("x")] = A[gpu.thread_id("x")] * x
        @flyc.jit
        def launch(A: fx.Tensor, x: fx.Int32):
            add(A, x).launch(grid=1, block=64)
            times(A, x + 1).launch(grid=1, block=64)
            add(A, -x).launch(grid=1, block=64)
    """)["launch"]
    launch(np.zeros(64, "int32"), 1)
    no_more_firsts()
    array = np.arange(64, dtype="int32")
    run = launch(array, 5)
    assert np.array_equal(array, (np.arange(64) + 5) * 6 - 5)
    assert [report.kernel for report in run.reports] == ["add", "times", "add_1"]


@pytest.mark.parametrize("n", [0, -5, 1 << 31, 2.5])
def test_errors_are_those_of_a_first_call(n: Any, gpu: StandIn) -> None:
    text = []
    for planned in (False, True):
        launch = cell(SCALED)["launch"]
        if planned:
            for _ in range(2):
                launch(numbers(), numbers(), SIZE)
        with pytest.raises(FlylabError) as caught:
            launch(numbers(), numbers(), n)
        text.append((type(caught.value), caught.value.message, caught.value.hint, caught.value.where.line
                     if caught.value.where else None))
    assert text[0] == text[1]


def test_an_error_of_the_driver_is_told_as_in_the_first_call(gpu: StandIn) -> None:
    launch, said = cell(SCALED)["launch"], []
    for _ in range(3):
        gpu.fail("hipModuleLaunchKernel", 701)
        with pytest.raises(DeviceError, match="launch of 'k' on hip:0") as caught:
            launch(numbers(), numbers(), SIZE)
        said.append((caught.value.message, caught.value.hint, caught.value.where and caught.value.where.line))
        launch(numbers(), numbers(), SIZE)
    assert said[0] == said[1] == said[2] and said[0][2] == 9


def test_a_launch_that_is_watched_is_refused_as_in_the_first_call(gpu: StandIn) -> None:
    launch = cell(SCALED)["launch"]
    for _ in range(2):
        launch(numbers(), numbers(), SIZE)
    with flylab.watch(counters=True), pytest.raises(DeviceError, match="counts and checks nothing"):
        launch(numbers(), numbers(), SIZE)
    launch(numbers(), numbers(), SIZE)


def test_the_stream_is_looked_up_at_each_call(gpu: StandIn, no_more_firsts: Callable[[], None]) -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[0] = A[0] + 1
        @flyc.jit
        def launch(A: fx.Tensor, stream: fx.Stream = fx.Stream(None)):
            k(A).launch(grid=1, block=1, stream=stream)
    """)["launch"]
    array = np.zeros(1, "int32")
    launch(array)
    no_more_firsts()
    gpu.forget_calls()
    launch(array)
    (stream,) = library.call("hipStreamCreateWithFlags", 1, doing="a test")
    launch(array, fx.Stream(stream))
    launch(array, stream=fx.Stream(stream.as_c_void_p().value))
    used = [line.split()[-1] for line in gpu.calls("hipModuleLaunchKernel")]
    assert used[0] == "(nil)" and used[1] == used[2] == hex(stream.as_c_void_p().value) and array[0] == 4


def test_a_plan_of_before_is_not_used_on_other_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    launch = cell(SCALED)["launch"]
    for gpus in ((MI300A,), (MI300X,), (MI350X,), (MI300A, MI300A)):
        with standing_in(*gpus) as hip:
            for _ in range(2):
                out = numbers()
                run = launch(numbers(), out, SIZE)
                synchronize()
                assert np.array_equal(out, 3 * numbers()) and not hip.errors
                assert gpus[0].arch.split(":")[0] in str(run.device)


def test_two_devices_take_turns() -> None:
    launch = cell(SCALED)["launch"]
    with standing_in(MI300A, MI300A) as hip:
        for _ in range(2):
            for ordinal in (0, 1):
                with flylab.use(f"hip:{ordinal}"):
                    out = numbers()
                    run = launch(numbers(), out, SIZE)
                    assert run.device.ordinal == ordinal and np.array_equal(out, 3 * numbers())
        assert not hip.errors


def check(launch: Any, seed: int, n: int) -> None:
    a, out = numbers() + seed, np.zeros(SIZE, "float32")
    launch(a, out, n)
    assert np.array_equal(out, np.where(np.arange(SIZE) < n, 3 * a, 0))


def test_threads_share_no_arguments(gpu: StandIn) -> None:
    launch = cell(SCALED)["launch"]
    launch(numbers(), numbers(), SIZE)

    def work(seed: int) -> None:
        for n in range(1, 40):
            check(launch, seed, n)

    in_threads(work, 4)
    assert not gpu.errors


@pytest.mark.parametrize("step", ["take", "enter"])
def test_a_call_in_the_midst_of_another_has_arguments_of_its_own(
    step: str, gpu: StandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch, depth, before = cell(SCALED)["launch"], list[int](), getattr(Function, step)
    launch(numbers(), numbers(), SIZE)

    def within(*args: Any) -> Any:  # as a signal's handler or a finaliser calls it
        done = before(*args) if step == "take" else None
        if len(depth) < 2:
            depth.append(1)
            check(launch, 1000 * len(depth), 17 * len(depth))
        return done if step == "take" else before(*args)

    monkeypatch.setattr(Function, step, within)
    check(launch, 5, 99)
    assert len(depth) == 2 and gpu.launches == 4
