"""The reference's kernels on both chips against torch: bit-equal where no sum is reordered (NaNs alike)."""

from __future__ import annotations

import pytest

import flylab
from tests.kernels import reference_kernels as kernels

torch = pytest.importorskip("torch")

CHIPS = ("gfx942", "gfx950")
SIZES = (1024, 4096, 65536)
SPECIAL = [0.0, -0.0, float("inf"), -float("inf"), float("nan"), 1e-45, -1e-45, 3.4e38, -3.4e38, 1.17549435e-38]


@pytest.fixture(params=CHIPS, autouse=True)
def chip(request):
    with flylab.use(request.param):
        yield request.param


def numbers(size: int, seed: int):
    """Random floats over many magnitudes, with the special values among them."""
    torch.manual_seed(seed)
    values = torch.randn(size) * torch.exp2(torch.randint(-20, 20, (size,)).float())
    values[seed : seed + len(SPECIAL)] = torch.tensor(SPECIAL)
    return values


def same(ours, expected) -> bool:
    """Equal bit for bit, but that any NaN is as good as another."""
    nan = torch.isnan(expected)
    bits = ours.view(torch.int32) == expected.view(torch.int32)
    return bool((torch.isnan(ours) == nan).all() and (bits | nan).all())


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ["launch", "layout_copy", "wide_copy"])
def test_copies_are_exact(name, size):
    a, b = numbers(size, 1), torch.zeros(size)
    getattr(kernels, name)(a, b, size)
    assert same(b, a)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_the_template_squares(size, width):
    a, b = numbers(size, 2), torch.zeros(size)
    kernels.square(a, b, size, VEC=width)
    assert same(b, a * a)


RECIPES = {
    "scale": lambda a, b, c: a * 2.0,
    "add": lambda a, b, c: a + b,
    "multiply": lambda a, b, c: a * b,
    "fma": lambda a, b, c: a * b + c,
    "relu": lambda a, b, c: torch.relu(a),
    "absolute": lambda a, b, c: torch.abs(a),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", RECIPES)
def test_the_cookbook(name, size):
    a, b, c = (numbers(size, seed) for seed in (3, 5, 40))
    out = torch.zeros(size)
    kernels.cookbook(a, b, c, out, getattr(kernels, name))
    expected = RECIPES[name](a, b, c)
    if name == "relu":  # torch gives +0 for -0; the reference's max(-0, 0) is +0 too
        expected = expected + 0.0
    assert same(out, expected)


# N divides by the tile, as the kernel needs; M is guarded by the buffer descriptor and need not.
@pytest.mark.parametrize("m, n, k", [(16, 16, 16), (64, 48, 32), (40, 32, 24), (1, 16, 1), (33, 64, 7)])
def test_naive_gemm(m, n, k):
    a, b, c = torch.randn(m, k), torch.randn(k, n), torch.full((m, n), float("nan"))
    kernels.gemm(a, b, c, m, n, k)
    # Products and sums rounded one by one, in order: what the kernel does, computed in float64 and rounded each time.
    expected = torch.zeros(m, n)
    for i in range(k):
        expected = expected + a[:, i : i + 1] * b[i : i + 1, :]
    assert same(c, expected)
    # Against torch's own order of summation: k roundings of products and sums bounded by |a||b|.
    bound = 2 * k * 2.0**-24 * (a.abs() @ b.abs()) + 1e-30
    assert bool(((c - a @ b).abs() <= bound).all())
