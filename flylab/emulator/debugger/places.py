"""Places in a kernel by what users call them: a byte of the code, a line, a label, the number of an instruction."""

from __future__ import annotations

import difflib

from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.arguments import shown, whole
from flylab.emulator.debugger.stepping import ALWAYS
from flylab.emulator.decoding.decode import source_line
from flylab.emulator.instructions.control import CONDITIONS
from flylab.emulator.linking import END_OF_FUNCTION
from flylab.errors import DebugError
from flylab.places import SourceLine

# Lines that an error about one without code names, on each side.
NEAR = 2


def line_of(kernel: IsaKernel, instruction: Instruction) -> SourceLine:
    """The user's line of an instruction; of assembly without a line table, the line of the assembly."""
    line = source_line(kernel, instruction)
    return line or SourceLine("assembly", instruction.isa_line, instruction.text, function=kernel.name)


class Places:
    """The places of one kernel; `find` takes them to the instructions they stand for."""

    def __init__(self, kernel: IsaKernel):
        self.kernel = kernel
        self.real = [i for i in kernel.instructions if i.mnemonic != END_OF_FUNCTION]
        self._targets = {kernel.labels[i.operands[0]] for i in self.real if i.mnemonic in CONDITIONS}
        self.has_lines = any(i.source for i in self.real)

    def find(self, *, pc: int | None = None, line: int | tuple[str, int] | None = None,
             at: str | int | None = None) -> bytes:
        """A byte for each instruction, set for those that one of these names.

        `pc` is a byte of the kernel's code, `at` a label, how instructions begin, or the number of one. Raises
        `DebugError` for a place without code, and names those near it that have some.
        """
        if sum(one is not None for one in (pc, line, at)) != 1:
            raise DebugError("one place is needed: pc=, line=, or a label or number of an instruction",
                             hint="such as run_to(line=12), run_to('.LBB0_2'), run_to(17) or run_to(pc=0x44)")
        if pc is not None:
            numbers = self._of_byte(whole("pc", pc))
        elif line is not None:
            numbers = self._of_line(line)
        else:
            assert at is not None
            numbers = self._of_text(at) if isinstance(at, str) else self._of_number(whole("the instruction", at))
        breaks = bytearray(len(self.kernel.instructions))
        for number in numbers:
            breaks[number] = ALWAYS
        return bytes(breaks)

    def _of_byte(self, pc: int) -> list[int]:
        found = [i.index for i in self.real if i.address == pc]
        if not found:
            near = sorted(self.real, key=lambda i: abs(i.address - pc))[0]
            raise DebugError(f"no instruction of kernel '{self.kernel.name}' begins at byte {pc:#x}",
                             hint=f"the nearest is at {near.address:#x}: {near.text}")
        return found[:1]  # further ones are those of functions that it calls

    def _of_number(self, number: int) -> list[int]:
        if not 0 <= number < len(self.kernel.instructions) or self.real[-1].index < number:
            raise DebugError(f"kernel '{self.kernel.name}' has no instruction {number}",
                             hint=f"they are numbered 0 to {self.real[-1].index}")
        return [number]

    def _of_text(self, text: str) -> list[int]:
        """The instruction behind a label, or all whose text begins so."""
        if text in self.kernel.labels:
            return [self.kernel.labels[text]]
        found = [i.index for i in self.real if text.strip() and i.text.strip().startswith(text.strip())]
        if not found:
            known = dict.fromkeys([*sorted(self.kernel.labels), *(i.mnemonic for i in self.real)])
            near = difflib.get_close_matches(text, known, n=3, cutoff=0.4) or list(known)[:8]
            raise DebugError(f"kernel '{self.kernel.name}' has no label {shown(text)}, and none of its "
                             "instructions begins so",
                             hint=f"it has {', '.join(near)}; listing() has all instructions")
        return found

    def _of_line(self, line: int | tuple[str, int]) -> list[int]:
        """The instructions at which a line is entered: from that of another line, or by a jump."""
        named, number = line if isinstance(line, tuple) and len(line) == 2 else (None, line)
        number = whole("line", number)
        keys = [self._key(instruction) for instruction in self.real]
        files = dict.fromkeys(name for name, _ in keys)
        file = next((file for file in files if named in (file, SourceLine(file, 0).name)), None)
        if file is None and named is not None:
            raise DebugError(f"kernel '{self.kernel.name}' has no line of the file {shown(named)}",
                             hint=f"its lines are of {', '.join(SourceLine(file, 0).name for file in files)}")
        wanted = {key for key in keys if key[1] == number and file in (None, key[0])}
        if len(wanted) > 1:
            names = sorted(SourceLine(name, number).name for name, _ in wanted)
            names = names if len(set(names)) == len(names) else sorted(name for name, _ in wanted)
            raise DebugError(f"line {number} may be that of {' or '.join(names)}",
                             hint=f"name the file or cell: line=({names[0]!r}, {number})")
        if not wanted:
            raise self._no_code(number, sorted({n for name, n in keys if n > 0 and file in (None, name)}))
        return [i.index for at, i in enumerate(self.real) if keys[at] in wanted
                and (not at or keys[at - 1] != keys[at] or i.index in self._targets)]

    def _key(self, instruction: Instruction) -> tuple[str, int]:
        """File and line; of assembly without a line table, those of the assembly."""
        if not self.has_lines:
            return "assembly", instruction.isa_line
        return instruction.source[:2] if instruction.source else ("assembly", 0)

    def _no_code(self, number: int, lines: list[int]) -> DebugError:
        near = [*[n for n in lines if n < number][-NEAR:], *[n for n in lines if n > number][:NEAR]]
        return DebugError(f"line {number} has no code in kernel '{self.kernel.name}'",
                          hint=f"the nearest lines that have are {', '.join(map(str, near))}")
