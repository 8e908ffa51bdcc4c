"""The tiled copy and the transpose through LDS, on both chips, against torch: bit for bit, as they compute nothing."""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.copy import transpose_swizzled
from flylab.kernels.copy.tiled_copy import tiled_copy
from flylab.kernels.copy.transpose_swizzled import tile_side, transpose

import flylab
import flylab.compiler as flyc
from flylab.errors import ArgumentError

torch = pytest.importorskip("torch")

TYPES = {8: torch.uint8, 16: torch.float16, 32: torch.float32}


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


def matrix(rows, columns, dtype, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, 200, (rows, columns))).to(dtype)


@pytest.mark.parametrize("shape", [(16, 128), (64, 256), (1, 128), (37, 384)])
def test_tiled_copy(shape):
    a, out = matrix(*shape, torch.float32), torch.full((shape[0] + 3, shape[1]), -1.0)
    b = out[: shape[0]]  # rows of `out` past those of B must stay
    tiled_copy(a, b, *shape)
    assert torch.equal(b, a)
    assert bool((out[shape[0] :] == -1).all())


@pytest.mark.parametrize("dtype, vec", [(torch.float16, 8), (torch.float16, 4), (torch.float32, 1), (torch.uint8, 16),
                                        (torch.bfloat16, 2)])
def test_tiled_copy_of_other_widths(dtype, vec):
    a = matrix(21, 64 * vec, dtype)
    b = torch.zeros_like(a)
    tiled_copy(a, b, *a.shape, VEC=vec)
    assert torch.equal(b, a)


@pytest.mark.parametrize("bits", [32, 16, 8])
@pytest.mark.parametrize("tiles", [(1, 1), (2, 1), (1, 3)])
def test_transpose(bits, tiles):
    side = tile_side(bits)
    a = matrix(tiles[0] * side, tiles[1] * side, TYPES[bits])
    b = torch.zeros(a.shape[1], a.shape[0], dtype=a.dtype)
    transpose(a, b, *a.shape)
    assert torch.equal(b, a.T)


def conflicts(layout, lanes, bits):
    """How many of these coordinates, which lanes access together, share a bank with another dword of LDS."""
    dwords = {layout(*place) * bits // 32 for place in lanes}
    return len(dwords) - len({dword % 32 for dword in dwords})


@pytest.mark.parametrize("bits", [32, 16, 8])
def test_columns_are_read_without_bank_conflicts(bits):
    """32 lanes of a wave read together; LDS has 32 banks of 4 bytes. Source: the CDNA3 ISA, chapter on LDS."""
    vec, side = 128 // bits, tile_side(bits)
    layout = transpose_swizzled.swizzled(bits, (1, side))
    plain = transpose_swizzled.fx.composed_get_inner(layout)
    for first in range(0, 256, 32):
        for value in range(vec):
            lanes = [(t // 8, t % 8 * vec + value) for t in range(first, first + 32)]
            assert conflicts(layout, lanes, bits) == 0
            assert conflicts(plain, lanes, bits) > 0  # what the swizzle is for


def test_a_swizzle_dropped_on_the_reading_side_breaks_the_numbers(monkeypatch):
    """Rows are written swizzled, and columns read as if they were not."""
    real = transpose_swizzled.swizzled

    def written_only(width, stride):
        layout = real(width, stride)
        return layout if stride[1] == 1 else transpose_swizzled.fx.composed_get_inner(layout)

    a = matrix(64, 64, torch.float16)
    b = torch.zeros_like(a)
    monkeypatch.setattr(transpose_swizzled, "swizzled", written_only)
    transpose(a, b, 64, 64)
    assert not torch.equal(b, a.T)


@pytest.mark.parametrize("launcher, arguments", [
    (tiled_copy, (matrix(64, 256, torch.float32), torch.zeros(64, 256), 64, 256)),
    (transpose, (matrix(64, 64, torch.float32), torch.zeros(64, 64), 64, 64)),
    (transpose, (matrix(64, 64, torch.float16), torch.zeros(64, 64, dtype=torch.float16), 64, 64)),
])
def test_nothing_is_spilled(launcher, arguments):
    (kernel,) = flyc.compile(launcher, *arguments).isa.kernels.values()
    assert (kernel.spills, kernel.scratch_bytes) == (0, 0)


def test_parts_of_tiles_are_refused():
    with pytest.raises(ArgumentError, match="a row of A' has 100 elements, no whole number of tiles of 128"):
        tiled_copy(torch.zeros(8, 100), torch.zeros(8, 100), 8, 100)
    with pytest.raises(ArgumentError, match="a column of A"):
        transpose(torch.zeros(20, 64), torch.zeros(64, 20), 20, 64)
