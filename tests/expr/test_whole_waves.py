"""Matrix products under branches and in loops: where a wave goes one way they are numpy's, else the device says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.errors import CheckFailed, TraceError
from tests.samples import kernel_of

THREADS = 256
HEAD = """
t = fx.thread_idx.x
atom = fx.make_mma_atom(fx.rocdl.MFMA(4, 4, 4, fx.Float16))
a = fx.make_rmem_tensor(4, fx.Float16)
c = fx.make_rmem_tensor(4, fx.Float32)
a.fill(1.0)
c.fill(fx.Float32(t))
"""
LINE = 9
PRODUCT = "fx.gemm(atom, c, a, a, c)"
RAW = "c.store(fx.rocdl.mfma_f32_4x4x4f16(None, [a.load(), a.load(), c.load(), 0, 0, 0]))"
NUMBER = np.arange(THREADS)
ALIKE = np.repeat([0, 1, 0, 3], 64).astype(np.int32)  # by waves
MIXED = (NUMBER % 3 == 0).astype(np.int32)


def run(chip: str, body: str, flags: np.ndarray, n: int = 2) -> tuple[np.ndarray, str]:
    """What each thread holds after the body, and the ISA."""
    names = kernel_of(HEAD + body + "\nR[t] = c[2]\n", "R: fx.Tensor, F: fx.Tensor, n: fx.Int32", THREADS)
    result = np.zeros(THREADS, np.float32)
    with flylab.use(chip):
        names["launch"](result, flags, n)
        return result, str(names["k"].show("isa"))


# How often a product of ones is added: to each element 4 at a time.
TIMES: dict[str, tuple[str, Any]] = {
    "a flag of the wave, from memory": ("if F[t] > 0:\n    {}", ALIKE > 0),
    "either arm": ("if F[t] > 0:\n    {0}\nelse:\n    {0}\n    {0}", np.where(ALIKE > 0, 1, 2)),
    "a count of the wave, from memory": ("for i in range(F[t]):\n    {}", ALIKE),
    "a loop until a flag": ("i = fx.Int32(0)\nwhile i < 9:\n    {}\n    i += 1\n    if i > F[t]:\n        break",
                            ALIKE + 1),
    "the wave's number": ("if t // 64 == 2:\n    {}", NUMBER // 64 == 2),
    "below a number of whole waves": ("if t < 128:\n    {}", NUMBER < 128),
    "the kernel's number": ("for i in range(n):\n    {}", 2),
    "both": ("if t // 64 < n:\n    for i in range(F[t]):\n        {}", np.where(NUMBER < 128, ALIKE, 0)),
    "a return": ("if t >= 192:\n    R[t] = 7.0\n    return\n{}", None),
}


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("product", [PRODUCT, RAW], ids=["gemm", "raw"])
@pytest.mark.parametrize("name", TIMES)
def test_where_a_wave_goes_one_way(name: str, product: str, chip: str) -> None:
    body, times = TIMES[name]
    found, isa = run(chip, body.format(product), ALIKE)
    wanted = np.where(NUMBER < 192, NUMBER + 4, 7) if times is None else NUMBER + 4 * times
    assert np.array_equal(found, wanted)
    assert "scratch_" not in isa


@pytest.mark.parametrize("body", ["if t // 64 == 2:\n    {}", "if t < 128:\n    {}", "for i in range(n):\n    {}",
                                  "if F[0] > 0:\n    {}",
                                  "if (fx.block_idx.x * 256 + t) // 64 == 2:\n    {}"])
def test_what_is_known_to_be_one_way_is_not_checked(body: str) -> None:
    assert "s_trap" not in run("gfx942", body.format(PRODUCT), ALIKE)[1]


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("body, thread", [
    ("if t % 64 < 32:\n    {}", 32), ("if F[t] > 0:\n    {}", 1), ("for i in range(F[t]):\n    {}", 1),
    ("if t >= 48:\n    return\n{}", 48), ("while F[t] > 0:\n    {}\n    break", 1),
    ("if fx.rocdl.update_dpp(None, F[0], F[1], fx.rocdl.dpp.row_shr(1)) > 0:\n    {}", 1),
])
def test_where_a_wave_parts(body: str, thread: int, chip: str) -> None:
    with pytest.raises(CheckFailed) as caught:
        run(chip, body.format(PRODUCT), MIXED)
    text = str(caught.value)
    assert f"line {LINE}, in k" in text and body.split("\n")[0] in text
    assert "the threads of a wave part here" in text and f"thread ({thread}, 0, 0)" in text
    assert "hint: let a wave go one way" in text


def test_a_multiply_add_of_one_thread_is_for_any_threads() -> None:
    body = ("one = fx.make_mma_atom(fx.UniversalFMA(fx.Float32))\nb = fx.make_rmem_tensor((1, 4, 1), fx.Float32)\n"
            "b.fill(2.0)\nd = fx.make_view(fx.get_iter(c), fx.make_layout((1, 4, 1), (1, 1, 4)))\nif F[t] > 0:\n"
            "    fx.gemm(one, d, b, fx.make_view(fx.get_iter(b), fx.make_layout((1, 1, 1), (1, 1, 1))), d)")
    assert np.array_equal(run("gfx942", body, MIXED)[0], NUMBER + 4 * MIXED)


@pytest.mark.parametrize("product", [PRODUCT, RAW], ids=["gemm", "raw"])
def test_a_block_is_whole_waves(product: str) -> None:
    names = kernel_of(HEAD + product, block=96)
    with pytest.raises(TraceError, match="is done by 64 threads, and the block has 96"):
        flyc.compile(names["launch"], np.zeros(64, np.float32))


@pytest.mark.parametrize("product", [PRODUCT, RAW], ids=["gemm", "raw"])
def test_a_block_that_is_known_at_launch_is_whole_waves(product: str) -> None:
    names = kernel_of(HEAD + f"for i in range(n):\n    {product}\nR[t] = c[2]\n", "R: fx.Tensor, n: fx.Int32", "64 * n")
    result = np.zeros(THREADS, np.float32)
    names["launch"](result, 2)
    assert np.array_equal(result[:128], NUMBER[:128] + 8) and not result[128:].any()
    names = kernel_of(HEAD + product, "R: fx.Tensor, n: fx.Int32", "50 * n")
    with pytest.raises(CheckFailed, match="is done by 64 threads, and the block of this launch is no whole number of"):
        names["launch"](result, 2)
