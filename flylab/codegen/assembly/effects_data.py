"""What each instruction does with its operands and with registers that its text does not name, in rows.

Names are written with alternatives in braces: `v_{min,max}_f32` is two. What an operand is, by its place:

    r  a result                    s  a source
    t  a result that is a source   a  a source that is an address, or a part of one
    w  a result from memory        d  a source that goes to memory
    u  data that memory replaces   -  no register: a label, a number, a hardware register

An instruction may have fewer operands than letters. Other words of a row: `scc vcc exec m0` are registers it reads,
with `=` before them registers it writes; the rest are fields of `Effects`.
Source: CDNA3 and CDNA4 ISA documents; what counts as waiting, LLVM 22 (tests/codegen/test_effects.py compares).
"""

from __future__ import annotations

# Rows of scalar instructions: operands, words, names.
SCALAR = (
    ("rss", "=scc", """s_{and,or,xor,andn2,orn2,nand,nor,xnor}_{b32,b64} s_{add,sub}_{u32,i32} s_{min,max}_{i32,u32}
     s_lshl{1,2,3,4}_add_u32 s_absdiff_i32 s_{lshl,lshr}_{b32,b64} s_ashr_{i32,i64} s_bfe_{u32,u64,i32,i64}"""),
    ("rss", "scc =scc", "s_{addc,subb}_u32"),
    ("rss", "scc", "s_cselect_{b32,b64}"),
    ("rss", "", "s_mul_i32 s_mul_hi_{u32,i32} s_bfm_{b32,b64} s_pack_{ll,lh,hh}_b32_b16"),
    ("rs", "exec =exec =scc", """s_{and,or,xor,andn1,andn2,orn1,orn2,nand,nor,xnor}_saveexec_b64
     s_{andn1,andn2}_wrexec_b64"""),
    ("rs", "=scc", "s_abs_i32 s_{not,wqm,quadmask}_{b32,b64} s_bcnt{0,1}_i32_{b32,b64}"),
    ("rs", "", """s_mov_{b32,b64} s_movk_i32 s_bitreplicate_b64_b32 s_brev_{b32,b64} s_ff{0,1}_i32_{b32,b64}
     s_flbit_i32 s_flbit_i32_{b32,b64,i64} s_sext_i32_{i8,i16}"""),
    ("ts", "scc", "s_cmov_{b32,b64} s_cmovk_i32"),
    ("ts", "=scc", "s_addk_i32"),
    ("ts", "", "s_mulk_i32 s_bitset{0,1}_{b32,b64}"),
    ("ss", "=scc", """s_cmp_{eq,lg,gt,ge,lt,le}_{i32,u32} s_cmp_{eq,lg}_u64 s_cmpk_{eq,lg,gt,ge,lt,le}_{i32,u32}
     s_bitcmp{0,1}_{b32,b64}"""),
    ("-s", "", "s_setreg_b32"),
    ("--", "", "s_setreg_imm32_b32"),
    ("r-", "", "s_getreg_b32 s_getpc_b64"),
    # Which register is the source, or the result, M0 says: it is not among the spans.
    ("r-", "m0 relative", "s_movrels_{b32,b64}"),
    ("-s", "m0 relative", "s_movreld_{b32,b64}"),
    ("s-", "m0 =m0", "s_set_gpr_idx_{on,idx,mode}"),
    ("", "", "s_set_gpr_idx_off"),
)
BRANCHES = (
    ("-", "", "s_branch s_cbranch_{cdbgsys,cdbguser,cdbgsys_or_user,cdbgsys_and_user}"),
    ("-", "scc", "s_cbranch_scc{0,1}"),
    ("-", "vcc", "s_cbranch_vcc{z,nz}"),
    ("-", "exec", "s_cbranch_exec{z,nz}"),
    ("s", "", "s_setpc_b64"),
    ("rs", "", "s_swappc_b64"),
    ("r-", "", "s_call_b64"),
)
# By kind: instructions that steer waves, time and caches.
OTHERS = (
    ("barrier", "-", "", "s_barrier"),
    ("wait", "-", "", "s_waitcnt"),
    ("end", "-", "", "s_endpgm"),
    ("other", "-", "", """s_{nop,sleep,setprio,incperflevel,decperflevel,sethalt,setkill,wakeup,icache_inv,trap} v_nop
     v_clrexcp buffer_inv"""),
    ("other", "-", "m0", "s_ttracedata"),
    ("other", "-", "raises=lgkmcnt", "s_sendmsg"),
    ("lds", "", "", "ds_nop"),
    ("other", "-", "raises=vmcnt", "buffer_wbl2"),
    ("smem", "", "space=scalar", "s_dcache_{wb,inv,inv_vol,wb_vol}"),
    ("smem", "aa", "space=scalar", "s_dcache_{discard,discard_x2}"),
    ("smem", "-aa", "space=scalar", "s_atc_probe s_atc_probe_buffer"),
    ("smem", "r", "space=scalar", "s_{memtime,memrealtime}"),
)

_INT_COMPARISONS = "{f,lt,eq,le,gt,ne,ge,t}_{i,u}{16,32,64}"
_FLOAT_COMPARISONS = "{f,lt,eq,le,gt,lg,ge,o,u,nge,nlg,ngt,nle,neq,nlt,tru,class}_f{16,32,64}"
# Rows of vector instructions. Each encoding's own words, such as those of DPP, count beside.
VECTOR = (
    ("rsss", "", """v_{add,sub}_{f16,f32,u16,i16,u32,i32} v_{add,mul}_f64 v_mul_{f16,f32,u32_u24,i32_i24,legacy_f32}
     v_subrev_{f16,f32,u16,u32} v_mul_lo_{u16,u32,i32} v_mul_hi_{u32,i32,u32_u24,i32_i24}
     v_fma_{f32,f64} v_fma_legacy_f16 v_fmamk_f32 v_fmaak_f32 v_madmk_f16 v_madak_f16
     v_mad_{u32_u24,i32_i24,u32_u16,i32_i16} v_mad_legacy_{f16,u16,i16} v_fma_mix_f32
     v_{min,max}_{f16,f32,f64,i16,u16,i32,u32} v_{min3,max3,med3}_{f16,f32,i16,u16,i32,u32}
     v_{maximum3,minimum3}_f32 v_{floor,ceil,trunc,rndne,fract}_{f16,f32,f64} v_frexp_mant_{f16,f32,f64}
     v_frexp_exp_{i32_f32,i32_f64,i16_f16} v_ldexp_{f16,f32,f64} v_div_fixup_{f32,f64} v_div_fixup_legacy_f16
     v_cvt_{f32,f64}_{i32,u32} v_cvt_f16_{i16,u16,f32} v_cvt_{i32,u32}_{f32,f64} v_cvt_{i16,u16}_f16
     v_cvt_f32_{f16,f64,bf16,fp8,bf8} v_cvt_f64_f32 v_cvt_f32_ubyte{0,1,2,3} v_cvt_{rpi,flr}_i32_f32
     v_cvt_pk_{bf16,f16,u8}_f32 v_cvt_pk_{i16_i32,u16_u32} v_cvt_pk_f32_{fp8,bf8} v_cvt_pkrtz_f16_f32
     v_cvt_pknorm_{i16,u16}_{f16,f32} v_cvt_norm_{i16,u16}_f16 v_cvt_off_f32_i4
     v_{lerp,msad,sad_hi,sad}_u8 v_sad_{u16,u32} v_{qsad,mqsad}_pk_u16_u8 v_mqsad_u32_u8 v_cube{id,sc,tc,ma}_f32
     v_trig_preop_f64 v_{lshlrev,lshrrev}_{b16,b32,b64} v_ashrrev_{i16,i32,i64} v_sat_pk_u8_i16 v_pack_b32_f16
     v_pk_{add,mad}_{u16,i16} v_pk_add_{f16,f32} v_pk_sub_{u16,i16} v_pk_mul_lo_u16 v_pk_{lshlrev,lshrrev}_b16
     v_pk_ashrrev_i16 v_pk_{min,max}_{i16,u16,f16} v_pk_{mul,fma}_{f16,f32} v_pk_{maximum3,minimum3}_f16 v_pk_mov_b32
     v_mov_{b32,b64} v_accvgpr_{read,write,mov}_b32 v_cndmask_b32 v_{not,bfrev}_b32 v_ffbh_{u32,i32} v_ffbl_b32
     v_{add3,add_lshl,xad}_u32 v_lshl_add_{u32,u64} v_dot8_{i32_i4,u32_u4} v_dot4_{i32_i8,u32_u8}
     v_dot2_{i32_i16,u32_u16,f32_f16,f32_bf16} v_{and,or,xor,xnor,or3,and_or,lshl_or,bfi,bfm,perm}_b32
     v_bfe_{u32,i32} v_bcnt_u32_b32 v_align{bit,byte}_b32 v_mbcnt_{lo,hi}_u32_b32 v_prng_b32 v_bitop3_{b16,b32}"""),
    ("rsss", "kind=trans", """v_{rcp,rsq,sqrt}_{f16,f32,f64} v_rcp_iflag_f32 v_{exp,log,sin,cos}_{f16,f32}
     v_{exp,log}_legacy_f32"""),
    # What these leave of the result's register stays there.
    ("rsss", "partial", """v_fma_f16 v_div_fixup_f16 v_mad_{f16,u16,i16} v_fma_mix{lo,hi}_f16 v_ashr_pk_{i8,u8}_i32
     v_cvt_pk_{fp8,bf8}_f32 v_cvt_sr_{fp8,bf8,f16,bf16}_f32"""),
    ("tss", "", """v_fmac_{f32,f64} v_mac_f16 v_pk_fmac_f16 v_dot2c_{i32_i16,f32_f16,f32_bf16} v_dot4c_i32_i8
     v_dot8c_i32_i4 v_cvt_pkaccum_u8_f32"""),
    ("rrsss", "", "v_{add,sub,subrev,addc,subb,subbrev}_co_u32 v_div_scale_{f32,f64} v_mad_{u64_u32,i64_i32}"),
    ("rsss", "vcc", "v_div_fmas_{f32,f64}"),
    ("rss", "", f"v_cmp_{_INT_COMPARISONS} v_cmp_{_FLOAT_COMPARISONS}"),
    ("rss", "=exec", f"v_cmpx_{_INT_COMPARISONS} v_cmpx_{_FLOAT_COMPARISONS}"),
    ("rss", "cross_lane ignores_exec", "v_readlane_b32 v_readfirstlane_b32"),
    ("rss", "cross_lane ignores_exec partial", "v_writelane_b32"),
    ("tt", "", "v_swap_b32"),
    ("tt", "cross_lane partial", "v_permlane{16,32}_swap_b32"),
    ("rsss", "", """v_cvt_scalef32_{pk_f32,f32}_{fp8,bf8} v_cvt_scalef32_pk_{f16,bf16}_{fp8,bf8,fp4}
     v_cvt_scalef32_pk_f32_fp4 v_cvt_scalef32_pk32_{f32,f16,bf16}_{fp6,bf6} v_cvt_scalef32_pk32_{fp6,bf6}_{f16,bf16}
     v_cvt_scalef32_2xpk16_{fp6,bf6}_f32 v_cvt_scalef32_sr_pk32_{fp6,bf6}_{f32,f16,bf16}"""),
    ("rsss", "partial", """v_cvt_scalef32_f16_{fp8,bf8} v_cvt_scalef32_{pk,sr}_{fp8,bf8}_{f32,f16,bf16}
     v_cvt_scalef32_{pk,sr_pk}_fp4_{f32,f16,bf16}"""),
)

# Elements in memory by the words of a mnemonic: bytes of a lane.
_ELEMENTS = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16,
             "ubyte_d16": 1, "ubyte_d16_hi": 1, "sbyte_d16": 1, "sbyte_d16_hi": 1, "short_d16": 2, "short_d16_hi": 2}
_STORED = {"byte": 1, "short": 2, "byte_d16_hi": 1, "short_d16_hi": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12,
           "dwordx4": 16}
_TO_LDS = {"ubyte": 1, "sbyte": 1, "ushort": 2, "sshort": 2, "dword": 4, "dwordx3": 12, "dwordx4": 16}
# Of formatted accesses the descriptor says what is in memory: here are the bytes of the data in registers.
_FORMATS = {"x": 4, "xy": 8, "xyz": 12, "xyzw": 16, "d16_x": 2, "d16_xy": 4, "d16_xyz": 6, "d16_xyzw": 8}
_INTEGER_ATOMICS = "{swap,cmpswap,add,sub,smin,umin,smax,umax,and,or,xor,inc,dec}"
_ATOMICS = {_INTEGER_ATOMICS: 4, _INTEGER_ATOMICS + "_x2": 8, "{add_f32,pk_add_f16,pk_add_bf16}": 4,
            "{add,min,max}_f64": 8}
_SCALAR_WORDS = {"dword": 4, "dwordx2": 8, "dwordx4": 16, "dwordx8": 32, "dwordx16": 64}
_LDS_TYPES = {"u8": 1, "i8": 1, "u16": 2, "i16": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16, "u8_d16": 1,
              "u8_d16_hi": 1, "i8_d16": 1, "i8_d16_hi": 1, "u16_d16": 2, "u16_d16_hi": 2, "b64_tr_{b16,b8,b4}": 8,
              "b96_tr_b6": 12}
_LDS_STORED = {"b8": 1, "b16": 2, "b8_d16_hi": 1, "b16_d16_hi": 2, "b32": 4, "b64": 8, "b96": 12, "b128": 16}
# Where # stands comes `_rtn`, or nothing.
_LDS_ATOMICS = {"d": ("{add,sub,rsub,inc,dec,min,max}#_u", "{min,max}#_i", "{and,or,xor}#_b", "{add,min,max}#_f"),
                "dd": ("{mskor,cmpst}#_b", "cmpst#_f")}
# Operands of loads and stores by space; atomics have those of stores.
_OPERANDS = {"global": ("waa", "ada"), "flat": ("wa", "ad"), "scratch": ("waa", "ada"), "buffer": ("waaa", "daaa")}

# The operands of atomics that return what was there before, as `sc0` (of scalar ones `glc`) asks for.
RETURNING = {"global": "wada", "flat": "wad", "buffer": "uaaa", "scalar": "uaa"}


def _sized(kind: str, operands: str, words: str, name: str, sizes: dict[str, int]) -> list[tuple[str, str, str, str]]:
    """A row for each size; in `name`, * stands for what names the size."""
    return [(kind, operands, f"{words} bytes={size}" + (" partial" if "d16" in part and "load" in words else ""),
             name.replace("*", part)) for part, size in sizes.items()]


def _vector_memory() -> list[tuple[str, str, str, str]]:
    found = []
    for space, (load, store) in _OPERANDS.items():
        kind = space if space in ("flat", "scratch") else "vmem"
        raises = "raises=vmcnt,lgkmcnt" if space == "flat" else "raises=vmcnt"
        words = f"space={space} {raises}"
        found += _sized(kind, load, f"{words} load", f"{space}_load_*", _ELEMENTS)
        found += _sized(kind, store, f"{words} store", f"{space}_store_*", _STORED)
        if space != "scratch":
            found += _sized(kind, store, f"{words} atomic", f"{space}_atomic_*", _ATOMICS)
        if space in ("global", "scratch"):
            # In the encoding of flat ones, a load straight to LDS raises both counters: LLVM 22 counts it so.
            found += _sized(kind, "aa", f"{words},lgkmcnt load to_lds m0", f"{space}_load_lds_*",
                            {name: size for name, size in _TO_LDS.items() if size <= 4 or space == "global"})
        if space == "buffer":
            for name in ("buffer", "tbuffer"):
                found += _sized(kind, load, f"{words} load", f"{name}_load_format_*", _FORMATS)
                found += _sized(kind, store, f"{words} store", f"{name}_store_format_*", _FORMATS)
            found += _sized(kind, load, f"{words} load", "buffer_load_format_*", {"d16_hi_x": 2})
            found += _sized(kind, store, f"{words} store", "buffer_store_format_*", {"d16_hi_x": 2})
    return found


def _scalar_memory() -> list[tuple[str, str, str, str]]:
    found = []
    for prefix in ("s_", "s_buffer_", "s_scratch_"):
        words = "space=scalar"
        most = 16 if prefix == "s_scratch_" else 64
        found += _sized("smem", "waa", f"{words} load", f"{prefix}load_*",
                        {name: size for name, size in _SCALAR_WORDS.items() if size <= most})
        found += _sized("smem", "daa", f"{words} store", f"{prefix}store_*",
                        {name: size for name, size in _SCALAR_WORDS.items() if size <= 16})
        if prefix != "s_scratch_":
            found += _sized("smem", "daa", f"{words} atomic", f"{prefix}atomic_*",
                            {name: size for name, size in _ATOMICS.items() if name.startswith(_INTEGER_ATOMICS)})
    return found


def _lds() -> list[tuple[str, str, str, str]]:
    found = _sized("lds", "wa", "load", "ds_read_*", _LDS_TYPES)
    found += _sized("lds", "ad", "store", "ds_write_*", _LDS_STORED)
    for bits in (32, 64):
        size, two = {"": bits // 8}, f"ds_{{}}{{2,2st64}}{{}}_b{bits}"
        found += _sized("lds", "wa", "load places=2", two.replace("{}", "read", 1).replace("{}", ""), size)
        found += _sized("lds", "add", "store places=2", two.replace("{}", "write", 1).replace("{}", ""), size)
        found += _sized("lds", "wadd", "atomic places=2", two.replace("{}", "wrxchg", 1).replace("{}", "_rtn"), size)
        found += _sized("lds", "wad", "atomic", f"ds_wrxchg_rtn_b{bits}", size)
        for data, names in _LDS_ATOMICS.items():
            for rtn, result in (("", ""), ("_rtn", "w")):
                for name in names:
                    found += _sized("lds", f"{result}a{data}", "atomic", f"ds_{name.replace('#', rtn)}{bits}", size)
    for rtn, result in (("", ""), ("_rtn", "w")):
        found += _sized("lds", f"{result}ad", "atomic", f"ds_pk_add{rtn}_{{f16,bf16}}", {"": 4})
    found += [("lds", "wadd", "atomic bytes=4", "ds_wrap_rtn_b32"),
              ("lds", "wad", "atomic bytes=8", "ds_condxchg32_rtn_b64"),
              ("lds", "w", "m0 atomic bytes=4", "ds_append ds_consume"),
              ("lds", "w", "m0 load bytes=4", "ds_read_addtid_b32"),
              ("lds", "d", "m0 store bytes=4", "ds_write_addtid_b32")]
    # These move registers between lanes by the hardware of LDS, and touch no memory.
    moves = [("lds", "rss", "cross_lane", "ds_permute_b32 ds_bpermute_b32 ds_swizzle_b32")]
    return moves + [(kind, operands, f"{words} space=lds" + " cross_lane" * ("_tr_" in name), name)
                    for kind, operands, words, name in found]


def all_rows() -> list[tuple[str, str, str, str]]:
    """Every row: kind, operands, words, names."""
    return [*(("salu", *row) for row in SCALAR), *(("branch", *row) for row in BRANCHES), *OTHERS,
            *(("valu", *row) for row in VECTOR), *_vector_memory(), *_scalar_memory(), *_lds()]
