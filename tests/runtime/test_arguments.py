"""Launch arguments: what is accepted works in place; what does not fit is refused in the user's words."""

from __future__ import annotations

import gc
import struct
import weakref
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.lib.stride_tricks import as_strided

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.dtypes import DTYPES
from flylab.errors import ArgumentError, OutOfBounds
from flylab.expr.promotion import integer_range
from flylab.runtime.arguments import bind, pack_number
from tests.samples import cell

DOUBLE = """
@flyc.kernel
def k(T: fx.Tensor):
    i = (fx.block_idx.x,)
    for extent in T.shape[:0:-1]:
        i = (i[0] // extent, i[0] % extent, *i[1:])
    T[i] = T[i] + T[i]

@flyc.jit
def double(T: fx.Tensor):
    k(T).launch(grid=fx.size(T), block=1)
"""
double = cell(DOUBLE)["double"]


class ThroughDlpack:
    """An array that offers nothing but DLPack."""

    def __init__(self, array: Any):
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class OnAnotherDevice:
    """Memory of a GPU, as cupy and numba show it."""

    def __init__(self, array: Any):
        self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3}


class Refusing(ThroughDlpack):
    def __dlpack__(self, **options: Any) -> Any:
        raise BufferError("not now")


def base(dtype: Any = np.float32) -> Any:
    return np.arange(1, 61).astype(dtype).reshape(3, 4, 5)


VIEWS: dict[str, Any] = {
    "contiguous": lambda a: a,
    "every second": lambda a: a[..., ::2],
    "transposed": lambda a: a.T,
    "reversed": lambda a: a[::-1, :, ::-1],
    "one row": lambda a: a[1, 2],
    "one element": lambda a: a[1, 2, 3:4],
    "shifted by one": lambda a: a.reshape(-1)[1:],
    "rank 0": lambda a: a[1, 2, 3:4].reshape(()),
    "odd strides": lambda a: a.transpose(1, 0, 2)[::3, ::-2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_numpy_views_in_place(name: str) -> None:
    a = base()
    expected = base()
    view = VIEWS[name](expected)
    view *= 2
    double(VIEWS[name](a))
    assert np.array_equal(a, expected)


@pytest.mark.parametrize("name", ["contiguous", "every second", "transposed", "one row", "one element", "rank 0"])
def test_torch_views_in_place(name: str) -> None:
    torch = pytest.importorskip("torch")
    a, expected = torch.from_numpy(base()), torch.from_numpy(base())
    view = VIEWS[name](expected) if name != "transposed" else expected.permute(2, 1, 0)
    view *= 2
    double(VIEWS[name](a) if name != "transposed" else a.permute(2, 1, 0))
    assert torch.equal(a, expected)


@pytest.mark.parametrize(
    "dtype",
    [
        "int8",
        "uint8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "uint64",
        "float16",
        "float32",
        "float64",
        "bfloat16",
    ],
)
def test_formats(dtype: str) -> None:
    numpy_dtype = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    a = base(numpy_dtype)
    double(a)
    assert np.array_equal(a, base(numpy_dtype) + base(numpy_dtype))
    torch = pytest.importorskip("torch")
    t = torch.arange(1, 61).to(getattr(torch, dtype))
    if dtype.startswith("uint") and dtype != "uint8":
        return  # torch has these formats, and no sums of them
    expected = t + t
    double(t)
    assert torch.equal(t, expected)


def test_dlpack() -> None:
    a = np.arange(8, dtype=np.float32)
    double(ThroughDlpack(a))
    assert np.array_equal(a, 2 * np.arange(8, dtype=np.float32))


TYPED = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32, u: fx.Uint8, x: fx.Float32, h: fx.Float16, b: fx.Boolean, c: fx.Constexpr[int]):
        A[0] = fx.Float32(n) + x + fx.Float32(h) + b.select(fx.Float32(u), 0.0)

    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32 = 1, u: fx.Uint8 = 2, x: fx.Float32 = 3.0, h: fx.Float16 = 4.0,
               b: fx.Boolean = True, c: fx.Constexpr[int] = 5, f: fx.Constexpr[float] = 6.0, *,
               s: fx.Stream = fx.Stream(None)):
        k(A, n, u, x, h, b, c).launch(grid=1, block=64, stream=s)
""")["launch"]


@pytest.mark.parametrize(
    "named, expected",
    [
        ({}, 10.0),
        ({"n": np.int32(-5)}, 4.0),
        ({"n": np.array(7)}, 16.0),
        ({"n": fx.Int8(-1)}, 8.0),
        ({"n": True}, 10.0),
        ({"x": 5}, 12.0),
        ({"x": np.float64(0.5)}, 7.5),
        ({"x": 1e300}, float("inf")),
        ({"h": 0.1}, 6.0 + 0.0999755859375),
        ({"b": False}, 8.0),
        ({"u": 255}, 263.0),
        ({"c": np.int64(3)}, 10.0),
        ({"f": 3}, 10.0),
    ],
)
def test_numbers(named: dict[str, Any], expected: float) -> None:
    A = np.zeros(1, np.float32)
    TYPED(A, **named)
    assert A[0] == np.float32(expected)


F32 = np.zeros(8, np.float32)
BAD: dict[str, tuple[tuple[Any, ...], dict[str, Any], str, str]] = {
    "missing": ((), {}, "missing a required argument: 'A'", "A: fx.Tensor"),
    "unknown": ((F32,), {"z": 1}, "'z'", "n: fx.Int32"),
    "too many": ((F32, 1, 2, 3.0, 4.0, True, 5, 6.0, 7), {}, "too many positional", "A: fx.Tensor"),
    "list for a tensor": (([1.0],), {}, "'A' is an fx.Tensor, and gets a list", "torch tensor"),
    "none for a tensor": ((None,), {}, "gets a NoneType", "numpy array"),
    "float for an integer": ((F32, 2.5), {}, "'n: fx.Int32' gets 2.5 (a float)", "-2147483648 to 2147483647"),
    "array for a number": ((F32, F32), {}, "'n: fx.Int32' gets a numpy.ndarray of shape (8,), float32", "integer"),
    "float of the trace": ((F32, fx.Float32(2.5)), {}, "'n: fx.Int32' gets 2.5", "integer"),
    "numpy float for an integer": ((F32, np.float32(2.5)), {}, "'n: fx.Int32' gets 2.5", "integer"),
    "too large": ((F32, 2**31), {}, "gets 2147483648", "2147483647"),
    "negative for unsigned": ((F32, 1, -1), {}, "'u: fx.Uint8' gets -1", "0 to 255"),
    "text for a float": ((F32, 1, 1, "3"), {}, "'x: fx.Float32' gets '3'", "a number"),
    "number for a Boolean": ((F32,), {"b": 1}, "'b: fx.Boolean' gets 1", "True or False"),
    "list for a constant": ((F32,), {"c": [1]}, "'c: fx.Constexpr[int]' gets [1]", "type int"),
    "float for a constant": ((F32,), {"c": 1.0}, "gets 1.0", "type int"),
    "text for a float constant": ((F32,), {"f": "1"}, "'f: fx.Constexpr[float]' gets '1'", "type float"),
    "no elements": ((np.zeros((3, 0), np.float32),), {}, "'A' has shape (3, 0): no elements", "where there is data"),
    "truth values": ((np.zeros(8, bool),), {}, "'A' holds bool", "uint8"),
    "complex": ((np.zeros(8, complex),), {}, "'A': flylab has no number format", "convert"),
    "text": ((np.array(["a"]),), {}, "no number format", "convert"),
    "objects": ((np.array([None]),), {}, "no number format", "convert"),
    "records": ((np.zeros(8, [("a", "f4")]),), {}, "no number format", "convert"),
    "other byte order": ((np.zeros(8, ">f4"),), {}, "other byte order", "newbyteorder"),
    "between elements": (
        (np.ndarray(4, np.float32, np.zeros(64, np.uint8), 0, (6,)),),
        {},
        "no whole number of 4-byte elements",
        "ascontiguousarray",
    ),
    "misaligned": ((np.zeros(65, np.uint8)[1:].view(np.float32),), {}, "'A' starts at the address 0x", "A.copy()"),
    "masked": ((np.ma.zeros(8, np.float32),), {}, "'A' has a mask", "filled"),
    "numpy number": ((np.float32(1),), {}, "'A' is an fx.Tensor, and gets a float32", "numpy.array(A)"),
    "GPU array": ((OnAnotherDevice(F32),), {}, "'A' is on rocm, and the software device reads the CPU's memory",
                  ".cpu()"),
    "through no DLPack": ((Refusing(F32),), {}, "'A' cannot be read through DLPack: not now", "on the CPU"),
}


@pytest.mark.parametrize("name", BAD)
def test_refused(name: str) -> None:
    args, named, message, hint = BAD[name]
    with pytest.raises(ArgumentError) as caught:
        TYPED(*args, **named)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_refused_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    for tensor, message, hint in (
        (torch.zeros(8, device="meta"), "is on meta, which has no memory", ".cpu()"),
        (torch.zeros(8).to_sparse(), "torch.sparse_coo tensor", "to_dense"),
        (torch.zeros(8, dtype=torch.bool), "holds bool", "torch.uint8"),
        (torch.zeros(8, dtype=torch.complex64), "no number format", "convert"),
        (torch.zeros(8, dtype=torch.float4_e2m1fn_x2), "holds float4_e2m1fn_x2", "A.view(torch.uint8)"),
        (torch.imag(torch.zeros(8, dtype=torch.complex64).conj()), "negates when it is read", "resolve_neg"),
    ):
        with pytest.raises(ArgumentError) as caught:
            TYPED(tensor)
        assert message in caught.value.message and hint in (caught.value.hint or "")


OUTSIDE: dict[str, Any] = {
    "beyond the end": lambda a: as_strided(a, (2**40,), (4,)),
    "below the start": lambda a: as_strided(a[2:], (4,), (-4,)),
    "of a view": lambda a: as_strided(a[:2], (9,), (4,)),
    "of a buffer": lambda a: as_strided(np.frombuffer(bytearray(32), np.float32), (9,), (4,)),
    "of bytes": lambda a: as_strided(np.frombuffer(bytes(32), np.float32), (3, 3), (16, 4)),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_tensors_that_reach_outside_of_their_memory(name: str) -> None:
    view = OUTSIDE[name](np.zeros(8, np.float32))
    with pytest.raises(ArgumentError, match="'T' has shape .* of a storage of 32 bytes") as caught:
        double(view)
    assert "as_strided" in str(caught.value.hint)


def test_strided_views_inside_of_their_memory() -> None:
    a = np.arange(8, dtype=np.float32)
    double(as_strided(a[1:], (2, 3), (12, 4)))
    assert a.tolist() == [0, 2, 4, 6, 8, 10, 12, 7]
    buffer = bytearray(np.arange(8, dtype=np.float32).tobytes())
    double(as_strided(np.frombuffer(buffer, np.float32)[7:], (8,), (-4,)))
    assert np.frombuffer(buffer, np.float32).tolist() == [2.0 * x for x in range(8)]


def test_a_mapped_file(tmp_path: Path) -> None:
    mapped = np.memmap(tmp_path / "data", np.float32, "w+", shape=(8,))
    mapped[:] = np.arange(8)
    double(mapped[2:4])
    assert mapped.tolist() == [0, 1, 4, 6, 4, 5, 6, 7]
    with pytest.raises(ArgumentError, match="of a storage of 32 bytes"):
        double(as_strided(mapped, (9,), (4,)))


@pytest.mark.filterwarnings("ignore:.*(nested|Sparse):UserWarning")
def test_torch_tensors_without_memory_of_their_own() -> None:
    torch = pytest.importorskip("torch")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.zeros(8)
    transformed: list[Any] = []
    torch.func.vmap(lambda x: transformed.append(x) or x)(torch.zeros(2, 8))
    short = torch.zeros(8)
    short.untyped_storage().resize_(16)
    odd = torch.zeros(65, dtype=torch.uint8)
    nested = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)])
    jagged = torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)], layout=torch.jagged)
    for tensor, message, hint in (
        (fake, "'A' is a FakeTensor without memory", "holds data"),
        (transformed[0], "'A' is a Tensor without memory", "functional"),
        (short, "of a storage of 16 bytes", "stays inside"),
        (torch.frombuffer(odd.numpy()[1:].data, dtype=torch.float32), "'A' starts at the address", "clone()"),
        (nested, "'A' is a nested tensor", "to_padded_tensor"),
        (jagged, "'A' is a nested tensor", "to_padded_tensor"),
        (torch.zeros(8, dtype=torch.complex64).conj(), "no number format", "convert"),
        (torch.zeros(8, 8).to_sparse_csr(), "torch.sparse_csr tensor", "to_dense"),
    ):
        with pytest.raises(ArgumentError) as caught:
            TYPED(tensor)
        assert message in caught.value.message and hint in (caught.value.hint or "")


class Copied:
    """An array that gives a copy of its own through DLPack, held by nothing else."""

    def __dlpack__(self, **options: Any) -> Any:
        self.shown = weakref.ref(array := np.arange(8, dtype=np.float32))
        return array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return (1, 0)


def test_memory_that_only_dlpack_holds_is_held_for_the_launch() -> None:
    value = Copied()
    bound = bind(double.signature.parameters[0], value)
    gc.collect()
    assert value.shown() is not None
    del bound
    gc.collect()
    assert value.shown() is None


def test_a_constant_must_be_hashable() -> None:
    launch = cell("""
        @flyc.jit
        def launch(A: fx.Tensor, c: fx.Constexpr):
            pass
    """)["launch"]
    with pytest.raises(ArgumentError, match="'c: fx.Constexpr.*' gets a list, which can change") as caught:
        launch(F32, [1])
    assert "tuple" in (caught.value.hint or "")


def test_read_only_arrays_are_read_and_not_written() -> None:
    frozen = np.arange(8, dtype=np.float32)
    frozen.flags.writeable = False
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor):
            B[fx.thread_idx.x] = A[fx.thread_idx.x]

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor):
            k(A, B).launch(grid=1, block=8)
    """)
    out = np.zeros(8, np.float32)
    names["launch"](frozen, out)
    assert np.array_equal(out, frozen)
    with pytest.raises(OutOfBounds, match="'B'"):
        names["launch"](out, frozen)
    assert np.array_equal(frozen, np.arange(8))


def test_a_compilation_takes_only_what_it_was_made_for() -> None:
    compiled = flyc.compile(double, np.zeros(8, np.float32))
    a = np.ones(8, np.float32)
    compiled(a)
    assert (a == 2).all()
    for other in (np.zeros(9, np.float32), np.zeros(8, np.int32), np.zeros(16, np.float32)[::2]):
        with pytest.raises(ArgumentError, match="'T' was compiled for f32, global, 8:1, and gets") as caught:
            compiled(other)
        assert "launcher" in (caught.value.hint or "")


@given(st.sampled_from([d for d in DTYPES.values() if d.kind in ("int", "uint") and 8 <= d.bits <= 64]), st.data())
def test_packed_integers(dtype: Any, data: st.DataObject) -> None:
    value = data.draw(st.integers(*integer_range(dtype)))
    packed = pack_number(value, dtype)
    assert len(packed) == dtype.bits // 8
    assert int.from_bytes(packed, "little", signed=dtype.signed) == value


@given(st.floats(width=64))
def test_packed_floats(value: float) -> None:
    assert pack_number(value, DTYPES["Float64"]) == struct.pack("<d", value)
    with np.errstate(over="ignore"):
        for name, dtype in (("Float32", np.float32), ("Float16", np.float16), ("BFloat16", ml_dtypes.bfloat16)):
            assert pack_number(value, DTYPES[name]) == np.array(value, np.float64).astype(dtype).tobytes()
