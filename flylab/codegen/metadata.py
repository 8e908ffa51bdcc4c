"""The code object metadata of AMDGPU assembly: the block of YAML between `.amdgpu_metadata` and its end.

LLVM writes it in one fixed form (block mappings and block sequences of plain scalars), which is all that is read here;
that spares a dependency on a YAML package.
"""

from __future__ import annotations

import re
from typing import Any

from flylab.errors import CompileError


def read_metadata(text: str) -> dict[str, Any]:
    """The metadata of assembly `text` as dicts and lists; empty where there is none.

    >>> read_metadata('''.amdgpu_metadata
    ... amdhsa.kernels:
    ...   - .name: k
    ...     .args:
    ...       - .size: 8
    ... .end_amdgpu_metadata''')
    {'amdhsa.kernels': [{'.name': 'k', '.args': [{'.size': 8}]}]}

    Raises `CompileError` for a form that LLVM does not write.
    """
    found = re.search(r"^\s*\.amdgpu_metadata\s*$(.*?)^\s*\.end_amdgpu_metadata", text, re.M | re.S)
    if found is None:
        return {}
    lines = [(len(line) - len(line.lstrip()), line.strip()) for line in found[1].split("\n")]
    lines = [(indent, line) for indent, line in lines if line and line not in ("---", "...")]
    if not lines:
        return {}
    value, end = _block(lines, 0)
    if end != len(lines) or not isinstance(value, dict):
        raise CompileError(f"the metadata line {lines[min(end, len(lines) - 1)][1]!r} is not in the form LLVM writes")
    return value


def _block(lines: list[tuple[int, str]], at: int) -> tuple[Any, int]:
    """The mapping, sequence or scalar that begins at line `at`, and the line after it."""
    indent, text = lines[at]
    if text.startswith("- "):
        items = []
        while at < len(lines) and lines[at][0] == indent and lines[at][1].startswith("- "):
            lines[at] = (indent + 2, lines[at][1][2:].lstrip())
            item, at = _block(lines, at)
            items.append(item)
        return items, at
    if not re.match(r"\S+:(\s|$)", text):
        return _scalar(text), at + 1
    mapping: dict[str, Any] = {}
    while at < len(lines) and lines[at][0] == indent and not lines[at][1].startswith("- "):
        key, _, value = lines[at][1].partition(":")
        at += 1
        if value.strip():
            mapping[key] = _scalar(value.strip())
        elif at < len(lines) and (lines[at][0] > indent or lines[at][1].startswith("- ") and lines[at][0] == indent):
            mapping[key], at = _block(lines, at)
        else:
            mapping[key] = None
    return mapping, at


def _scalar(text: str) -> Any:
    if text[0] in "'\"":
        return text[1:-1]
    if text == "[]":
        return []
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d+", text) else text
