"""A code object through AMD's bindings into the stand-in library, and its launches: what arrives, what is refused."""

from __future__ import annotations

import gc
import struct
import time
from functools import cache
from typing import Any

import numpy as np
import pytest
from flylab.kernels.elementwise.vector_add import vector_add

import flylab
import flylab.compiler as flyc
from flylab.errors import DeviceError
from flylab.runtime.hip import devices, library, modules, synchronize
from flylab.runtime.hip.launching import stream_pointer
from tests.runtime.hip.standin import MI300X, MI350X, StandIn, on_the_device, standing_in
from tests.samples import compile_body

COUNT = 1024


@cache
def compiled_for(chip: str) -> Any:
    with flylab.use(chip):
        return flyc.compile(vector_add, *[np.zeros(COUNT, np.float32)] * 3)


def arrays(count: int = COUNT) -> list[tuple[int, np.ndarray]]:
    return [on_the_device(np.arange(count, dtype=np.float32) * factor) for factor in (1, 2, 0)]


def test_a_launch_runs_with_the_arguments_that_were_packed(hip: StandIn) -> None:
    function = modules.function_of(compiled_for("gfx942"), "vector_add_kernel", 0)
    memory = arrays()
    packed = struct.pack("<QQQ", *[address for address, _ in memory])
    function.launch((4, 1, 1), (256, 1, 1), 0, stream_pointer(0), packed.ljust(function.kernarg_bytes, b"\0"))
    assert hip.calls("hipModuleLaunchKernel") == ["hipModuleLaunchKernel vector_add_kernel 4 1 1 256 1 1 0 (nil)"]
    assert memory[2][1][5] == 0  # a stream is lazy
    library.call("hipDeviceSynchronize", doing="a test")
    assert (memory[2][1] == np.arange(COUNT) * 3).all() and not hip.errors


def test_a_prepared_launch_packs_in_place_and_gives_its_packet_back(hip: StandIn) -> None:
    function = modules.function_of(compiled_for("gfx942"), "vector_add_kernel", 0)
    memory = arrays()
    stream = stream_pointer(0)
    for _ in range(2):
        packet = function.take()
        struct.pack_into("<QQQ", packet.memory, 0, *[address for address, _ in memory])
        function.enter(packet, 4, 1, 1, 256, 1, 1, 0, stream)
        assert function.take() is packet  # nobody else has it now
        function.enter(packet, 4, 1, 1, 256, 1, 1, 0, stream)
    assert len(function.sent) == 4 and function.sent[0] == ("vector_add_kernel", 4, 1, 1, 256, 1, 1)


def test_a_code_object_of_another_chip_is_refused_with_both_named(hip: StandIn) -> None:
    before = set(modules.loaded())
    with pytest.raises(DeviceError) as error:
        modules.function_of(compiled_for("gfx950"), "vector_add_kernel", 0)
    assert error.value.message == ("loading the code object of 'vector_add' for gfx950 on hip:0: the code object is "
                                   "for another chip than the device (hipErrorNoBinaryForGpu)")
    assert set(modules.loaded()) <= before


def test_a_block_too_large_is_refused_with_the_kernel_and_its_shape(hip: StandIn) -> None:
    function = modules.function_of(compiled_for("gfx942"), "vector_add_kernel", 0)
    with pytest.raises(DeviceError, match=r"launch of 'vector_add_kernel' on hip:0, grid \(1, 1, 1\), block "
                                          r"\(2048, 1, 1\): the device cannot launch .* \(hipErrorInvalidConf"):
        function.launch((1, 1, 1), (2048, 1, 1), 0, stream_pointer(0), bytes(function.kernarg_bytes))
    assert not function.sent


def test_a_module_is_loaded_once_on_each_device_and_unloaded_with_its_compilation() -> None:
    with standing_in(MI300X, MI300X) as hip:
        with flylab.use("gfx942"):
            compiled = compile_body("A[gpu.thread_id('x')] = 1.0")
        kept = [modules.module_of(compiled, ordinal) for ordinal in (0, 1, 0, 1)]
        assert kept[0] is kept[2] and kept[1] is kept[3] and kept[0] is not kept[1]
        assert len(hip.calls("hipModuleLoadData")) == 2
        assert library.call("hipGetDevice", doing="a test") == (0,)  # the thread's device is as it was
        del compiled
        gc.collect()
        synchronize()
        assert len(hip.calls("hipModuleUnload")) == 2


def test_an_idle_stand_in_only_notes_the_time(hip: StandIn) -> None:
    function = modules.function_of(compiled_for("gfx942"), "vector_add_kernel", 0)
    hip.idle = True
    before = time.perf_counter_ns()
    function.launch((1, 1, 1), (2048, 1, 1), 0, stream_pointer(0), bytes(function.kernarg_bytes))
    assert before <= hip.entered <= time.perf_counter_ns() and hip.launches == 1
    assert not hip.calls("hipModuleLaunchKernel")


def test_a_code_object_goes_to_an_mi350_as_well() -> None:
    with standing_in(MI350X) as hip:
        function = modules.function_of(compiled_for("gfx950"), "vector_add_kernel", devices.find().ordinal)
        memory = arrays()
        packed = struct.pack("<QQQ", *[address for address, _ in memory])
        function.launch((4, 1, 1), (256, 1, 1), 0, stream_pointer(0), packed.ljust(function.kernarg_bytes, b"\0"))
        library.call("hipDeviceSynchronize", doing="a test")
        assert (memory[2][1] == np.arange(COUNT) * 3).all() and not hip.errors
