"""Copies of parts of tiled copies and MMAs: in one order, and inside of their tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from flylab.expr.parts import Part, difference, part_of
from flylab.layout import Layout, make_identity_layout
from tests.expr.copying import FIRST_LINE, chips, run

PERMUTED = fx.make_layout((4, 2, (2, 2)), (1, 16, (4, 8)))


@flyc.kernel
def product_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, order: fx.Constexpr, bits: fx.Constexpr,
                   retiled: fx.Constexpr):
    """C = A x B^T by one wave, A by a tiled copy: retiled, or into the fragment as it is."""
    mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(32, 32, 8, fx.Float16)), fx.make_layout((1, 1, 1)),
                            (None, None, order))
    t = fx.thread_idx.x
    mine = mma.get_slice(t)
    a, b, c = mine.make_fragment_A(A), mine.make_fragment_B(B), mine.make_fragment_C(C)
    load = fx.make_tiled_copy_A(fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float16), mma)
    source = load.get_slice(t).partition_S(A)
    into = load.get_slice(t).retile(a) if fx.const_expr(retiled) else a
    if fx.const_expr(order is not None and not retiled):
        fx.copy(load, source, a)
    else:
        for k in fx.range_constexpr(2):
            fx.copy(load, fx.slice(source, (None, None, k)), fx.slice(into, (None, None, k)))
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(64), fx.Float16), mine.partition_B(B), b)
    c.fill(0)
    fx.gemm(mma, c, a, b, c)
    fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), c, mine.partition_C(C))


@flyc.jit
def product(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, order: fx.Constexpr, bits: fx.Constexpr, retiled: fx.Constexpr):
    product_kernel(A, B, C, order, bits, retiled).launch(grid=1, block=64)


def operands(k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    both = np.random.default_rng(0).integers(-4, 5, (96, k)).astype(np.float16)
    return both[:64].copy(), both[64:].copy(), np.zeros((64, 32), np.float32)


@chips
@pytest.mark.parametrize(("order", "bits", "retiled"), [(PERMUTED, 128, True), (PERMUTED, 64, True), (None, 64, True),
                                                        (None, 64, False), (None, 32, False)])
def test_a_fragment_in_the_order_of_the_copy(chip: str, order: Any, bits: int, retiled: bool) -> None:
    """Retiled, or as it is where the orders are the same."""
    a, b, c = operands(16 if order is None else 64)
    with flylab.use(chip):
        product(a, b, c, order, bits, retiled)
    assert (c == a.astype(np.float32) @ b.astype(np.float32).T).all()


@chips
@pytest.mark.parametrize(("bits", "says"), [
    (128, r"'a' .* has 4 elements in its first mode, the atom moves 8"),
    (64, r"'a' .* fragment of a tiled MMA, and 'source' .* another order: value 4 of thread 0 is element "
         r"\(32,0\) of the one and \(0,4\) of the other"),
])  # fmt: skip
def test_a_fragment_in_another_order_is_to_be_retiled(chip: str, bits: int, says: str) -> None:
    a, b, c = operands(64)
    with flylab.use(chip), pytest.raises(TraceError, match=says) as caught:
        product(a, b, c, PERMUTED, bits, False)
    assert "get_slice(thread).retile(a)" in str(caught.value.hint) and caught.value.where is not None


@pytest.mark.parametrize("operand", ["A", "B", "C"])
@pytest.mark.parametrize("order", [None, (None, None, PERMUTED), (fx.make_layout((16, 2), (2, 1)), 32, None)])
def test_the_elements_of_a_part_are_those_of_its_coordinates(operand: str, order: Any) -> None:
    """The values and threads of the note, against the partition of a coordinate tensor by each thread."""
    mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), fx.make_layout((2, 2, 1)), order)
    shape = (64, 64)
    note = part_of(mma, operand, Layout(shape))
    whole = fx.make_view((0, 0), make_identity_layout(shape))
    base = coordinates(mma, operand, whole, 0)
    values = note.values()
    assert [(values(i) % 64, values(i) // 64) for i in range(len(base))] == base
    for thread in (0, 1, 5, 16, 63, 64, 129, 255):
        first = note.first_of(thread)
        assert (first % 64, first // 64) == coordinates(mma, operand, whole, thread)[0]


def coordinates(mma: Any, operand: str, whole: Any, thread: int) -> list[Any]:
    part = getattr(mma.get_slice(thread), f"partition_{operand}")(whole)
    return [part(i) for i in range(fx.size(part))]


def test_parts_of_tensors_of_other_shapes_are_not_compared() -> None:
    copy = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), fx.make_layout((8, 8)),
                                 fx.make_layout((1, 4)))
    one, other = part_of(copy, "src", Layout((8, 64))), part_of(copy, "src", Layout((64, 32)))
    assert difference(one, other) is None and difference(one, Part(copy, "src")) is None
    assert difference(one, one) is None


TILED = """
tiled = fx.make_tiled_copy_tv(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32),
                              fx.make_layout((2, 32), (32, 1)), fx.make_layout((1, 1)))
thread, wide = tiled.get_slice(i), fx.make_view(fx.get_iter(A), fx.make_layout((4, 64), (64, 1)))
registers = fx.make_rmem_tensor(((1, 1), 1, 1), fx.Float32)
lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).ptr
mma = fx.make_tiled_mma(fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), fx.make_layout((1, 1, 1)))
atom32 = fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)
""".strip("\n")
CUT = "x = fx.slice(fx.zipped_divide(wide, (2, 16)), (None, (0, 0)))\n"
BUFFER = "x = fx.rocdl.make_buffer_tensor(fx.make_view(fx.get_iter(A), fx.make_layout({}, ({}, 1))){})\n"
STEP = "fx.copy(tiled, registers, fx.slice(thread.partition_D(x), (None, {}, None)))"
ROWS = STEP.format(0) + "\n" + STEP.format(1)
STORE = "fx.copy(tiled, registers, thread.partition_D(x))"


@chips
@pytest.mark.parametrize(("body", "shown"), [
    (CUT + STORE, "(2,32) of the tiled copy does not divide 'x' (2,16)"),
    (CUT + "fx.copy(tiled, thread.partition_S(x), registers)", "(2,32) of the tiled copy does not divide 'x' (2,16)"),
    ("x = fx.make_view(lds, fx.make_layout((2, 16), (16, 1)))\n" + STORE, "does not divide 'x' (2,16)"),
    ("x = fx.make_view(lds, fx.make_composed_layout(fx.Swizzle(1, 2, 2), fx.make_layout((2, 16), (16, 1))))\n" + STORE,
     "does not divide 'x' (2,16)"),
    ("x = fx.make_view(fx.get_iter(A), fx.make_layout((3, 32), (64, 1)))\nparts = thread.partition_D(x)\n"
     "fx.copy(tiled, registers, fx.slice(parts, (None, 0, None)))\n"
     "fx.copy(tiled, registers, fx.slice(parts, (None, 1, None)))", "does not divide 'x' (3,32)"),
    (CUT + f"for n in range(i // 64 + 1):\n    {STORE}", "does not divide 'x' (2,16)"),
    (BUFFER.format("(2, 16)", 64, "") + STORE, "does not divide 'x' (2,16)"),
    (BUFFER.format("(3, 32)", 64, ", max_size=True") + ROWS, "does not divide 'x' (3,32)"),
    (BUFFER.format("(4, 64)", 64, "") + "x = fx.slice(fx.zipped_divide(x, (3, 32)), (None, (0, 0)))\n" + ROWS,
     "does not divide 'x' (3,32)"),
    ("x = fx.make_view(fx.get_iter(A), fx.make_layout((16, 8), (16, 1)))\nc = mma.get_slice(i).make_fragment_C(x)\n"
     "c.fill(0)\nfx.copy(atom32, c, mma.get_slice(i).partition_C(x))",
     "(16,16) of the tiled MMA does not divide 'x' (16,8)"),
])  # fmt: skip
def test_a_copy_beyond_its_tensor_is_refused(chip: str, body: str, shown: str) -> None:
    A = np.zeros((4, 64), np.float32)
    with pytest.raises(TraceError) as caught:
        run(f"{TILED}\n{body}", A, chip=chip)
    error, lines = caught.value, f"{TILED}\n{body}".count("\n")
    assert shown in error.message and "the copy goes beyond it" in error.message
    assert "a predicate" in str(error.hint) or "pred=" in str(error.hint)
    assert error.where is not None and error.where.line == FIRST_LINE + lines and not A.any()


@chips
@pytest.mark.parametrize(("body", "stored"), [
    ("x = fx.slice(fx.zipped_divide(wide, (2, 32)), (None, (1, 1)))\n" + STORE, np.s_[2:, 32:]),
    ("x = wide\nparts = thread.partition_D(x)\nfx.copy(tiled, registers, parts[None, 0, None][None, 1])",
     np.s_[:2, 32:]),
    ("x = fx.make_view(fx.get_iter(A), fx.make_layout((3, 32), (64, 1)))\nparts = thread.partition_D(x)\n"
     "fx.copy(tiled, registers, fx.slice(parts, (None, 0, None)))", np.s_[:2, :32]),
    (CUT + "fx.copy(tiled, registers, thread.partition_D(x), pred=i % 32 < 16)", np.s_[:2, :16]),
    (CUT + f"if i % 32 < 16:\n    {STORE}", np.s_[:2, :16]),
    (BUFFER.format("(3, 32)", 64, "") + ROWS, np.s_[:3, :32]),
    (BUFFER.format("(3, 64)", 64, "") + "x = fx.slice(fx.zipped_divide(x, (3, 32)), (None, (0, 1)))\n" + ROWS,
     np.s_[:3, 32:]),
])  # fmt: skip
def test_a_copy_inside_of_its_tensor_or_its_buffer_is_done(chip: str, body: str, stored: Any) -> None:
    A, wanted = np.zeros((4, 64), np.float32), np.zeros((4, 64), np.float32)
    wanted[stored] = 1
    run(f"{TILED}\nregisters.fill(1)\n{body}", A, chip=chip)
    np.testing.assert_array_equal(A, wanted)
