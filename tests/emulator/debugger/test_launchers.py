"""`flylab.debug` on launchers: the user's lines, checks and prints, and arrays that stay as they are."""

from __future__ import annotations

import numpy as np
import pytest

import flylab
from flylab.errors import ArgumentError, CheckFailed, DebugError, OutOfBounds
from tests.emulator.toolchain import CHIPS
from tests.samples import cell

TEXT = """
@flyc.kernel
def double(A: fx.Tensor, B: fx.Tensor):
    i = gpu.block_id("x") * 64 + gpu.thread_id("x")
    x = A[i]
    for step in range(3):
        x = x + 1.0
    fx.printf("{} of {}", x, i)
    assert i < 190, "too far"
    B[i] = x

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Constexpr[int]):
    double(A, B).launch(grid=n, block=64)
    double(B, A).launch(grid=n, block=64)
"""


def arrays() -> tuple[np.ndarray, np.ndarray]:
    return np.arange(192, dtype="f4"), np.zeros(192, "f4")


@pytest.fixture(params=CHIPS, autouse=True)
def on_chip(request: pytest.FixtureRequest) -> object:
    with flylab.use(f"emulated:{request.param}"):
        yield


def test_it_stops_at_lines_and_shows_tensors(capsys: pytest.CaptureFixture[str]) -> None:
    names, (a, b) = cell(TEXT), arrays()
    debugger = flylab.debug(names["launch"], a, b, 2, at_block=1)
    debugger.run_to(line=9)
    assert debugger.line is not None and debugger.line.file == names["FILE"] and debugger.line.line == 9
    assert "B[i] = x" in repr(debugger)
    assert debugger.memory("B")[:64].tolist() == list(range(3, 67)) and not debugger.memory("B")[64:].any()
    assert debugger.printed.splitlines()[:3] == ["3.0 of 0", "4.0 of 1", "5.0 of 2"]
    assert len(debugger.printed.splitlines()) == 128
    result = debugger.finish().result()
    assert result["B"].tolist() == [*range(3, 131), *[0] * 64] and result["A"].dtype == np.float32
    debugger.start()
    assert len(debugger.printed.splitlines()) == 64
    assert (a == np.arange(192)).all() and not b.any() and capsys.readouterr().out == ""


def test_a_later_launch(capsys: pytest.CaptureFixture[str]) -> None:
    names, (a, b) = cell(TEXT), arrays()
    debugger = flylab.debug(names["launch"], a, b, 1, kernel=1).finish()
    assert len(capsys.readouterr().out.splitlines()) == 64  # what the first launch printed
    assert debugger.memory("A")[:64].tolist() == list(range(6, 70)) and (a == np.arange(192)).all()
    first = flylab.debug(names["launch"], a, b, 1, kernel="double")
    assert first.kernel != debugger.kernel and not first.memory("B").any()


def test_a_check_that_fails() -> None:
    names, (a, b) = cell(TEXT), arrays()
    debugger = flylab.debug(names["launch"], a, b, 3, at_block=2).finish()
    assert isinstance(debugger.error, CheckFailed)
    assert "too far" in str(debugger.error) and "block (2, 0, 0), thread (62, 0, 0)" in str(debugger.error)
    assert debugger.line is not None and debugger.line.line == 8
    with pytest.raises(CheckFailed):
        flylab.debug(names["launch"], a, b, 4, at_block=3)


def test_an_access_that_is_out_of_bounds() -> None:
    names = cell(TEXT.replace("B[i] = x", "B[i + 1000000] = x"))
    debugger = flylab.debug(names["launch"], *arrays(), 1).finish()
    assert isinstance(debugger.error, OutOfBounds) and debugger.error.where.line == 9
    assert debugger.line is not None and debugger.line.line == 9
    debugger.run_back_to(line=6, visit=1)
    assert debugger.line.line == 6


def test_what_is_refused() -> None:
    names, (a, b) = cell(TEXT), arrays()
    with pytest.raises(DebugError, match="'launch' makes no launch 2") as caught:
        flylab.debug(names["launch"], a, b, 1, kernel=2)
    assert "it launches double" in (caught.value.hint or "")
    with pytest.raises(DebugError, match="no launch of a kernel 'half'"):
        flylab.debug(names["launch"], a, b, 1, kernel="half")
    with pytest.raises(ArgumentError, match="a launcher is needed"):
        flylab.debug(names["double"], a, b)
    with pytest.raises(DebugError, match="line 1 has no code") as caught:
        flylab.debug(names["launch"], a, b, 1).run_to(line=1)
    assert "3, 4" in (caught.value.hint or "")
    with pytest.raises(DebugError, match="no block 5"):
        flylab.debug(names["launch"], a, b, 1, at_block=5)


def test_the_listing_says_what_run_to_takes() -> None:
    names, (a, b) = cell(TEXT), arrays()
    debugger = flylab.debug(names["launch"], a, b, 1).run_to("global_load")
    number = debugger.instruction.index if debugger.instruction else -1
    rows = debugger.listing().split("\n")
    assert repr(debugger.listing()) == str(debugger.listing())
    arrows = [row for row in rows if row.startswith("->")]
    assert len(arrows) == 1 and arrows[0].split()[1] == str(number) and "global_load_dword" in arrows[0]
    assert sum("x = A[i]" in row for row in rows) >= 1 and rows[number] == arrows[0]
    near = debugger.listing(around=1).split("\n")
    assert [int(row[2:].split()[0]) for row in near] == [number - 1, number, number + 1]
    assert debugger.start().run_to(number).time == debugger.start().run_to("global_load").time


def test_a_file_is_named_as_it_is_shown() -> None:
    names, (a, b) = cell(TEXT), arrays()
    debugger = flylab.debug(names["launch"], a, b, 1)
    short = names["FILE"].rpartition("/")[2]
    assert debugger.run_to(line=(short, 9)).time == debugger.start().run_to(line=(names["FILE"], 9)).time


RACE = """
@flyc.kernel
def exchange(A: fx.Tensor):
    t = fx.thread_idx.x
    s = fx.make_view(fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).peek().ptr, fx.make_layout(256, 1))
    s[t] = A[t]
    A[t] = s[t ^ 65]

@flyc.jit
def launch(A: fx.Tensor):
    exchange(A).launch(grid=1, block=256)
"""


def test_it_is_watched_as_launches_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_CHECK", "auto")
    launch, a = cell(RACE)["launch"], np.zeros(256, "f4")
    kinds = {finding.kind for finding in flylab.debug(launch, a).finish().findings}
    assert kinds == {"race", "registers"}
    with flylab.watch(check=None):
        assert flylab.debug(launch, a).finish().findings == ()
        assert len(flylab.debug(launch, a, check=("races",)).finish().findings) == 1
    with flylab.watch(check=("races",)):
        assert [finding.kind for finding in flylab.debug(launch, a).finish().findings] == ["race"]


def test_what_it_does_not_keep_of_prints_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    names, (a, b) = cell(TEXT), arrays()
    whole = flylab.debug(names["launch"], a, b, 1).finish().printed
    assert len(whole.splitlines()) == 64
    monkeypatch.setattr("flylab.runtime.debug.MOST_PRINTED", 1024)
    kept = flylab.debug(names["launch"], a, b, 1).finish().printed.splitlines()
    assert 0 < len(kept) - 1 < 64 and set(kept[:-1]) <= set(whole.splitlines())
    assert kept[-1] == f"({64 - len(kept) + 1} more lines: the debugger keeps 1024 bytes of them)"
