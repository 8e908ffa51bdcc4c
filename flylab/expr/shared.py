"""LDS, the memory that the threads of a block share: `fx.SharedAllocator`, `fx.get_dyn_shared`.

    lds = fx.SharedAllocator().allocate(Tiles).peek()
    a = lds.a.view(fx.make_layout((64, 32), (32, 1)))

What a kernel allocates is its own for as long as it runs. Each call allocates anew, also in an unrolled loop; one in a
runtime loop or `if` allocates once for all rounds and threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from flylab.dialect.types import Ptr
from flylab.errors import TraceError
from flylab.expr.emit import fly
from flylab.expr.numeric import CLASSES, numeric_class
from flylab.expr.promotion import plain
from flylab.expr.recast import retyped
from flylab.expr.state import KernelState, require_kernel
from flylab.expr.storage import Storage
from flylab.expr.struct_layout import (
    Array,
    alignof,
    checked_align,
    is_parted,
    kind_of,
    name_of_kind,
    round_up,
    sizeof,
)
from flylab.expr.tensor import Pointer
from flylab.targets import check_lds, lds_needed

SPACE = "shared"
DYNAMIC_ALIGN = 1024
"""The alignment in bytes of what `get_dyn_shared` points to; the published package's."""


@dataclass(frozen=True)
class Allocation:
    """A place in LDS that a kernel took: by whom, its bytes and their alignment, and where it begins in dynamic LDS.

    `parts` are the bytes and the alignment of each variable that it may become, where it is not one.
    """

    owner: Any
    size: int
    align: int
    start: int | None = None
    parts: tuple[tuple[int, int], ...] = ()

    @property
    def variables(self) -> tuple[tuple[int, int], ...]:
        """The bytes and the alignment of one variable or of its parts, whichever needs more."""
        return max(((self.size, self.align),), self.parts, key=lds_needed)


class SharedAllocator:
    """Allocates LDS in a kernel: `fx.SharedAllocator().allocate(S)` is a `Storage`, as is any other place in memory.

    What it allocates begins at a multiple of `base_alignment` bytes. With `static=False` it lies in the LDS whose size
    the launch gives, each place after the one before, where `launch(smem=None)` gives as much as they need.
    """

    DEFAULT_BASE_ALIGNMENT = 16

    def __init__(self, base_alignment: int = DEFAULT_BASE_ALIGNMENT, *, static: bool = True):
        self.base_alignment = checked_align(base_alignment, None, f"SharedAllocator({base_alignment!r})")
        self.is_static = bool(static)

    def allocate(self, storable_or_int: Any, alignment: int | None = None) -> Storage:
        """A place in LDS for a number, an `fx.Array[...]`, a struct, a union, or so many bytes. It is not initialised.

        `alignment` in bytes is for more than the type has. Raises `TraceError` outside of a kernel, for what has no
        size, and where the kernel's LDS is more than the chip has.
        """
        kernel = require_kernel("SharedAllocator.allocate")
        given = plain(storable_or_int)
        if isinstance(given, int) and not isinstance(given, bool):
            given = Array(CLASSES["Uint8"], given)
        kind, asked = kind_of(given, "what a SharedAllocator allocates")
        align = max(alignof(kind), asked)
        if alignment is not None:
            align = max(align, checked_align(alignment, kind, f"allocate({name_of_kind(kind)}, {alignment!r})"))
        if not self.is_static:
            return self._dynamic(kernel, kind, align)
        size, align = sizeof(kind), max(align, self.base_alignment)
        parts = tuple((count, max(known_align(at, align), 1)) for at, count in parts_of(kind))
        take(kernel, Allocation(self, size, align, parts=parts), name_of_kind(kind))
        return _static(kind, align)

    def _dynamic(self, kernel: KernelState, kind: Any, align: int) -> Storage:
        if not any(a.owner is self for a in kernel.shared):
            align = max(align, self.base_alignment)
        start, size = round_up(dynamic_bytes(kernel), align), sizeof(kind)
        take(kernel, Allocation(self, size, align, start), name_of_kind(kind))
        return Storage(kind, dynamic_pointer(start, align))

    @property
    def base_ptr(self) -> Pointer:
        """A pointer to the start of dynamic LDS. Raises `TraceError` in static mode, which has no common start."""
        if self.is_static:
            raise TraceError("base_ptr of SharedAllocator(static=True), whose places lie where LLVM puts them",
                             hint="take the pointer of what allocate() gives: .ptr, or SharedAllocator(static=False)")
        return dynamic_pointer(0, self.base_alignment)

    @property
    def allocated_bytes(self) -> int:
        """The bytes from its first place in the kernel that is traced to the end of its last."""
        end = 0
        for each in require_kernel("SharedAllocator.allocated_bytes").shared:
            if each.owner is self:
                own = each.align if end or each.start is not None else 1
                end = (round_up(end, own) if each.start is None else each.start) + each.size
        return end

    def __repr__(self) -> str:
        return f"SharedAllocator({self.base_alignment}, static={self.is_static})"


def get_dyn_shared(dtype: Any = None) -> Pointer:
    """A pointer to the start of the LDS that `launch(smem=bytes)` gives: to bytes, or to numbers of a format.

    Places of `SharedAllocator(static=False)` lie in the same bytes.
    """
    kernel = require_kernel("get_dyn_shared")
    kernel.shared.append(Allocation(get_dyn_shared, 0, DYNAMIC_ALIGN, 0))
    pointer = dynamic_pointer(0, DYNAMIC_ALIGN)
    return pointer if dtype is None else retyped(pointer, numeric_class(dtype), DYNAMIC_ALIGN)


def parts_of(kind: Any, start: int = 0) -> Iterator[tuple[int, int]]:
    """The (offset, bytes) of what in a type can lie on its own: each field of a struct that is no struct itself."""
    if not is_parted(kind):
        yield start, sizeof(kind)
        return
    for field in kind.stored.values():
        yield from parts_of(field.kind, start + field.offset)


def take(kernel: KernelState, place: Allocation, name: str) -> None:
    """Note what a kernel takes. Raises `TraceError` where it then has more LDS than a block has on its chip."""
    kernel.shared.append(place)
    check_limit(kernel, dynamic_bytes(kernel), f"{name} takes {place.size} bytes")


def dynamic_bytes(kernel: KernelState) -> int:
    """The bytes of dynamic LDS that a kernel has allocated."""
    return max((a.start + a.size for a in kernel.shared if a.start is not None), default=0)


def check_limit(kernel: KernelState, dynamic: int, what: str) -> None:
    """Raises `TraceError`, which begins with `what`, where a kernel's LDS, of it so much dynamic, is too much."""
    static = lds_needed(variable for a in kernel.shared if a.start is None for variable in a.variables)
    total = round_up(static, max((a.align for a in kernel.shared if a.start is not None), default=1)) + dynamic
    check_lds(total, kernel.target, f"{what}, and kernel '{kernel.name}' has {total} in all")


def launched_bytes(kernel: KernelState, smem: int | None) -> int:
    """The bytes of dynamic LDS that a launch of a traced kernel gets: those that it allocates, or `smem`.

    Raises `TraceError` for fewer than it allocates, for none where it asks for the pointer alone, and for too many.
    """
    needed = dynamic_bytes(kernel)
    if smem is None:
        if not needed and any(a.owner is get_dyn_shared for a in kernel.shared):
            raise TraceError(f"launch of '{kernel.name}' without smem=, and it reads fx.get_dyn_shared()",
                             hint="say how many bytes that has: .launch(grid=..., block=..., smem=4096)")
        return needed
    if smem < needed:
        raise TraceError(f"launch of '{kernel.name}': smem={smem}, and it allocates {needed} bytes of dynamic LDS",
                         hint="leave smem out, and it is what is allocated")
    check_limit(kernel, smem, f"launch of '{kernel.name}': smem={smem}")
    return smem


def _static(kind: Any, align: int) -> Storage:
    byte = CLASSES["Uint8"].dtype
    whole = fly("shared_alloc", [], [Ptr(byte, SPACE, known_align(0, align))], bytes=max(sizeof(kind), 1), align=align,
                symbol="")
    parts = {
        at: Pointer(fly("shared_part", [whole], [Ptr(byte, SPACE, known_align(at, align))], offset=at, bytes=count))
        for at, count in parts_of(kind) if count and is_parted(kind)
    }
    return Storage(kind, Pointer(whole), parts)


def known_align(offset: int, align: int) -> int:
    """The alignment of bytes at an offset from an aligned start; 0, as in a type, where that is 1."""
    least = (offset | align) & -(offset | align)
    return least if least > 1 else 0


def dynamic_pointer(offset: int, align: int) -> Pointer:
    """A pointer into dynamic LDS, whose start is aligned to `align` bytes."""
    spec = Ptr(CLASSES["Uint8"].dtype, SPACE, known_align(offset, align))
    return Pointer(fly("shared_dynamic", [], [spec], offset=offset, align=align))
