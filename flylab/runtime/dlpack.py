"""DLPack read in place: of the CPU's memory and of any device's, with and without a version.

The layout of the structures is that of `dlpack.h` 1.3 (https://github.com/dmlc/dlpack). The capsule is not consumed:
who holds it holds the memory, and when nobody does, its own destructor gives the memory back.
"""

from __future__ import annotations

import ctypes
from typing import Any

from flylab.dtypes import DTYPES, DType
from flylab.errors import ArgumentError
from flylab.runtime.tensors import CPU, Array, Device, compact, dtype_of

MAX_VERSION = (1, 3)
READ_ONLY, IS_COPIED = 1, 2
# Device types whose memory the CPU reads, and the names of those that it does not.
ON_HOST = (1, 3, 11)
DEVICES = {2: "cuda", 10: "rocm", 13: "cuda", 4: "opencl", 7: "vulkan", 8: "metal", 14: "oneapi", 15: "webgpu"}
# Type codes, with the formats of each width.
CODES = {
    0: {8: "int8", 16: "int16", 32: "int32", 64: "int64"},
    1: {8: "uint8", 16: "uint16", 32: "uint32", 64: "uint64"},
    2: {16: "float16", 32: "float32", 64: "float64"},
    4: {16: "bfloat16"},
    5: {64: "complex64", 128: "complex128"},
    6: {8: "bool"},
    7: {8: "float8_e3m4"},
    8: {8: "float8_e4m3"},
    9: {8: "float8_e4m3b11fnuz"},
    10: {8: "float8_e4m3fn"},
    11: {8: "float8_e4m3fnuz"},
    12: {8: "float8_e5m2"},
    13: {8: "float8_e5m2fnuz"},
    14: {8: "float8_e8m0fnu"},
    15: {6: "float6_e2m3fn"},
    16: {6: "float6_e3m2fn"},
    17: {4: "float4_e2m1fn"},
}


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class _Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", _Tensor),
    ]


def read(name: str, value: Any) -> Array:
    """The tensor that a value with `__dlpack__` holds. Raises `ArgumentError` where it does not hand it over."""
    capsule = _exported(name, value)
    versioned = _pointer(capsule, b"dltensor_versioned")
    if versioned:
        held = _Versioned.from_address(versioned)
        if held.major != MAX_VERSION[0]:
            raise ArgumentError(f"'{name}' speaks DLPack {held.major}.{held.minor}, and flylab {MAX_VERSION[0]}.x",
                                hint="pass a numpy array or a torch tensor of the same memory")
        tensor, flags = held.tensor, held.flags
    else:
        plain = _pointer(capsule, b"dltensor")
        if not plain:
            raise ArgumentError(f"'{name}' gives {capsule!r} for __dlpack__(), which holds no tensor",
                                hint="a capsule that was not taken yet is named dltensor or dltensor_versioned")
        tensor, flags = _Tensor.from_address(plain), 0
    if flags & IS_COPIED:
        raise ArgumentError(f"'{name}' hands over a copy of its memory, and what a kernel writes would be lost",
                            hint="pass the copy itself, and read the result there")
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.ndim and tensor.strides else compact(shape)
    address = (tensor.data or 0) + tensor.byte_offset
    dtype = _dtype(name, tensor)
    return Array(dtype, shape, strides, address, not flags & READ_ONLY, (capsule, value), device=_device(name, tensor))


def _exported(name: str, value: Any) -> Any:
    """The capsule of an object: in place, of the newest version that it knows."""
    errors = (BufferError, RuntimeError, TypeError, ValueError, AttributeError)
    try:
        try:
            return value.__dlpack__(max_version=MAX_VERSION, copy=False)
        except TypeError:  # it does not know of versions
            return value.__dlpack__()
    except errors as error:
        raise ArgumentError(
            f"'{name}' cannot be read through DLPack: {error}",
            hint="pass it without gradients, on the CPU or on a GPU, in a format that DLPack has",
        ) from None


def _pointer(capsule: Any, kind: bytes) -> int | None:
    """The address in a capsule of this name; None for one of another name."""
    if not _is_valid(ctypes.py_object(capsule), kind):
        return None
    found: int | None = _get_pointer(ctypes.py_object(capsule), kind)
    return found


_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(("PyCapsule_IsValid", ctypes.pythonapi))
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _device(name: str, tensor: _Tensor) -> Device:
    if tensor.device_type in ON_HOST:
        return CPU
    return DEVICES.get(tensor.device_type, f"device type {tensor.device_type} of DLPack"), tensor.device_id


def _dtype(name: str, tensor: _Tensor) -> DType:
    if tensor.lanes != 1:
        raise ArgumentError(f"'{name}' holds vectors of {tensor.lanes} numbers as its elements",
                            hint="pass it with one number an element, and a mode more")
    found = CODES.get(tensor.code, {}).get(tensor.bits)
    if found is None:
        raise ArgumentError(f"'{name}' holds numbers of DLPack's type code {tensor.code} with {tensor.bits} bits",
                            hint="convert the array to one of " + ", ".join(d.numpy_name for d in DTYPES.values()
                                                                              if d.numpy_name and d.bits >= 8))
    return dtype_of(name, found, "uint8")
