"""Launch arguments: what each is (which decides the compilation), and its value (which goes to the device)."""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass
from typing import Any

from flylab.compiler.meaning import is_by_state
from flylab.compiler.passing import HostArgument
from flylab.compiler.signature import CONSTEXPR, INFERRED, NUMBER, STREAM, STRUCT, TENSOR, Parameter
from flylab.dialect.types import MemRef
from flylab.dtypes import BOOL, DType, of_numpy
from flylab.emulator.arrays import within_allocation
from flylab.errors import ArgumentError, FlylabError
from flylab.expr.bits import to_bits
from flylab.expr.folding import normalise
from flylab.expr.numeric import Numeric
from flylab.expr.promotion import plain
from flylab.expr.struct import Struct
from flylab.expr.typing import Stream
from flylab.layout import Layout


@dataclass(frozen=True)
class Memory:
    """The memory behind a tensor argument: its first element's address, the bytes it spans, and whether it is writable.

    The span starts at `start`, which is below `address` where a stride is negative, and `within` bytes after the
    beginning of its allocation (-1: not known); strides are in elements.
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


@dataclass(frozen=True)
class Bound:
    """One bound argument: the description that keys the compilation, the launch value, the memory of a tensor.

    `keep` is what holds that memory until the launch is over.
    """

    host: HostArgument
    value: Any
    memory: Memory | None = None
    keep: Any = None

    def operands(self) -> list[Any]:
        """The values of the launcher's runtime arguments: a number, the numbers of a struct, the host's address."""
        if self.host.kind == STRUCT:
            return list(self.value)
        return [self.value] if self.host.kind in (TENSOR, NUMBER) else []


def bind(parameter: Parameter, value: Any) -> Bound:
    """Match a launch argument with its parameter.

    Raises `ArgumentError`, in the user's names, for what does not fit.
    """
    kind = parameter.kind
    if kind == INFERRED:
        kind = _infer(value)
    if kind == TENSOR:
        return _tensor(parameter.name, value)
    if kind == NUMBER:
        return _number(parameter, value)
    if kind == STREAM:
        return Bound(HostArgument(parameter.name, STREAM, Stream()), value)
    if kind == STRUCT:
        return _struct(parameter, value)
    return _constexpr(parameter, value)


def _infer(value: Any) -> str:
    if _is_array(value):
        return TENSOR
    if isinstance(value, Stream):
        return STREAM
    if isinstance(value, Struct):
        return STRUCT
    return NUMBER if isinstance(value, Numeric) else CONSTEXPR


def _is_array(value: Any) -> bool:
    return hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__") or hasattr(value, "data_ptr")


@dataclass(frozen=True)
class _Array:
    """A tensor as numpy or torch shows it; strides in elements, `owned` the first byte and the end of its storage."""

    dtype: DType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    address: int
    writable: bool
    owned: tuple[int, int] | None


def _tensor(name: str, value: Any) -> Bound:
    if hasattr(value, "data_ptr"):
        array = _of_torch(name, value)
    else:
        value = value if _is_numpy(value) else _through_dlpack(name, value)
        array = _of_numpy(name, value)
    shape, strides = array.shape, array.strides
    if 0 in shape:
        raise ArgumentError(f"'{name}' has shape {shape}: no elements", hint="launch only where there is data")
    layout = Layout(shape[0], strides[0]) if len(shape) == 1 else Layout(shape, strides) if shape else Layout(1, 0)
    spec = MemRef(array.dtype, "global", layout)
    return Bound(HostArgument(name, TENSOR, spec), array.address, _memory(name, array, value), value)


def _memory(name: str, array: _Array, value: Any) -> Memory:
    """The memory that a tensor spans. Raises `ArgumentError` where it is none that a kernel could touch."""
    size = array.dtype.bits // 8
    reach = [(extent - 1) * stride * size for extent, stride in zip(array.shape, array.strides, strict=True)]
    start = array.address + sum(r for r in reach if r < 0)
    end = array.address + sum(r for r in reach if r > 0) + size
    if array.owned is not None and not array.owned[0] <= start <= end <= array.owned[1]:
        low, high = array.owned
        raise ArgumentError(
            f"'{name}' has shape {array.shape} and strides {array.strides}, and so spans the bytes {start - low} to "
            f"{end - low} of a storage of {high - low} bytes",
            hint="pass a view that stays inside of its array; as_strided does not check",
        )
    if array.address % size:
        raise ArgumentError(
            f"'{name}' starts at the address {array.address:#x}, no multiple of its {size}-byte elements",
            hint=f"pass a copy, which is aligned: {name}.copy() of numpy, {name}.clone() of torch",
        )
    return Memory(name, array.address, start, end - start, array.writable, array.dtype, array.shape, array.strides,
                  within_allocation(value, start))


def _is_numpy(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _through_dlpack(name: str, value: Any) -> Any:
    import numpy

    if not hasattr(value, "__dlpack__"):
        how = f"numpy.array({name})" if hasattr(value, "__array_interface__") else "a torch tensor, a numpy array"
        raise ArgumentError(
            f"'{name}' is an fx.Tensor, and gets a {type(value).__name__}",
            hint=f"pass {how}, or anything with __dlpack__",
        )
    try:
        return numpy.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(
            f"'{name}' cannot be read through DLPack: {error}", hint="the software device reads the CPU's memory"
        ) from None


def _of_torch(name: str, tensor: Any) -> _Array:
    if tensor.device.type != "cpu":
        raise ArgumentError(
            f"'{name}' is on {tensor.device}, and the software device reads the CPU's memory", hint=f"pass {name}.cpu()"
        )
    if tensor.is_nested:
        raise ArgumentError(f"'{name}' is a nested tensor", hint=f"pass {name}.to_padded_tensor(0.0), or its parts")
    if tensor.layout is not _torch().strided:
        raise ArgumentError(f"'{name}' is a {tensor.layout} tensor", hint=f"pass {name}.to_dense()")
    if tensor.is_neg():
        raise ArgumentError(f"'{name}' is a view that torch negates when it is read", hint=f"pass {name}.resolve_neg()")
    dtype = _dtype(name, str(tensor.dtype).removeprefix("torch."), "torch.uint8")
    try:
        storage = tensor.untyped_storage()
        has_memory = storage.device.type == "cpu"  # a FakeTensor says so of itself alone
    except RuntimeError:  # a tensor of a functional transform
        has_memory = False
    if not has_memory:
        raise ArgumentError(
            f"'{name}' is a {type(tensor).__name__} without memory of its own",
            hint="pass a tensor that holds data; launch outside of torch.compile and of functional transforms",
        )
    owned = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    return _Array(dtype, tuple(tensor.shape), tuple(tensor.stride()), tensor.data_ptr(), True, owned)


def _torch() -> Any:
    import torch

    return torch


def _of_numpy(name: str, array: Any) -> _Array:
    import numpy

    if isinstance(array, numpy.ma.MaskedArray):
        raise ArgumentError(f"'{name}' has a mask, which a kernel does not see", hint=f"pass {name}.filled(0)")
    if not array.dtype.isnative:
        raise ArgumentError(
            f"'{name}' has dtype {array.dtype.str}, of the other byte order",
            hint=f"pass {name}.astype({name}.dtype.newbyteorder('='))",
        )
    dtype = _dtype(name, str(array.dtype), "'uint8'")
    size = array.dtype.itemsize
    if any(s % size for s in array.strides):
        raise ArgumentError(
            f"'{name}' has strides of {array.strides} bytes, no whole number of {size}-byte elements",
            hint=f"pass numpy.ascontiguousarray({name})",
        )
    strides = tuple(s // size for s in array.strides)
    return _Array(dtype, tuple(array.shape), strides, array.ctypes.data, array.flags.writeable, _owned(array))


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


def _dtype(name: str, text: str, byte: str) -> DType:
    try:
        found = of_numpy(text)
    except FlylabError as error:
        raise ArgumentError(f"'{name}': {error.message}", hint=error.hint) from None
    if found.bits % 8 or found.kind == BOOL:
        raise ArgumentError(
            f"'{name}' holds {text}, and tensors of {found} are not there yet",
            hint=f"pass its bytes: {name}.view({byte})",
        )
    return found


def _number(parameter: Parameter, value: Any) -> Bound:
    host = HostArgument(parameter.name, NUMBER, parameter.numeric or type(value))
    return Bound(host, number_of(parameter, value))


def number_of(parameter: Parameter, value: Any) -> Any:
    """Python's number for a runtime number: of flylab's, numpy's and torch's scalars too.

    Raises `ArgumentError` for what does not fit its format.
    """
    cls = parameter.numeric or type(value)
    if isinstance(value, Numeric):
        value = value.value
    elif hasattr(value, "item") and getattr(value, "ndim", None) == 0:
        value = value.item()
    parameter.check_number(cls, value)
    return value


def _struct(parameter: Parameter, value: Any) -> Bound:
    if parameter.kind == STRUCT:
        parameter.check_struct(value)
    return Bound(HostArgument(parameter.name, STRUCT, type(value)), [leaf.value for leaf in value.leaves()])


def _constexpr(parameter: Parameter, value: Any) -> Bound:
    value = value.value if isinstance(value, Numeric) and value.is_static else plain(value)
    parameter.check_constant(value)
    try:
        hash(value)
    except TypeError:
        if is_by_state(type(value)):  # an object of a dataclass: what it stores is compared at each launch
            return Bound(HostArgument(parameter.name, CONSTEXPR, value), value)
        raise ArgumentError(
            f"'{parameter}' gets a {type(value).__name__}, which can change after compiling",
            hint="pass something hashable: a tuple instead of a list",
        ) from None
    return Bound(HostArgument(parameter.name, CONSTEXPR, value), value)


FORMATS = {
    ("int", 8): "b",
    ("int", 16): "h",
    ("int", 32): "i",
    ("int", 64): "q",
    ("uint", 8): "B",
    ("uint", 16): "H",
    ("uint", 32): "I",
    ("uint", 64): "Q",
    ("float", 32): "f",
    ("float", 64): "d",
    ("bool", 1): "?",
}


def pack_number(value: Any, dtype: DType) -> bytes:
    """The bytes of a number as a kernel argument; integers wrap, floats round to nearest even.

    >>> from flylab.dtypes import DTYPES
    >>> pack_number(-2, DTYPES["Int32"]).hex()
    'feffffff'
    """
    value = normalise(value, dtype)
    code = FORMATS.get((dtype.kind, dtype.bits))
    if code:
        return struct.pack("<" + code, value)
    return to_bits(value, dtype).to_bytes(-(-dtype.bits // 8), "little")
