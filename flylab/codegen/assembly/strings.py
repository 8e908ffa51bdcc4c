"""Strings as LLVM writes them into IR and assembly."""

from __future__ import annotations

import os
import re

QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_CONTROLS = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_FILE = re.compile(r"\s*\.file\s+(\d{1,9})\s")
# A string (to its end, or to the line's where it has none), or what begins a comment.
_STRING_OR_COMMENT = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?$)|;|//')


def unescaped(text: str, base: int = 16) -> str:
    r"""A string as LLVM prints it, as it was; `\xx` (in assembly `\ooo`, base 8) is a byte that is no plain ASCII.

    >>> unescaped(r"gr\C3\BC\C3\9Fe.py")
    'grüße.py'
    """
    return unescaped_bytes(text, base).decode(errors="replace")


def escaped(text: str) -> str:
    r"""A string as it is written in LLVM IR.

    >>> print(escaped('grün "x"'))
    gr\C3\BCn \22x\22
    """
    return "".join(chr(byte) if 32 <= byte < 127 and byte not in b'"\\' else f"\\{byte:02X}" for byte in text.encode())


def unescaped_bytes(text: str, base: int = 16) -> bytes:
    r"""The bytes of the same; in assembly there are also `\n` and its kin, and fewer digits than three.

    >>> unescaped_bytes(r"a\n\0\377", 8)
    b'a\n\x00\xff'
    """
    code = rb"[0-7]{1,3}|[bfnrt]" if base == 8 else rb"[0-9A-Fa-f]{2}"

    def byte(found: re.Match[bytes]) -> bytes:
        return found[1] or _CONTROLS.get(found[2]) or bytes([int(found[2], base) & 0xFF])

    return re.sub(rb'\\(?:([\\"])|(%b))' % code, byte, text.encode())


def files_of(directive: str) -> dict[int, str]:
    r"""The number and the path that a `.file` directive defines; nothing for the form without a number.

    >>> files_of(r'.file 1 "/srv/lab" "gr\303\274n.py"')
    {1: '/srv/lab/grün.py'}
    """
    number = _FILE.match(directive)
    parts = [unescaped(part, 8) for part in QUOTED.findall(directive)]
    return {int(number[1]): os.path.join(*parts[:2])} if number and parts else {}


def without_comment(line: str) -> str:
    """A line of assembly up to its comment; what looks like one within a string stays.

    >>> without_comment('.file 1 "//a;b" ; c')
    '.file 1 "//a;b" '
    """
    if ";" in line or "//" in line:
        for found in _STRING_OR_COMMENT.finditer(line):
            if found[0][0] != '"':
                return line[:found.start()]
    return line
