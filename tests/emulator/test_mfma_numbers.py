"""The numbers of matrix instructions: against float64 with the bound that the module `matrix` states, and exactly."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.emulator.handlers.matrix import XF32_FRACTION
from flylab.mfma import BITS, FORMATS, INSTRUCTIONS, SCALE_BLOCK, Mfma, mfma
from tests.emulator.matrices import (
    codes_of,
    moderate,
    numpy_type,
    registers,
    result_matrix,
    result_registers,
    values,
)
from tests.emulator.waves import names, run_waves

A, B, C, D, INDEX, SCALE_A, SCALE_B = 0, 16, 32, 64, 96, 98, 99
EVERY = [(chip, name) for name, row in INSTRUCTIONS.items() for chip in row.chips]
DENSE = [(chip, name) for chip, name in EVERY if not mfma(name).sparse and not mfma(name).mixed]
SPARSE = [(chip, name) for chip, name in EVERY if mfma(name).sparse]
MIXED = [(name, a, b) for name in INSTRUCTIONS if mfma(name).mixed for a in range(5) for b in range(5)]
UNIT = {"f64": 2.0**-53, "f32": 2.0**-24}


def run(chip: str, row: Mfma, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None, words: str = "",
        index: np.ndarray | None = None, scales: np.ndarray | None = None, name: str = "",
        **descriptor: int) -> np.ndarray:
    """D as matrices (waves, blocks, m, n), of codes of A (waves, blocks, m, k) and B (waves, blocks, n, k), and C."""
    sources = {f"v{A}": registers(row.a, a), f"v{B}": registers(row.b, b)}
    operands = [names("v", D, row.result_registers), names("v", A, row.a.registers), names("v", B, row.b.registers)]
    if row.sparse:
        assert index is not None
        zero = np.zeros((row.blocks, row.m, row.n), numpy_type(row.result, chip))
        sources |= {f"v{INDEX}": index[..., None, :], f"v{D}": result_registers(row, zero if c is None else c)}
        operands.append(f"v{INDEX}")
    elif c is None:
        operands.append("0")
    else:
        sources[f"v{C}"] = result_registers(row, c)
        operands.append(names("v", C, row.result_registers))
    if scales is not None:
        sources[f"v{SCALE_A}"] = scales
        operands += [f"v{SCALE_A}", f"v{SCALE_B}"]
    found = run_waves(chip, f"{name or row.name} {', '.join(operands)} {words}", sources,
                      (f"v{D}", row.result_registers), **descriptor)
    return result_matrix(row, found, chip)


def addend(row: Mfma, shape: tuple[int, ...], chip: str, seed: int) -> np.ndarray:
    """A random C."""
    random = np.random.default_rng(seed)
    if row.result == "i32":
        return random.integers(-(1 << 31), 1 << 31, shape).astype(np.int32)
    return random.normal(size=shape).astype(numpy_type(row.result, chip))


def check(row: Mfma, found: np.ndarray, products: np.ndarray, c: np.ndarray, sums: int) -> None:
    """The result of float64 products (…, m, n, k), within the bound for so many sums; integers exactly."""
    if row.result == "i32":
        wanted = c.astype(np.int64) + products.sum(-1).astype(np.int64)
        assert np.array_equal(found, wanted.astype(np.int32))
        return
    exact = np.longdouble if row.result == "f64" else np.float64
    wanted = c.astype(exact) + products.astype(exact).sum(-1)
    size = np.abs(c).astype(exact) + np.abs(products).astype(exact).sum(-1)
    step = sums * UNIT[row.result]
    assert np.all(np.abs(found - wanted) <= step / (1 - step) * size)
    assert np.max(np.abs(found)) > 0.5


def products_of(row: Mfma, a: np.ndarray, b: np.ndarray, chip: str) -> np.ndarray:
    """The products (waves, blocks, m, n, k) of codes, in float64."""
    x, y = values(a, row.a_type, chip), values(b, row.b_type, chip)
    if row.a_type == "xf32":
        x, y = (cut(numbers) for numbers in (x, y))
    return x[..., :, None, :] * y[..., None, :, :]


def cut(numbers: np.ndarray) -> np.ndarray:
    """Floats with the fraction that xf32 keeps."""
    bits = numbers.astype(np.float32).view(np.uint32) >> (23 - XF32_FRACTION) << (23 - XF32_FRACTION)
    return bits.view(np.float32).astype(np.float64)


@pytest.mark.parametrize("chip, name", DENSE)
def test_dense(chip: str, name: str) -> None:
    row = mfma(name)
    a = moderate(row.a_type, (8, row.blocks, row.m, row.k), chip, 1)
    b = moderate(row.b_type, (8, row.blocks, row.n, row.k), chip, 2)
    c = addend(row, (8, row.blocks, row.m, row.n), chip, 3)
    check(row, run(chip, row, a, b, c), products_of(row, a, b, chip), c, row.k)


@pytest.mark.parametrize("name, a_format, b_format", MIXED)
def test_mixed_formats(name: str, a_format: int, b_format: int) -> None:
    """Every mix of fp8, bf8, fp6, bf6 and fp4, with scales where the instruction has them."""
    row, chip = mfma(name).with_formats(a_format, b_format), "gfx950"
    a = moderate(row.a_type, (4, 1, row.m, row.k), chip, 1)
    b = moderate(row.b_type, (4, 1, row.n, row.k), chip, 2)
    c = addend(row, (4, 1, row.m, row.n), chip, 3)
    words = f"cbsz:{a_format} blgp:{b_format}"
    products = products_of(row, a, b, chip)
    scales = None
    if row.scaled:
        scales = np.random.default_rng(4).integers(0, 1 << 32, (4, 2, 64), dtype=np.uint32)
        scales = scales & 0x07070707 | 0x7C7C7C7C  # 2**-3 to 1
        bytes_ = (a_format % 4, b_format % 4)
        words += f" op_sel:[{bytes_[0] & 1},{bytes_[1] & 1},0] op_sel_hi:[{bytes_[0] >> 1},{bytes_[1] >> 1},0]"
        of_a, of_b = (scale_matrix(row, scales[:, n] >> 8 * byte & 0xFF) for n, byte in enumerate(bytes_))
        products = products * np.repeat(of_a, SCALE_BLOCK, -1)[:, None, :, None] * (
            np.repeat(of_b, SCALE_BLOCK, -1)[:, None, None, :])
    check(row, run(chip, row, a, b, c, words, scales=scales), products, c, SCALE_BLOCK + row.k // SCALE_BLOCK)


def scale_matrix(row: Mfma, codes: np.ndarray) -> np.ndarray:
    """The scales (waves, m, blocks of K) in registers (waves, 64), as the CDNA4 document lays them out."""
    return np.swapaxes((2.0 ** (codes.astype(np.float64) - 127)).reshape(-1, row.k // SCALE_BLOCK, row.m), 1, 2)


@pytest.mark.parametrize("chip, name", SPARSE)
def test_sparse(chip: str, name: str) -> None:
    """Each set of indices that cbsz and abid select, against the dense product of the A that it stands for."""
    row = mfma(name)
    per_lane, kept = 2 * row.a.items, row.k // 2
    sets = 32 // per_lane
    random = np.random.default_rng(1)
    pairs = np.array([i | j << 2 for j in range(4) for i in range(j)], np.uint32)
    index = np.zeros((8, 64), np.uint32)
    for nibble in range(8):
        index |= random.choice(pairs, (8, 64)) << np.uint32(4 * nibble)
    a = moderate(row.a_type, (8, 1, row.m, kept), chip, 1)
    b = moderate(row.b_type, (8, 1, row.n, row.k), chip, 2)
    c = addend(row, (8, 1, row.m, row.n), chip, 3)
    for words, number in [(f"abid:{n}", n) for n in range(sets)] + [("cbsz:1 abid:1", 0), ("", 0), ("abid:4", 0)]:
        dense = np.zeros((8, 1, row.m, row.k), np.uint64)
        for item in range(row.a.items):
            _, i, stored = np.array([row.a.element(lane, item) for lane in range(64)]).T
            place = index >> np.uint32(per_lane * number + 2 * item) & 3
            dense[np.arange(8)[:, None], 0, i, stored // 2 * 4 + place] = a[:, 0, i, stored]
        found = run(chip, row, a, b, c, words, index=index)
        check(row, found, products_of(row, dense, b, chip), c, kept)


# The lanes of the larger sparse shapes, as the CDNA4 document prints them: first elements of K of the registers v0 and
# v4 of B, for the four rows of 16 lanes.
PRINTED = {"v_smfmac_f32_16x16x64_f16": ([0, 8, 16, 24], [32, 40, 48, 56]),
           "v_smfmac_f32_32x32x32_bf16": ([0, 0, 8, 8], [16, 16, 24, 24]),
           "v_smfmac_i32_16x16x128_i8": ([0, 16, 32, 48], [64, 80, 96, 112]),
           "v_smfmac_f32_32x32x64_fp8_bf8": ([0, 0, 16, 16], [32, 32, 48, 48])}


@pytest.mark.parametrize("name", PRINTED)
def test_the_lanes_of_the_larger_sparse_shapes(name: str) -> None:
    row = mfma(name)
    for register, starts in zip((0, 4), PRINTED[name], strict=True):
        for number, start in enumerate(starts):
            assert row.b.element(16 * number, register * 32 // row.b.bits)[2] == start
            # An index pair counts within four elements of K of its lane, of which A stores two.
            assert row.a.element(16 * number, register // 2 * 32 // row.a.bits)[2] * 2 == start


@pytest.mark.parametrize("name, cbsz", [(n, cbsz) for n in INSTRUCTIONS if mfma(n).broadcasts for cbsz in range(5)
                                        if 1 << cbsz <= mfma(n).blocks])
def test_blocks_of_a_stand_for_others(name: str, cbsz: int) -> None:
    row, chip = mfma(name), "gfx942"
    a = moderate(row.a_type, (1, row.blocks, row.m, row.k), chip, 1)
    b = moderate(row.b_type, (1, row.blocks, row.n, row.k), chip, 2)
    c = addend(row, (1, row.blocks, row.m, row.n), chip, 3)
    size = row.blocks >> cbsz
    for abid in {0, (1 << cbsz) - 1, (1 << cbsz) // 2}:
        taken = a[:, np.arange(row.blocks) % size + size * abid]
        found = run(chip, row, a, b, c, f"cbsz:{cbsz} abid:{abid}")
        check(row, found, products_of(row, taken, b, chip), c, row.k)


@pytest.mark.parametrize("blgp", range(8))
@pytest.mark.parametrize("name", [n for n in INSTRUCTIONS if mfma(n).permutes])
def test_lanes_of_b_permuted(name: str, blgp: int) -> None:
    """The table of the document: what a lane reads in the place of its own registers."""
    row, chip = mfma(name), "gfx950"
    lanes = np.arange(64)
    source = [lanes, lanes % 32, lanes % 32 + 32, (lanes + 16) % 64, lanes % 16, lanes % 16 + 16, lanes % 16 + 32,
              lanes % 16 + 48][blgp]
    a = moderate(row.a_type, (1, row.blocks, row.m, row.k), chip, 1)
    b = moderate(row.b_type, (1, row.blocks, row.n, row.k), chip, 2)
    c = addend(row, (1, row.blocks, row.m, row.n), chip, 3)
    taken = np.zeros_like(b)
    for item in range(row.b.items):
        there, read = (np.array([row.b.element(int(lane), item) for lane in group]).T for group in (lanes, source))
        taken[:, there[0], there[1], there[2]] = b[:, read[0], read[1], read[2]]
    check(row, run(chip, row, a, b, c, f"blgp:{blgp}"), products_of(row, a, taken, chip), c, row.k)


@pytest.mark.parametrize("negative", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 1)])
@pytest.mark.parametrize("name", ["v_mfma_f64_16x16x4_f64", "v_mfma_f64_4x4x4_4b_f64"])
def test_negated_doubles(name: str, negative: tuple[int, int, int]) -> None:
    row, chip = mfma(name), "gfx942"
    a = moderate("f64", (1, row.blocks, row.m, row.k), chip, 1)
    b = moderate("f64", (1, row.blocks, row.n, row.k), chip, 2)
    c = addend(row, (1, row.blocks, row.m, row.n), chip, 3)
    x, y, z = ((-1) ** n for n in negative)
    found = run(chip, row, a, b, c, f"neg:[{negative[0]},{negative[1]},{negative[2]}]")
    check(row, found, products_of(row, a, b, chip) * (x * y), c * z, row.k)


def test_sums_are_fused_and_rise_with_k() -> None:
    """The order and the roundings that the module states, bit by bit, on products that cancel."""
    row, chip = mfma("v_mfma_f32_16x16x16_f16"), "gfx942"
    a = moderate("f16", (4, 1, 16, 16), chip, 5)
    b = moderate("f16", (4, 1, 16, 16), chip, 6)
    c = addend(row, (4, 1, 16, 16), chip, 7)
    sums = c.copy()
    for k in range(16):  # a product of halves and a float: exact in float64, so one rounding
        sums = (sums.astype(np.float64) + products_of(row, a, b, chip)[..., k]).astype(np.float32)
    assert np.array_equal(run(chip, row, a, b, c), sums)


@pytest.mark.parametrize("constant, number", [("1.0", 1.0), ("-4.0", -4.0), ("0.15915494", np.float32(0.15915494)),
                                              ("1", 2.0**-149)])
def test_a_constant_addend(constant: str, number: float) -> None:
    zeros = {f"v{n}": np.zeros((2, 64), np.uint32) for n in (A, B)}
    found = run_waves("gfx942", f"v_mfma_f32_16x16x16_f16 v[64:67], v[0:1], v[16:17], {constant}", zeros, ("v64", 4))
    assert set(found.view(np.float32).ravel().tolist()) == {float(np.float32(number))}


@pytest.mark.parametrize("constant, number", [("1.0", 1.0), ("-16", None)])
def test_a_constant_addend_of_doubles(constant: str, number: float | None) -> None:
    zeros = {f"v{n}": np.zeros((2, 64), np.uint32) for n in (A, B)}
    found = run_waves("gfx942", f"v_mfma_f64_4x4x4_4b_f64 v[64:65], v[0:1], v[16:17], {constant}", zeros, ("v64", 2))
    pairs = found[0, 0].astype(np.uint64) | found[0, 1].astype(np.uint64) << np.uint64(32)
    wanted = np.uint64(2**64 - 16) if number is None else np.float64(number).view(np.uint64)
    assert set(pairs.tolist()) == {int(wanted)}


def special(row: Mfma, x: float, y: float, c: float, chip: str = "gfx942", **descriptor: int) -> np.ndarray:
    """D where one element of A is x, all of B are y, and all of C are c; the rest of A is 0."""
    a = np.zeros((1, row.blocks, row.m, row.k), np.uint64)
    a[..., 0, 0] = codes_of(np.array(x), row.a_type, chip)
    b = np.broadcast_to(codes_of(np.array(y), row.b_type, chip), (1, row.blocks, row.n, row.k))
    addends = np.full((1, row.blocks, row.m, row.n), c, numpy_type(row.result, chip))
    return run(chip, row, a, b, addends, **descriptor)[0, 0, 0, 0]


def test_infinities_and_nans() -> None:
    for name in ("v_mfma_f32_16x16x16_f16", "v_mfma_f32_32x32x8_bf16", "v_mfma_f32_16x16x4_f32",
                 "v_mfma_f32_16x16x8_xf32", "v_mfma_f64_16x16x4_f64"):
        row = mfma(name)
        assert special(row, 2.0, 3.0, np.inf) == np.inf
        assert np.isnan(special(row, 1.0, np.inf, 0.0))  # the other elements of A are 0
        assert special(row, np.inf, 1.0, 1.0) == np.inf
        assert np.isnan(special(row, np.inf, 1.0, -np.inf))
        assert np.isnan(special(row, np.nan, 1.0, 1.0))
        assert np.isnan(special(row, 1.0, 1.0, np.nan))
    assert special(mfma("v_mfma_f32_16x16x16_bf16"), 2.0**127, 2.0, 0.0) == np.inf


def test_a_nan_of_xf32_whose_bits_are_all_low_stays_one() -> None:
    row = mfma("v_mfma_f32_16x16x8_xf32")
    a = np.zeros((1, 1, 16, 8), np.uint64)
    a[..., 0] = 0x7F800001
    b = np.full((1, 1, 16, 8), 0x3F800000, np.uint64)
    assert np.isnan(run("gfx942", row, a, b)).all()


def test_xf32_cuts_the_fraction() -> None:
    row = mfma("v_mfma_f32_32x32x4_xf32")
    assert special(row, 1.0 + 2.0**-10 + 2.0**-11 + 2.0**-23, 1.0, 0.0) == 1.0 + 2.0**-10


@pytest.mark.parametrize("name, x", [("v_mfma_f32_16x16x16_f16", 2.0**-24), ("v_mfma_f32_16x16x16_bf16", 2.0**-130),
                                     ("v_mfma_f64_16x16x4_f64", 2.0**-1050), ("v_mfma_f32_16x16x4_f32", 2.0**-140)])
def test_denormal_sources_stay(name: str, x: float) -> None:
    """Those of 32 bits do where MODE keeps them; the others whatever it says."""
    row = mfma(name)
    for modes in ({}, {"float_denorm_mode_32": 0, "float_denorm_mode_16_64": 0}):
        flushed = bool(modes) and row.a_type == "f32"
        assert special(row, x, 8.0, 0.0, **modes) == (0.0 if flushed else 8 * x)


def test_denormal_addends_and_results_stay_in_every_mode() -> None:
    for mode in (0, 3):
        row = mfma("v_mfma_f32_16x16x4_f32")
        assert special(row, 0.0, 0.0, 2.0**-149, float_denorm_mode_32=mode) == 2.0**-149
        assert special(row, 2.0**-100, 2.0**-40, 0.0, float_denorm_mode_32=mode) == 2.0**-140


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
def test_every_code_of_small_floats(chip: str) -> None:
    """All 256 codes of each 8-bit format of the chip, times 1, as ml_dtypes reads them."""
    for kind in ("fp8", "bf8"):
        row = mfma(f"v_mfma_f32_16x16x32_{kind}_fp8")
        a = np.zeros((16, 1, 16, 32), np.uint64)
        a[:, 0, :, 5] = np.arange(256).reshape(16, 16)
        b = np.full((16, 1, 16, 32), codes_of(np.array(1.0), "fp8", chip), np.uint64)
        found = run(chip, row, a, b)[:, 0, :, 0].ravel()
        assert np.array_equal(found, values(np.arange(256), kind, chip), equal_nan=True)


@pytest.mark.parametrize("number", range(len(FORMATS)))
def test_every_code_of_the_formats_of_f8f6f4(number: int) -> None:
    row, chip = mfma("v_mfma_f32_32x32x64_f8f6f4").with_formats(number, 0), "gfx950"
    codes = np.arange(1 << BITS[row.a_type])
    a = np.zeros((-(-len(codes) // 32), 1, 32, 64), np.uint64)
    a.reshape(-1, 64)[:len(codes), 40] = codes
    b = np.full((len(a), 1, 32, 64), codes_of(np.array(1.0), "fp8", chip), np.uint64)
    found = run(chip, row, a, b, words=f"cbsz:{number}")[:, 0, :, 0].ravel()[:len(codes)]
    assert np.array_equal(found, values(codes, row.a_type, chip), equal_nan=True)


def test_integers_wrap() -> None:
    row = mfma("v_mfma_i32_16x16x32_i8")
    a = np.full((1, 1, 16, 32), 0x80, np.uint64)
    c = np.full((1, 1, 16, 16), 2**31 - 1, np.int32)
    assert set(run("gfx942", row, a, a, c).ravel().tolist()) == {2**31 - 1 + 32 * 2**14 - 2**32}


@pytest.mark.parametrize("scales, wanted", [((0x7F, 0x7F), 448.0 * 448), ((0, 0), 448 * 448 * 2.0**-254),
                                            ((254, 0), 448.0 * 448), ((254, 254), np.inf), ((255, 0), np.nan),
                                            ((0x7F, 255), np.nan), ((200, 60), 448 * 448 * 2.0**6)])
def test_extreme_scales(scales: tuple[int, int], wanted: float) -> None:
    """Neither scale alone goes beyond a float's range; 0xFF is NaN."""
    row = mfma("v_mfma_scale_f32_16x16x128_f8f6f4").with_formats(0, 0)
    a = np.zeros((1, 1, 16, 128), np.uint64)
    a[..., 100] = 0x7E
    registers_ = np.stack([np.full((1, 64), code, np.uint32) for code in scales], 1)
    found = run("gfx950", row, a, a, scales=registers_)
    assert np.array_equal(found, np.full_like(found, np.float32(wanted)), equal_nan=True)


def test_registers_that_nothing_picks_are_not_looked_at() -> None:
    """A sparse product leaves out what the index does not pick, even an infinity."""
    row = mfma("v_smfmac_f32_16x16x32_f16")
    one = np.uint64(0x3C00)
    b = np.where(np.arange(32) % 4 < 2, one, np.uint64(0x7C00)) + np.zeros((1, 1, 16, 1), np.uint64)
    index = np.full((1, 64), 0x44444444, np.uint32)
    found = run("gfx942", row, np.full((1, 1, 16, 16), one), b, index=index)
    assert set(found.ravel().tolist()) == {16.0}
