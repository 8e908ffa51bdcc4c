"""Launch arguments: what each is (which decides the compilation), and its value (which goes to the device)."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from flylab.compiler.meaning import is_by_state
from flylab.compiler.passing import HostArgument
from flylab.compiler.signature import CONSTEXPR, INFERRED, NUMBER, POINTER, STREAM, STRUCT, TENSOR, Parameter
from flylab.dtypes import DType
from flylab.errors import ArgumentError
from flylab.expr.bits import to_bits
from flylab.expr.folding import normalise
from flylab.expr.numeric import Numeric
from flylab.expr.promotion import plain
from flylab.expr.struct import Struct
from flylab.expr.typing import Stream
from flylab.runtime.adaptors import PointerArgument, TensorArgument, numbers_of
from flylab.runtime.registry import registered
from flylab.runtime.tensors import Memory as Memory
from flylab.runtime.tensors import array_of, check_aligned, is_array, memory_of
from flylab.shown import a_kind, given


@dataclass(frozen=True)
class Bound:
    """One bound argument: the description that keys the compilation, the launch value, the memory of a tensor.

    `keep` is what holds that memory until the launch is over; `leaves` are the numbers of a tensor's layout that its
    compilation does not know.
    """

    host: HostArgument
    value: Any
    memory: Memory | None = None
    keep: Any = None
    leaves: tuple[int, ...] = ()

    def operands(self, pointers: Iterator[int]) -> list[Any]:
        """The values of the launcher's runtime arguments: a number, the numbers of a struct; for a tensor the next of
        `pointers`, as the device has it, and the numbers of its layout that are not known."""
        if self.memory is not None:
            return [next(pointers), *self.leaves]
        if self.host.kind == STRUCT:
            return list(self.value)
        return [self.value] if self.host.kind == NUMBER else []


def bind(parameter: Parameter, value: Any) -> Bound:
    """Match a launch argument with its parameter.

    Raises `ArgumentError`, in the user's names, for what does not fit.
    """
    kind = parameter.kind
    if kind != CONSTEXPR:
        value = registered(value)
    if kind == INFERRED:
        kind = _infer(value)
    if kind == TENSOR:
        return _tensor(parameter.name, value)
    if kind == POINTER:
        return _pointer(parameter, value)
    if kind == NUMBER:
        return _number(parameter, value)
    if kind == STREAM:
        return Bound(HostArgument(parameter.name, STREAM, Stream()), value)
    if kind == STRUCT:
        return _struct(parameter, value)
    return _constexpr(parameter, value)


def _infer(value: Any) -> str:
    if isinstance(value, TensorArgument) or is_array(value):
        return TENSOR
    if isinstance(value, PointerArgument):
        return POINTER
    if isinstance(value, Stream):
        return STREAM
    if isinstance(value, Struct):
        return STRUCT
    return NUMBER if isinstance(value, Numeric) else CONSTEXPR


def _tensor(name: str, value: Any) -> Bound:
    if isinstance(value, PointerArgument):
        raise ArgumentError(f"'{name}' is an fx.Tensor, and gets {value}, which does not say how much lies there",
                            hint=f"annotate it {name}: fx.Pointer, or say it: flyc.from_c_void_p(..., shape=...)")
    said = value if isinstance(value, TensorArgument) else TensorArgument(value)
    array = array_of(name, said.tensor)
    memory, spec = memory_of(name, array), said.spec(name, array)
    leaves = numbers_of(name, spec, array) if spec.is_runtime else ()
    return Bound(HostArgument(name, TENSOR, spec), array.address, memory, array.keep, leaves)


def seen_as(compiled: HostArgument, bound: Bound) -> Bound:
    """An argument as a compilation takes it: a tensor whose layout is known also where the compilation knows less.

    Raises `ArgumentError` for a tensor of the same format and rank whose numbers are none that it takes.
    """
    spec, memory = compiled.spec, bound.memory
    if compiled.kind != TENSOR or not spec.is_runtime or memory is None or bound.host.spec == spec:
        return bound
    if memory.dtype != spec.dtype or len(memory.shape) != len(spec.layout) or bound.host.spec.is_runtime:
        return bound
    leaves = numbers_of(compiled.name, spec, memory)
    check_aligned(compiled.name, memory.address, spec.align or 1, f"assumed_align of {spec.align} bytes")
    return replace(bound, host=compiled, leaves=leaves)


def _pointer(parameter: Parameter, value: Any) -> Bound:
    name = parameter.name
    if not isinstance(value, PointerArgument):
        if not (isinstance(value, TensorArgument) or is_array(value)):
            raise ArgumentError(
                f"'{parameter}' gets {given(value)}, which does not say what lies there",
                hint="pass flyc.from_c_void_p(fx.Float32, address, nbytes=...), or a tensor for its first element",
            )
        bound = _tensor(name, value)
        assert bound.memory is not None  # a tensor has one
        return Bound(HostArgument(name, POINTER, bound.host.spec.pointer), bound.value, bound.memory, bound.keep)
    memory = value.memory(name)
    return Bound(HostArgument(name, POINTER, value.spec), memory.address, memory, value)


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
    if isinstance(value, (TensorArgument, PointerArgument)):
        raise ArgumentError(f"'{parameter}' gets {value}, and is a constant of the compilation",
                            hint=f"declare it {parameter.name}: fx.Tensor, or fx.Pointer")
    try:
        hash(value)
    except TypeError:
        if is_by_state(type(value)):  # an object of a dataclass: what it stores is compared at each launch
            return Bound(HostArgument(parameter.name, CONSTEXPR, value), value)
        raise ArgumentError(
            f"'{parameter}' gets {a_kind(value)}, which can change after compiling",
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
