"""Addresses: where code and data of a program lie, the symbols of instructions put in, and what each kernel can reach.

Code has addresses of its own, at which no memory is: `CODE_BASE` and then a byte for each byte of the machine code, so
that a program's arithmetic on addresses is that of the chip, and pointers to functions are the same for all workgroups.
Data is seen from `windows.DATA` on, one section after the other.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from flylab.codegen.assembly.encoding import integer
from flylab.codegen.assembly.expressions import BadExpression, Node, Unknown, evaluate, is_relative, parse
from flylab.codegen.assembly.listing import Function
from flylab.codegen.assembly.sections import Relocation
from flylab.codegen.assembly.symbols import LDS, Place
from flylab.codegen.isa import Instruction, Isa, IsaKernel
from flylab.emulator.arrays import Buffer
from flylab.emulator.state import Memory
from flylab.emulator.windows import DATA
from flylab.errors import CompileError
from flylab.locks import cached_property

# Beyond the addresses that a process can have memory at, and within the 48 bits that pointers are kept in.
CODE_BASE = 1 << 47
CODE_ALIGNMENT = 1 << 12
POINTER_BYTES = 8
# Machine code comes in words of so many bytes.
STEP = 4
END_OF_FUNCTION = "<end of function>"
JUMPS = ("s_branch", "s_cbranch_", "s_call_b64")
RELOCATIONS = ("", "rel32", "gotpcrel32", "gotpcrel", "abs32", "rel64", "abs64")
# LLVM may read a small constant in a wider piece, up to the next multiple of this.
WORD = 4


@dataclass(frozen=True)
class Code:
    """The code that a kernel can reach as one listing: functions one after the other, the kernel's own first.

    After each stands an instruction `END_OF_FUNCTION`, which says so when it is met. `addresses` has the address of
    each instruction, `places` the number of the instruction that an address leads to.
    """

    kernel: IsaKernel
    addresses: tuple[int, ...] = ()
    places: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, kernel: IsaKernel, functions: Iterable[tuple[Function, int]]) -> Code:
        """The code of functions with their addresses. A jump by a number of words becomes one to a label."""
        instructions: list[Instruction] = []
        labels: dict[str, int] = {}
        addresses: list[int] = []
        for function, start in functions:
            first = len(addresses)
            end = Instruction(function.labels[function.name], function.size, END_OF_FUNCTION, END_OF_FUNCTION, (), (),
                              function.instructions[-1].isa_line, None)
            for instruction in (*function.instructions, end):
                index = len(instructions)
                instructions.append(instruction if instruction.index == index else replace(instruction, index=index))
                addresses.append(start + instruction.address)
            labels |= {label: first + index for label, index in function.labels.items()}
        places = {address: number for number, address in enumerate(addresses)
                  if instructions[number].mnemonic != END_OF_FUNCTION}
        for number, instruction in enumerate(instructions):
            jumps = instruction.mnemonic.startswith(JUMPS) and instruction.operands
            words = integer(instruction.operands[-1]) if jumps else None
            if words is not None and not -(1 << 15) <= words < 1 << 16:
                raise CompileError(f"ISA line {instruction.isa_line}: '{instruction.text[:80]}' jumps by more words "
                                   "than 16 bits hold", hint="a jump takes a label, or a distance in words")
            place = places.get(addresses[number] + STEP * (1 + _signed16(words))) if words is not None else None
            if place is not None:
                label = f"instruction {place}"
                labels[label] = place
                instructions[number] = replace(instruction, operands=(*instruction.operands[:-1], label))
        return cls(replace(kernel, instructions=tuple(instructions), labels=labels), tuple(addresses), places)

    @cached_property
    def span(self) -> tuple[int, int]:
        """The lowest address of an instruction, and how many bytes there are up to the highest."""
        return min(self.addresses), max(self.addresses) - min(self.addresses)

    @cached_property
    def table(self) -> bytes:
        """For each `STEP` bytes of the span the number of the instruction there, or -1: 32 bits each."""
        first, size = self.span
        table = array("i", [-1]) * (size // STEP + 1)
        for address, number in self.places.items():
            table[(address - first) // STEP] = number
        return table.tobytes()


class Image:
    """A program in memory: its data, which lives as long as the program, and its code's addresses."""

    def __init__(self, isa: Isa):
        self.isa = isa
        self.starts: dict[str, int] = {}
        at = CODE_BASE
        for name, section in isa.sections.items():
            if section.code:
                self.starts[name] = at
                at += -(-(section.size + 1) // CODE_ALIGNMENT) * CODE_ALIGNMENT
        self.data = {name: section for name, section in isa.sections.items() if section.kept and section.size}
        self.memory = {name: Memory(section.size, bytes(section.data), section.alignment)
                       for name, section in self.data.items()}
        self.seen = self._data_addresses()
        self.table = self._pointer_table()
        for name, section in self.data.items():
            for relocation in section.relocations:
                self._relocate(name, relocation)

    def _data_addresses(self) -> dict[str, int]:
        """The address of each section of data, as code sees it; behind them all, under "", that of the pointers."""
        seen, at = {}, DATA
        for name, section in self.data.items():
            seen[name] = at = -(-at // section.alignment) * section.alignment
            at += -(-(section.size + WORD) // CODE_ALIGNMENT) * CODE_ALIGNMENT
        return seen | {"": at}

    def _pointer_table(self) -> dict[str, int]:
        """The address of each symbol's entry in the table of pointers, which `@gotpcrel32` leads to."""
        names = {node.text for function in self.isa.functions.values() for instruction in function.instructions
                 for node in _symbols(instruction) if node.relocation.startswith("gotpcrel")}
        known = sorted(name for name in names if self._address(name) is not None)
        self.pointers = b"".join((self._address(name) or 0).to_bytes(POINTER_BYTES, "little") for name in known)
        self.pointer_memory = Memory(len(self.pointers), self.pointers)
        return {name: self.seen[""] + POINTER_BYTES * n for n, name in enumerate(known)}

    def take_data(self, other: Image) -> None:
        """Makes the data what it is in another image of the same program."""
        for name, section in self.data.items():
            ctypes.memmove(self.memory[name].address, other.memory[name].address, section.size)

    def buffers(self) -> list[Buffer]:
        """The data that kernels may touch, an entry for each object that has a name."""
        found = [Buffer("the table of pointers", self.pointer_memory.address, len(self.pointers), False,
                        self.seen[""])]
        for name, section in self.data.items():
            for start, end in self._objects(name):
                found.append(Buffer(section.objects.get(start, name), self.memory[name].address + start, end - start,
                                    section.writable, self.seen[name] + start))
        return found

    def code(self, kernel: IsaKernel) -> Code:
        """What a kernel can reach, with the addresses of symbols put into its operands.

        Raises `CompileError` for a symbol that the text does not define.
        """
        lds = kernel.lds_bytes - self.isa.lds_symbol_bytes
        reached = self._reached(self.isa.functions[kernel.name])
        linked = []
        for function in reached:
            start = self.starts[function.section] + function.offset
            body = tuple(self._linked(instruction, start, lds) if instruction.symbolic else instruction
                         for instruction in function.instructions)
            linked.append((replace(function, instructions=body), start))
        return Code.of(kernel, linked)

    def _reached(self, kernel: Function) -> list[Function]:
        """A kernel's own function, and those that it names, that data it names points to, and so on."""
        functions, objects = {kernel.name: kernel}, set()
        waiting = _names(kernel)
        while waiting:
            place = self.isa.symbols.places.get(waiting.pop())
            if place is None:
                continue
            if place.section in self.data:
                first, end = max(one for one in self._objects(place.section) if one[0] <= place.offset)
                if (place.section, first) not in objects:
                    objects.add((place.section, first))
                    waiting |= {symbol.text for relocation in self.data[place.section].relocations
                                if first <= relocation.offset < end for symbol in relocation.value.symbols()}
            for function in self.isa.functions.values():
                here = function.section == place.section and 0 <= place.offset - function.offset < function.size
                if here and function.name not in functions:
                    functions[function.name] = function
                    waiting |= _names(function)
        return list(functions.values())

    def _objects(self, section: str) -> list[tuple[int, int]]:
        """Where each object of a section of data begins and ends."""
        found = self.data[section]
        starts = sorted({0} | found.objects.keys())
        return list(zip(starts, [*starts[1:], -(-found.size // WORD) * WORD], strict=True))

    def _linked(self, instruction: Instruction, start: int, lds: int) -> Instruction:
        """An instruction whose symbols are numbers; a constant follows 4 bytes after its instruction's start."""
        operands = list(instruction.operands)
        for number in instruction.symbolic:
            try:
                value = self._value(parse(operands[number]), start + instruction.address + 4, lds)
            except Unknown as error:
                if "@" not in operands[number]:
                    continue  # what is no register or symbol is told by whoever decodes the operand
                raise CompileError(f"ISA line {instruction.isa_line}: {error}, and '{instruction.text[:80]}' needs it",
                                   hint="compile the kernel and what it uses as one module") from None
            except BadExpression as error:
                raise CompileError(f"ISA line {instruction.isa_line}: {error}") from None
            operands[number] = str(value if -16 <= value <= 64 else value & 0xFFFFFFFF)
        return replace(instruction, operands=tuple(operands))

    def _value(self, node: Node, here: int, lds: int = 0, data: bool = False) -> int:
        """The value of an expression with symbols that stands at the address `here`, in code or in data."""
        (relocation, *others) = {symbol.relocation for symbol in node.symbols()}
        if others:
            raise BadExpression(f"it holds two sorts of addresses, @{relocation} and @{others[0]}")
        if relocation.partition("@")[0] not in RELOCATIONS:
            raise BadExpression(f"the relocation @{relocation} is none that is known here")

        def address(name: str) -> int:
            if not relocation.startswith("gotpcrel"):
                return self.isa.symbols.address(name, lambda place: self._at(place, lds))
            if name not in self.table:
                raise Unknown(f"the symbol '{name}' is not defined in this assembly")
            return self.table[name]

        value = evaluate(node, address)
        if is_relative(node, lambda name: relocation != "" or not data and self.isa.symbols.is_place(name)):
            value -= here
        return value >> 32 if relocation.endswith("@hi") else value

    def _at(self, place: Place, lds: int = 0) -> int:
        if place.section == LDS:
            return lds + place.offset
        if place.section in self.starts:
            return self.starts[place.section] + place.offset
        if place.section in self.memory:
            return self.seen[place.section] + place.offset
        raise Unknown(f"section {place.section} is not in memory when a kernel runs")

    def _address(self, name: str) -> int | None:
        try:
            return self.isa.symbols.address(name, self._at)
        except Unknown:
            return None

    def _relocate(self, section: str, relocation: Relocation) -> None:
        at = self.seen[section] + relocation.offset
        try:
            value = self._value(relocation.value, at, data=True)
        except BadExpression as error:
            raise relocation.statement.error(str(error)) from None
        size = relocation.size
        here = self.memory[section].address + relocation.offset
        ctypes.memmove(here, (value & ((1 << (8 * size)) - 1)).to_bytes(size, "little"), size)


def _signed16(words: int) -> int:
    return (words & 0xFFFF ^ 0x8000) - 0x8000


def _names(function: Function) -> set[str]:
    """The symbols that a function's instructions hold, and the labels it jumps to that are not its own."""
    names = {node.text for instruction in function.instructions for node in _symbols(instruction)}
    return names | {operand for instruction in function.instructions if instruction.mnemonic.startswith(JUMPS)
                    for operand in instruction.operands if operand not in function.labels}


def _symbols(instruction: Instruction) -> list[Node]:
    return [node for number in instruction.symbolic for node in parse(instruction.operands[number]).symbols()]
