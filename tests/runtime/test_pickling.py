"""Kernels, launchers, compilations and runs: copied, deep-copied, pickled, and unpickled in another process."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError, DeviceError, TraceError
from tests.notebooks import ROOT
from tests.samples import cell


@fx.struct
class Pair:
    a: fx.Float32
    b: fx.Int32


@flyc.kernel
def fill(A: fx.Tensor, pair: Pair, factor: fx.Constexpr[float]):
    fx.printf("{}", pair.b)
    A[fx.thread_idx.x] = pair.a * factor


@flyc.jit
def launch(A: fx.Tensor, pair: Pair, factor: fx.Constexpr[float], stream: fx.Stream = fx.Stream(None)):
    fill(A, pair, factor).launch(grid=1, block=64, stream=stream)


@dataclass
class Config:
    factor: float


@flyc.kernel
def configured_fill(A: fx.Tensor, config: fx.Constexpr):
    A[fx.thread_idx.x] = config.factor


@flyc.jit
def configured(A: fx.Tensor, config: fx.Constexpr):
    configured_fill(A, config).launch(grid=1, block=64)


def arguments(count: int = 64) -> tuple[Any, ...]:
    return np.zeros(count, np.float32), Pair(a=1.5, b=3), 2.0


@pytest.fixture(params=["0", "1"], ids=["made here", "from disk"])
def compiled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", request.param)
    launch.specialisations.clear()
    made = flyc.compile(launch, *arguments())
    if request.param == "1":
        launch.specialisations.clear()
        made = flyc.compile(launch, *arguments())
        assert made.kept == "read from disk"
    return made


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def test_a_compilation(compiled: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert copy.copy(compiled) is copy.deepcopy(compiled) is compiled
    other = again(compiled)
    assert other is not compiled and repr(other) == repr(compiled) and other.kept == compiled.kept
    for name in ("source", "ir", "passes", "llvm", "isa"):
        assert str(other.show(name)) == str(compiled.show(name))
    assert other.object_code == compiled.object_code
    given = arguments()
    other(*given)
    assert given[0].tolist() == [3.0] * 64 and capsys.readouterr().out == "3\n" * 64
    with pytest.raises(ArgumentError, match="'A' was compiled for"):
        other(*arguments(32))
    with pytest.raises(ArgumentError, match="'factor' was compiled for 2.0, and gets 3.0"):
        other(*given[:2], 3.0)


def test_a_compilation_with_a_constant_that_was_changed() -> None:
    A, config = np.zeros(64, np.float32), Config(2.0)
    made = flyc.compile(configured, A, config)
    again(made)(A, Config(2.0))
    assert (A == 2).all()
    config.factor = 3.0
    for value in (config, Config(2.0)):
        with pytest.raises(ArgumentError, match="'config' was changed between compiling 'configured' and pickling"):
            again(made)(A, value)


def test_a_run(compiled: Any) -> None:
    for chip in ("gfx942", "gfx950"):
        with flylab.use(chip), flylab.watch(counters=True, log=True):
            run = launch(*arguments())
        for other in (copy.copy(run), copy.deepcopy(run), again(run)):
            assert repr(other) == repr(run) and chip in repr(run)
            assert str(other.counters) == str(run.counters) and str(other.log) == str(run.log)
            assert str(other.compiled.show("isa")) == str(run.compiled.show("isa"))


def test_functions_stay_themselves() -> None:
    for function in (fill, launch):
        assert copy.copy(function) is copy.deepcopy(function) is again(function) is function


def test_what_its_name_does_not_lead_to_is_refused() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    A = np.zeros(64, np.float32)
    for value in (names["launch"], flyc.compile(names["launch"], A), names["launch"](A)):
        with pytest.raises(TraceError, match="launch.* cannot be pickled: .* is not it") as caught:
            pickle.dumps(value)
        assert "define it in a module's outermost level" in (caught.value.hint or "")


def test_errors() -> None:
    with pytest.raises(DeviceError) as caught:
        launch(*arguments(32))
    assert str(again(caught.value)) == str(caught.value) and "out of bounds" in str(caught.value)


def test_another_process_runs_what_was_compiled_here(compiled: Any, tmp_path: Path) -> None:
    file = tmp_path / "compiled.pickle"
    file.write_bytes(pickle.dumps(compiled))
    program = f"""
import pickle, sys
import numpy as np
from tests.runtime.test_pickling import Pair
compiled = pickle.load(open({str(file)!r}, "rb"))
A = np.zeros(64, np.float32)
compiled(A, Pair(a=2.5, b=1), 2.0)
assert (A == 5.0).all()
print(sorted(name for name in sys.modules if name in ("mlir", "llvmlite.binding.passmanagers")))
"""
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, text=True, capture_output=True,
                          env={**os.environ, "FLYLAB_RUNTIME_ENABLE_CACHE": "0", "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stderr
    assert done.stdout == "1\n" * 64 + "[]\n"
