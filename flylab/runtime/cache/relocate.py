"""The user's files in the compiler's texts: a text on disk names them by numbers, and who reads it puts its own in.

A notebook's cell has another name in each process, a checkout another folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from flylab.codegen.assembly.macros import WAVE_BARRIER

_MLIR = re.compile(r'(?<=\bloc\(")([^"\\]*)(?=":\d+:\d+)')
_LLVM = re.compile(r'(?<=!DIFile\(filename: )"([^"\\]*)", directory: "([^"\\]*)"')
_FILE = re.compile(r'^(\s*\.file\s+\d+ )(?:"([^"\\]*)" )?"([^"\\]*)"$', re.M)
_BARRIER = re.compile(rf"(?<={WAVE_BARRIER} at )(.*)(?=:\d+:\d+$)", re.M)


def is_movable(file: str) -> bool:
    """Whether a file's name stands in the compiler's texts as it is, and can be put into them."""
    return file.isascii() and file.isprintable() and not set(file) & set('"\\')


def moved(text: str, old: Sequence[str], new: Sequence[str]) -> str:
    """MLIR, LLVM IR or assembly with the places of some files as places of others.

    >>> moved('!1 = !DIFile(filename: "k.py", directory: "/a")', ["/a/k.py"], ["/b/c/n.py"])
    '!1 = !DIFile(filename: "n.py", directory: "/b/c")'
    """
    names = dict(zip(old, new, strict=True))
    if list(old) == list(new):
        return text

    def whole(found: re.Match[str]) -> str:
        return names.get(found[1], found[1])

    def in_llvm(found: re.Match[str]) -> str:
        folder, base = os.path.split(_renamed(names, found[2], found[1]))
        return f'"{base}", directory: "{folder}"'

    def in_assembly(found: re.Match[str]) -> str:
        folder, base = os.path.split(_renamed(names, found[2] or "", found[3]))
        return found[1] + (f'"{folder}" ' if folder else "") + f'"{base}"'

    text = _LLVM.sub(in_llvm, _MLIR.sub(whole, text))
    return _BARRIER.sub(whole, _FILE.sub(in_assembly, text))


def _renamed(names: dict[str, str], folder: str, base: str) -> str:
    path = os.path.join(folder, base)
    return names.get(path, path)


def numbered(files: Sequence[str]) -> list[str]:
    """What files are called on disk: those that are movable by their numbers."""
    return [f"/flylab-file/{number}" if is_movable(file) else file for number, file in enumerate(files)]
