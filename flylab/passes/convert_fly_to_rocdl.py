"""convert-fly-to-rocdl: pointers and copies become LLVM pointers, loads and stores, or AMD's raw buffer operations.

A global pointer is `!llvm.ptr<1>`, one into LDS `!llvm.ptr<3>`. A buffer pointer is a pair: the descriptor
(`!llvm.ptr<8>`) and an offset in bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flylab.atoms import CopyAtom
from flylab.atoms.atomics import Atomic
from flylab.dialect.operations import attribute
from flylab.dialect.types import POINTERS, Ptr, of_mlir
from flylab.dtypes import DType
from flylab.errors import CompileError
from flylab.passes import printf
from flylab.passes.checks import is_of_launcher, lower_check
from flylab.passes.copy_instructions import (
    atomic_in_memory,
    atomic_on_buffer,
    first_lane,
    load_past_registers,
    load_transposed,
)
from flylab.passes.crossing_pointers import BUFFER_POINTER, CrossingPointers, wide, widest
from flylab.passes.global_offsets import GlobalOffsets
from flylab.passes.hidden_arguments import read_size
from flylab.passes.mma_to_rocdl import multiplied
from flylab.passes.rewriter import Builder, Pass, carrier, erase, operations, parse_type, source_line
from flylab.passes.shared_memory import SPACE, SharedMemory, gep, moved_in_lds
from flylab.passes.small_floats import converted
from flylab.passes.subbyte import expand_narrow
from flylab.passes.vectors import extract, insert, shape_of, vector_type
from flylab.passes.whole_waves import keep_waves_whole
from flylab.targets import DEFAULT_ARCH, TARGETS, Target

BUFFER_FLAGS = (7 << 12) | (4 << 15)
"""The last word of a raw buffer descriptor: data format 32, untyped. Source: CDNA3 ISA, table of the descriptor."""

OUTSIDE = 2**32 - 16
"""An offset in bytes beyond what a descriptor of a tensor covers, and so that an access there does not wrap."""
WIDTHS = (128, 96, 64, 32, 16, 8)
"""The bits that one buffer instruction moves for a thread."""


@dataclass(frozen=True)
class ConvertFlyToRocdl(Pass):
    """See the module's text."""

    name: str = "convert-fly-to-rocdl"
    chip: Target = TARGETS[DEFAULT_ARCH]

    def for_chip(self, target: Target) -> ConvertFlyToRocdl:
        """The pass with the instructions of a chip."""
        return replace(self, chip=target)

    def run(self, module: Any) -> None:
        """Convert each Fly operation, in program order."""
        keep_waves_whole(module)
        ops = operations(module.operation)
        conversion, done = _Conversion(self.chip, SharedMemory(ops), GlobalOffsets(ops)), list[Any]()
        printing: set[str] = set()
        crossing = CrossingPointers(ops, conversion.address, done)
        for op in ops:
            if crossing.take(op):
                continue
            if op.name in HIDDEN:
                read_size(op, Builder(op))
                done.append(op)
            elif op.name == "fly.printf" and not is_of_launcher(op):
                printing.add(str(printf.lower(op, Builder(op)).attributes["sym_name"].value))
                done.append(op)
            elif op.name.startswith("fly.") and not is_of_launcher(op):
                rule = RULES.get(op.name)
                if rule is None:
                    raise CompileError(
                        f"{op.name} cannot be lowered to the chip",
                        where=source_line(op.location),
                        hint="this is a fault of flylab's passes: please report the kernel",
                    )
                rule(conversion, op, Builder(op))
                done.append(op)
        erase(done)
        crossing.erase_arguments()
        expand_narrow(module)
        if printing:
            printf.pass_buffer(module, printing)


class _Conversion:
    """What each Fly pointer has become: an LLVM pointer, or (descriptor, byte offset or None for 0)."""

    def __init__(self, chip: Target, shared: SharedMemory, offsets: GlobalOffsets) -> None:
        self.chip = chip
        self.shared = shared
        self.offsets = offsets
        self.address: dict[Any, Any] = {}


def _from_llvm_ptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = op.operands[0]


def _shared_alloc(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.shared.static(op, builder)


def _shared_part(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.shared.part(op, conversion.address[op.operands[0]], builder)


def _shared_dynamic(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.shared.dynamic(op, builder)


def _to_llvm_ptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    op.results[0].replace_all_uses_with(conversion.address[op.operands[0]])


def _recast_iter(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.address[op.operands[0]]
    conversion.offsets.same(op.operands[0], op.results[0])


def _ptrtoint(conversion: _Conversion, op: Any, builder: Builder) -> None:
    address = builder.op("llvm.ptrtoint", [conversion.address[op.operands[0]]], op.results[0].type)
    op.results[0].replace_all_uses_with(address)


def _inttoptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    kind = POINTERS[of_mlir(op.results[0].type).space]
    conversion.address[op.results[0]] = builder.op("llvm.inttoptr", [op.operands[0]], kind)


def _make_buffer_ptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    stride = builder.constant(0, "i16")
    known = attribute(op, "num_records")
    records = op.operands[1] if known == "?" else builder.constant(int(known), "i64")
    flags = builder.constant(BUFFER_FLAGS, "i32")
    base = conversion.address[op.operands[0]]
    descriptor = builder.op("rocdl.make.buffer.rsrc", [base, stride, records, flags], BUFFER_POINTER)
    conversion.address[op.results[0]] = (descriptor, None)


def _add_offset(conversion: _Conversion, op: Any, builder: Builder) -> None:
    base, offset = conversion.address[op.operands[0]], op.operands[1]
    spec: Ptr = of_mlir(op.operands[0].type)
    if spec.space == SPACE and spec.dtype.bits % 8 == 0:
        conversion.address[op.results[0]] = moved_in_lds(builder, base, offset, spec.dtype.bits // 8)
        return
    if spec.space != "buffer":
        moved = conversion.offsets.moved(op, base, builder) if spec.space == "global" else None
        conversion.address[op.results[0]] = moved or gep(builder, base, offset, spec.space, spec.dtype.bits)
        return
    descriptor, before = base
    kind = widest(offset, before)
    width = builder.constant(spec.dtype.bits // 8, kind)
    scaled = builder.op("arith.muli", [wide(builder, offset, kind), width], kind)
    total = scaled if before is None else builder.op("arith.addi", [wide(builder, before, kind), scaled], kind)
    conversion.address[op.results[0]] = (descriptor, total)


def _load(conversion: _Conversion, op: Any, builder: Builder) -> None:
    spec: Ptr = of_mlir(op.operands[0].type)
    address = conversion.address[op.operands[0]]
    count, _ = shape_of(op.results[0])
    atom = _atom(op)
    if atom and atom.op.trans:
        value = load_transposed(builder, atom, address)
    elif spec.space == "buffer":
        value = _buffer_load(builder, address, spec.dtype, count, atom.op.cache if atom else 0)
    else:
        kind = vector_type(carrier(spec.dtype), count)
        value = builder.op("llvm.load", [address], kind, alignment=_alignment(spec))
    if value.type != op.results[0].type:
        value = builder.op("vector.bitcast", [value], op.results[0].type)
    op.results[0].replace_all_uses_with(value)


def _store(conversion: _Conversion, op: Any, builder: Builder) -> None:
    value, pointer = op.operands
    spec: Ptr = of_mlir(pointer.type)
    count, _ = shape_of(value)
    atom = _atom(op)
    if atom and atom.op.atomic:
        _atomic(builder, atom.op.atomic, value, conversion.address[pointer], spec)
        return
    kind = vector_type(carrier(spec.dtype), count)
    if value.type != kind:
        value = builder.op("vector.bitcast", [value], kind)
    address = conversion.address[pointer]
    if spec.space == "buffer":
        _buffer_store(builder, address, value, spec.dtype, count, atom.op.cache if atom else 0)
    else:
        builder.op("llvm.store", [value, address], alignment=_alignment(spec))


def _atom(op: Any) -> CopyAtom | None:
    """The atom of a copy's load or store; of another access, none."""
    return CopyAtom.parse(attribute(op, "atom")) if "atom" in op.attributes else None


def _atomic(builder: Builder, atomic: Atomic, value: Any, address: Any, spec: Ptr) -> None:
    if spec.space == "buffer":
        descriptor, base = address
        atomic_on_buffer(builder, atomic, value, descriptor, _byte_offset(builder, base, 0))
    else:
        atomic_in_memory(builder, atomic, value, address)


def _past_registers(conversion: _Conversion, op: Any, builder: Builder) -> None:
    source, lds = (conversion.address[operand] for operand in op.operands)
    offset = None
    if of_mlir(op.operands[0].type).space == "buffer":
        source, base = source
        offset = _byte_offset(builder, base, 0)
    load_past_registers(builder, CopyAtom.parse(attribute(op, "atom")), source, lds, offset)


def _first_lane(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = first_lane(builder, conversion.address[op.operands[0]])


def _alignment(spec: Ptr) -> Any:
    from mlir import ir

    return ir.IntegerAttr.get(parse_type("i64"), spec.known_align)


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


def _byte_offset(builder: Builder, base: Any, extra: int) -> Any:
    """The offset of a buffer instruction: 32 bits, from 64 the nearest that is outside of every buffer."""
    if base is None:
        return builder.constant(extra)
    kind = widest(base)
    total = base if extra == 0 else builder.op("arith.addi", [base, builder.constant(extra, kind)], kind)
    if kind == "i32":
        return total
    nearest = builder.op("arith.minui", [total, builder.constant(OUTSIDE, kind)], kind)
    return builder.op("arith.trunci", [nearest], "i32")


def _buffer_load(builder: Builder, address: Any, dtype: DType, count: int, cache: int) -> Any:
    descriptor, base = address
    whole = None
    for first, size in _pieces(dtype, count):
        offset = _byte_offset(builder, base, first * dtype.bits // 8)
        zero = builder.constant(0)
        aux = builder.constant(cache) if cache else zero
        raw = builder.op("rocdl.raw.ptr.buffer.load", [descriptor, offset, zero, aux], _register(size * dtype.bits))
        part = _bitcast(builder, raw, vector_type(carrier(dtype), size))
        whole = insert(builder, part, whole, first, count)
    return whole


def _buffer_store(builder: Builder, address: Any, value: Any, dtype: DType, count: int, cache: int) -> None:
    descriptor, base = address
    for first, size in _pieces(dtype, count):
        part = extract(builder, value, first, size)
        raw = _bitcast(builder, part, parse_type(_register(size * dtype.bits)))
        offset = _byte_offset(builder, base, first * dtype.bits // 8)
        zero = builder.constant(0)
        aux = builder.constant(cache) if cache else zero
        builder.op("rocdl.raw.ptr.buffer.store", [raw, descriptor, offset, zero, aux])


def _convert_float(conversion: _Conversion, op: Any, builder: Builder) -> None:
    op.results[0].replace_all_uses_with(converted(op, builder, conversion.chip))


HIDDEN = ("gpu.block_dim", "gpu.grid_dim")
RULES: dict[str, Callable[[_Conversion, Any, Builder], None]] = {
    "fly.check": lambda _, op, builder: lower_check(op, builder),
    "fly.from_llvm_ptr": _from_llvm_ptr,
    "fly.shared_alloc": _shared_alloc,
    "fly.shared_part": _shared_part,
    "fly.shared_dynamic": _shared_dynamic,
    "fly.to_llvm_ptr": _to_llvm_ptr,
    "fly.recast_iter": _recast_iter,
    "fly.ptrtoint": _ptrtoint,
    "fly.inttoptr": _inttoptr,
    "fly.make_buffer_ptr": _make_buffer_ptr,
    "fly.add_offset": _add_offset,
    "fly.ptr_load": _load,
    "fly.copy_atom_load": _load,
    "fly.ptr_store": _store,
    "fly.copy_atom_store": _store,
    "fly.copy_atom_call": _past_registers,
    "fly.first_lane": _first_lane,
    "fly.convert_float": _convert_float,
    "fly.mma_atom_call_ssa": lambda _, op, builder: op.results[0].replace_all_uses_with(multiplied(op, builder)),
}
