"""Launch arguments with more said about them: tensors whose layout a compilation does not know, and raw pointers.

They hold the user's object and what was said, and nothing of a compiler: one of them serves any number of compilations.
"""

from __future__ import annotations

import ctypes
from typing import Any

from flylab.dialect.types import MemRef, Ptr
from flylab.errors import ArgumentError
from flylab.expr.enums import AddressSpace
from flylab.expr.pointers import PointerType
from flylab.layout import Layout
from flylab.layout.runtime_int import MOST, RuntimeInt
from flylab.layout.runtime_leaves import numbers
from flylab.runtime.tensors import Array, Memory, array_of, check_aligned, compact, is_array, memory_of
from flylab.shown import a_kind, given

LARGEST_ALIGNMENT = 1 << 30


class TensorArgument:
    """A tensor for a launch, and what is known of it: `flyc.from_dlpack(t)`.

    As it is, its shape and strides are part of the compilation, as those of the tensor itself. After
    `mark_layout_dynamic` they are numbers of the launch, and one compilation serves all shapes.
    """

    __slots__ = ("tensor", "said")

    def __init__(self, tensor: Any, assumed_align: int | None = None, use_32bit_stride: bool = False):
        self.tensor = tensor
        self.said: tuple[int, bool, tuple[int | None, int] | None] = (
            _alignment("from_dlpack", assumed_align) or 0, bool(use_32bit_stride), None)
        """The alignment in bytes (0: that of an element), whether runtime strides have 32 bits; and where the layout is
        dynamic, the leading dimension and the divisibility."""

    def mark_layout_dynamic(self, leading_dim: int | None = None, divisibility: int = 1) -> TensorArgument:
        """Leave the extents and strides to the launch; this object.

        The stride of `leading_dim` (by default the last dimension that has it) stays 1; the other strides, and the
        extent of a tensor of one dimension, are multiples of `divisibility` elements, which lets wide copies of rows be
        compiled. Extents are Int32, Int64 where there are more than 2**31 - 1; strides Int64, or Int32 after
        `use_32bit_stride`. A stride of 0 stays part of the compilation, and whether one is negative.

        >>> import numpy
        >>> from_dlpack(numpy.zeros((8, 64), "float32")).mark_layout_dynamic(leading_dim=1, divisibility=4)
        TensorArgument(f32, global, (?,?):(?{i64 div=4},1))

        Raises `ArgumentError`, now and at each launch, where the tensor is not so.
        """
        if type(divisibility) is not int or not 1 <= divisibility <= LARGEST_ALIGNMENT:
            raise ArgumentError(f"mark_layout_dynamic(divisibility={divisibility!r})",
                                hint="give a number of elements, 1 or more")
        if leading_dim is not None and type(leading_dim) is not int:
            raise ArgumentError(f"mark_layout_dynamic(leading_dim={leading_dim!r})",
                                hint="give the number of the dimension with stride 1, or leave it out")
        before, self.said = self.said, (*self.said[:2], (leading_dim, divisibility))
        try:
            self._check()
        except ArgumentError:
            self.said = before
            raise
        return self

    def _check(self) -> None:
        array = array_of("tensor", self.tensor)
        numbers_of("tensor", self.spec("tensor", array), array)

    def spec(self, name: str, array: Array) -> MemRef:
        """What a compilation knows of the tensor, which `array` describes now.

        Raises `ArgumentError`, with the argument's name, where it is not as was said.
        """
        align, narrow, dynamic = self.said
        if align:
            check_aligned(name, array.address, align, f"assumed_align of {align} bytes")
        layout = _dynamic(name, array, *dynamic, 32 if narrow else 64) if dynamic else _known(name, array)
        return MemRef(array.dtype, "global", layout, align if align > array.dtype.bits // 8 else 0)

    def __repr__(self) -> str:
        array = array_of("tensor", self.tensor)
        return f"TensorArgument({self.spec('tensor', array)})"


def _known(name: str, array: Array) -> Layout:
    shape, strides = array.shape, array.strides
    if 0 in shape:
        raise ArgumentError(f"'{name}' has shape {shape}: no elements",
                            hint="launch only where there is data, or pass "
                            f"flyc.from_dlpack({name}).mark_layout_dynamic(), whose extents may be 0")
    return Layout(shape[0], strides[0]) if len(shape) == 1 else Layout(shape, strides) if shape else Layout(1, 0)


def _dynamic(name: str, array: Array, leading: int | None, divisibility: int, bits: int) -> Layout:
    """The layout of an array with its numbers left to the launch."""
    shape = array.shape
    if not shape:
        return Layout(1, 0)
    first = _leading(name, array, leading)
    extents = [RuntimeInt(divisor=divisibility if len(shape) == 1 else 1, bits=64 if extent > MOST[32] else 32)
               for extent in shape]
    steps = [1 if n == first else _stride(array, n, divisibility, bits) for n in range(len(shape))]
    return Layout(extents[0], steps[0]) if len(shape) == 1 else Layout(tuple(extents), tuple(steps))


def _leading(name: str, array: Array, given: int | None) -> int | None:
    """The dimension whose stride stays 1, None where no dimension has that stride."""
    shape, strides = array.shape, array.strides
    if given is None:
        last_first = sorted(range(len(shape)), key=lambda n: (strides[n] != 1, -n))
        return next((n for n in last_first if strides[n] == 1 or _is_any(array, n)), None)
    if not -len(shape) <= given < len(shape):
        raise ArgumentError(f"'{name}' has {len(shape)} dimensions, and leading_dim={given} is none of them",
                            hint=f"give a number from 0 to {len(shape) - 1}, or leave it out")
    found = given % len(shape)
    if strides[found] != 1 and not _is_any(array, found):
        raise ArgumentError(f"'{name}' has the strides {strides}: that of leading_dim={given} is not 1",
                            hint="give the dimension whose elements lie side by side, or leave leading_dim out")
    return found


def _is_any(array: Array | Memory, mode: int) -> bool:
    """Whether the stride of a dimension leads to no element: any other is as good."""
    return array.shape[mode] <= 1 or 0 in array.shape


def _stride(array: Array, mode: int, divisibility: int, bits: int) -> Any:
    stride = array.strides[mode]
    if stride > 0 or _is_any(array, mode):
        return RuntimeInt(divisor=divisibility, bits=bits)
    return RuntimeInt(-MOST[bits] - 1, -1, divisibility, bits) if stride else 0


def numbers_of(name: str, spec: MemRef, array: Array | Memory) -> tuple[int, ...]:
    """The numbers of an array's layout that its compilation does not know, in the order of the layout's text.

    Raises `ArgumentError`, with the argument's name, where one is not as the compilation takes it to be.
    """
    layout, rank = spec.layout, len(array.shape)
    assert isinstance(layout, Layout)  # of a tensor
    if not rank:
        return ()
    found = []
    for n, (known, value) in enumerate(zip(numbers(layout), (*array.shape, *array.strides), strict=True)):
        what, mode = ("extent", n) if n < rank else ("stride", n - rank)
        free = what == "stride" and _is_any(array, mode)
        if isinstance(known, int):
            if value != known and not free:
                raise ArgumentError(f"'{name}' has the {what} {value} in dimension {mode}, and {known} was compiled",
                                    hint="call the launcher itself, which compiles what its arguments need")
            continue
        if free and (value % known.divisor or not known.low <= value <= known.high or not value):
            value = known.divisor if known.low >= 0 else -known.divisor  # one that no element has
        if value % known.divisor:
            raise ArgumentError(
                f"'{name}' has the {what} {value} in dimension {mode}, no multiple of divisibility={known.divisor}",
                hint="pad the rows to a multiple, or mark it with a smaller divisibility",
            )
        if not known.low <= value <= known.high:
            raise ArgumentError(f"'{name}' has the {what} {value} in dimension {mode}, and the compilation takes "
                                f"numbers from {known.low} to {known.high}",
                                hint="leave out use_32bit_stride" if known.bits == 32 and what == "stride" else
                                "call the launcher itself, which compiles what its arguments need")
        found.append(value)
    return tuple(found)


class PointerArgument:
    """An address for a launch, with the format of what lies there: `flyc.from_c_void_p(fx.Float32, address)`."""

    __slots__ = ("spec", "address", "nbytes", "writable", "keep")

    def __init__(self, spec: Ptr, address: int, nbytes: int | None, writable: bool, keep: Any):
        self.spec, self.address, self.nbytes, self.writable, self.keep = spec, address, nbytes, writable, keep

    def memory(self, name: str) -> Memory:
        """The memory behind it. Raises `ArgumentError`, with the argument's name, for an address not aligned as said.
        """
        align = self.spec.known_align
        check_aligned(name, self.address, align, f"{align} bytes of alignment")
        size = max(self.spec.dtype.bits // 8, 1)
        if not self.address:  # which has no elements, as no tensor without dimensions
            return Memory(name, 0, 0, 0, self.writable, self.spec.dtype, (), (), -1)
        nbytes = -1 if self.nbytes is None else self.nbytes
        return Memory(name, self.address, self.address, nbytes, self.writable, self.spec.dtype,
                      (max(nbytes, 0) // size,), (1,), -1)

    def __repr__(self) -> str:
        return f"PointerArgument({self.spec}, {self.address:#x})"


def from_dlpack(tensor: Any, *, assumed_align: int | None = None, use_32bit_stride: bool = False) -> TensorArgument:
    """A tensor as a launch argument that more can be said of: numpy's, torch's, anything with `__dlpack__`.

    `assumed_align` is the alignment of its first element in bytes, a power of two, which wide accesses may rely on, and
    which each launch checks; `use_32bit_stride` makes runtime strides 32 bits wide. Raises `ArgumentError` for what is
    no tensor.
    """
    if isinstance(tensor, (TensorArgument, PointerArgument)):
        raise ArgumentError(f"from_dlpack of {a_kind(tensor)}, which is a launch argument already",
                            hint="give the tensor itself, and say all of it at once")
    found = TensorArgument(tensor, assumed_align, use_32bit_stride)
    memory_of("tensor", array_of("tensor", tensor))
    return found


def from_torch_tensor(tensor: Any, *, assumed_align: int | None = None,
                      use_32bit_stride: bool = False) -> TensorArgument:
    """`from_dlpack` of a torch tensor. Raises `ArgumentError` for anything else."""
    if not hasattr(tensor, "untyped_storage"):
        raise ArgumentError(f"from_torch_tensor of {a_kind(tensor)}",
                            hint="flyc.from_dlpack takes numpy arrays and others")
    return from_dlpack(tensor, assumed_align=assumed_align, use_32bit_stride=use_32bit_stride)


def from_c_void_p(element_type: Any, pointer: Any, *, address_space: Any = AddressSpace.Global,
                  assumed_align: int | None = None, nbytes: int | None = None, shape: Any = None,
                  writable: bool = True) -> PointerArgument | TensorArgument:
    """A raw pointer as a launch argument: for a parameter `fx.Pointer`, or with a `shape` for an `fx.Tensor`.

    `pointer` is an address: an int, a `ctypes.c_void_p`, None for null. An attached GPU takes its own addresses as they
    are. The software device lets a kernel touch only memory of which it knows the size, so for the host's addresses it
    needs `nbytes`, or the `shape` of what lies there without gaps, the last index the fastest. Nobody else keeps that
    memory alive. Raises `ArgumentError` for what is no address, and for no such size.

    >>> import flylab.expr as fx
    >>> from_c_void_p(fx.Float32, 0x1000, nbytes=64)
    PointerArgument(f32, global, 0x1000)
    """
    if is_array(element_type):
        raise ArgumentError(f"from_c_void_p of {given(element_type)}: the format comes first",
                            hint="flyc.from_c_void_p(fx.Float32, t.data_ptr(), nbytes=...), or the tensor itself")
    spec = PointerType.get(element_type, address_space, _alignment("from_c_void_p", assumed_align))
    if spec.space != "global":
        raise ArgumentError(f"from_c_void_p into {spec.space} memory",
                            hint="a launch passes pointers into global memory")
    if spec.dtype.bits % 8:
        raise ArgumentError(f"from_c_void_p to {spec.dtype}: less than a byte has no address, and a Boolean is a byte",
                            hint="point to the bytes: from_c_void_p(fx.Uint8, ...)")
    address = _address(pointer)
    if nbytes is not None and (type(nbytes) is not int or nbytes < 0):
        raise ArgumentError(f"from_c_void_p(nbytes={nbytes!r})", hint="give the bytes that lie there, 0 or more")
    if shape is None:
        return PointerArgument(spec, address, nbytes, writable, pointer)
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    if not all(type(size) is int and size >= 0 for size in sizes):
        raise ArgumentError(f"from_c_void_p(shape={shape!r})", hint="give a number of elements, or a tuple of them")
    owned = None if nbytes is None else (address, address + nbytes)
    array = Array(spec.dtype, sizes, compact(sizes), address, writable, pointer, owned)
    memory_of("pointer", array)
    return TensorArgument(array, assumed_align)


def _address(pointer: Any) -> int:
    value = pointer.value if isinstance(pointer, ctypes.c_void_p) else pointer
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value < 1 << 64:
        raise ArgumentError(f"from_c_void_p of {given(pointer)}",
                            hint="give an address: an int, a ctypes.c_void_p, or t.data_ptr() of a torch tensor")
    return value


def _alignment(what: str, given: Any) -> int | None:
    if given is None or type(given) is int and 0 < given <= LARGEST_ALIGNMENT and not given & (given - 1):
        return given
    raise ArgumentError(f"{what}(assumed_align={given!r})", hint="give a power of two, in bytes: 16")
