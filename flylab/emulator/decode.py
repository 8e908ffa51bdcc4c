"""From the instructions of a kernel to records: which handler each needs, and what its operand slots hold."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from flylab.codegen.encoding import integer, is_inline
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator import compute
from flylab.emulator.chips import chips_with
from flylab.emulator.compute import DYNAMIC, Form, Mode, Source
from flylab.emulator.linking import Code
from flylab.emulator.operands import (
    CONSTANT,
    OFF,
    SCALAR,
    VECTOR,
    Operand,
    OperandError,
    constant_bits,
    operands_of,
)
from flylab.emulator.refused import REFUSED
from flylab.emulator.state import RECORD_BYTES, ROW_BYTES, SLOTS, WAVE_SIZE
from flylab.emulator.table import MIXED_FAMILY, PACKED_FAMILY, SCALAR_FAMILY, TYPES, Row
from flylab.errors import UnknownInstruction
from flylab.places import SourceLine

SUFFIXES = ("_e32", "_e64", "_sdwa")
_SCALES = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}
_LIST = re.compile(r"(op_sel|op_sel_hi|neg_lo|neg_hi):\[([01](?:,[01]){0,3})\]")
_SELECT = re.compile(r"(?:(dst_sel|src0_sel|src1_sel):(BYTE_[0-3]|WORD_[01]|DWORD)|"
                     r"(dst_unused):(UNUSED_(?:PAD|SEXT|PRESERVE)))")
_WORDS = {SCALAR: "a scalar register", VECTOR: "a vector register", CONSTANT: "a constant", OFF: "'off'"}
# What an encoding can name of each file.
_VECTOR_NUMBERS = 256


class Slots(list[int]):
    """What a record's operand slots hold, 32 bits each."""

    def put(self, value: int, words: int = 1) -> int:
        """Puts a value of one or two words in the next slots; the number of the first."""
        first = len(self)
        self += [(value >> (32 * n)) & 0xFFFFFFFF for n in range(words)]
        if len(self) > SLOTS:
            raise OperandError("it has more operands than a record holds")
        return first


@dataclass
class Coded:
    """One instruction decoded: its handler's key, what writes that handler's IR, the values of its slots."""

    key: str
    write: Callable[[str], str]
    slots: Slots = field(default_factory=Slots)

    @classmethod
    def of(cls, form: Form, slots: Slots) -> Coded:
        """An instruction of a row of the table."""
        return cls(form.key, partial(compute.write, form), slots)

    def slot(self, value: int) -> int:
        """Puts a word in the next slot; its number."""
        return self.slots.put(value)

    def record(self, handler: int) -> bytes:
        """The record's bytes."""
        words = b"".join(word.to_bytes(4, "little") for word in self.slots)
        return (handler.to_bytes(8, "little") + words).ljust(RECORD_BYTES, b"\0")


class Registers:
    """The register files of a kernel: how many rows of vector registers it has, and where operands lie in memory.

    `private_bytes` is what each lane has of private memory.
    """

    def __init__(self, kernel: IsaKernel):
        descriptor = kernel.descriptor
        total = descriptor.get("next_free_vgpr", kernel.vector_registers)
        granule = kernel.target.vgpr_granule
        self.rows = max(-(-total // granule) * granule, granule)
        self.accumulators = descriptor.get("accum_offset", self.rows)
        self.private_bytes = kernel.scratch_bytes

    @property
    def wave_bytes(self) -> int:
        """The memory of a wave: the rows of its vector registers, then the private memory of its lanes."""
        return self.rows * ROW_BYTES + WAVE_SIZE * self.private_bytes

    def offset(self, operand: Operand, registers: int, *files: str) -> int:
        """The byte offset in its file of a register without source modifiers.

        `registers` is how many the instruction takes there, `files` whose they may be (SCALAR, VECTOR).
        """
        if operand.negative or operand.absolute or operand.sign_extend:
            raise OperandError("it takes no source modifier there")
        return self.source(operand, registers, *files)

    def source(self, operand: Operand, registers: int, *files: str) -> int:
        """As `offset`, where the register may have source modifiers."""
        if operand.kind not in files:
            raise OperandError(f"{_WORDS[operand.kind]} stands where it takes "
                               f"{' or '.join(_WORDS[name] for name in files)}")
        if operand.count != registers:
            raise OperandError(f"it names {operand.count} registers where the instruction takes {registers}")
        if operand.kind == SCALAR:
            return 4 * operand.index
        first, end = (self.accumulators, self.rows) if operand.accumulator else (0, min(self.accumulators, self.rows))
        count, letter = min(end - first, _VECTOR_NUMBERS), "a" if operand.accumulator else "v"
        if operand.index + registers > count:
            raise OperandError(f"register {letter}{operand.index + registers - 1} is beyond the {max(count, 0)} of the "
                               "kernel's descriptor")
        return ROW_BYTES * (first + operand.index)

    def scalar(self, operand: Operand) -> int:
        """What a slot holds of a scalar register or constant of 32 bits: the register's offset, or the bits."""
        if operand.kind == CONSTANT:
            return constant_bits(operand, "i32")
        return self.offset(operand, 1, SCALAR, CONSTANT)


def mode_of(kernel: IsaKernel) -> Mode:
    """The float mode a kernel's handlers are made for, from its descriptor and from what it writes to MODE."""
    descriptor = kernel.descriptor
    for name in ("float_round_mode_32", "float_round_mode_16_64"):
        if descriptor.get(name, 0):
            raise UnknownInstruction(f"kernel '{kernel.name}' asks for {name} {descriptor[name]}: "
                                     "the software device rounds to nearest even only")
    dynamic = any("HW_REG_MODE" in i.text and i.mnemonic.startswith("s_setreg") for i in kernel.instructions)
    narrow, wide = descriptor.get("float_denorm_mode_32", 0), descriptor.get("float_denorm_mode_16_64", 3)
    return Mode(DYNAMIC if dynamic else narrow, DYNAMIC if dynamic else wide, descriptor.get("ieee_mode", 1),
                descriptor.get("dx10_clamp", 1))


def initial_mode(kernel: IsaKernel) -> int:
    """The MODE register at a wave's start."""
    descriptor = kernel.descriptor
    return descriptor.get("float_denorm_mode_32", 0) << 4 | descriptor.get("float_denorm_mode_16_64", 3) << 6


def base_name(mnemonic: str) -> str:
    """The mnemonic without what names its encoding."""
    for suffix in SUFFIXES:
        if mnemonic.endswith(suffix):
            return mnemonic[:-len(suffix)]
    return mnemonic


def source_line(kernel: IsaKernel, instruction: Instruction) -> SourceLine | None:
    """The user's line that an instruction came from, or None where the assembly has no line table."""
    if instruction.source is None:
        return None
    file, line, column = instruction.source
    return SourceLine.of(file, line, column - 1 if column else None, function=kernel.name)


def unknown(kernel: IsaKernel, instruction: Instruction, why: str) -> UnknownInstruction:
    """The error for an instruction that cannot be executed, with all that finds it."""
    where = source_line(kernel, instruction)
    return UnknownInstruction(
        f"the software device cannot execute '{instruction.text[:120]}' of kernel '{kernel.name}' "
        f"(byte {instruction.address:#x}, ISA line {instruction.isa_line}): {why}", where=where)


def decode(code: Code, table: dict[str, Row], others: dict[str, Callable[..., Coded]]) -> list[Coded]:
    """Every instruction that a kernel can reach. `others` decodes what is no row of `table`, by mnemonic.

    Raises `UnknownInstruction` for the first that cannot be executed.
    """
    kernel, decoder = code.kernel, Decoder(code)
    coded = []
    for instruction in kernel.instructions:
        name = base_name(instruction.mnemonic)
        try:
            if kernel.target.arch not in (chips := chips_with(name)):
                raise OperandError(f"{kernel.target} has no such instruction, {' and '.join(chips)} has")
            if name in others:
                coded.append(others[name](decoder, instruction))
            elif name in table:
                coded.append(decoder.computing(table[name], instruction))
            else:
                raise OperandError(REFUSED.get(name, "the operation table has no row for it"))
        except OperandError as error:
            raise unknown(kernel, instruction, str(error)) from None
    return coded


class Decoder:
    """Decodes the instructions of one kernel."""

    def __init__(self, code: Code):
        self.code, self.kernel = code, code.kernel
        self.registers, self.mode = Registers(code.kernel), mode_of(code.kernel)

    def target(self, label: str, instruction: Instruction) -> int:
        """The distance in bytes from an instruction's record to that of a label.

        A number instead of a label is the machine code's: words of 4 bytes from the next instruction on.
        """
        place = self.kernel.labels.get(label)
        words = integer(label)
        if words is not None:
            address = self.code.addresses[instruction.index] + 4 * (1 + (words ^ 0x8000) - 0x8000)
            place = self.code.places.get(address) if -0x8000 <= words < 0x10000 else None
        if place is None:
            raise OperandError(f"the kernel has no label {label}" if words is None else
                               f"no instruction is {words} words further")
        return (place - instruction.index) * RECORD_BYTES

    def computing(self, row: Row, instruction: Instruction, modifiers: Iterable[str] | None = None) -> Coded:
        """An instruction of a row of the table; `modifiers` replaces those of the text."""
        results, sources = row.named_results, row.named_sources
        operands = operands_of(instruction, len(results) + len(sources))
        words = Modifiers(instruction.modifiers if modifiers is None else modifiers)
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
                source = self._half(slots, operand, type_name, words, n, half) if packed else self._source(
                    slots, operand, type_name, words.select(n, type_name, row.family), row)
                found.append(source)
        select, unused = words.placement(len(sources), results, packed)
        form = Form(row, places, tuple(found), words.clamp, words.scale, select, unused, self.mode)
        return Coded.of(form, slots)

    def _result(self, operand: Operand, type_name: str, row: Row) -> int:
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
        return Source(operand.kind, place, operand.negative, operand.absolute, operand.sign_extend, select)

    def _half(self, slots: Slots, operand: Operand, type_name: str, words: Modifiers, n: int, half: int) -> Source:
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
                raise OperandError("the upper half of a constant is not defined for packed 32-bit floats")
            halves = not wide and type_name.startswith("f16")
            type_ = "i32" if isinstance(operand.value, int) else "half" if halves else "float"
            place = slots.put(constant_bits(operand, type_))
        else:
            first = self.registers.offset(replace(operand, negative=False), 2 if wide else 1, VECTOR, SCALAR, CONSTANT)
            place = slots.put(first + (ROW_BYTES if operand.kind == VECTOR else 4) * (wide and high))
        return Source(operand.kind, place, bool(negative), select="" if wide else f"WORD_{int(high)}")


class Modifiers:
    """The words after an instruction's operands."""

    def __init__(self, words: Iterable[str]):
        self.clamp, self.scale = False, 1.0
        self.lists: dict[str, list[bool]] = {}
        self.selects: dict[str, str] = {}
        for word in words:
            if word == "clamp":
                self.clamp = True
            elif word in _SCALES:
                self.scale = _SCALES[word]
            elif found := _LIST.fullmatch(word):
                self.lists[found[1]] = [bit == "1" for bit in found[2].split(",")]
            elif found := _SELECT.fullmatch(word):
                name, value = (part for part in found.groups() if part)
                self.selects[name] = "" if value == "DWORD" else value
            else:
                raise OperandError(f"the modifier '{word}' is not one that the software device knows here")

    def bit(self, name: str, n: int, default: int = 0) -> bool:
        """Entry `n` of a list such as `op_sel:[0,1]`."""
        bits = self.lists.get(name)
        return bits[n] if bits is not None and n < len(bits) else bool(default)

    def select(self, n: int, type_name: str, family: str) -> str:
        """Which part of source `n` is taken."""
        if family == MIXED_FAMILY:
            return f"WORD_{int(self.bit('op_sel', n))}" if type_name == "f16" else ""
        if self.bit("op_sel", n):
            return "WORD_1"
        return self.selects.get(f"src{n}_sel", "")

    def placement(self, sources: int, results: tuple[str, ...], packed: bool) -> tuple[str, str]:
        """Which part of the result's register is written, and what becomes of the rest."""
        if not packed and self.bit("op_sel", sources):
            return "WORD_1", "UNUSED_PRESERVE"
        select = self.selects.get("dst_sel", "")
        return select, self.selects.get("dst_unused", "UNUSED_PAD") if select else ""
