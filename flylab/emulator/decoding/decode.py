"""From the instructions of a kernel to records: which handler each needs, and what its operand slots hold."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from flylab.codegen.assembly.encoding import base_name, is_inline
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.decoding.chips import chips_with, lacking
from flylab.emulator.decoding.encodings import SIGNED_BITS, check_form
from flylab.emulator.decoding.gpr_index import index_states, is_indexed
from flylab.emulator.decoding.modifiers import Modifiers
from flylab.emulator.decoding.operands import (
    CONSTANT,
    SCALAR,
    VECTOR,
    Operand,
    OperandError,
    constant_bits,
    operands_of,
)
from flylab.emulator.decoding.refused import REFUSED
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.decoding.repeats import Repeats
from flylab.emulator.decoding.suggestions import suggestion
from flylab.emulator.decoding.table import MIXED_FAMILY, PACKED_FAMILY, SCALAR_FAMILY, TYPES, Row
from flylab.emulator.handlers import compute
from flylab.emulator.handlers.forms import Form, Source
from flylab.emulator.linking import Code
from flylab.emulator.numbers.float_mode import Mode
from flylab.emulator.state import APERTURES, RECORD_BYTES, ROW_BYTES, SLOTS
from flylab.errors import UnknownInstruction
from flylab.locks import cached_property
from flylab.places import SourceLine


class Slots(list[int]):
    """What a record's operand slots hold, 32 bits each."""

    def copy(self) -> Slots:
        """A copy."""
        return Slots(self)

    def put(self, value: int, words: int = 1) -> int:
        """Puts a value of one or two words in the next slots; the number of the first."""
        first = len(self)
        self.append(value & 0xFFFFFFFF)
        if words > 1:
            self.append((value >> 32) & 0xFFFFFFFF)
        if len(self) > SLOTS:
            raise OperandError("it has more operands than a record holds")
        return first


@dataclass
class Coded:
    """One instruction decoded: its handler's key, what writes that handler's IR, the values of its slots.

    `registers` are the slots with the place of a register, and the operand of the text that each comes from. `access`
    makes the writer of the handler of an access of memory by lanes (`VectorAccess`), for what asks for its addresses.
    """

    key: str
    write: Callable[[str], str]
    slots: Slots = field(default_factory=Slots)
    indexed: bool = False
    registers: Sequence[tuple[int, int]] = ()
    access: Callable[[], Any] | None = None

    @classmethod
    def of(cls, form: Form, slots: Slots) -> Coded:
        """An instruction of a row of the table."""
        return cls(form.key, partial(compute.write, form), slots, form.index_limit >= 0)

    def with_slots(self, slots: Slots) -> Coded:
        """The same instruction with other slots; `dataclasses.replace` takes ten times as long."""
        return Coded(self.key, self.write, slots, self.indexed, self.registers)

    def slot(self, value: int) -> int:
        """Puts a word in the next slot; its number."""
        return self.slots.put(value)

    def record(self, handler: int) -> bytes:
        """The record's bytes."""
        return struct.pack(f"<Q{len(self.slots)}I", handler, *self.slots).ljust(RECORD_BYTES, b"\0")


def source_line(kernel: IsaKernel, instruction: Instruction) -> SourceLine | None:
    """The user's line that an instruction came from, or None where the assembly has no line table."""
    if instruction.source is None:
        return None
    file, line, column = instruction.source
    return SourceLine.of(file, line, column - 1 if column else None, function=kernel.name)


def unknown(kernel: IsaKernel, instruction: Instruction, why: str, hint: str | None = None) -> UnknownInstruction:
    """The error for an instruction that cannot be executed, with all that finds it."""
    where = source_line(kernel, instruction)
    return UnknownInstruction(
        f"the software device cannot execute '{instruction.text[:120]}' of kernel '{kernel.name}' "
        f"(byte {instruction.address:#x}, ISA line {instruction.isa_line}): {why}", where=where, hint=hint)


def decode(code: Code, table: dict[str, Row], others: dict[str, Callable[..., Coded]]) -> list[Coded]:
    """Every instruction that a kernel can reach. `others` decodes what is no row of `table`, by mnemonic.

    Raises `UnknownInstruction` for the first that cannot be executed.
    """
    kernel, decoder = code.kernel, Decoder(code)
    arch, coded = kernel.target.arch, []
    for instruction in kernel.instructions:
        if repeat := decoder.repeats.find(instruction):
            coded.append(repeat)
            continue
        name = base_name(instruction.mnemonic)
        try:
            if arch not in (chips := chips_with(name)):
                raise OperandError(lacking(arch, chips))
            if name not in others and name not in table:
                raise OperandError(REFUSED.get(name, "these chips have no instruction of this name"))
            check_form(name, instruction, table.get(name))
            if name in others:
                coded.append(others[name](decoder, instruction))
            else:
                coded.append(decoder.computing(table[name], instruction))
                if not decoder.index_states:
                    decoder.repeats.keep(instruction, coded[-1])
            if is_indexed(decoder.index_states, instruction) and name.startswith("v_") and not coded[-1].indexed:
                raise OperandError("VGPR indexing is on, and the software device has no such form of it")
        except OperandError as error:
            known = {*table, *others, *REFUSED}
            hint = None if name in known else suggestion(name, [n for n in known if arch in chips_with(n)])
            raise unknown(kernel, instruction, str(error), hint) from None
    return coded


class Decoder:
    """Decodes the instructions of one kernel."""

    def __init__(self, code: Code):
        self.code, self.kernel = code, code.kernel
        self.registers, self.mode = Registers(code.kernel), Mode.of(code.kernel)
        self.repeats = Repeats(self.registers.end_of_vectors // ROW_BYTES)

    @cached_property
    def index_states(self) -> dict[int, set[bool]]:
        """Where VGPR indexing is on."""
        return index_states(self.kernel)

    def target(self, label: str, instruction: Instruction) -> int:
        """The distance in bytes from an instruction's record to that of a label."""
        if label not in self.kernel.labels:
            raise OperandError(f"the kernel has no label {label}")
        return (self.kernel.labels[label] - instruction.index) * RECORD_BYTES

    def computing(self, row: Row, instruction: Instruction, modifiers: Iterable[str] | None = None) -> Coded:
        """An instruction of a row of the table; `modifiers` replaces those of the text."""
        results, sources = row.named_results, row.named_sources
        operands = operands_of(instruction, len(results) + len(sources))
        words = Modifiers.of(instruction.modifiers if modifiers is None else tuple(modifiers))
        words.check(row, instruction, own_words=modifiers is None)
        slots = Slots()
        packed = row.family == PACKED_FAMILY
        if row.family == MIXED_FAMILY:
            sources = tuple("f16" if words.bit("op_sel_hi", n) else "f32" for n in range(len(sources)))
            row = replace(row, sources=sources)
        places = tuple(slots.put(self._result(o, t, row)) for o, t in zip(operands, results, strict=False))
        operands = operands[len(results):]
        found = []
        for half in range(2 if packed else 1):
            for n, (operand, type_name) in enumerate(zip(operands, sources, strict=True)):
                source = self.half(slots, operand, type_name, words, n, half) if packed else self._source(
                    slots, operand, type_name, words.select(n, type_name, row.family), row)
                found.append(source._replace(control=words.control) if words.control and n == 0 else source)
        coded = self.formed(row, places, found, words, slots, instruction)
        first = len(places)
        coded.registers = [*((place, n) for n, place in enumerate(places)),
                           *((s.slot, first + n % len(sources)) for n, s in enumerate(found) if s.kind != CONSTANT)]
        return coded

    def formed(self, row: Row, places: Sequence[int], sources: Sequence[Source], words: Modifiers, slots: Slots,
               instruction: Instruction) -> Coded:
        """An instruction of a row whose operands are in slots: `places` those of its results."""
        limit = -1
        if row.family != SCALAR_FAMILY and is_indexed(self.index_states, instruction):
            if any(text.lstrip("-|").startswith("a") for text in instruction.operands):
                raise OperandError("VGPR indexing is on, which holds for v0, v1 ... only")
            limit = slots.put(self.registers.end_of_vectors)
        select, unused = words.placement(len(row.sources), row.named_results, row.family == PACKED_FAMILY)
        return Coded.of(Form(row, tuple(places), tuple(sources), words.clamp, words.scale, select, unused, self.mode,
                             words.lanes, words.zero_fill, limit), slots)

    def _result(self, operand: Operand, type_name: str, row: Row) -> int:
        if operand.kind == SCALAR and operand.index >= APERTURES:
            raise OperandError("it would write a register that can only be read")
        wanted = SCALAR if row.family == SCALAR_FAMILY or type_name == "mask" else VECTOR
        registers = TYPES[type_name].registers * (2 if row.family == PACKED_FAMILY and type_name.endswith("32") else 1)
        return self.registers.offset(operand, registers, wanted)

    def _source(self, slots: Slots, operand: Operand, type_name: str, select: str, row: Row) -> Source:
        type_ = TYPES[type_name]
        if operand.kind == CONSTANT:
            place = slots.put(constant_bits(operand, type_.bits), type_.registers)
        elif row.family == SCALAR_FAMILY or type_name == "mask":
            place = slots.put(self.registers.offset(operand, type_.registers, SCALAR, CONSTANT))
        else:
            place = slots.put(self.registers.source(operand, type_.registers, VECTOR, SCALAR, CONSTANT))
        name = row.mnemonic
        signs = type_.is_float or name in SIGNED_BITS
        if not signs and (operand.negative or operand.absolute) or operand.sign_extend and signs or (
                operand.absolute and name.startswith("v_div_scale")):
            raise OperandError("it takes no such source modifier there")
        return Source(operand.kind, place, operand.negative, operand.absolute, operand.sign_extend, select)

    def half(self, slots: Slots, operand: Operand, type_name: str, words: Modifiers, n: int, half: int) -> Source:
        """A source of the low or high half of a packed instruction.

        A constant stands for 32 bits, of which op_sel and op_sel_hi pick a half like of a register: a float is the
        bits of a half with 0 above where the instruction computes halves, else those of a 32-bit float.
        Source: what LLVM compiles of constants for both chips (tests/emulator/test_packed.py).
        """
        high = words.bit("op_sel_hi" if half else "op_sel", n, default=half)
        negative = words.bit("neg_hi" if half else "neg_lo", n) ^ operand.negative
        wide = type_name.endswith("32")
        if operand.kind == CONSTANT:
            if not is_inline(operand.value):
                raise OperandError(f"a packed instruction has no room for the constant {operand.value}")
            if wide and high and operand.value != 0:
                raise OperandError("the upper half of a constant is not defined for packed 32-bit numbers")
            halves = not wide and type_name.startswith("f16")
            type_ = "i32" if isinstance(operand.value, int) else "half" if halves else "float"
            place = slots.put(constant_bits(operand, type_))
        else:
            first = self.registers.offset(operand, 2 if wide else 1, VECTOR, SCALAR, CONSTANT)
            place = slots.put(first + (ROW_BYTES if operand.kind == VECTOR else 4) * (wide and high))
        return Source(operand.kind, place, bool(negative), select="" if wide else f"WORD_{int(high)}")
