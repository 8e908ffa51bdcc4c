"""Launch arguments as bytes: arrays become addresses and buffers, numbers the bytes that the metadata gives them."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from flylab.codegen.isa import IsaKernel, KernelArg
from flylab.errors import ArgumentError

_FLOAT_CODES = {2: "<e", 4: "<f", 8: "<d"}
POINTER_KINDS = ("global_buffer", "dynamic_shared_pointer")


@dataclass(frozen=True)
class Buffer:
    """Memory that a kernel may touch: `nbytes` from `address`, for writing too where `writable`."""

    name: str
    address: int
    nbytes: int
    writable: bool = True

    @property
    def end(self) -> int:
        return self.address + self.nbytes


def extent(address: int, shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, int]:
    """The lowest byte and the number of bytes that a strided array spans; strides in bytes.

    >>> extent(1000, (3,), (8,), 4), extent(1000, (2, 3), (0, 4), 4), extent(1000, (3,), (-4,), 4)
    ((1000, 20), (1000, 12), (992, 12))
    """
    if not all(shape):
        return address, 0
    steps = [(n - 1) * stride for n, stride in zip(shape, strides, strict=True)]
    low = address + sum(s for s in steps if s < 0)
    return low, address + sum(s for s in steps if s > 0) + itemsize - low


def buffer_of(name: str, value: Any) -> tuple[int, Buffer]:
    """The address of an array's first element and the memory it spans.

    Takes torch CPU tensors and whatever has numpy's `__array_interface__`. Raises `ArgumentError` for anything else.
    """
    if hasattr(value, "data_ptr") and hasattr(value, "element_size"):
        if value.device.type != "cpu":
            raise ArgumentError(f"argument '{name}' is a tensor on {value.device}, and the software device reads "
                                "memory of the CPU", hint="pass tensor.cpu()")
        itemsize = value.element_size()
        address, shape, writable = value.data_ptr(), tuple(value.shape), True
        strides = tuple(s * itemsize for s in value.stride())
    elif hasattr(value, "__array_interface__"):
        interface = value.__array_interface__
        address, read_only = interface["data"]
        shape, writable, itemsize = interface["shape"], not read_only, int(interface["typestr"][2:])
        strides = interface.get("strides") or _packed_strides(shape, itemsize)
    else:
        raise ArgumentError(f"argument '{name}' is a pointer, and {type(value).__name__} is no array",
                            hint="pass a numpy array or a CPU tensor, or None for a null pointer")
    low, size = extent(address, shape, strides, itemsize)
    return address, Buffer(name, low, size, writable)


def _packed_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[n + 1:]) for n in range(len(shape)))


def pack(kernel: IsaKernel, args: Sequence[Any]) -> tuple[bytes, list[Buffer]]:
    """The kernel-argument segment, and the buffers of its pointers.

    Raises `ArgumentError` for a wrong number of arguments, a number that does not fit, or a value of the wrong sort.
    """
    parameters = [p for p in kernel.args if not p.hidden]
    if len(parameters) != len(args):
        names = ", ".join(p.name or f"argument {n}" for n, p in enumerate(parameters))
        raise ArgumentError(f"kernel '{kernel.name}' takes {len(parameters)} arguments ({names}), and {len(args)} were "
                            "given")
    segment = bytearray(max(kernel.kernarg_size, max((p.offset + p.size for p in parameters), default=0)))
    buffers = []
    for number, (parameter, value) in enumerate(zip(parameters, args, strict=True)):
        name = parameter.name or f"argument {number}"
        if parameter.kind in POINTER_KINDS:
            address = 0
            if value is not None:
                address, buffer = buffer_of(name, value)
                buffers.append(buffer)
            data = address.to_bytes(8, "little")
        else:
            data = number_bytes(name, parameter, value)
        segment[parameter.offset:parameter.offset + parameter.size] = data
    return bytes(segment), buffers


def number_bytes(name: str, parameter: KernelArg, value: Any) -> bytes:
    """A number as the bytes of its parameter: floats by the size, ints checked to fit, numpy scalars as they are."""
    size = parameter.size
    if hasattr(value, "tobytes") and hasattr(value, "dtype"):
        data: bytes = value.tobytes()
        if len(data) != size:
            raise ArgumentError(f"argument '{name}' takes {size} bytes, and a {value.dtype} has {len(data)}")
        return data
    if isinstance(value, bytes | bytearray):
        if len(value) != size:
            raise ArgumentError(f"argument '{name}' takes {size} bytes, and {len(value)} were given")
        return bytes(value)
    if isinstance(value, float) and size in _FLOAT_CODES:
        return _float_bytes(name, value, size)
    if not isinstance(value, int):
        raise ArgumentError(f"argument '{name}' takes a number of {size} bytes, not a {type(value).__name__}")
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise ArgumentError(f"argument '{name}' takes {size} bytes, and {value} does not fit")
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _float_bytes(name: str, value: float, size: int) -> bytes:
    try:
        return struct.pack(_FLOAT_CODES[size], value)
    except OverflowError:
        raise ArgumentError(f"argument '{name}' takes a float of {size} bytes, and {value} is beyond it") from None


def fill_hidden(kernel: IsaKernel, segment: bytearray, grid: tuple[int, int, int], block: tuple[int, int, int],
                shared: int) -> None:
    """Writes the arguments that the runtime provides: block counts, sizes, dimensions. Others stay zero."""
    values = {"grid_dims": 1 + max((n for n in range(3) if grid[n] > 1 or block[n] > 1), default=0),
              "dynamic_lds_size": shared}
    for n, axis in enumerate("xyz"):
        values[f"block_count_{axis}"] = grid[n]
        values[f"group_size_{axis}"] = block[n]
    for parameter in kernel.args:
        value = values.get(parameter.kind.removeprefix("hidden_"))
        if parameter.hidden and value is not None:
            segment[parameter.offset:parameter.offset + parameter.size] = value.to_bytes(parameter.size, "little")
