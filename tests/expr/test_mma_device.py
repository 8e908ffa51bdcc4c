"""Every MMA atom on its chips, on the software device: products of whole numbers against numpy, and one-hot probes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.atoms import MFMA, SCALED, SPARSE, MmaAtom, MmaOp, mma_op
from flylab.atoms.mma_intrinsics import intrinsic
from flylab.atoms.mma_table import table
from flylab.expr.numeric import CLASSES
from flylab.layout import Layout, size
from flylab.mfma import FORMATS, SCALE_BLOCK
from tests.emulator.matrices import put_bits

PROBES = 4
CASES = [(chip, op) for family in (MFMA, SCALED, SPARSE) for key in table(family)
         for op in [mma_op(family, *key)] for chip in op.chips]


@flyc.kernel
def product_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, R: fx.Tensor, S: fx.Tensor,
                   op: fx.Constexpr):
    """A product a block, as D by its atom and as R by its call. All are (probe, thread, word) of what a thread holds,
    S of its state."""
    probe, thread = fx.block_idx.x, fx.thread_idx.x
    atom = fx.make_mma_atom(op)
    for i, field in enumerate(flylab.atoms.STATE[op.family]):
        atom = fx.atom_set_value(atom, field, S[probe, thread, i])

    def fragment(words, dtype, count):
        made = fx.make_rmem_tensor(count, CLASSES[dtype.name])
        made.store(fx.slice(words, (probe, thread, None)).load().bitcast(CLASSES[dtype.name]))
        return made

    a = fragment(A, atom.dtype_a, atom.num_values("A"))
    b = fragment(B, atom.dtype_b, atom.num_values("B"))
    c = fragment(C, atom.dtype_acc, atom.num_values("C"))
    d = fx.make_rmem_tensor(atom.num_values("C"), CLASSES[atom.dtype_acc.name])
    fx.gemm(atom, d, a, b, c)
    fx.slice(D, (probe, thread, None)).store(d.load().bitcast(fx.Uint32))
    kinds = intrinsic(op.row)
    sources = [in_type(v.load(), kind) for v, kind in ((a, kinds.a), (b, kinds.b), (c, kinds.c))]
    words = [S[probe, thread, i] for i in range(2)]
    if op.row.mixed:
        one, two = op.options or (0, 0)
        words = words if op.family == SCALED else [0, 0]
        rest = [FORMATS.index(op.row.a_type), FORMATS.index(op.row.b_type), one, words[0], two, words[1]]
    else:
        rest = [words[0], 0, *op.options] if op.sparse else [0, 0, 0]
    called = getattr(fx.rocdl, kinds.python_name)(None, [*sources, *rest])
    called = called if isinstance(called, fx.Vector) else fx.Vector.filled(1, called, fx.Float64)
    fx.slice(R, (probe, thread, None)).store(called.bitcast(fx.Uint32))


def in_type(vector, kind):
    """A vector's bits as MLIR's type `kind`."""
    count, _, element = kind.removeprefix("vector<").removesuffix(">").rpartition("x")
    found = vector.bitcast(next(c for c in CLASSES.values() if c.dtype.mlir == element))
    assert found.numel == int(count or 1)
    return found if count else found[0]


@flyc.jit
def product(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor, R: fx.Tensor, S: fx.Tensor,
            op: fx.Constexpr):
    product_kernel(A, B, C, D, R, S, op).launch(grid=PROBES, block=64)


def held(tile: np.ndarray, tv: Layout, bits: int) -> np.ndarray:
    """What each thread holds (probe, thread, word) of tiles (probe, column-major elements) of codes."""
    count = size(tv[1])
    found = np.zeros((len(tile), -(-count * bits // 32), 64), np.uint64)
    for value in range(count):
        put_bits(found, value * bits, tile[:, [tv(thread, value) for thread in range(64)]], bits)
    return np.ascontiguousarray(found.astype(np.uint32).transpose(0, 2, 1))


def unheld(words: np.ndarray, tv: Layout, dtype: Any) -> np.ndarray:
    """The tiles (probe, column-major elements) of what each thread holds."""
    values = words.reshape(len(words), 64, -1).view(dtype.to_numpy())
    found = np.zeros((len(words), size(tv)), values.dtype)
    for value in range(size(tv[1])):
        found[:, [tv(thread, value) for thread in range(64)]] = values[:, :, value]
    return found


def codes(numbers: np.ndarray, dtype: Any) -> np.ndarray:
    array = numbers.astype(dtype.to_numpy())
    assert np.array_equal(array.astype(float), numbers)
    return array.view(f"u{array.dtype.itemsize}").astype(np.uint64)


def flat(numbers: np.ndarray) -> np.ndarray:
    """(probe, blocks, rows, columns) as (probe, elements): rows fastest, blocks last."""
    return numbers.transpose(0, 1, 3, 2).reshape(len(numbers), -1)


def whole_numbers(op: MmaOp, random: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and C: the first probe random, the others with one element in each of A and B, at a K that meets."""
    m, n, _ = op.shape_mnk
    stored, k = op.tile("A")[1], op.tile("B")[1]
    a, b = (random.integers(-3, 4, (PROBES, op.blocks, *s)).astype(float) for s in ((m, stored), (n, k)))
    c = random.integers(-9, 10, (PROBES, op.blocks, m, n)).astype(float)
    for probe in range(1, PROBES):
        a[probe], c[probe] = 0, 0
        a[probe, random.integers(op.blocks), random.integers(m), random.integers(stored)] = probe
    return a, b, c


def indices(op: MmaOp, random: Any) -> tuple[np.ndarray, np.ndarray]:
    """Of a sparse A (PROBES, 64) words, and for each stored element (m, stored) its place along K."""
    m, stored = op.tile("A")[:2]
    first = random.integers(0, 3, (m, stored // 2))
    second = first + 1 + random.integers(0, 3, first.shape) % (3 - first)
    picks = np.stack([first, second], 2).reshape(m, stored)
    words = random.integers(0, 1 << 32, 64, dtype=np.uint64)
    tv = op.layout_A_tv
    count = size(tv[1])
    for thread in range(64):
        for value in range(count):
            column, row = divmod(tv(thread, value), m)
            at = 2 * (value + op.options[0] * count)
            words[thread] = int(words[thread]) & ~(3 << at) | int(picks[row, column]) << at
    return words.astype(np.uint32), picks + np.arange(stored) // 2 * 4


def scales(op: MmaOp, random: Any, part: int) -> tuple[np.ndarray, np.ndarray]:
    """(64) words of scales of which one part counts, and the factor of each element (m, k)."""
    m, _, k = op.shape_mnk
    powers = random.integers(-2, 3, (m, k // SCALE_BLOCK))
    words = random.integers(0, 1 << 32, 64, dtype=np.uint64)
    for thread in range(64):
        power = 127 + int(powers[thread % m, thread // m])
        words[thread] = int(words[thread]) & ~(255 << 8 * part) | power << 8 * part
    return words.astype(np.uint32), 2.0 ** np.repeat(powers, SCALE_BLOCK, 1)


def run(chip: str, op: MmaOp, seed: int) -> None:
    random = np.random.default_rng(seed)
    a, b, c = whole_numbers(op, random)
    state, full, other = np.zeros((64, 2), np.uint32), a, b
    if op.family == SPARSE:
        state[:, 0], places = indices(op, random)
        full = np.zeros((*a.shape[:3], op.shape_mnk[2]))
        np.put_along_axis(full, np.broadcast_to(places, a.shape), a, 3)
    elif op.family == SCALED:
        (state[:, 0], for_a), (state[:, 1], for_b) = (scales(op, random, part) for part in op.options)
        full, other = a * for_a, b * for_b
    wanted = c + full @ other.transpose(0, 1, 3, 2)
    atom = MmaAtom(op)
    given = [held(codes(flat(x), dtype), tv, dtype.bits) for x, dtype, tv in (
        (a, op.dtype_a, op.layout_A_tv), (b, op.dtype_b, op.layout_B_tv), (c, op.dtype_acc, op.layout_C_tv))]
    found, called = np.zeros_like(given[2]), np.zeros_like(given[2])
    arguments = (*given, found, called, np.broadcast_to(state, (PROBES, 64, 2)).copy(), op)
    with flylab.use(chip):
        compiled = flyc.compile(product, *arguments)
        compiled(*arguments)
    text = str(compiled.show("isa"))
    assert op.row is not None and f"{op.row.name} " in text and "scratch_" not in text
    assert np.array_equal(called, found)
    assert np.array_equal(unheld(found, atom.layout_C_tv, op.dtype_acc).astype(float), flat(wanted))
    assert np.count_nonzero(wanted[0]) > wanted[0].size // 2 and np.count_nonzero(wanted[1:])


@pytest.mark.parametrize("chip, op", CASES, ids=[f"{chip}-{op}" for chip, op in CASES])
def test_every_atom(chip: str, op: MmaOp) -> None:
    run(chip, op, 1)


def parts() -> list[tuple[str, MmaOp]]:
    """Operations that take other parts of their state than the first."""
    f16, i8, fp8, fp4 = (CLASSES[n].dtype for n in ("Float16", "Int8", "Float8E4M3FN", "Float4E2M1FN"))
    sparse = [mma_op(SPARSE, (16, 16, 32), f16, options=(i,)) for i in (1, 2, 3)]
    sparse += [mma_op(SPARSE, (32, 32, 32), i8, options=(1,)), mma_op(SPARSE, (16, 16, 64), f16, options=(1,))]
    scaled = [mma_op(SCALED, (16, 16, 128), fp8, fp4, options=(a, 3 - a)) for a in range(4)]
    return [(op.chips[-1], op) for op in (*sparse, *scaled, mma_op(SCALED, (32, 32, 64), fp4, options=(2, 1)))]


@pytest.mark.parametrize("chip, op", parts(), ids=lambda x: str(x))
def test_parts_of_the_state(chip: str, op: MmaOp) -> None:
    run(chip, op, 2)
