"""What instructions read and write, against the device's operation table, LLVM 22, and rows by hand."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace

import pytest

from flylab.codegen.assembly.effects import Effects, Span, _shapes, effects
from flylab.codegen.assembly.operand_text import fields
from flylab.codegen.assembly.registers import register_name
from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.chips import chips_with
from flylab.emulator.decoding.table import PACKED_FAMILY, SCALAR_FAMILY, TYPES, Row
from flylab.emulator.program import device_tables
from flylab.emulator.state import SGPR_NAMES
from flylab.errors import UnknownInstruction
from flylab.mfma import INSTRUCTIONS, OLDER_NAMES, Mfma
from flylab.targets import TARGETS, target
from tests.emulator.toolchain import ASSEMBLER, CHIPS

ROWS, DECODERS = device_tables()


def effects_of(text: str, chip: str = "gfx950") -> Effects:
    mnemonic, _, rest = text.partition(" ")
    return effects(Instruction(0, 0, text, mnemonic, *fields(rest) if rest else ((), ()), 1, None), target(chip))


def names(spans: tuple[Span, ...]) -> list[str]:
    return [register_name(s.file, s.first, s.count) for s in spans]


def test_every_instruction_of_the_device_has_a_row_and_nothing_else_has() -> None:
    known = {*_shapes(), *INSTRUCTIONS, *OLDER_NAMES}
    assert {*ROWS, *DECODERS} ^ known == {"<end of function>"}


def _text_of(row: Row) -> tuple[str, list[str], list[str]]:
    """An instruction of a row, with the registers of its named results and sources, each at a place of its own."""
    found: list[str] = []
    for type_ in (*row.named_results, *row.named_sources):
        scalar = row.family == SCALAR_FAMILY or type_ == "mask"
        wide = row.family == PACKED_FAMILY and type_.endswith("32")
        found.append(register_name("s" if scalar else "v", 10 * (1 + len(found)), TYPES[type_].registers * (1 + wide)))
    count = len(row.named_results)
    return f"{row.mnemonic} {', '.join(found)}", found[:count], found[count:]


@pytest.mark.parametrize("row", [pytest.param(row, id=name) for name, row in sorted(ROWS.items())])
def test_rows_of_the_device_say_the_same(row: Row) -> None:
    text, results, sources = _text_of(row)
    found = effects_of(text)
    implied = [t[1:] for t in row.sources if t.startswith(".") and t != ".lane"]
    tied = [results[0]] if any(t.startswith("@") for t in row.sources) else []
    assert sorted(names(found.reads)) == sorted(sources + implied + tied)
    assert sorted(names(found.writes)) == sorted(results + [t[1:] for t in row.results if t.startswith(".")])
    assert found.partial == any(t.endswith(("+", "^")) for t in row.results)
    assert found.ignores_exec == (row.family == SCALAR_FAMILY)
    assert not (found.space or found.raises or found.waits or found.cross_lane)


# Of what is no row of the device: results, sources, and fields. Source: CDNA3 and CDNA4 ISA, by instruction.
BY_HAND = """
global_load_dword v1, v2, s[4:5] offset:16    | v1 | v2 s[4:5] | vmem global load vmcnt bytes=4
global_load_dwordx4 v[4:7], v[2:3], off       | v[4:7] | v[2:3] | vmem global load vmcnt bytes=16
global_load_short_d16_hi v1, v[2:3], off      | v1 | v[2:3] | vmem global load partial vmcnt bytes=2
global_store_dwordx3 v[2:3], v[4:6], off      | | v[2:3] v[4:6] | vmem global store vmcnt bytes=12
global_store_byte v0, a1, s[2:3]              | | v0 a1 s[2:3] | vmem global store vmcnt bytes=1
global_load_lds_dwordx4 v[2:3], off           | | v[2:3] m0 | vmem global load to_lds vmcnt lgkmcnt bytes=16
buffer_load_dword v5, s[8:11], 0 offen lds    | | v5 s[8:11] m0 | vmem buffer load to_lds vmcnt bytes=4
buffer_load_dwordx2 v[6:7], v5, s[8:11], s3 offen | v[6:7] | v5 s[8:11] s3 | vmem buffer load vmcnt bytes=8
buffer_store_short v6, off, s[8:11], 0        | | v6 s[8:11] | vmem buffer store vmcnt bytes=2
buffer_load_format_xyz v[6:8], v5, s[8:11], 0 idxen | v[6:8] | v5 s[8:11] | vmem buffer load vmcnt bytes=12
flat_load_ubyte v1, v[2:3]                    | v1 | v[2:3] | flat load vmcnt lgkmcnt bytes=1
flat_store_dword v[2:3], v1                   | | v[2:3] v1 | flat store vmcnt lgkmcnt bytes=4
scratch_load_dword v1, off, s33 offset:4      | v1 | s33 | scratch load vmcnt bytes=4
scratch_store_dwordx2 v0, v[2:3], off         | | v0 v[2:3] | scratch store vmcnt bytes=8
global_atomic_add v0, v1, s[2:3]              | | v0 v1 s[2:3] | vmem global atomic vmcnt bytes=4
global_atomic_add v5, v0, v1, s[2:3] sc0      | v5 | v0 v1 s[2:3] | vmem global atomic vmcnt bytes=4
global_atomic_cmpswap_x2 v[6:7], v[0:1], v[2:5], off sc0 | v[6:7] | v[0:1] v[2:5] | vmem global atomic vmcnt bytes=8
flat_atomic_swap v[0:1], v2                   | | v[0:1] v2 | flat atomic vmcnt lgkmcnt bytes=4
buffer_atomic_cmpswap v[2:3], v1, s[4:7], 0 offen sc0 | v2 | v[2:3] v1 s[4:7] | vmem buffer atomic vmcnt bytes=4
buffer_atomic_add v2, off, s[4:7], 0          | | v2 s[4:7] | vmem buffer atomic vmcnt bytes=4
ds_read_b64 v[2:3], v1 offset:8               | v[2:3] | v1 | lds load lgkmcnt bytes=8
ds_read2st64_b32 v[2:3], v1 offset1:1         | v[2:3] | v1 | lds load lgkmcnt bytes=4 places=2
ds_read_u16_d16 v2, v1                        | v2 | v1 | lds load partial lgkmcnt bytes=2
ds_read_b64_tr_b16 v[2:3], v1                 | v[2:3] | v1 | lds load cross_lane lgkmcnt bytes=8
ds_write2_b64 v1, v[2:3], v[4:5] offset1:2    | | v1 v[2:3] v[4:5] | lds store lgkmcnt bytes=8 places=2
ds_write_b8_d16_hi v1, v2                     | | v1 v2 | lds store lgkmcnt bytes=1
ds_add_u32 v1, v2                             | | v1 v2 | lds atomic lgkmcnt bytes=4
ds_add_rtn_f64 v[4:5], v1, v[2:3]             | v[4:5] | v1 v[2:3] | lds atomic lgkmcnt bytes=8
ds_cmpst_rtn_b32 v4, v1, v2, v3               | v4 | v1 v2 v3 | lds atomic lgkmcnt bytes=4
ds_append v1                                  | v1 | m0 | lds atomic lgkmcnt bytes=4
ds_write_addtid_b32 v1                        | | v1 m0 | lds store lgkmcnt bytes=4
s_load_dwordx4 s[4:7], s[0:1], s3 offset:16   | s[4:7] | s[0:1] s3 | scalar smem load exec lgkmcnt bytes=16
s_buffer_load_dword s4, s[8:11], 0x4          | s4 | s[8:11] | scalar smem load exec lgkmcnt bytes=4
s_store_dword s4, s[0:1], 0x0                 | | s4 s[0:1] | scalar smem store exec lgkmcnt bytes=4
s_atomic_cmpswap s[4:5], s[0:1], 0x0 glc      | s4 | s[4:5] s[0:1] | scalar smem atomic exec lgkmcnt bytes=4
s_memtime s[4:5]                              | s[4:5] | | scalar smem exec lgkmcnt
s_dcache_wb                                   | | | scalar smem exec lgkmcnt
s_sendmsg sendmsg(MSG_INTERRUPT)              | | | other exec lgkmcnt
buffer_wbl2 sc1                               | | | other exec vmcnt
buffer_inv sc1                                | | | other exec
ds_bpermute_b32 v1, v2, v3                    | v1 | v2 v3 | lds cross_lane lgkmcnt
ds_swizzle_b32 v1, v2 offset:swizzle(SWAP,1)  | v1 | v2 | lds cross_lane lgkmcnt
v_readlane_b32 s3, v1, m0                     | s3 | v1 m0 | valu cross_lane exec
v_readfirstlane_b32 s3, v1                    | s3 | v1 | valu cross_lane exec
v_writelane_b32 v1, s3, 5                     | v1 | s3 | valu cross_lane partial exec
v_swap_b32 v1, v2                             | v1 v2 | v1 v2 | valu
v_permlane32_swap_b32 v1, v2                  | v1 v2 | v1 v2 | valu cross_lane partial
v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf | v1 | v2 | valu cross_lane partial
v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xf bank_mask:0xf bound_ctrl:1 | v1 | v2 | valu cross_lane
v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xa bank_mask:0xf bound_ctrl:1 | v1 | v2 | valu cross_lane partial
v_add_f32_dpp v1, v2, v3 quad_perm:[0,1,2,3]  | v1 | v2 v3 | valu cross_lane partial
v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:DWORD | v1 | v2 | valu partial
v_mov_b32_sdwa v1, v2 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD | v1 | v2 | valu
v_add_u16_e64 v1, v2, -v3                     | v1 | v2 v3 | valu
v_pack_b32_f16 v1, |v2|, v3 op_sel:[1,0,0]    | v1 | v2 v3 | valu
v_mad_i16 v1, v2, v3, v4 op_sel:[0,0,0,1]     | v1 | v2 v3 v4 | valu partial
v_pk_fma_f16 v1, v2, v3, v4 op_sel:[1,1,1]    | v1 | v2 v3 v4 | valu
v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[1,0,1] | v[0:1] | v[2:3] v4 v[6:7] | valu
v_pk_mul_f32 v[0:1], v[2:3], s[4:5] op_sel:[1,0] op_sel_hi:[1,1] | v[0:1] | v3 s[4:5] | valu
v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] | v[0:1] | v3 v4 | valu
v_rsq_f32_e32 v1, v2                          | v1 | v2 | trans
v_addc_co_u32_e64 v1, s[2:3], v2, v3, s[4:5]  | v1 s[2:3] | v2 v3 s[4:5] | valu
v_cmpx_eq_u32_e32 vcc, 1, v2                  | vcc exec | v2 | valu
v_dot2c_f32_f16_e32 v1, v2, v3                | v1 | v1 v2 v3 | valu
v_cvt_pk_fp8_f32 v1, v2, v3                   | v1 | v2 v3 | valu partial
v_cvt_scalef32_pk32_f32_fp6 v[0:31], v[32:37], v38 | v[0:31] | v[32:37] v38 | valu
v_mfma_f32_16x16x16_f16 a[0:3], v[0:1], v[2:3], a[0:3] | a[0:3] | v[0:1] v[2:3] a[0:3] | mfma cross_lane exec
v_mfma_f32_16x16x4_f32 v[0:3], v4, v5, 0      | v[0:3] | v4 v5 | mfma cross_lane exec
v_smfmac_f32_16x16x32_f16 v[0:3], v[4:5], v[6:9], v10 | v[0:3] | v[0:3] v[4:5] v[6:9] v10 | mfma cross_lane exec
v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3] cbsz:4 blgp:2 | v[0:3] | v[8:11] v[16:21] v[0:3] \
    | mfma cross_lane exec
v_mfma_scale_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15], v40, v41 | v[0:15] \
    | v[16:23] v[24:31] v[0:15] v40 v41 | mfma cross_lane exec
s_and_saveexec_b64 s[2:3], vcc                | s[2:3] exec scc | vcc exec | salu exec
s_cbranch_vccnz LBB0_1                        | | vcc | branch exec
s_cbranch_scc0 LBB0_1                         | | scc | branch exec
s_swappc_b64 s[30:31], s[4:5]                 | s[30:31] | s[4:5] | branch exec
s_getpc_b64 s[4:5]                            | s[4:5] | | salu exec
s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s3     | | s3 | salu exec
s_movrels_b32 s3, s4                          | s3 | m0 | salu relative exec
s_set_gpr_idx_on s3, gpr_idx(SRC0)            | m0 | s3 m0 | salu exec
s_barrier                                     | | | barrier exec
s_endpgm                                      | | | end exec
s_mov_b32 m0, s3                              | m0 | s3 | salu exec
s_mov_b64 vcc, src_shared_base                | vcc | src_shared_base | salu exec
"""


@pytest.mark.parametrize("line", BY_HAND.replace("\\\n", " ").strip().splitlines())
def test_rows_by_hand(line: str) -> None:
    text, results, sources, words = (part.strip() for part in re.split(r"\s\|(?=\s)", line))
    found = effects_of(text)
    assert (names(found.writes), sorted(names(found.reads))) == (results.split(), sorted(sources.split()))
    flags = [name for name in ("load", "store", "atomic", "to_lds", "cross_lane", "partial", "relative")
             if getattr(found, name)]
    numbers = [f"bytes={found.bytes}"] * bool(found.bytes) + [f"places={found.places}"] * (found.places > 1)
    assert {found.kind, *[found.space] * bool(found.space), *flags, *found.raises, *numbers} == {
        *words.split()} - {"exec"}
    assert (found.ignores_exec or found.kind == "wait") == ("exec" in words.split())


def test_addresses_and_data_are_apart() -> None:
    store = effects_of("global_store_dwordx2 v0, v[2:3], s[4:5]")
    assert (names(store.address), names(store.data)) == (["v0", "s[4:5]"], ["v[2:3]"])
    load = effects_of("buffer_load_dword v1, v2, s[4:7], s8 offen")
    assert (names(load.address), names(load.data)) == (["v2", "s[4:7]", "s8"], ["v1"])
    atomic = effects_of("ds_cmpst_rtn_b64 v[8:9], v1, v[2:3], v[4:5]")
    assert (names(atomic.address), names(atomic.data)) == (["v1"], ["v[2:3]", "v[4:5]"])
    assert [span.operand for span in atomic.reads] == [1, 2, 3]


def _llvm(tool: str, chip: str, text: str, *options: str) -> str:
    triple = "-triple=amdgcn" if tool == "llvm-mc-22" else "-mtriple=amdgcn"
    return subprocess.run([tool, triple, f"-mcpu={chip}", *options, "-"], input=text, text=True, capture_output=True,
                          check=True).stdout


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_waits_by_number_are_waits_by_name(chip: str) -> None:
    texts = [f"s_waitcnt vmcnt({v}) expcnt({e}) lgkmcnt({n})" for v, n in ((0, 0), (1, 14), (17, 15), (62, 3), (63, 15))
             for e in (0, 7)]
    encoded = re.findall(r"\[0x(..),0x(..),0x8c,0xbf\]", _llvm("llvm-mc-22", chip, "\n".join(texts), "-show-encoding"))
    assert len(encoded) == len(texts)
    for text, (low, high) in zip(texts, encoded, strict=True):
        wanted = {name: int(n) for name, n in re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", text)}
        plain = {name: n for name, n in wanted.items() if n < {"vmcnt": 63, "lgkmcnt": 15}[name]}
        assert effects_of(text).waits == wanted
        assert effects_of(f"s_waitcnt {int(high + low, 16)}").waits == plain
    assert effects_of("s_waitcnt vmcnt(1) & lgkmcnt_sat(40)").waits == {"vmcnt": 1, "lgkmcnt": 15}
    assert effects_of("s_waitcnt expcnt(0)").waits == {}


def _matrix_text(row: Mfma) -> str:
    a, b = row.a.registers, row.b.registers
    result, third = row.result_registers, "v[96:127]" if row.sparse else ""
    spans = [register_name("v", at, count) for at, count in ((0, result), (40, a), (56, b))]
    spans.append("v96" if third else spans[0])
    return f"{row.name} {', '.join(spans + ['v80', 'v81'] * row.scaled)}"


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_passes_are_those_of_llvm(chip: str) -> None:
    rows = [row for row in INSTRUCTIONS.values() if chip in row.chips]
    texts = []
    for row in rows:
        texts += [f"{_matrix_text(row.with_formats(a, b))} cbsz:{a} blgp:{b}" for a in range(5) for b in range(5)
                  ] if row.mixed else [_matrix_text(row)]
    found = _llvm("llvm-mca-22", chip, "\n".join(texts), "-instruction-tables")
    pressure = re.findall(r"^[ \d.-]*?(\d+\.\d+)[ -]*(v_s?mf\w+.*)$", found.partition("Resource pressure by")[2], re.M)
    assert len(pressure) == len(texts) > 40
    for text, (passes, _) in zip(texts, pressure, strict=True):
        # An 8-bit format halves the rate, which llvm-mca does not see: AMD's peaks on MI355X are 5033 TFLOP/s of fp8,
        # and 10066 of fp6 and fp4.
        halved = "f8f6f4" in text and bool(re.search("(cbsz|blgp):[01]", text))
        assert effects_of(text, chip).passes == float(passes) * (1 + halved), text


def test_an_unknown_instruction_is_an_error_that_names_it() -> None:
    with pytest.raises(UnknownInstruction, match="what 'v_add_f33' reads and writes is not known"):
        effects_of("v_add_f33 v0, v1, v2")
    with pytest.raises(UnknownInstruction, match="'v_mov_b32' has 6 operands, and takes 4 at most"):
        effects_of("v_mov_b32 v0, v1, v2, v3, v4, v5")


def test_names_of_registers_are_those_that_are_read() -> None:
    for name, at in SGPR_NAMES.items():
        count = 1 if name in ("m0", "scc", "src_scc") else 2
        assert register_name("s", at, count) == name.replace("src_scc", "scc")
    for chip in TARGETS:
        assert all(chip in chips_with(name) for name in ROWS if name.startswith("s_"))
    assert replace(effects_of("s_nop 0"), kind="") == replace(effects_of("s_barrier"), kind="")
