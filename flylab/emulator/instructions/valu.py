"""Vector instructions on 32- and 64-bit integers and on lane masks, one row each (VOP1, VOP2, VOP3, VOPC)."""

from __future__ import annotations

from typing import Any

from flylab.emulator.decoding.table import VECTOR_FAMILY, rows
from flylab.emulator.numbers.semantics import (
    add_carry,
    below_lanes,
    field,
    first_bit,
    first_sign_change,
    high,
    high_24,
    integer_median,
    mask_of,
    part_24,
    permute_bytes,
    random_step,
    sub_borrow,
    three,
)

PREDICATES = {"lt": "lt", "eq": "eq", "le": "le", "gt": "gt", "ne": "ne", "ge": "ge"}


def _comparisons() -> list[tuple[Any, ...]]:
    """v_cmp_* and v_cmpx_* of integers, by type and predicate; f and t are never and always."""
    found: list[tuple[Any, ...]] = []
    for kind, sign in (("i", "s"), ("u", "u")):
        for bits in (16, 32, 64):
            for name in (*PREDICATES, "f", "t"):
                compute = _compare(name if name in ("f", "t", "eq", "ne") else sign + name)
                found.append((f"v_cmp_{name}_{kind}{bits}", f"mask = b{bits} b{bits}", compute))
                found.append((f"v_cmpx_{name}_{kind}{bits}", f"mask .exec = b{bits} b{bits}", _twice(compute)))
    return found


def _compare(predicate: str) -> Any:
    if predicate in ("f", "t"):
        return lambda x, y: x.cmp("eq" if predicate == "t" else "ne", x)
    return lambda x, y: x.cmp(predicate, y)


def _twice(compute: Any) -> Any:
    """A comparison that writes EXEC as well."""
    return lambda *sources: (compute(*sources),) * 2


def _saturated_24(x: Any, y: Any, z: Any, signed: bool) -> Any:
    """x * y of 24 bits, + z, clamped to 32 bits."""
    total = part_24(x, signed).to("i64", signed) * part_24(y, signed).to("i64", signed) + z.to("i64", signed)
    if signed:
        return total.call("smax", -(1 << 31)).call("smin", (1 << 31) - 1).to("i32")
    return total.call("umin", (1 << 32) - 1).to("i32")


def _multiply_add_64(signed: bool) -> Any:
    """v_mad_[iu]64_[iu]32: the 64-bit x * y + z, and bit 64 of the exact sum: a carry, or its sign."""

    def compute(x: Any, y: Any, z: Any) -> Any:
        product = x.to("i64", signed) * y.to("i64", signed)
        total, carry = add_carry(z, product)
        return total, carry ^ z.cmp("slt", 0) ^ product.cmp("slt", 0) if signed else carry

    return compute


def _absolute_sum(x: Any, y: Any, total: Any, bits: int) -> Any:
    """v_sad: total + the sum of |x - y| over the unsigned parts of `bits`."""
    part = (1 << bits) - 1
    for at in range(0, 32, bits):
        a, b = (x.shr(at) & part, y.shr(at) & part) if at else (x & part, y & part)
        total = total + (a.call("umax", b) - a.call("umin", b))
    return total


def _dot(bits: int, signed: bool, clamp: bool = False) -> Any:
    """v_dot: z + the sum of the products of the parts of x and y, of `bits` each; saturating under clamp."""

    def part(x: Any, at: int) -> Any:
        up = x.shl(32 - bits - at)
        return (up.sar(32 - bits) if signed else up.shr(32 - bits)).to("i64", signed)

    def compute(x: Any, y: Any, z: Any) -> Any:
        total = z.to("i64", signed)
        for at in range(0, 32, bits):
            total = total + part(x, at) * part(y, at)
        if clamp and signed:
            total = total.call("smax", -(1 << 31)).call("smin", (1 << 31) - 1)
        elif clamp:
            total = total.call("umin", (1 << 32) - 1)
        return total.to("i32")

    return compute


DOTS = [
    *((f"v_dot{32 // bits}_{sign}32_{sign}{bits}", "b32 = b32 b32 b32", _dot(bits, sign == "i"),
       _dot(bits, sign == "i", True)) for bits in (4, 8, 16) for sign in "iu"),
    *((f"v_dot{32 // bits}c_i32_i{bits}", "b32 = b32 b32 @b32", _dot(bits, True)) for bits in (4, 8, 16)),
]
MOVES = [
    ("v_mov_b32 v_accvgpr_read_b32 v_accvgpr_write_b32 v_accvgpr_mov_b32", "b32 = b32", lambda x: x),
    ("v_mov_b64", "b64 = b64", lambda x: x),
    ("v_cndmask_b32", "b32 = b32 b32 mask", lambda no, yes, m: m.select(yes, no)),
    ("v_not_b32", "b32 = b32", lambda x: ~x),
    ("v_bfrev_b32", "b32 = b32", lambda x: x.call("bitreverse")),
    ("v_ffbh_u32", "b32 = b32", lambda x: first_bit(x, "ctlz")),
    ("v_ffbl_b32", "b32 = b32", lambda x: first_bit(x, "cttz")),
    ("v_ffbh_i32", "b32 = b32", first_sign_change),
]
ADDITIONS = [
    ("v_add_u32 v_add_i32", "b32 = b32 b32", lambda x, y: x + y),
    ("v_sub_u32 v_sub_i32", "b32 = b32 b32", lambda x, y: x - y),
    ("v_subrev_u32", "b32 = b32 b32", lambda x, y: y - x, lambda x, y: y.call("usub.sat", x)),
    ("v_add_co_u32", "b32 mask = b32 b32", add_carry),
    ("v_sub_co_u32", "b32 mask = b32 b32", sub_borrow),
    ("v_subrev_co_u32", "b32 mask = b32 b32", lambda x, y: sub_borrow(y, x)),
    ("v_addc_co_u32", "b32 mask = b32 b32 mask", add_carry),
    ("v_subb_co_u32", "b32 mask = b32 b32 mask", sub_borrow),
    ("v_subbrev_co_u32", "b32 mask = b32 b32 mask", lambda x, y, m: sub_borrow(y, x, m)),
    ("v_add3_u32", "b32 = b32 b32 b32", lambda x, y, z: x + y + z),
    ("v_lshl_add_u32", "b32 = b32 b32 b32", lambda x, n, y: x.shl(n) + y),
    ("v_add_lshl_u32", "b32 = b32 b32 b32", lambda x, y, n: (x + y).shl(n)),
    ("v_lshl_add_u64", "b64 = b64 b32 b64", lambda x, n, y: x.shl(n & 7) + y),
    ("v_xad_u32", "b32 = b32 b32 b32", lambda x, y, z: (x ^ y) + z),
]
PRODUCTS = [
    ("v_mul_lo_u32 v_mul_lo_i32", "b32 = b32 b32", lambda x, y: x * y),
    ("v_mul_hi_u32", "b32 = b32 b32", lambda x, y: high(x, y, False)),
    ("v_mul_hi_i32", "b32 = b32 b32", lambda x, y: high(x, y, True)),
    ("v_mul_u32_u24", "b32 = b32 b32", lambda x, y: part_24(x, False) * part_24(y, False)),
    ("v_mul_i32_i24", "b32 = b32 b32", lambda x, y: part_24(x, True) * part_24(y, True)),
    ("v_mul_hi_u32_u24", "b32 = b32 b32", lambda x, y: high_24(x, y, False)),
    ("v_mul_hi_i32_i24", "b32 = b32 b32", lambda x, y: high_24(x, y, True)),
    ("v_mad_u32_u24", "b32 = b32 b32 b32", lambda x, y, z: part_24(x, False) * part_24(y, False) + z,
     lambda x, y, z: _saturated_24(x, y, z, False)),
    ("v_mad_i32_i24", "b32 = b32 b32 b32", lambda x, y, z: part_24(x, True) * part_24(y, True) + z,
     lambda x, y, z: _saturated_24(x, y, z, True)),
    ("v_mad_u64_u32", "b64 mask = b32 b32 b64", _multiply_add_64(False)),
    ("v_mad_i64_i32", "b64 mask = b32 b32 b64", _multiply_add_64(True)),
    ("v_mad_u32_u16", "b32 = b16 b16 b32", lambda x, y, z: x.to("i32") * y.to("i32") + z),
    ("v_mad_i32_i16", "b32 = b16 b16 b32", lambda x, y, z: x.to("i32", True) * y.to("i32", True) + z),
    ("v_sad_u8", "b32 = b32 b32 b32", lambda x, y, z: _absolute_sum(x, y, z, 8)),
    ("v_sad_u16", "b32 = b32 b32 b32", lambda x, y, z: _absolute_sum(x, y, z, 16)),
    ("v_sad_u32", "b32 = b32 b32 b32", lambda x, y, z: _absolute_sum(x, y, z, 32)),
]
BITS = [
    ("v_and_b32", "b32 = b32 b32", lambda x, y: x & y),
    ("v_or_b32", "b32 = b32 b32", lambda x, y: x | y),
    ("v_xor_b32", "b32 = b32 b32", lambda x, y: x ^ y),
    ("v_xnor_b32", "b32 = b32 b32", lambda x, y: ~(x ^ y)),
    ("v_or3_b32", "b32 = b32 b32 b32", lambda x, y, z: x | y | z),
    ("v_and_or_b32", "b32 = b32 b32 b32", lambda x, y, z: x & y | z),
    ("v_lshl_or_b32", "b32 = b32 b32 b32", lambda x, n, y: x.shl(n) | y),
    ("v_lshlrev_b32", "b32 = b32 b32", lambda n, x: x.shl(n)),
    ("v_lshrrev_b32", "b32 = b32 b32", lambda n, x: x.shr(n)),
    ("v_ashrrev_i32", "b32 = b32 b32", lambda n, x: x.sar(n)),
    ("v_lshlrev_b64", "b64 = b32 b64", lambda n, x: x.shl(n.to("i64"))),
    ("v_lshrrev_b64", "b64 = b32 b64", lambda n, x: x.shr(n.to("i64"))),
    ("v_ashrrev_i64", "b64 = b32 b64", lambda n, x: x.sar(n.to("i64"))),
    ("v_bfe_u32", "b32 = b32 b32 b32", lambda x, at, size: field(x, at & 31, size & 31, False)),
    ("v_bfe_i32", "b32 = b32 b32 b32", lambda x, at, size: field(x, at & 31, size & 31, True)),
    ("v_bfi_b32", "b32 = b32 b32 b32", lambda m, x, y: m & x | ~m & y),
    ("v_bfm_b32", "b32 = b32 b32", lambda size, at: mask_of(size & 31, at & 31, "i32")),
    ("v_bcnt_u32_b32", "b32 = b32 b32", lambda x, y: x.call("ctpop") + y),
    ("v_perm_b32", "b32 = b32 b32 b32", permute_bytes),
    ("v_alignbit_b32", "b32 = b32 b32 b32", lambda x, y, n: (x.to("i64").shl(32) | y.to("i64")).shr(
        (n & 31).to("i64")).to("i32")),
    ("v_alignbyte_b32", "b32 = b32 b32 b32", lambda x, y, n: (x.to("i64").shl(32) | y.to("i64")).shr(
        (n & 3).shl(3).to("i64")).to("i32")),
    ("v_mbcnt_lo_u32_b32", "b32 = b32 b32 .lane", lambda x, y, lane: below_lanes(x, y, lane, 0)),
    ("v_mbcnt_hi_u32_b32", "b32 = b32 b32 .lane", lambda x, y, lane: below_lanes(x, y, lane, 32)),
    ("v_prng_b32", "b32 = b32", random_step),
]
EXTREMES = [
    row for kind, sign in (("i", "s"), ("u", "u")) for row in (
        (f"v_min_{kind}32", "b32 = b32 b32", lambda x, y, sign=sign: x.call(sign + "min", y)),
        (f"v_max_{kind}32", "b32 = b32 b32", lambda x, y, sign=sign: x.call(sign + "max", y)),
        (f"v_min3_{kind}32", "b32 = b32 b32 b32", three(lambda x, y, sign=sign: x.call(sign + "min", y))),
        (f"v_max3_{kind}32", "b32 = b32 b32 b32", three(lambda x, y, sign=sign: x.call(sign + "max", y))),
        (f"v_med3_{kind}32", "b32 = b32 b32 b32", integer_median(kind == "i")),
    )
]
# Additions that clamp: the same text with `clamp` saturates.
SATURATING = {"v_add_u32": "uadd.sat", "v_add_i32": "sadd.sat", "v_sub_u32": "usub.sat", "v_sub_i32": "ssub.sat"}


def _with_clamp(entries: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Splits the rows that saturate, each with its own function under clamp."""
    found: list[tuple[Any, ...]] = []
    for names, signature, compute, *clamped in entries:
        for name in names.split():
            saturate = SATURATING.get(name)
            extra = [lambda x, y, s=saturate: x.call(s, y)] if saturate else clamped
            found.append((name, signature, compute, *extra))
    return found


ROWS = rows(VECTOR_FAMILY, [*MOVES, *_with_clamp(ADDITIONS), *PRODUCTS, *DOTS, *BITS, *EXTREMES, *_comparisons()])
