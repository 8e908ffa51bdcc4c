"""Accesses outside of a tensor: windows of addresses, strided views, what descriptors cut off; against brute force."""

from __future__ import annotations

from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from flylab.emulator import Buffer, Program
from flylab.emulator.arrays import View
from flylab.emulator.windows import ARRAYS, END, GAP, with_windows
from flylab.errors import ArgumentError, OutOfBounds
from tests.emulator.toolchain import CHIPS, assembly, element, kernel, program

# Of each access: bytes, and of a scalar load those that count: the first of each dword.
WIDTHS = {"ubyte": 1, "ushort": 2, "dword": 4, "dwordx2": 8, "dwordx3": 12, "dwordx4": 16}
ACCESSES = {f"{space}_{kind}": size for space, loads in (("global_load", WIDTHS), ("flat_load", WIDTHS))
            for kind, size in ((kind, loads[kind]) for kind in loads)}
ACCESSES |= {f"global_store_{kind}": size for kind, size in (("byte", 1), ("short", 2), *list(WIDTHS.items())[2:])}
ACCESSES |= {f"buffer_load_{kind}": size for kind, size in WIDTHS.items()}
ACCESSES |= {"global_atomic_add": 4, "global_atomic_add_x2": 8, "buffer_store_dwordx2": 8}
SCALAR = {"s_load_dword": 4, "s_load_dwordx2": 8, "s_load_dwordx16": 64, "s_buffer_load_dwordx4": 16}
BUFFERS = "\n".join(("  s_mov_b64 s[8:9], s[4:5]", "  s_mov_b32 s10, -1", "  s_mov_b32 s11, 0x27000"))


@cache
def one_access(name: str, chip: str) -> Program:
    """A kernel whose thread `wanted` alone makes an access so many bytes after the first element of a0.

    a1 holds the offset, 64 bits. A buffer access has a descriptor that begins at the offset.
    """
    registers = {"dword": "v4", "dwordx2": "v[4:5]", "dwordx3": "v[4:6]", "dwordx4": "v[4:7]", "add_x2": "v[4:5]"}
    data = registers.get(name.split("_", 2)[2], "v4")
    lines = {"global_load": f"{name} {data}, v[2:3], off", "flat_load": f"{name} {data}, v[2:3]",
             "global_store": f"{name} v[2:3], {data}, off", "global_atomic": f"{name} v[2:3], {data}, off",
             "buffer_load": f"{BUFFERS}\n  {name} {data}, off, s[8:11], 0",
             "buffer_store": f"{BUFFERS}\n  {name} {data}, off, s[8:11], 0"}
    if name in SCALAR:
        into = {4: "s16", 8: "s[16:17]", 16: "s[16:19]", 64: "s[16:31]"}[SCALAR[name]]
        text = f"{BUFFERS}\n  {name} {into}, s[8:11], 0x0" if "buffer" in name else f"{name} {into}, s[4:5], 0x0"
    else:
        text = lines["_".join(name.split("_")[:2])]
    return Program.from_assembly(assembly(f"""
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_load_dwordx2 s[12:13], s[6:7], 0x0
  s_waitcnt lgkmcnt(0)
  s_add_u32 s4, s4, s12
  s_addc_u32 s5, s5, s13
  v_mov_b32 v2, s4
  v_mov_b32 v3, s5
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  v_mov_b32 v6, 0
  v_mov_b32 v7, 0
  v_cmp_eq_u32 vcc, 5, v0
  s_and_b64 exec, exec, vcc
  {text}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_endpgm""", chip, arguments=2))


def bytes_of(view: np.ndarray) -> set[int]:
    """The bytes of a view's elements, relative to its first element, one by one."""
    return {sum(n * s for n, s in zip(index, view.strides, strict=True)) + byte
            for index in product(*map(range, view.shape)) for byte in range(view.itemsize)}


class Writable:
    """A view that may be written, whatever numpy thinks of expanded ones."""

    def __init__(self, view: np.ndarray):
        self.dtype, self.keep = view.dtype, view
        self.__array_interface__ = view.__array_interface__ | {"data": (view.ctypes.data, False)}


def error_of(name: str, chip: str, view: np.ndarray, offset: int, check: Any = ("bounds",)) -> str:
    """What the access says on the view, "" where it runs."""
    try:
        one_access(name, chip).launch(grid=1, block=64, args=[Writable(view), np.array([offset])],
                                      check=check)
    except OutOfBounds as error:
        assert "thread (5, 0, 0)" in str(error)
        return str(error)
    return ""


@st.composite
def views(draw: st.DrawFn) -> np.ndarray:
    """A view of up to three modes: steps, parts, turned around, expanded, of elements of 1 to 16 bytes."""
    format_ = draw(st.sampled_from(["u1", "u2", "u4", "u8", "c16"]))
    shape = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    view: np.ndarray = np.zeros(shape, format_)
    for axis, extent in enumerate(shape):
        first = draw(st.integers(0, extent - 1))
        last, step = draw(st.integers(first + 1, extent)), draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        part = slice(first, last, step) if step > 0 else slice(last - 1, first - 1 if first else None, step)
        view = view[(slice(None),) * axis + (part,)]
    view = view.transpose(draw(st.permutations(range(view.ndim))))
    if draw(st.booleans()):
        view = np.broadcast_to(view, (draw(st.integers(1, 3)), *view.shape))
    if draw(st.sampled_from([False, False, True])):  # windows that overlap
        flat = np.zeros(40, format_)
        view = np.lib.stride_tricks.sliding_window_view(flat[::draw(st.sampled_from([1, 2, 3]))], 4)
    return view


@settings(max_examples=400, deadline=None)
@given(view=views(), name=st.sampled_from([*ACCESSES, *SCALAR]), chip=st.sampled_from(CHIPS), data=st.data())
def test_any_access_of_any_view(view: np.ndarray, name: str, chip: str, data: st.DataObject) -> None:
    """An access is an error if and only if one of its bytes is that of no element."""
    held = bytes_of(view)
    offset = data.draw(st.integers(min(held) - 20, max(held) + 20))
    if name in SCALAR or "atomic" in name:
        step = ACCESSES.get(name, 4)
        offset -= (view.ctypes.data + offset) % step
    size = ACCESSES.get(name) or SCALAR[name]
    touched = range(offset, offset + size, 4 if name in SCALAR else 1)
    wanted = held.issuperset(touched)
    if "s_buffer" in name:  # each dword as a whole within what the array spans
        wanted = wanted and min(held) <= offset and offset + size <= max(held) + 1
    text = error_of(name, chip, view, offset)
    assert bool(text) != wanted, (text, view.shape, view.strides, offset)
    within = min(held) <= offset and touched[-1] < max(held) + 1 and (
        "s_buffer" not in name or offset + size <= max(held) + 1)
    assert bool(error_of(name, chip, view, offset, None)) != within  # unchecked: what it spans alone
    if text and not within:
        assert "the start of" in text or "the end of" in text


@settings(max_examples=300, deadline=None)
@given(views(), st.integers(-40, 40))
@example(np.zeros((1, 1), "u4"), 4)
@example(np.zeros((3, 4, 40), "u4")[:2, :3], 4)
def test_marks_and_indices(view: np.ndarray, beyond: int) -> None:
    """What is marked is what elements have; an index leads to its byte, and is within the shape for those alone."""
    held = bytes_of(view)
    low = min(held)
    found = View(view.shape, view.strides, view.itemsize, -low)
    spanned = range(max(held) - low + 1)
    assert {n + low for n in spanned if found.holds(n)} == held
    assert (found.marks == b"") == (len(held) == len(spanned))
    for at in (*spanned, len(spanned) + abs(beyond), beyond):
        index, rest = found.index(at)
        assert sum(n * s for n, s in zip(index, view.strides, strict=True)) + rest - low == at
        fits = all(0 <= n < extent for n, extent in zip(index, view.shape, strict=True))
        inside = fits and 0 <= rest < view.itemsize
        assert inside <= (at + low in held)


def test_large_views_take_little() -> None:
    """Rows of 1 GiB, 2 GiB apart, and the same without a gap: no byte for each element."""
    assert len(View((8, 1 << 28), (1 << 31, 4), 4).marks) < 10
    assert View((8, 1 << 28), (1 << 30, 4), 4).marks == View((1 << 28, 8), (4, 1 << 30), 4).marks == b""


@pytest.mark.parametrize("chip", CHIPS)
def test_the_cases_of_users(chip: str) -> None:
    """base[::2] of 5 read with length 4; an expanded row with stride 0; a part of a table."""
    body = (element("%pa", "i32", "%a") + "  %x = load i32, ptr addrspace(1) %pa\n" + element("%pc", "i32", "%c") +
            "  store i32 %x, ptr addrspace(1) %pc")
    device, out = program(chip, kernel("ptr %a, ptr %c", body)), np.zeros(64, "i4")

    def launch(array: np.ndarray, length: int, check: Any = ("bounds",)) -> None:
        device.launch(grid=1, block=length, args=[array, out], check=check)

    base = np.arange(5, dtype="i4")
    with pytest.raises(OutOfBounds, match=r"between the elements of 'a' \(shape \(3,\), strides \(2,\), i32\), 4 bytes "
                                          r"after the start of element 0\n.*thread \(1, 0, 0\)"):
        launch(base[::2], 4)
    launch(base[::2], 4, check=None)
    launch(np.broadcast_to(np.arange(3, dtype="i4"), (4, 3)), 3)
    part = np.arange(20, dtype="i4").reshape(4, 5)[1:3, 1:4]
    launch(part, 3)
    with pytest.raises(OutOfBounds, match=r"between the elements of 'a' \(shape \(2, 3\), strides \(5, 1\), i32\), at "
                                          r"element \(0, 3\), and dimension 1 has 3\n.*thread \(3, 0, 0\)"):
        launch(part, 4)
    assert {at for at in range(-8, 40) if not error_of("global_load_ubyte", chip, part, at)} == {
        *range(12), *range(20, 32)}


def test_which_element() -> None:
    """By hand, for a 4 x 5 tensor of floats, and one whose rows are 8 apart."""
    table, padded = np.zeros((4, 5), "f4"), np.zeros((4, 8), "f4")[:, :5]
    said = {}
    for name, array, at in (("row", table, 22), ("before", table, -3), ("column", padded, 15), ("last", padded, 31),
                            ("turned", table[::-1, ::-1], 1), ("odd", table, 20.25)):
        said[name] = error_of("global_load_dword", "gfx942", array, int(4 * at)).split("\n")[0].partition(" of 'a0' ")
    assert said["row"][::2] == (f"a read of 4 bytes at address {ARRAYS + 88:#x} is out of "
                                "bounds: 8 bytes after the end",
                                "(shape (4, 5), strides (5, 1), f32), at element (4, 2), and dimension 0 has 4")
    assert said["before"][2].endswith("at element (-1, 2), and dimension 0 has 4")
    assert said["column"][2].endswith("(shape (4, 5), strides (8, 1), f32), at element (1, 7), and dimension 1 has 5")
    assert said["last"][2].endswith("at element (3, 7), and dimension 1 has 5")
    assert said["turned"][2].endswith("strides (-5, -1), f32), at element (-1, 4), and dimension 0 has 4")
    assert said["odd"][2].endswith("at element (4, 0), and dimension 0 has 4")


@pytest.mark.parametrize("chip", CHIPS)
def test_an_access_that_lands_in_another_argument(chip: str) -> None:
    """Side by side on the host, and yet each has an end."""
    body = (element("%pa", "i32", "%a") + "  %x = load i32, ptr addrspace(1) %pa\n" + element("%pc", "i32", "%c") +
            "  store i32 %x, ptr addrspace(1) %pc")
    memory = np.arange(192, dtype="i4")
    with pytest.raises(OutOfBounds, match=r"right after the end of 'a' .*, at element 64,"):
        program(chip, kernel("ptr %a, ptr %c", body)).launch(
            grid=1, block=65, args=[memory[:64], memory[64:]], check=None)
    assert np.array_equal(memory, [*range(64), *range(64), *range(128, 192)]) or np.array_equal(memory, range(192))


ADDRESSES = kernel("ptr %out, ptr %a, ptr %b", element("%p", "[2 x i64]", "%out") + """
  %x = ptrtoint ptr addrspace(1) %a to i64
  %y = ptrtoint ptr addrspace(1) %b to i64
  store i64 %x, ptr addrspace(1) %p
  %q = getelementptr i64, ptr addrspace(1) %p, i64 1
  store i64 %y, ptr addrspace(1) %q""")


@pytest.mark.parametrize("chip", CHIPS)
def test_addresses_depend_on_the_number_of_an_argument_alone(chip: str) -> None:
    """And on how far it is into its allocation, which tells its alignment."""
    device, memory = program(chip, ADDRESSES), np.zeros(1 << 16, "u1")

    def seen(a: np.ndarray | None, b: np.ndarray | None) -> list[int]:
        out = np.zeros(2, "i8")
        device.launch(grid=1, block=1, args=[out, a, b])
        return [int(n) for n in out]

    first, other = (memory[at:][:100] for at in (512, 5120))
    assert seen(first, other) == seen(other, first) == [ARRAYS + GAP, ARRAYS + 2 * GAP]
    odd = np.frombuffer(bytearray(100), "u1", offset=3)  # its memory is not numpy's own
    assert seen(odd, None)[0] % 16 == odd.ctypes.data % 16
    assert [n % 256 for n in seen(memory[4:][:8], memory[72:][:8])] == [4, 72]
    assert seen(first, first)[0] == seen(first, first)[1]
    assert seen(first, first[1:]) == [ARRAYS + GAP, ARRAYS + 2 * GAP + 1]
    assert seen(first[::-1], None) == [ARRAYS + GAP + 99, 0]
    aligned = memory[-memory.ctypes.data % 64:]
    assert seen(aligned, None)[0] % 64 == 0
    assert seen(first[:0], first) == [ARRAYS + GAP, ARRAYS + 2 * GAP]


def test_views_that_overlap_are_the_same_memory() -> None:
    body = """
  %x = load i32, ptr addrspace(1) %a
  %y = add i32 %x, 1
  store volatile i32 %y, ptr addrspace(1) %a
  %z = load volatile i32, ptr addrspace(1) %b
  store i32 %z, ptr addrspace(1) %c"""
    memory, out = np.arange(8, dtype="i4"), np.zeros(1, "i4")
    program("gfx942", kernel("ptr %a, ptr %b, ptr %c", body)).launch(
        grid=1, block=1, args=[memory[2:], memory[1:][1:], out])
    assert out[0] == memory[2] == 3


def test_six_hundred_pointers() -> None:
    """Each thread reads the first number of one array, whose pointer is an argument."""
    count = 600
    text = assembly("""
  v_lshlrev_b32 v1, 3, v0
  global_load_dwordx2 v[2:3], v1, s[0:1] offset:8
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_load_dword v4, v[2:3], off
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt vmcnt(0)
  global_store_dword v1, v4, s[4:5]
  s_endpgm""", arguments=count + 1)
    out, arrays = np.zeros(count, "i4"), [np.array([3 * n], "i4") for n in range(count)]
    Program.from_assembly(text).launch(grid=1, block=count, args=[out, *arrays])
    assert np.array_equal(out, 3 * np.arange(count))


def test_what_does_not_fit_into_the_addresses() -> None:
    """Sizes without memory: nothing is touched."""
    many = [Buffer(f"b{n}", 1 << 20, 64) for n in range(5000)]
    found = with_windows([Buffer("large", 1 << 21, 200 << 30), *many[:100], Buffer("c", 1 << 22, 16)])
    assert found[1].start - found[0].end >= GAP // 2 and found[-1].start - found[1].end >= GAP // 2
    starts = {b.start for b in with_windows([Buffer(b.name, b.address + 256 * n, 64) for n, b in enumerate(many)])}
    assert len(starts) == 5000 and max(starts) < END
    with pytest.raises(ArgumentError, match="the largest is 'huge' with") as caught:
        with_windows([many[0], Buffer("huge", 1 << 20, 1 << 47)])
    assert caught.value.hint == "pass fewer or smaller arrays"


@pytest.mark.parametrize("chip", CHIPS)
def test_pointers_of_the_host(chip: str) -> None:
    """As an integer, and out of an array: the memory of arguments is at its own addresses too."""
    body = """
  %p = inttoptr i64 %at to ptr addrspace(1)
""" + element("%q", "i32", "%p") + element("%pc", "i32", "%c") + """  %x = load i32, ptr addrspace(1) %q
  store i32 %x, ptr addrspace(1) %pc"""
    device = program(chip, kernel("ptr %a, ptr %c, i64 %at", body))
    a, c = np.arange(64, dtype="i4"), np.zeros(64, "i4")
    device.launch(grid=1, block=64, args=[a, c, a.ctypes.data])
    assert np.array_equal(a, c)
    with pytest.raises(OutOfBounds, match=f"at address {a.ctypes.data + 256:#x} is out of bounds: right after the end "
                                          "of 'a' "):
        device.launch(grid=1, block=65, args=[a, np.zeros(65, "i4"), a.ctypes.data])
    with pytest.raises(OutOfBounds, match="between the elements of 'a' .*, 4 bytes after the start of element 0"):
        device.launch(grid=1, block=2, args=[a[::2], c, a.ctypes.data], check=("bounds",))
    first = "  %at = load i64, ptr addrspace(1) %table\n" + body
    table = np.array([a.ctypes.data])
    program(chip, kernel("ptr %a, ptr %c, ptr %table", first)).launch(grid=1, block=64, args=[a, c, table])
    assert np.array_equal(a, c)


LANES = np.arange(64)
PLAIN, ADD_LANE, SWIZZLE = 0x27000, 1 << 23, 1 << 31
# An access through a descriptor of 40 bytes (or records), and the first lane that it cuts off.
CUT = {
    "buffer_load_dword v4, v1, s[4:7], 0 offen": (0, PLAIN, 10, 4, 40), "buffer_store_dword v4, v1, s[4:7], 0 offen":
    (0, PLAIN, 10, 4, 40), "buffer_load_dwordx2 v[4:5], v2, s[4:7], 0 offen": (0, PLAIN, 5, 8, 40),
    "buffer_load_ubyte v4, v0, s[4:7], 0 offen": (0, PLAIN, 40, 1, 40),
    "buffer_load_dword v4, v0, s[4:7], 0 idxen": (8 << 16, PLAIN, 40, 4, 320),
    "buffer_load_dwordx2 v[4:5], v1, s[4:7], 0 offen offset:4": (0, PLAIN, 8, 4, 40),
    "buffer_atomic_add v4, v1, s[4:7], 0 offen": (0, PLAIN, 10, 4, 40),
    "buffer_load_format_x v4, v1, s[4:7], 0 offen": (0, PLAIN, 10, 4, 40),
    "s_buffer_load_dwordx4 s[8:11], s[4:7], 0x1c": (0, PLAIN, 0, 4, 40),
    "s_buffer_load_dword s8, s[4:7], 0x28": (0, PLAIN, 0, 4, 40),
}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("text", CUT)
def test_what_a_descriptor_cuts_off(text: str, chip: str) -> None:
    """Counted, and with check="all" an error of the first thread, which names the array and the element."""
    words, last, thread, size, at = CUT[text]
    device = Program.from_assembly(assembly(f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_waitcnt lgkmcnt(0)
  s_or_b32 s5, s5, {words:#x}
  s_mov_b32 s6, 40
  s_mov_b32 s7, {last:#x}
  v_lshlrev_b32 v1, 2, v0
  v_lshlrev_b32 v2, 3, v0
  v_mov_b32 v4, 0
  v_mov_b32 v5, 0
  {text}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_endpgm""", chip))
    array = np.zeros(512, "i4")
    assert device.launch(grid=1, block=64, args=[array], check=("bounds",)).clamped == (
        1 if text.startswith("s_") else 64 - thread)
    with pytest.raises(OutOfBounds) as caught:
        device.launch(grid=1, block=64, args=[array], check="all")
    verb = "write" if "_store_" in text or "_atomic_" in text else "read"
    address = ARRAYS + at
    said = str(caught.value)
    assert said.startswith(f"a {verb} of {size} byte{'s' * (size > 1)} at address {address:#x} is cut off by its "
                           "buffer descriptor: it is within 'a0' (shape (512,), strides (1,), i32)")
    assert f"thread ({thread}, 0, 0) of kernel 'k', at '{text}'" in said and 'check="auto"' in said
    assert device.launch(grid=1, block=thread or 64, args=[array], check="all" if thread else None)


def test_an_access_beyond_the_array_that_is_cut_off() -> None:
    """The usual case: the descriptor has the array's size."""
    array = np.zeros(10, "i4")
    device = Program.from_assembly(assembly("""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  s_mov_b32 s6, 40
  s_mov_b32 s7, 0x27000
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  buffer_load_dword v4, v1, s[4:7], 0 offen
  s_waitcnt vmcnt(0)
  s_endpgm"""))
    assert device.launch(grid=1, block=64, args=[array]).clamped == 54
    with pytest.raises(OutOfBounds, match=r"right after the end of 'a0' \(shape \(10,\), .*, at element 10, and "
                                          r"dimension 0 has 10\n.*thread \(10, 0, 0\)"):
        device.launch(grid=1, block=64, args=[array], check="all")
