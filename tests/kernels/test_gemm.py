"""The tiled MMA and the preshuffle GEMM on both chips, against products in Float64.

The tolerance comes from the formats. Operands are taken as they are rounded, so that only sums are rounded: each of K
additions in Float32 to half a unit in the last place of a sum of at most S = sum |a||b|, hence K * 2**-24 * S; and the
result once to its own format, with `eps / 2` of itself. Sums of Int8 are exact.
"""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.gemm import preshuffle
from flylab.kernels.gemm.preshuffle import preshuffle_gemm, preshuffle_gemm_scaled, shuffle_b
from flylab.kernels.gemm.tiled_mma import tiled_mma

import flylab
import flylab.compiler as flyc
from flylab.errors import ArgumentError

torch = pytest.importorskip("torch")

F8 = {"gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


def operand(rows, columns, dtype, seed):
    values = np.random.default_rng(seed).uniform(-1, 1, (rows, columns)) * (100 if dtype == torch.int8 else 1)
    return torch.from_numpy(values).to(dtype)


def check(c, a, b, scale_a=None, scale_b=None):
    """C against A @ B.T, times the scales, within the tolerance of the module's text."""
    a, b, k = a.double(), b.double(), a.shape[1]
    factor = 1.0 if scale_a is None else scale_a.double()[:, None] * scale_b.double()
    wanted = a @ b.T * factor
    if not c.dtype.is_floating_point:
        assert torch.equal(c.double(), wanted)
        return
    sums = (k + 3) * 2.0**-24 * (a.abs() @ b.abs().T) * factor  # and two products with scales, and Int32 to Float32
    allowed = sums + torch.finfo(c.dtype).eps / 2 * (wanted.abs() + sums)
    assert bool(((c.double() - wanted).abs() <= allowed).all()), (c.double() - wanted).abs().max()
    assert float(wanted.abs().max()) > 1  # there was something to get wrong


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("shape", [(64, 64, 32), (37, 128, 96), (130, 64, 224)])
def test_tiled_mma(dtype, shape):
    m, n, k = shape
    a, b = operand(m, k, dtype, 0), operand(n, k, dtype, 1)
    c = torch.zeros(m, n)
    tiled_mma(a, b, c, m, n, k)
    check(c, a, b)


def product(dtype, out, m, n, k, **tile):
    a, b, c = operand(m, k, dtype, 0), operand(n, k, dtype, 1), torch.zeros(m, n, dtype=out)
    preshuffle_gemm(a, shuffle_b(b), c, m, n, k, **tile)
    check(c, a, b)


SMALL = {"TILE_M": 32, "TILE_N": 64}


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("m, n, k, tile", [(128, 128, 64, {}), (50, 128, 320, SMALL), (33, 192, 192, SMALL),
                                           (100, 128, 256, {"TILE_M": 64})])
def test_preshuffle_of_16_bits(dtype, m, n, k, tile):
    product(dtype, dtype, m, n, k, **tile)


@pytest.mark.parametrize("m, n, k", [(32, 64, 128), (50, 128, 640), (33, 192, 384)])
def test_preshuffle_of_8_bits(chip, m, n, k):
    product(F8[chip], torch.float32, m, n, k, **SMALL)
    product(torch.int8, torch.int32, m, n, k, **SMALL)


@pytest.mark.parametrize("kind, out", [("fp8", torch.bfloat16), ("fp8", torch.float16), ("int8", torch.bfloat16)])
def test_scales_of_rows_and_columns(chip, kind, out):
    dtype = F8[chip] if kind == "fp8" else torch.int8
    m, n, k = 50, 128, 256
    a, b, c = operand(m, k, dtype, 0), operand(n, k, dtype, 1), torch.zeros(m, n, dtype=out)
    scale_a, scale_b = (torch.rand(size, generator=torch.Generator().manual_seed(7)) + 0.5 for size in (m, n))
    preshuffle_gemm_scaled(a, shuffle_b(b), c, scale_a, scale_b, m, n, k, **SMALL)
    check(c, a, b, scale_a, scale_b)


def test_rows_past_the_last_stay():
    a, b = operand(33, 64, torch.float16, 0), operand(64, 64, torch.float16, 1)
    out = torch.full((64, 64), 5.0, dtype=torch.float16)
    preshuffle_gemm(a, shuffle_b(b), out[:33], 33, 64, 64, **SMALL)
    check(out[:33], a, b)
    assert bool((out[33:] == 5).all())


def test_shuffle_is_a_permutation_of_pieces():
    b = np.arange(32 * 256, dtype=np.int16).reshape(32, 256)
    shuffled = shuffle_b(b).reshape(2, 8, 4, 16, 8)  # N/16, K/64 bytes, 4, 16, 16 bytes
    for n in (0, 5, 17, 31):
        for k in (0, 8, 100, 255):
            assert shuffled[n // 16, k // 32, k // 8 % 4, n % 16, k % 8] == b[n, k]
    assert torch.equal(shuffle_b(torch.from_numpy(b)), torch.from_numpy(shuffle_b(b)))


PHASES = {"gfx942": (32, [{*range(4), *range(20, 24)}, {*range(4, 8), *range(16, 20)}]),
          "gfx950": (64, [{*range(4), *range(12, 16), *range(20, 28)},
                          {*range(4, 12), *range(16, 20), *range(28, 32)}])}
"""Banks of 4 bytes, and lanes that a 16-byte read of LDS serves together; the others are these plus 8 and 32."""


@pytest.mark.parametrize("bits", [16, 8])
def test_a_is_read_from_lds_without_bank_conflicts(chip, bits):
    """A lane reads 16 bytes of row lane % 16, piece lane // 16 of a micro-step: all that read together, other banks."""
    piece = 128 // bits
    tile = preshuffle.lds_layout(32, piece)
    banks, phases = PHASES[chip]
    for lanes in phases:
        for step in range(2):
            starts = [tile(lane % 16, (4 * step + lane // 16) * piece, 0) * bits // 32 for lane in lanes]
            found = [(start + word) % banks for start in starts for word in range(4)]
            assert sorted(found) == list(range(banks))


def test_a_swizzle_dropped_on_the_reading_side_breaks_the_numbers(monkeypatch):
    real = preshuffle.fx.make_tiled_copy_A

    class Unswizzled:
        """A tiled copy whose source is taken for a tile without a swizzle."""

        def __init__(self, copy):
            self.copy = copy

        def get_slice(self, thread):
            return Unswizzled(self.copy.get_slice(thread))

        def partition_S(self, tile):
            plain = preshuffle.fx.composed_get_inner(preshuffle.fx.get_layout(tile))
            return self.copy.partition_S(preshuffle.fx.make_view(preshuffle.fx.get_iter(tile), plain))

        def retile(self, fragment):
            return self.copy.retile(fragment)

    monkeypatch.setattr(preshuffle.fx, "make_tiled_copy_A", lambda atom, mma: Unswizzled(real(atom, mma)))
    with pytest.raises(AssertionError):
        product(torch.float16, torch.float16, 32, 64, 128, **SMALL)


@pytest.mark.parametrize("dtype, out", [(torch.float16, torch.float16), (torch.int8, torch.int32)])
def test_the_whole_tile_is_kept_in_registers(dtype, out):
    k = 1024 // dtype.itemsize
    a, b, c = operand(128, k, dtype, 0), operand(128, k, dtype, 1), torch.zeros(128, 128, dtype=out)
    (kernel,) = flyc.compile(preshuffle_gemm, a, b, c, 128, 128, k).isa.kernels.values()
    assert (kernel.spills, kernel.scratch_bytes, kernel.lds_bytes) == (0, 0, 32768)
    assert sum(i.mnemonic.startswith("v_mfma") for i in kernel.instructions) == 256
    assert kernel.occupancy.limits["vector registers"] >= 2


def test_parts_of_tiles_are_refused():
    half = torch.zeros(64, 100, dtype=torch.float16)
    with pytest.raises(ArgumentError, match="a row of A' has 100 elements, no whole number of tiles of 64"):
        preshuffle_gemm(half, half, half, 64, 128, 100)
    with pytest.raises(ArgumentError, match="a column of a tile of A' has 48 elements, no whole number of tiles of 32"):
        preshuffle_gemm(half[:, :64], half, half, 64, 128, 64, TILE_M=48)
    with pytest.raises(ArgumentError, match="a row of C"):
        tiled_mma(half, half, torch.zeros(64, 20), 64, 20, 96)
    with pytest.raises(ArgumentError, match="a column of B"):
        shuffle_b(np.zeros((20, 64), np.int8))
