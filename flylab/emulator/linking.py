"""Addresses: where code and data of a program lie, the symbols of instructions put in, and what each kernel can reach.

Code has addresses of its own, at which no memory is: `CODE_BASE` and then a byte for each byte of the machine code, so
that a program's arithmetic on addresses is that of the chip, and pointers to functions are the same for all workgroups.
Data lies in memory, and its addresses are this machine's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from flylab.codegen.expressions import BadExpression, Node, evaluate, is_relative, parse
from flylab.codegen.isa import Instruction, Isa, IsaKernel
from flylab.codegen.listing import Function
from flylab.codegen.sections import Section
from flylab.codegen.symbols import LDS, Place
from flylab.emulator.arguments import Buffer
from flylab.emulator.memory import Memory
from flylab.errors import CompileError

# Beyond the addresses that a process can have memory at, and within the 48 bits that pointers are kept in.
CODE_BASE = 1 << 47
CODE_ALIGNMENT = 1 << 12
POINTER_BYTES = 8
# LLVM may read a small constant in a wider piece, up to the next multiple of this.
WORD = 4


@dataclass(frozen=True)
class Code:
    """The code that a kernel can reach, in one numbering.

    `addresses` has each instruction's address, and `places` where an address leads: the number of an instruction.
    """

    kernel: IsaKernel
    addresses: tuple[int, ...]
    places: dict[int, int]

    @classmethod
    def of(cls, kernel: IsaKernel, functions: Iterable[tuple[Function, int]]) -> Code:
        """Functions with their addresses, the kernel's own first, as one kernel; each ends with a number left free.

        The free number is that of the record which says that code ran past its function's end.
        """
        instructions: list[Instruction] = []
        labels: dict[str, int] = {}
        addresses: list[int] = []
        places: dict[int, int] = {}
        for function, start in functions:
            first = len(addresses)
            for instruction in function.instructions:
                instructions.append(replace(instruction, index=first + instruction.index))
                addresses.append(start + instruction.address)
            addresses.append(start + function.size)
            labels |= {label: first + index for label, index in function.labels.items()}
            places |= {address: first + n for n, address in enumerate(addresses[first:-1])}
        return cls(replace(kernel, instructions=tuple(instructions), labels=labels), tuple(addresses), places)


class Image:
    """A program in memory: its data, which lives as long as the program, and its code's addresses."""

    def __init__(self, isa: Isa):
        self.isa = isa
        self.starts = self._section_starts()
        self.memory = {name: Memory(section.size, bytes(section.data)) for name, section in isa.sections.items()
                       if section.kept and section.size}
        self.table: dict[str, int] = {}
        """The number of each symbol in the table of pointers, which `@gotpcrel32` leads to."""

    def _section_starts(self) -> dict[str, int]:
        """The address of each section of code, one after the other."""
        starts, at = {}, CODE_BASE
        for name, section in self.isa.sections.items():
            if section.code:
                starts[name] = at
                at += -(-(section.size + 1) // CODE_ALIGNMENT) * CODE_ALIGNMENT
        return starts
