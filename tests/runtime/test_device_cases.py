"""Users' troubles with emulation, races and barriers, as they are typed, on both chips.

Of the cases D01 to D09, D01 and D02 are also in tests/emulator/checks/test_barrier_cases.py, D03 in test_race_cases.py
beside it, D04, D05 and D09 in test_out_of_bounds.py, D06 to D08 for single instructions in
tests/emulator/test_wave_operations.py and test_conversions.py.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import ml_dtypes
import numpy as np
import pytest

import flylab
from flylab.targets import TARGETS
from tests.samples import cell, kernel_of


@pytest.fixture(params=list(TARGETS), autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


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
    with np.errstate(over="ignore", invalid="ignore"):
        wanted = halves.astype(numpy_type)
    finite = np.isfinite(halves) & np.isfinite(wanted.astype(np.float32))
    assert np.array_equal(out[finite].view(np.uint8), wanted[finite].view(np.uint8))
    bits = (np.arange(256, dtype=np.uint32) * 0x01010000 + 0x8000)  # half way between two bf16, odd and even below
    words = np.where(np.isnan(bits.view(np.float32)), np.uint32(0x3F808000), bits).view(np.float32)
    rounded = np.zeros(256, ml_dtypes.bfloat16)
    kernel_of("B[fx.thread_idx.x] = A[fx.thread_idx.x].to(fx.BFloat16)", "A: fx.Tensor, B: fx.Tensor",
              block=256)["launch"](words, rounded)
    assert np.array_equal(rounded.view(np.uint16), words.astype(ml_dtypes.bfloat16).view(np.uint16))
