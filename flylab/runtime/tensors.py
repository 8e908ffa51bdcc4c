"""What arrays are to a launch: their format, shape, strides and memory, read in place from whoever holds them."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flylab.dtypes import BOOL, DType, of_numpy
from flylab.emulator.arrays import within_allocation
from flylab.errors import ArgumentError, FlylabError
from flylab.shown import a_kind

Device = str | tuple[str, int]
"""Where memory is: the host's ("cpu"), or a GPU's, by its kind and number: ("rocm", 1), with -1 where nobody says."""
CPU = "cpu"


@dataclass(frozen=True)
class Array:
    """A tensor as its library shows it; strides in elements, `owned` the first byte and the end of its storage.

    `keep` is what holds the memory, and `base` the object that tells where its allocation begins.
    """

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    writable: bool
    keep: Any
    owned: tuple[int, int] | None = None
    base: Any = None
    device: Device = CPU


@dataclass(frozen=True)
class Memory:
    """The memory behind a tensor or pointer: its first element's address, the bytes it spans, whether it is writable.

    The span starts at `start`, which is below `address` where a stride is negative, and `within` bytes after the
    beginning of its allocation (-1: not known); strides are in elements. `nbytes` is -1 where nobody knows how far it
    reaches: behind a raw pointer.
    """

    name: str
    address: int
    start: int
    nbytes: int
    writable: bool
    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    within: int
    device: Device = CPU


def is_array(value: Any) -> bool:
    """Whether a value says of itself, by any of the protocols, that it is an array.

    >>> import numpy
    >>> is_array(numpy.zeros(3)), is_array([0.0])
    (True, False)
    """
    return any(hasattr(value, name) for name in ("__array_interface__", "__dlpack__", "__cuda_array_interface__"))


def array_of(name: str, value: Any) -> Array:
    """The tensor that a value is: numpy's, torch's, or of anyone who speaks DLPack or one of the array interfaces.

    Raises `ArgumentError` for what is none, or has no form that a kernel could read in place.
    """
    if isinstance(value, Array):
        return value
    if _is_of(value, "torch", "Tensor"):
        return _of_torch(name, value)
    if _is_of(value, "numpy", "ndarray"):
        return _of_numpy(name, value)
    if hasattr(value, "__dlpack__"):
        from flylab.runtime.dlpack import read

        return read(name, value)
    if hasattr(value, "__cuda_array_interface__"):
        return _of_interface(name, value.__cuda_array_interface__, value, ("rocm", -1))
    if hasattr(value, "__array_interface__") and not _is_of(value, "numpy", "generic"):
        return _of_host_interface(name, value)
    how = f"numpy.array({name})" if hasattr(value, "__array_interface__") else "a torch tensor, a numpy array"
    instead = "; an address needs the annotation fx.Pointer" * isinstance(value, (int, ctypes.c_void_p))
    raise ArgumentError(
        f"'{name}' is an fx.Tensor, and gets {a_kind(value)}",
        hint=f"pass {how}, or anything with __dlpack__{instead}",
    )


def _is_of(value: Any, library: str, kind: str) -> bool:
    """Whether a value is of a class of a library, which then somebody has imported."""
    found = sys.modules.get(library)
    return found is not None and isinstance(value, getattr(found, kind, ()))


def memory_of(name: str, array: Array) -> Memory:
    """The memory that a tensor spans. Raises `ArgumentError` where it is none that a kernel could touch."""
    size = array.dtype.bits // 8
    reach = [(extent - 1) * stride * size for extent, stride in zip(array.shape, array.strides, strict=True)]
    start = array.address + sum(r for r in reach if r < 0)
    end = array.address + sum(r for r in reach if r > 0) + size
    if 0 in array.shape:
        start = end = array.address
    elif array.owned is not None and not array.owned[0] <= start <= end <= array.owned[1]:
        low, high = array.owned
        raise ArgumentError(
            f"'{name}' has shape {array.shape} and strides {array.strides}, and so spans the bytes {start - low} to "
            f"{end - low} of a storage of {high - low} bytes",
            hint="pass a view that stays inside of its array; as_strided does not check",
        )
    check_aligned(name, array.address, size, f"{size}-byte elements")
    within = -1 if array.base is None or start == end else within_allocation(array.base, start)
    return Memory(name, array.address, start, end - start, array.writable, array.dtype, array.shape, array.strides,
                  within, array.device)


def check_aligned(name: str, address: int, size: int, what: str) -> None:
    """Raise `ArgumentError` for an address that is no multiple of `size` bytes, which `what` is."""
    if address % size:
        raise ArgumentError(
            f"'{name}' starts at the address {address:#x}, no multiple of its {what}",
            hint=f"pass a copy, which is aligned: {name}.copy() of numpy, {name}.clone() of torch",
        )


def _of_torch(name: str, tensor: Any) -> Array:
    kind = tensor.device.type
    if kind not in (CPU, "cuda"):
        raise ArgumentError(
            f"'{name}' is on {tensor.device}, which has no memory that a kernel could read", hint=f"pass {name}.cpu()"
        )
    if tensor.is_nested:
        raise ArgumentError(f"'{name}' is a nested tensor", hint=f"pass {name}.to_padded_tensor(0.0), or its parts")
    if tensor.layout is not _torch().strided:
        raise ArgumentError(f"'{name}' is a {tensor.layout} tensor", hint=f"pass {name}.to_dense()")
    if tensor.is_neg():
        raise ArgumentError(f"'{name}' is a view that torch negates when it is read", hint=f"pass {name}.resolve_neg()")
    dtype = dtype_of(name, str(tensor.dtype).removeprefix("torch."), "torch.uint8")
    try:
        storage = tensor.untyped_storage()
        has_memory = storage.device.type == kind  # a FakeTensor says so of itself alone
    except RuntimeError:  # a tensor of a functional transform
        has_memory = False
    if not has_memory:
        raise ArgumentError(
            f"'{name}' is {a_kind(tensor)} without memory of its own",
            hint="pass a tensor that holds data; launch outside of torch.compile and of functional transforms",
        )
    owned = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    device: Device = CPU if kind == CPU else ("rocm" if _torch().version.hip else "cuda", tensor.device.index or 0)
    return Array(dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.data_ptr(), True, tensor, owned, tensor,
                 device)


def _torch() -> Any:
    import torch

    return torch


def _of_numpy(name: str, array: Any) -> Array:
    masked: Any = sys.modules.get("numpy.ma")  # to name it would import it, which takes 30 ms
    if masked is not None and isinstance(array, masked.MaskedArray):
        raise ArgumentError(f"'{name}' has a mask, which a kernel does not see", hint=f"pass {name}.filled(0)")
    if not array.dtype.isnative:
        raise ArgumentError(
            f"'{name}' has dtype {array.dtype.str}, of the other byte order",
            hint=f"pass {name}.astype({name}.dtype.newbyteorder('='))",
        )
    dtype = dtype_of(name, str(array.dtype), "'uint8'")
    strides = in_elements(name, array.strides, array.dtype.itemsize)
    return Array(dtype, tuple(array.shape), strides, array.ctypes.data, array.flags.writeable, array, _owned(array),
                 array)


def in_elements(name: str, strides: Sequence[int], size: int) -> tuple[int, ...]:
    """Strides of bytes in elements of `size` bytes. Raises `ArgumentError` where they are no whole number of them."""
    if any(s % size for s in strides):
        raise ArgumentError(
            f"'{name}' has strides of {tuple(strides)} bytes, no whole number of {size}-byte elements",
            hint=f"pass numpy.ascontiguousarray({name})",
        )
    return tuple(s // size for s in strides)


def _owned(array: Any) -> tuple[int, int] | None:
    """The first byte and the end of the memory that a numpy array is a view of; None where its owner does not say."""
    import numpy

    owner = array
    while getattr(owner, "base", None) is not None:
        owner = owner.base
    if not isinstance(owner, numpy.ndarray):
        try:
            owner = numpy.frombuffer(owner, numpy.uint8)
        except (TypeError, ValueError, BufferError):
            return None
    elif not owner.flags.owndata:
        return None
    return owner.ctypes.data, owner.ctypes.data + owner.nbytes


def _of_host_interface(name: str, value: Any) -> Array:
    """An object with `__array_interface__`, which numpy reads in place, or as bytes that nobody can write."""
    import numpy

    try:
        return _of_numpy(name, numpy.asarray(value))
    except (TypeError, ValueError, AttributeError) as error:
        raise ArgumentError(f"'{name}' has an __array_interface__ that numpy does not read: {error}",
                            hint=f"pass numpy.array({name})") from None


def _of_interface(name: str, given: Any, value: Any, device: Device) -> Array:
    """An object with `__cuda_array_interface__`, as
    https://numba.readthedocs.io/en/stable/cuda/cuda_array_interface.html describes it."""
    import numpy

    if given.get("mask") is not None:
        raise ArgumentError(f"'{name}' has a mask, which a kernel does not see", hint="pass the array without it")
    form = numpy.dtype(given["typestr"])
    dtype = dtype_of(name, str(form), "'uint8'")
    shape = tuple(given["shape"])
    strides = given.get("strides")
    steps = compact(shape) if strides is None else in_elements(name, strides, form.itemsize)
    address, read_only = given["data"]
    return Array(dtype, shape, steps, address or 0, not read_only, value, device=device)


def compact(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of an array without gaps, the last index the fastest.

    >>> compact((2, 3, 4))
    (12, 4, 1)
    """
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def dtype_of(name: str, text: str, byte: str) -> DType:
    """The number format of this name, of an array's elements. Raises `ArgumentError` for one that no tensor has.

    `byte` is how its library calls bytes.
    """
    if text.endswith("_x2"):  # as torch calls two numbers of 4 bits in a byte
        raise ArgumentError(f"'{name}' holds {text}, and tensors hold whole bytes",
                            hint=f"pass its bytes: {name}.view({byte})")
    try:
        found = of_numpy(text)
    except FlylabError as error:
        raise ArgumentError(f"'{name}': {error.message}", hint=error.hint) from None
    if found.bits % 8 or found.kind == BOOL:
        raise ArgumentError(
            f"'{name}' holds {text}, and no tensor has {found} for its elements",
            hint=f"pass its bytes: {name}.view({byte})",
        )
    return found
