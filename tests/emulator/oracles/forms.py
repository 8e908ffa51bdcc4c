"""Texts of every instruction that computes: operand kinds, modifiers and encodings, made from the operation table.

The results are v0 (v[0:1]) or s0, the sources v4, v6, v8 or s4, s6, s8 on; masks are s[20:21] and s[22:23].
Which encodings an instruction has is read off the ISA document: an _E32 entry is one that takes literals and SDWA.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from flylab.emulator.decoding.table import Row
from flylab.emulator.program import device_tables
from tests.emulator.oracles.pcode_parser import document_path

FLOAT_TYPES = ("f16", "f16b", "f16d", "f32", "f64")
REGISTERS = {"b64": 2, "f64": 2, "mask": 2}
INLINE = ("0", "1", "-7", "64", "-16", "33")
INLINE_FLOATS = ("0.5", "-1.0", "2.0", "-4.0", "0.15915494")
LITERALS = ("0x1234", "0x7fff", "0x300")
SHORT = (*(f"BYTE_{n}" for n in range(4)), "WORD_0", "WORD_1", "DWORD")
TEXT_ORDER = {"v_fmamk_f32": "v0, v4, 0x40490fdb, v6", "v_fmaak_f32": "v0, v4, v6, 0x40490fdb",
              "v_madmk_f16": "v0, v4, 0x4248, v6", "v_madak_f16": "v0, v4, v6, 0x4248",
              "v_accvgpr_read_b32": "v0, a0", "v_accvgpr_write_b32": "a0, v4", "v_accvgpr_mov_b32": "a0, a1"}
# Instructions that the table's row does not say enough of.
NO_ABSOLUTE = re.compile("v_div_scale")
NO_SDWA = re.compile(r"v_f?mac|v_mad[am]k|v_dot|v_mov_b64|v_accvgpr|v_pk_")
NO_SCALE = re.compile(r"v_fma_mix|v_pk_")
NO_HALF_SELECT = re.compile(r"v_(fma|mad|div_fixup)_legacy|v_cvt_")
TAKES_SIGN = re.compile(r"v_cndmask_b32$|v_pack_b32_f16$")
# What touches memory, jumps, belongs to matrices or converts by a codec's rules has tests of its own; the last are held
# against ml_dtypes in test_conversions and test_scaled.
ELSEWHERE = re.compile(
    r"v_cvt_(scalef32|sr)_|v_s?mfma|v_(nop|clrexcp)$|(global|flat|scratch|buffer|tbuffer|ds)_|"
    r"s_(load|buffer|store|atc|atomic|scratch|dcache|cbranch|set_gpr_idx|movrel|sendmsg|mem)|"
    r"s_(nop|waitcnt|sleep|setprio|icache_inv|wakeup|incperflevel|decperflevel|ttracedata|sethalt|setkill|branch|endpgm|"
    r"barrier|trap|setreg\w*|getreg\w*|getpc\w*|setpc\w*|swappc\w*|call\w*)$")
# The texts of what the decoder knows without a row, with the types of their sources.
TEMPLATES: dict[str, tuple[str, ...]] = {
    "v_swap_b32": ("v0, v4",),
    "v_pk_mov_b32": ("v[0:1], v[4:5], v[6:7] op_sel:[0,1]", "v[0:1], v[4:5], s[6:7] op_sel:[1,0]",
                     "v[0:1], v[4:5], 0 op_sel:[1,0]", "v[0:1], -4.0, v[6:7] op_sel:[0,1]",
                     "v[0:1], v[4:5], -7 op_sel:[0,0]"),
    "v_bitop3_b32": tuple(f"v0, v4, v6, v8 bitop3:{n}" for n in (0x80, 0x6C, 0xFE)) + ("v0, v4, s6, 7 bitop3:0x9c",),
    "v_bitop3_b16": ("v0, v4, v6, v8 bitop3:0x36", "v0, v4, v6, v8 bitop3:0x80 op_sel:[1,0,1,1]"),
    "v_readfirstlane_b32": ("s0, v4",),
    "v_readlane_b32": ("s0, v4, s6", "s0, v4, 13"),
    "v_writelane_b32": ("v0, s4, m0", "v0, s4, 61", "v0, 5, m0"),
    "ds_bpermute_b32": ("v0, v4, v6", "v0, v4, v6 offset:68"),
    "ds_permute_b32": ("v0, v4, v6", "v0, v4, v6 offset:8"),
    **{f"v_permlane{rows}_swap_b32": ("v0, v4", "v0, v4 bound_ctrl:1") for rows in (16, 32)},
    **{f"v_dot2_f32_{half}": ("v0, v4, v6, v8", "v0, v4, v6, s8", "v0, v4, v6, v8 neg_lo:[1,0,1] neg_hi:[1,1,0]")
       for half in ("f16", "bf16")},
    **{f"v_dot2c_f32_{half}": ("v0, v4, v6", "v0, s4, v6") for half in ("f16", "bf16")},
    "v_pk_fmac_f16": ("v0, v4, v6",),
    "v_mqsad_u32_u8": ("v[0:3], v[4:5], v8, v[10:13]",),
    **{f"v_cvt_f32_{kind}": ("v0, v4", "v0, s4") for kind in ("fp8", "bf8")},
    **{f"v_cvt_f32_{kind}_sdwa": ("v0, v4 src0_sel:BYTE_2",) for kind in ("fp8", "bf8")},
    **{f"v_cvt_pk_f32_{kind}": ("v[0:1], v4",) for kind in ("fp8", "bf8")},
    **{f"v_cvt_pk_f32_{kind}_sdwa": ("v[0:1], v4 src0_sel:WORD_1",) for kind in ("fp8", "bf8")},
    **{f"v_cvt_pk_{kind}_f32": ("v0, v4, v6", "v0, -v4, |v6|", "v0, v4, v6 op_sel:[0,0,1]") for kind in ("fp8", "bf8")},
}
# The types of the sources of the templates, where they are not whole numbers of 32 bits.
TEMPLATE_TYPES = {"v_cvt_pk_fp8_f32": ("f32", "f32"), "v_cvt_pk_bf8_f32": ("f32", "f32"),
                  "v_pk_fmac_f16": ("f16", "f16"),
                  **{f"v_dot2{c}_f32_{half}": (half, half, "f32") for c in ("", "c") for half in ("f16", "bf16")}}


@dataclass(frozen=True)
class Case:
    """One text. `types` are those of the registers 4, 6 and 8; `plain` where pseudo-code says all of the result."""

    text: str
    mnemonic: str
    types: tuple[str, ...]
    plain: bool = True


@cache
def short_encodings() -> frozenset[str]:
    """The vector instructions that have an encoding of 32 bits."""
    module = ast.parse(document_path().read_text(encoding="utf-8"))
    keys = [node for node in ast.walk(module) if isinstance(node, ast.Attribute)]
    return frozenset(node.attr.lower()[:-4] for node in keys if node.attr.endswith("_E32"))


def cases(mnemonic: str) -> list[Case]:
    """The texts of a mnemonic; none where the table's instruction has no test here. `KeyError` where none is known."""
    table, others = device_tables()
    if mnemonic in others and ELSEWHERE.match(mnemonic) and mnemonic not in TEMPLATES:
        return []
    if mnemonic not in TEMPLATES and (mnemonic in others or mnemonic not in table):
        raise KeyError(f"no operands known for mnemonic {mnemonic}")
    if mnemonic in TEMPLATES:
        types = TEMPLATE_TYPES.get(mnemonic, ("b32",) * 3)
        modified = "op_sel" if mnemonic == "v_bitop3_b16" else "neg_"
        return [Case(f"{name} {operands}", mnemonic, types, plain=modified not in operands)
                for name in (mnemonic, f"{mnemonic}_sdwa") for operands in TEMPLATES.get(name, ())]
    row = table[mnemonic]
    makers = {"scalar": _scalar, "packed": _packed, "mixed": _mixed, "vector": _vector}
    any_ = random.Random(mnemonic)
    found = list(dict.fromkeys(makers[row.family](row, any_)))
    # Comparisons are many and alike: each is tried with four of its kinds of operands.
    return [found[0], *any_.sample(found[1:], 3)] if mnemonic.startswith("v_cmp") else found


def register(file: str, number: int, type_name: str, times: int = 1) -> str:
    """The text of an operand's registers."""
    count = REGISTERS.get(type_name.rstrip("+^"), 1) * times
    return f"{file}{number}" if count == 1 else f"{file}[{number}:{number + count - 1}]"


def _replaced(operands: list[str], at: int, text: str) -> list[str]:
    return [text if n == at else operand for n, operand in enumerate(operands)]


def _scalar(row: Row, any_: random.Random) -> Iterator[Case]:
    results = [register("s", 0, t) for t in row.named_results]
    sources = row.named_sources
    if any(t == "b16" for t in sources):
        named = [register("s", 4 + 2 * n, t) for n, t in enumerate(sources) if t != "b16"]
        unsigned = row.mnemonic.endswith("u32")
        for value in ("0", "5", "0xffff" if unsigned else "-3", "0x7fff"):
            yield _case(row, [*results, *named, value])
        return
    operands = [register("s", 4 + 2 * n, t) for n, t in enumerate(sources)]
    yield _case(row, results + operands)
    for n, type_name in enumerate(sources):
        for constant in (any_.choice(INLINE), _float(type_name, any_), any_.choice(LITERALS)):
            yield _case(row, results + _replaced(operands, n, constant))
        special = "vcc" if type_name == "b64" else any_.choice(("vcc_lo", "m0", "exec_hi"))
        yield _case(row, results + _replaced(operands, n, special))


def _case(row: Row, operands: list[str], words: str = "", suffix: str = "", plain: bool = True,
          types: tuple[str, ...] = ()) -> Case:
    return Case(f"{row.mnemonic}{suffix} {', '.join(operands)}{words}", row.mnemonic, types or row.named_sources, plain)


def _vector(row: Row, any_: random.Random) -> Iterator[Case]:
    name = row.mnemonic
    if name in TEXT_ORDER:
        yield Case(f"{name} {TEXT_ORDER[name]}", name, row.named_sources)
        return
    results = [register("v", 0, t) if t != "mask" else "s[20:21]" for t in row.named_results]
    types = row.named_sources
    sources = [register("v", 4 + 2 * n, t) if t != "mask" else "s[22:23]" for n, t in enumerate(types)]
    yield _case(row, results + sources)
    masks = "mask" in (*types, *row.named_results)
    through_vcc = [[text.replace("s[20:21]", "vcc").replace("s[22:23]", "vcc") for text in part]
                   for part in (results, sources)]
    if masks:
        yield _case(row, through_vcc[0] + through_vcc[1])
    yield from _other_operands(row, results, sources, any_)
    yield from _modified(row, results, sources, any_)
    short = name in short_encodings()
    if short and not NO_SDWA.match(name) and all(t[1:3] in ("16", "32", "as") for t in (
            *types, *row.named_results)):
        yield from _sdwa(row, *through_vcc, any_)
    if not short and "b16" in types or not short and any(t.startswith("f16") for t in types):
        yield from _half_selects(row, results, sources, any_)


def _other_operands(row: Row, results: list[str], sources: list[str], any_: random.Random) -> Iterator[Case]:
    """A source that is a scalar register, a constant or a literal. A mask is a scalar operand already."""
    types = row.named_sources
    alone = "mask" not in types and ".vcc" not in row.sources
    places = [n for n, t in enumerate(types) if t != "mask"]
    at = any_.choice(places)
    if alone:
        number = any_.choice((4 + 2 * at, 6))
        yield _case(row, results + _replaced(sources, at, register("s", number, types[at])))
        if row.mnemonic in short_encodings():
            through_vcc = [text.replace("s[20:21]", "vcc") for text in results]
            yield _case(row, through_vcc + _replaced(sources, 0, any_.choice(LITERALS)))
    at = any_.choice([n for n in places if n < 2 or ".vcc" not in row.sources])
    yield _case(row, results + _replaced(sources, at, any_.choice(INLINE)))
    if types[at] != "b16":
        pattern = any_.choice(("{}", "neg({})")) if types[at] in FLOAT_TYPES else "{}"
        yield _case(row, results + _replaced(sources, at, pattern.format(_float(types[at], any_))))


def _float(type_name: str, any_: random.Random) -> str:
    """A float that an instruction holds without a literal; 1 / (2 pi) is spelled in the precision of the operand."""
    text = any_.choice(INLINE_FLOATS)
    return "0.15915494309189532" if text.startswith("0.159") and REGISTERS.get(type_name) else text


def _signed(row: Row, sources: list[str], any_: random.Random, absolute: bool = True) -> list[str]:
    """The sources with signs changed where they are floats; at least one of them, if any is."""
    types = row.named_sources
    floats = [n for n, t in enumerate(types) if t in FLOAT_TYPES or TAKES_SIGN.match(row.mnemonic) and t != "mask"]
    patterns = ("-{}", "|{}|", "-|{}|") if absolute and not NO_ABSOLUTE.match(row.mnemonic) else ("-{}",)
    found = list(sources)
    for n in floats:
        if n == floats[0] or any_.random() < 0.5:
            found[n] = any_.choice(patterns).format(found[n])
    return found


def _modified(row: Row, results: list[str], sources: list[str], any_: random.Random) -> Iterator[Case]:
    """Signs of sources, and what is done to results."""
    name, types = row.mnemonic, row.named_sources
    if any(t in FLOAT_TYPES for t in types) or TAKES_SIGN.match(name):
        yield _case(row, results + _signed(row, sources, any_))
    if any(t.rstrip("+^") in FLOAT_TYPES for t in row.named_results):
        yield _case(row, results + sources, " clamp", plain=False)
        if not NO_SCALE.match(name):
            yield _case(row, results + sources, any_.choice((" mul:2", " mul:4", " div:2")), plain=False)
            yield _case(row, results + _signed(row, sources, any_), " clamp mul:2", plain=False)
    elif row.clamped:
        yield _case(row, results + sources, " clamp", plain=False)


def _sdwa(row: Row, results: list[str], sources: list[str], any_: random.Random) -> Iterator[Case]:
    """Parts of the sources, extended; a part of the result, with what becomes of the rest."""
    types = row.named_sources
    for _ in range(2):
        signed = _signed(row, sources, any_)
        words = ""
        if not results[0].startswith(("vcc", "s")):
            unused = any_.choice(("UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"))
            words = f" dst_sel:{any_.choice(SHORT)} dst_unused:{unused}"
        for n in range(min(len(types), 2)):
            words += f" src{n}_sel:{any_.choice(SHORT)}"
            if types[n][0] == "b" and not TAKES_SIGN.match(row.mnemonic) and any_.random() < 0.5:
                signed[n] = f"sext({sources[n]})"
        yield _case(row, results + signed, words, "_sdwa", plain=False)


def _half_selects(row: Row, results: list[str], sources: list[str], any_: random.Random) -> Iterator[Case]:
    """op_sel: the halves that 16-bit sources come from, and the half that a result of 16 bits goes to."""
    if NO_HALF_SELECT.match(row.mnemonic):
        return
    types = row.named_sources
    half_result = row.named_results[0][1:3] == "16"
    for _ in range(2):
        bits = [any_.randrange(2) if t[1:3] == "16" else 0 for t in types] + [any_.randrange(2) if half_result else 0]
        yield _case(row, results + sources, f" op_sel:{bits}".replace(", ", ","), plain=not bits[-1])


def _packed(row: Row, any_: random.Random) -> Iterator[Case]:
    types, wide = row.named_sources, row.named_sources[0].endswith("32")
    times = 2 if wide else 1
    result = register("v", 0, "b32", times)
    sources = [register("v", 4 + 2 * n, "b32", times) for n in range(len(types))]
    yield _case(row, [result, *sources])
    for _ in range(3):
        words = "".join(f" {name}:{[any_.randrange(2) for _ in types]}" for name in ("op_sel", "op_sel_hi"))
        if types[0] in FLOAT_TYPES:
            words += "".join(f" {name}:{[any_.randrange(2) for _ in types]}" for name in ("neg_lo", "neg_hi"))
        yield _case(row, [result, *sources], words.replace(", ", ","))
    if types[0] in FLOAT_TYPES or row.clamped:
        yield _case(row, [result, *sources], " clamp", plain=False)
    at = any_.randrange(len(types))
    yield _case(row, [result, *_replaced(sources, at, register("s", 6, "b32", times))])
    highs = ",".join("0" if n == at else "1" for n in range(len(types)))
    constants = INLINE if types[0][0] == "b" else (*INLINE, *INLINE_FLOATS)
    yield _case(row, [result, *_replaced(sources, at, any_.choice(constants))], f" op_sel_hi:[{highs}]")


def _mixed(row: Row, any_: random.Random) -> Iterator[Case]:
    sources = ["v4", "v6", "v8"]
    yield _case(row, ["v0", *sources])
    for _ in range(4):
        halves = [any_.randrange(2) for _ in sources]
        words = f" op_sel:{[any_.randrange(2) * half for half in halves]} op_sel_hi:{halves}".replace(", ", ",")
        types = tuple("f16" if half else "f32" for half in halves)
        yield _case(row, ["v0", *_signed(row, sources, any_)], words, types=types)
        yield _case(row, ["v0", *_replaced(sources, any_.randrange(3), "s6")], words + " clamp", plain=False,
                    types=types)
