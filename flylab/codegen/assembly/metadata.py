"""The code object metadata of AMDGPU assembly: the block of YAML between `.amdgpu_metadata` and its end.

LLVM writes block mappings and block sequences of plain scalars; people write `{...}` and `[...]` too. That is all that
is read here, and spares a dependency on a YAML package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, TypeVar

from flylab.errors import CompileError

T = TypeVar("T")
# Blocks within blocks (LLVM writes four), and the largest number that can be a size, an offset or a count here.
_DEPTH, _MOST = 16, 1 << 30
_SORTS = {int: f"a number from 0 to {_MOST}", str: "a word", list: "a list"}
_KEY = re.compile(r"\S+:(\s|$)")
# What lists and mappings in brackets are made of: strings, brackets, commas, colons, and plain words.
_TOKEN = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[\[\]{},]|:(?=\s|$)|[^\s\[\]{},:'"](?:[^\[\]{},:]|:(?=\S))*)""")


class Entry(dict[str, Any]):
    """A mapping of the metadata; `line` is the line of the assembly that it begins at."""

    line = 0

    def take(self, key: str, sort: type[T], default: T | None = None) -> T:
        """The value of a key, or the default.

        Raises `CompileError` for a value of another sort, a number that none of them can be, and a key that is missing
        and has no default.
        """
        found = self.get(key)
        if found is None and default is not None:
            return default
        if type(found) is not sort or isinstance(found, int) and not 0 <= found <= _MOST:
            has = "no" if found is None else f"{found!r} for"
            raise CompileError(f"ISA line {self.line}: the metadata has {has} {key}, and {_SORTS[sort]} is needed")
        return found

    def entries(self, key: str) -> list[Entry]:
        """The mappings of a list; none where the key is not there. Raises `CompileError` for anything else."""
        found: list[Any] = self.take(key, list, [])
        if not all(isinstance(item, Entry) for item in found):
            raise CompileError(f"ISA line {self.line}: the metadata has {found!r} for {key}, and a list of mappings is "
                               "needed")
        return found

    def numbers(self, key: str) -> tuple[int, ...]:
        """The numbers of a list; none where the key is not there. Raises `CompileError` for anything else."""
        found: list[Any] = self.take(key, list, [])
        if not all(type(item) is int for item in found):
            raise CompileError(f"ISA line {self.line}: the metadata has {found!r} for {key}, and a list of numbers is "
                               "needed")
        return tuple(found)


def read_metadata(lines: Iterable[tuple[int, str]]) -> Entry:
    """The metadata that numbered lines of assembly hold, as mappings and lists; empty where there is none.

    >>> read_metadata(enumerate(["amdhsa.kernels:", "  - .name: k", "    .args:", "      - .size: 8"], 7))
    {'amdhsa.kernels': [{'.name': 'k', '.args': [{'.size': 8}]}]}

    Raises `CompileError` for a form that LLVM does not write.
    """
    kept = [(number, len(line) - len(line.lstrip()), line.strip()) for number, line in lines]
    kept = [line for line in kept if line[2] and line[2] not in ("---", "...") and line[2][0] != "#"]
    if not kept:
        return Entry()
    value, end = _block(kept, 0, 0)
    if end != len(kept) or not isinstance(value, Entry):
        raise _unknown(kept[min(end, len(kept) - 1)])
    return value


def _unknown(line: tuple[int, int, str]) -> CompileError:
    return CompileError(f"ISA line {line[0]}: the metadata {line[2][:80]!r} is not in the form LLVM writes")


def _block(lines: list[tuple[int, int, str]], at: int, depth: int) -> tuple[Any, int]:
    """The mapping, sequence or scalar that begins at line `at`, and the line after it."""
    number, indent, text = lines[at]
    if depth > _DEPTH:
        raise _unknown(lines[at])
    if text.startswith("- "):
        items = []
        while at < len(lines) and lines[at][1] == indent and lines[at][2].startswith("- "):
            lines[at] = (lines[at][0], indent + 2, lines[at][2][2:].lstrip())
            item, at = _block(lines, at, depth + 1)
            items.append(item)
        return items, at
    if text[0] in "[{":
        return _flow(lines, at, text)
    if not _KEY.match(text):
        return _scalar(text), at + 1
    mapping = Entry()
    mapping.line = number
    while at < len(lines) and lines[at][1] == indent and _KEY.match(lines[at][2]):
        key, _, value = lines[at][2].partition(":")
        at += 1
        if value.strip()[:1] in ("[", "{"):
            mapping[key], at = _flow(lines, at - 1, value)
        elif value.strip():
            mapping[key] = _scalar(value.strip())
        elif at < len(lines) and (lines[at][1] > indent or lines[at][2].startswith("- ") and lines[at][1] == indent):
            mapping[key], at = _block(lines, at, depth + 1)
        else:
            mapping[key] = None
    return mapping, at


def _flow(lines: list[tuple[int, int, str]], at: int, text: str) -> tuple[Any, int]:
    """The list or mapping in brackets that begins with `text` on line `at`, and the line after it."""
    first = at
    tokens = _TOKEN.findall(text)
    while sum((token in "[{") - (token in "]}") for token in tokens) > 0 and at + 1 < len(lines):
        at += 1
        tokens += _TOKEN.findall(lines[at][2])
    try:
        value = _flow_value(tokens, lines[first][0], 0)
    except (IndexError, ValueError):
        raise _unknown(lines[first]) from None
    left = [_TOKEN.sub("", part) for part in (text, *(line[2] for line in lines[first + 1:at + 1]))]
    if tokens or "".join(left).strip():
        raise _unknown(lines[first])
    return value, at + 1


def _flow_value(tokens: list[str], number: int, depth: int) -> Any:
    """Takes a value from the tokens. Raises `IndexError` or `ValueError` where they are none."""
    token = tokens.pop(0)
    if token not in ("[", "{"):
        if token in "]},:":
            raise ValueError(token)
        return _scalar(token.strip())
    if depth > _DEPTH:
        raise ValueError("too deep")
    items: list[Any] = []
    mapping = Entry()
    mapping.line = number
    while tokens[0] not in ("]", "}"):
        item = _flow_value(tokens, number, depth + 1)
        if token == "{":
            if not isinstance(item, str) or tokens.pop(0) != ":":
                raise ValueError(item)
            mapping[item] = _flow_value(tokens, number, depth + 1)
        items.append(item)
        if tokens[0] == ",":
            tokens.pop(0)
    if tokens.pop(0) != {"[": "]", "{": "}"}[token]:
        raise ValueError(token)
    return items if token == "[" else mapping


def _scalar(text: str) -> Any:
    if text.startswith("!str "):  # LLVM's way to say that `true`, or `nan`, is a name
        text = text[5:].strip()
        return text if text[0] not in "'\"" else text[1:-1]
    if text[0] in "'\"":
        return text[1:-1]
    if text in ("true", "false"):
        return text == "true"
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else text
