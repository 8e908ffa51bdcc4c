"""Scalar arithmetic, logic, comparisons and moves, one row each (SOP1, SOP2, SOPC, SOPK)."""

from __future__ import annotations

from typing import Any

from flylab.emulator.decoding.table import SCALAR_FAMILY, rows
from flylab.emulator.handlers.ir import Value, width
from flylab.emulator.numbers.semantics import (
    add_carry,
    add_overflow,
    choose,
    first_bit,
    first_sign_change,
    high,
    mask_of,
    nonzero,
    packed_field,
    sub_borrow,
    sub_overflow,
)


def _logic(name: str, combine: Any) -> list[tuple[Any, ...]]:
    """The 32-bit, 64-bit and save-EXEC rows of one bitwise operation of (first, second)."""
    return [
        (f"s_{name}_b32", "b32 .scc = b32 b32", lambda x, y: nonzero(combine(x, y))),
        (f"s_{name}_b64", "b64 .scc = b64 b64", lambda x, y: nonzero(combine(x, y))),
    ]


def _save_exec(name: str, combine: Any) -> tuple[Any, ...]:
    """s_<name>_saveexec_b64: the old EXEC to the result, EXEC = combine(source, EXEC)."""

    def compute(x: Value, exec_: Value) -> tuple[Value, ...]:
        new = combine(x, exec_)
        return exec_, new, new.cmp("ne", 0)

    return f"s_{name}_saveexec_b64", "b64 .exec .scc = b64 .exec", compute


def _exec_logic(name: str, combine: Any) -> tuple[Any, ...]:
    """s_<name>_wrexec_b64: the result is the new EXEC."""

    def compute(x: Value, exec_: Value) -> tuple[Value, ...]:
        new = combine(x, exec_)
        return new, new, new.cmp("ne", 0)

    return f"s_{name}_wrexec_b64", "b64 .exec .scc = b64 .exec", compute


LOGIC = (
    ("and", lambda x, y: x & y), ("or", lambda x, y: x | y), ("xor", lambda x, y: x ^ y),
    ("andn2", lambda x, y: x & ~y), ("orn2", lambda x, y: x | ~y), ("nand", lambda x, y: ~(x & y)),
    ("nor", lambda x, y: ~(x | y)), ("xnor", lambda x, y: ~(x ^ y)),
)
COMPARISONS = (
    *((f"s_cmp_{name}_{kind}32", ".scc = b32 b32", predicate) for kind, sign in (("i", "s"), ("u", "u"))
      for name, predicate in (("eq", "eq"), ("lg", "ne"), ("gt", sign + "gt"), ("ge", sign + "ge"), ("lt", sign + "lt"),
                              ("le", sign + "le"))),
    ("s_cmp_eq_u64", ".scc = b64 b64", "eq"), ("s_cmp_lg_u64", ".scc = b64 b64", "ne"),
)


def _compare(predicate: str) -> Any:
    return lambda x, y: x.cmp(predicate, y)


def _compare_short(predicate: str, signed: bool) -> Any:
    """A comparison with a 16-bit constant."""
    return lambda x, y: x.cmp(predicate, y.to("i32", signed))


def _shift_add(n: int) -> Any:
    """s_lshl<n>_add_u32, SCC the carry out of 32 bits."""

    def compute(x: Value, y: Value) -> tuple[Value, Value]:
        total = x.to("i64").shl(n) + y.to("i64")
        return total.to("i32"), total.cmp("ugt", 0xFFFFFFFF)

    return compute


def _pack(x: Value, y: Value, x_high: bool, y_high: bool) -> Value:
    low = x.shr(16) if x_high else x & 0xFFFF
    return low | (y & -0x10000 if y_high else y.shl(16))


def _set_bit(x: Value, n: Value, value: int) -> Value:
    bit = x.like(1).shl(n.to(x.type))
    return x | bit if value else x & ~bit


def _absolute(x: Value) -> tuple[Value, Value]:
    return nonzero(x.cmp("slt", 0).select(-x, x))


def _quad_mask(x: Value) -> tuple[Value, Value]:
    """s_wqm: each four bits become ones where any of them is set."""
    ones = 0x1111111111111111 & ((1 << width(x.type)) - 1)
    any_ = (x | x.shr(1) | x.shr(2) | x.shr(3)) & ones
    return nonzero(any_ * 15)


def _quad_bits(x: Value) -> tuple[Value, Value]:
    """s_quadmask: one bit for each four, set where any of them is."""
    bits = (x | x.shr(1) | x.shr(2) | x.shr(3)) & (0x1111111111111111 & ((1 << width(x.type)) - 1))
    for step, kept in ((3, 0x0303030303030303), (6, 0x000F000F000F000F), (12, 0x000000FF000000FF)):
        bits = (bits | bits.shr(step)) & (kept & ((1 << width(x.type)) - 1))
    return nonzero((bits | bits.shr(24)) & 0xFFFF if x.type == "i64" else bits)


def _each_twice(x: Value) -> Value:
    """s_bitreplicate: every bit of 32 as two of 64."""
    spread = x.to("i64")
    for step, kept in ((16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
                       (2, 0x3333333333333333), (1, 0x5555555555555555)):
        spread = (spread | spread.shl(step)) & kept
    return spread | spread.shl(1)


def _compare_bit(wanted: int) -> Any:
    return lambda x, n: (x.shr(n) & 1).cmp("eq", wanted)


def _by_width(name: str, compute: Any, results: str = "{}", sources: str = "{}", suffix: str = "b") -> list[Any]:
    """The 32- and 64-bit rows of one function."""
    signature = f"{results} = {sources}"
    return [(f"{name}_{suffix}{bits}", signature.replace("{}", f"b{bits}"), compute) for bits in (32, 64)]


ROWS = rows(SCALAR_FAMILY, [
    *(row for name, f in LOGIC for row in _logic(name, f)),
    *(_save_exec(name, f) for name, f in LOGIC),
    _save_exec("andn1", lambda x, y: ~x & y), _save_exec("orn1", lambda x, y: ~x | y),
    _exec_logic("andn1", lambda x, y: ~x & y), _exec_logic("andn2", lambda x, y: x & ~y),
    *((name, signature, _compare(predicate)) for name, signature, predicate in COMPARISONS),
    *((name.replace("s_cmp_", "s_cmpk_"), ".scc = b32 b16", _compare_short(p, name[-3] == "i"))
      for name, _, p in COMPARISONS if "64" not in name),

    ("s_add_u32", "b32 .scc = b32 b32", add_carry),
    ("s_sub_u32", "b32 .scc = b32 b32", sub_borrow),
    ("s_addc_u32", "b32 .scc = b32 b32 .scc", add_carry),
    ("s_subb_u32", "b32 .scc = b32 b32 .scc", sub_borrow),
    ("s_add_i32", "b32 .scc = b32 b32", add_overflow),
    ("s_sub_i32", "b32 .scc = b32 b32", sub_overflow),
    ("s_addk_i32", "b32 .scc = @b32 b16", lambda x, y: add_overflow(x, y.to("i32", True))),
    ("s_mulk_i32", "b32 = @b32 b16", lambda x, y: x * y.to("i32", True)),
    ("s_mul_i32", "b32 = b32 b32", lambda x, y: x * y),
    ("s_mul_hi_u32", "b32 = b32 b32", lambda x, y: high(x, y, False)),
    ("s_mul_hi_i32", "b32 = b32 b32", lambda x, y: high(x, y, True)),
    ("s_min_i32", "b32 .scc = b32 b32", choose("smin")),
    ("s_max_i32", "b32 .scc = b32 b32", choose("smax")),
    ("s_min_u32", "b32 .scc = b32 b32", choose("umin")),
    ("s_max_u32", "b32 .scc = b32 b32", choose("umax")),
    *((f"s_lshl{n}_add_u32", "b32 .scc = b32 b32", _shift_add(n)) for n in (1, 2, 3, 4)),
    ("s_absdiff_i32", "b32 .scc = b32 b32", lambda x, y: _absolute(x - y)),
    ("s_abs_i32", "b32 .scc = b32", _absolute),

    *_by_width("s_lshl", lambda x, n: nonzero(x.shl(n)), "{} .scc", "{} b32"),
    *_by_width("s_lshr", lambda x, n: nonzero(x.shr(n)), "{} .scc", "{} b32"),
    *_by_width("s_ashr", lambda x, n: nonzero(x.sar(n)), "{} .scc", "{} b32", "i"),
    *_by_width("s_bfe", lambda x, what: nonzero(packed_field(x, what, False)), "{} .scc", "{} b32", "u"),
    *_by_width("s_bfe", lambda x, what: nonzero(packed_field(x, what, True)), "{} .scc", "{} b32", "i"),
    ("s_bfm_b32", "b32 = b32 b32", lambda size, offset: mask_of(size & 31, offset & 31, "i32")),
    ("s_bfm_b64", "b64 = b32 b32", lambda size, offset: mask_of(size & 63, offset & 63, "i64")),

    *_by_width("s_mov", lambda x: x),
    *_by_width("s_cmov", lambda x, old, scc: scc.select(x, old), sources="{} @{} .scc"),
    ("s_movk_i32", "b32 = b16", lambda x: x.to("i32", True)),
    ("s_cmovk_i32", "b32 = b16 @b32 .scc", lambda x, old, scc: scc.select(x.to("i32", True), old)),
    *_by_width("s_cselect", lambda x, y, scc: scc.select(x, y), sources="{} {} .scc"),
    *_by_width("s_not", lambda x: nonzero(~x), "{} .scc"),
    *_by_width("s_wqm", _quad_mask, "{} .scc"),
    *_by_width("s_quadmask", _quad_bits, "{} .scc"),
    ("s_bitreplicate_b64_b32", "b64 = b32", _each_twice),
    *_by_width("s_brev", lambda x: x.call("bitreverse")),
    *_by_width("s_bcnt0_i32", lambda x: nonzero((~x).call("ctpop").to("i32")), "b32 .scc"),
    *_by_width("s_bcnt1_i32", lambda x: nonzero(x.call("ctpop").to("i32")), "b32 .scc"),
    *_by_width("s_ff0_i32", lambda x: first_bit(~x, "cttz"), "b32"),
    *_by_width("s_ff1_i32", lambda x: first_bit(x, "cttz"), "b32"),
    *_by_width("s_flbit_i32", lambda x: first_bit(x, "ctlz"), "b32"),
    ("s_flbit_i32", "b32 = b32", first_sign_change),
    ("s_flbit_i32_i64", "b32 = b64", first_sign_change),
    ("s_sext_i32_i8", "b32 = b32", lambda x: x.to("i8").to("i32", True)),
    ("s_sext_i32_i16", "b32 = b32", lambda x: x.to("i16").to("i32", True)),
    *_by_width("s_bitset0", lambda n, old: _set_bit(old, n, 0), sources="b32 @{}"),
    *_by_width("s_bitset1", lambda n, old: _set_bit(old, n, 1), sources="b32 @{}"),
    *((f"s_bitcmp{n}_b{bits}", f".scc = b{bits} b32", _compare_bit(n)) for n in (0, 1) for bits in (32, 64)),
    ("s_pack_ll_b32_b16", "b32 = b32 b32", lambda x, y: _pack(x, y, False, False)),
    ("s_pack_lh_b32_b16", "b32 = b32 b32", lambda x, y: _pack(x, y, False, True)),
    ("s_pack_hh_b32_b16", "b32 = b32 b32", lambda x, y: _pack(x, y, True, True)),
])
