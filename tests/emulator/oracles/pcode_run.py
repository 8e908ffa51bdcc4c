"""Runs AMD's instruction pseudo-code, one lane at a time.

A value is (kind, width, raw): kind u, i, f, bf, b (bits) or fp; raw the bits as an unsigned number. Two kinds more have
no bits: "power", 2**raw exactly, which the document multiplies by, and "denormal", of which `x == DENORM` asks.
Integers narrower than 32 bits compute as 32, as in C; an unsigned operand makes the result unsigned. A float that no
rule says the payload of is `any_nan`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.emulator.oracles import exact, pcode_calls
from tests.emulator.oracles.exact import FORMATS
from tests.emulator.oracles.pcode_parser import PseudocodeError, Tree, program

Typed = tuple[str, int, int]
FLOATS = ("f", "bf")
WIDEST = 1201
_CONSTANTS: dict[str, Typed] = {
    "INF": ("f", 64, FORMATS["f", 64].infinity), "NAN": ("f", 64, FORMATS["f", 64].any_nan),
    "PI": ("f", 64, exact.of_float(math.pi, FORMATS["f", 64])), "DENORM": ("denormal", 64, 0),
    "OVERFLOW_F32": ("f", 32, FORMATS["f", 32].infinity), "UNDERFLOW_F32": ("f", 32, 0),
    "OVERFLOW_F64": ("f", 64, FORMATS["f", 64].infinity), "UNDERFLOW_F64": ("f", 64, 0),
    "ROUND_NEAREST_EVEN": ("u", 2, 0), "ROUND_TOWARD_ZERO": ("u", 2, 3),
}


class _Break(Exception):
    pass


class _Return(Exception):
    def __init__(self, value: Typed):
        self.value = value


def signed(value: Typed) -> int:
    """The number of an integer."""
    kind, width, raw = value
    return raw - (1 << width) if kind == "i" and raw >> (width - 1) else raw


def integer(kind: str, width: int, number: int) -> Typed:
    return kind, width, number & ((1 << width) - 1)


def as_float(value: Typed) -> float:
    return exact.number(value[2], FORMATS[value[0], value[1]])


def seen_as(value: Typed, kind: str, width: int) -> Typed:
    """`value.f32`: the bits as that type; a float of another width is converted."""
    if value[0] == "denormal":
        return "denormal", width, 0
    if kind in FLOATS and value[0] in FLOATS and (kind, width) != value[:2]:
        return kind, width, exact.converted(value[2], FORMATS[value[0], value[1]], FORMATS[kind, width])
    return integer(kind, width, value[2])


def cast(value: Typed, kind: str, width: int) -> Typed:
    """`32'F(value)`: converted; what is no float is the bits of one, but for numbers wider than any."""
    if value[0] == "power":
        return value
    if kind not in FLOATS:
        return integer(kind, width, signed(value))
    if value[0] in FLOATS or value[1] <= 64:
        return seen_as(value, kind, width)
    return kind, width, exact.rounded(Fraction(signed(value)), FORMATS[kind, width])


class Machine:
    """The registers of one lane as the pseudo-code names them, and the variables of a run.

    `names` holds S0, S1, S2, D0, VCC, EXEC, SCC, laneId and the like; `mode` IEEE and OPSEL.
    """

    def __init__(self, names: dict[str, Any], chip: str):
        self.names = names
        self.chip = chip
        self.lambdas: dict[str, tuple[list[str], list[Tree]]] = {}

    def run(self, mnemonic: str) -> dict[str, Any]:
        """Runs an instruction; the names after it."""
        self.body(program(mnemonic))
        return self.names

    # statements

    def body(self, statements: list[Tree]) -> Typed | None:
        last = None
        for statement in statements:
            last = _STATEMENTS[statement[0]](self, *statement[1:])
        return last

    def set(self, targets: list[Tree], operator: str, tree: Tree) -> None:
        value = self.value(tree)
        for target in reversed(targets):
            self.assign(target, self.binary(operator, self.value(target), value) if operator else value)

    def branch(self, tests: list[tuple[Tree, list[Tree]]], otherwise: list[Tree]) -> Typed | None:
        for test, body in tests:
            if self.value(test)[2]:
                return self.body(body)
        return self.body(otherwise)

    def loop(self, name: str, first: Tree, last: Tree, body: list[Tree]) -> None:
        start = self.value(first)
        for n in range(start[2], self.value(last)[2] + 1):
            self.names[name] = (start[0], start[1], n)
            try:
                self.body(body)
            except _Break:
                return

    def leave(self) -> None:
        raise _Break

    def give(self, tree: Tree) -> None:
        raise _Return(self.value(tree))

    def declare(self, name: str, kind: str, width: int, count: int | None) -> None:
        if name not in self.names:  # the array S of the mixed instructions is the sources
            self.names[name] = (kind, width, 0) if count is None else [(kind, width, 0)] * count

    def define(self, name: str, parameters: list[str], body: list[Tree]) -> None:
        self.lambdas[name] = (parameters, body)

    # assignment

    def assign(self, target: Tree, value: Typed) -> None:
        kind = target[0]
        if kind == "name":
            self.names[target[1]] = value if target[1] not in ("SCC",) else ("u", 1, int(bool(value[2])))
        elif kind == "field":
            if target[2] in FLOATS and value[0] in FLOATS:
                value = seen_as(value, target[2], target[3])
            self.put(target[1], 0, target[3], value[2], target[2])
        elif kind == "slice":
            high, low = (signed(self.value(tree)) for tree in target[2:])
            self.put(target[1], low, high - low + 1, value[2])
        elif kind == "index" and self.is_list(target[1]):
            self.names[target[1][1]][self.value(target[2])[2]] = value
        elif kind == "index":
            self.put(target[1], self.value(target[2])[2], 1, value[2])
        elif kind == "join":
            raw = value[2]
            for part in reversed(target[1]):
                self.assign(part, ("b", part[3], raw & ((1 << part[3]) - 1)))
                raw >>= part[3]
        else:
            raise PseudocodeError(f"{kind} cannot be assigned to")

    def put(self, target: Tree, low: int, width: int, raw: int, kind: str = "b") -> None:
        """Sets bits of a place; one not known yet becomes as wide as it must."""
        base = target
        while base[0] in ("field", "slice", "index"):
            base = base[1]
        if base[0] == "name" and base[1] not in self.names:
            whole = base is target and low == 0 and kind != "b"
            self.names[base[1]] = (kind, width, 0) if whole else ("b", WIDEST, 0)
        old = self.value(target) if not (target[0] == "index" and not self.is_list(target[1])) else ("b", 1, 0)
        mask = ((1 << width) - 1) << low
        new = old[2] & ~mask | raw << low & mask
        self.assign(target, (old[0], max(old[1], low + width), new))

    def is_list(self, tree: Tree) -> bool:
        return tree[0] == "name" and isinstance(self.names.get(tree[1]), list)

    # expressions

    def value(self, tree: Tree) -> Typed:
        found: Typed = _VALUES[tree[0]](self, *tree[1:])
        return found

    def number(self, kind: str, width: int, value: float) -> Typed:
        if kind == "f":
            return kind, width, exact.of_float(float(value), FORMATS[kind, width])
        return integer(kind, width, int(value))

    def name(self, name: str) -> Typed:
        found = self.names.get(name) or _CONSTANTS.get(name)
        if found is None:
            raise PseudocodeError(f"nothing is named {name}")
        return found

    def call(self, name: str, trees: list[Tree]) -> Typed:
        values = [self.value(tree) for tree in trees]
        if name not in self.lambdas:
            return pcode_calls.call(self, name, values)
        parameters, body = self.lambdas[name]
        inner = Machine({**self.names, **dict(zip(parameters, values, strict=True))}, self.chip)
        try:
            result = inner.body(body)
        except _Return as found:
            return found.value
        if result is None:
            raise PseudocodeError(f"{name} returns nothing")
        return result

    def slice(self, tree: Tree, high: Tree, low: Tree) -> Typed:
        first, last = signed(self.value(low)), signed(self.value(high))
        raw = self.value(tree)[2]
        if first > last:  # [0 : 31] is the bits in the other order
            width = first - last + 1
            return "u", width, int(f"{raw >> last & (1 << width) - 1:0{width}b}"[::-1], 2)
        return integer("u", last - first + 1, raw >> first)

    def part(self, tree: Tree, first: Tree, count: Tree) -> Typed:
        return integer("u", self.value(count)[2], self.value(tree)[2] >> self.value(first)[2])

    def index(self, tree: Tree, place: Tree) -> Typed:
        at = self.value(place)[2]
        if self.is_list(tree):
            found: Typed = self.names[tree[1]][at]
            return found
        return "u", 1, self.value(tree)[2] >> at & 1

    def join(self, trees: list[Tree]) -> Typed:
        raw = width = 0
        for part in map(self.value, trees):
            raw, width = raw << part[1] | part[2], width + part[1]
        return "b", width, raw

    def unary(self, operator: str, tree: Tree) -> Typed:
        value = self.value(tree)
        if operator == "!":
            return "u", 1, int(not value[2])
        if operator == "~":
            return integer(value[0], value[1], ~value[2])
        if operator == "-" and value[0] in FLOATS:
            return value[0], value[1], value[2] ^ 1 << (value[1] - 1)
        return integer(value[0], value[1], -value[2]) if operator == "-" else value

    def choose(self, test: Tree, yes: Tree, no: Tree) -> Typed:
        return self.value(yes if self.value(test)[2] else no)

    def operation(self, operator: str, left: Tree, right: Tree) -> Typed:
        first = self.value(left)
        if operator in ("&&", "||"):
            decided = bool(first[2]) == (operator == "||")
            return "u", 1, int(bool(first[2]) if decided else bool(self.value(right)[2]))
        if operator == "==" and right[0] == "unary" and right[2][0] == "number" and not right[2][3]:
            # `x == -0.0` asks for that zero: the document tells +0.0 from -0.0 where it chooses between them.
            return "u", 1, int(first[2] == self.value(right)[2])
        return self.binary(operator, first, self.value(right))

    def binary(self, operator: str, x: Typed, y: Typed) -> Typed:
        if operator == "**":
            if as_float(x) != 2:
                raise PseudocodeError("a power of another number than 2")
            return "power", 0, signed(y)
        if "power" in (x[0], y[0]):
            value, power = (x, y) if y[0] == "power" else (y, x)
            return pcode_calls.scaled(value, power[2])
        if x[0] in FLOATS or y[0] in FLOATS:
            return _float_binary(operator, x, y)
        return _integer_binary(operator, x, y)


def _integer_binary(operator: str, x: Typed, y: Typed) -> Typed:
    a, b = signed(x), signed(y)
    if operator in _COMPARISONS:
        return "u", 1, int(_COMPARISONS[operator](a, b))
    if operator in ("<<", ">>"):
        return integer(x[0], max(x[1], 32) if operator == "<<" else x[1], a << b if operator == "<<" else a >> b)
    kind = "i" if x[0] == y[0] == "i" else "u"
    return integer(kind, max(x[1], y[1], 32), _INTEGERS[operator](a, b))


def _float_binary(operator: str, x: Typed, y: Typed) -> Typed:
    if operator in _COMPARISONS:
        if y[0] == "denormal":
            return "u", 1, int(exact.is_denormal(x[2], FORMATS[x[0], x[1]]))
        a, b = as_float(x), as_float(y)
        if math.isnan(a) or math.isnan(b):
            return "u", 1, int(operator == "!=")
        return "u", 1, int(_COMPARISONS[operator](a, b))
    if x[:2] != y[:2]:
        raise PseudocodeError(f"{operator} of {x[0]}{x[1]} and {y[0]}{y[1]}")
    form, one = FORMATS[x[0], x[1]], exact.of_float(1.0, FORMATS[x[0], x[1]])
    if operator == "*":
        negative_zero = form.sign  # x * y + (-0) is x * y, with its own sign where it is zero
        product_sign = (x[2] ^ y[2]) & form.sign
        return x[0], x[1], exact.fused(x[2], y[2], negative_zero if product_sign else 0, form)
    if operator == "/":
        return x[0], x[1], exact.quotient(x[2], y[2], form)
    other = y[2] ^ form.sign if operator == "-" else y[2]
    return x[0], x[1], exact.fused(x[2], one, other, form)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<>": lambda a, b: a != b, "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b,
}
_INTEGERS: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "&": lambda a, b: a & b,
    "|": lambda a, b: a | b, "^": lambda a, b: a ^ b,
}
_STATEMENTS: dict[str, Callable[..., Any]] = {
    "set": Machine.set, "if": Machine.branch, "for": Machine.loop, "break": Machine.leave, "return": Machine.give,
    "declare": Machine.declare, "lambda": Machine.define, "value": Machine.value,
}
_VALUES: dict[str, Callable[..., Any]] = {
    "number": Machine.number, "name": Machine.name, "call": Machine.call, "slice": Machine.slice,
    "part": Machine.part, "index": Machine.index, "join": Machine.join, "unary": Machine.unary,
    "binary": Machine.operation, "choose": Machine.choose,
    "field": lambda self, tree, kind, width: seen_as(self.value(tree), kind, width),
    "cast": lambda self, kind, width, tree: cast(self.value(tree), kind, width),
}
