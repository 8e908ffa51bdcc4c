"""The chip's own instructions that compute with numbers of one thread, a row each, as functions of `fx.rocdl`.

They are called as MLIR's rocdl dialect spells them: the format of the result first (or None), then the operands:
`rocdl.cvt_pk_fp8_f32(fx.Int32, a, b, old, False)`. Source of the rows: LLVM 22's IntrinsicsAMDGPU, and CDNA3's and
CDNA4's ISA documents for what each computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from flylab.targets import TARGETS

GFX950 = ("gfx950",)


@dataclass(frozen=True)
class Operand:
    """A name with what it takes: number formats of MLIR ("i32", "2xf16"; several for a first operand, "T" for that of
    the first), or, of an immediate, how many values it has."""

    name: str
    formats: tuple[str, ...] = ()
    count: int = 0

    @classmethod
    def of(cls, text: str) -> Operand:
        """
        >>> Operand.of("word_sel:2")
        Operand(name='word_sel', formats=(), count=2)
        """
        name, kind = text.split(":")
        return cls(name, (), int(kind)) if kind.isdigit() else cls(name, tuple(kind.split("|")))


@dataclass(frozen=True)
class Row:
    """A function: its name, LLVM's intrinsic, the format of its result, its operands, and the chips that have it."""

    name: str
    intrinsic: str
    result: str
    operands: tuple[Operand, ...]
    chips: tuple[str, ...] = tuple(TARGETS)


def rows(text: str, chips: tuple[str, ...] = tuple(TARGETS)) -> list[Row]:
    """Rows from lines `name result operand:kind ...`; the intrinsic is `llvm.amdgcn.` and the name with dots, or is
    given: `name=intrinsic`."""
    found = []
    for line in text.strip().splitlines():
        given, result, *operands = line.split()
        name, _, intrinsic = given.partition("=")
        intrinsic = intrinsic or "llvm.amdgcn." + name.replace("_", ".")
        found.append(Row(name, intrinsic, result, tuple(map(Operand.of, operands)), chips))
    return found


BOTH = """
    rcp            T      x:f32|f16|f64
    rsq            T      x:f32|f16|f64
    sqrt           T      x:f32|f16|f64
    log            T      x:f32|f16
    exp2           T      x:f32|f16
    sin            T      turns:f32|f16
    cos            T      turns:f32|f16
    fract          T      x:f32|f16|f64
    frexp_mant     T      x:f32|f16|f64
    fmed3          T      a:f32|f16 b:T c:T
    perm           i32    high:i32 low:i32 selector:i32
    alignbit=llvm.fshr i32 high:i32 low:i32 bits:i32
    alignbyte      i32    high:i32 low:i32 bytes:i32
    sad_u8         i32    a:i32 b:i32 sum:i32
    sad_hi_u8      i32    a:i32 b:i32 sum:i32
    sad_u16        i32    a:i32 b:i32 sum:i32
    msad_u8        i32    a:i32 reference:i32 sum:i32
    lerp           i32    a:i32 b:i32 rounding:i32
    ubfe           i32    x:i32 offset:i32 width:i32
    sbfe           i32    x:i32 offset:i32 width:i32
    mul_u24        i32    a:i32 b:i32
    mul_i24        i32    a:i32 b:i32
    mbcnt_lo       i32    mask:i32 sum:i32
    mbcnt_hi       i32    mask:i32 sum:i32
    sdot2          i32    a:2xi16 b:2xi16 sum:i32 clamp:2
    udot2          i32    a:2xi16 b:2xi16 sum:i32 clamp:2
    sdot4          i32    a:i32 b:i32 sum:i32 clamp:2
    udot4          i32    a:i32 b:i32 sum:i32 clamp:2
    sdot8          i32    a:i32 b:i32 sum:i32 clamp:2
    udot8          i32    a:i32 b:i32 sum:i32 clamp:2
    fdot2          f32    a:2xf16 b:2xf16 sum:f32 clamp:2
    cvt_off_f32_i4 f32    x:i32
    cvt_pkrtz      2xf16  a:f32 b:f32
    cvt_pknorm_i16 2xi16  a:f32 b:f32
    cvt_pknorm_u16 2xi16  a:f32 b:f32
    cvt_pk_i16     2xi16  a:i32 b:i32
    cvt_pk_u16     2xi16  a:i32 b:i32
    cvt_pk_u8_f32  i32    x:f32 byte:i32 old:i32
    cvt_pk_fp8_f32 i32    a:f32 b:f32 old:i32 word_sel:2
    cvt_pk_bf8_f32 i32    a:f32 b:f32 old:i32 word_sel:2
    cvt_sr_fp8_f32 i32    a:f32 seed:i32 old:i32 byte_sel:4
    cvt_sr_bf8_f32 i32    a:f32 seed:i32 old:i32 byte_sel:4
    cvt_f32_fp8    f32    x:i32 byte_sel:4
    cvt_f32_bf8    f32    x:i32 byte_sel:4
    cvt_pk_f32_fp8 2xf32  x:i32 word_sel:2
    cvt_pk_f32_bf8 2xf32  x:i32 word_sel:2
"""
CDNA4 = """
    prng_b32            i32    seed:i32
    bitop3              i32    a:i32 b:i32 c:i32 table:256
    ashr_pk_i8_i32      i16    a:i32 b:i32 shift:i32
    ashr_pk_u8_i32      i16    a:i32 b:i32 shift:i32
    fdot2_f32_bf16      f32    a:2xbf16 b:2xbf16 sum:f32 clamp:2
    cvt_sr_bf16_f32     2xbf16 old:2xbf16 x:f32 seed:i32 high:2
    cvt_sr_f16_f32      2xf16  old:2xf16 x:f32 seed:i32 high:2
"""
# Conversions with a scale, a power of two whose exponent is that of the Float32 `scale`. {a} is an 8-bit float, {t} a
# wider one, {s} a 6-bit one.
SCALED_BY_8 = """
    cvt_scalef32_f16_{a}   2xf16 old:2xf16 x:i32 scale:f32 byte_sel:4 high:2
    cvt_scalef32_f32_{a}   f32   x:i32 scale:f32 byte_sel:4
    cvt_scalef32_pk_{a}_f32 2xi16 old:2xi16 a:f32 b:f32 scale:f32 high:2
"""
SCALED_BY_8_AND_WIDE = """
    cvt_scalef32_pk_{t}_{a} 2x{t} x:i32 scale:f32 high:2
    cvt_scalef32_sr_{a}_{t} i32   old:i32 x:{t} seed:i32 scale:f32 byte_sel:4
"""
SCALED_BY_8_AND_16 = """
    cvt_scalef32_pk_{a}_{t} 2xi16 old:2xi16 x:2x{t} scale:f32 high:2
"""
SCALED_BY_4 = """
    cvt_scalef32_pk_fp4_f32 i32   old:i32 a:f32 b:f32 scale:f32 byte_sel:4
"""
SCALED_BY_4_AND_WIDE = """
    cvt_scalef32_pk_{t}_fp4 2x{t} x:i32 scale:f32 byte_sel:4
    cvt_scalef32_sr_pk_fp4_{t} i32 old:i32 x:2x{t} seed:i32 scale:f32 byte_sel:4
"""
SCALED_BY_4_AND_16 = """
    cvt_scalef32_pk_fp4_{t} i32 old:i32 x:2x{t} scale:f32 byte_sel:4
"""
SCALED_BY_6 = """
    cvt_scalef32_2xpk16_{s}_f32 6xi32 even:16xf32 odd:16xf32 scale:f32
"""
SCALED_BY_6_AND_WIDE = """
    cvt_scalef32_pk32_{t}_{s}    32x{t} x:6xi32 scale:f32
    cvt_scalef32_sr_pk32_{s}_{t} 6xi32  x:32x{t} seed:i32 scale:f32
"""
SCALED_BY_6_AND_16 = """
    cvt_scalef32_pk32_{s}_{t} 6xi32 x:32x{t} scale:f32
"""
FLOAT8, FLOAT6, FLOAT16, WIDE = ("fp8", "bf8"), ("fp6", "bf6"), ("f16", "bf16"), ("f32", "f16", "bf16")


def _scaled() -> str:
    made = [SCALED_BY_4, *[t.format(a=a) for t in [SCALED_BY_8] for a in FLOAT8],
            *[SCALED_BY_6.format(s=s) for s in FLOAT6]]
    for t in WIDE:
        made += [SCALED_BY_8_AND_WIDE.format(a=a, t=t) for a in FLOAT8]
        made += [SCALED_BY_6_AND_WIDE.format(s=s, t=t) for s in FLOAT6]
        made += [SCALED_BY_4_AND_WIDE.format(t=t)]
    for t in FLOAT16:
        made += [SCALED_BY_8_AND_16.format(a=a, t=t) for a in FLOAT8]
        made += [SCALED_BY_6_AND_16.format(s=s, t=t) for s in FLOAT6]
        made += [SCALED_BY_4_AND_16.format(t=t)]
    return "\n".join(line for text in made for line in text.strip().splitlines())


ROWS = {row.name: row for row in [*rows(BOTH), *rows(CDNA4, GFX950), *rows(_scaled(), GFX950)]}
