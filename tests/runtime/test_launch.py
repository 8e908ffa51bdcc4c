"""A launch that goes wrong says where the launcher launches; a dump that cannot be written says which variable asks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.errors import FlylabError
from tests.samples import cell

LAUNCHER = """
@flyc.kernel
def k(A: fx.Tensor, i: fx.Int32):
    A[i] = 1.0

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32, m: fx.Int32 = 1, i: fx.Int32 = 0):
    k(A, i).launch(grid=1, block=1)
    k(A, i).launch(grid=(n, m), block=1024)
"""


def device_array() -> np.ndarray:
    return np.zeros(64, np.float32)


@pytest.mark.parametrize(
    "n, m, message, hint",
    [
        (0, 1, "extent x must be 1 to", "computes its grid"),
        (1, 70_000, "extent y must be 1 to 65535", "computes its grid"),
        (2**22, 1, "has 4294967296 threads along x", "spread the blocks"),
    ],
)
def test_an_impossible_grid_is_shown_at_its_launch(n: int, m: int, message: str, hint: str) -> None:
    launch = cell(LAUNCHER)["launch"]
    with pytest.raises(FlylabError) as caught:
        launch(device_array(), n, m)
    assert message in caught.value.message and hint in str(caught.value.hint)
    assert caught.value.where is not None and caught.value.where.line == 8
    assert "k(A, i).launch(grid=(n, m), block=1024)" in str(caught.value)


def test_a_launcher_that_divides_by_zero_is_shown_at_its_launch() -> None:
    launch = cell(LAUNCHER.replace("(n, m), b", "8 // n, b"))["launch"]
    with pytest.raises(FlylabError, match="divides by zero") as caught:
        launch(device_array(), 0)
    assert caught.value.where is not None and caught.value.where.line == 8


def test_a_kernel_out_of_bounds_is_still_shown_at_the_kernels_line() -> None:
    with pytest.raises(FlylabError) as caught:
        cell(LAUNCHER)["launch"](device_array(), 1, 1, 10**6)
    assert caught.value.where is not None and caught.value.where.line == 3


@pytest.mark.parametrize("folder", ["file", "file/below", "launcher", "x" * 300])
def test_a_dump_that_cannot_be_written_fails_each_time(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "launcher").mkdir()
    (tmp_path / "launcher" / "launch").write_text("a file where the launcher's folder would be")
    monkeypatch.setenv("FLYLAB_DUMP_IR", "1")
    monkeypatch.setenv("FLYLAB_DUMP_DIR", str(tmp_path / folder))
    launch = cell(LAUNCHER)["launch"]
    for _ in range(2):
        with pytest.raises(FlylabError, match="the dump cannot be written") as caught:
            flyc.compile(launch, device_array(), 1)
        assert "FLYLAB_DUMP_DIR=" in caught.value.message and "FLYLAB_DUMP_IR=0" in str(caught.value.hint)
    monkeypatch.setenv("FLYLAB_DUMP_DIR", str(tmp_path / "folder"))
    flyc.compile(launch, device_array(), 1)
    assert (tmp_path / "folder" / "launch" / "final_isa.s").is_file()
