"""Text that is no assembly, told by how it looks, so that the error can say what it is and what to pass instead."""

from __future__ import annotations

import re
from typing import Any

from flylab.errors import CompileError
from flylab.shown import a_kind

# As much of a text as is looked at.
_START = 1 << 12
_NO_DESCRIPTOR = "it has no kernel descriptors: pass the text that the compiler prints (clang -S, llc)"
_DEVICE_ONLY = "compile for one chip alone: --cuda-device-only --offload-arch=gfx942 -S"
_NO_TEXT = re.compile("[\0\ud800-\udfff]")
_KINDS = (
    (r"\A\x7fELF", "an object file", _NO_DESCRIPTOR),
    (r"^[^;#\n]*:\s+file format elf|^Disassembly of section ", "a disassembly", _NO_DESCRIPTOR),
    (r"\A.{0,200}__CLANG_OFFLOAD_BUNDLE__", "a bundle of several texts", _DEVICE_ONLY),
    (r"^; ModuleID = |^source_filename = |^target (?:triple|datalayout) = |^define .*[{(]$", "LLVM IR",
     "compile it: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx942; of clang, -S without -emit-llvm"),
    (r"^--- \|$|\A---$|^machineFunctionInfo:", "LLVM's machine IR", "run the rest of llc's passes on it"),
    (r"\A\s*(?:#map.*\s+)*(?:builtin\.)?(?:gpu\.)?module\b[^\n]*\{$", "MLIR", "translate and compile it first"),
    (r"^[ \t]*#[ \t]*include\b", "source code", "compile it: clang -S"),
)


def check_is_assembly(text: Any) -> None:
    """Raises `CompileError` for what is no text, and for text that is of another kind than assembly.

    >>> check_is_assembly("; ModuleID = 'a'")
    Traceback (most recent call last):
    flylab.errors.CompileError: this is LLVM IR, and assembly text is needed
    hint: compile it: llc -mtriple=amdgcn-amd-amdhsa -mcpu=gfx942; of clang, -S without -emit-llvm
    """
    if not isinstance(text, str):
        raise CompileError(f"assembly is text, and {a_kind(text)} was given",
                           hint="pass what the compiler prints, as a str")
    if "\n" not in text.strip() and text.strip().endswith((".s", ".S", ".asm", ".amdgcn")):
        raise CompileError(f"this is a file's name, {text.strip()[:80]!r}, and assembly text is needed",
                           hint="pass pathlib.Path(name).read_text()")
    for pattern, what, hint in _KINDS:
        if re.search(pattern, text[:_START], re.M):
            raise CompileError(f"this is {what}, and assembly text is needed", hint=hint)
    if odd := _NO_TEXT.search(text):
        raise CompileError(f"ISA line {text.count(chr(10), 0, odd.start()) + 1} holds the character {odd[0]!r}, which "
                           "no text has", hint="read the file in its encoding, such as UTF-8")
