"""Which operation of the last IR, and which line of the user's, each instruction came from.

LLVM carries the place of an operation through to the assembly. So for this the last IR is compiled once more, with the
number of an operation for its line, and every instruction must be the same as in the compilation that runs. LLVM is
asked to say where an instruction has no place, which it otherwise leaves unsaid.

`inferred` is True where LLVM does not say it: for what it put in by itself or made of several operations at once, by
the rules of `codegen.lines` and `codegen.merged` (and among the operations with the instruction's line, if any); and
for waits (`s_waitcnt`, `s_nop`), which have the operation that waits, unless that asks for a wait itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from flylab.codegen import amdgpu, llvm
from flylab.codegen.isa import Instruction, Isa, IsaKernel
from flylab.codegen.lines import ENDS_BLOCK, attributed
from flylab.codegen.merged import WAITS, of_accesses
from flylab.errors import CompileError
from flylab.passes.printing import text_with_lines
from flylab.passes.recording import lines_of
from flylab.passes.rewriter import operations, source_line
from flylab.places import SourceLine

IR = "<ir>"
_ASKS_FOR_WAITS = re.compile(r"waitcnt|s\.nop|fence|barrier|inline_asm|atomic|\bvolatile\b")
_MEMORY = {"load|_read": "load", "store|_write": "store"}
_SCOPES = "builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly})"


@dataclass(frozen=True)
class Origin:
    """Where an instruction came from.

    `line` is the user's line that the instruction's `.loc` names; `operation` the line in the text of the last stage
    before LLVM, counted from 1; `inferred` is True where LLVM did not say it.
    """

    line: SourceLine | None
    operation: int
    inferred: bool


@dataclass(frozen=True)
class _Operation:
    """An operation of the last IR: its line in the text, the text, and its place in the source."""

    line: int
    text: str
    place: tuple[str, int] | None


def origins(module: Any, isa: Isa, opt_level: int) -> dict[str, tuple[Origin, ...]]:
    """The origin of each instruction of each kernel of `isa`, which was compiled from this module in LLVM's dialect.

    Changes the module (in the entered MLIR context). Raises `CompileError` where it gives other instructions.
    """
    from mlir.passmanager import PassManager

    numbered = _number(module)
    PassManager.parse(_SCOPES).run(module.operation)
    code = amdgpu.optimise(llvm.translate(module), isa.target, opt_level)
    again = Isa.parse(code.with_unknown_places)
    return {name: _of_kernel(kernel, again.kernels.get(name), numbered) for name, kernel in isa.kernels.items()}


def _number(module: Any) -> dict[int, _Operation]:
    """Give each operation its number for a place; the operations by their numbers."""
    from mlir import ir

    llvm.place_arguments(module)
    places: dict[int, tuple[str, int] | None] = {}
    jumps: dict[Any, Any] = {}
    for number, op in enumerate(operations(module.operation), 1):
        old, place = op.location, source_line(op.location)
        places[number] = (place.file, place.line) if place else None
        op.location = ir.Location.file(IR, number, 1)
        if op.successors:
            jumps.setdefault(str(old), op.location)
    for block in (block for function in module.body.operations for region in function.regions for block in region):
        for argument in block.arguments:
            argument.set_location(jumps.get(str(argument.location), ir.Location.unknown()))
    text, lines = text_with_lines(module, IR)
    found: dict[int, _Operation] = {}
    for line, (words, known) in enumerate(zip(lines_of(text), lines, strict=True), 1):
        if known is not None:
            found.setdefault(known, _Operation(line, words, places[known]))
    return found


def _of_kernel(kernel: IsaKernel, again: IsaKernel | None, numbered: dict[int, _Operation]) -> tuple[Origin, ...]:
    """The origins of a kernel's instructions, from the same ones whose places are numbers."""
    if again is None or [str(i) for i in again.instructions] != [str(i) for i in kernel.instructions]:
        raise CompileError(f"kernel '{kernel.name}' gives other instructions when it is compiled again",
                           hint="this is a fault of flylab: please report the kernel")
    known = [i.source and numbered.get(i.source[1]) for i in again.instructions]
    starts = _begin_blocks(kernel)
    by_rule = attributed(known, starts)
    for number, found_there in of_accesses(known, starts, [str(i) for i in kernel.instructions], kernel.target):
        by_rule[number] = found_there
    found = []
    for instruction, operation, default in zip(kernel.instructions, known, by_rule, strict=True):
        chosen = operation or _near(instruction, default, numbered)
        if chosen is None:
            raise CompileError(f"no instruction of kernel '{kernel.name}' says which operation it came from",
                               hint="this is a fault of flylab: please report the kernel")
        found.append(Origin(_line(instruction), chosen.line, operation is None or _is_own_wait(instruction, chosen)))
    return tuple(found)


def _begin_blocks(kernel: IsaKernel) -> list[bool]:
    """Which instructions begin a block: labels stand before them, or what ends one."""
    labels = set(kernel.labels.values())
    before = ["s_branch", *(i.mnemonic for i in kernel.instructions)]
    return [i.index in labels or last.startswith(ENDS_BLOCK)
            for i, last in zip(kernel.instructions, before, strict=False)]


def _near(instruction: Instruction, by_rule: _Operation | None, numbered: dict[int, _Operation]) -> _Operation | None:
    """The operation for an instruction without one: that of the rule, or the one with the instruction's line near it.

    Of several it is one that does the same to memory.
    """
    place = instruction.source and instruction.source[:2]
    same = [each for each in numbered.values() if each.place == place]
    if by_rule is None or not same:
        return by_rule
    does = next((word for names, word in _MEMORY.items() if re.search(names, instruction.mnemonic)), "")
    return min(same, key=lambda each: (does not in each.text, abs(each.line - by_rule.line)))


def _is_own_wait(instruction: Instruction, operation: _Operation) -> bool:
    return instruction.mnemonic in WAITS and not _ASKS_FOR_WAITS.search(operation.text)


def _line(instruction: Instruction) -> SourceLine | None:
    if instruction.source is None:
        return None
    file, line, column = instruction.source
    return SourceLine.of(file, line, column - 1 if column else None)
