"""From MLIR's LLVM dialect to LLVM IR text."""

from __future__ import annotations

import os
import re
from typing import Any

from flylab.codegen.assembly.strings import escaped, unescaped
from flylab.errors import CompileError
from flylab.passes.recording import lines_of
from flylab.passes.rewriter import operations, source_line
from flylab.places import SourceLine


def translate(module: Any) -> str:
    """The LLVM IR of a module in which every operation is of the LLVM or ROCDL dialect.

    Raises `CompileError` naming what is left of another dialect: translating that would end the process.
    """
    from mlir.dialects import llvm

    for op in operations(module.operation):
        if not op.name.startswith(("llvm.", "rocdl.")):
            raise CompileError(
                f"{op.name} was not lowered to LLVM: {lines_of(str(op))[0]}",
                hint="this is a fault of flylab's passes: please report the kernel",
            )
    place_arguments(module)
    return _with_names(str(llvm.translate_module_to_llvmir(module.operation)), _names(module))


def _names(module: Any) -> dict[str, list[str]]:
    """Each kernel's symbol and the names of its arguments, which are the user's parameters."""
    found = {}
    for function in module.body.operations:
        if "rocdl.kernel" in function.attributes:
            places = [argument.location for argument in function.regions[0].blocks[0].arguments]
            found[function.attributes["sym_name"].value] = [p.name_str if p.is_a_name() else "" for p in places]
    return found


def _with_names(text: str, names: dict[str, list[str]]) -> str:
    """LLVM IR that tells the names of its kernels' arguments, which the metadata of the code object then has.

    >>> text = "define amdgpu_kernel void @k(ptr %0, i32 %1) #0 {\\n}\\n!3 = !{}\\n"
    >>> print(*_with_names(text, {"k": ["A", "n"]}).splitlines(), sep="\\n")
    define amdgpu_kernel void @k(ptr %0, i32 %1) #0 !kernel_arg_name !4 {
    }
    !3 = !{}
    !4 = !{!"A", !"n"}
    """
    free = 1 + max(map(int, _DEFINED.findall(text)), default=-1)
    added = []

    def named(found: re.Match[str]) -> str:
        arguments = names.get(unescaped(found[2]))
        if not arguments:
            return found[0]
        added.append(", ".join(f'!"{escaped(name)}"' for name in arguments))
        return f"{found[1]} !kernel_arg_name !{free + len(added) - 1} {{"

    text = _KERNEL.sub(named, text)
    return "\n".join([text.rstrip("\n"), *(f"!{free + n} = !{{{words}}}" for n, words in enumerate(added))]) + "\n"


def place_arguments(module: Any) -> None:
    """Give the arguments of blocks the places of operations, which name the file if it is not the function's own.

    MLIR takes the file and drops it: a line of a helper's file would become one of the kernel's.
    """
    from mlir import ir

    for function in module.body.operations:
        blocks = list(function.regions[0]) if function.regions else []
        if not any(block.arguments for block in blocks[1:]):
            continue
        known: dict[SourceLine | None, Any] = {None: ir.Location.unknown(module.context)}
        for block in blocks:  # what jumps to a block has the place of what the block was made of
            jump = block.operations[len(block.operations) - 1].location
            known.setdefault(source_line(jump), jump)
        for argument in (argument for block in blocks[1:] for argument in block.arguments):
            argument.set_location(known.get(source_line(argument.location), known[None]))


_DEFINED = re.compile(r"^!(\d+) = ", re.M)
_KERNEL = re.compile(r'^(define amdgpu_kernel void @"?((?<=")[^"]+|[\w.$-]+).*) \{$', re.M)
_PLACE = re.compile(r"^(!\d+) = !DILocation\(line: (\d+)(?:, column: (\d+))?,.* scope: (!\d+)", re.M)
_SCOPE = re.compile(r"^(!\d+) = (?:distinct )?!DI(?:Subprogram|LexicalBlockFile)\(.*\bfile: (!\d+)", re.M)
_FILE = re.compile(r'^(!\d+) = !DIFile\(filename: "(.*)", directory: "(.*)"', re.M)
_USE = re.compile(r",? !dbg (!\d+)")
_NAMES = re.compile(r" !kernel_arg_name !\d+")


def places_of(text: str) -> dict[str, tuple[str, int, int]]:
    """File, line and column of the places in the debug metadata of LLVM IR, by their names there (`!12`)."""
    files = {name: unescaped(os.path.join(folder, base)) for name, base, folder in _FILE.findall(text)}
    scopes = {scope: files[name] for scope, name in _SCOPE.findall(text) if name in files}
    return {name: (scopes[scope], int(line), int(column or 0))
            for name, line, column, scope in _PLACE.findall(text) if scope in scopes}


def readable(text: str, file: str) -> tuple[str, tuple[int | None, ...]]:
    """LLVM IR without its debug metadata, and for each line of it the line in the Python file `file`.

    The names of arguments, which are metadata too, are left out with it.
    """
    places = {name: line for name, (where, line, _) in places_of(text).items() if where == file}
    body = lines_of(text.split("\n!llvm.dbg.cu")[0].split("\n!llvm.module.flags")[0].rstrip())
    lines = []
    for line in body:
        use = _USE.search(line)
        lines.append(places.get(use[1]) if use else None)
    return _NAMES.sub("", "\n".join(_USE.sub("", line) for line in body)), tuple(lines)
