"""LDS, the memory that the threads of a block share: `fx.SharedAllocator`.

    lds = fx.SharedAllocator().allocate(Tiles).peek()
    a = lds.a.view(fx.make_layout((64, 32), (32, 1)))

What a kernel allocates is its own for as long as it runs. Each call allocates anew, also in an unrolled loop; one in a
runtime loop or `if` allocates once for all rounds and threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.dialect.types import Ptr
from flylab.errors import TraceError
from flylab.expr.emit import fly
from flylab.expr.numeric import CLASSES
from flylab.expr.state import KernelState, require_kernel
from flylab.expr.storage import Storage
from flylab.expr.struct_layout import alignof, checked_align, is_parted, kind_of, name_of_kind, round_up, sizeof
from flylab.expr.tensor import Pointer
from flylab.targets import TARGETS

SPACE = "shared"
WIDEST = 16
"""The alignment in bytes that LLVM raises that of a variable in LDS to, where that is longer than half of it."""


@dataclass(frozen=True)
class Allocation:
    """What one call of `allocate` took: the allocator, the bytes, and where they begin in dynamic LDS (else None)."""

    allocator: Any
    bytes: int
    start: int | None = None


class SharedAllocator:
    """Allocates LDS in a kernel: `fx.SharedAllocator().allocate(S)` is a `Storage`, as is any other place in memory.

    What is allocated is aligned to `base_alignment` bytes at least. With `static=False` it lies in the LDS whose size
    the launch gives: all such of a kernel one after the other, and `launch(smem=None)` gives what they need.
    """

    def __init__(self, base_alignment: int = 16, *, static: bool = True):
        self.base_alignment = checked_align(base_alignment, None, f"SharedAllocator({base_alignment!r})")
        self.static = bool(static)

    def allocate(self, type: Any) -> Storage:
        """A place in LDS for a number, an `fx.Array[...]`, a struct or a union; what is in it is not known.

        Raises `TraceError` outside of a kernel, for a type without a known size, and where the kernel's LDS is more
        than the chip has.
        """
        kernel = require_kernel("SharedAllocator.allocate")
        kind, align = kind_of(type, "what a SharedAllocator allocates")
        align = max(align, alignof(kind), self.base_alignment)
        _take(kernel, self, sizeof(kind), parts_of(kind), align, name_of_kind(kind))
        if not self.static:
            return Storage(kind, dynamic_pointer(kernel.shared[-1].start, align))
        return _static(kind, align)

    @property
    def allocated_bytes(self) -> int:
        """The bytes that it has allocated in the kernel that is traced."""
        kernel = require_kernel("SharedAllocator.allocated_bytes")
        return sum(a.bytes for a in kernel.shared if a.allocator is self)

    def __repr__(self) -> str:
        return f"SharedAllocator({self.base_alignment}, static={self.static})"


def parts_of(kind: Any, start: int = 0) -> list[tuple[int, int]]:
    """The (offset, bytes) of what in a type can lie on its own: each field of a struct that is no struct itself."""
    if is_parted(kind):
        return [part for f in kind.stored.values() for part in parts_of(f.kind, start + f.offset)]
    return [(start, sizeof(kind))]


def _take(kernel: KernelState, allocator: SharedAllocator, size: int, parts: Any, align: int, name: str) -> None:
    """Note an allocation. Raises `TraceError` where it is beyond the chip's LDS."""
    start = None
    if allocator.static:
        # Of a struct each part may become a variable of its own, which LLVM aligns as it likes.
        taken = max(round_up(size, align), sum(round_up(bytes_, WIDEST) for _, bytes_ in parts))
    else:
        start = round_up(dynamic_bytes(kernel), align)
        taken = start + size - dynamic_bytes(kernel)
    before = sum(a.bytes for a in kernel.shared)
    kernel.shared.append(Allocation(allocator, taken, start))
    check_limit(kernel, before + taken, f"{name} takes {taken} bytes of LDS")


def dynamic_bytes(kernel: KernelState) -> int:
    """The bytes of dynamic LDS that a kernel has allocated."""
    return sum(a.bytes for a in kernel.shared if a.start is not None)


def check_limit(kernel: KernelState, total: int, what: str) -> None:
    """Raises `TraceError` for a kernel with more LDS than a block has on its chip."""
    chip = kernel.target
    if total <= chip.lds_bytes:
        return
    limits = " and ".join(f"{t.lds_bytes} on {t} ({t.products[0]})" for t in TARGETS.values())
    raise TraceError(
        f"{what}, and kernel '{kernel.name}' has {total} in all, more than the {chip.lds_bytes} of {chip}",
        hint=f"a block has {limits}: use smaller tiles or fewer stages, or let buffers share bytes in an fx.union",
    )


def _static(kind: Any, align: int) -> Storage:
    byte = CLASSES["Uint8"].dtype
    whole = fly("shared_alloc", [], [Ptr(byte, SPACE, known_align(0, align))], bytes=max(sizeof(kind), 1), align=align)
    parts = {
        at: Pointer(fly("shared_part", [whole], [Ptr(byte, SPACE, known_align(at, align))], offset=at, bytes=count))
        for at, count in parts_of(kind) if count and is_parted(kind)
    }
    return Storage(kind, Pointer(whole), parts)


def known_align(offset: int, align: int) -> int:
    """The alignment of bytes at an offset from an aligned start; 0, as in a type, where that is 1."""
    least = (offset | align) & -(offset | align)
    return least if least > 1 else 0


def dynamic_pointer(offset: int | None, align: int) -> Pointer:
    """A pointer into dynamic LDS, whose start is aligned to `align` bytes."""
    spec = Ptr(CLASSES["Uint8"].dtype, SPACE, known_align(offset or 0, align))
    return Pointer(fly("shared_dynamic", [], [spec], offset=offset or 0, align=align))
