"""Atomics on LDS: each operation in Python's own arithmetic, by AMD's pseudo-code, and what many threads do at once."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flylab.emulator.instructions.lds_atomic import DECODERS
from flylab.errors import DeviceError, OutOfBounds, UnknownInstruction
from tests.emulator.lds_wave import ALL, LDS_BYTES, Wave, active, random_wave, run
from tests.emulator.oracles.pcode_run import Machine
from tests.emulator.toolchain import CHIPS

LANES = np.arange(64)
SOME = 0x00FF_FFFF_0F0F_8001
# What is put in a place, of what is there and the data: integers taken as u (unsigned) or i (signed) of any width.
INTEGERS: dict[str, Callable[..., int]] = {
    "add_u": lambda t, x: t + x, "sub_u": lambda t, x: t - x, "rsub_u": lambda t, x: x - t,
    "inc_u": lambda t, x: 0 if t >= x else t + 1, "dec_u": lambda t, x: x if t == 0 or t > x else t - 1,
    "min_i": min, "max_i": max, "min_u": min, "max_u": max,
    "and_b": lambda t, x: t & x, "or_b": lambda t, x: t | x, "xor_b": lambda t, x: t ^ x,
    "mskor_b": lambda t, x, y: t & ~x | y, "cmpst_b": lambda t, x, y: y if t == x else t, "wrxchg_b": lambda t, x: x,
}


def words(wave: Wave, first: int, bits: int) -> np.ndarray:
    """The lanes of a register, or of two as one number."""
    low = wave.row(first).astype("u8")
    return low if bits == 32 else low | wave.row(first + 1).astype("u8") << np.uint64(32)


def set_words(wave: Wave, first: int, lane: int, bits: int, value: int) -> None:
    """Sets a lane of a register, or of two."""
    for n in range(bits // 32):
        wave.row(first + n)[lane] = value >> 32 * n & 0xFFFFFFFF


def colliding_wave(seed: int, bits: int) -> Wave:
    """Several lanes at each of a few places, whose values are small, near each other, or any."""
    random = np.random.default_rng(seed)
    before = random_wave(seed, random.integers(0, 12, 64) * (bits // 8))
    few = random.integers(0, 4, (10, 64), dtype=np.uint32) * np.uint32(0x55555555)
    for row in (4, 5, 6, 7):
        before.row(row)[:] = np.where(random.random(64) < 0.5, few[row], before.row(row))
    before.lds.view("u4")[:24] = few[0, :24]
    return before


def served(text: str, before: Wave, bits: int, operands: int, returns: bool, exec_: int,
           operation: Callable[..., int]) -> Wave:
    """What lanes leave, one after the other, lowest first: addresses in v2, data from v4, result in v8."""
    after = Wave(before.registers.copy(), before.lds.copy())
    memory = after.lds.view(f"u{bits // 8}")
    data = [words(before, 4 + n * bits // 32, bits) for n in range(operands)]
    for lane in active(exec_):
        at = int(before.row(2)[lane]) // (bits // 8)
        old = int(memory[at])
        memory[at] = operation(old, *(int(d[lane]) for d in data)) & (1 << bits) - 1
        if returns:
            set_words(after, 8, lane, bits, old)
    return after


def text_of(mnemonic: str, bits: int, operands: int, returns: bool) -> str:
    """An instruction with its result in v8, address in v2 and data from v4 on."""
    one = ["v{}", "v[{}:{}]"][bits // 32 - 1]
    places = [one.format(n, n + 1) for n in (4, 4 + bits // 32)[:operands]]
    return f"{mnemonic} " + ", ".join([one.format(8, 9)] * returns + ["v2", *places])


def same(found: Wave, expected: Wave) -> None:
    """Both are equal in all registers and all of LDS."""
    assert np.array_equal(found.lds, expected.lds)
    assert np.array_equal(found.registers, expected.registers)


@pytest.mark.parametrize("returns", [False, True])
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str, bits: int, returns: bool) -> None:
    word, letter = name.split("_")
    mnemonic = f"ds_{word}{'_rtn' * returns}_{letter}{bits}"
    if word == "wrxchg" and not returns:
        assert mnemonic not in DECODERS  # neither has the hardware
        return
    operands = 2 if word in ("mskor", "cmpst") else 1

    def operation(*values: int) -> int:
        top = 1 << (bits - 1)
        return INTEGERS[name](*((v ^ top) - top if letter == "i" else v for v in values))

    for seed, exec_ in enumerate((ALL, SOME, 0)):
        before = colliding_wave(seed, bits)
        text = text_of(mnemonic, bits, operands, returns)
        same(run(text, before, CHIPS[seed % 2], exec_),
             served(text, before, bits, operands, returns, exec_, operation))


def flushed(value: Any, on: bool) -> Any:
    """A numpy float, a denormal made zero of its sign where `on`."""
    kind = type(value)
    tiny = kind(ml_dtypes.finfo(kind).smallest_normal)
    return kind(np.copysign(0.0, float(value))) if on and abs(value) < tiny else value


def float_operation(name: str, type_: Any, mode: int) -> Callable[..., int]:
    """The operation on bits, denormals flushed on the way in (mode bit 0 clear) and of sums out (bit 1 clear)."""
    unsigned = f"u{np.dtype(type_).itemsize}"

    def compute(*bits: int) -> int:
        old, *data = (np.array(b, unsigned).view(type_)[()] for b in bits)
        t, *x = (flushed(v, not mode & 1) for v in (old, *data))
        if name == "add":
            with np.errstate(all="ignore"):
                return int(np.asarray(flushed(type_(t + x[0]), not mode & 2)).view(unsigned))
        chosen = {"min": lambda: x[0] < t, "max": lambda: x[0] > t, "cmpst": lambda: x[0] == t}[name]()
        return bits[-1] if chosen else bits[0]

    return compute


def float_wave(seed: int, type_: Any, bits: int) -> Wave:
    """Places and data of all kinds of floats: zeros, denormals, infinities, quiet NaNs, values near each other."""
    size = np.dtype(type_).itemsize
    info = ml_dtypes.finfo(type_)
    tiny, few = float(info.smallest_normal), float(info.smallest_subnormal)
    kinds = np.array([0.0, -0.0, 1.0, -1.5, 3.0, tiny, -tiny, few, -few, tiny / 2, float(info.max), np.inf, -np.inf,
                      np.nan, float(info.eps), 1 + float(info.eps)], "f8").astype(type_).view(f"u{size}")
    random = np.random.default_rng(seed)
    before = colliding_wave(seed, bits)
    data = random.choice(kinds, (4, 256 // size))
    before.registers[2:6] = data.view("u4")[:, :64]
    before.lds[:128] = random.choice(kinds, 128 // size).view("u1")
    if bits == 64:
        for row in (4, 6):
            pair = random.choice(kinds, 64).astype("u8")
            before.row(row)[:], before.row(row + 1)[:] = pair & np.uint64(0xFFFFFFFF), pair >> np.uint64(32)
    return before


def without_payload(wave: Wave, type_: Any) -> Wave:
    """Every NaN of the places and results made one."""
    def plain(data: np.ndarray) -> np.ndarray:
        view = np.ascontiguousarray(data).view(type_).copy()
        view[np.isnan(view)] = np.nan
        return view.view("u1")

    if np.dtype(type_).itemsize == 8:
        both = np.stack([wave.row(8), wave.row(9)], axis=1)
        return Wave(plain(both), plain(wave.lds[:128]))
    return Wave(plain(wave.row(8)), plain(wave.lds[:128]))


@pytest.mark.parametrize("mode", range(4))
@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("name", ["add", "min", "max", "cmpst"])
def test_floats(name: str, bits: int, mode: int) -> None:
    """By every denormal mode; a comparison that does not hold leaves the bits that are there, denormal or not."""
    type_ = np.float32 if bits == 32 else np.float64
    operands = 2 if name == "cmpst" else 1
    for seed, returns in enumerate((False, True, True)):
        text = text_of(f"ds_{name}{'_rtn' * returns}_f{bits}", bits, operands, returns)
        before = float_wave(seed, type_, bits)
        exec_ = (ALL, SOME)[seed % 2]
        expected = served(text, before, bits, operands, returns, exec_, float_operation(name, type_, mode))
        found = run(text, before, CHIPS[seed % 2], exec_, mode=mode)
        same(without_payload(found, type_), without_payload(expected, type_))


@pytest.mark.parametrize("mode", [0, 3])
@pytest.mark.parametrize("type_", [np.float16, ml_dtypes.bfloat16])
def test_packed_sums(type_: Any, mode: int) -> None:
    one = float_operation("add", type_, mode)
    name = "f16" if type_ is np.float16 else "bf16"
    for seed, returns in enumerate((False, True)):
        text = text_of(f"ds_pk_add{'_rtn' * returns}_{name}", 32, 1, returns)
        before = float_wave(seed, type_, 32)
        expected = served(text, before, 32, 1, returns, ALL,
                          lambda t, x: one(t & 0xFFFF, x & 0xFFFF) | one(t >> 16, x >> 16) << 16)
        same(without_payload(run(text, before, CHIPS[seed], mode=mode), type_), without_payload(expected, type_))


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("stride", ["", "st64"])
def test_two_exchanges(stride: str, bits: int) -> None:
    scale = bits // 8 * (64 if stride else 1)
    for seed, exec_ in enumerate((ALL, SOME)):
        before = random_wave(seed, np.random.default_rng(seed).integers(0, 32, 64) * 8)
        expected = Wave(before.registers.copy(), before.lds.copy())
        memory, data = expected.lds.view(f"u{bits // 8}"), [words(before, n, bits) for n in (8, 4)]
        for lane in active(exec_):
            at = [(int(before.row(2)[lane]) + n * scale) * 8 // bits for n in (1, 2)]
            for n, old in enumerate([int(memory[place]) for place in at]):
                set_words(expected, 4 + n * bits // 32, lane, bits, old)
            for place, values in zip(at, data, strict=True):
                memory[place] = values[lane]
        result, *sources = (("v[4:5]", "v8", "v4") if bits == 32 else ("v[4:7]", "v[8:9]", "v[4:5]"))
        text = f"ds_wrxchg2{stride}_rtn_b{bits} {result}, v2, {sources[0]}, {sources[1]} offset0:1 offset1:2"
        same(run(text, before, CHIPS[seed], exec_), expected)


def test_wrap() -> None:
    for seed in range(3):
        before = colliding_wave(seed, 32)
        same(run("ds_wrap_rtn_b32 v8, v2, v4, v5", before),
             served("", before, 32, 2, True, ALL, lambda t, x, y: t - x if t >= x else t + y))


def test_exchange_by_sign() -> None:
    """The three low bits of the address do not count."""
    def operation(t: int, x: int) -> int:
        low, high = (x >> n & 0x7FFFFFFF if x >> n + 31 & 1 else t >> n & 0xFFFFFFFF for n in (0, 32))
        return low | high << 32

    before = colliding_wave(0, 64)
    expected = served("", before, 64, 1, True, SOME, operation)
    odd = Wave(before.registers.copy(), before.lds)
    odd.row(2)[:] += np.arange(64, dtype="u4") % 8
    expected.row(2)[:] = odd.row(2)
    same(run("ds_condxchg32_rtn_b64 v[8:9], v2, v[4:5]", odd, exec_=SOME), expected)


@pytest.mark.parametrize("exec_", [ALL, SOME, 0])
@pytest.mark.parametrize("name, sign", [("append", 1), ("consume", -1)])
def test_counters(name: str, sign: int, exec_: int) -> None:
    before = random_wave(3)
    expected = Wave(before.registers.copy(), before.lds.copy())
    cell = expected.lds[108:112].view("u4")
    expected.row(4)[active(exec_)] = cell[0]
    cell += np.uint32(sign * exec_.bit_count() & 0xFFFFFFFF)
    same(run(f"ds_{name} v4 offset:8", before, exec_=exec_, m0=100), expected)


@pytest.mark.parametrize("exec_", [ALL, SOME])
def test_addressed_by_the_lane(exec_: int) -> None:
    """M0 counts with its low 16 bits."""
    before, lanes = random_wave(4), active(exec_)
    expected = Wave(before.registers.copy(), before.lds.copy())
    expected.row(4)[lanes] = before.lds[20:276].view("u4")[lanes]
    same(run("ds_read_addtid_b32 v4 offset:4", before, exec_=exec_, m0=0x70010), expected)
    expected = Wave(before.registers.copy(), before.lds.copy())
    expected.lds[20:276].view("u4")[lanes] = before.row(4)[lanes]
    same(run("ds_write_addtid_b32 v4 offset:4", before, exec_=exec_, m0=0x10), expected)


def test_nothing() -> None:
    before = random_wave(5)
    same(run("ds_nop", before), before)


@pytest.mark.parametrize("text, m0, error, message", [
    ("ds_add_u32 v2, v4 offset:2", 0, DeviceError, r"an atomic of 4 bytes at byte 6 of LDS, which is no multiple of 4"),
    ("ds_add_rtn_f64 v[4:5], v2, v[6:7]", 0, DeviceError, r"an atomic of 8 bytes at byte 4 of LDS, .* multiple of 8"),
    ("ds_wrxchg2_rtn_b32 v[4:5], v2, v6, v7 offset1:255", 0, OutOfBounds, r"LDS access of 4 bytes at byte 2048, the"),
    ("ds_max_u64 v2, v[4:5] offset:2048", 0, OutOfBounds, r"LDS access of 8 bytes at byte 2052, the workgroup has"),
    ("ds_condxchg32_rtn_b64 v[4:5], v2, v[6:7] offset:1020", 0, OutOfBounds, r"LDS access of 8 bytes at byte 2048"),
    ("ds_append v4", LDS_BYTES - 3, OutOfBounds, r"LDS access of 4 bytes at byte 2045, the workgroup has"),
    ("ds_consume v4", 0xFFFF0000, OutOfBounds, r"LDS access of 4 bytes at byte -65536"),
    ("ds_read_addtid_b32 v4", LDS_BYTES - 252, OutOfBounds, r"at byte 2048, .*\n.*thread \(63, 0, 0\)"),
    ("ds_write_addtid_b32 v4 offset:65535", 1, OutOfBounds, r"4 bytes at byte 65540"),
    ("ds_add_u32 v2, v4, v5", 0, UnknownInstruction, "3 operands, and takes 2"),
    ("ds_add_rtn_u32 v4, v2, v[4:5]", 0, UnknownInstruction, "names 2 registers where the instruction takes 1"),
    ("ds_wrxchg_b32 v2, v4", 0, UnknownInstruction, "no instruction of this name"),
    ("ds_append v4 gds", 0, UnknownInstruction, "the modifier 'gds'"),
])
def test_refusals(text: str, m0: int, error: type[Exception], message: str) -> None:
    before = random_wave(0, np.where(LANES > 1, LANES * 0 + 1028, 4))
    with pytest.raises(error, match=message):
        run(text, before, exec_=ALL & ~1, m0=m0)


def by_the_document(name: str, old: int, x: int, y: int, bits: int) -> tuple[int, int]:
    """What AMD's pseudo-code leaves in memory and returns, the address being that of its only place."""
    zero = ("u", 32, 0)
    machine = Machine({"MEM": [("b", bits, old)], "ADDR": zero, "OFFSET0": zero, "OFFSET1": zero,
                       "DATA": ("b", bits, x), "DATA2": ("b", bits, y), "dst": ("b", bits, 0)}, "gfx950")
    machine.lambdas["CalcDsAddr"] = (["a", "b", "c"], [("return", ("number", "u", 32, 0))])
    after = machine.run(name)
    return after["MEM"][0][2] & (1 << bits) - 1, after["RETURN_DATA"][2] & (1 << bits) - 1


@pytest.mark.skipif(find_spec("tinygrad") is None, reason="tinygrad, which carries AMD's pseudo-code, is not installed")
@pytest.mark.parametrize("name", [n for n in DECODERS if "rtn" in n and "xchg2" not in n and "condxchg" not in n])
def test_by_the_pseudo_code(name: str) -> None:
    """The document has no denormal mode in mind, so none is flushed; where it gives a NaN any will do."""
    bits = int(name[-2:]) if not name.startswith("ds_pk") else 32
    type_ = {"f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "f16": np.float16}.get(
        name.rpartition("_")[2])
    before = float_wave(1, type_, bits) if type_ else colliding_wave(1, bits)
    operands = 2 if name.startswith(("ds_mskor", "ds_cmpst", "ds_wrap")) else 1
    returned: list[int] = []

    def operation(old: int, x: int, y: int = 0) -> int:
        found, back = by_the_document(name, old, x, y, bits)
        returned.append(back)
        assert back == old
        return found

    expected = served("", before, bits, operands, True, ALL, operation)
    found = run(text_of(name, bits, operands, True), before)
    assert len(returned) == 64
    if type_ is None:
        same(found, expected)
    else:
        same(without_payload(found, type_), without_payload(expected, type_))
