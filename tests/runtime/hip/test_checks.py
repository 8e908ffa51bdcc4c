"""Checks in kernels on a GPU: an error like the software device's, and a process that lives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.codegen.failures import VARIABLE
from flylab.errors import CheckFailed
from tests.runtime.hip.standin import MI300X, MI350X, Gpu, StandIn, standing_in
from tests.samples import cell

CHECKING = """
    @flyc.kernel
    def k(A: fx.Tensor, low: fx.Float32):
        i = ((gpu.block_id("y") * 2 + gpu.block_id("x")) * 4 + gpu.thread_id("y")) * 32 + gpu.thread_id("x")
        assert A[i] >= low, "too low"
        A[i] = A[i] + 1.0
        assert A[i] < 100.0, "too high"

    @flyc.jit
    def launch(A: fx.Tensor, low: fx.Float32):
        k(A, low).launch(grid=(2, 3), block=(32, 4))
"""


def array(**values: float) -> np.ndarray:
    a = np.zeros((3, 2, 4, 32), np.float32)  # block y, block x, thread y, thread x
    for place, value in values.items():
        a[tuple(int(digits) for digits in place[1:].split("_"))] = value
    return a.reshape(-1)


@pytest.mark.parametrize("gpu", [MI300X, MI350X], ids=lambda gpu: gpu.arch[:6])
@pytest.mark.parametrize("place, value, check, line",
                         [("_2_1_3_17", -5.0, "too low", 4), ("_0_1_0_31", 99.5, "too high", 6)])
def test_a_check_that_fails_is_the_error_that_the_software_device_gives(
        gpu: Gpu, place: str, value: float, check: str, line: int) -> None:
    with standing_in(gpu) as hip:
        names = cell(CHECKING)
        errors = []
        for device in ("hip", f"emulated:{gpu.arch[:6]}"):
            with flylab.use(device), pytest.raises(CheckFailed) as error:
                names["launch"](array(**{place: value}), 0.0)
            errors.append(str(error.value))
        assert errors[0] == errors[1]
        y, x, row, column = place[1:].split("_")
        assert f"{check}\n    in block ({x}, {y}, 0), thread ({column}, {row}, 0) of kernel 'k'" in errors[0]
        assert f", line {line}, in k" in errors[0]
        # The device is well, and the next launch too.
        a = array()
        names["launch"](a, 0.0)
        assert (a == 1).all() and not hip.errors and hip.used() == 0


def test_what_other_blocks_wrote_comes_back(hip: StandIn) -> None:
    a = array(_1_0_0_5=-1.0)
    with pytest.raises(CheckFailed):
        cell(CHECKING)["launch"](a, 0.0)
    blocks = a.reshape(3, 2, 4, 32)
    assert (blocks[0] == 1).all() and (blocks[2] == 1).all() and blocks[1, 0, 0, 5] == -1


def test_of_several_checks_that_fail_one_is_told_whole(hip: StandIn) -> None:
    with pytest.raises(CheckFailed, match=r"too low\n    in block \([01], [0-2], 0\), thread \(\d+, \d, 0\) of"):
        cell(CHECKING)["launch"](array() - 1, 0.0)


def test_a_kernel_without_checks_has_the_code_of_the_software_device(hip: StandIn) -> None:
    from flylab.runtime.hip import modules

    with flylab.use("hip"):
        compiled = flyc.compile(cell(CHECKING.replace("assert", "pass #"))["launch"], array(), 0.0)
        checking = flyc.compile(cell(CHECKING)["launch"], array(), 0.0)
    assert modules.module_of(compiled, 0).image == compiled.hsaco
    assert modules.module_of(checking, 0).image != checking.hsaco
    assert "s_trap" in checking.code.assembly
    written = checking.code.written_down.assembly
    assert "s_trap" not in written and f".type	{VARIABLE},@object" in written


def test_checks_of_a_compilation_that_is_kept_on_disk(hip: StandIn, disk_cache: Path) -> None:
    for _ in range(2):
        launch = cell(CHECKING)["launch"]
        with pytest.raises(CheckFailed, match=r"too low\n    in block \(1, 2, 0\), thread \(17, 3, 0\)"):
            launch(array(_2_1_3_17=-5.0), 0.0)
        a = array()
        launch(a, 0.0)
        assert (a == 1).all() and not hip.errors
    assert {"hsaco", "object"} <= {file.name.split(".written-down.")[-1].split("-")[0] for file in
                                   disk_cache.rglob("*.written-down.*")}


@pytest.mark.parametrize("level", ["0", "1", "3"])
def test_checks_at_every_level_of_optimisation(hip: StandIn, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", level)
    with pytest.raises(CheckFailed, match=r"too low\n    in block \(1, 2, 0\), thread \(17, 3, 0\)"):
        cell(CHECKING)["launch"](array(_2_1_3_17=-5.0), 0.0)
