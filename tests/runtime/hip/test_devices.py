"""Which GPUs are found, which is chosen, and what is said where there is none."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import flylab
from flylab.errors import DeviceError
from flylab.runtime.hip import attached, devices, library
from flylab.runtime.hip.sentences import SENTENCES
from tests.house.rules import ROOT
from tests.runtime.hip.standin import MI300A, MI300X, MI350X, RADEON, Gpu, StandIn, build, in_a_process, standing_in

NO_DEVICE, OLD_DRIVER = 100, 35


def test_what_is_attached() -> None:
    with standing_in(MI300A, MI350X, RADEON):
        first, second, third = attached()
        assert (first.arch, first.features, first.pageable) == ("gfx942", ":sramecc+:xnack+", True)
        assert str(second) == "hip:1 gfx950 (AMD Instinct MI350X, 288 GiB)" and not second.pageable
        assert third.target is None and library.version() == "7.15.26000"


def test_the_hosts_memory_is_read_in_place_only_where_page_faults_are_retried() -> None:
    with standing_in(MI300A, replace(MI300A, arch="gfx942:sramecc+:xnack-"), replace(MI300X, arch=MI300A.arch)):
        assert [gpu.pageable for gpu in attached()] == [True, False, False]


@pytest.mark.parametrize("gpus, chosen", [
    ([MI300X], "hip:0 (gfx942)"), ([RADEON, MI350X], "hip:1 (gfx950)"), ([RADEON], "emulated:gfx942"),
    ([], "emulated:gfx942"),
])
def test_the_first_gpu_that_flylab_compiles_for_is_the_default(gpus: list[Gpu], chosen: str) -> None:
    with standing_in(*gpus) as hip:
        assert [str(flylab.device()) for _ in range(3)] == [chosen] * 3
        assert len(hip.calls("hipGetDeviceCount")) == 1  # it looks once
        with flylab.use("gfx950"):
            assert str(flylab.device()) == "emulated:gfx950"


def test_the_environment_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    with standing_in(MI300X, MI350X):
        monkeypatch.setenv("ARCH", "gfx950")
        assert str(flylab.device()) == "emulated:gfx950"
        monkeypatch.setenv("FLYLAB_DEVICE", "hip:1")
        assert str(flylab.device()) == "hip:1 (gfx950)"
        monkeypatch.setenv("FLYLAB_DEVICE", "hip:7")
        with pytest.raises(DeviceError, match="FLYLAB_DEVICE='hip:7' in the environment: there is no hip:7: "):
            flylab.device()


@pytest.mark.parametrize("gpus, spec, message, hint", [
    ([], "hip", "no AMD GPU is attached, or this process may not see it", "rocminfo"),
    ([RADEON], "hip", r"none that flylab compiles for: hip:0 gfx1100 \(AMD Radeon RX 7900 XTX, 24 GiB\)", "gfx942"),
    ([MI300X, RADEON], "hip:1", "none that flylab compiles for: hip:1 gfx1100", "gfx950"),
    ([MI300X], "hip:1", r"there is no hip:1: HIP shows 1 AMD GPU: hip:0 gfx942", "counts from 0"),
])
def test_a_gpu_that_is_not_there(gpus: list[Gpu], spec: str, message: str, hint: str) -> None:
    with standing_in(*gpus), pytest.raises(DeviceError, match=message) as error:
        flylab.use(spec)
    assert hint in str(error.value.hint)


def test_devices_that_are_hidden_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "2")
    with standing_in(), pytest.raises(DeviceError, match=r"may not see it \(HIP_VISIBLE_DEVICES='2'\)"):
        flylab.use("hip")


def test_a_driver_that_is_too_old_is_said_where_hip_is_asked_for_and_else_the_software_device_runs() -> None:
    with standing_in(error=OLD_DRIVER):
        with pytest.warns(UserWarning, match="run on the software device, and not on a GPU: looking for"):
            assert str(flylab.device()) == "emulated:gfx942"
        with pytest.raises(DeviceError, match="looking for AMD GPUs: the driver is older than the HIP library"):
            flylab.use("hip")


def test_every_sentence_is_of_an_error_that_hip_has() -> None:
    from rocm.bindings import hip

    names = hip.hipError_t.__members__
    assert all(name in names for name in SENTENCES)


def test_without_a_library_the_software_device_runs_and_hip_says_what_is_missing() -> None:
    code = """
import flylab
from flylab.runtime.hip import library
library.find = lambda: None
print(flylab.device())
try:
    flylab.use("hip")
except flylab.errors.DeviceError as error:
    print(error)
"""
    printed = in_a_process(code).splitlines()
    assert printed[:2] == ["emulated:gfx942", "there is no HIP library (libamdhip64.so) on this machine"]
    assert "ROCM_PATH" in printed[2]


def test_a_library_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    code = """
import os, pathlib, sys
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["ROCM_PATH"]) / "lib"
folder.mkdir(parents=True)
(folder / "libamdhip64.so").write_text("no library")
sys.modules["torch"] = None  # one of ROCm has a library
import flylab
print(flylab.device())
try:
    flylab.use("hip")
except flylab.errors.DeviceError as error:
    print(error)
"""
    printed = in_a_process(code, ROCM_PATH=str(tmp_path))
    assert printed.startswith(f"emulated:gfx942\nthe HIP library {tmp_path}/lib/libamdhip64.so cannot be opened")


def test_a_driver_without_the_bindings_is_no_silent_fall_back(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "bindings_installed", lambda: False)
    monkeypatch.setattr(devices, "DRIVER", tmp_path)
    with standing_in(MI300X), pytest.warns(UserWarning, match="needs AMD's bindings of HIP\nhint: .* -m pip install"):
        assert str(flylab.device()) == str(flylab.device()) == "emulated:gfx942"


def test_without_the_bindings_the_command_that_brings_them_is_named() -> None:
    code = """
import sys
sys.modules["rocm"] = None
import flylab
print(flylab.device())
try:
    flylab.use("hip")
except flylab.errors.ToolchainError as error:
    print(error.hint)
"""
    assert in_a_process(code, ROCM_PATH=str(build())).splitlines() == [
        "emulated:gfx942", f"{sys.executable} -m pip install '{ROOT}[hip]'"]


def test_the_library_that_the_process_has_loaded_already_is_the_one() -> None:
    code = f"""
import ctypes
ctypes.CDLL({str(build() / "lib" / library.NAME)!r})
from flylab.runtime.hip import library
print(library.find())
print(library.hip() is not None and library.version())
"""
    printed = in_a_process(code, ROCM_PATH="/nowhere").splitlines()
    assert printed == [str(build() / "lib" / library.NAME), "7.15.26000"]


def test_a_library_that_lies_in_torch_comes_before_that_of_rocm(tmp_path: Path) -> None:
    code = f"""
import pathlib, shutil, sys
torch = pathlib.Path({str(tmp_path)!r}) / "torch"
(torch / "lib").mkdir(parents=True)
(torch / "__init__.py").write_text("raise ImportError('nobody asked for torch')")
shutil.copy({str(build() / "lib" / library.NAME)!r}, torch / "lib" / "libamdhip64.so.7")
sys.path.insert(0, str(torch.parent))
from flylab.runtime.hip import library
print(library.find())
print(library.version())
"""
    printed = in_a_process(code, ROCM_PATH=str(build())).splitlines()
    assert printed == [f"{tmp_path}/torch/lib/libamdhip64.so.7", "7.15.26000"]


def test_tests_do_not_run_on_a_gpu_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    path = build() / "lib" / library.NAME
    machine = StandIn(path)
    machine.show(MI300X)
    monkeypatch.setenv("ROCM_PATH", str(build()))
    devices.look.cache_clear()
    assert str(flylab.device()) == "emulated:gfx942" and not machine.calls()
    assert in_a_process("import os; print(os.environ['ROCR_VISIBLE_DEVICES'])") == "-1\n"
    with standing_in(MI350X):
        assert str(flylab.device()) == "hip:0 (gfx950)"
