"""`fx.gemm` on fragments of several atoms: shapes, orders, layouts, states; against numpy, on both chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.atoms import GemmTraversalOrder
from flylab.layout import Layout
from tests.samples import cell, kernel_of

M, N, K = 2, 2, 3

# Fragments of (V, M, N) atoms of 16 x 16 x 16 in any layout; A, B and C are (row, K) in memory.
PRODUCT = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, how: fx.Constexpr, layouts: fx.Constexpr):
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
        row, part = fx.thread_idx.x % 16, fx.thread_idx.x // 16
        a, b = (fx.make_rmem_tensor(layout, fx.Float16) for layout in layouts[:2])
        c, d = (fx.make_rmem_tensor(layout, fx.Float32) for layout in layouts[2:])
        for k in fx.range_constexpr(3):
            for v in fx.range_constexpr(4):
                for i in fx.range_constexpr(2):
                    a[v, i, k] = A[16 * i + row, 16 * k + 4 * part + v]
                    b[v, i, k] = B[16 * i + row, 16 * k + 4 * part + v]
        for v in fx.range_constexpr(4):
            for i in fx.range_constexpr(2):
                for j in fx.range_constexpr(2):
                    c[v, i, j] = C[16 * i + 4 * part + v, 16 * j + row]
        how(atom, d, a, b, c)
        for v in fx.range_constexpr(4):
            for i in fx.range_constexpr(2):
                for j in fx.range_constexpr(2):
                    D[16 * i + 4 * part + v, 16 * j + row] = d[v, i, j]

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, how: fx.Constexpr, layouts: fx.Constexpr):
        k(A, B, C, D, how, layouts).launch(grid=1, block=64)
""")["launch"]
COMPACT = (Layout((4, 2, 3), (1, 4, 8)),) * 2 + (Layout((4, 2, 2), (1, 4, 8)),) * 2
# Values apart, in other orders, with gaps, backwards modes: what a slice of a larger fragment may be.
ODD = (Layout((4, 2, 3), (6, 3, 1)), Layout((4, 2, 3), (1, 4, 9)), Layout((4, 2, 2), (2, 1, 8)),
       Layout((4, 2, 2), (4, 1, 2)))


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Any:
    with flylab.use(request.param):
        yield request.param


def check(how: Any, layouts: Any = COMPACT, isa: str = "") -> None:
    random = np.random.default_rng(3)
    A, B = (random.integers(-4, 5, (32, 48)).astype(np.float16) for _ in range(2))
    C, D = random.integers(-9, 10, (32, 32)).astype(np.float32), np.zeros((32, 32), np.float32)
    compiled = flyc.compile(PRODUCT, A, B, C, D, how, layouts)
    compiled(A, B, C, D, how, layouts)
    assert np.array_equal(D, C + A.astype("f4") @ B.astype("f4").T)
    text = str(compiled.show("isa"))
    assert text.count("v_mfma_f32_16x16x16_f16") == M * N * K and "scratch_" not in text


def plain(atom: Any, d: Any, a: Any, b: Any, c: Any) -> None:
    fx.gemm(atom, d, a, b, c)


def test_several_atoms() -> None:
    check(plain)


def test_values_that_are_not_consecutive() -> None:
    check(plain, ODD)


@pytest.mark.parametrize("order", [GemmTraversalOrder.KMN, GemmTraversalOrder.MNK_Serpentine])
def test_orders(order: GemmTraversalOrder) -> None:
    check(lambda atom, d, a, b, c: fx.gemm(atom, d, a, b, c, traversal_order=order))


def test_a_layout_as_the_order() -> None:
    check(lambda atom, d, a, b, c: fx.gemm(atom, d, a, b, c, traversal_layout=fx.make_layout((3, 2, 2), (4, 1, 2))))


@pytest.mark.parametrize("layouts", [COMPACT, ODD], ids=["compact", "odd"])
def test_a_callback_for_each_call(layouts: Any) -> None:
    calls: list[tuple[int, ...]] = []

    def called(atom: Any, place: tuple[int, ...]) -> Any:
        calls.append(place)
        return atom

    def how(atom: Any, d: Any, a: Any, b: Any, c: Any) -> None:
        fx.gemm(atom, d, a, b, c, traversal_order=fx.GemmTraversalOrder.NMK, atom_callback=called)

    check(how, layouts)
    assert calls[:12] == [(m, n, k) for k in range(K) for m in range(M) for n in range(N)]


def by_hand(atom: Any, d: Any, a: Any, b: Any, c: Any) -> None:
    """K in steps, without a K mode."""
    for k in fx.range_constexpr(K):
        fx.gemm(atom, d, fx.slice(a, (None, None, k)), fx.slice(b, (None, None, k)), d if k else c)


def one_by_one(atom: Any, d: Any, a: Any, b: Any, c: Any) -> None:
    for k in fx.range_constexpr(K):
        for m in fx.range_constexpr(M):
            for n in fx.range_constexpr(N):
                own = fx.slice(d, (None, m, n))
                fx.mma_atom_call(atom, own, fx.slice(a, (None, m, k)), fx.slice(b, (None, n, k)),
                                 own if k else fx.slice(c, (None, m, n)))


@pytest.mark.parametrize("how", [by_hand, one_by_one])
@pytest.mark.parametrize("layouts", [COMPACT, ODD], ids=["compact", "odd"])
def test_fewer_modes(how: Any, layouts: Any) -> None:
    check(how, layouts)


def test_a_loop_over_k_on_the_device() -> None:
    """The accumulator is carried through a loop."""
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor, D: fx.Tensor, steps: fx.Int32):
            atom = fx.make_mma_atom(fx.rocdl.MFMA(32, 32, 8, fx.BFloat16))
            row, part = fx.thread_idx.x % 32, fx.thread_idx.x // 32
            a, b = (fx.make_rmem_tensor(4, fx.BFloat16) for _ in range(2))
            d = fx.make_rmem_tensor(((4, 4), 1, 1), fx.Float32)
            d.fill(0)
            for step in range(steps):
                for v in fx.range_constexpr(4):
                    a[v] = A[row, 8 * step + 4 * part + v]
                    b[v] = B[row, 8 * step + 4 * part + v]
                fx.gemm(atom, d, a, b, d)
            for i in fx.range_constexpr(4):
                for v in fx.range_constexpr(4):
                    D[8 * i + 4 * part + v, row] = d[(v, i), 0, 0]

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, D: fx.Tensor, steps: fx.Int32):
            k(A, B, D, steps).launch(grid=1, block=64)
    """)
    import ml_dtypes

    random = np.random.default_rng(5)
    A, B = (random.integers(-4, 5, (32, 40)).astype(ml_dtypes.bfloat16) for _ in range(2))
    D = np.zeros((32, 32), np.float32)
    names["launch"](A, B, D, 5)
    assert np.array_equal(D, A.astype("f4") @ B.astype("f4").T)


FMA = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, with_v: fx.Constexpr):
        atom = fx.make_mma_atom(fx.UniversalFMA(A.dtype))
        t = fx.thread_idx.x
        v = (1,) if with_v else ()
        at = (0,) if with_v else ()
        a, b = (fx.make_rmem_tensor((*v, 2, 3), A.dtype) for _ in range(2))
        c = fx.make_rmem_tensor((*v, 2, 2), A.dtype)
        for i in fx.range_constexpr(2):
            for k in fx.range_constexpr(3):
                a[(*at, i, k)] = A[t, i, k]
                b[(*at, i, k)] = B[t, i, k]
            for j in fx.range_constexpr(2):
                c[(*at, i, j)] = C[t, i, j]
        fx.gemm(atom, c, a, b, c)
        for i in fx.range_constexpr(2):
            for j in fx.range_constexpr(2):
                D[t, i, j] = c[(*at, i, j)]

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, with_v: fx.Constexpr):
        k(A, B, C, D, with_v).launch(grid=1, block=64)
""")["launch"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("with_v", [True, False])
def test_a_multiply_add_of_one_thread(dtype: Any, with_v: bool) -> None:
    """Rounded once a step: in float64 (float32 for halves) products are exact, and so here are the sums."""
    random = np.random.default_rng(7)
    A, B = (random.normal(size=(64, 2, 3)).astype(dtype) for _ in range(2))
    C, D = random.normal(size=(64, 2, 2)).astype(dtype), np.zeros((64, 2, 2), dtype)
    FMA(A, B, C, D, with_v)
    wide = np.longdouble
    wanted, unfused = C.copy(), C.copy()
    for k in range(3):
        left, right = A[:, :, None, k].astype(wide), B[:, None, :, k].astype(wide)
        wanted = (left * right + wanted.astype(wide)).astype(dtype)
        unfused = (left * right).astype(dtype) + unfused
    assert np.array_equal(D, wanted) and not np.array_equal(D, unfused)


SCALES = cell("""
    @flyc.kernel
    def k(D: fx.Tensor, how: fx.Constexpr):
        atom = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN))
        a, b = (fx.make_rmem_tensor((32, 2), fx.Float8E4M3FN) for _ in range(2))
        d = fx.make_rmem_tensor((4, 2, 2), fx.Float32)
        a.fill(1.0)
        b.fill(1.0)
        d.fill(0.0)
        how(atom, d, a, b)
        for i in fx.range_constexpr(16):
            D[fx.thread_idx.x, i] = d[i % 4, i // 4 % 2, i // 8]

    @flyc.jit
    def launch(D: fx.Tensor, how: fx.Constexpr):
        k(D, how).launch(grid=1, block=64)
""")["launch"]


def scaled(how: Any) -> list[float]:
    D = np.zeros((64, 16), np.float32)
    with flylab.use("gfx950"):
        SCALES(D, how)
    assert (D[0] == D).all()
    return [float(x) for x in D[0, ::4]]  # of (m, n) = 00 10 01 11


def test_scales() -> None:
    half, double = 0x7E7E7E7E, 0x80808080
    assert scaled(lambda atom, d, a, b: fx.gemm(atom, d, a, b, d)) == [128] * 4
    assert scaled(lambda atom, d, a, b: fx.gemm(atom, d, a, b, d, scale_a=fx.Int32(half))) == [64] * 4
    assert scaled(lambda atom, d, a, b: fx.gemm(atom, d, a, b, d, scale_a=double, scale_b=double)) == [512] * 4

    def of_place(atom: Any, place: tuple[int, int, int]) -> Any:
        m, n, _ = place
        atom = fx.atom_set_value(atom, "scale_a", (half, double)[m])
        return fx.atom_set_value(atom, "scale_b", (0x7F7F7F7F, double)[n])

    assert scaled(lambda atom, d, a, b: fx.gemm(atom, d, a, b, d, atom_callback=of_place)) == [64, 256, 128, 512]

    def of_opsel(atom: Any, place: tuple[int, int, int]) -> Any:
        m, n, _ = place
        other = fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN, opsel_a=m, opsel_b=2 * n + 1)
        found = fx.atom_set_value(fx.make_mma_atom(other), "scale_a", 0x00007E80)
        return fx.atom_set_value(found, "scale_b", 0x81007F00)

    # Bytes 0 and 1 of A's are 2 and 1/2, bytes 1 and 3 of B's are 1 and 4.
    assert scaled(lambda atom, d, a, b: fx.gemm(atom, d, a, b, d, atom_callback=of_opsel)) == [256, 64, 1024, 256]


WORDS = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, D: fx.Tensor, dtype: fx.Constexpr):
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 128, dtype))
        t = fx.thread_idx.x
        a, b = (fx.make_rmem_tensor((32, 2), dtype) for _ in range(2))
        d = fx.make_rmem_tensor((4, 2, 2), fx.Float32)
        for i in fx.range_constexpr(2):
            fx.slice(a, (None, i)).store(fx.slice(A, (t, None, i)).load().bitcast(dtype))
            fx.slice(b, (None, i)).store(fx.slice(B, (t, None, i)).load().bitcast(dtype))
        d.fill(0)
        fx.gemm(atom, d, a, b, d)
        fx.slice(D, (t, None)).store(d.load())

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, D: fx.Tensor, dtype: fx.Constexpr):
        k(A, B, D, dtype).launch(grid=1, block=64)
""")["launch"]


@pytest.mark.parametrize("dtype", [fx.Float4E2M1FN, fx.Float6E2M3FN, fx.Float6E3M2FN])
def test_elements_below_a_byte_stay_in_their_words(dtype: Any) -> None:
    """What was read as words goes into the product as these: not an instruction more than the loads and products."""
    words = np.zeros((2, dtype.dtype.bits, 64), np.uint32).transpose(2, 1, 0)
    with flylab.use("gfx950"):
        compiled = flyc.compile(WORDS, words, words, np.zeros((64, 16), np.float32), dtype)
    names = [line.split()[0] for line in str(compiled.show("isa")).splitlines() if line.startswith("\tv_")]
    assert names.count("v_mfma_f32_16x16x128_f8f6f4") == 4
    assert not {name for name in names if name.startswith(("v_bfe", "v_and", "v_or", "v_alignbit", "v_lshr"))}


# Registers r of 4 or 9 numbers, and D, A, B and C in them: (offset, layout). C apart is full of 2.
SHARED: dict[str, Any] = {
    "D over A": ((0, ((1, 2, 2), (1, 1, 2))), (0, ((1, 2, 1), (1, 1, 1))), (4, ((1, 2, 1), (1, 1, 1))), None),
    "D over B": ((2, ((1, 2, 2), (1, 1, 2))), (0, ((1, 2, 1), (1, 1, 1))), (2, ((1, 2, 1), (1, 1, 1))), None),
    "D over A along K": ((0, ((1, 2, 2), (1, 1, 2))), (0, ((1, 2, 3), (1, 3, 1))), (3, ((1, 2, 3), (1, 3, 1))), None),
    "D one after C": ((1, ((1, 2, 2), (1, 1, 2))), (5, ((1, 2, 1), (1, 1, 1))), (7, ((1, 2, 1), (1, 1, 1))),
                      (0, ((1, 2, 2), (1, 1, 2)))),
    "D is C transposed": ((0, ((1, 2, 2), (1, 1, 2))), (5, ((1, 2, 1), (1, 1, 1))), (7, ((1, 2, 1), (1, 1, 1))),
                          (0, ((1, 2, 2), (1, 2, 1)))),
}


@flyc.kernel
def shared_kernel(R: fx.Tensor, C: fx.Tensor, views: fx.Constexpr):
    t = fx.thread_idx.x
    r, c = fx.make_rmem_tensor(9, fx.Float32), fx.make_rmem_tensor((1, 2, 2), fx.Float32)
    r.store(R[t, None].load())
    c.fill(2.0)
    d, a, b, addend = (fx.make_view(fx.get_iter(r) + at[0], fx.make_layout(*at[1])) if at else c for at in views)
    fx.gemm(fx.make_mma_atom(fx.UniversalFMA(fx.Float32)), d, a, b, addend)
    R[t, None].store(r.load())


@flyc.jit
def shared(R: fx.Tensor, C: fx.Tensor, views: fx.Constexpr):
    shared_kernel(R, C, views).launch(grid=1, block=64)


@pytest.mark.parametrize("name", SHARED)
def test_d_in_registers_that_are_read(name: str) -> None:
    """D = A x B + C of what was there before."""
    before = np.random.default_rng(3).integers(-9, 10, (64, 9)).astype(np.float32)
    wanted, found = before.copy(), before.copy()

    def at(view: Any, thread: int) -> np.ndarray:
        offset, (shape, stride) = view
        return np.array([[thread * 9 + offset + i * stride[1] + j * stride[2] for j in range(shape[2])]
                         for i in range(shape[1])])

    d, a, b, c = SHARED[name]
    for thread in range(64):
        addend = before.flat[at(c, thread)] if c else 2
        wanted.flat[at(d, thread)] = before.flat[at(a, thread)] @ before.flat[at(b, thread)].T + addend
    shared(found, found, SHARED[name])
    assert np.array_equal(found, wanted)


def test_d_of_an_instruction_over_its_a() -> None:
    """All four atoms along K read A before the first sets D."""
    body = """
    t = fx.thread_idx.x
    r = fx.make_rmem_tensor(4, fx.Float32)
    c = fx.make_rmem_tensor((4, 1, 1), fx.Float32)
    for k in fx.range_constexpr(4):
        r[k] = A[t % 16, t // 16 + 4 * k]
    c.fill(0.0)
    a = fx.make_view(fx.get_iter(r), fx.make_layout((1, 1, 4), (1, 1, 1)))
    d = fx.make_view(fx.get_iter(r), fx.make_layout((4, 1, 1), (1, 1, 1)))
    fx.gemm(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), d, a, a, c)
    for i in fx.range_constexpr(4):
        A[t // 16 * 4 + i, t % 16] = r[i]
    """
    before = np.random.default_rng(4).integers(-9, 10, (16, 16)).astype(np.float32)
    found = before.copy()
    kernel_of(body)["launch"](found)
    assert np.array_equal(found, before @ before.T)
