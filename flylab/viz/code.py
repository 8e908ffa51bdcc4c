"""Makes compiler text readable: a short form of MLIR's generic operations, and the colours of a line's words."""

from __future__ import annotations

import re
from collections.abc import Iterable

_OPEN, _CLOSE = "([{", ")]}"
_GENERIC = re.compile(r'(?P<head>\s*(?:%[^"=]* = )?)"(?P<name>[\w.]+)"\(')
_TYPE = re.compile(r'!(?:fly|llvm|gpu)\.(\w+(?:\.\w+)*)(?:<"([^"]*)">)?')
# Attributes that repeat what the operands already say.
_NOISE = {"operandSegmentSizes", "resultSegmentSizes", "operand_segment_sizes"}


def short_mlir(line: str) -> str:
    """One line of MLIR in a short form: no quotes, no types of operands, no locations, plain names of types.

    A line that is not a generic operation keeps its words; only types and locations are shortened.

    >>> short_mlir('  %3 = "fly.slice"(%1, %2) : (!fly.layout<"(8,16):(1,8)">, index) -> !fly.layout<"8:1">')
    '  %3 = fly.slice %1, %2 : layout<8:1>'
    >>> short_mlir('  "scf.for"(%0, %1, %2) ({')
    '  scf.for %0, %1, %2 {'
    """
    line = _without_location(line.rstrip())
    found = _GENERIC.match(line)
    if found:
        line = _short_operation(found["head"], found["name"], line, found.end() - 1)
    elif re.match(r"\s*\}\)", line):
        line = line[: line.index("}")] + "}"
    return _TYPE.sub(lambda m: m[1] + (f"<{m[2]}>" if m[2] is not None else ""), line)


def _without_location(line: str) -> str:
    """The line without a location at its end; a line that defines one keeps it."""
    for found in re.finditer(r"(?<!=) loc\(", line):
        if _closing(line, found.end() - 1) == len(line) - 1:
            return line[: found.start()]
    return line


def _short_operation(head: str, name: str, line: str, at: int) -> str:
    end = _closing(line, at)
    if end is None:
        return line
    operands, rest = line[at + 1 : end], line[end + 1 :].strip()
    words, attributes, opens = [head + name], [], ""
    words += [operands] if operands else []
    while rest and not rest.startswith(":"):
        if rest.startswith("({"):
            opens = " {" if rest == "({" else " {…}"
            rest = rest[2:] if rest == "({" else rest[(_closing(rest, 0) or len(rest) - 1) + 1 :].strip()
            continue
        start = 1 if rest.startswith("<{") else 0
        stop = _closing(rest, start) if rest[start : start + 1] in set(_OPEN) else None
        if stop is None:
            return line
        if rest[start] == "{":
            attributes += _attributes(rest[start + 1 : stop])
        else:
            words.append(rest[: stop + 1])
        rest = rest[stop + 1 + start :].strip()
    words += ["{" + ", ".join(attributes) + "}"] if attributes else []
    results = rest.rpartition("->")[2].strip() if "->" in rest else ""
    types = f" : {results}" if results not in ("", "()") else ""
    return " ".join(words) + types + opens


def _attributes(text: str) -> list[str]:
    """The attributes of a dictionary, without those that repeat the operands."""
    parts, start, at = [], 0, 0
    while at < len(text):
        if text[at] in _OPEN + '<"':
            end = _closing(text, at)
            at = at + 1 if end is None else end + 1
        elif text[at] == ",":
            parts.append(text[start:at].strip())
            start = at = at + 1
        else:
            at += 1
    parts.append(text[start:].strip())
    return [part for part in parts if part and part.partition(" ")[0] not in _NOISE]


def _closing(text: str, at: int) -> int | None:
    """Where the bracket or quote that opens at `at` is closed; brackets in quotes and `->` do not count."""
    if text[at] == '"':
        found = re.compile(r'"(?:[^"\\]|\\.)*"').match(text, at)
        return found.end() - 1 if found else None
    depth = 0
    for mark in re.compile(r'"(?:[^"\\]|\\.)*"|->|[([{<>}\])]').finditer(text, at):
        if mark[0] in set(_OPEN + "<"):
            depth += 1
        elif mark[0] in set(_CLOSE + ">"):
            depth -= 1
            if depth == 0:
                return mark.start()
    return None


_KEYWORDS = ("def|for|in|if|else|elif|while|return|import|from|as|and|or|not|None|True|False|with|lambda|class|pass|"
             "yield|range|range_constexpr")
_NUMBER = r"(?P<number>(?<![\w.%])-?(?:0x[0-9A-Fa-f]+|\d+(?:\.\d+)?(?:e[+-]?\d+)?)(?![\w.]))"
_STRING = r"""(?P<text>"[^"]*"|'[^']*')"""
_LEXERS = {
    "python": re.compile(rf"(?P<muted>#.*)|{_STRING}|(?P<word>@[\w.]+|\b(?:{_KEYWORDS})\b)|{_NUMBER}"),
    "mlir": re.compile(rf"(?P<muted>//.*| : .*?(?= \{{$|$))|{_STRING}|(?P<word>\b[a-z_]\w*\.[\w.]+)|{_NUMBER}"),
    "llvm": re.compile(rf"(?P<muted>;.*)|{_STRING}|(?P<word>(?:(?<= = )|^\s*)(?:tail )?[a-z]\w*)|{_NUMBER}"),
    "isa": re.compile(rf"(?P<muted>;.*|//.*|^\s*\..*)|{_STRING}|(?P<word>^\s*[a-z]\w*)|{_NUMBER}"),
}


_INSTRUCTION = re.compile(r"\s*[a-z]\w*(?![\w.:])")


def instructions(lines: Iterable[str]) -> int:
    """How many lines of an assembly text are instructions: not labels, directives, metadata or comments.

    >>> instructions(["add: ; @add", "  s_nop 0", ".LBB0_1:", "  .p2align 8", "; %bb.0", "  s_endpgm", "amdhsa.x: 1"])
    2
    """
    return sum(bool(_INSTRUCTION.match(line)) for line in lines)


def spans(line: str, language: str) -> tuple[tuple[str, str], ...]:
    """The line cut into (text, colour role); together they are the line.

    >>> spans("  s_endpgm ; done", "isa")
    (('  s_endpgm', 'word'), (' ', 'ink'), ('; done', 'muted'))
    """
    result, at = [], 0
    for found in _LEXERS[language].finditer(line):
        if found.start() > at:
            result.append((line[at : found.start()], "ink"))
        if found.end() > found.start():
            result.append((found[0], found.lastgroup or "ink"))
        at = found.end()
    if at < len(line) or not result:
        result.append((line[at:], "ink"))
    return tuple(result)
