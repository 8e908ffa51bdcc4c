"""AMD's matrix products as operations: `MFMA`, `SMFMAC`, and of gfx950 `MFMA_Scale`."""

from __future__ import annotations

from typing import Any

from flylab.atoms import MFMA as DENSE
from flylab.atoms import SCALED, SPARSE, MmaOp, mma_op
from flylab.errors import NotSupportedError
from flylab.expr.numeric import numeric_class
from flylab.expr.rocdl.immediates import immediate


def MFMA(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, *, elem_ty_b: Any = None) -> MmaOp:
    """The matrix product of a wave: A (m, k) of `elem_ty_ab`, B (n, k) of the same or of `elem_ty_b`.

    Both chips have 16x16x16 and 32x32x8 of Float16 and BFloat16, 16x16x4 and 32x32x2 of Float32, 16x16x4 of Float64,
    16x16x32 and 32x32x16 of Int8 and of their own 8-bit floats (FNUZ on gfx942, OCP on gfx950). gfx950 alone has
    16x16x32 and 32x32x16 of Float16 and BFloat16, 16x16x64 and 32x32x32 of Int8, 16x16x128 and 32x32x64 of 8, 6 and 4
    bits; gfx942 alone 16x16x8 and 32x32x4 of Float32, the xf32 instructions, which take 19 bits of each number.
    Of several blocks, so many products at once, are on both 4x4x4 (16 blocks), 16x16x4 (4) and 32x32x4 (2) of Float16,
    BFloat16 and Int8, 4x4x1 (16), 16x16x1 (4) and 32x32x1 (2) of Float32, and 4x4x4 (4) of Float64.
    `flylab.atoms.mma_table.table(flylab.atoms.MFMA)` holds all.

    >>> import flylab.expr as fx
    >>> print(MFMA(16, 16, 16, fx.Float16))
    fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>

    Raises `LayoutError`, which lists what there is, where neither chip has it.
    """
    return _op(DENSE, m, n, k, elem_ty_ab, elem_ty_b, elem_ty_acc)


def SMFMAC(m: int, n: int, k: int, elem_ty_ab: Any, elem_ty_acc: Any = None, *, elem_ty_b: Any = None,
           abid: int = 0) -> MmaOp:
    """The product of a wave with a sparse A, of which each four elements along K have two stored.

    Which two, the atom's state `index` says: two bits for each stored element of a thread, of which `abid` picks the
    part (a byte of 8 bits, or a half of 16). Source: CDNA3 ISA, "Sparse Matrices".

    Both chips have 16x16x32 and 32x32x16 of Float16 and BFloat16, 16x16x64 and 32x32x32 of Int8 and of their own 8-bit
    floats; gfx950 alone 16x16x64 and 32x32x32 of Float16 and BFloat16, 16x16x128 and 32x32x64 of 8 bits.
    `flylab.atoms.mma_table.table(flylab.atoms.SPARSE)` holds all.

    Raises `LayoutError`, which lists what there is, where neither chip has it.
    """
    return _op(SPARSE, m, n, k, elem_ty_ab, elem_ty_b, elem_ty_acc, immediate("SMFMAC", "abid", abid, 0, 3))


def MFMA_Scale(m: int, n: int, k: int, elem_ty_a: Any, elem_ty_b: Any = None, elem_ty_acc: Any = None, *,
               opsel_a: int = 0, opsel_b: int = 0) -> MmaOp:
    """The product of a wave of gfx950 with a scale (a power of two, E8M0) for each 32 elements along K.

    The scales are the atom's state `scale_a` and `scale_b`: four in the 32 bits of a thread, of which `opsel_a` and
    `opsel_b` pick one. A thread's is of the row thread % m of A (of B: column) and of the K block thread // m. Without
    either scale the product has none; where one is missing it is 1. Where K lies in a thread is derived from published
    code, and was not tried on a chip. There are 16x16x128 and 32x32x64, of 8, 6 and 4 bits in any two formats:
    `flylab.atoms.mma_table.table(flylab.atoms.SCALED)` holds all.

    >>> import flylab.expr as fx
    >>> print(MFMA_Scale(16, 16, 128, fx.Float8E4M3FN, fx.Float4E2M1FN, opsel_a=1))
    fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f4E2M1FN) -> f32, opselA = 1, opselB = 0>

    Raises `LayoutError`, which lists what there is, for other shapes and formats.
    """
    parts = [immediate("MFMA_Scale", name, part, 0, 3) for name, part in (("opsel_a", opsel_a), ("opsel_b", opsel_b))]
    return _op(SCALED, m, n, k, elem_ty_a, elem_ty_b, elem_ty_acc, *parts)


def _op(family: str, m: Any, n: Any, k: Any, a: Any, b: Any, acc: Any, *options: int) -> MmaOp:
    first, second, result = (None if ty is None else numeric_class(ty).dtype for ty in (a, b, acc))
    if first is None:
        first = numeric_class(a).dtype  # which refuses it
    shape = tuple(immediate("an MMA operation", name, given, 1, 128) for name, given in (("m", m), ("n", n), ("k", k)))
    return mma_op(family, (shape[0], shape[1], shape[2]), first, second, result, options)


def WMMA(*_arguments: Any, **_options: Any) -> MmaOp:
    """Refused: the matrix instructions of RDNA and gfx1250, which neither chip has."""
    raise NotSupportedError("WMMA is of gfx11 and gfx12, and flylab compiles for gfx942 and gfx950",
                            hint="these have fx.rocdl.MFMA(16, 16, 16, format)")


def WMMAScale(*_arguments: Any, **_options: Any) -> MmaOp:
    """Refused: the scaled matrix instructions of gfx1250, which neither chip has."""
    raise NotSupportedError("WMMAScale is of gfx1250, and flylab compiles for gfx942 and gfx950",
                            hint="gfx950 has fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, format)")
