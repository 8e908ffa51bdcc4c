"""Launch arguments as bytes: arrays become addresses and buffers, numbers the bytes that the metadata gives them."""

from __future__ import annotations

import math
import reprlib
import struct
from collections.abc import Sequence
from operator import index
from typing import Any

from flylab.codegen.isa import IsaKernel, KernelArg
from flylab.emulator.arrays import Buffer, View, extent, within_allocation
from flylab.emulator.windows import with_windows
from flylab.errors import ArgumentError
from flylab.shown import a_kind

_FLOAT_CODES = {2: "<e", 4: "<f", 8: "<d"}
POINTER_KIND, NUMBER_KIND = "global_buffer", "by_value"
LDS_POINTER_KIND = "dynamic_shared_pointer"
# The kinds of numpy formats whose bytes are the values: numbers, and structures of them.
_PLAIN_KINDS = "biufcV"


def buffer_of(name: str, value: Any) -> Buffer:
    """The memory that an array spans.

    Takes torch CPU tensors and whatever has numpy's `__array_interface__`. Raises `ArgumentError` for anything else.
    """
    try:
        if isinstance(value, type) or _is_numpy_scalar(value):  # of a scalar, numpy shows memory that is freed at once
            described = None
        elif hasattr(value, "data_ptr") and hasattr(value, "element_size"):
            described = _of_torch(name, value)
        else:
            described = _of_interface(name, value) if hasattr(value, "__array_interface__") else None
    except ArgumentError:
        raise
    except Exception as error:  # whatever an object's own code raises
        raise ArgumentError(f"{label(name)} is {a_kind(value)} that does not say where its memory is: "
                            f"{error!r}", hint="pass numpy.asarray of it") from error
    if described is None:
        raise ArgumentError(f"{label(name)} is a pointer, and {type(value).__name__} is no array",
                            hint="pass a numpy array or a CPU tensor, or None for a null pointer")
    address, shape, strides, itemsize, writable, format_ = described
    low, size = extent(address, shape, strides, itemsize)
    return Buffer(name, low, size, writable, view=View(shape, strides, itemsize, address - low, format_),
                  within=within_allocation(value, low))


def _is_numpy_scalar(value: Any) -> bool:
    return any((base.__module__, base.__name__) == ("numpy", "generic") for base in type(value).__mro__)


# The first element's address, the shape, the strides in bytes, the bytes of an element, whether it is writable, the
# format of an element.
Described = tuple[int, tuple[int, ...], tuple[int, ...], int, bool, Any]


def _of_torch(name: str, tensor: Any) -> Described:
    if tensor.device.type != "cpu":
        raise ArgumentError(f"{label(name)} is a tensor on {tensor.device}, and the software device reads "
                            "memory of the CPU", hint="pass tensor.cpu()")
    for lazy, resolve in (("is_conj", "resolve_conj"), ("is_neg", "resolve_neg")):
        if getattr(tensor, lazy)():
            raise ArgumentError(f"{label(name)} is a view whose values torch changes when it reads them ({lazy})",
                                hint=f"pass tensor.{resolve}()")
    size = tensor.element_size()
    try:
        strides = tuple(s * size for s in tensor.stride())
        return tensor.data_ptr(), tuple(tensor.shape), strides, size, True, tensor.dtype
    except RuntimeError as error:  # sparse tensors, and those without storage
        raise ArgumentError(f"{label(name)} is a tensor without plain memory: {str(error).partition(chr(10))[0]}",
                            hint="pass a dense tensor with data") from None


def _of_interface(name: str, value: Any) -> Described:
    """What numpy's array interface (version 3) says of an array."""
    try:
        interface = value.__array_interface__
        format_ = str(interface["typestr"])
        _check_format(name, format_, interface.get("descr"))
        address, read_only = interface["data"]
        shape, itemsize = tuple(map(index, interface["shape"])), int(format_[2:])
        strides = interface.get("strides")
        strides = _packed_strides(shape, itemsize) if strides is None else tuple(map(index, strides))
        if len(strides) != len(shape) or min((itemsize, *shape)) < 0:
            raise ValueError(f"shape {shape}, strides {strides}, {itemsize} bytes an element")
        return index(address), shape, strides, itemsize, not read_only, getattr(value, "dtype", format_)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{label(name)} is {a_kind(value)} whose __array_interface__ is not in "
                            f"numpy's form: {error!r}", hint="pass numpy.asarray of it") from None


def _check_format(name: str, format_: str, fields: Any = None) -> None:
    """Refuses what is no plain number in this machine's byte order, such as objects, dates and text."""
    inner = str(fields)  # of structures within structures as well
    if format_[:1] == ">" or format_[1:2] not in _PLAIN_KINDS or "'|O'" in inner or "'>" in inner:
        raise ArgumentError(f"{label(name)} has the format {format_}, and the device takes numbers in this "
                            "machine's byte order",
                            hint="convert it with astype; dates can be passed as array.view('int64')")


def _packed_strides(shape: Sequence[int], itemsize: int) -> tuple[int, ...]:
    return tuple(itemsize * math.prod(shape[n + 1:]) for n in range(len(shape)))


def label(name: str) -> str:
    """An argument as errors name it, by its name or, where the kernel gives it none, by its number."""
    return name if name.startswith("argument ") else f"argument '{name}'"


def whole(name: str, value: Any) -> int:
    """A Python or numpy integer below 2^63 as an int. Raises `ArgumentError` for anything else, a bool included."""
    try:
        if not isinstance(value, bool) and abs(number := index(value)) < 1 << 63:
            return number
    except TypeError:
        pass
    raise ArgumentError(f"{name} is {shown(value)}, and whole numbers are needed",
                        hint="a whole number is an int below 2^63: n // 256")


def shown(value: Any) -> str:
    """A value as errors show it, cut where it is long, whatever its own code does."""
    if isinstance(value, int) and value.bit_length() > 128:
        return f"a number of {value.bit_length()} bits"
    try:
        return reprlib.repr(value)
    except Exception:  # whatever an object's own code raises
        return f"{a_kind(value)}"


def pack(kernel: IsaKernel, args: Sequence[Any], shared: int = 0) -> tuple[bytes, list[Buffer], int]:
    """The kernel-argument segment, the buffers of its pointers, and the bytes of dynamic LDS, from `shared` on.

    A pointer to LDS, such as OpenCL's `local int *`, takes the number of bytes that it shall have. Where there is one
    alone, it may be left out: what `shared` says is its.
    Where the metadata says nothing of arguments, they lie one after the other, each at a multiple of its size.
    Raises `ArgumentError` for a wrong number of arguments, a number that does not fit, or a value of the wrong sort.
    """
    if not isinstance(args, Sequence) or isinstance(args, str | bytes | bytearray | memoryview):
        raise ArgumentError(f"the arguments are {a_kind(args)}, and a list of them is needed",
                            hint="pass args=[a, b, n]")
    parameters = _natural(kernel, args) if not kernel.args and kernel.kernarg_size else [
        p for p in kernel.args if not p.hidden]
    segment = bytearray(kernel.kernarg_size)
    start, shared = kernel.lds_bytes, whole("the dynamic LDS", shared)
    local = [n for n, parameter in enumerate(parameters) if parameter.kind == LDS_POINTER_KIND]
    if len(local) == 1 and len(args) == len(parameters) - 1:
        parameter = parameters.pop(local[0])
        place = _lds_place(parameter, start)
        _put(segment, parameter, number_bytes(parameter.name, parameter, place))
        shared += place - start
    if len(parameters) != len(args):
        names = ", ".join(p.name or f"argument {n}" for n, p in enumerate(parameters)) or "none"
        hint = None if kernel.args else ("without metadata .amdhsa_kernarg_size says how many bytes they take: it is "
                                         f"{kernel.kernarg_size} for kernel '{kernel.name}'")
        raise ArgumentError(f"kernel '{kernel.name}' takes {len(parameters)} arguments ({names}), and {len(args)} were "
                            "given", hint="a pointer to LDS takes its number of bytes" if local else hint)
    pointers: list[KernelArg] = []
    buffers: list[Buffer] = []
    for number, (parameter, value) in enumerate(zip(parameters, args, strict=True)):
        name = parameter.name or f"argument {number}"
        if parameter.kind == POINTER_KIND:
            data = bytes(8)
            if value is not None:
                buffers.append(buffer_of(name, value))
                pointers.append(parameter)
        elif parameter.kind == NUMBER_KIND:
            data = number_bytes(name, parameter, value)
        elif parameter.kind == LDS_POINTER_KIND:
            place = _lds_place(parameter, start + shared)
            data = number_bytes(name, parameter, place)
            shared = place + _lds_bytes(name, value) - start
        else:
            raise ArgumentError(f"{label(name)} is of the kind {parameter.kind}, which the software device has not")
        _put(segment, parameter, data)
    buffers = with_windows(buffers)
    for parameter, buffer in zip(pointers, buffers, strict=True):
        _put(segment, parameter, buffer.pointer.to_bytes(8, "little"))
    return bytes(segment), buffers, shared


def _lds_place(parameter: KernelArg, start: int) -> int:
    """Where from `start` on the memory of a pointer to LDS begins."""
    return -(-start // parameter.alignment) * parameter.alignment


def _lds_bytes(name: str, value: Any) -> int:
    if whole(f"the bytes of LDS for {label(name)}", value) < 0:
        raise ArgumentError(f"{label(name)} is a pointer to LDS, and {value} is no number of bytes")
    return int(value)


def _natural(kernel: IsaKernel, args: Sequence[Any]) -> list[KernelArg]:
    """Parameters for these arguments, by their sizes.

    Raises `ArgumentError` where one has no size, where there are none, and where all are too long.
    """
    if not args:
        raise ArgumentError(f"kernel '{kernel.name}' takes {kernel.kernarg_size} bytes of arguments, and none were "
                            "given", hint="where it reads none, leave .amdhsa_kernarg_size out")
    parameters: list[KernelArg] = []
    at = 0
    for number, value in enumerate(args):
        plain = hasattr(value, "tobytes") and getattr(value, "ndim", None) == 0
        if isinstance(value, bytes | bytearray) or plain:
            kind, size = NUMBER_KIND, len(value) if isinstance(value, bytes | bytearray) else value.nbytes
        elif isinstance(value, int | float):
            raise ArgumentError(f"argument {number} is {shown(value)}, and the assembly does not say its size",
                                hint="pass numpy's numbers, such as numpy.int32(5) or numpy.float32(0.5)")
        else:
            kind, size = POINTER_KIND, 8
        step = min(size & -size, 16) or 1
        at = -(-at // step) * step
        parameters.append(KernelArg("", at, size, kind))
        at += size
    if at != kernel.kernarg_size:
        raise ArgumentError(f"the {len(args)} arguments of kernel '{kernel.name}' take {at} bytes, and its "
                            f".amdhsa_kernarg_size is {kernel.kernarg_size}",
                            hint="without metadata each lies at a multiple of its size; bytes(n) is padding")
    return parameters


def _put(segment: bytearray, parameter: KernelArg, data: bytes) -> None:
    """Writes a parameter's bytes. Raises `ArgumentError` where the metadata gives it another size."""
    if len(data) != parameter.size:
        raise ArgumentError(f"the metadata gives {parameter.name or parameter.kind} {parameter.size} bytes, and a "
                            f"{parameter.kind} takes {len(data)}")
    segment[parameter.offset:parameter.offset + parameter.size] = data


def number_bytes(name: str, parameter: KernelArg, value: Any) -> bytes:
    """A number as the bytes of its parameter: floats by the size, ints checked to fit, numpy scalars as they are.

    The metadata knows a parameter's size and not its type: a Python float gives the bits of a float, an int or a bool
    those of an integer. For a float parameter pass 1.0, not 1; where it matters, pass numpy's scalars.
    """
    size = parameter.size
    if hasattr(value, "tobytes") and hasattr(value, "dtype") and not isinstance(value, type):
        _check_format(name, str(value.dtype.str))
        data: bytes = value.tobytes()
        if len(data) != size:
            given = f"an array of {value.size} {value.dtype}" if getattr(value, "ndim", 0) else f"a {value.dtype}"
            raise ArgumentError(f"{label(name)} takes {size} bytes, and {given} has {len(data)}",
                                hint="a vector of 3 takes the room of 4" if len(data) * 4 == size * 3 else None)
        return data
    if isinstance(value, bytes | bytearray):
        if len(value) != size:
            raise ArgumentError(f"{label(name)} takes {size} bytes, and {len(value)} were given")
        return bytes(value)
    if isinstance(value, float) and size in _FLOAT_CODES:
        return _float_bytes(name, value, size)
    if not isinstance(value, int) or not size:
        raise ArgumentError(f"{label(name)} takes a number of {size} bytes, not {a_kind(value)}")
    if not -(1 << (8 * size - 1)) <= value < 1 << (8 * size):
        raise ArgumentError(f"{label(name)} takes {size} bytes, and {shown(value)} does not fit")
    return (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little")


def _float_bytes(name: str, value: float, size: int) -> bytes:
    try:
        return struct.pack(_FLOAT_CODES[size], value)
    except OverflowError:
        raise ArgumentError(f"{label(name)} takes a float of {size} bytes, and {value} is beyond it") from None


def fill_hidden(kernel: IsaKernel, segment: bytearray, grid: tuple[int, int, int], block: tuple[int, int, int],
                shared: int) -> None:
    """Writes the arguments that the runtime provides: block counts, sizes, dimensions, dynamic LDS.

    Others stay zero: offsets of the grid, what is left of it beyond whole blocks, and pointers to what is not here,
    such as queues and heaps.
    """
    # Source: the hidden arguments of code object version 5 in LLVM's AMDGPU usage guide, with their sizes.
    values = {"hidden_grid_dims": (1 + max((n for n in range(3) if grid[n] > 1 or block[n] > 1), default=0), 2),
              "hidden_dynamic_lds_size": (shared, 4)}
    for n, axis in enumerate("xyz"):
        values[f"hidden_block_count_{axis}"] = grid[n], 4
        values[f"hidden_group_size_{axis}"] = block[n], 2
    for parameter in kernel.args:
        if parameter.kind in values:
            value, size = values[parameter.kind]
            _put(segment, parameter, value.to_bytes(size, "little"))
