"""Launchers on an attached GPU, from end to end: results, memory, streams, printing, and what is refused."""

from __future__ import annotations

import sys
import types
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from flylab.kernels.elementwise.vector_add import vector_add
from flylab.kernels.gemm.naive import naive_gemm

import flylab
import flylab.expr as fx
from flylab.errors import ArgumentError, DeviceError, FlylabError
from flylab.runtime.hip import synchronize
from tests.runtime.hip.standin import GIB, MI300A, MI300X, MI350X, Gpu, StandIn, in_a_process, standing_in
from tests.samples import cell, kernel_of

ILLEGAL, OUT_OF_MEMORY = 700, 2


def vectors(count: int = 1024) -> list[np.ndarray]:
    generator = np.random.default_rng(7)
    return [*generator.random((2, count), np.float32), np.zeros(count, np.float32)]


@pytest.mark.parametrize("gpu", [MI300X, MI300A, MI350X], ids=lambda gpu: gpu.name.split()[-1])
def test_an_attached_gpu_is_the_default_and_numpy_arrays_work(gpu: Gpu) -> None:
    with standing_in(gpu) as hip:
        assert str(flylab.device()) == f"hip:0 ({gpu.arch.split(':')[0]})"
        a, b, c = vectors()
        run = vector_add(a, b, c)
        synchronize()
        assert (c == a + b).all() and not hip.errors
        assert hip.used() == 0  # what was copied is given back
        assert run.reports[0].kernel == "vector_add_kernel" and run.reports[0].grid == (4, 1, 1)
        assert str(run) == (f"hip:0 ({gpu.arch.split(':')[0]}): vector_add_kernel: grid (4, 1, 1), block (256, 1, 1) "
                            "(launched, not measured)")
        assert bool(hip.calls("hipMalloc")) != gpu.pageable


def test_a_matrix_product_agrees_with_numpy(hip: StandIn) -> None:
    generator = np.random.default_rng(1)
    a, b = (generator.standard_normal((32, 32), np.float32) for _ in "ab")
    c = np.zeros((32, 32), np.float32)
    with flylab.use("hip"):
        naive_gemm(a, b, c)
    assert np.allclose(c, a @ b, atol=1e-4)


def test_arrays_that_overlap_on_the_host_overlap_on_the_device(hip: StandIn) -> None:
    shift = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor):
            i = gpu.thread_id("x")
            x = A[i]
            gpu.barrier()
            B[i] = x + 100.0
        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor):
            k(A, B).launch(grid=1, block=64)
    """)["launch"]
    whole = np.arange(96, dtype=np.float32)
    want = whole.copy()
    want[32:] = want[:64] + 100
    shift(whole[:64], whole[32:])
    assert (whole == want).all()
    assert len(hip.calls("hipMalloc")) == 1


def test_strided_views_and_negative_strides(hip: StandIn) -> None:
    double = kernel_of("i = gpu.thread_id('x')\nB[i] = A[i] * 2.0", "A: fx.Tensor, B: fx.Tensor")["launch"]
    a, b = np.arange(128, dtype=np.float32), np.full(192, 7, np.float32)
    double(a[::-2], b[::3])
    assert (b[::3] == a[::-2] * 2).all()
    assert (b[1::3] == 7).all() and (b[2::3] == 7).all()


def test_what_cannot_be_written_is_not_copied_back(hip: StandIn) -> None:
    a, b, c = vectors()
    a.flags.writeable = b.flags.writeable = False
    vector_add(a, b, c)
    back = [call for call in hip.calls("hipMemcpyAsync") if call.split()[4] == "2"]
    assert [call.split()[1] for call in back] == [hex(c.ctypes.data)]
    assert (c == a + b).all()


def test_an_array_is_as_far_behind_a_multiple_of_256_as_on_the_host(hip: StandIn) -> None:
    whole = np.zeros(2048, np.float32)
    for shift in (0, 4, 63):
        a = whole[shift : shift + 256]
        hip.forget_calls()
        kernel_of("A[gpu.thread_id('x')] = 1.0")["launch"](a)
        there, here = (int(word, 16) for word in hip.calls("hipMemcpyAsync")[0].split()[1:3])
        assert there % 256 == here % 256 == a.ctypes.data % 256


def test_several_launches_and_grids_that_are_computed(hip: StandIn) -> None:
    launch = cell("""
        @flyc.kernel
        def one(A: fx.Tensor, n: fx.Int32):
            i = gpu.block_id("x") * 64 + gpu.thread_id("x")
            if i < n:
                A[i] = A[i] + 1.0
        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32, stream: fx.Stream = fx.Stream(None)):
            one(A, n).launch(grid=(fx.ceildiv(n, 64),), block=64, stream=stream)
            one(A, n - 10).launch(grid=(fx.ceildiv(n, 64),), block=64, stream=stream)
    """)["launch"]
    a = np.zeros(256, np.float32)
    run = launch(a, 130)
    assert (a == np.r_[np.full(120, 2), np.full(10, 1), np.zeros(126)]).all()
    assert [report.grid for report in run.reports] == [(3, 1, 1)] * 2


def test_printing_waits_and_prints_in_order(hip: StandIn, capsys: pytest.CaptureFixture[str]) -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            i = gpu.block_id("x") * 2 + gpu.thread_id("x")
            fx.printf("{} is {}", i, A[i])
        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=2, block=2)
    """)["launch"]
    launch(np.arange(4, dtype=np.float32) / 2)
    assert capsys.readouterr().out == "0 is 0.0\n1 is 0.5\n2 is 1.0\n3 is 1.5\n"
    assert hip.used() == 0


def test_too_many_lines_say_how_many_are_lost(hip: StandIn, monkeypatch: pytest.MonkeyPatch,
                                              capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FLYLAB_PRINTF_BYTES", str(24 + 3 * 20))
    launch = kernel_of("fx.printf('{}', gpu.thread_id('x'))", block=4)["launch"]
    with pytest.raises(DeviceError, match="printed 1 line more"):
        launch(np.zeros(4, np.float32))
    assert len(capsys.readouterr().out.splitlines()) == 3


def test_a_stream_is_where_the_launch_goes(hip: StandIn) -> None:
    from flylab.runtime.hip import library

    (stream,) = library.call("hipStreamCreateWithFlags", 1, doing="a test")
    handle = stream.as_c_void_p().value
    for given in (handle, stream, type("Torch", (), {"cuda_stream": handle})()):
        hip.forget_calls()
        a, b, c = vectors()
        vector_add(a, b, c, stream=fx.Stream(given))
        assert (c == a + b).all()
        assert all(call.split()[-1] == hex(handle) for call in hip.calls("hipModuleLaunchKernel", "hipMemcpyAsync",
                                                                         "hipStreamSynchronize"))
    with pytest.raises(ArgumentError, match="the stream is a str") as error:
        vector_add(a, b, c, stream=fx.Stream("0"))
    assert "torch.cuda.current_stream()" in str(error.value.hint)


def test_a_stream_of_another_device_is_refused() -> None:
    class OfTorch:
        cuda_stream = 4096
        device = type("Device", (), {"index": 1})()

    with standing_in(MI300X, MI300X), pytest.raises(ArgumentError, match="the stream is one of device 1"):
        vector_add(*vectors(), stream=fx.Stream(OfTorch()))


def test_the_current_stream_of_torch_is_the_default(hip: StandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from flylab.runtime.hip import library

    (stream,) = library.call("hipStreamCreateWithFlags", 1, doing="a test")
    handle = stream.as_c_void_p().value
    monkeypatch.setattr(torch.version, "hip", "7.1")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda index: {0: handle}[index], raising=False)
    vector_add(*vectors())
    assert hip.calls("hipModuleLaunchKernel")[0].split()[-1] == hex(handle)


def test_no_room_on_the_device_names_the_array_and_its_bytes() -> None:
    with standing_in(Gpu("gfx942", "a small one", memory=10_000)) as hip:
        a, b, c = vectors()
        with pytest.raises(DeviceError, match=r"copying '[ABC]' \(4096 bytes\) to hip:0: the device has no memory"):
            vector_add(a, b, c)
        assert hip.used() == 0 and not hip.calls("hipModuleLaunchKernel")


def test_no_room_for_what_is_printed_names_the_variable_that_says_how_much() -> None:
    with standing_in(Gpu("gfx942", "a small one", memory=1 << 20)) as hip:
        with pytest.raises(DeviceError, match=r"what 'k' prints \(FLYLAB_PRINTF_BYTES: 268435456 bytes\): "):
            kernel_of("fx.printf('{}', gpu.thread_id('x'))", block=4)["launch"](np.zeros(4, np.float32))
        assert hip.used() == 0


def test_a_torch_that_another_thread_is_importing_runs_on_no_stream(hip: StandIn,
                                                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", types.ModuleType("torch"))
    a, b, c = vectors()
    vector_add(a, b, c)
    assert (c == a + b).all()


def test_an_illegal_access_is_found_later_with_the_launches_it_may_be_of(hip: StandIn) -> None:
    launches = cell("""
        @flyc.kernel
        def good(A: fx.Tensor):
            A[gpu.thread_id("x")] = 1.0
        @flyc.kernel
        def bad(A: fx.Tensor, far: fx.Int32):
            A[gpu.thread_id("x") + far] = 1.0
        @flyc.jit
        def fine(A: fx.Tensor):
            good(A).launch(grid=1, block=64)
        @flyc.jit
        def launch(A: fx.Tensor, far: fx.Int32):
            bad(A, far).launch(grid=(2, 1, 1), block=64)
    """)
    a = np.zeros(64, np.float32)
    launches["fine"](a)
    synchronize()
    launches["fine"](a)
    launches["fine"](a)
    with pytest.raises(DeviceError) as error:
        launches["launch"](a, 1 << 28)
    assert error.value.message == (
        "waiting for hip:0: a kernel touched memory that is not its own; nothing more can run on it in this process: "
        "restart the kernel of the notebook (hipErrorIllegalAddress); launched since the device was last known to be "
        "well:\n    2 x 'good', grid (1, 1, 1), block (64, 1, 1)\n    'bad', grid (2, 1, 1), block (64, 1, 1)")
    assert "software device" in str(error.value.hint)
    with pytest.raises(DeviceError, match="IllegalAddress"):
        synchronize()


@pytest.mark.parametrize("how", [{"counters": True}, {"check": "all"}, {"log": True}])
def test_watching_is_refused(hip: StandIn, how: dict[str, Any]) -> None:
    with flylab.watch(**how), pytest.raises(DeviceError, match="a GPU counts and checks nothing"):
        vector_add(*vectors())


def test_what_hip_refuses_keeps_its_line_and_the_arrays(hip: StandIn) -> None:
    names = kernel_of("A[gpu.thread_id('x')] = 1.0")
    a = np.zeros(64, np.float32)
    hip.fail("hipModuleLaunchKernel", 701)
    with pytest.raises(DeviceError, match=r"launch of 'k' on hip:0, grid \(1, 1, 1\), block \(64, 1, 1\): the kernel "
                                          r"needs more registers or LDS .* \(hipErrorLaunchOutOfResources\)") as error:
        names["launch"](a)
    assert str(error.value).startswith(f"{names['FILE']}, line 7, in launch\n")
    assert hip.used() == 0
    names["launch"](a)
    assert (a == 1).all()


def test_the_same_launcher_runs_on_several_devices() -> None:
    with standing_in(MI350X, MI300X) as hip:
        for name in ("hip", "hip:1", "emulated", "hip:0"):
            a, b, c = vectors()
            with flylab.use(name):
                vector_add(a, b, c)
            assert (c == a + b).all(), name
        assert len(hip.calls("hipModuleLoadData")) == 2 and not hip.errors


def test_memory_of_another_gpu_than_the_launch_is_on_its_way_out_when_the_device_has_room() -> None:
    with standing_in(Gpu("gfx950", "large", memory=GIB)) as hip:
        a = np.zeros(4 << 20, np.float32)
        kernel_of("A[gpu.thread_id('x')] = 1.0")["launch"](a)
        assert a[:64].all() and not a[64:].any() and hip.used() == 0


def test_many_threads_launch_at_once(hip: StandIn) -> None:
    def work(seed: int) -> bool:
        a, b = np.random.default_rng(seed).random((2, 512), np.float32)
        c = np.zeros_like(a)
        vector_add(a, b, c)
        return bool((c == a + b).all())

    assert work(99)
    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(24)))
    assert hip.used() == 0 and len(hip.calls("hipModuleLoadData")) == 1 and not hip.errors


def test_a_forked_process_is_told_that_it_has_no_hip() -> None:
    code = """
import os
import numpy as np
import flylab
from flylab.kernels.elementwise.vector_add import vector_add
from tests.runtime.hip.standin import MI300X, standing_in
with standing_in(MI300X):
    a, c = np.arange(256, dtype=np.float32), np.zeros(256, np.float32)
    vector_add(a, a, c)
    child = os.fork()
    if not child:
        try:
            vector_add(a, a, c)
        except flylab.errors.DeviceError as error:
            print(error.message, flush=True)
        with flylab.use("emulated"):
            vector_add(a, a, a)
        print(a[3], flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    vector_add(c, a, c)
    print(c[3])
"""
    assert in_a_process(code).splitlines() == [
        "HIP was in use before this process was forked, and does not work in the fork", "6.0", "9.0"]


def test_a_device_of_no_such_name() -> None:
    with standing_in(MI300X), pytest.raises(FlylabError, match="no device is called 'hip:one'"):
        flylab.use("hip:one")
