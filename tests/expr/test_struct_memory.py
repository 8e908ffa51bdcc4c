"""Structs in global memory, on both chips: against numpy's structured arrays of the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.emulator.windows import ARRAYS
from flylab.errors import CheckFailed, FlylabError, TraceError
from tests.expr.declared import Declared, Inner, Item, structs
from tests.samples import cell, kernel_of


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(f"emulated:{request.param}"):
        yield


INNER = np.dtype([("half", "f2"), ("good", "?"), ("count", "i8")], align=True)
ITEM = np.dtype([("flag", "?"), ("scale", "f8"), ("row", "f4", 3), ("tiny", "i1"), ("parts", INNER, 2),
                 ("marks", "?", 3), ("wide", "u2")], align=True)


def items(count: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    made = np.zeros(count, ITEM)
    made["flag"], made["scale"], made["tiny"] = rng.integers(0, 2, count), rng.normal(size=count), range(count)
    made["row"], made["wide"] = rng.normal(size=(count, 3)), rng.integers(0, 2**16, count)
    made["parts"]["half"], made["parts"]["count"] = rng.integers(-9, 9, (count, 2)), rng.integers(-2**40, 2**40,
                                                                                                 (count, 2))
    made["parts"]["good"], made["marks"] = rng.integers(0, 2, (count, 2)), rng.integers(0, 2, (count, 3))
    return made


def raw(array: np.ndarray) -> np.ndarray:
    return array.view(np.uint8).reshape(-1)


def twin(array: np.ndarray) -> np.ndarray:
    """A copy with its padding, which numpy's own leaves out."""
    return raw(array).copy().view(array.dtype)


def run(body: str, *arrays: np.ndarray, **names: Any) -> None:
    """Run a kernel of this body over the bytes of arrays A, B."""
    parameters = ", ".join(f"{n}: fx.Tensor" for n in "ABC"[: len(arrays)])
    made = kernel_of(body, parameters)
    made.update({"Item": Item, "Inner": Inner, **names})
    made["launch"](*map(raw, arrays))


def field_bytes(dtype: np.dtype) -> np.ndarray:
    """Which bytes of a dtype belong to fields; all of a union's (whose fields begin at one place) do."""
    if dtype.subdtype:
        base, shape = dtype.subdtype
        return np.tile(field_bytes(base), int(np.prod(shape)))
    mask = np.zeros(dtype.itemsize, bool)
    offsets = [o for _, o in (dtype.fields or {}).values()]
    if not offsets or len(offsets) > len(set(offsets)):
        mask[:] = True
    for kind, offset in (dtype.fields or {}).values():
        mask[offset:offset + kind.itemsize] |= field_bytes(kind)
    return mask


@settings(max_examples=20)
@given(structs(most=4), st.randoms(use_true_random=False))
def test_what_is_loaded_is_stored_and_padding_stays(declared: Declared, random: Any):
    size = declared.ours.size
    # Bytes of 0 and 1 only: in a union a Boolean may lie anywhere.
    source = np.array([random.randint(0, 1) for _ in range(64 * size)], np.uint8)
    target = np.full(64 * size, 0xA5, np.uint8)
    run("S.store(fx.get_iter(B), S.load(fx.get_iter(A), fx.thread_idx.x), fx.thread_idx.x)", source, target,
        S=declared.ours)
    mask = np.tile(field_bytes(declared.numpy), 64)
    if any(k.is_union and k.size > max(f.size for f in k.fields.values()) for k in unions_in(declared.ours)):
        mask |= source == target  # a union's own padding is copied with it
        np.testing.assert_array_equal(target[mask], source[mask])
        return
    np.testing.assert_array_equal(target, np.where(mask, source, 0xA5))


def unions_in(kind: Any) -> list[Any]:
    if isinstance(kind, fx.Array):
        return unions_in(kind.element)
    if not fx.is_composite_type(kind):
        return []
    return [kind] * kind.is_union + [u for f in kind.fields.values() for u in unions_in(f.kind)]


def test_fields_are_computed_with():
    a, b = items(64), items(64, 1)
    expected = twin(a)
    run("""
        t = fx.thread_idx.x
        s = Item.load(fx.get_iter(A), t)
        s.flag = ~s.flag
        s.scale = s.scale * 2 + t
        s.row = s.row + 1.5
        s.tiny = s.tiny * 3
        s.parts[1].count = s.parts[0].count - s.tiny
        s.parts[0].half = s.parts[1].half
        s.marks = s.marks ^ True
        Item.store(fx.get_iter(B), s, t)
    """, a, b)
    expected["flag"], expected["scale"] = ~a["flag"], a["scale"] * 2 + np.arange(64)
    expected["row"], expected["tiny"] = a["row"] + np.float32(1.5), a["tiny"] * np.int8(3)
    expected["parts"]["count"][:, 1] = a["parts"]["count"][:, 0] - expected["tiny"]
    expected["parts"]["half"][:, 0] = a["parts"]["half"][:, 1]
    expected["marks"] = ~a["marks"]
    np.testing.assert_array_equal(raw(b), raw(expected))


def test_in_place_fields_are_read_and_stored_one_by_one():
    a = items(64)
    expected = twin(a)
    run("""
        t = fx.thread_idx.x
        place = Item.at(fx.get_iter(A), t)
        here = place.peek()
        here.scale = here.scale + here.row[1].to(fx.Float64)
        here.row[t % 3] = 7.0
        here.parts[t % 2].count = here.parts[1 - t % 2].count + 1
        here.parts[0].good = here.flag
        place.wide.poke(place.wide.peek() + 1)
        place.marks[2].poke(~place.marks[0].peek())
        place.tiny.ptr[0] = fx.Int8(t) * 2
        assert len(here.row) == len(place.marks) == 3 and [x.dtype.name for x in here.row] == ["Float32"] * 3
    """, a)
    t, r = np.arange(64), np.arange(64)
    expected["scale"] += expected["row"][:, 1].astype(np.float64)
    expected["row"][r, t % 3] = 7
    expected["parts"]["count"][r, t % 2] = expected["parts"]["count"][r, 1 - t % 2] + 1
    expected["parts"]["good"][:, 0] = a["flag"]
    expected["wide"] += 1
    expected["marks"][:, 2] = ~a["marks"][:, 0]
    expected["tiny"] = (t * 2).astype(np.int8)
    np.testing.assert_array_equal(raw(a), raw(expected))


def test_a_whole_field_is_loaded_and_stored():
    a = items(64)
    expected = twin(a)
    run("""
        place = Item.at(fx.get_iter(A), fx.thread_idx.x)
        first = place.parts[0].load()
        place.parts.poke([place.parts[1].load(), first.replace(half=3)])
        place.row.poke(place.row.load() * 2.0)
        place.poke(place.load().replace(wide=9))
    """, a)
    before = items(64)
    for name in INNER.names:  # field by field: what is no field stays where it is
        expected["parts"][name] = before["parts"][name][:, ::-1]
    expected["parts"]["half"][:, 1] = 3
    expected["row"], expected["wide"] = before["row"] * 2, 9
    np.testing.assert_array_equal(raw(a), raw(expected))


@fx.struct
class Buffers:
    """As shared memory is declared, in global memory here."""

    a: fx.Array[fx.Float16, 64]
    b: fx.Align[fx.Array[fx.Int32, 64], 64]
    ready: fx.Int32


def test_arrays_are_seen_through_layouts():
    memory = np.zeros(Buffers.size + 64, np.uint8)
    data = memory[-memory.ctypes.data % 64:][:Buffers.size]
    run("""
        t = fx.thread_idx.x
        lds = Buffers.at(fx.get_iter(A)).peek()
        grid = lds.a.view(fx.make_layout((4, 16), (16, 1)))
        grid[t % 4, t // 4] = t.to(fx.Float16)
        fx.make_view(lds.b.ptr, fx.make_layout((8, 8), (1, 8)))[t // 8, t % 8] = t
        lds.ready = lds.ready + 5
        assert (lds.a.view().spec.align, lds.b.ptr.spec.align) == (64, 64)
    """, data, Buffers=Buffers)
    t = np.arange(64)
    a, b = data[:128].view(np.float16), data[128:384].view(np.int32)
    np.testing.assert_array_equal(a.reshape(4, 16)[t % 4, t // 4], t)
    np.testing.assert_array_equal(b.reshape(8, 8).T[t // 8, t % 8], t)
    assert data[384:388].view(np.int32)[0] == 5 and Buffers.size == 448


def test_behind_a_buffer_descriptor():
    """From a tensor whose elements are aligned as the struct is; what is outside reads 0."""
    @fx.struct
    class Pair:
        x: fx.Int32
        y: fx.Array[fx.Int16, 2]

    names = kernel_of("""
        t = fx.thread_idx.x
        pairs = fx.get_iter(fx.rocdl.make_buffer_tensor(A))
        pair = Pair.load(pairs, t * 2)
        pair.x = pair.x + pair.y[0].to(fx.Int32) * pair.y[1].to(fx.Int32)
        Pair.store(fx.get_iter(B), pair, t)
    """, "A: fx.Tensor, B: fx.Tensor")
    names["Pair"] = Pair
    dtype = np.dtype([("x", "i4"), ("y", "i2", 2)])
    a = np.zeros(100, dtype)
    a["x"], a["y"] = np.arange(100) * 1000, np.arange(200).reshape(100, 2)
    b = np.ones(64, dtype)
    names["launch"](a.view(np.int32), b.view(np.int32))
    expected = np.zeros(64, dtype)
    expected[:50] = a[::2]
    expected["x"] += expected["y"][:, 0].astype(np.int32) * expected["y"][:, 1]
    np.testing.assert_array_equal(b, expected)


def test_unions_in_memory_and_in_registers():
    @fx.union
    class Bits:
        number: fx.Float32
        bits: fx.Uint32
        halves: fx.Array[fx.Uint16, 2]

    @fx.struct
    class Tagged:
        tag: fx.Uint8
        value: Bits

    a = np.random.default_rng(3).normal(size=64).astype(np.float32)
    b = np.zeros((64, 2), np.uint32)
    run("""
        t = fx.thread_idx.x
        u = Bits(number=Bits.load(fx.get_iter(A), t).number * 2.0)
        u.halves = [u.halves[0] ^ 1, u.halves[1]]
        Tagged.store(fx.get_iter(B), Tagged(t, u), t)
        place = Tagged.at(fx.get_iter(B), t).value
        place.bits.poke(place.bits.peek() ^ 0x80000000)
        again = place.load()
        place.number.poke(again.number + 0.0)
    """, a, b, Bits=Bits, Tagged=Tagged)
    expected = ((a * 2).view(np.uint32) ^ 1 ^ 0x80000000)
    np.testing.assert_array_equal(b[:, 1], expected)
    np.testing.assert_array_equal(b[:, 0], np.arange(64))


def test_integers_of_128_bits():
    @fx.struct
    class Wide:
        a: fx.Int8
        b: fx.Int128

    a = np.zeros(64 * 2 * 2, np.uint64)
    run("""
        t = fx.thread_idx.x
        place = Wide.at(fx.get_iter(A), t)
        place.poke(Wide(t, t.to(fx.Int128) * -1))
    """, a, Wide=Wide)
    rows = a.reshape(64, 4)
    np.testing.assert_array_equal(rows[:, 2].view(np.int64), -np.arange(64))
    np.testing.assert_array_equal(rows[1:, 3].view(np.int64), np.full(63, -1))


@pytest.mark.parametrize("shift", [0, 4, 8, 12])
def test_alignment_is_checked_on_the_device(shift):
    """The bytes of an array begin anywhere; a Float64 in the struct needs a multiple of 8."""
    memory = np.zeros(65 * Item.size + 8, np.uint8)
    start = -memory.ctypes.data % 8 + shift
    part = memory[start:start + 64 * Item.size]
    names = kernel_of("place = Item.at(fx.get_iter(A), fx.thread_idx.x)\nplace.wide.poke(5)")
    names["Item"] = Item
    if shift % 8 == 0:
        names["launch"](part)
        assert set(part.view(ITEM)["wide"]) == {5}
        return
    with pytest.raises(CheckFailed) as caught:
        names["launch"](part)
    assert "is no multiple of 8 bytes, as the address of Item must be" in caught.value.message
    assert "copy" in caught.value.hint and caught.value.where.line == 3 and not part.any()


def test_recast_to_narrower_and_wider():
    a = np.arange(64, dtype=np.float32)
    b = np.zeros(128, np.uint16)
    run("""
        t = fx.thread_idx.x
        halves = fx.recast_iter(fx.Uint16, fx.recast_iter(fx.Float32, fx.get_iter(A)))
        out = fx.recast_iter(halves.spec, fx.get_iter(B))
        out[t] = halves[t * 2 + 1]
        wide = fx.recast_iter(fx.Uint64, fx.get_iter(A))
        fx.recast_iter(fx.Uint16, fx.get_iter(B))[t + 64] = (wide[t // 2] >> 48).to(fx.Uint16)
    """, a, b)
    high = a.view(np.uint16)[1::2]
    np.testing.assert_array_equal(b, np.concatenate([high, np.repeat(high[1::2], 2)]))


def test_what_is_known_to_be_aligned_is_not_checked():
    names = kernel_of("""
        p = fx.recast_iter(fx.Int64, fx.get_iter(A))
        fx.recast_iter(fx.Float32, p)[0] = 1.0
        fx.recast_iter(fx.Float64, fx.recast_iter(fx.Uint8, p) + fx.thread_idx.x * 24)[0] = 2.0
    """)
    compiled = flyc.compile(names["launch"], np.zeros(64 * 3))
    text = str(compiled.show("ir"))
    assert "fly.check" not in text and "align<8>" in text
    names["launch"](array := np.zeros(64 * 3))
    np.testing.assert_array_equal(array, np.tile([2.0, 0, 0], 64))


def test_addresses():
    a, b = np.zeros(64, np.float32), np.zeros(64, np.int64)
    run("fx.recast_iter(fx.Int64, fx.get_iter(B))[fx.thread_idx.x] = "
        "fx.ptrtoint(fx.recast_iter(fx.Float32, fx.get_iter(A)) + fx.thread_idx.x)", a, b)
    np.testing.assert_array_equal(b, ARRAYS + 4 * np.arange(64))


def test_declared_in_a_kernel():
    a = np.zeros(64, np.int32)
    run("""
        count = 2
        @fx.struct
        class Local:
            x: fx.Array[fx.Int32, count]
            y: "fx.Int64" = 4
        made = Local([fx.thread_idx.x, 10])
        fx.recast_iter(fx.Int32, fx.get_iter(A))[fx.thread_idx.x] = made.x[0] * made.x[1] + Local.size
    """, a)
    np.testing.assert_array_equal(a, np.arange(64) * 10 + 16)


@pytest.mark.parametrize("shift", [0, 2])
def test_recast_in_a_launcher(shift):
    """The host checks the address, and a view of the new format is passed on."""
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = A[fx.thread_idx.x] + 1.5

        @flyc.jit
        def launch(A: fx.Tensor):
            floats = fx.recast_iter(fx.Float32, fx.get_iter(A))
            k(fx.make_view(floats, fx.make_layout(64, 1))).launch(grid=1, block=64)
    """)
    memory = np.zeros(68, np.float32).view(np.uint8)
    part = memory[-memory.ctypes.data % 4 + shift:][:256]
    if shift:
        with pytest.raises(CheckFailed, match="is no multiple of 4 bytes, as the address of Float32 must be"):
            names["launch"](part)
    else:
        names["launch"](part)
        assert set(part.view(np.float32)) == {1.5}


def test_places_can_be_asked_about():
    run("""
        place = Item.at(fx.get_iter(A))
        seen = place.peek()
        assert repr(place.row) == "Storage(Array[Float32, 3], global)" and repr(seen) == "Peeked(Storage(Item, global))"
        assert dir(place) == dir(seen) and {"row", "peek", "wide"} <= set(dir(seen))
        assert not hasattr(place, "__array__") and not hasattr(seen, "__array__")
        assert repr(seen.row.ptr) == repr(place.row.ptr) and seen.load().leaves()[0].dtype.name == "Boolean"
    """, items(1))


BODIES: dict[str, tuple[str, int, str, str]] = {
    "at a tensor": ("Item.at(A)", 3, "Item at a Tensor", "fx.get_iter(tensor)"),
    "unknown field": ("p = Item.at(fx.get_iter(A))\np.tny", 4, "Item has no field 'tny'", "'tiny'"),
    "unknown field set": ("p = Item.at(fx.get_iter(A)).peek()\np.tny = 1", 4, "Item has no field 'tny'", "'tiny'"),
    "set in place": ("p = Item.at(fx.get_iter(A))\np.tiny = 1", 4, ".tiny = ... of a Item in memory", ".tiny.poke"),
    "field of a number": ("Item.at(fx.get_iter(A)).tiny.x", 3, ".x of a Int8 in memory", ".peek()"),
    "element of a struct": ("Item.at(fx.get_iter(A))[0]", 3, "[...] of a Item in memory", "name a field"),
    "element outside": ("Item.at(fx.get_iter(A)).row[3]", 3, "element 3 of Array[Float32, 3]", "0 to 2"),
    "negative element": ("Item.at(fx.get_iter(A)).peek().row[-1]", 3, "element -1 of Array[Float32, 3]", "0 to 2"),
    "element of a half": ("Item.at(fx.get_iter(A)).row[0.5]", 3, "as an index is Float32", "fx.Int32"),
    "length": ("len(Item.at(fx.get_iter(A)).tiny)", 3, "len of a Int8", "an array"),
    "condition": ("bool(Item.at(fx.get_iter(A)).tiny)", 3, "a Int8 in memory as a condition", ".peek()"),
    "view of a number": ("Item.at(fx.get_iter(A)).tiny.view()", 3, "view of a Int8", "array of numbers"),
    "view too large": ("Item.at(fx.get_iter(A)).row.view(fx.make_layout(2, 3))", 3,
                       "2:3 reaches over 4 elements, and Array[Float32, 3] has 3", "larger array"),
    "poke of another": ("Item.at(fx.get_iter(A)).parts[0].poke(3)", 3, "a Inner in memory is a Inner, and gets 3",
                        "Inner(...)"),
    "poke too few": ("Item.at(fx.get_iter(A)).row.poke([1, 2])", 3, "has 3 elements, and gets 2", "as many"),
    "index of another array": ("Item.at(fx.get_iter(A), A)", 3, "is not a number", "fx number"),
    "no storage of int": ("fx.Storage.at(int, fx.get_iter(A))", 3, "what a Storage holds is int", "fx.Int32"),
    "recast of a tensor": ("fx.recast_iter(fx.Int32, A)", 3, "recast_iter of a Tensor", "fx.get_iter(tensor)"),
    "recast to 4 bits": ("fx.recast_iter(fx.Int4, fx.get_iter(A))", 3, "Int4, of 4 bits", "fx.Uint8"),
    "recast to nothing": ("fx.recast_iter('f32', fx.get_iter(A))", 3, "'f32' is not a number format", "fx.Float32"),
    "recast of registers": ("r = fx.make_rmem_tensor(4, fx.Float32)\nfx.recast_iter(fx.Int32, fx.get_iter(r))", 4,
                            "points to registers", ".bitcast"),
    "recast of a buffer": ("b = fx.get_iter(fx.rocdl.make_buffer_tensor(A))\nfx.recast_iter(fx.Int64, b)", 4,
                           "'b' (ui8, buffer) is not known to be a multiple of 8 bytes", "recast before"),
    "recast elsewhere": ("b = fx.get_iter(fx.rocdl.make_buffer_tensor(A))\nfx.recast_iter(b.spec, fx.get_iter(A))", 4,
                         "a pointer into global memory to ui8, buffer", "the memory space stays"),
    "address of a buffer": ("fx.ptrtoint(fx.get_iter(fx.rocdl.make_buffer_tensor(A)))", 3, "into buffer memory",
                            "the tensor itself"),
}


@pytest.mark.parametrize("name", BODIES)
def test_refused(name):
    body, line, message, hint = BODIES[name]
    names = kernel_of(body)
    names.update(Item=Item, Inner=Inner)
    with pytest.raises(FlylabError) as caught:
        names["launch"](np.zeros(64 * Item.size, np.uint8))
    assert message in caught.value.message and hint in (caught.value.hint or "")
    assert caught.value.where is not None and caught.value.where.line == line


def test_memory_is_of_kernels():
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, n: fx.Int32):
            A[0] = 1

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A, fx.Storage.at(fx.Int32, fx.get_iter(A)).peek()).launch(grid=1, block=1)
    """)
    with pytest.raises(TraceError, match="load of a tensor only has a meaning inside an @flyc.kernel"):
        names["launch"](np.zeros(4, np.uint8))


def test_text_of_a_struct_in_memory(golden: Any):
    names = kernel_of("Inner.store(fx.get_iter(A), Inner(1, True, fx.thread_idx.x), fx.thread_idx.x)")
    names["Inner"] = Inner
    compiled = flyc.compile(names["launch"], np.zeros(64 * 16, np.uint8))
    listing = "".join(f"{i}\n" for i in compiled.isa.kernels["k"].instructions)
    golden("struct.txt", f"{compiled.show('fly-layout-lowering')}\n\n{listing}")


def test_places_are_merged_and_carried():
    a, b = items(64), items(64, 1)
    first, second = twin(a), twin(b)
    run("""
        t = fx.thread_idx.x
        place = Item.at(fx.get_iter(A), t)
        here = place.peek()
        if t > 9:
            here.scale = 2.5
            here = Item.at(fx.get_iter(B), t).peek()
        for i in range(t):
            here.row[i % 3] = here.row[i % 3] + i
        place = place if t < 20 else Item.at(fx.get_iter(B), 63 - t)
        place.tiny.poke(7)
    """, a, b)
    first["scale"][10:] = 2.5
    for t in range(64):
        row = (second if t > 9 else first)["row"][t]
        for i in range(t):
            row[i % 3] += np.float32(i)
        (first["tiny"] if t < 20 else second["tiny"])[t if t < 20 else 63 - t] = 7
    np.testing.assert_array_equal(raw(a), raw(first))
    np.testing.assert_array_equal(raw(b), raw(second))
