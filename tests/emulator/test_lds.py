"""Reads and writes of LDS against the ISA's own operations in numpy, byte for byte; kernels with LDS; refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.emulator import Program
from flylab.errors import DeviceError, OutOfBounds, UnknownInstruction
from tests.emulator.lds_wave import ALL, LDS_BYTES, Wave, active, random_wave, run
from tests.emulator.toolchain import CHIPS, assembly

MASKS = (ALL, 0x00FF_FFFF_0F0F_8001, 1 << 63, 0)
LANES = np.arange(64)
TABLE = json.loads((Path(__file__).parents[1] / "data/ds_read_tr_gfx950.json").read_text())["maps"]
# of each read: the type in memory, and where it goes in the register
READS = {"u8": ("u1", ""), "i8": ("i1", ""), "u16": ("<u2", ""), "i16": ("<i2", ""), "u8_d16": ("u1", "low"),
         "u8_d16_hi": ("u1", "high"), "i8_d16": ("i1", "low"), "i8_d16_hi": ("i1", "high"), "u16_d16": ("<u2", "low"),
         "u16_d16_hi": ("<u2", "high"), "b32": ("<u4", ""), "b64": ("<u4", ""), "b96": ("<u4", ""), "b128": ("<u4", "")}
WRITES = {"b8": (1, 0), "b16": (2, 0), "b8_d16_hi": (1, 16), "b16_d16_hi": (2, 16), "b32": (4, 0), "b64": (4, 0),
          "b96": (4, 0), "b128": (4, 0)}


def words_of(name: str) -> int:
    """Registers of a width such as b96."""
    return max(int(name[1:].partition("_")[0]) // 32, 1)


def span(first: int, count: int) -> str:
    """The text of registers."""
    return f"v{first}" if count == 1 else f"v[{first}:{first + count - 1}]"


def read(wave: Wave, name: str, address: int, result: int, lane: int, after: Wave) -> None:
    """One lane of ds_read_<name>, as the instruction list has it."""
    type_, half = READS[name]
    for n in range(words_of(name)):
        size = np.dtype(type_).itemsize
        value = int(wave.lds[address + 4 * n:address + 4 * n + size].view(type_)[0])
        old = int(wave.row(result + n)[lane])
        if half == "low":
            value = old & 0xFFFF0000 | value & 0xFFFF
        elif half == "high":
            value = old & 0xFFFF | (value & 0xFFFF) << 16
        after.row(result + n)[lane] = value & 0xFFFFFFFF


def write(wave: Wave, name: str, address: int, data: int, lane: int, after: Wave) -> None:
    """One lane of ds_write_<name>."""
    size, shift = WRITES[name]
    for n in range(words_of(name)):
        value = int(wave.row(data + n)[lane]) >> shift & (1 << 8 * size) - 1
        after.lds[address + 4 * n:address + 4 * n + size] = list(value.to_bytes(size, "little"))


def copied(wave: Wave) -> Wave:
    """A copy, to be changed."""
    return Wave(wave.registers.copy(), wave.lds.copy())


def same(found: Wave, expected: Wave) -> None:
    """Both are equal in all registers and all of LDS."""
    assert np.array_equal(found.registers, expected.registers)
    assert np.array_equal(found.lds, expected.lds)


@pytest.mark.parametrize("exec_", MASKS)
@pytest.mark.parametrize("name", READS)
def test_reads(name: str, exec_: int) -> None:
    for seed, (result, offset) in enumerate(((4, 0), (2, 5), (4, 100))):  # once over the addresses
        before = random_wave(seed)
        expected = copied(before)
        for lane in active(exec_):
            read(before, name, int(before.row(2)[lane]) + offset, result, lane, expected)
        text = f"ds_read_{name} {span(result, words_of(name))}, v2 offset:{offset}"
        same(run(text, before, CHIPS[seed % 2], exec_), expected)


@pytest.mark.parametrize("exec_", MASKS)
@pytest.mark.parametrize("name", WRITES)
def test_writes(name: str, exec_: int) -> None:
    """Places overlap: of two lanes that write one byte the later wins."""
    for seed, (data, offset) in enumerate(((4, 0), (2, 3), (4, 96))):
        before = random_wave(seed)
        expected = copied(before)
        for lane in active(exec_):
            write(before, name, int(before.row(2)[lane]) + offset, data, lane, expected)
        text = f"ds_write_{name} v2, {span(data, words_of(name))} offset:{offset}"
        same(run(text, before, CHIPS[seed % 2], exec_), expected)


@pytest.mark.parametrize("exec_", MASKS[:2])
@pytest.mark.parametrize("offsets", [(0, 1), (3, 0), (1, 1)])
@pytest.mark.parametrize("bits, stride", [(32, ""), (64, ""), (32, "st64"), (64, "st64")])
def test_two_places(bits: int, stride: str, offsets: tuple[int, int], exec_: int) -> None:
    scale = bits // 8 * (64 if stride else 1)
    words, name = bits // 32, f"b{bits}"
    room = LDS_BYTES - scale * max(offsets) - bits // 8
    for seed in range(2):
        before = random_wave(seed, np.random.default_rng(seed).integers(0, room, 64) & -4)
        text = f"offset0:{offsets[0]} offset1:{offsets[1]}"
        for result in (2, 4):
            expected = copied(before)
            for lane in active(exec_):
                for n, offset in enumerate(offsets):
                    read(before, name, int(before.row(2)[lane]) + offset * scale, result + n * words, lane, expected)
            same(run(f"ds_read2{stride}_{name} {span(result, 2 * words)}, v2 {text}", before, CHIPS[seed], exec_),
                 expected)
        expected = copied(before)
        for lane in active(exec_):
            for offset, data in zip(offsets, (8, 4), strict=True):
                write(before, name, int(before.row(2)[lane]) + offset * scale, data, lane, expected)
        same(run(f"ds_write2{stride}_{name} v2, {span(8, words)}, {span(4, words)} {text}", before, CHIPS[seed], exec_),
             expected)


def test_an_offset_left_out_is_zero_and_an_address_may_wrap_around() -> None:
    before = random_wave(1, LANES * 4)
    assert np.array_equal(run("ds_read2_b32 v[4:5], v2 offset1:2", before).row(5), before.lds.view("<u4")[LANES + 2])
    wrapped = Wave(before.registers.copy(), before.lds)
    wrapped.row(2)[:] -= 64
    assert np.array_equal(run("ds_read_b32 v4, v2 offset:64", wrapped).row(4), before.lds.view("<u4")[:64])


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_what_is_written_is_read(data: st.DataObject) -> None:
    """Places that do not overlap, in any order, at any alignment, through any pair of widths of 16 bytes."""
    order = np.array(data.draw(st.permutations(range(64))))
    shift = data.draw(st.integers(0, 15))
    before = random_wave(data.draw(st.integers(0, 99)), order * 16 + shift)
    texts = ["ds_write_b128 v2, v[4:7]", "ds_write2_b64 v2, v[4:5], v[6:7] offset1:1",
             "ds_write_b96 v2, v[4:6]\nds_write_b32 v2, v7 offset:12",
             "ds_write2_b32 v2, v4, v5 offset1:1\nds_write2_b32 v2, v6, v7 offset0:2 offset1:3"]
    reads = [t.replace("write", "read").replace("v2, v[4:7]", "v[8:11], v2") for t in texts[:1]]
    reads += ["ds_read2_b64 v[8:11], v2 offset1:1", "ds_read_b96 v[8:10], v2\nds_read_b32 v11, v2 offset:12"]
    text = data.draw(st.sampled_from(texts)) + "\n" + data.draw(st.sampled_from(reads))
    exec_ = data.draw(st.sampled_from((ALL, 0xF0F0_1234_5678_9ABC)))
    after = run(text, before, exec_=exec_)
    lanes = active(exec_)
    assert np.array_equal(after.registers[6:10, lanes], before.registers[2:6, lanes])


@pytest.mark.parametrize("name, bits, registers", [("b64_tr_b16", 16, 2), ("b64_tr_b8", 8, 2), ("b64_tr_b4", 4, 2),
                                                   ("b96_tr_b6", 6, 3)])
@pytest.mark.parametrize("exec_", [ALL, 0xFFFF_0000_FFFF_FFFF, 0])
def test_transposing_reads(name: str, bits: int, registers: int, exec_: int) -> None:
    for seed, result in enumerate((4, 2)):
        before = random_wave(seed)
        expected = copied(before)
        addresses = before.row(2).astype(int) + 8
        lanes = [int.from_bytes(before.lds[a:a + 4 * registers].tobytes(), "little") for a in addresses]
        for lane in active(exec_):
            sources = TABLE[f"b{bits}"][lane % 16]
            found = sum((lanes[lane // 16 * 16 + other] >> bits * element & (1 << bits) - 1) << bits * j
                        for j, (other, element) in enumerate(sources))
            for n in range(registers):
                expected.row(result + n)[lane] = found >> 32 * n & 0xFFFFFFFF
        same(run(f"ds_read_{name} {span(result, registers)}, v2 offset:8", before, "gfx950", exec_), expected)


def test_transposing_reads_want_whole_groups() -> None:
    message = r"only some lanes of a group of 16 are active\n.*thread \(16, 0, 0\)"
    with pytest.raises(DeviceError, match=message) as found:
        run("ds_read_b64_tr_b16 v[4:5], v2", random_wave(0), "gfx950", 0x1_FFFF)
    assert found.value.hint == "the lanes exchange what they read, so all must take part"
    with pytest.raises(UnknownInstruction, match="gfx942 .*has no such instruction, gfx950 has"):
        run("ds_read_b64_tr_b16 v[4:5], v2", random_wave(0), "gfx942")


OUTSIDE = [
    ("ds_read_b32 v4, v2", 64, 2045, 4, 2045), ("ds_read_b128 v[4:7], v2 offset:16", 64, 2020, 16, 2036),
    ("ds_write_b64 v2, v[4:5]", 64, 1 << 31, 8, -(1 << 31)), ("ds_read_u8 v4, v2", 64, 2048, 1, 2048),
    ("ds_write_b8 v2, v4 offset:1700", 64, 63835, 1, 65535),
    ("ds_read_b32 v4, v2", 64, (1 << 32) - 4, 4, -4),
    ("ds_read2_b32 v[4:5], v2 offset1:255", 64, 1100, 4, 2120),
    ("ds_write2st64_b64 v2, v[4:5], v[6:7] offset0:3", 64, 513, 8, 2049),
    ("ds_read_b96 v[4:6], v2", 40, 2037, 12, 2037), ("ds_write_b16_d16_hi v2, v4", 40, 2047, 2, 2047),
]


@pytest.mark.parametrize("text, lanes, address, size, byte", OUTSIDE)
def test_outside_of_lds(text: str, lanes: int, address: int, size: int, byte: int) -> None:
    """The lowest active lane that is outside is told, with all that finds it; one that is off may be anywhere."""
    before = random_wave(0, LANES * 4)
    before.row(2)[[1, 39, 50]] = address
    exec_ = (1 << lanes) - 1 & ~2
    with pytest.raises(OutOfBounds) as found:
        run(text, before, exec_=exec_)
    assert str(found.value).splitlines()[0].endswith(
        f"an LDS access of {size} bytes at byte {byte}, the workgroup has 2048 bytes (2048 static + 0 dynamic)")
    assert "in block (0, 0, 0), thread (39, 0, 0) of kernel 'k'" in str(found.value)
    assert f"'{text}'" in str(found.value)


def small(text: str, shared: int = 0, static: int = 0) -> np.ndarray:
    """A kernel that stores v4 after these instructions; v1 is 4 times the thread's number."""
    body = f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  v_mov_b32 v4, 0
  {text}
  global_store_dword v1, v4, s[4:5]
  s_endpgm"""
    found = np.zeros(64, "u4")
    Program.from_assembly(assembly(body, group_segment_fixed_size=static)).launch(grid=1, block=64, args=[found],
                                                                                  shared=shared)
    return found


@pytest.mark.parametrize("static, shared", [(256, 0), (0, 256), (100, 156)])
def test_static_and_dynamic_lds_are_one(static: int, shared: int) -> None:
    assert np.array_equal(small("ds_write_b32 v1, v0\n  ds_read_b32 v4, v1", shared, static), LANES)


def test_too_little_lds() -> None:
    with pytest.raises(OutOfBounds, match=r"at byte 252, the workgroup has 255 bytes \(100 static \+ 155 dynamic\)\n"
                                          r".*thread \(63, 0, 0\)") as found:
        small("ds_read_b32 v4, v1", 155, 100)
    assert found.value.hint and "more dynamic LDS is needed: shared=" in found.value.hint
    with pytest.raises(OutOfBounds, match="an LDS access of 4 bytes at byte 0, the workgroup has none\n") as found:
        small("ds_read_b32 v4, v1")
    assert found.value.hint == "launch it with dynamic LDS: shared= is its number of bytes"


def test_what_nobody_wrote_is_no_number() -> None:
    found = small("ds_read_b32 v4, v1", static=256)
    assert (found == 0x7FFF7FFF).all() and np.isnan(found.view("f4")).all() and np.isnan(found.view("f2")).all()


def test_each_workgroup_begins_with_an_untouched_lds() -> None:
    """A block that reads before it writes finds nothing of the block before."""
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  ds_read_b32 v4, v1 offset:60000
  ds_write_b32 v1, v0 offset:60000
  s_lshl_b32 s3, s2, 8
  v_add_u32 v2, s3, v1
  global_store_dword v2, v4, s[4:5]
  s_endpgm"""
    found = np.zeros(64 * 50, "u4")
    Program.from_assembly(assembly(body, group_segment_fixed_size=60256)).launch(grid=50, block=64, args=[found])
    assert (found == 0x7FFF7FFF).all()


@pytest.mark.parametrize("text, message", [
    ("ds_read_b64 v4, v2", "it names 1 registers where the instruction takes 2"),
    ("ds_read_b32 v4, s2", "a scalar register stands where it takes a vector register"),
    ("ds_read_b32 v4", "it has 1 operands, and takes 2"),
    ("ds_write_b32 v2, 7", "a constant stands where it takes a vector register"),
    ("ds_read_b32 v4, v2 gds", "the modifier 'gds'"), ("ds_read_b32 v4, v2 offset:65536", "no number from 0 to 65535"),
    ("ds_read2_b32 v[4:5], v2 offset1:256", "no number from 0 to 255"),
    ("ds_read2_b32 v[4:5], v2 offset:4", "the modifier 'offset:4'"),
    ("ds_read2_b64 v[4:5], v2", "it names 2 registers where the instruction takes 4"),
    ("ds_write2_b32 v2, v4", "it has 2 operands, and takes 3"),
    ("ds_gws_barrier v2 gds", "it synchronises waves across workgroups"),
])
def test_refusals(text: str, message: str) -> None:
    with pytest.raises(UnknownInstruction, match=f"'{text.split()[0]}.*{message}"):
        run(text, random_wave(0))
