"""Arrays of every protocol are read and written in place, or refused by name."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError, OutOfBounds
from flylab.runtime.tensors import array_of, memory_of
from tests.samples import cell

CHIPS = ("gfx942", "gfx950")
DOUBLE = """
@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] + A[fx.thread_idx.x]

@flyc.jit
def double(A: fx.Tensor):
    k(A).launch(grid=1, block=fx.size(A))
"""
double = cell(DOUBLE)["double"]


class Exporting:
    """An array that offers DLPack alone, of the old protocol or the new one."""

    def __init__(self, array: Any, versions: bool):
        self.array, self.versions = array, versions

    def __dlpack__(self, *, stream: Any = None, **options: Any) -> Any:
        if options and not self.versions:
            raise TypeError("__dlpack__() got an unexpected keyword argument")
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


class Interface:
    """An array that offers one of the array interfaces alone."""

    def __init__(self, array: Any, name: str = "__array_interface__", **changed: Any):
        self.keep = array
        setattr(self, name, {**array.__array_interface__, "version": 3, **changed})


SHOWN: dict[str, Any] = {
    "DLPack": lambda a: Exporting(a, False),
    "DLPack with versions": lambda a: Exporting(a, True),
    "array interface": Interface,
    "known address": lambda a: flyc.from_c_void_p(fx.Float32, a.ctypes.data, shape=a.shape),
}


@pytest.mark.parametrize("name", SHOWN)
def test_read_and_written_in_place(name: str) -> None:
    a = np.arange(8, dtype=np.float32)
    double(SHOWN[name](a))
    assert np.array_equal(a, 2 * np.arange(8))


@pytest.mark.parametrize("versions", [False, True])
def test_strides_of_dlpack(versions: bool) -> None:
    a = np.arange(24, dtype=np.int32)
    double(Exporting(a[20:3:-3], versions))
    expected = np.arange(24, dtype=np.int32)
    expected[20:3:-3] *= 2
    assert np.array_equal(a, expected)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64", "int8", "uint16", "int64"])
def test_formats_of_torch_through_dlpack(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    t = torch.arange(1, 9).to(getattr(torch, dtype))
    array = array_of("t", Exporting(t, True))
    assert array == array_of("t", t).__class__(array.dtype, (8,), (1,), t.data_ptr(), True, array.keep)
    assert array.dtype == array_of("t", t).dtype


def test_eight_bit_floats_of_dlpack() -> None:
    torch = pytest.importorskip("torch")
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"):
        t = torch.zeros(4, dtype=getattr(torch, name))
        try:
            t.__dlpack__()
        except BufferError:
            continue  # this torch does not export it
        assert array_of("t", Exporting(t, True)).dtype.numpy_name == name


def test_read_only_memory_is_read_and_not_written() -> None:
    frozen = np.arange(8, dtype=np.float32)
    frozen.flags.writeable = False
    for shown in (Exporting(frozen, True), Interface(frozen)):
        assert not array_of("A", shown).writable
        with pytest.raises(OutOfBounds, match="'A'"):
            double(shown)
    with pytest.raises(ArgumentError, match="'A' cannot be read through DLPack: .*readonly"):
        double(Exporting(frozen, False))
    assert np.array_equal(frozen, np.arange(8))


def test_a_capsule_is_held_as_long_as_its_launch_is_bound() -> None:
    array = np.arange(8, dtype=np.float32)
    shown = Exporting(array, True)
    seen = weakref.ref(array)
    found = array_of("A", shown)
    del array, shown.array
    gc.collect()
    assert seen() is not None
    del found
    gc.collect()
    assert seen() is None


def capsule_of(**changed: Any) -> Any:
    """What an object gives whose DLPack structure has other fields."""
    from flylab.runtime import dlpack

    array = np.arange(8, dtype=np.float32)
    capsule = array.__dlpack__(max_version=(1, 0))
    address = ctypes.pythonapi.PyCapsule_GetPointer
    address.restype, address.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    held = dlpack._Versioned.from_address(address(capsule, b"dltensor_versioned"))
    for name, value in changed.items():
        setattr(held if hasattr(held, name) else held.tensor, name, value)

    class Given:
        def __dlpack__(self, **options: Any) -> Any:
            return capsule

    return Given()


FIELDS: dict[str, tuple[dict[str, Any], str]] = {
    "another version": ({"major": 2}, "speaks DLPack 2."),
    "a copy": ({"flags": 2}, "a copy of its memory"),
    "vectors": ({"lanes": 4}, "vectors of 4 numbers"),
    "no such format": ({"code": 99}, "type code 99 with 32 bits"),
    "Booleans": ({"code": 6, "bits": 8}, "holds bool"),
    "complex": ({"code": 5, "bits": 64}, "no number format for numpy's 'complex64'"),
    "an AMD GPU": ({"device_type": 10, "device_id": 1}, "is on rocm:1, and the software device"),
    "an Nvidia GPU": ({"device_type": 2}, "is on cuda:0, and the software device"),
    "something else": ({"device_type": 17}, "is on device type 17 of DLPack"),
}


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_dlpack_that_are_refused(name: str) -> None:
    changed, message = FIELDS[name]
    with pytest.raises(ArgumentError, match=message) as caught:
        double(capsule_of(**changed))
    assert "'A'" in caught.value.message and caught.value.hint


def test_an_offset_and_a_flag_of_dlpack() -> None:
    found = array_of("A", capsule_of(byte_offset=8, flags=1))
    assert found.address == array_of("A", capsule_of()).address + 8 or found.address % 16 == 8
    assert not found.writable


def test_memory_of_other_devices_is_described() -> None:
    """What a backend for AMD's GPUs decides by."""
    array = np.zeros((4, 6), np.float16)
    found = memory_of("A", array_of("A", Interface(array[:, ::2], "__cuda_array_interface__")))
    assert found.device == ("rocm", -1) and found.shape == (4, 3) and found.strides == (6, 2)
    assert memory_of("A", array_of("A", capsule_of(device_type=10, device_id=3))).device == ("rocm", 3)
    assert memory_of("A", array_of("A", capsule_of(device_type=11))).device == "cpu"  # pinned memory of the host


def test_interfaces_that_are_refused() -> None:
    array = np.zeros(8, np.float32)
    for shown, message in (
        (Interface(array, "__cuda_array_interface__", mask=array), "'A' has a mask"),
        (Interface(array, "__cuda_array_interface__", typestr="<c8"), "no number format"),
        (Interface(array, "__cuda_array_interface__", strides=(6,)), "no whole number of 4-byte"),
        (Interface(array, typestr="nonsense"), "__array_interface__ that numpy does not read"),
    ):
        with pytest.raises(ArgumentError, match=message):
            double(shown)


R03 = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    block = fx.block_idx.x
    a = fx.slice(fx.logical_divide(A, fx.make_layout(4, 1)), (None, block))
    b = fx.slice(fx.logical_divide(B, fx.make_layout(4, 1)), (None, block))
    b.store(a.load())

@flyc.jit
def copy(A: fx.Tensor, B: fx.Tensor):
    k(A, B).launch(grid=fx.size(A) // 4, block=1)
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_another_length_stride_format_or_alignment_is_right(chip: str, library: str) -> None:
    copy = cell(R03)["copy"]
    make = (lambda a: a) if library == "numpy" else pytest.importorskip("torch").from_numpy
    base = np.arange(2049)
    with flylab.use(chip):
        for dtype in (np.float32, np.float16):
            values = base.astype(dtype)
            for view in (values[:1024], values[:2048], values[:2048:2], values[1:1025], values[1:2049]):
                out = np.zeros(len(view) + 1, dtype)
                for target in (out[:-1], out[1:]):
                    copy(make(view), make(target))
                    assert np.array_equal(target, view)


WIDE = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor):
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), A.dtype)
    lanes = 16 // fx.sizeof(A.dtype)
    i = fx.thread_idx.x
    r = fx.make_rmem_tensor(lanes, A.dtype)
    fx.copy(atom, fx.slice(fx.logical_divide(A, lanes), (None, i)), r)
    fx.copy(atom, r, fx.slice(fx.logical_divide(B, lanes), (None, i)))

@flyc.jit
def wide(A: fx.Tensor, B: fx.Tensor):
    k(A, B).launch(grid=1, block=64)
"""


@pytest.mark.parametrize("chip", CHIPS)
def test_copies_of_16_bytes_of_views_that_begin_between_them(chip: str) -> None:
    wide = cell(WIDE)["wide"]
    with flylab.use(chip):
        for dtype, lanes in ((np.float16, 8), (np.float32, 4)):
            values = np.arange(64 * lanes + 1).astype(dtype)
            for at in (0, 1):
                for to in (0, 1):
                    out = np.zeros_like(values)
                    wide(values[at:at + 64 * lanes], out[to:to + 64 * lanes])
                    assert np.array_equal(out[to:to + 64 * lanes], values[at:at + 64 * lanes])
