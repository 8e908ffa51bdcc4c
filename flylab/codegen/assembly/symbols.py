"""The symbols of assembly text: numbers that `.set` gives, and places in code, data and LDS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from flylab.codegen.assembly.expressions import BadExpression, Node, Unknown, evaluate, parse

LDS = "LDS"
"""The section of symbols in LDS, whose addresses are offsets from a workgroup's LDS."""
_NESTED = 100


@dataclass(frozen=True, slots=True)
class Place:
    """Where a label stands: bytes from the start of a section."""

    section: str
    offset: int


@dataclass
class Symbols:
    """What each symbol is: a number, an expression to be evaluated when all is read, or a place.

    `weak` ones are 0 where the text does not define them.
    """

    numbers: dict[str, int | Node] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    weak: set[str] = field(default_factory=set)
    _found: dict[str, int] = field(default_factory=dict, repr=False)
    """Values of expressions that were met on the way to the one asked for."""

    def defined(self, name: str) -> bool:
        """True for a name that stands for something so far."""
        return name in self.numbers or name in self.places

    def define(self, name: str, text: str) -> None:
        """What `.set name, text` says: the value now, or an expression where it holds what is not known yet.

        Raises `BadExpression` for text that is no expression.
        """
        node = parse(text)
        try:
            self.numbers[name] = evaluate(node, self.number)
        except Unknown:
            self.numbers[name] = node

    def number(self, name: str, depth: int = 0) -> int:
        """The value of a symbol that is a number. Raises `Unknown` for one that is a place, or nothing yet."""
        found = self.numbers.get(name)
        if found is None:
            raise Unknown(f"'{name}' is no known number")
        return found if isinstance(found, int) else self._value(name, found, self.number, depth)

    def number_of(self, text: str) -> int:
        """The value of an expression of numbers. Raises `BadExpression` where it has none."""
        return evaluate(parse(text), self.number)

    def address(self, name: str, address_of: Callable[[Place], int], depth: int = 0) -> int:
        """The value of any symbol, where `address_of` says where a place lies. Raises `Unknown` for no symbol."""
        if name in self.places:
            return address_of(self.places[name])
        found = self.numbers.get(name)
        if found is None:
            if name in self.weak:
                return 0
            raise Unknown(f"the symbol '{name}' is not defined in this assembly")
        if isinstance(found, int):
            return found
        return self._value(name, found, lambda inner, n: self.address(inner, address_of, n), depth)

    def is_place(self, name: str) -> bool:
        """True for a symbol that is an address, not a number."""
        found = self.numbers.get(name)
        if isinstance(found, Node):
            return any(self.is_place(part.text) for part in found.symbols() if part.text != name)
        return name in self.places

    def _value(self, name: str, node: Node, value: Callable[[str, int], int], depth: int) -> int:
        if not depth:
            self._found.clear()
        if depth > _NESTED:
            raise BadExpression(f"a symbol is defined by itself, or by more than {_NESTED} others in turn")
        if name not in self._found:
            self._found[name] = evaluate(node, lambda inner: value(inner, depth + 1))
        return self._found[name]
