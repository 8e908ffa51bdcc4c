"""Conversions with a scale (gfx950), against ml_dtypes and doubles; the text forms are those that LLVM prints."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flylab.dtypes import DTYPES
from flylab.emulator import Program
from flylab.errors import UnknownInstruction
from tests.emulator import instruction_rows
from tests.emulator.snippets import values
from tests.emulator.toolchain import assembly

CHIP = "gfx950"
NARROW = {"fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn,
          "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn}
BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
WIDE = {"f32": np.dtype("f4"), "f16": np.dtype("f2"), "bf16": np.dtype(ml_dtypes.bfloat16)}
COUNT = 1024


def floats(wide: str, seed: int) -> np.ndarray:
    """Numbers near those of the small formats, and some of any size; none is NaN."""
    random = np.random.default_rng(seed)
    found = np.where(random.random(COUNT) < 0.7, random.normal(size=COUNT) * 2.0 ** random.integers(-8, 8, COUNT),
                     values("float", COUNT, seed).view("f4").astype("f8"))
    with np.errstate(all="ignore"):
        found = found.astype("f4").astype(WIDE[wide])
    return np.where(np.isnan(found), found.dtype.type(0.75), found).astype(WIDE[wide])


def scales(seed: int, low: int = 110, high: int = 145) -> np.ndarray:
    """Floats with any sign and fraction, of which the exponent alone counts; two at the ends of its range."""
    random = np.random.default_rng(seed)
    exponents = random.integers(low, high, COUNT)
    exponents[:2] = 0, 254
    words = exponents.astype("u4") << 23 | random.integers(0, 1 << 23, COUNT).astype("u4")
    return (words | random.integers(0, 2, COUNT).astype("u4") << 31).view("f4")


def power(scale: np.ndarray) -> np.ndarray:
    return np.ldexp(1.0, (scale.view("u4") >> 23 & 0xFF).astype("i4") - 127)


def codes(name: str, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """By ml_dtypes, from the exact quotient in double."""
    with np.errstate(all="ignore"):
        return (x.astype("f8") / power(scale)).astype(NARROW[name]).view("u1").astype("u4")


def numbers(name: str, code: np.ndarray, scale: np.ndarray, wide: str) -> np.ndarray:
    small = (code & (1 << BITS[name]) - 1).astype("u1").view(NARROW[name]).astype("f8")
    with np.errstate(all="ignore"):
        return (small * power(scale)).astype("f4").astype(WIDE[wide])


def same(found: np.ndarray, wanted: np.ndarray) -> bool:
    """The same numbers, a NaN for a NaN."""
    return np.array_equal(found.astype("f8"), wanted.astype("f8"), equal_nan=True)


def packed(wide: str, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Two 16-bit floats in a register."""
    return x.view("u2").astype("u4") | y.view("u2").astype("u4") << 16


def run(text: str, *sources: np.ndarray, result: str = "u4", **descriptor: int) -> np.ndarray:
    return instruction_rows.run(text, *sources, result=result, chip=CHIP, **descriptor)


def pairs(wide: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return floats(wide, 1), floats(wide, 2), scales(3)


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_pairs_to_small_floats(name: str, wide: str) -> None:
    x, y, scale = pairs(wide)
    sources = (x, y, scale) if wide == "f32" else (packed(wide, x, y), scale)
    registers = "v4, v6, v8" if wide == "f32" else "v4, v6"
    wanted = codes(name, x, scale) | codes(name, y, scale) << BITS[name]
    kept = np.uint32(0xAAAAAAAA)
    places = {0: "", 1: {"f32": "op_sel:[0,0,0,1]"}.get(wide, "op_sel:[0,0,1]")}
    if name == "fp4":
        places = {0: "", 1: "op_sel:[0,0,1,0]", 2: "op_sel:[0,0,0,1]", 3: "op_sel:[0,0,1,1]"}
    for n, words in places.items():
        size = 2 * BITS[name]
        found = run(f"v_cvt_scalef32_pk_{name}_{wide} v12, {registers} {words}", *sources)
        mask = np.uint32(((1 << size) - 1) << (size * n))
        assert np.array_equal(found, kept & ~mask | (wanted << np.uint32(size * n)) & mask)


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", ["fp8", "bf8", "fp4"])
def test_small_floats_to_pairs(name: str, wide: str) -> None:
    words = np.random.default_rng(5).integers(0, 1 << 32, COUNT, dtype="u4")
    scale, size = scales(6), 2 * BITS[name]
    result, register = ("u8", "v[12:13]") if wide == "f32" else ("u4", "v12")
    places = {0: "", 1: "op_sel:[1,0,0]"} | ({2: "op_sel:[0,1,0]", 3: "op_sel:[1,1,0]"} if name == "fp4" else {})
    for n, text in places.items():
        found = run(f"v_cvt_scalef32_pk_{wide}_{name} {register}, v4, v6 {text}", words, scale, result=result)
        found = found.view(WIDE[wide]).reshape(COUNT, -1)
        for half in range(2):
            code = words >> np.uint32(size * n + BITS[name] * half)
            assert same(found[:, half], numbers(name, code, scale, wide))


@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_one_byte_to_a_float_or_half(name: str) -> None:
    words = np.random.default_rng(7).integers(0, 1 << 32, COUNT, dtype="u4")
    scale = scales(8)
    for n, text in enumerate(("", "op_sel:[1,0,0]", "op_sel:[0,1,0]", "op_sel:[1,1,0]")):
        code = words >> np.uint32(8 * n)
        found = run(f"v_cvt_scalef32_f32_{name} v12, v4, v6 {text}", words, scale, result="f4")
        assert same(found, numbers(name, code, scale, "f32"))
        for upper in range(2):
            both = (text[:-2] + f"{upper}]") if text else f"op_sel:[0,0,{upper}]"
            found = run(f"v_cvt_scalef32_f16_{name} v12, v4, v6 {both}", words, scale).view("u2").reshape(-1, 2)
            assert same(found[:, upper].copy().view("f2"), numbers(name, code, scale, "f16"))
            assert set(found[:, 1 - upper].tolist()) == {0xAAAA}


def prng(x: int) -> int:
    return (x << 1 ^ (197 if x >> 31 else 0)) & 0xFFFFFFFF


def stochastic(name: str, x: float, scale: float, random: int) -> int:
    """The code of the lower neighbour, or of the upper where the random bits reach its share; saturating as the format.

    Independent of the codec: neighbours from ml_dtypes' table, shares in exact doubles.
    """
    form = DTYPES[{"fp8": "Float8E4M3FN", "bf8": "Float8E5M2", "fp6": "Float6E2M3FN", "bf6": "Float6E3M2FN",
                   "fp4": "Float4E2M1FN"}[name]].encoding
    assert form is not None
    every = np.arange(1 << BITS[name] - 1, dtype="u1").view(NARROW[name]).astype("f8")
    finite = every[np.isfinite(every)]
    value = abs(float(x)) / float(power(np.array([scale], "f4"))[0])
    sign = int(np.signbit(x)) << BITS[name] - 1
    bits = 23 - form.mantissa
    low = int(np.searchsorted(finite, value, side="right")) - 1
    step = finite[low] - finite[low - 1] if low == len(finite) - 1 else finite[low + 1] - finite[low]
    if low == len(finite) - 1 and value >= finite[low] + step or np.isinf(value):
        return sign | form.overflow
    share = int((value - finite[low]) / step * 2**bits)
    up = share + (random >> 32 - bits) >= 1 << bits
    return sign | (low + up if low + up < len(finite) else form.overflow)


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", ["fp8", "bf8"])
def test_stochastic_rounding_of_one(name: str, wide: str) -> None:
    x, _, scale = pairs(wide)
    random = np.random.default_rng(9).integers(0, 1 << 32, COUNT, dtype="u4")
    words = x if wide == "f32" else packed(wide, x, x[::-1].copy())
    for n, text in ((0, ""), (1, "op_sel:[0,0,1,0]"), (2, "op_sel:[0,0,0,1]")):
        found = run(f"v_cvt_scalef32_sr_{name}_{wide} v12, v4, v6, v8 {text}", words, random, scale)
        wanted = [stochastic(name, *row) for row in zip(x.astype("f8"), scale, random.tolist(), strict=True)]
        assert np.array_equal(found >> np.uint32(8 * n) & 0xFF, np.array(wanted))
        assert set((found & ~np.uint32(0xFF << 8 * n)).tolist()) == {0xAAAAAAAA & ~(0xFF << 8 * n)}


@pytest.mark.parametrize("wide", WIDE)
def test_stochastic_rounding_of_two(wide: str) -> None:
    x, y, scale = pairs(wide)
    random = np.random.default_rng(10).integers(0, 1 << 32, COUNT, dtype="u4")
    words = np.stack([x, y], 1).view("u8").ravel() if wide == "f32" else packed(wide, x, y)
    registers = "v[4:5], v6, v8" if wide == "f32" else "v4, v6, v8"
    found = run(f"v_cvt_scalef32_sr_pk_fp4_{wide} v12, {registers}", words, random, scale)
    wanted = [stochastic("fp4", a, s, r) | stochastic("fp4", b, s, prng(r)) << 4
              for a, b, s, r in zip(x.astype("f8"), y.astype("f8"), scale, random.tolist(), strict=True)]
    assert np.array_equal(found & 0xFF, np.array(wanted))


def test_a_scale_that_is_no_number_makes_nans() -> None:
    x, scale = np.ones(256, "f4"), np.full(256, np.inf, "f4")
    assert set((run("v_cvt_scalef32_pk_fp8_f32 v12, v4, v4, v6", x, scale) & 0xFFFF).tolist()) == {0x7F7F}
    assert np.isnan(run("v_cvt_scalef32_f32_fp8 v12, v4, v6", x, scale, result="f4")).all()


def test_saturation_and_constants() -> None:
    x = np.full(256, 3e38, "f4")
    assert run("v_cvt_scalef32_pk_fp8_f32 v12, v4, -v4, 0.5", x)[0] & 0xFFFF == 0xFF7F
    assert run("v_cvt_scalef32_pk_fp8_f32 v12, v4, -v4, 0.5", x, fp16_overflow=1)[0] & 0xFFFF == 0xFE7E
    assert run("v_cvt_scalef32_pk_fp4_f32 v12, |v4|, -v4, 0.5", x)[0] & 0xFF == 0xF7


@pytest.mark.parametrize("text, why", [
    ("v_cvt_scalef32_pk_fp8_f16 v12, -v4, v6", "takes no source modifier"),
    ("v_cvt_scalef32_sr_fp8_f32 v12, v4, v6, v8 op_sel:[1,0,0,0]", "names more than the byte of the result"),
    ("v_cvt_scalef32_pk_f32_fp8 v[12:13], v4, v6 op_sel:[0,1,0]", "names more than the half of a source"),
    ("v_cvt_scalef32_f32_fp8 v12, v4, v6 op_sel:[0,0,1]", "names more than the byte of a source"),
    ("v_cvt_scalef32_pk32_f32_fp6 v[0:15], v[4:9], v6", "16 registers where the instruction takes 32")])
def test_refusals(text: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match=why):
        run(text, np.zeros(256, "f4"))
    with pytest.raises(UnknownInstruction, match="gfx942"):
        instruction_rows.run(text, np.zeros(256, "f4"), result="f4", chip="gfx942")


THIRTY_TWO = """
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32_e32 v70, 8, v0
  v_lshlrev_b32_e32 v71, 7, v0
  s_waitcnt lgkmcnt(0)
  {loads}
  s_waitcnt vmcnt(0)
  {text}
  s_mov_b64 exec, -1
  v_lshlrev_b32_e32 v71, 7, v0
  {stores}
  s_endpgm
"""


def wide_run(text: str, rows: np.ndarray) -> np.ndarray:
    """v72 and on after instructions on a row for each lane: v2 to v33, the scale in v34, random bits in v35."""
    loads = "\n  ".join(f"global_load_dword v{2 + n}, v70, s[4:5] offset:{4 * n}" for n in range(34))
    stores = "\n  ".join(f"global_store_dword v71, v{72 + n}, s[6:7] offset:{4 * n}" for n in range(32))
    body = THIRTY_TWO.format(loads=loads, text=text, stores=stores)
    found = np.zeros((64, 32), "u4")
    data = np.zeros((64, 64), "u4")
    data[:, :rows.shape[1]] = rows
    Program.from_assembly(assembly(body, CHIP, arguments=2, vgprs=112)).launch(grid=1, block=64, args=[data, found])
    return found


def bit_rows(code: np.ndarray) -> np.ndarray:
    """Rows of 32 codes of 6 bits as six words each."""
    found = np.zeros((len(code), 6), "u4")
    for n, row in enumerate(code.tolist()):
        whole = sum(c << 6 * k for k, c in enumerate(row))
        found[n] = [whole >> 32 * w & 0xFFFFFFFF for w in range(6)]
    return found


def table(wide: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """64 rows of 32 floats, their registers, scales, random bits."""
    x = np.concatenate([floats(wide, seed), floats(wide, seed + 1)]).reshape(64, 32)
    registers = x.view("u4").reshape(64, -1)
    random = np.random.default_rng(seed).integers(0, 1 << 32, 64, dtype="u4")
    return x, registers, scales(seed)[:64], random


def source(registers: np.ndarray, scale: np.ndarray, random: np.ndarray) -> np.ndarray:
    padded = np.zeros((64, 32), "u4")
    padded[:, :registers.shape[1]] = registers
    return np.concatenate([padded, scale.view("u4")[:, None], random[:, None]], 1)


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_thirty_two_to_small_floats(name: str, wide: str) -> None:
    x, registers, scale, random = table(wide, 20)
    rows, last = source(registers, scale, random), 33 if wide == "f32" else 17
    text = f"v_cvt_scalef32_pk32_{name}_{wide} v[72:77], v[2:{last}], v34"
    order = x
    if wide == "f32":  # two sources, whose floats alternate
        text = f"v_cvt_scalef32_2xpk16_{name}_f32 v[72:77], v[2:17], v[18:33], v34"
        order = np.stack([x[:, :16], x[:, 16:]], 2).reshape(64, 32)
    wanted = np.stack([codes(name, order[:, k].copy(), scale) for k in range(32)], 1)
    assert np.array_equal(wide_run(text, rows)[:, :6], bit_rows(wanted))
    over = text.replace("v[72:77]", "v[2:7]") + "\n  " + "\n  ".join(f"v_mov_b32 v{72 + n}, v{2 + n}" for n in range(6))
    assert np.array_equal(wide_run(over, rows)[:, :6], bit_rows(wanted))  # the result may lie on the sources


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_thirty_two_by_random_bits(name: str, wide: str) -> None:
    x, registers, scale, random = table(wide, 30)
    last = 33 if wide == "f32" else 17
    found = wide_run(f"v_cvt_scalef32_sr_pk32_{name}_{wide} v[72:77], v[2:{last}], v35, v34",
                     source(registers, scale, random))
    wanted = np.zeros((64, 32), "u4")
    for n in range(64):
        state = int(random[n])
        for k in range(32):
            wanted[n, k] = stochastic(name, float(x[n, k]), scale[n], state)
            state = prng(state)
    assert np.array_equal(found[:, :6], bit_rows(wanted))


@pytest.mark.parametrize("wide", WIDE)
@pytest.mark.parametrize("name", ["fp6", "bf6"])
def test_thirty_two_from_small_floats(name: str, wide: str) -> None:
    code = np.random.default_rng(40).integers(0, 64, (64, 32), dtype="u4")
    scale = scales(41)[:64]
    rows = source(bit_rows(code), scale, scale.view("u4"))
    count = 32 if wide == "f32" else 16
    found = wide_run(f"v_cvt_scalef32_pk32_{wide}_{name} v[72:{71 + count}], v[2:7], v34", rows)[:, :count].copy()
    wanted = np.stack([numbers(name, code[:, k], scale, wide) for k in range(32)], 1)
    assert same(found.view(WIDE[wide]), wanted)
    text = f"v_cvt_scalef32_pk32_{wide}_{name} v[2:{1 + count}], v[2:7], s9\n  "  # the result lies on the source
    text = "s_mov_b32 s9, 2.0\n  " + text + "\n  ".join(f"v_mov_b32 v{72 + n}, v{2 + n}" for n in range(count))
    wanted = np.stack([numbers(name, code[:, k], np.full(64, 2.0, "f4"), wide) for k in range(32)], 1)
    assert same(wide_run(text, rows)[:, :count].copy().view(WIDE[wide]), wanted)


def test_thirty_two_leave_inactive_lanes() -> None:
    rows = source(np.full((64, 6), 0x41041041, "u4"), np.ones(64, "f4"), np.zeros(64, "u4"))
    fill = "\n  ".join(f"v_mov_b32 v{72 + n}, 0x55" for n in range(32))
    found = wide_run(f"{fill}\n  s_mov_b64 exec, 0x5\n  v_cvt_scalef32_pk32_f32_fp6 v[72:103], v[2:7], 1.0", rows)
    assert (found[[1, 3, 60]] == 0x55).all() and (found[[0, 2]].view("f4") != 0).any()
