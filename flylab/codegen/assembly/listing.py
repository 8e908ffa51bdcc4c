"""Instructions and functions as data: what an assembly text's code is."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from flylab.codegen.assembly.encoding import size_of
from flylab.codegen.assembly.macros import Statement
from flylab.errors import CompileError


@dataclass(frozen=True, slots=True)
class Instruction:
    """One machine instruction; `address` is in bytes from the function's start, `isa_line` counts from 1 in the text.

    `operands` are the comma-separated ones, `modifiers` the words after them (`offset:16`, `clamp`, `vmcnt(0)`), both
    without expressions of numbers. `source` is (file, line, column) from the `.loc` in force, or None. `symbolic` are
    the numbers of the operands that hold a symbol's address. `barriers` are the barriers of the wave that stand before
    it, which are no instructions: the place that each comes from, or None.
    """

    index: int
    address: int
    text: str
    mnemonic: str
    operands: tuple[str, ...]
    modifiers: tuple[str, ...]
    isa_line: int
    source: tuple[str, int, int] | None
    symbolic: tuple[int, ...] = ()
    barriers: tuple[tuple[str, int, int] | None, ...] = ()

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Function:
    """A function's instructions, `offset` bytes into its section; `labels` maps a label to the index of one."""

    name: str
    section: str
    offset: int
    instructions: tuple[Instruction, ...]
    labels: dict[str, int] = field(repr=False)

    @property
    def size(self) -> int:
        """Bytes of code."""
        last = self.instructions[-1]
        return last.address + size_of(last.mnemonic, last.operands, last.modifiers)


LABEL, END, BYTES = "label", "end", "bytes"


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands between instructions: a label, the end of a function (of any, where it has no name), or bytes.

    `count` instructions of the section and `offset` bytes are before it.
    """

    kind: str
    count: int
    offset: int
    name: str
    statement: Statement


@dataclass
class Code:
    """The code of a section: its instructions with addresses from the section's start, and the marks between them."""

    section: str
    instructions: list[Instruction] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    def functions(self, names: set[str]) -> list[Function]:
        """The functions whose names these are.

        Raises `CompileError` for an instruction that is in none, and for bytes between the instructions of one.
        """
        found: list[Function] = []
        inner: list[Mark] = []
        done = 0
        for mark in [*self.marks, None]:
            begins = mark is not None and mark.kind == LABEL and mark.name in names
            ends = mark is not None and mark.kind == END and bool(inner) and mark.name in ("", inner[0].name)
            if mark is None or begins or ends:
                end = len(self.instructions) if mark is None else mark.count
                if inner:
                    found.append(self._function(inner, end))
                elif done < end:
                    raise self._stray(done, names)
                inner, done = [], end
            if mark and (begins or inner):
                inner.append(mark)
        return found

    def _stray(self, number: int, names: set[str]) -> CompileError:
        """The error for an instruction of no function: one whose label is not among `names`, or that has no label."""
        instruction = self.instructions[number]
        labels = [mark.name for mark in self.marks if mark.kind == LABEL and mark.count <= number]
        hint = "a kernel's code begins at its label"
        if labels:
            hint = f"the label '{labels[-1]}' before it needs an .amdhsa_kernel block, or .type {labels[-1]},@function"
            if lost := sorted(names - {mark.name for mark in self.marks}):
                hint += f"; there is no label '{lost[0]}'"
        return CompileError(f"ISA line {instruction.isa_line}: '{instruction.text[:80]}' belongs to no function",
                            hint=hint)

    def _function(self, marks: list[Mark], end: int) -> Function:
        """The function that the first of its marks begins, up to instruction `end`."""
        start = marks[0]
        for mark in marks:
            if mark.kind == BYTES and mark.count < end:
                raise mark.statement.error(f"the directive {mark.name} cannot be read here",
                                           hint="give the instructions themselves, as LLVM's own listing does")
        body = tuple(self.instructions[start.count:end])
        if start.count or start.offset:
            body = tuple(replace(i, index=index, address=i.address - start.offset) for index, i in enumerate(body))
        labels = {mark.name: mark.count - start.count for mark in marks if mark.kind == LABEL}
        return Function(start.name, self.section, start.offset, body, labels)


