"""convert-fly-to-rocdl: pointers and copies become LLVM pointers, loads and stores, or AMD's raw buffer operations.

A global pointer is `!llvm.ptr<1>`, one into LDS `!llvm.ptr<3>`. A buffer pointer is a pair: the descriptor
(`!llvm.ptr<8>`) and an offset in bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from flylab.atoms import CopyAtom
from flylab.dialect.operations import attribute
from flylab.dialect.types import POINTERS, Ptr, of_mlir
from flylab.errors import CompileError
from flylab.passes import printf
from flylab.passes.buffer_place import BufferPlace
from flylab.passes.buffer_walks import BufferWalks, descriptor_of
from flylab.passes.checks import is_of_launcher, lower_check
from flylab.passes.copy_instructions import atomic_in_memory, first_lane, load_into_lds, load_transposed
from flylab.passes.crossing_pointers import CrossingPointers, wide, widest
from flylab.passes.global_offsets import GlobalOffsets
from flylab.passes.hidden_arguments import read_size
from flylab.passes.mma_to_rocdl import multiplied
from flylab.passes.rewriter import Builder, Pass, carrier, erase, operations, parse_type, source_line
from flylab.passes.shared_memory import SPACE, SharedMemory, gep, moved_in_lds
from flylab.passes.small_floats import converted
from flylab.passes.subbyte import expand_narrow
from flylab.passes.vectors import shape_of, vector_type
from flylab.passes.whole_waves import keep_waves_whole
from flylab.targets import DEFAULT_ARCH, TARGETS, Target


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
        conversion, done = _Conversion(self.chip, SharedMemory(ops), GlobalOffsets(ops), BufferWalks(ops)), list[Any]()
        printing: set[str] = set()
        constants: dict[Any, Any] = {}
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
                rule(conversion, op, Builder(op, constants))
                done.append(op)
        erase(done)
        crossing.erase_arguments()
        expand_narrow(module)
        if printing:
            printf.pass_buffer(module, printing)


class _Conversion:
    """What each Fly pointer has become: an LLVM pointer, or (descriptor, byte offset or None for 0); for some into a
    buffer, the further byte offset that the whole wave has."""

    def __init__(self, chip: Target, shared: SharedMemory, offsets: GlobalOffsets, walks: BufferWalks) -> None:
        self.chip = chip
        self.shared = shared
        self.offsets = offsets
        self.walks = walks
        self.address: dict[Any, Any] = {}
        self.soffset: dict[Any, Any] = {}

    def in_buffer(self, pointer: Any) -> BufferPlace:
        """Where a pointer into a buffer leads."""
        walk = self.walks.walks.get(pointer)
        if walk is not None and walk.is_far:
            return BufferPlace(walk.descriptor, walk.offset)
        descriptor, base = self.address[pointer]
        return BufferPlace(descriptor, base, self.soffset.get(pointer))


def _from_llvm_ptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = op.operands[0]


def _shared_alloc(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.shared.static(op, builder)


def _shared_part(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.shared.part(op, conversion.address[op.operands[0]], builder)


def _shared_dynamic(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.shared.dynamic(op, builder)


def _to_llvm_ptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    address = conversion.address[op.operands[0]]
    # Of a buffer, its descriptor.
    op.results[0].replace_all_uses_with(address[0] if isinstance(address, tuple) else address)


def _recast_iter(conversion: _Conversion, op: Any, builder: Builder) -> None:
    conversion.address[op.results[0]] = conversion.address[op.operands[0]]
    conversion.offsets.same(op.operands[0], op.results[0])
    conversion.walks.same(op.operands[0], op.results[0])


def _ptrtoint(conversion: _Conversion, op: Any, builder: Builder) -> None:
    address = builder.op("llvm.ptrtoint", [conversion.address[op.operands[0]]], op.results[0].type)
    op.results[0].replace_all_uses_with(address)


def _inttoptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    kind = POINTERS[of_mlir(op.results[0].type).space]
    conversion.address[op.results[0]] = builder.op("llvm.inttoptr", [op.operands[0]], kind)


def _make_buffer_ptr(conversion: _Conversion, op: Any, builder: Builder) -> None:
    known = attribute(op, "num_records")
    records = op.operands[1] if known == "?" else int(known)
    base = builder.op("llvm.ptrtoint", [conversion.address[op.operands[0]]], "i64")
    descriptor = descriptor_of(builder, base, records)
    conversion.address[op.results[0]] = (descriptor, None)
    conversion.walks.begin(op.results[0], base, records, descriptor)


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
    conversion.walks.move(op, builder)
    descriptor, before = base
    if op.operands[0] in conversion.soffset:
        conversion.soffset[op.results[0]] = conversion.soffset[op.operands[0]]
    kind = widest(offset, before)
    width = builder.constant(spec.dtype.bits // 8, kind)
    scaled = builder.op("arith.muli", [wide(builder, offset, kind), width], kind)
    total = scaled if before is None else builder.op("arith.addi", [wide(builder, before, kind), scaled], kind)
    conversion.address[op.results[0]] = (descriptor, total)


def _add_soffset(conversion: _Conversion, op: Any, builder: Builder) -> None:
    pointer, offset = op.operands
    width = builder.constant(of_mlir(pointer.type).dtype.bits // 8)
    total, before = builder.op("arith.muli", [offset, width], "i32"), conversion.soffset.get(pointer)
    conversion.address[op.results[0]] = conversion.address[pointer]
    conversion.soffset[op.results[0]] = total if before is None else builder.op("arith.addi", [before, total], "i32")


def _load(conversion: _Conversion, op: Any, builder: Builder) -> None:
    spec: Ptr = of_mlir(op.operands[0].type)
    address = conversion.address[op.operands[0]]
    count, _ = shape_of(op.results[0])
    atom = _atom(op)
    if atom and atom.op.trans:
        value = load_transposed(builder, atom, address)
    elif spec.space == "buffer":
        value = conversion.in_buffer(op.operands[0]).load(builder, spec.dtype, count, atom.op.cache if atom else 0)
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
        if spec.space == "buffer":
            conversion.in_buffer(pointer).combine(builder, atom.op.atomic, value)
        else:
            atomic_in_memory(builder, atom.op.atomic, value, conversion.address[pointer])
        return
    kind = vector_type(carrier(spec.dtype), count)
    if value.type != kind:
        value = builder.op("vector.bitcast", [value], kind)
    if spec.space == "buffer":
        conversion.in_buffer(pointer).store(builder, value, spec.dtype, count, atom.op.cache if atom else 0)
    else:
        builder.op("llvm.store", [value, conversion.address[pointer]], alignment=_alignment(spec))


def _atom(op: Any) -> CopyAtom | None:
    """The atom of a copy's load or store; of another access, none."""
    return CopyAtom.parse(attribute(op, "atom")) if "atom" in op.attributes else None


def _past_registers(conversion: _Conversion, op: Any, builder: Builder) -> None:
    source, lds = op.operands
    atom = CopyAtom.parse(attribute(op, "atom"))
    if of_mlir(source.type).space == "buffer":
        conversion.in_buffer(source).load_into_lds(builder, atom.op, conversion.address[lds])
    else:
        load_into_lds(builder, atom.op, conversion.address[source], conversion.address[lds])


def _first_lane(conversion: _Conversion, op: Any, builder: Builder) -> None:
    pointer = conversion.address[op.operands[0]]
    conversion.address[op.results[0]] = first_lane(builder, pointer, int(attribute(op, "apart")))


def _alignment(spec: Ptr) -> Any:
    from mlir import ir

    return ir.IntegerAttr.get(parse_type("i64"), spec.known_align)


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
    "fly.add_soffset": _add_soffset,
    "fly.convert_float": _convert_float,
    "fly.mma_atom_call_ssa": lambda _, op, builder: op.results[0].replace_all_uses_with(multiplied(op, builder)),
}
