"""`fx.printf` over a launch: the order of lines, where they go, how many fit, and what a failed launch still shows."""

from __future__ import annotations

import contextlib
import io
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import DeviceError, FlylabError, OutOfBounds
from flylab.expr.gpu import barrier
from flylab.expr.printf import printf
from tests.samples import cell

CHIPS = ("gfx942", "gfx950")
SHAPES = [((3,), (70,)), ((2, 3), (5, 7)), ((2, 2, 3), (3, 4, 9)), ((1, 1, 2), (64, 2, 2))]


@pytest.fixture(params=CHIPS)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


@flyc.kernel
def where(calls: fx.Constexpr[int]):
    for call in fx.range_constexpr(calls):
        fx.printf("{} {} {}", call, fx.block_idx, fx.thread_idx)
        barrier()


@flyc.jit
def known(grid: fx.Constexpr, block: fx.Constexpr, calls: fx.Constexpr[int]):
    where(calls).launch(grid=grid, block=block)


@flyc.jit
def unknown(gx: fx.Int32, gy: fx.Int32, gz: fx.Int32, bx: fx.Int32, by: fx.Int32, bz: fx.Int32):
    where(2).launch(grid=(gx, gy, gz), block=(bx, by, bz))


def everywhere(grid: tuple[int, ...], block: tuple[int, ...], calls: int) -> str:
    """What `where` prints: x fastest, all of a thread before the next."""
    spans = [range(n) for shape in (grid, block) for n in reversed((*shape, 1, 1)[:3])]
    return "".join(f"{call} ({bx}, {by}, {bz}) ({x}, {y}, {z})\n"
                   for bz, by, bx, z, y, x in itertools.product(*spans) for call in range(calls))


@pytest.mark.parametrize("grid, block", SHAPES)
@pytest.mark.parametrize("threads", ["1", "4"])
@pytest.mark.parametrize("level", ["0", "2"])
def test_lines_come_by_block_thread_and_program(grid: tuple[int, ...], block: tuple[int, ...], threads: str, level: str,
                                                chip: str, monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", threads)
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", level)
    known(grid, block, 3)
    assert capsys.readouterr().out == everywhere(grid, block, 3)
    unknown(*(*grid, 1, 1)[:3], *(*block, 1, 1)[:3])
    assert capsys.readouterr().out == everywhere(grid, block, 2)


@flyc.kernel
def show(A: fx.Tensor, n: fx.Int32):
    i = fx.block_idx.x * 100 + fx.thread_idx.x
    fx.printf("{} of {}: {}", i, n, A[i])


@flyc.jit
def show_all(A: fx.Tensor, n: fx.Int32):
    show(A, n).launch(grid=n // 100, block=100)


def test_ten_thousand_lines(chip: str, capsys: pytest.CaptureFixture[str]) -> None:
    """L22."""
    array = np.random.default_rng(0).random(10_000)
    show_all(array, 10_000)
    assert capsys.readouterr().out == "".join(f"{i} of 10000: {float(x)!r}\n" for i, x in enumerate(array))


def test_lanes_that_do_not_come_here_print_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """A call inside of a region: each thread at its own place in the program, between two lines of all."""
    from mlir import ir

    @flyc.kernel
    def k():
        t = fx.thread_idx.x
        fx.printf("{} before", t)
        # What an `if` of the device becomes.
        branch = ir.Operation.create("scf.if", operands=[(t % 7 == 3).ir_value()], regions=2)
        for region in branch.regions:
            with ir.InsertionPoint(region.blocks.append()):
                if region == branch.regions[0]:
                    printf("{} inside", t)
                ir.Operation.create("scf.yield")
        fx.printf("{} after", t)

    @flyc.jit
    def launch():
        k().launch(grid=1, block=100)

    launch()
    expected = "".join(f"{t} before\n{f'{t} inside' + chr(10) if t % 7 == 3 else ''}{t} after\n" for t in range(100))
    assert capsys.readouterr().out == expected


def test_a_loop_of_each_thread(capsys: pytest.CaptureFixture[str]) -> None:
    """As often as the thread says: its lines stay together, whatever the others of its wave do meanwhile."""
    from mlir import ir

    @flyc.kernel
    def k():
        t = fx.thread_idx.x
        bounds = [number.ir_value() for number in (fx.Int32(0), t % 5, fx.Int32(1))]
        loop = ir.Operation.create("scf.for", operands=bounds, regions=1)
        body = loop.regions[0].blocks.append(ir.IntegerType.get_signless(32))
        with ir.InsertionPoint(body):
            printf("{} round {}", t, fx.Int32(body.arguments[0]))
            ir.Operation.create("scf.yield")

    @flyc.jit
    def launch():
        k().launch(grid=1, block=130)

    launch()
    assert capsys.readouterr().out == "".join(f"{t} round {i}\n" for t in range(130) for i in range(t % 5))


@flyc.kernel
def scale(A: fx.Tensor, factor: fx.Float32):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] * factor
    fx.printf("{}", A[fx.thread_idx.x])


@flyc.jit
def twice(A: fx.Tensor, factor: fx.Float32, half: fx.Float16, small: fx.Int8):
    fx.printf("by {}", factor)
    scale(A, factor).launch(grid=1, block=2)
    fx.printf("then {} {} {:.1f} {}", half, small, factor, fx.Int64(small) * 3)
    scale(A, factor).launch(grid=1, block=2)
    fx.printf("ready")


def test_a_launcher_prints_at_each_launch_in_its_place(capsys: pytest.CaptureFixture[str]) -> None:
    array = np.array([1, 2], np.float32)
    for start in (1, 9):
        twice(array, 3.0, 0.1, -5)
        first, second = start * 3.0, start * 6.0
        lines = ["by 3.0", first, second, "then 0.1 -5 3.0 -15", first * 3, second * 3, "ready"]
        assert capsys.readouterr().out.split("\n") == [*map(str, lines), ""]


@flyc.jit
def wide(A: fx.Tensor, n: fx.Int32):
    fx.printf("{} {}", fx.Int128(n) * 2**100, fx.Uint128(n) - 2**127)
    scale(A, 1.0).launch(grid=1, block=1)


def test_a_launcher_computes_with_constants_of_more_than_64_bits(capsys: pytest.CaptureFixture[str]) -> None:
    wide(np.array([5], np.float32), 3)
    assert capsys.readouterr().out == f"{3 * 2**100} {3 + 2**127}\n5.0\n"


def test_lines_go_where_the_launching_thread_prints() -> None:
    """To `sys.stdout` as it is at the launch, not at the compilation."""
    outputs = []
    for _ in range(2):
        stream = io.StringIO()
        with contextlib.redirect_stdout(stream):
            thread = threading.Thread(target=known, args=((1,), (2,), 1))
            thread.start()
            thread.join()
        outputs.append(stream.getvalue())
    assert outputs == [everywhere((1,), (2,), 1)] * 2


@pytest.mark.parametrize("size, fit", [(64, 1), (84, 2), (87, 2), (88, 2), (1 << 20, 100)])
def test_lines_that_find_no_room_are_counted(size: int, fit: int, monkeypatch: pytest.MonkeyPatch,
                                             capsys: pytest.CaptureFixture[str]) -> None:
    """A record has 16 bytes and its numbers, here 16 too; the buffer 24 bytes before, in multiples of 8."""
    monkeypatch.setenv("FLYLAB_PRINTF_BYTES", str(size))
    array = np.arange(100.0)
    if fit == 100:
        show_all(array, 100)
    else:
        with pytest.raises(DeviceError) as caught:
            show_all(array, 100)
        assert f"kernel 'show' printed {100 - fit} lines more than the {-(-size // 8) * 8} bytes" in str(caught.value)
        assert f"FLYLAB_PRINTF_BYTES={24 + 32 * 100}" in str(caught.value.hint)
        assert caught.value.where is not None and "show(A, n).launch" in str(caught.value.where)
        monkeypatch.setenv("FLYLAB_PRINTF_BYTES", str(24 + 32 * 100))
        shown = capsys.readouterr().out
        assert set(shown.splitlines()) <= {f"{i} of 100: {i}.0" for i in range(100)} and shown.count("\n") == fit
        show_all(array, 100)
    assert capsys.readouterr().out == "".join(f"{i} of 100: {i}.0\n" for i in range(100))


@pytest.mark.parametrize("text", ["many", "-1", "8", "1.5", str(1 << 60)])
def test_a_size_that_is_none(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_PRINTF_BYTES", text)
    with pytest.raises(FlylabError, match="FLYLAB_PRINTF_BYTES="):
        show_all(np.zeros(100), 100)


def test_a_size_that_the_system_has_no_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_PRINTF_BYTES", str((1 << 48) - 8))
    with pytest.raises(DeviceError, match="no room for the .* bytes that a kernel prints into"):
        show_all(np.zeros(100), 100)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_a_launch_that_fails_shows_what_came_before(threads: str, monkeypatch: pytest.MonkeyPatch,
                                                    capsys: pytest.CaptureFixture[str]) -> None:
    """Every line of the blocks before the one that failed, those of that one up to there, and none after it."""
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", threads)
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, P: fx.Constexpr[int]):
            b, t = fx.block_idx.x, fx.thread_idx.x
            fx.printf("block {} thread {}", b, t)
            p = fx.get_iter(A)
            p[(b == 7).select(P, 0)] = 1.0
            fx.printf("block {} thread {} wrote", b, t)

        @flyc.jit
        def launch(A: fx.Tensor, P: fx.Constexpr[int]):
            k(A, P).launch(grid=40, block=64)
    """)
    with pytest.raises(OutOfBounds, match="block .7, 0, 0."):
        names["launch"](np.zeros(64, np.float32), 1 << 20)
    both = "".join(f"block {b} thread {t}\nblock {b} thread {t} wrote\n" for b in range(7) for t in range(64))
    assert capsys.readouterr().out == both + "".join(f"block 7 thread {t}\n" for t in range(64))


def test_a_write_past_an_array_is_told_by_the_array(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(OutOfBounds, match=r"right after the end of 'A' \(shape \(100,\)"):
        show_all(np.zeros(100), 200)
    assert capsys.readouterr().out.count("\n") == 100


def test_the_buffer_is_one_argument_more() -> None:
    """Of a kernel that prints, and of no other: its arguments and its instructions are as they were."""
    source = """
        @flyc.kernel
        def k(A: fx.Tensor, n: fx.Int32):
            A[fx.thread_idx.x] = n
            {}

        @flyc.kernel
        def other(A: fx.Tensor, n: fx.Int32):
            A[fx.thread_idx.x] = n

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32):
            k(A, n).launch(grid=1, block=64)
            other(A, n).launch(grid=1, block=64)
    """
    arguments: list[Any] = [np.zeros(64, np.int32), 5]
    with_, without = (flyc.compile(cell(source.format(line))["launch"], *arguments) for line in ('fx.printf("")', ""))

    def shape(compiled: Any, kernel: str) -> list[str]:
        return [a.kind for a in compiled.isa.kernels[kernel].args if not a.hidden]

    assert shape(with_, "k") == ["global_buffer", "by_value", "global_buffer"]
    for kernel in ("k", "other"):
        assert shape(without, kernel) == ["global_buffer", "by_value"]
    texts = [[i.text for i in c.isa.kernels["other"].instructions] for c in (with_, without)]
    assert texts[0] == texts[1] and not any("atomic" in text for text in texts[0])
    assert sum("atomic" in i.text for i in with_.isa.kernels["k"].instructions) == 2
