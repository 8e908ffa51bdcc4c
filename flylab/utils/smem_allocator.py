"""The legacy way to LDS: offsets counted by hand, and places at an offset. New kernels use `fx.SharedAllocator`.

    smem = SmemAllocator(None, global_sym_name="tiles")
    offset = smem._align(smem.ptr, 16)
    smem.ptr = offset + 64 * 4
    ...                                                          # in the kernel
    tile = SmemPtr(smem.get_base(), offset, T.f32, shape=(64,))
    tile.store(x, [i])

Places that overlap share their bytes.
"""

from __future__ import annotations

from math import prod
from typing import Any

from flylab.dialect.types import Ptr
from flylab.errors import TraceError
from flylab.expr.emit import fly, require_trace
from flylab.expr.numeric import CLASSES, numeric_class
from flylab.expr.promotion import plain
from flylab.expr.raw import as_dsl_value, typed
from flylab.expr.recast import aligned
from flylab.expr.shared import SPACE, Allocation, take
from flylab.expr.state import require_kernel
from flylab.expr.struct_layout import round_up
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.types import of_type
from flylab.expr.views import make_layout, make_view
from flylab.targets import check_lds, target


class SmemBase(Pointer):
    """The pointer to an allocator's bytes: `get_base()`."""

    __slots__ = ("allocator", "bytes")

    def __init__(self, value: Any, allocator: SmemAllocator, size: int):
        super().__init__(value)
        self.allocator = allocator
        self.bytes = size


class SmemAllocator:
    """One piece of LDS, of `ptr` bytes, which the kernel's author divides: `ptr` grows by assignment.

    It may be made at module level or in a kernel, and grow until `get_base()` is called; each kernel that calls it has
    bytes of its own. `arch` is a chip whose limit holds beside that of the chip compiled for.
    """

    def __init__(self, ctx: Any = None, arch: str | None = None, global_sym_name: str = "smem_storage"):
        self.ctx = ctx
        self.arch = arch
        self.global_sym_name = global_sym_name
        self.ptr = 0
        """The bytes so far."""
        self.max_size = 0
        self.alignment = 128
        self.finalized = False

    @staticmethod
    def _align(ptr: int, align: int) -> int:
        """The least multiple of `align` that is not below an offset; how kernels round `ptr` up.

        >>> SmemAllocator._align(100, 16)
        112
        """
        return round_up(ptr, align)

    def get_base(self) -> SmemBase:
        """The pointer to its bytes, in a kernel. Raises `TraceError` where these are more than the chip has."""
        kernel = require_kernel(f"get_base() of {self!r}")
        size = plain(self.ptr)
        if type(size) is not int or size < 1:
            raise TraceError(f"get_base() of {self!r}, whose ptr is {size!r}",
                             hint="reserve bytes first: allocator.ptr = offset + bytes")
        size = max([size, *(a.size for a in kernel.shared if a.owner is self)])
        kernel.shared[:] = [a for a in kernel.shared if a.owner is not self]
        take(kernel, Allocation(self, size, self.alignment), f"'{self.global_sym_name}'")
        spec = Ptr(CLASSES["Uint8"].dtype, SPACE, self.alignment)
        base = fly("shared_alloc", [], [spec], bytes=size, align=self.alignment, symbol=self.global_sym_name)
        return SmemBase(base, self, size)

    def finalize(self) -> None:
        """Check its bytes against the limit of `arch`; the variable itself is made where a kernel asks for the base.

        Raises `TraceError` outside of a launcher or kernel, and where they are too many.
        """
        require_trace("SmemAllocator.finalize")
        if self.arch is not None:
            check_lds(self.ptr, target(self.arch), f"{self!r} has {self.ptr} bytes")
        self.finalized = True

    def __repr__(self) -> str:
        return f"SmemAllocator({self.global_sym_name!r})"


class SmemPtr:
    """Numbers at an offset in bytes from an allocator's base: `shape` of them, the last dimension fastest.

    Raises `TraceError` for an offset that is no multiple of a number's bytes, and for a place beyond the base's bytes.
    """

    def __init__(self, base_memref: Any, byte_offset: int, element_type: Any, shape: Any = None):
        self.base_memref = base_memref
        self.byte_offset = byte_offset
        self.element_type = element_type
        self.shape = shape
        # A cache in the published package, which kernels empty; here each `get` makes its view where it stands.
        self._view_cache: None = None
        self._check()

    def _check(self) -> None:
        offset, extents = plain(self.byte_offset), self._extents()
        bytes_ = prod(extents) * get_mlir_type_size(self.element_type)
        base = self.base_memref
        if type(offset) is not int or offset < 0:
            raise TraceError(f"SmemPtr at {offset!r} bytes", hint="the offset is a number known while tracing, from 0")
        if isinstance(base, SmemBase) and offset + bytes_ > base.bytes:
            raise TraceError(
                f"SmemPtr of {bytes_} bytes at {offset}, and {base.allocator!r} had {base.bytes} at its get_base()",
                hint="reserve them before: allocator.ptr = offset + bytes, then get_base()",
            )

    def _extents(self) -> tuple[int, ...]:
        shape = (1,) if self.shape is None else self.shape
        extents = tuple(map(plain, shape)) if isinstance(shape, (tuple, list)) else (plain(shape),)
        if not all(type(n) is int and n > 0 for n in extents):
            raise TraceError(f"SmemPtr of shape {self.shape!r}", hint="give integers above 0: shape=(64, 32)")
        return extents

    def get(self) -> Tensor:
        """The numbers as a tensor."""
        base, kind = as_dsl_value(self.base_memref), numeric_class(self.element_type)
        if not isinstance(base, Pointer) or base.spec.space != SPACE:
            raise TraceError(f"SmemPtr at {base!r}", hint="its base is what allocator.get_base() gives")
        extents = self._extents()
        strides = tuple(prod(extents[i + 1 :]) for i in range(len(extents)))
        pointer = aligned(base + plain(self.byte_offset), 1, kind)
        view: Tensor = make_view(pointer, make_layout(extents, strides))
        return view

    def load(self, idxs: Any = None) -> Any:
        """The number at indices, one for each dimension; without, the first."""
        return self.get()[self._coordinate(idxs)]

    def store(self, val: Any, idxs: Any = None) -> None:
        """Set the number at indices, one for each dimension; without, the first."""
        self.get()[self._coordinate(idxs)] = typed(val)

    def _coordinate(self, idxs: Any) -> Any:
        extents = self._extents()
        given = [0] * len(extents) if idxs is None else list(idxs) if isinstance(idxs, (tuple, list)) else [idxs]
        if len(given) != len(extents):
            raise TraceError(f"{len(given)} indices of a SmemPtr of shape {extents}",
                             hint="give one for each dimension")
        return tuple(map(typed, given))


def get_mlir_type_size(mlir_type: Any) -> int:
    """The bytes of a number, or of a vector of numbers, given by MLIR type or format.

    >>> import flylab.expr as fx
    >>> get_mlir_type_size(fx.Float16), get_mlir_type_align(fx.Float64)
    (2, 8)
    """
    kind, lanes = of_type(mlir_type)
    bits: int = kind.dtype.bits * max(lanes, 1)
    return -(-bits // 8)


def get_mlir_type_align(mlir_type: Any) -> int:
    """The alignment in bytes of a number or a vector: its size, up to the next power of 2."""
    return 1 << (get_mlir_type_size(mlir_type) - 1).bit_length()
