"""From the instructions of a kernel to records: which handler each needs, and what its operand slots hold."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial

from flylab.codegen.assembly.encoding import base_name, encoding_of, is_inline
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.decoding.chips import chips_with, lacking
from flylab.emulator.decoding.encodings import HAS_OP_SEL, SIGNED_BITS, check_form
from flylab.emulator.decoding.gpr_index import index_states, is_indexed
from flylab.emulator.decoding.operands import (
    CONSTANT,
    OFF,
    SCALAR,
    VECTOR,
    Operand,
    OperandError,
    bounded,
    constant_bits,
    operands_of,
)
from flylab.emulator.decoding.refused import REFUSED
from flylab.emulator.decoding.repeats import Repeats
from flylab.emulator.decoding.suggestions import suggestion
from flylab.emulator.decoding.table import MIXED_FAMILY, PACKED_FAMILY, SCALAR_FAMILY, TYPES, Row
from flylab.emulator.handlers import compute
from flylab.emulator.handlers.compute import Form, Source
from flylab.emulator.handlers.lanes import is_control, lanes_of, sources_of
from flylab.emulator.linking import Code
from flylab.emulator.numbers.float_mode import Mode
from flylab.emulator.state import APERTURES, RECORD_BYTES, ROW_BYTES, SLOTS, WAVE_SIZE
from flylab.errors import UnknownInstruction
from flylab.places import SourceLine

_SCALES = {"mul:2": 2.0, "mul:4": 4.0, "div:2": 0.5}
_LIST = re.compile(r"(op_sel|op_sel_hi|neg_lo|neg_hi):\[([01](?:,[01]){0,3})\]")
_SELECT = re.compile(r"(?:(dst_sel|src0_sel|src1_sel):(BYTE_[0-3]|WORD_[01]|DWORD)|"
                     r"(dst_unused):(UNUSED_(?:PAD|SEXT|PRESERVE)))")
_WORDS = {SCALAR: "a scalar register", VECTOR: "a vector register", CONSTANT: "a constant", OFF: "'off'"}
# What an encoding can name of each file.
_VECTOR_NUMBERS = 256
# The largest alignment an access of private memory can want of the host.
PRIVATE_ALIGNMENT = 16


class Slots(list[int]):
    """What a record's operand slots hold, 32 bits each."""

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

    `registers` are the slots with the place of a register, and the operand of the text that each comes from.
    """

    key: str
    write: Callable[[str], str]
    slots: Slots = field(default_factory=Slots)
    indexed: bool = False
    registers: Sequence[tuple[int, int]] = ()

    @classmethod
    def of(cls, form: Form, slots: Slots) -> Coded:
        """An instruction of a row of the table."""
        return cls(form.key, partial(compute.write, form), slots, form.index_limit >= 0)

    def slot(self, value: int) -> int:
        """Puts a word in the next slot; its number."""
        return self.slots.put(value)

    def record(self, handler: int) -> bytes:
        """The record's bytes."""
        return struct.pack(f"<Q{len(self.slots)}I", handler, *self.slots).ljust(RECORD_BYTES, b"\0")


class Registers:
    """The register files of a kernel: how many rows of vector registers it has, and where operands lie in memory.

    `private_bytes` is what each lane has of private memory, `private_stride` how far it is from lane to lane.
    """

    def __init__(self, kernel: IsaKernel):
        descriptor = kernel.descriptor
        total = descriptor.get("next_free_vgpr", kernel.vector_registers)
        granule = kernel.target.vgpr_granule
        self.rows = max(-(-total // granule) * granule, granule)
        self.accumulators = descriptor.get("accum_offset", self.rows)
        self.private_bytes = kernel.scratch_bytes
        self.private_stride = -(-self.private_bytes // PRIVATE_ALIGNMENT) * PRIVATE_ALIGNMENT

    @property
    def end_of_vectors(self) -> int:
        """The byte offset after the last of the registers v0, v1 ..."""
        return ROW_BYTES * min(self.accumulators, self.rows)

    @property
    def wave_bytes(self) -> int:
        """The memory of a wave: the rows of its vector registers, then the private memory of its lanes."""
        return self.rows * ROW_BYTES + WAVE_SIZE * self.private_stride

    def offset(self, operand: Operand, registers: int, *files: str, aligned: bool = True) -> int:
        """The byte offset in its file of a register without source modifiers.

        `registers` is how many the instruction takes there, `files` whose they may be (SCALAR, VECTOR). Several
        vector registers begin at an even one, or with `aligned` false at any. Source: LLVM 22's assembler.
        """
        if operand.negative or operand.absolute or operand.sign_extend:
            raise OperandError("it takes no source modifier there")
        return self.source(operand, registers, *files, aligned=aligned)

    def address(self, operand: Operand, registers: int) -> int:
        """As `offset`, for the vector registers of an address, which accumulators cannot be."""
        if operand.accumulator:
            raise OperandError(f"an address is in v0, v1 ... and not in a{operand.index}")
        return self.offset(operand, registers, VECTOR)

    def source(self, operand: Operand, registers: int, *files: str, aligned: bool = True) -> int:
        """As `offset`, where the register may have source modifiers."""
        if operand.kind not in files:
            raise OperandError(f"{_WORDS[operand.kind]} stands where it takes "
                               f"{' or '.join(_WORDS[name] for name in files)}")
        if operand.count != registers:
            raise OperandError(f"it names {operand.count} registers where the instruction takes {registers}")
        if operand.kind == SCALAR:
            step = min(1 << (registers - 1).bit_length(), 4)
            if operand.index % step:
                raise OperandError(f"{registers} scalar registers begin at a multiple of {step}, and not at "
                                   f"s{operand.index}")
            return 4 * operand.index
        first, end = (self.accumulators, self.rows) if operand.accumulator else (0, min(self.accumulators, self.rows))
        count, letter = min(end - first, _VECTOR_NUMBERS), "a" if operand.accumulator else "v"
        if operand.index + registers > count:
            raise OperandError(f"register {letter}{operand.index + registers - 1} is beyond the {max(count, 0)} of the "
                               "kernel's descriptor")
        if registers > 1 and operand.index % 2 and aligned:
            raise OperandError("vector registers side by side begin at an even one, and not at "
                               f"{letter}{operand.index}")
        return ROW_BYTES * (first + operand.index)

    def scalar(self, operand: Operand) -> int:
        """What a slot holds of a scalar register or constant of 32 bits: the register's offset, or the bits."""
        if operand.kind == CONSTANT:
            return constant_bits(operand, "i32")
        return self.offset(operand, 1, SCALAR, CONSTANT)


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
            check_form(name, instruction, table.get(name))
            if name in others:
                coded.append(others[name](decoder, instruction))
            elif name in table:
                coded.append(decoder.computing(table[name], instruction))
                if not decoder.index_states:
                    decoder.repeats.keep(instruction, coded[-1])
            else:
                raise OperandError(REFUSED.get(name, "these chips have no instruction of this name"))
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
        if words.control and sources[0].kind != VECTOR:
            raise OperandError("DPP moves the lanes of a vector register only")
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
                raise OperandError("the upper half of a constant is not defined for packed 32-bit floats")
            halves = not wide and type_name.startswith("f16")
            type_ = "i32" if isinstance(operand.value, int) else "half" if halves else "float"
            place = slots.put(constant_bits(operand, type_))
        else:
            first = self.registers.offset(operand, 2 if wide else 1, VECTOR, SCALAR, CONSTANT)
            place = slots.put(first + (ROW_BYTES if operand.kind == VECTOR else 4) * (wide and high))
        return Source(operand.kind, place, bool(negative), select="" if wide else f"WORD_{int(high)}")


class Modifiers:
    """The words after an instruction's operands; never changed once read, as many instructions share it."""

    def __init__(self, words: tuple[str, ...]):
        self.words = words
        self.clamp, self.scale = False, 1.0
        self.lists: dict[str, list[bool]] = {}
        self.selects: dict[str, str] = {}
        self.control, self.masks, self.zero_fill = "", {"row_mask": 15, "bank_mask": 15}, False
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
            elif not self._read_dpp(word):
                raise OperandError(f"the modifier '{word}' is not one that the software device knows here")

    @staticmethod
    @lru_cache(maxsize=4096)
    def of(words: tuple[str, ...]) -> Modifiers:
        """The modifiers that the words spell. Raises `OperandError` for a word that is none."""
        return Modifiers(words)

    def _read_dpp(self, word: str) -> bool:
        """Takes a word of DPP. The assembler writes `bound_ctrl:0` and `bound_ctrl:1` for the same encoding."""
        name, _, value = word.partition(":")
        if name in self.masks:
            self.masks[name] = bounded(value, 0, 15, f"the {name}")
        elif name == "bound_ctrl":
            self.zero_fill = bounded(value, 0, 1, "the bound_ctrl") in (0, 1)
        elif is_control(word) and not self.control:
            sources_of(word)
            self.control = word
        else:
            return False
        return True

    @cached_property
    def lanes(self) -> int:
        """The lanes that DPP's masks let through."""
        return lanes_of(self.masks["row_mask"], self.masks["bank_mask"])

    def check(self, row: Row, instruction: Instruction, own_words: bool = True) -> None:
        """Raises `OperandError` for words that the instruction's encoding has no room for.

        Words that are not the text's own may pick parts of registers in any encoding.
        """
        if not self.words and not instruction.mnemonic.endswith("_dpp"):
            return
        encoding = encoding_of(instruction.mnemonic, instruction.operands, instruction.modifiers)
        dpp, packed = encoding == "_dpp", row.family in (PACKED_FAMILY, MIXED_FAMILY)
        if dpp and not self.control:
            raise OperandError("it names no lanes, as row_shr:1 would")
        if dpp and (self.clamp or self.scale != 1.0 or self.lists):
            raise OperandError("its DPP encoding neither clamps nor scales, and picks no halves of registers")
        if not dpp and (self.control or self.zero_fill or self.lanes != lanes_of(15, 15)):
            raise OperandError("only an instruction with the suffix _dpp moves lanes")
        if dpp and "newbcast" not in self.control and any(
                TYPES[t].registers == 2 and t != "mask" for t in (*row.named_results, *row.named_sources)):
            raise OperandError("with 64-bit operands DPP has row_newbcast only")
        if self.selects and own_words and encoding != "_sdwa":
            raise OperandError("only an instruction with the suffix _sdwa picks parts of registers")
        if packed and self.scale != 1.0:
            raise OperandError("its encoding does not scale results")
        picks = base_name(instruction.mnemonic) in HAS_OP_SEL or not own_words
        lists = {"op_sel", "op_sel_hi"} if row.family == MIXED_FAMILY else {
            "op_sel", "op_sel_hi", "neg_lo", "neg_hi"} if packed else {"op_sel"} if picks else set()
        if self.lists.keys() - lists:
            raise OperandError(f"it takes no {' nor '.join(sorted(self.lists.keys() - lists))}")
        if not row.clamps_floats and (self.scale != 1.0 or self.clamp and not row.clamped):
            raise OperandError("its result is no float that could be scaled or clamped")

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
        return select, self.selects.get("dst_unused", "UNUSED_PRESERVE") if select else ""
