"""Tensors and pointers that are on a GPU already, and those that are on another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from flylab.kernels.elementwise.vector_add import vector_add

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError
from flylab.runtime.hip import devices, synchronize
from tests.runtime.hip.standin import MI300X, MI350X, StandIn, on_the_device, standing_in
from tests.samples import kernel_of


class OnDevice:
    """An array of a library that shows its memory of a GPU by `__cuda_array_interface__`, as CuPy does on ROCm."""

    def __init__(self, values: np.ndarray):
        self.address, self.shown = on_the_device(values)
        self.__cuda_array_interface__ = {"shape": values.shape, "typestr": values.dtype.str, "strides": None,
                                         "data": (self.address, False), "version": 3}


def numbers(count: int = 1024) -> np.ndarray:
    return np.arange(count, dtype=np.float32)


def test_memory_of_the_device_is_used_in_place_and_the_launch_returns_at_once(hip: StandIn) -> None:
    a, b, c = OnDevice(numbers()), OnDevice(numbers() * 2), OnDevice(numbers() * 0)
    hip.forget_calls()
    vector_add(a, b, c)
    assert not hip.calls("hipMalloc", "hipMemcpyAsync", "hipStreamSynchronize", "hipDeviceSynchronize")
    assert not c.shown.any()  # a stream is lazy
    synchronize()
    assert (c.shown == numbers() * 3).all()


def test_memory_of_the_device_and_of_the_host_in_one_launch(hip: StandIn) -> None:
    a, b, c = OnDevice(numbers()), numbers(), np.zeros(1024, np.float32)
    vector_add(a, b, c)
    assert (c == numbers() * 2).all()


def test_a_tensor_of_another_device_is_refused_by_name() -> None:
    with standing_in(MI300X, MI350X) as hip:
        with devices.on(1):
            b = OnDevice(numbers())
        a = OnDevice(numbers())
        with flylab.use("hip:0"), pytest.raises(ArgumentError) as error:
            vector_add(a, b, a)
        assert error.value.message == ("'B' is on device 1 (torch's cuda:1), and the launch runs on hip:0 gfx942 (AMD "
                                       "Instinct MI300X, 192 GiB)")
        assert error.value.hint == 'flylab.use("hip:1") chooses its device; B.to("cuda:0") copies it'
        assert not hip.calls("hipModuleLaunchKernel")
        with flylab.use("hip:1"):
            vector_add(b, b, b)
        synchronize()
        assert (b.shown == numbers() * 2).all()


def test_memory_that_says_it_is_of_a_gpu_and_is_not(hip: StandIn) -> None:
    a = OnDevice(numbers())
    host = numbers()
    a.__cuda_array_interface__ |= {"data": (host.ctypes.data, False)}
    with pytest.raises(ArgumentError, match="'A' is at the address 0x[0-9a-f]+, which is memory of no AMD GPU"):
        vector_add(a, host, host)
    assert hip.calls("hipGetLastError")  # what HIP refused is not left for torch to find


@pytest.fixture
def fill() -> Any:
    body = "fx.make_view(P, fx.make_layout(64, 1))[gpu.thread_id('x')] = 5.0"
    return kernel_of(body, "P: fx.Pointer")["launch"]


def test_a_raw_pointer_to_the_device_is_used_as_it_is(hip: StandIn, fill: Any) -> None:
    address, shown = on_the_device(numbers(64))
    hip.forget_calls()
    fill(flyc.from_c_void_p(fx.Float32, address))
    synchronize()
    assert (shown == 5).all() and not hip.calls("hipMalloc")


def test_a_raw_pointer_to_the_host_is_copied_where_its_size_is_known(hip: StandIn, fill: Any) -> None:
    host = numbers(96)
    fill(flyc.from_c_void_p(fx.Float32, host.ctypes.data, nbytes=256))
    assert (host[:64] == 5).all() and (host[64:] == numbers(96)[64:]).all()
    with pytest.raises(ArgumentError, match="'P' is the address 0x[0-9a-f]+ of the host's memory, and nobody says how"):
        fill(flyc.from_c_void_p(fx.Float32, host.ctypes.data))
    assert hip.used() == 0


def test_a_torch_tensor_of_the_cpu(hip: StandIn) -> None:
    torch = pytest.importorskip("torch")
    a, c = torch.arange(1024, dtype=torch.float32), torch.zeros(1024)
    vector_add(a, a, c)
    assert torch.equal(c, a * 2)
