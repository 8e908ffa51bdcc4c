"""Numbers of other lanes without LDS: DPP, permutations of rows, `writelane`; and `ds_swizzle`.

A number or Vector of any format is moved word by word. Source of what moves where: CDNA3 ISA, "Data Parallel Primitives
(DPP)", DS_SWIZZLE_B32 and V_WRITELANE_B32; CDNA4 ISA, V_PERMLANE16_SWAP_B32 and V_PERMLANE32_SWAP_B32.
"""

from __future__ import annotations

from typing import Any

from flylab.errors import TraceError
from flylab.expr.emit import intrinsic, mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric
from flylab.expr.rocdl.immediates import immediate, integers
from flylab.expr.rocdl.instructions import require_chip
from flylab.expr.rocdl.table import GFX950
from flylab.expr.rocdl.wave import check_format, int32, typed_value
from flylab.expr.state import require_kernel
from flylab.expr.vector import Vector
from flylab.expr.words import of_words, words_of

# The controls with a number n (from, to) behind the first code, and those without.
SHIFTS = {"row_shl": (0x100, 1, 15), "row_shr": (0x110, 1, 15), "row_ror": (0x120, 1, 15),
          "row_newbcast": (0x150, 0, 15)}
PLAIN = {"wave_shl": 0x130, "wave_rol": 0x134, "wave_shr": 0x138, "wave_ror": 0x13C, "row_mirror": 0x140,
         "row_half_mirror": 0x141, "row_bcast15": 0x142, "row_bcast31": 0x143}
CODES = {*range(0x100), *PLAIN.values(),
         *(code + n for code, low, high in SHIFTS.values() for n in range(low, high + 1))}
"""Every control that these chips have; those below 0x100 are permutations of four lanes."""


class dpp:
    """The codes of DPP's controls: `rocdl.dpp.row_shr(1)`, `rocdl.dpp.quad_perm(1, 0, 3, 2)`, `rocdl.dpp.row_mirror`.

    A row is 16 lanes. `row_shl(n)` reads the lane n above, `row_shr(n)` the one n below, `row_ror(n)` turns the row,
    `row_newbcast(n)` reads lane n of it; `wave_*` go one lane through the whole wave; the mirrors turn a row or its
    half around; `row_bcast15` and `row_bcast31` give a row the last lane of the one before, or of the half wave before.

    >>> hex(dpp.row_shr(1)), hex(dpp.quad_perm(1, 0, 3, 2))
    ('0x111', '0xb1')
    """

    wave_shl, wave_rol, wave_shr, wave_ror = (PLAIN[f"wave_{way}"] for way in ("shl", "rol", "shr", "ror"))
    row_mirror, row_half_mirror = PLAIN["row_mirror"], PLAIN["row_half_mirror"]
    row_bcast15, row_bcast31 = PLAIN["row_bcast15"], PLAIN["row_bcast31"]

    @staticmethod
    def quad_perm(first: int, second: int, third: int, fourth: int) -> int:
        """Of each four lanes, the lanes (0 to 3) that these read."""
        lanes = [immediate("dpp.quad_perm", "lane", lane, 0, 3) for lane in (first, second, third, fourth)]
        return sum(lane << 2 * i for i, lane in enumerate(lanes))

    @staticmethod
    def row_shl(n: int) -> int:
        """The lane n above, 1 to 15."""
        return _shift("row_shl", n)

    @staticmethod
    def row_shr(n: int) -> int:
        """The lane n below, 1 to 15."""
        return _shift("row_shr", n)

    @staticmethod
    def row_ror(n: int) -> int:
        """The lane n below, round the row, 1 to 15."""
        return _shift("row_ror", n)

    @staticmethod
    def row_newbcast(n: int) -> int:
        """Lane n of the row, 0 to 15."""
        return _shift("row_newbcast", n)


def _shift(name: str, n: Any) -> int:
    code, low, high = SHIFTS[name]
    return code + immediate(f"dpp.{name}", "number", n, low, high)


def update_dpp(res: Any, old: Any, src: Any, dpp_ctrl: Any, row_mask: Any = 0xF, bank_mask: Any = 0xF,
               bound_ctrl: Any = False) -> Any:
    """The value of the lane that `dpp_ctrl` (`rocdl.dpp`, or its code) names, of each lane's `src`.

    Lanes whose row (bit of `row_mask`) or bank of four lanes (bit of `bank_mask`) is switched off keep `old`. So do
    those that would read a lane that there is not or that is off; with `bound_ctrl` they get 0.
    """
    what = "rocdl.update_dpp"
    require_kernel(what)
    given, before = _alike(what, src=src, old=old)
    code = immediate(what, "dpp_ctrl", dpp_ctrl, 0, 0x1FF, "rocdl.dpp has the codes: rocdl.dpp.row_shr(1)")
    if code not in CODES:
        raise TraceError(f"{what}: a dpp_ctrl of {code:#x}, which is no control of these chips",
                         hint="rocdl.dpp has the codes: rocdl.dpp.row_shr(1)")
    masks = [immediate(what, name, mask, 0, 15) for name, mask in (("row_mask", row_mask), ("bank_mask", bank_mask))]
    bound = immediate(what, "bound_ctrl", int(bound_ctrl) if isinstance(bound_ctrl, bool) else bound_ctrl, 0, 1)
    attributes = integers({"dppCtrl": (code, 32), "rowMask": (masks[0], 32), "bankMask": (masks[1], 32),
                           "boundCtrl": (-bound, 1)})
    pairs = zip(words_of(before), words_of(given), strict=True)
    words = [op("rocdl.update.dpp", [kept, word], _i32(), attributes) for kept, word in pairs]
    return _typed(what, res, words, given)


def mov_dpp(res: Any, src: Any, dpp_ctrl: Any, row_mask: Any = 0xF, bank_mask: Any = 0xF,
            bound_ctrl: Any = True) -> Any:
    """`update_dpp` with an `old` of 0: lanes that read none get 0."""
    given = typed_value(src)
    old = Vector.filled(given.shape, 0, given.dtype) if isinstance(given, Vector) else type(given)(0)
    return update_dpp(res, old, given, dpp_ctrl, row_mask, bank_mask, bound_ctrl)


def ds_swizzle(res: Any, src: Any, offset: Any) -> Any:
    """The value of the lane that the pattern `offset` (16 bits, of DS_SWIZZLE_B32) names in each half wave.

    Below 0x8000: lane ((i & and) | or) ^ xor of 32, with `and` in bits 4:0, `or` in 9:5, `xor` in 14:10.
    """
    what = "rocdl.ds_swizzle"
    require_kernel(what)
    given = typed_value(src)
    pattern = CLASSES["Int32"](immediate(what, "offset", offset, 0, 2**16 - 1)).ir_value()
    return _typed(what, res, [op("rocdl.ds_swizzle", [word, pattern], _i32()) for word in words_of(given)], given)


def writelane(res: Any, value: Any, lane: Any, old: Any) -> Any:
    """`old` with `value` in one lane; `value` and `lane` are the same in every lane that takes part."""
    what = "rocdl.writelane"
    require_kernel(what)
    given, before = _alike(what, value=value, old=old)
    at = int32(what, "lane", lane)
    pairs = zip(words_of(given), words_of(before), strict=True)
    words = [intrinsic("llvm.amdgcn.writelane.i32", [word, at, kept], _i32()) for word, kept in pairs]
    return _typed(what, res, words, given)


def permlane16_swap(res: Any, old: Any, src: Any, fi: Any = False, bound_control: Any = False) -> tuple[Any, Any]:
    """Rows 1 and 3 of `old` swapped with rows 0 and 2 of `src`: both, after it. Only gfx950 has it."""
    return _swap("permlane16_swap", old, src, fi, bound_control)


def permlane32_swap(res: Any, old: Any, src: Any, fi: Any = False, bound_control: Any = False) -> tuple[Any, Any]:
    """The upper half wave of `old` swapped with the lower one of `src`: both, after it. Only gfx950 has it."""
    return _swap("permlane32_swap", old, src, fi, bound_control)


def _swap(name: str, old: Any, src: Any, fi: Any, bound_control: Any) -> tuple[Any, Any]:
    from mlir import ir

    what = f"rocdl.{name}"
    require_chip(require_kernel(what), what, GFX950)
    given = _alike(what, old=old, src=src)
    flags = {"fi": (-int(bool(fi)), 1), "boundControl": (-int(bool(bound_control)), 1)}
    pair, attributes = ir.Type.parse("!llvm.struct<(i32, i32)>"), integers(flags)
    found: tuple[list[Any], list[Any]] = ([], [])
    for words in zip(*map(words_of, given), strict=True):
        both = op(f"rocdl.{name.replace('_', '.')}", list(words), pair, attributes)
        for index, side in enumerate(found):
            side.append(op("llvm.extractvalue", [both], _i32(), {"position": ir.DenseI64ArrayAttr.get([index])}))
    return of_words(found[0], given[0]), of_words(found[1], given[0])


def _alike(what: str, **pair: Any) -> list[Any]:
    """Two values of one format and shape; a Python number gets the format of the other one."""
    given = [typed_value(each) for each in pair.values()]
    for one, other in ((0, 1), (1, 0)):
        plain = isinstance(list(pair.values())[one], (int, float)) and isinstance(given[other], Numeric)
        given[one] = type(given[other])(given[one]) if plain else given[one]
    first, second = given
    alike = type(first) is type(second) and first.dtype is second.dtype
    if not alike or isinstance(first, Vector) and first.numel != second.numel:
        shown = " and ".join(f"{name} {name_of(each, repr(each))}" for name, each in pair.items())
        raise TraceError(f"{what}: {shown} are of two formats", hint="give both in one format")
    return given


def _typed(what: str, res: Any, words: list[Any], given: Any) -> Any:
    if isinstance(given, Vector):
        return of_words(words, given)
    return of_words(words, check_format(what, res, type(given), given.dtype.bits)(0))


def _i32() -> Any:
    return mlir_type(CLASSES["Int32"].dtype)
