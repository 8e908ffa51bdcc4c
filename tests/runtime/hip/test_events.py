"""Events on the device's clock, and waiting."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from flylab.kernels.elementwise.vector_add import vector_add

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import DeviceError
from flylab.runtime.hip import Event, Stream, library, synchronize
from tests.runtime.hip.standin import MI300X, MI350X, StandIn, on_the_device, standing_in
from tests.samples import cell


def test_the_time_between_two_events_is_that_of_the_kernels_between(hip: StandIn) -> None:
    hip.kernels_take(1.5)
    a = np.zeros(1024, np.float32)
    start, stop, never = Event(), Event(), Event()
    assert start.record() is start and not start.done
    vector_add(a, a, a)
    vector_add(a, a, a)
    stop.record()
    assert start.elapsed_ms(stop) == pytest.approx(3.0) and stop.done
    assert stop.elapsed_ms(start) == pytest.approx(-3.0)
    for use in (never.synchronize, lambda: never.done, lambda: start.elapsed_ms(never)):
        with pytest.raises(DeviceError, match="the event was not recorded"):
            use()


def test_an_event_is_given_back_when_nobody_has_it(hip: StandIn) -> None:
    event = Event().record()
    event.synchronize()
    del event
    gc.collect()
    assert len(hip.calls("hipEventDestroy")) == 1


def test_an_event_that_is_not_there_yet_is_no_error_that_torch_finds(hip: StandIn) -> None:
    event = Event().record()
    hip.forget_calls()
    assert not event.done
    assert [call.split()[0] for call in hip.calls()] == ["hipEventQuery", "hipGetLastError"]


def test_the_time_between_events_of_two_devices_is_refused() -> None:
    with standing_in(MI300X, MI350X):
        first, second = Event(0).record(), Event(1).record()
        with pytest.raises(DeviceError, match=r"one event is of hip:0 and the other of hip:1, which have a clock each"):
            first.elapsed_ms(second)


def test_an_event_of_a_device_is_recorded_there() -> None:
    with standing_in(MI300X, MI350X):
        event = Event(1).record()
        event.synchronize()
        assert event.done and library.call("hipGetDevice", doing="a test") == (0,)


def test_waiting_for_an_event_tells_of_a_kernel_that_went_wrong(hip: StandIn) -> None:
    event = Event().record()
    hip.fail("hipEventSynchronize", 719)
    with pytest.raises(DeviceError, match="waiting for an event on hip:0: a kernel went wrong while it ran"):
        event.synchronize()


def test_a_stream_of_ones_own(hip: StandIn) -> None:
    a, shown = on_the_device(np.zeros(64, np.float32))
    launch = cell("""
        @flyc.kernel
        def k(P: fx.Pointer):
            fx.make_view(P, fx.make_layout(64, 1))[gpu.thread_id("x")] = 3.0
        @flyc.jit
        def launch(P: fx.Pointer, stream: fx.Stream):
            k(P).launch(grid=1, block=64, stream=stream)
    """)["launch"]
    stream, other = Stream(), Stream()
    start, stop = Event().record(other), Event()
    launch(flyc.from_c_void_p(fx.Float32, a), fx.Stream(stream))
    stop.record(stream)
    other.synchronize()
    assert start.done and not stop.done and not shown.any()
    stream.synchronize()
    assert stop.done and (shown == 3).all()
    del stream, other
    gc.collect()
    synchronize()
    assert len(hip.calls("hipStreamDestroy")) == 2


def test_synchronize_waits_for_each_device_that_was_given_something() -> None:
    with standing_in(MI300X, MI350X) as hip:
        memory = [on_the_device(np.zeros(4, np.float32)) for _ in range(2)]
        hip.forget_calls()
        synchronize(1)
        assert hip.calls("hipDeviceSynchronize", "hipSetDevice") == ["hipSetDevice 1", "hipDeviceSynchronize",
                                                                     "hipSetDevice 0"]
        assert memory
