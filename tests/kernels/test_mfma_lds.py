"""The GEMM with both operands through LDS on both chips, against products in Float64.

Elements are small integers, whose products and sums are all exact in Float32, so every result is too.
"""

from __future__ import annotations

import pytest
from flylab.kernels.gemm import mfma_lds as file
from flylab.kernels.gemm.mfma_lds import VARIANTS, How, mfma_lds

import flylab
import flylab.compiler as flyc
from flylab.errors import ArgumentError, FlylabError
from tests.kernels.test_gemm import PHASES

torch = pytest.importorskip("torch")
KINDS = {"f16": torch.float16, "bf16": torch.bfloat16, "gfx942": torch.float8_e4m3fnuz, "gfx950": torch.float8_e4m3fn}


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


def operand(rows, columns, dtype, seed):
    return torch.randint(-4, 5, (rows, columns), generator=torch.Generator().manual_seed(seed)).to(dtype)


def product(m, n, k, dtype, *how, out=torch.float32, **tile):
    a, b = operand(m, k, dtype, 0), operand(n, k, dtype, 1)
    c = torch.full((m + 5, n), 9.5, dtype=out)
    mfma_lds(a, b, c[:m], *how, **tile)
    assert torch.equal(c[:m].double(), (a.double() @ b.double().T).to(out).double())
    assert bool((c[m:] == 9.5).all())


@pytest.mark.parametrize("variant", ["narrow", "wide", "direct", "double"])
@pytest.mark.parametrize("kind", ["f16", "fp8"])
def test_variants(chip, variant, kind):
    dtype = KINDS["f16" if kind == "f16" else chip]
    step = 128 // dtype.itemsize
    product(128, 256, 3 * step, dtype, variant)
    product(150, 128, 2 * step, dtype, variant)


def test_large(chip):
    if chip == "gfx942":
        a, c = torch.zeros(256, 256, dtype=torch.float16), torch.zeros(256, 256)
        with pytest.raises(FlylabError, match="65536"):  # bytes of LDS that the chip has
            mfma_lds(a, a, c, "large")
        return
    product(256, 256, 3 * 64, torch.float16, "large")
    product(300, 512, 4 * 128, torch.float8_e4m3fn, "large", out=torch.bfloat16)


@pytest.mark.parametrize("m, n", [(64, 64), (64, 256), (256, 64), (128, 64)])
def test_other_tiles_and_formats(m, n):
    product(m, 2 * n, 192, torch.bfloat16, "wide", out=torch.bfloat16, TILE_M=m, TILE_N=n)


def test_waves_share_the_tile_in_parts_as_square_as_can_be():
    found = {(m, n): How(tile_m=m, tile_n=n).waves for m in (64, 128, 256) for n in (64, 128, 256)}
    assert found[64, 256] == (1, 4) and found[256, 64] == (4, 1) and found[128, 128] == (2, 2)
    assert found[256, 256] in ((2, 4), (4, 2))


def listing(variant, size=2048):
    a, c = torch.empty(size, size, dtype=torch.float16), torch.empty(size, size, dtype=torch.float16)
    (kernel,) = flyc.compile(mfma_lds, a, a, c, variant).isa.kernels.values()
    return kernel


@pytest.mark.parametrize("variant", ["narrow", "wide", "direct", "double"])
def test_what_a_variant_is_made_of(chip, variant):
    kernel, how = listing(variant), VARIANTS[variant]
    assert (kernel.spills, kernel.scratch_bytes) == (0, 0)
    assert kernel.lds_bytes == 2 * 128 * 128 * how.buffers
    loads = [i for i in kernel.instructions if i.mnemonic.startswith("buffer_load")]
    assert all(("lds" in i.modifiers) == how.direct for i in loads)
    width = {"narrow": "ushort", "direct": "dword" if chip == "gfx942" else "dwordx4"}
    width["double"] = width["direct"]
    assert {i.mnemonic for i in loads} <= {"buffer_load_" + width.get(variant, "dwordx4"), "buffer_load_short_d16",
                                           "buffer_load_short_d16_hi"}
    assert any(i.mnemonic.startswith("ds_write") for i in kernel.instructions) != how.direct
    assert sum(i.mnemonic.startswith("buffer_store_dwordx2") for i in kernel.instructions) == 16


@pytest.mark.parametrize("bits", [16, 8])
def test_lds_is_read_without_bank_conflicts(chip, bits):
    """A lane reads 16 bytes of row lane % 16, piece lane // 16 of each half: all that read together, other banks."""
    piece = 128 // bits
    swizzled = file.fx.make_composed_layout(file.fx.static(file.fx.SwizzleType.get(3, piece.bit_length() - 1, 3)),
                                            file.fx.make_layout((16, 8 * piece), (8 * piece, 1)))
    banks, phases = PHASES[chip]
    for lanes in phases:
        for step in range(2):
            starts = [swizzled(lane % 16, (4 * step + lane // 16) * piece) * bits // 32 for lane in lanes]
            found = [(start + word) % banks for start in starts for word in range(4)]
            assert sorted(found) == list(range(banks))


def test_what_does_not_fit_is_refused():
    a = torch.zeros(128, 96, dtype=torch.float16)
    with pytest.raises(ArgumentError, match="a row of A' has 96 elements, no whole number of tiles of 64"):
        mfma_lds(a, a, torch.zeros(128, 128))
    with pytest.raises(ArgumentError, match="a row of C' has 100 elements, no whole number of tiles of 128"):
        mfma_lds(a[:, :64].contiguous(), torch.zeros(100, 64, dtype=torch.float16), torch.zeros(128, 100))
    with pytest.raises(ArgumentError, match=r"A \(128, 96\) times B \(128, 96\) into C \(96, 96\)"):
        mfma_lds(a, a, torch.zeros(96, 96))
