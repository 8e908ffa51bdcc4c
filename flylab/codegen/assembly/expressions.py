"""Expressions of AMDGPU assembly: numbers, symbols with relocations, operators, and LLVM's functions of resources.

Source: LLVM 22's assembler, whose precedences are GNU's: `1 + 2 << 3` is 17. Numbers have 64 bits and wrap.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from flylab.codegen.assembly.encoding import integer

_TOKEN = re.compile(r"\s*(?:(0[xXbB]\w+|\d\w*)|'(\\?.)'|([A-Za-z_.$][\w.$]*(?:@[\w@]+)?)|"
                    r"(\|\||&&|==|!=|<>|<=|>=|<<|>>|[-+*/%|^&!<>~(),]))")
_PRECEDENCE = {"||": 1, "&&": 2, "==": 3, "!=": 3, "<>": 3, "<": 3, "<=": 3, ">": 3, ">=": 3, "+": 4, "-": 4,
               "|": 5, "^": 5, "&": 5, "!": 5, "*": 6, "/": 6, "%": 6, "<<": 6, ">>": 6}
_MASK = (1 << 64) - 1
# Brackets within brackets, and operators in all: far more than anyone writes, and less than Python's stack.
_DEPTH, _MOST_OPERATORS = 100, 300


class BadExpression(Exception):
    """Text that is no expression, or one without a value; the reader says where it stands."""


class Unknown(BadExpression):
    """A symbol that has no value yet."""


@dataclass(frozen=True, slots=True)
class Node:
    """A part of an expression: `kind` is "number", "symbol", "call" or "operator".

    `text` is the symbol's, the function's or the operator's name; `relocation` what follows a symbol's `@`.
    """

    kind: str
    text: str = ""
    value: int = 0
    parts: tuple[Node, ...] = ()
    relocation: str = ""

    def symbols(self) -> Iterator[Node]:
        """The symbols in it."""
        if self.kind == "symbol":
            yield self
        for part in self.parts:
            yield from part.symbols()


def signed(value: int) -> int:
    """The number that the lower 64 bits of `value` are.

    >>> signed((1 << 64) - 1), signed(1 << 64)
    (-1, 0)
    """
    value &= _MASK
    return value - (1 << 64) if value >> 63 else value


@lru_cache(maxsize=4096)
def parse(text: str) -> Node:
    """The expression that the whole of a text is.

    >>> [part.text for part in parse("table@rel32@lo+4").symbols()]
    ['table']

    Raises `BadExpression` where it is none.
    """
    tokens, at, end = [], 0, len(text.rstrip())
    while at < end:
        found = _TOKEN.match(text, at)
        if found is None:
            raise BadExpression(f"'{text[:60]}' is no expression")
        tokens.append(found)
        at = found.end()
    parser = _Parser(text, tokens)
    node = parser.binary(1, 0)
    if parser.at < len(tokens):
        raise parser.bad()
    return node


class _Parser:
    """Reads tokens by rising precedence."""

    def __init__(self, text: str, tokens: list[re.Match[str]]):
        self.text, self.tokens, self.at, self.operators = text, tokens, 0, 0

    def bad(self) -> BadExpression:
        return BadExpression(f"'{self.text[:60]}' is no expression")

    def operator(self) -> str:
        return self.tokens[self.at][4] or "" if self.at < len(self.tokens) else ""

    def binary(self, least: int, depth: int) -> Node:
        left = self.unary(depth + 1)
        while (precedence := _PRECEDENCE.get(self.operator(), 0)) >= least:
            name = self.operator()
            self.at += 1
            self.operators += 1
            if self.operators > _MOST_OPERATORS:
                raise BadExpression(f"'{self.text[:60]}' has more than {_MOST_OPERATORS} operators")
            left = Node("operator", name, parts=(left, self.binary(precedence + 1, depth + 1)))
        return left

    def unary(self, depth: int) -> Node:
        if depth > _DEPTH:
            raise BadExpression(f"'{self.text[:60]}' has more than {_DEPTH} brackets within each other")
        if self.at >= len(self.tokens):
            raise self.bad()
        digits, character, name, operator = self.tokens[self.at].groups()
        self.at += 1
        if digits:
            value = integer(digits)
            if value is None:
                raise self.bad()
            if value > _MASK:
                raise BadExpression(f"{digits[:40]} has more than 64 bits")
            return Node("number", value=signed(value))
        if character:
            return Node("number", value=ord(character[-1]))
        if name:
            return self.call(name, depth) if self.operator() == "(" else _symbol(name)
        if operator == "(":
            inner = self.binary(1, depth + 1)
            self.close()
            return inner
        if operator in ("-", "+", "~", "!"):
            return Node("operator", operator, parts=(self.unary(depth + 1),))
        raise self.bad()

    def call(self, name: str, depth: int) -> Node:
        if name not in _FUNCTIONS:
            raise BadExpression(f"'{name}' is no function of expressions")
        parts = []
        while self.operator() in ("(", ","):
            self.at += 1
            parts.append(self.binary(1, depth + 1))
        self.close()
        return Node("call", name, parts=tuple(parts))

    def close(self) -> None:
        if self.operator() != ")":
            raise self.bad()
        self.at += 1


def _symbol(text: str) -> Node:
    name, _, relocation = text.partition("@")
    return Node("symbol", name, relocation=relocation)


def evaluate(node: Node, value_of: Callable[[str], int]) -> int:
    """The value of an expression whose symbols have the values that `value_of` gives; relocations are left to others.

    >>> [evaluate(parse(x), {"a": 5}.__getitem__) for x in ("1 + 2 << 3", "a == 5", "max(alignto(a, 4), 3)", "-7 / 2")]
    [17, -1, 8, -3]

    Raises `BadExpression` where it has none.
    """
    if node.kind == "number":
        return node.value
    if node.kind == "symbol":
        return value_of(node.text)
    values = [evaluate(part, value_of) for part in node.parts]
    table: Mapping[str, Callable[..., int]] = (
        _FUNCTIONS if node.kind == "call" else _UNARY if len(values) == 1 else _BINARY)
    try:
        return signed(table[node.text](*values))
    except (TypeError, ZeroDivisionError, OverflowError) as error:
        raise BadExpression(f"{node.text} of {', '.join(map(str, values))[:60]} has no value: {error}") from None


def is_relative(node: Node, is_place: Callable[[str], bool]) -> bool:
    """True where an instruction's constant takes the expression's distance from itself, and not its value.

    `is_place` tells the symbols that are addresses. Source: LLVM's AMDGPU assembler, which writes a relocation relative
    to the constant for a place, and a plain number for the distance of two places and for `@abs32`.
    """
    if node.kind == "symbol":
        return not node.relocation.startswith("abs") and is_place(node.text)
    sides = [is_relative(part, is_place) for part in node.parts]
    return sides[0] != sides[1] if node.text == "-" and len(sides) == 2 else any(sides)


def _divide(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _shift(count: int) -> int:
    if not 0 <= count < 64:
        raise OverflowError(f"a shift by {count}")
    return count


_UNARY: dict[str, Callable[[int], int]] = {
    "-": lambda a: -a, "+": lambda a: a, "~": lambda a: ~a, "!": lambda a: int(not a)}
# A comparison that holds is -1, as the assembler has it.
_BINARY: dict[str, Callable[[int, int], int]] = {
    "||": lambda a, b: int(bool(a or b)), "&&": lambda a, b: int(bool(a and b)),
    "==": lambda a, b: -(a == b), "!=": lambda a, b: -(a != b), "<>": lambda a, b: -(a != b),
    "<": lambda a, b: -(a < b), "<=": lambda a, b: -(a <= b), ">": lambda a, b: -(a > b), ">=": lambda a, b: -(a >= b),
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
    "&": lambda a, b: a & b, "!": lambda a, b: a | ~b, "*": lambda a, b: a * b, "/": _divide,
    "%": lambda a, b: a - _divide(a, b) * b, "<<": lambda a, b: a << _shift(b),
    ">>": lambda a, b: (a & _MASK) >> _shift(b)}


def _align(value: int, step: int) -> int:
    return -(-value // step) * step


def _or(first: int, *others: int) -> int:
    for value in others:
        first |= value
    return first


def _occupancy(most: int, granule: int, total: int, _generation: int, top: int, sgprs: int, vgprs: int) -> int:
    """Waves of a SIMD; of these chips' scalar registers more than 100 allow 7, more than 80 allow 8 like fewer."""
    waves = min(most, 7 if sgprs > 100 else most)
    return min(waves, top, total // max(_align(vgprs, granule), granule))


# Source: LLVM's AMDGPUMCExpr, for chips whose vector registers and accumulators are one file (gfx90a and later).
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "max": lambda *values: max(values), "min": lambda *values: min(values), "or": _or, "alignto": _align,
    "totalnumvgprs": lambda accumulators, vectors: _align(vectors, 4) + accumulators if accumulators else vectors,
    "extrasgprs": lambda vcc, flat_scratch, xnack: 6 if flat_scratch or xnack else 2 * bool(vcc),
    "occupancy": _occupancy, "instprefsize": lambda size: min(_align(size, 128) // 128, 63)}
