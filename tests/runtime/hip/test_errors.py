"""What HIP refuses at any of its functions: the error that a user reads, what is left behind, and the next call."""

from __future__ import annotations

import gc
from collections.abc import Callable

import numpy as np
import pytest

import flylab
from flylab.errors import DeviceError, FlylabError
from flylab.runtime.hip import Event, Stream, library, synchronize
from tests.runtime.hip.standin import MI300X, MI350X, StandIn, on_the_device, standing_in
from tests.samples import cell

CALL = """
@flyc.kernel
def k(A: fx.Tensor, x: fx.Float32):
    A[gpu.thread_id("x")] = A[gpu.thread_id("x")] + x

@flyc.jit
def launch(A: fx.Tensor, x: fx.Float32):
    k(A, x).launch(grid=1, block=64)
"""
PRINTS = CALL.replace("\n    A[", "\n    fx.printf('{}', x)\n    A[")
CHECKS = CALL.replace("\n    A[", "\n    assert x < 9.0, 'large'\n    A[")
NEWER = 12345
"""A status that the bindings do not know."""


def launches(text: str) -> None:
    a = np.zeros(64, np.float32)
    cell(text)["launch"](a, 1.0)
    assert (a == 1).all()


def events(_: str) -> None:
    start, stop, stream = Event(), Event(), Stream()
    start.record()
    stop.record()
    start.elapsed_ms(stop)
    assert stop.done
    stream.synchronize()
    synchronize(0)


WAYS: list[tuple[Callable[[str], None], str]] = [(launches, CALL), (launches, PRINTS), (launches, CHECKS), (events, "")]


@pytest.mark.parametrize("way, text", WAYS, ids=["plain", "prints", "checks", "events"])
@pytest.mark.parametrize("code", [1, NEWER])
def test_each_call_that_fails_is_an_error_of_flylab_and_the_next_call_works(
        way: Callable[[str], None], text: str, code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_PRINTF_BYTES", "4096")
    with standing_in(MI300X, MI350X) as hip, flylab.use("hip"):
        way(text)
        names = [call.split()[0] for call in hip.calls()]
    given_back = {"hipFree", "hipStreamDestroy", "hipEventDestroy", "hipModuleUnload", "hipGetLastError"}
    for name in sorted({*names} - given_back - {"hipRuntimeGetVersion"}):  # which opens the library, for all of them
        for nth in range(min(names.count(name), 3)):
            with standing_in(MI300X, MI350X) as hip:
                hip.fail(name, code, nth)
                with pytest.raises(FlylabError), flylab.use("hip"):
                    way(text)
                with flylab.use("hip"):
                    way(text)
                assert hip.used() == 0 and not hip.errors, (name, nth)
                assert hip.calls("hipGetLastError"), name


@pytest.mark.parametrize("function", ["hipModuleLaunchKernel", "hipStreamSynchronize"])
def test_a_status_that_the_bindings_do_not_know_is_said_with_the_function(hip: StandIn, function: str) -> None:
    hip.fail(function, NEWER)
    with pytest.raises(DeviceError, match=f"hip:0.*: {function} failed: 12345 is not a valid hipError_t") as error:
        launches(CALL)
    assert "ROCm" in str(error.value.hint)


def test_a_code_object_whose_kernel_is_not_found_is_unloaded(hip: StandIn) -> None:
    hip.fail("hipModuleGetFunction", 500)
    with pytest.raises(DeviceError, match="the code object holds no kernel of that name"):
        launches(CALL)
    assert len(hip.calls("hipModuleLoadData")) == len(hip.calls("hipModuleUnload")) == 1


def test_what_the_collector_finds_is_given_back_when_somebody_waits(hip: StandIn) -> None:
    # The collector may come while torch captures a graph, which a HIP call that waits breaks off.
    launch, stream = cell(CALL)["launch"], Stream()
    launch(np.zeros(64, np.float32), 1.0)
    hip.forget_calls()
    del launch, stream
    gc.collect()
    assert not hip.calls()
    synchronize()
    calls = [call.split()[0] for call in hip.calls()]
    assert calls.index("hipDeviceSynchronize") < calls.index("hipModuleUnload")
    assert calls.index("hipStreamSynchronize") < calls.index("hipStreamDestroy")


def test_what_the_collector_found_is_given_back_when_another_is_made(hip: StandIn) -> None:
    for factor in range(3):
        launch = cell(CALL.replace("+ x", f"+ {factor} * x"))["launch"]
        launch(np.zeros(64, np.float32), 1.0)
        del launch
        gc.collect()
    assert len(hip.calls("hipModuleUnload")) == 2
    stream = Stream()
    del stream
    gc.collect()
    Stream()
    assert len(hip.calls("hipStreamDestroy")) == 1 and len(hip.calls("hipModuleUnload")) == 3


def test_a_stream_that_nobody_has_is_waited_for_before_it_goes(hip: StandIn) -> None:
    address, shown = on_the_device(np.zeros(64, np.float32))
    stream = Stream()
    library.call("hipMemsetAsync", _pointer(address), 1, 256, _pointer(stream.cuda_stream), doing="a test")
    del stream
    gc.collect()
    assert not shown.any()
    hip.forget_calls()
    Stream()
    assert [call.split()[0] for call in hip.calls()] == ["hipStreamSynchronize", "hipStreamDestroy",
                                                         "hipStreamCreateWithFlags"]
    assert shown.all()


def _pointer(address: int) -> object:
    from rocm.bindings.util.types import Pointer

    return Pointer(address)
