"""MMA atoms: the matrix products that the threads of a wave do with one instruction, and which thread holds what.

An operation computes D = A x B + C, where A is M x K, B is N x K, C and D are M x N. Its thread-value layouts map
(thread, value) to an element of a tile, in column-major order: `layout_A_tv` of (M, K), `layout_B_tv` of (N, K),
`layout_C_tv` of (M, N). An instruction of several blocks multiplies as many pairs of matrices of its shape: its tiles
have the block as a third mode, (M, K, blocks) and so on. A sparse A is stored with two of each four elements along K,
and its tile is what is stored, (M, K/2).

Source: the rows of `flylab.mfma`. Where the elements of K lie for the f8f6f4 instructions is derived from published
code and was not tried on a chip: a lane holds 16 consecutive elements of fp8, then 16 more from half of K on.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from flylab.dtypes import DTYPES, DType
from flylab.errors import LayoutError
from flylab.layout import Layout, get_leaves, size
from flylab.locks import cached_property
from flylab.mfma import Mfma, Operand, dtype_name
from flylab.targets import TARGETS, WAVE_SIZE

MFMA = "fly_rocdl.cdna3.mfma"
SCALED = "fly_rocdl.cdna4.mfma_scale"
SPARSE = "fly_rocdl.cdna3.smfmac"
UNIVERSAL = "fly.universal_fma"
"""The families, as their operations print."""

STATE: dict[str, tuple[str, ...]] = {MFMA: (), SCALED: ("scale_a", "scale_b"), SPARSE: ("index",), UNIVERSAL: ()}
"""What an atom of a family takes beside its matrices: an integer of 32 bits in each thread."""

OPTIONS: dict[str, tuple[str, ...]] = {MFMA: (), SCALED: ("opselA", "opselB"), SPARSE: ("abid",), UNIVERSAL: ()}
"""The numbers in an operation that say which part of its state counts."""


def source_tv(where: Operand) -> Layout:
    """(thread, value) -> element of A (M, K, blocks) or B (N, K, blocks).

    >>> print(source_tv(Operand(size=16, blocks=1, depth=16, bits=16)))
    ((16,4),4):((1,64),16)
    """
    run, size_ = where.run, where.size
    thread = _mode((size_, 1), (where.blocks, size_ * where.depth), (where.groups, size_ * run))
    value = _mode((run, size_), (where.items // run, size_ * run * where.groups))
    return Layout((thread[0], value[0]), (thread[1], value[1]))


def result_tv(row: Mfma) -> Layout:
    """(thread, value) -> element of C and D (M, N, blocks).

    >>> from flylab.mfma import mfma
    >>> print(result_tv(mfma("v_mfma_f32_32x32x8_f16")))
    ((32,2),(4,4)):((32,4),(1,8))
    """
    height, blocks, groups = row.result_groups
    matrix, step = row.m * row.n, height * groups
    thread = _mode((row.n, row.m), (blocks, matrix), (groups, height))
    value: Any = ((height, row.m // step), (1, step))
    if row.blocks > 1:
        value = ((*value[0], row.blocks // blocks), (*value[1], matrix * blocks))
    return Layout((thread[0], value[0]), (thread[1], value[1]))


def _mode(*parts: tuple[int, int]) -> tuple[Any, Any]:
    """The shape and stride of a mode of (extent, stride) parts, of which those of extent 1 after the first go."""
    kept = [parts[0], *(part for part in parts[1:] if part[0] != 1)]
    shape, stride = zip(*kept, strict=True)
    return kept[0] if len(kept) == 1 else (shape, stride)


@dataclass(frozen=True)
class MmaOp:
    """An operation: its family, its row (None for a fused multiply-add by one thread), and its formats.

    Raises `LayoutError` where a thread-value layout does not cover its tile once.
    """

    family: str
    dtype_a: DType
    dtype_b: DType
    dtype_acc: DType
    row: Mfma | None = None
    options: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name, given in zip(OPTIONS[self.family], self.options, strict=True):
            if type(given) is not int or not 0 <= given < self.parts:
                raise LayoutError(f"{name}={given!r} of {self.family}",
                                  hint=f"give an integer from 0 to {self.parts - 1}")
        for matrix, tv in zip("ABC", (self.layout_A_tv, self.layout_B_tv, self.layout_C_tv), strict=True):
            if not covers(tv, self.elements(matrix)):
                raise LayoutError(f"{self}: {tv} does not cover the {self.elements(matrix)} elements of {matrix} "
                                  "once each", hint="a row of flylab.mfma is wrong")

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """Rows of A and C, columns of C, and the elements that each of C's is summed over."""
        return (self.row.m, self.row.n, self.row.k) if self.row else (1, 1, 1)

    @property
    def blocks(self) -> int:
        """How many pairs of matrices are multiplied."""
        return self.row.blocks if self.row else 1

    @property
    def sparse(self) -> bool:
        """True where A is stored with two of each four elements along K."""
        return self.family == SPARSE

    @property
    def parts(self) -> int:
        """The parts of the 32 bits of its state: four scales of 8 bits, or two bits for each item of a sparse A."""
        return 16 // self.row.a.items if self.row and self.sparse else 4

    def tile(self, matrix: str) -> tuple[int, ...]:
        """The extents of the tile of "A", "B", or "C" (which D shares).

        >>> from flylab.atoms import MFMA, mma_op
        >>> mma_op(MFMA, (4, 4, 4), DTYPES["Float16"]).tile("A")
        (4, 4, 16)
        """
        m, n, k = self.shape_mnk
        extents = {"A": (m, k // 2 if self.sparse else k), "B": (n, k), "C": (m, n)}[matrix]
        return extents if self.blocks == 1 else (*extents, self.blocks)

    def elements(self, matrix: str) -> int:
        """The elements of a tile."""
        return size(self.tile(matrix))

    @property
    def num_threads(self) -> int:
        """The threads that do it together."""
        return WAVE_SIZE if self.row else 1

    @property
    def thr_layout(self) -> Layout:
        """Its threads."""
        return Layout(self.num_threads, 1)

    @cached_property
    def layout_A_tv(self) -> Layout:
        """(thread, value) -> element of A, an M x K tile: m + M*k + M*K*b in block b."""
        return source_tv(self.row.a) if self.row else Layout((1, 1), (1, 1))

    @cached_property
    def layout_B_tv(self) -> Layout:
        """(thread, value) -> element of B, an N x K tile: n + N*k + N*K*b in block b."""
        return source_tv(self.row.b) if self.row else Layout((1, 1), (1, 1))

    @cached_property
    def layout_C_tv(self) -> Layout:
        """(thread, value) -> element of C and D, an M x N tile: m + M*n + M*N*b in block b."""
        return result_tv(self.row) if self.row else Layout((1, 1), (1, 1))

    @property
    def chips(self) -> tuple[str, ...]:
        """The chips that have it, with these formats: 8-bit floats differ between them."""
        if self.row is None:
            return tuple(TARGETS)
        return tuple(chip for chip in self.row.chips if formats(self.row, chip) == (self.dtype_a, self.dtype_b))

    @cached_property
    def _text(self) -> str:
        shape = "x".join(map(str, self.shape_mnk))
        formats = f"({self.dtype_a.mlir}, {self.dtype_b.mlir}) -> {self.dtype_acc.mlir}"
        options = "".join(f", {n} = {given}" for n, given in zip(OPTIONS[self.family], self.options, strict=True))
        return f"{self.family}<{shape}, {formats}{options}>"

    def __repr__(self) -> str:
        return self._text


def formats(row: Mfma, chip: str) -> tuple[DType, DType]:
    """The formats of A and B on a chip."""
    a, b = (DTYPES[dtype_name(kind, TARGETS[chip])] for kind in (row.a_type, row.b_type))
    return a, b


def covers(tv: Layout, count: int) -> bool:
    """True where a layout takes each of the `count` first integers once: each step is what the smaller ones span."""
    span = 1
    for stride, extent in sorted(zip(get_leaves(tv.stride), get_leaves(tv.shape), strict=True)):
        if extent != 1:
            if stride != span:
                return False
            span *= extent
    return span == count


@dataclass(frozen=True)
class MmaAtom:
    """An operation with its state, which a kernel sets: scales of a scaled one, the index of a sparse one.

    >>> from flylab.atoms import MFMA, mma_op
    >>> atom = MmaAtom(mma_op(MFMA, (16, 16, 16), DTYPES["Float16"]))
    >>> print(atom)
    mma_atom<fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>>
    >>> print(atom.layout_A_tv, atom.layout_C_tv)
    ((16,4),4):((1,64),16) ((16,4),(4,1)):((16,4),(1,0))
    """

    op: MmaOp
    state: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """Rows of A and C, columns of C, and the elements that each of C's is summed over."""
        return self.op.shape_mnk

    @property
    def num_threads(self) -> int:
        """The threads that do it together."""
        return self.op.num_threads

    @property
    def thr_layout(self) -> Layout:
        """Its threads."""
        return self.op.thr_layout

    @property
    def layout_A_tv(self) -> Layout:
        """(thread, value) -> element of A, an M x K tile: m + M*k + M*K*b in block b."""
        return self.op.layout_A_tv

    @property
    def layout_B_tv(self) -> Layout:
        """(thread, value) -> element of B, an N x K tile: n + N*k + N*K*b in block b."""
        return self.op.layout_B_tv

    @property
    def layout_C_tv(self) -> Layout:
        """(thread, value) -> element of C and D, an M x N tile: m + M*n + M*N*b in block b."""
        return self.op.layout_C_tv

    @property
    def dtype_a(self) -> DType:
        """The format of A."""
        return self.op.dtype_a

    @property
    def dtype_b(self) -> DType:
        """The format of B."""
        return self.op.dtype_b

    @property
    def dtype_acc(self) -> DType:
        """The format of C and D."""
        return self.op.dtype_acc

    def num_values(self, matrix: str) -> int:
        """The elements of "A", "B" or "C" that a thread holds."""
        return self.op.elements(matrix) // self.num_threads

    def __repr__(self) -> str:
        return f"mma_atom<{self.op}>"
