"""The operands and modifiers of an instruction's text, with the symbols that are numbers put in."""

from __future__ import annotations

import re
from functools import lru_cache

from flylab.codegen.assembly.encoding import is_register, number
from flylab.codegen.assembly.expressions import BadExpression, Unknown, parse
from flylab.codegen.assembly.symbols import Symbols

# Brackets with what is in them, a comma, space, or anything else.
_TOKEN = re.compile(r"[\[(][^\])]*[\])]?|,|\s+|[^\[(,\s]+")
# Space beside an operator parts no words; `|` is one with space on both sides, else a bracket of a register's.
_SPACED = re.compile(r"\s+([-+*/%&^<>=!~]+)\s+|\s+(\|+)\s+|(?<=[,+*/%&^<>=~:(\[])\s+")
_SIMPLE = re.compile(r"[vsa](?:\d+|\[\d+:\d+\])|0x[\da-fA-F]+|-?\d+(?:\.\d*)?|off|vcc|exec|m0|vcc_lo|vcc_hi")
_INDEXED = re.compile(r"(\w*?)\[([^\[\]]*)\]")
_CALL = re.compile(r"(\w+)\(([^()]*)\)")
_WRAPPED = re.compile(r"(-?\||-|-?(?:abs|neg|sext)\()(.*?)([|)]?)")
_LISTED = re.compile(r"([vsa])(\d+)")
_JUMPS = ("s_branch", "s_cbranch_", "s_call_")


@lru_cache(maxsize=4096)
def fields(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operands, which commas part, and the modifiers, the words after the last operand.

    >>> fields("v[0:1], v2 , s[4:5] offset:16 sc0")
    (('v[0:1]', 'v2', 's[4:5]'), ('offset:16', 'sc0'))
    """
    plain = tuple(part.strip() for part in text.split(","))
    if all(map(is_simple, plain)):
        return plain, ()
    parts: list[list[str]] = [[""]]
    for token in _TOKEN.findall(_SPACED.sub(lambda m: m[1] or m[2] or "", text)):
        if token == ",":
            parts.append([""])
        elif not token.isspace():
            parts[-1][-1] += token
        elif parts[-1][-1]:
            parts[-1].append("")
    words = [word for part in parts[:-1] for word in _without_comma(part)]
    last = [word for word in parts[-1] if word]
    first = 0 if not words and last and re.match(r"\w+[(:]", last[0]) else 1
    while first and first < len(last) and _is_operand(last[first]):
        first += 1
    # An operand that is missing after a comma stays an empty one, which nothing takes.
    operands = words + (last[:first] or [""] * bool(words))
    return tuple(operands), tuple(last[first:])


def _is_operand(word: str) -> bool:
    return is_simple(word) or is_register(word)


def _without_comma(part: list[str]) -> list[str]:
    """Operands that space parts, as it may; or one with space in it."""
    words = [word for word in part if word]
    return words if len(words) > 1 and all(map(_is_operand, words)) else [" ".join(part).strip()]


@lru_cache(maxsize=8192)
def is_simple(text: str) -> bool:
    """True for an operand that no symbol can be part of."""
    return _SIMPLE.fullmatch(text) is not None


def settled(text: str, symbols: Symbols) -> str:
    """An operand in the form without symbols and expressions: `v[first+1:first+2]` as `v[4:5]`, `4*size` as a number.

    >>> settled("-v[n+1]", Symbols({"n": 3})), settled("[s4,s5]", Symbols()), settled("table@rel32@lo+4", Symbols())
    ('-v4', 's[4:5]', 'table@rel32@lo+4')

    What needs an address, or is nothing known, stays as it is.
    """
    if is_simple(text) or number(text) is not None:
        return text
    if found := _INDEXED.fullmatch(text):
        return _register(found[1], found[2], symbols) or text
    found = _WRAPPED.fullmatch(text)
    if found and ("[" in found[2] or is_register(found[2])):
        return found[1] + settled(found[2], symbols) + found[3]
    if found := _CALL.fullmatch(text):
        return f"{found[1]}({', '.join(_value(part.strip(), symbols) for part in found[2].split(','))})"
    return _value(text, symbols)


def settled_modifier(text: str, symbols: Symbols) -> str:
    """A modifier in the form without symbols and expressions.

    >>> settled_modifier("offset:4*n", Symbols({"n": 3})), settled_modifier("op_sel:[n-2,0]", Symbols({"n": 3}))
    ('offset:12', 'op_sel:[1,0]')
    """
    name, colon, value = text.partition(":")
    if not colon:
        return settled(text, symbols) if "(" in text and "&" not in text else text
    if value[:1] == "[" and value[-1:] == "]":
        return f"{name}:[{','.join(_value(part.strip(), symbols) for part in value[1:-1].split(','))}]"
    return f"{name}:{_value(value, symbols)}"


def is_symbolic(mnemonic: str, operand: str) -> bool:
    """True for a settled operand with a symbol whose address is still to be put in; a jump's label stays a label."""
    if is_simple(operand) or is_register(operand) or number(operand) is not None or mnemonic.startswith(_JUMPS):
        return False
    try:
        return any(True for _ in parse(operand).symbols())
    except BadExpression:
        return False


def _value(text: str, symbols: Symbols) -> str:
    """An expression of numbers as its value; anything else as it is."""
    if number(text) is not None:
        return text
    try:
        return str(symbols.number_of(text))
    except (Unknown, BadExpression):
        return text


def _register(file: str, inside: str, symbols: Symbols) -> str:
    """`v[...]`, or a list of registers that follow each other; nothing for anything else."""
    if not file:
        found = [_LISTED.fullmatch(settled(part.strip(), symbols)) for part in inside.split(",")]
        names = [(m[1], int(m[2])) for m in found if m]
        if len(names) < len(found) or names != [(names[0][0], names[0][1] + n) for n in range(len(names))]:
            return ""
        file, bounds = names[0][0], [names[0][1], names[-1][1]]
    else:
        try:
            bounds = [symbols.number_of(part) for part in inside.split(":")]
        except BadExpression:
            return ""
    if len(bounds) > 2 or min(bounds) < 0:
        return ""
    return f"{file}{bounds[0]}" if bounds[0] == bounds[-1] else f"{file}[{bounds[0]}:{bounds[-1]}]"
