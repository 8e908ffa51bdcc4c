"""Accesses behind a buffer descriptor: loads and stores in the pieces that one instruction moves, atomics, and LDS.

A part of convert-fly-to-rocdl. Source of the intrinsics: LLVM 22's IntrinsicsAMDGPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flylab.atoms import CopyOp
from flylab.atoms.atomics import Atomic
from flylab.dtypes import DType
from flylab.passes.copy_instructions import combined
from flylab.passes.crossing_pointers import widest
from flylab.passes.rewriter import Builder, carrier, parse_type
from flylab.passes.vectors import extract, insert, vector_type

OUTSIDE = 2**32 - 16
"""An offset in bytes beyond what a descriptor of a tensor covers, and so that an access there does not wrap."""
WIDTHS = (128, 96, 64, 32, 16, 8)
"""The bits that one buffer instruction moves for a thread."""


@dataclass(frozen=True)
class BufferPlace:
    """A descriptor, an offset in bytes from its base (None for 0), and a further one that the whole wave has."""

    descriptor: Any
    base: Any
    soffset: Any = None

    def _at(self, builder: Builder, extra: int, cache: int = 0) -> list[Any]:
        """The last operands of an instruction: the descriptor, both offsets, of 32 bits, and the cache modifier."""
        offset, zero = self._offset(builder, extra), builder.constant(0)
        wave = zero if self.soffset is None else self.soffset
        return [self.descriptor, offset, wave, builder.constant(cache) if cache else zero]

    def _offset(self, builder: Builder, extra: int) -> Any:
        """The offset of 32 bits; for one of 64, the nearest that is outside of every buffer."""
        if self.base is None:
            return builder.constant(extra)
        kind = widest(self.base)
        total = self.base if extra == 0 else builder.op("arith.addi", [self.base, builder.constant(extra, kind)], kind)
        if kind == "i32":
            return total
        nearest = builder.op("arith.minui", [total, builder.constant(OUTSIDE, kind)], kind)
        return builder.op("arith.trunci", [nearest], "i32")

    def load(self, builder: Builder, dtype: DType, count: int, cache: int) -> Any:
        """`count` elements as a vector, with a cache modifier."""
        whole = None
        for first, size in _pieces(dtype, count):
            operands = self._at(builder, first * dtype.bits // 8, cache)
            raw = builder.op("rocdl.raw.ptr.buffer.load", operands, _register(size * dtype.bits))
            part = _bitcast(builder, raw, vector_type(carrier(dtype), size))
            whole = insert(builder, part, whole, first, count)
        return whole

    def store(self, builder: Builder, value: Any, dtype: DType, count: int, cache: int) -> None:
        """Store a vector of `count` elements, with a cache modifier."""
        for first, size in _pieces(dtype, count):
            part = extract(builder, value, first, size)
            raw = _bitcast(builder, part, parse_type(_register(size * dtype.bits)))
            operands = self._at(builder, first * dtype.bits // 8, cache)
            builder.op("rocdl.raw.ptr.buffer.store", [raw, *operands])

    def combine(self, builder: Builder, atomic: Atomic, value: Any) -> None:
        """An atomic operation of the element, or of two, of a vector."""
        given = combined(builder, value)
        name = f"llvm.amdgcn.raw.ptr.buffer.atomic.{_spelling(atomic)}"
        builder.intrinsic(name, [given, *self._at(builder, 0)], str(given.type))

    def load_into_lds(self, builder: Builder, op: CopyOp, lds: Any) -> None:
        """As `copy_instructions.load_into_lds`."""
        descriptor, offset, wave, cache = self._at(builder, 0, op.cache)
        size, zero = builder.constant(op.bits // 8), builder.constant(0)
        builder.intrinsic("llvm.amdgcn.raw.ptr.buffer.load.lds", [descriptor, lds, size, offset, wave, zero, cache])


def _pieces(dtype: DType, count: int) -> list[tuple[int, int]]:
    """`count` elements as (first, elements) of pieces that a buffer instruction moves."""
    pieces, first = [], 0
    while first < count:
        width = next(w for w in WIDTHS if w % dtype.bits == 0 and w // dtype.bits <= count - first)
        pieces.append((first, width // dtype.bits))
        first += width // dtype.bits
    return pieces


def _register(bits: int) -> str:
    """The type in which a buffer instruction holds so many bits."""
    return f"i{bits}" if bits <= 32 else f"vector<{bits // 32}xi32>"


def _bitcast(builder: Builder, value: Any, kind: Any) -> Any:
    return value if value.type == kind else builder.op("llvm.bitcast", [value], kind)


def _spelling(atomic: Atomic) -> str:
    """An atomic operation in the names of the buffer intrinsics."""
    if atomic.dtype.is_float:
        return f"f{atomic.op}"
    if atomic.op in ("max", "min"):
        return f"{'s' if atomic.dtype.signed else 'u'}{atomic.op}"
    return atomic.op
