"""Users' troubles with emulation, races and barriers, D01 to D09, as they are typed: what the software device says.

The texts of errors are asserted in parts: which line, which threads, which bytes. D07 and D08, on single instructions:
tests/emulator/test_conversions.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flylab
from flylab.errors import CheckError, CheckFailed, OutOfBounds
from flylab.targets import TARGETS
from tests.samples import cell, kernel_of


@pytest.fixture(params=list(TARGETS), autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


def found(launch: Any, *args: Any) -> list[Any]:
    """The findings of a launch, which must have some."""
    begin = time.perf_counter()
    with pytest.raises(CheckError) as caught:
        launch(*args)
    assert time.perf_counter() - begin < 60  # an error, and not a hang
    return list(caught.value.findings)


def texts(names: dict[str, Any], *lines: int) -> list[str]:
    """These lines of a cell."""
    import linecache

    return [linecache.getline(names["FILE"], n).strip() for n in lines]


# D01: a barrier that some threads do not reach.

DIVERGENT = {
    "odd threads": ("if fx.thread_idx.x % 2 == 0:\n    gpu.barrier()\nA[fx.thread_idx.x] = 1.0", 4),
    "half a wave": ("if fx.thread_idx.x < 32:\n    gpu.barrier()\nA[fx.thread_idx.x] = 1.0", 4),
    "after a return": ("if fx.thread_idx.x >= 40:\n    return\ngpu.barrier()\nA[fx.thread_idx.x] = 1.0", 5),
}


@pytest.mark.parametrize("block", [64, 256])
@pytest.mark.parametrize("name", DIVERGENT)
def test_d01_a_barrier_that_some_threads_do_not_reach(name: str, block: int) -> None:
    body, line = DIVERGENT[name]
    names = kernel_of(body, block=block)
    first, *_ = found(names["launch"], np.zeros(block, np.float32))
    assert first.where.line == line and first.where.file == names["FILE"], first
    assert "barrier" in first.message and "wait" in first.message
    waiting = {"odd threads": "(0, 0, 0)", "half a wave": "(31, 0, 0)", "after a return": "(39, 0, 0)"}[name]
    assert waiting in first.message, first.message
    assert first.hint


def test_d01_a_known_block_of_one_wave() -> None:
    """LLVM takes the barrier out of a kernel whose blocks have one wave; it is a barrier all the same."""
    names = cell("""
        @flyc.kernel(known_block_size=[64, 1, 1])
        def k(A: fx.Tensor):
            if fx.thread_idx.x < 32:
                gpu.barrier()
            A[fx.thread_idx.x] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    first, *_ = found(names["launch"], np.zeros(64, np.float32))
    assert "barrier" in first.message and "(31, 0, 0)" in first.message


# D02: a failure while others wait.

def test_d02_the_error_of_a_thread_while_others_wait() -> None:
    names = kernel_of("""
        if fx.thread_idx.x >= 64:
            assert A[0] > 0.0, "no data"
        gpu.barrier()
        A[fx.thread_idx.x] = 1.0
    """, block=256)
    with pytest.raises(CheckFailed, match="no data") as caught:
        names["launch"](np.zeros(256, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 4
    numbers = np.ones(256, np.float32)
    names["launch"](numbers)  # and the next launch works
    assert (numbers == 1).all()


def test_d02_an_access_out_of_bounds_while_others_wait() -> None:
    names = kernel_of("""
        t = fx.thread_idx.x
        if t == 130:
            A[t + 5000] = 1.0
        gpu.barrier()
        A[t] = 2.0
    """, block=256)
    with pytest.raises(OutOfBounds, match=r"thread \(130, 0, 0\)"):
        names["launch"](np.zeros(256, np.float32))


def test_d02_ctrl_c_while_others_wait() -> None:
    """A wave counts for a minute, the others wait at a barrier: Ctrl-C ends the launch and says where they are."""
    script = textwrap.dedent("""
        import os, signal, threading
        import numpy as np
        from tests.samples import kernel_of
        names = kernel_of('''
            n = A[1]
            if fx.thread_idx.x < 64:
                while n != A[0]:
                    n = n * 1664525 + 1013904223
            gpu.barrier()
            A[fx.thread_idx.x] = n
        ''', block=256)
        numbers = np.zeros(256, np.int32)
        numbers[0] = np.uint32(pow(1664525, -1, 1 << 32) * -1013904223 % (1 << 32)).view(np.int32)  # 0 comes after it
        import flylab.compiler as flyc
        flyc.compile(names["launch"], numbers).program.load("k")
        threading.Timer(1.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            names["launch"](numbers)
        except KeyboardInterrupt as error:
            print(*error.__notes__)
        numbers[:2] = 3
        names["launch"](numbers)
        print(numbers[5])
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=os.getcwd())
    assert "wave 0 spins through" in done.stdout and "waits at 's_barrier'" in done.stdout, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "3"


# D03: races in LDS.

LDS = """
    lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, {size}]).peek()
    s = fx.make_view(lds.ptr, fx.make_layout({size}, 1))
    t = fx.thread_idx.x
"""


@pytest.mark.parametrize("block", [64, 256])
def test_d03_a_read_of_what_a_neighbour_writes(block: int) -> None:
    names = kernel_of(textwrap.dedent(LDS.format(size=256)) + "s[t] = A[t]\nA[t] = s[t ^ 1]", block=block)
    (race,) = found(names["launch"], np.arange(block, dtype=np.float32))
    assert race.where.line == 7 and f"{names['FILE']}, line 6" in race.message
    numbers = {n for n in (0, 1) if f"({n}, 0, 0)" in race.message}
    assert numbers == {0, 1}, race.message


PING_PONG = """
half = {size} // 2
total = fx.Float32(0.0)
for i in fx.range_constexpr(4):
    s[(i % 2) * half + t] = A[t] + i
    {first}
    total += s[(i % 2) * half + (t ^ 65)]
    {second}
A[t] = total
"""


def ping_pong(first: str, second: str) -> dict[str, Any]:
    return kernel_of(textwrap.dedent(LDS.format(size=512)) + PING_PONG.format(size=512, first=first, second=second),
                     block=256)


def test_d03_a_buffer_used_again_one_barrier_early() -> None:
    """With one buffer for all rounds, a round's writes meet the reads of the round before."""
    names = kernel_of(textwrap.dedent(LDS.format(size=512)) + PING_PONG.format(size=0, first="gpu.barrier()",
                                                                               second=""), block=256)
    race, *_ = found(names["launch"], np.zeros(256, np.float32))
    assert {race.where.line, *[int(w.rstrip(",:;)'")) for w in race.message.replace("line ", "\nline ").split()
                               if w.rstrip(",:;)'").isdigit()]} >= {9, 11}, race
    names["launch"]


@pytest.mark.parametrize("second", ["", "gpu.barrier()"])
def test_d03_a_correct_ping_pong_is_silent(second: str) -> None:
    names, numbers = ping_pong("gpu.barrier()", second), np.arange(256, dtype=np.float32)
    wanted = sum(numbers[np.arange(256) ^ 65] + i for i in range(4))
    with flylab.watch(check="all"):
        names["launch"](numbers)
    assert (numbers == wanted).all()


# D04: views.

def test_d04_a_strided_view_read_beyond_its_end() -> None:
    names = kernel_of("B[fx.thread_idx.x] = A[fx.thread_idx.x]", "A: fx.Tensor, B: fx.Tensor", block=4)
    base = np.arange(5, dtype=np.float32)
    with pytest.raises(OutOfBounds) as caught:
        names["launch"](base[::2], np.zeros(4, np.float32))
    assert "'A'" in str(caught.value) and "thread (3, 0, 0)" in str(caught.value)


def test_d04_an_expanded_row_is_clean() -> None:
    names = kernel_of("B[fx.thread_idx.x, 0] = A[fx.thread_idx.x, 2]", "A: fx.Tensor, B: fx.Tensor", block=4)
    row, out = np.arange(3, dtype=np.float32), np.zeros((4, 1), np.float32)
    with flylab.watch(check="all"):
        names["launch"](np.broadcast_to(row, (4, 3)), out)
    assert (out == 2).all()


def test_d04_a_view_inside_of_its_base() -> None:
    """base(4x5)[1:3, 1:4]: what lies between its rows is not the view's, and bytes count from its own pointer."""
    body = "B[fx.thread_idx.x, 0] = A[fx.thread_idx.x // {columns}, fx.thread_idx.x % {columns}]"
    base = np.arange(20, dtype=np.float32).reshape(4, 5)
    out = np.zeros((6, 1), np.float32)
    with flylab.watch(check="all"):
        kernel_of(body.format(columns=3), "A: fx.Tensor, B: fx.Tensor", block=6)["launch"](base[1:3, 1:4], out)
    assert (out.ravel() == base[1:3, 1:4].ravel()).all()
    with pytest.raises(OutOfBounds) as caught:
        kernel_of(body.format(columns=4), "A: fx.Tensor, B: fx.Tensor", block=4)["launch"](base[1:3, 1:4], out)
    assert "'A'" in str(caught.value) and "thread (3, 0, 0)" in str(caught.value)
    assert "byte 12" in str(caught.value) or "element (0, 3)" in str(caught.value), caught.value


# D05: a row of 3, a block of 4.

def test_d05_a_mask_keeps_the_last_thread_out() -> None:
    row = np.arange(3, dtype=np.float32)
    with flylab.watch(check="all"):
        kernel_of("t = fx.thread_idx.x\nif t < 3:\n    A[t] = A[t] + 1.0", block=4)["launch"](row)
    assert (row == [1, 2, 3]).all()
    with pytest.raises(OutOfBounds) as caught:
        kernel_of("t = fx.thread_idx.x\nA[t] = A[t] + 1.0", block=4)["launch"](row)
    assert "thread (3, 0, 0)" in str(caught.value) and "'A'" in str(caught.value)
    assert not caught.value.findings


# D06: the butterfly.

@pytest.mark.parametrize("width", [16, 64])
def test_d06_a_butterfly_sums_over_the_wave(width: int) -> None:
    names = kernel_of(f"""
        x = A[fx.thread_idx.x]
        for step in ({', '.join(str(width >> n) for n in range(1, width.bit_length()))},):
            x = x + gpu.shuffle_xor(x, step, {width})
        A[fx.thread_idx.x] = x
    """)
    rows = np.eye(64, dtype=np.float32)
    with flylab.watch(check="all"):
        for row in rows:
            wanted = np.repeat(row.reshape(-1, width).sum(axis=1), width)
            names["launch"](row)
            assert (row == wanted).all()


# D07: the chip's own small floats.

@pytest.mark.parametrize("kind", ["E4M3", "E5M2"])
def test_d07_every_byte_of_the_chips_formats(kind: str, chip: str) -> None:
    (dtype,) = [name for name in TARGETS[chip].float8.values() if kind in name]
    numpy_name = {"Float8E4M3FN": "float8_e4m3fn", "Float8E5M2": "float8_e5m2", "Float8E4M3FNUZ": "float8_e4m3fnuz",
                  "Float8E5M2FNUZ": "float8_e5m2fnuz"}[dtype]
    codes = np.arange(256, dtype=np.uint8).view(getattr(ml_dtypes, numpy_name))
    names = kernel_of(f"B[fx.thread_idx.x] = A[fx.thread_idx.x].to(fx.Float32)\n"
                      f"C[fx.thread_idx.x] = B[fx.thread_idx.x].to(fx.{dtype})",
                      "A: fx.Tensor, B: fx.Tensor, C: fx.Tensor", block=256)
    out, back = np.zeros(256, np.float32), np.zeros(256, codes.dtype)
    names["launch"](codes, out, back)
    wanted = codes.astype(np.float32)
    assert np.array_equal(out, wanted, equal_nan=True)
    assert np.array_equal(back.astype(np.float32), wanted, equal_nan=True)


# D08: rounding half way.

def test_d08_halves_to_e5m2_and_half_way_bf16(chip: str) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    (dtype,) = [name for name in TARGETS[chip].float8.values() if "E5M2" in name]
    numpy_type = ml_dtypes.float8_e5m2 if dtype == "Float8E5M2" else ml_dtypes.float8_e5m2fnuz
    names = cell(f"""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor):
            i = fx.block_idx.x * 256 + fx.thread_idx.x
            B[i] = A[i].to(fx.{dtype})

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor):
            k(A, B).launch(grid=256, block=256)
    """)
    out = np.zeros(1 << 16, numpy_type)
    names["launch"](halves, out)
    with np.errstate(over="ignore"):
        wanted = halves.astype(numpy_type)
    finite = np.isfinite(halves) & np.isfinite(wanted.astype(np.float32))
    assert np.array_equal(out[finite].view(np.uint8), wanted[finite].view(np.uint8))
    bits = (np.arange(256, dtype=np.uint32) * 0x01010000 + 0x8000)  # half way between two bf16, odd and even below
    words = np.where(np.isnan(bits.view(np.float32)), np.uint32(0x3F808000), bits).view(np.float32)
    rounded = np.zeros(256, ml_dtypes.bfloat16)
    kernel_of("B[fx.thread_idx.x] = A[fx.thread_idx.x].to(fx.BFloat16)", "A: fx.Tensor, B: fx.Tensor",
              block=256)["launch"](words, rounded)
    assert np.array_equal(rounded.view(np.uint16), words.astype(ml_dtypes.bfloat16).view(np.uint16))


# D09: where it happened.

def test_d09_the_second_statement_of_a_loop_in_a_cell() -> None:
    script = textwrap.dedent("""
        import sys
        from IPython.core.interactiveshell import InteractiveShell
        shell = InteractiveShell.instance()
        shell.run_line_magic("colors", "NoColor")
        for text in sys.stdin.read().split("%%"):
            shell.run_cell(text.strip(), store_history=True)
    """)
    cells = textwrap.dedent("""
        import numpy as np
        import flylab.compiler as flyc
        import flylab.expr as fx

        @flyc.kernel
        def k(A: fx.Tensor, n: fx.Int32):
            for i in range(n):
                A[i] = 1.0
                A[i * 3 + fx.thread_idx.x] = 2.0

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32):
            k(A, n).launch(grid=(2, 1, 1), block=16)
        %%
        launch(np.zeros(40, np.float32), 10)
    """)
    done = subprocess.run([sys.executable, "-c", script], input=cells, capture_output=True, text=True, timeout=120,
                          env={**os.environ, "FLYLAB_DEVICE": str(flylab.device())})
    for part in ("OutOfBounds", "cell In[1], line 9, in k", "    A[i * 3 + fx.thread_idx.x] = 2.0", "'A'",
                 "thread (13, 0, 0)", "block (0, 0, 0)"):
        assert part in done.stdout, done.stdout + done.stderr
