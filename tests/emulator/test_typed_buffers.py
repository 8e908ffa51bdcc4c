"""Formatted buffer accesses against a decoder of single elements, written from the names of the formats."""

from __future__ import annotations

import shutil
import subprocess

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.emulator.instructions.typed import DECODERS
from flylab.emulator.memory.formats import DATA_FORMATS, NUMBERS
from flylab.errors import DeviceError, UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly, kernel, program

FORMATS = [name for name in DATA_FORMATS if name[0] in "123456789"]
KINDS = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "FLOAT")
SMALL = {16: (5, 10), 11: (5, 6), 10: (5, 5)}


def exists(format_: str, kind: str) -> bool:
    """Which pairs there are: 32 bits are never fixed point, 8 bits and 10_10_10_2 no floats."""
    if "32" in format_:
        return kind in ("UINT", "SINT", "FLOAT")
    return kind != "FLOAT" or "16" in format_ or "11" in format_


def component(field: int, bits: int, kind: str) -> float | int:
    """What the bits of one component stand for."""
    signed = field - (1 << bits) if field >> (bits - 1) else field
    if kind == "FLOAT":
        if bits == 32:
            return float(np.array(field, "u4").view("f4"))
        exponent_bits, fraction_bits = SMALL[bits]
        sign = -1.0 if bits == 16 and field >> 15 else 1.0
        exponent, fraction = field >> fraction_bits & 31, field & (1 << fraction_bits) - 1
        if exponent == 31:
            return sign * np.inf if not fraction else np.nan
        scale = 2.0 ** (max(exponent, 1) - 15 - fraction_bits)
        return sign * (fraction + (1 << fraction_bits) * (exponent > 0)) * scale
    return {"UNORM": field / ((1 << bits) - 1), "SNORM": max(signed / ((1 << (bits - 1)) - 1), -1.0),
            "USCALED": float(field), "SSCALED": float(signed), "UINT": field, "SINT": signed}[kind]


def layout(format_: str) -> list[int]:
    """The bits of each component from x on: the name's numbers from its end."""
    return [int(n) for n in reversed(format_.split("_"))]


def decoded(element: bytes, format_: str, kind: str) -> list[float | int]:
    """The four components of an element, x first."""
    found, at, word = [], 0, int.from_bytes(element, "little")
    for bits in layout(format_):
        found.append(component(word >> at & (1 << bits) - 1, bits, kind))
        at += bits
    return [*found, *[0, 0, 0, 1][len(found):]]


def launch(lines: list[str], data: np.ndarray, chip: str = "gfx942", records: int = 1 << 20,
           word: int = 0x27000) -> np.ndarray:
    """Runs lines with v[4:7] of 9 each, the lane in v0 and a descriptor in s[4:7]; gives v[4:7] of each lane back."""
    body = ["s_load_dwordx4 s[8:11], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", "s_mov_b64 s[4:5], s[8:9]",
            f"s_mov_b32 s6, {records}", f"s_mov_b32 s7, {word:#x}", "v_lshlrev_b32 v2, 4, v0",
            *(f"v_mov_b32 v{n}, 0x90009" for n in range(4, 8)), *lines,
            "global_store_dwordx4 v2, v[4:7], s[10:11]", "s_endpgm"]
    out = np.zeros((64, 4), "u4")
    Program.from_assembly(assembly("\n".join(f"  {x}" for x in body), chip, arguments=2, vgprs=32)).launch(
        grid=1, block=64, args=[data, out])
    return out


def bits_of(values: list[list[float | int]], kind: str, half: bool = False) -> np.ndarray:
    """Values as the bits of registers."""
    if kind in ("UINT", "SINT"):
        return np.array(values, "i8").astype("u2" if half else "u4")
    return np.array(values, "f8").astype("f2" if half else "f4").view("u2" if half else "u4")


def random_elements(format_: str) -> np.ndarray:
    """64 elements of random bits, the first all 0, the second all 1."""
    size = sum(layout(format_)) // 8
    data = np.random.default_rng(size).integers(0, 256, (64, size), "u1")
    data[0], data[1] = 0, 255
    if size >= 2:
        data[2:20, 1::2] &= 0x83  # denormals and small ones
    return data


def same(found: np.ndarray, wanted: np.ndarray, kind: str) -> None:
    nan = np.isnan(wanted.view(f"f{wanted.dtype.itemsize}")) & (kind == "FLOAT")
    assert np.array_equal(found[~nan], wanted[~nan])
    assert np.all(np.isnan(found.view(f"f{wanted.dtype.itemsize}")[nan]))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("format_", FORMATS)
def test_loads_of_every_format(format_: str, kind: str) -> None:
    data = random_elements(format_)
    size = data.shape[1]
    text = f"format:[BUF_DATA_FORMAT_{format_},BUF_NUM_FORMAT_{kind}] offen"
    lines = [f"v_mul_u32_u24 v1, {size}, v0", f"tbuffer_load_format_xyzw v[4:7], v1, s[4:7], 0 {text}"]
    if not exists(format_, kind):
        with pytest.raises(DeviceError, match=f"cannot read the format BUF_DATA_FORMAT_{format_}, BUF_NUM_.*_{kind}"):
            launch(lines, data)
        return
    values = [decoded(row.tobytes(), format_, kind) for row in data]
    same(launch(lines, data), bits_of(values, kind), kind)
    lines[1] = f"tbuffer_load_format_d16_xyz v[4:5], v1, s[4:7], 0 {text}"
    with np.errstate(over="ignore"):
        wanted = bits_of([row[:3] for row in values], kind, half=True)
    got = launch(lines, data).view("u2")
    same(np.ascontiguousarray(got[:, :3]), wanted, kind)
    assert np.all(got[:, 3] == 9)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_descriptor_gives_format_and_order(chip: str) -> None:
    """DST_SEL: the registers get the third component, 1, 0 and the first; out of range leaves the 1."""
    data = random_elements("8_8_8_8")
    word = 6 | 1 << 3 | 0 << 6 | 4 << 9 | KINDS.index("UNORM") << 12 | 10 << 15
    lines = ["v_lshlrev_b32 v1, 2, v0", "buffer_load_format_xyzw v[4:7], v1, s[4:7], 0 offen"]
    got = launch(lines, data, chip, 128 + 3, word).view("f4")
    values = np.array([decoded(row.tobytes(), "8_8_8_8", "UNORM") for row in data]).astype("f4")
    inside = np.arange(64)[:, None] < 32
    wanted = np.stack([values[:, 2], np.ones(64), np.zeros(64), values[:, 0]], 1)
    assert np.array_equal(got, np.where(inside, wanted, [[0, 1, 0, 0]]).astype("f4"))
    lines[1] = "buffer_load_format_d16_hi_x v4, v1, s[4:7], 0 offen"
    got = launch(lines, data, chip, 1 << 20, word)[:, 0]
    assert np.array_equal(got, values[:, 2].astype("f2").view("u2").astype("u4") << 16 | 9)


STORED = np.array([0, 1, -1, 0.5, -0.5, 0.25, 1e-3, 2, 300, -300, 70000, np.inf, -np.inf, np.nan, 1.0 / 3, 127.5], "f4")


@pytest.mark.parametrize("format_, kind", [
    ("8_8_8_8", "UNORM"), ("16_16", "UNORM"), ("8", "SNORM"), ("16_16_16_16", "SNORM"), ("2_10_10_10", "UNORM"),
    ("10_10_10_2", "SNORM"), ("8_8", "USCALED"), ("16", "SSCALED"), ("16_16_16_16", "FLOAT"), ("32_32_32", "FLOAT"),
    ("10_11_11", "UNORM")])
def test_stores_of_floats(format_: str, kind: str) -> None:
    """Fixed point is the nearest that the component holds; what is between two is rounded to the even one."""
    size, widths = sum(layout(format_)) // 8, layout(format_)
    data = np.full((64, size), 0xEE, "u1")
    names = "xyzw"[:len(widths)]
    registers = "v8" if len(widths) == 1 else f"v[8:{7 + len(widths)}]"
    given = np.zeros((64, 4), "f4")
    given[:] = STORED[(np.arange(64)[:, None] + 3 * np.arange(4)) % 16]
    data_in = np.concatenate([data.ravel(), np.zeros(-data.size % 4, "u1"), given.ravel().view("u1")])
    place = data_in.size - given.nbytes
    launch([f"v_add_u32 v3, {place}, v2", "global_load_dwordx4 v[8:11], v3, s[8:9]", f"v_mul_u32_u24 v1, {size}, v0",
            f"tbuffer_store_format_{names} {registers}, v1, s[4:7], 0 "
            f"format:[BUF_DATA_FORMAT_{format_},BUF_NUM_FORMAT_{kind}] offen"], data_in, records=32 * size)
    assert np.all(data_in[32 * size:64 * size] == 0xEE)
    for lane in range(32):
        word, at = int.from_bytes(data_in[lane * size:(lane + 1) * size].tobytes(), "little"), 0
        for n, bits in enumerate(widths):
            assert word >> at & (1 << bits) - 1 == encoded(float(given[lane, n]), bits, kind), (lane, n, given[lane, n])
            at += bits


def encoded(x: float, bits: int, kind: str) -> int:
    """A float as the bits of a component."""
    mask, half = (1 << bits) - 1, (1 << (bits - 1)) - 1
    if kind == "FLOAT":
        with np.errstate(over="ignore"):
            value = np.float32(x) if bits == 32 else np.float32(x).astype("f2")
        return int(value.view(f"u{bits // 8}"))
    x = 0.0 if np.isnan(x) else x
    if kind == "UNORM":
        return int(np.rint(np.float32(min(max(x, 0), 1)) * np.float32(mask)))
    if kind == "SNORM":
        return int(np.rint(np.float32(min(max(x, -1), 1)) * np.float32(half))) & mask
    low, high = (0, mask) if kind == "USCALED" else (-half - 1, half)
    return int(min(max(x, low), high)) & mask


def test_stores_of_integers_and_halves() -> None:
    data = np.zeros(64, "u4")
    launch(["v_lshlrev_b32 v1, 2, v0", "v_add_u32 v8, 0x12300, v0", "v_mov_b32 v9, -2",
            "tbuffer_store_format_xy v[8:9], v1, s[4:7], 0 format:[BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_SINT] offen"],
           data)
    assert np.array_equal(data, 0xFFFE0000 | 0x2300 + np.arange(64))
    launch(["v_lshlrev_b32 v1, 2, v0", "v_mov_b32 v8, 0x3c00b800", "v_mov_b32 v9, 0x4000",
            "tbuffer_store_format_d16_xyzw v[8:9], v1, s[4:7], 0 format:[BUF_DATA_FORMAT_8_8_8_8,BUF_NUM_FORMAT_SNORM]"
            " offen"], data)
    assert np.all(data == 0x007F7FC0)  # 2 and 0 are the upper components, -0.5 rounds to the even -64


MAKE, TYPED = "llvm.amdgcn.make.buffer.rsrc.p8.p1", "llvm.amdgcn.raw.ptr.tbuffer.load.v4f32"
FORMAT_LOAD = "llvm.amdgcn.struct.ptr.buffer.load.format.v4f16"


@pytest.mark.parametrize("chip", CHIPS)
def test_what_llvm_makes_of_the_intrinsics(chip: str) -> None:
    """A typed load of 10_10_10_2 unorm (9 and 0), and a format load of halves through a structured descriptor."""
    flags = 0xFAC | 7 << 12 | 12 << 15
    body = f"""
  %ra = call ptr addrspace(8) @{MAKE}(ptr addrspace(1) %a, i16 8, i64 64, i32 {flags})
  %at = mul i32 %t, 4
  %x = call <4 x float> @{TYPED}(ptr addrspace(8) %ra, i32 %at, i32 0, i32 9, i32 0)
  %h = call <4 x half> @{FORMAT_LOAD}(ptr addrspace(8) %ra, i32 %t, i32 0, i32 0, i32 0)
  %w = fpext <4 x half> %h to <4 x float>
  %one = getelementptr <4 x float>, ptr addrspace(1) %c, i32 %t
  %two = getelementptr <4 x float>, ptr addrspace(1) %one, i32 64
  store <4 x float> %x, ptr addrspace(1) %one
  store <4 x float> %w, ptr addrspace(1) %two"""
    device = program(chip, kernel("ptr %a, ptr %c", body, f"""
declare ptr addrspace(8) @{MAKE}(ptr addrspace(1), i16, i64, i32)
declare <4 x float> @{TYPED}(ptr addrspace(8), i32, i32, i32, i32)
declare <4 x half> @{FORMAT_LOAD}(ptr addrspace(8), i32, i32, i32, i32)"""))
    data, out = np.random.default_rng(1).standard_normal((64, 4)).astype("f2"), np.zeros((128, 4), "f4")
    device.launch(grid=1, block=64, args=[data, out])
    words = data.view("u4").ravel()
    # Without an index the 64 records count as bytes.
    wanted = np.zeros((64, 4))
    wanted[:16] = [decoded(word.tobytes(), "2_10_10_10", "UNORM") for word in words[:16]]
    assert np.array_equal(out[:64], wanted.astype("f4")) and np.array_equal(out[64:], data.astype("f4"))


@pytest.mark.parametrize("text, error, message", [
    ("tbuffer_load_format_x v4, off, s[4:7], 0 format:[BUF_DATA_FORMAT_9]", UnknownInstruction, "names no buffer"),
    ("tbuffer_load_format_x v4, off, s[4:7], 0 format:128", UnknownInstruction, "from 0 to 127"),
    ("tbuffer_load_format_xy v4, off, s[4:7], 0", UnknownInstruction, "names 1 registers"),
    ("tbuffer_store_format_x v4, off, s[4:7], 0 format:[BUF_DATA_FORMAT_8_8]", DeviceError,
     "cannot store 1 components to the format BUF_DATA_FORMAT_8_8, BUF_NUM_FORMAT_UNORM"),
    ("tbuffer_store_format_xyz v[4:6], off, s[4:7], 0 format:[BUF_DATA_FORMAT_10_11_11,BUF_NUM_FORMAT_FLOAT]",
     DeviceError, "hint: a store needs all components of its format, and no floats of 10 or 11 bits"),
    ("tbuffer_load_format_x v4, off, s[4:7], 0 format:0", DeviceError, "BUF_DATA_FORMAT_INVALID"),
    ("tbuffer_load_format_x v4, off, s[4:7], 0 format:[BUF_NUM_FORMAT_RESERVED_6]", DeviceError, "RESERVED_6"),
])
def test_refusals(text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        launch([text], np.zeros(64, "u4"))


@pytest.mark.skipif(not shutil.which("llvm-mc-22"), reason="llvm-mc-22 is not here")
@pytest.mark.parametrize("chip", CHIPS)
def test_llvm_knows_the_names(chip: str) -> None:
    texts = [f"tbuffer_load_format_x v4, off, s[4:7], 0 format:[BUF_DATA_FORMAT_{data},BUF_NUM_FORMAT_{number}]"
             for data in DATA_FORMATS for number in NUMBERS]
    for name in DECODERS:
        count = len(name.rsplit("_", 1)[1])
        count = -(-count // 2) if "d16" in name else count
        texts.append(f"{name} {'v4' if count == 1 else f'v[4:{3 + count}]'}, off, s[4:7], 0")
    done = subprocess.run(["llvm-mc-22", "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-show-encoding"],
                          input="\n".join(texts), text=True, capture_output=True)
    assert not done.stderr, done.stderr
    lines = [line for line in done.stdout.splitlines() if "encoding: [" in line]
    codes = [line.split("encoding: [")[1].rstrip("]").split(",") for line in lines]
    # Bits 19 to 25 of the instruction's first dword.
    found = [int("".join(part[2:] for part in reversed(code[:4])), 16) >> 19 & 127 for code in codes[:128]]
    assert found == [data | number << 4 for data in range(16) for number in range(8)]
