"""The object of a kernel that has assembly in it: llvmlite's LLVM has no assembler for AMD's chips, a clang has.

LLVM would end the process; so such an object is made of the assembly text by another program.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from flylab.codegen.assembly.strings import files_of
from flylab.codegen.tools import find_tool, run_tool
from flylab.errors import CompileError, ToolchainError
from flylab.passes.recording import lines_of
from flylab.places import SourceLine
from flylab.targets import Target

TRIPLE = "amdgcn-amd-amdhsa"
ASM_CALL = re.compile(r"\bcall\b[^\n]*\basm\b[^\n]*\"")
_ERROR = re.compile(r"kernel\.s:(\d+):\d+: error: (.*)")


def has_assembly(llvm_ir: str) -> bool:
    """Whether LLVM IR has assembly in it.

    >>> has_assembly('%2 = call i32 asm "v_not_b32 $0, $1", "=v,v"(i32 %1)')
    True
    """
    return " asm " in llvm_ir and ASM_CALL.search(llvm_ir) is not None


def assemble_text(text: str, target: Target) -> bytes:
    """The relocatable object of assembly text, by a clang that knows AMD's chips.

    Raises `CompileError` with the user's line for text that is no assembly of the chip, `ToolchainError` where there is
    no clang, or one that does not know the chip.
    """
    command = find_tool(["clang", "clang-22", "clang-21", "clang-20"], "assembler")
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "kernel.s", Path(folder) / "kernel.o"
        source.write_text(text, encoding="utf-8")
        done = run_tool([*command, "-target", TRIPLE, f"-mcpu={target.arch}", "-c", str(source), "-o", str(made)])
        if not done.returncode:
            return made.read_bytes()
    found = _ERROR.search(done.stderr)
    if found is None:
        raise ToolchainError(f"{' '.join(command)} failed: {done.stderr.strip()}",
                             hint=f"check that it is a clang of LLVM 20 or later, with AMD's chips ({target.arch})")
    line = lines_of(text)[int(found[1]) - 1].strip()
    raise CompileError(f"the assembler refuses '{line}': {found[2]}", where=user_line(text, int(found[1])),
                       hint=f"write it as {target.arch}'s ISA document does")


def user_line(text: str, number: int) -> SourceLine | None:
    """The user's line that a line of assembly text (counted from 1) came from, as its `.loc` directives say."""
    files: dict[int, str] = {}
    place: tuple[int, int] | None = None
    for line in lines_of(text)[:number]:
        words = line.split()
        if words[:1] == [".file"]:
            files.update(files_of(line))
        elif words[:1] == [".loc"]:
            place = int(words[1]), int(words[2])
    return SourceLine.of(files[place[0]], place[1]) if place and place[1] and place[0] in files else None
