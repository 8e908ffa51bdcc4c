"""Which MMA operations there are: found by shape and formats, or by the text of an atom."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from flylab.atoms.mma import MFMA, OPTIONS, SCALED, SPARSE, UNIVERSAL, MmaAtom, MmaOp, formats
from flylab.dtypes import DTYPES, INT, DType
from flylab.errors import LayoutError
from flylab.mfma import FORMATS, INSTRUCTIONS, Mfma
from flylab.targets import TARGETS

Shape = tuple[int, int, int]
_OF_MLIR = {d.mlir: d for d in DTYPES.values() if d.is_float or d.kind == INT}


def _rows() -> Iterator[Mfma]:
    """The instructions, those that take several formats once for each two of them."""
    for row in INSTRUCTIONS.values():
        if row.mixed:
            yield from (row.with_formats(a, b) for a in range(len(FORMATS)) for b in range(len(FORMATS)))
        else:
            yield row


@cache
def table(family: str) -> dict[tuple[Shape, DType, DType], Mfma]:
    """The rows of a family by shape and formats, of all chips: all operations that there are.

    A row has the `chips` and the number of `blocks`.

    >>> table(MFMA)[(16, 16, 8), DTYPES["Float32"], DTYPES["Float32"]].name
    'v_mfma_f32_16x16x8_xf32'
    """
    found = {}
    for row in _rows():
        if (SPARSE if row.sparse else SCALED if row.scaled else MFMA) == family:
            for chip in row.chips:
                found[(row.m, row.n, row.k), *formats(row, chip)] = row
    return found


@cache
def mma_op(family: str, shape: Shape, a: DType, b: DType | None = None, acc: DType | None = None,
           options: tuple[int, ...] | None = None) -> MmaOp:
    """The operation of a family with a shape (M, N, K) and formats; B's is A's, and the sum's what the chip has.

    >>> print(mma_op(SCALED, (16, 16, 128), DTYPES["Float4E2M1FN"]))
    fly_rocdl.cdna4.mfma_scale<16x16x128, (f4E2M1FN, f4E2M1FN) -> f32, opselA = 0, opselB = 0>

    Raises `LayoutError`, which lists what there is, where no chip has such an instruction.
    """
    b = b or a
    options = options or (0,) * len(OPTIONS[family])
    if family == UNIVERSAL:
        if shape != (1, 1, 1) or b != a or acc not in (None, a) or not a.is_float or a.is_small_float:
            raise LayoutError(f"no multiply-add of {a} and {b} to {acc or a}",
                              hint="give fx.UniversalFMA one of Float16, BFloat16, Float32 and Float64")
        return MmaOp(family, a, b, a)
    row = table(family).get((shape, a, b))
    if row is None:
        raise _unknown(family, shape, a, b)
    result = _OF_MLIR[row.result]
    if acc not in (None, result):
        raise LayoutError(f"{called(family, shape, a, b)} sums in {result}, not in {acc}",
                          hint=f"leave the accumulator's format out, and convert the result: .to(fx.{acc})")
    return MmaOp(family, a, b, result, row, options)


NAMES = {MFMA: "MFMA", SCALED: "MFMA_Scale", SPARSE: "SMFMAC", UNIVERSAL: "UniversalFMA"}


def called(family: str, shape: Shape, a: DType, b: DType) -> str:
    """An operation as one writes it.

    >>> called(MFMA, (16, 16, 32), DTYPES["Float16"], DTYPES["Float16"])
    'MFMA(16, 16, 32, Float16)'
    """
    return f"{NAMES[family]}({', '.join(map(str, shape))}, {a if a == b else f'{a}, {b}'})"


def _unknown(family: str, shape: Shape, a: DType, b: DType) -> LayoutError:
    rows = table(family)
    shapes = [_shape_text(key, rows[key]) for key in sorted(rows, key=lambda key: key[0]) if key[1:] == (a, b)]
    other = {key[1:] for key in rows if key[0] == shape}
    if shapes:
        hint = f"of these formats there are {', '.join(shapes)}"
    elif other:
        pairs = sorted(str(x) if x == y else f"{x} x {y}" for x, y in other)
        hint = f"of this shape there are {', '.join(pairs)}"
    else:
        hint = f"there are {', '.join(sorted({'x'.join(map(str, key[0])) for key in rows}))}, by format"
    return LayoutError(f"no chip has {called(family, shape, a, b)}", hint=hint)


def _shape_text(key: tuple[Shape, DType, DType], row: Mfma) -> str:
    """A shape, with the chips where not all have it, and the blocks where there are several."""
    chips = [chip for chip in row.chips if formats(row, chip) == key[1:]]
    notes = [" and ".join(chips)] * (len(chips) < len(TARGETS)) + [f"{row.blocks} blocks"] * (row.blocks > 1)
    return "x".join(map(str, key[0])) + (f" ({', '.join(notes)})" if notes else "")


_ATOM = re.compile(r"mma_atom<([\w.]+)<(\d+)x(\d+)x(\d+), \((\w+), (\w+)\) -> (\w+)((?:, \w+ = \d+)*)>>")


@cache
def mma_atom(text: str) -> MmaAtom:
    """An atom, without its state, from its text.

    >>> mma_atom("mma_atom<fly.universal_fma<1x1x1, (f32, f32) -> f32>>").dtype_acc.name
    'Float32'

    Raises `LayoutError` for text that is no atom.
    """
    match = _ATOM.fullmatch(text)
    if not match or match[1] not in NAMES or not all(match[i] in _OF_MLIR for i in (5, 6, 7)):
        raise LayoutError(f"{text!r} is no MMA atom")
    m, n, k = (int(match[i]) for i in (2, 3, 4))
    a, b, acc = (_OF_MLIR[match[i]] for i in (5, 6, 7))
    options = tuple(int(number) for number in re.findall(r"= (\d+)", match[8]))
    return MmaAtom(mma_op(match[1], (m, n, k), a, b, acc, options))
