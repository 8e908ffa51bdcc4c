"""Statements of assembly text: comments taken away, macros expanded, repetitions unrolled, conditions decided.

Source: LLVM's assembler and the manual of GNU's, for what macros, `.rept`, `.irp`, `.irpc` and `.if` mean.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from flylab.codegen.assembly.expressions import BadExpression
from flylab.codegen.assembly.strings import unescaped, without_comment
from flylab.errors import CompileError

WAVE_BARRIER = "; wave barrier"
"""The comment in place of a barrier of the wave, which is no instruction; of no other comment there is a statement."""
METADATA, END_OF_METADATA = ".amdgpu_metadata", ".end_amdgpu_metadata"
_REPEATS = (".rept", ".rep", ".irp", ".irpc")
# Each directive that takes the lines up to another one, with those that open and close the same sort.
_BLOCKS = {**dict.fromkeys(_REPEATS, (_REPEATS, (".endr",))), ".macro": ((".macro",), (".endm", ".endmacro"))}
_REFUSED = {".include": "put the file's text in its place", ".incbin": "give its bytes with .byte",
            ".altmacro": "write \\name for an argument"}
# Which expressions the conditions on a number take.
_COMPARED: dict[str, Callable[[int], bool]] = {
    ".if": lambda n: n != 0, ".ifne": lambda n: n != 0, ".ifeq": lambda n: n == 0, ".ifge": lambda n: n >= 0,
    ".ifgt": lambda n: n > 0, ".ifle": lambda n: n <= 0, ".iflt": lambda n: n < 0, ".elseif": lambda n: n != 0}
_MOST_LINES, _MOST_NESTED, _LONGEST = 1 << 20, 200, 1 << 16
_BARRIER_LINE = re.compile(rf"\s*{WAVE_BARRIER}( at .*:\d{{1,9}}:\d{{1,9}})?\s*")
_LABEL = re.compile(r'([\w.$@]+|"[^"]*"):(?![:=])\s*')
_NUMBERED = re.compile(r"^[ \t]*\d+:", re.M)
_NUMBER_REFERENCE = re.compile(r"(?<![\w.$@])(\d+)([bf])(?![\w.$@])")
_BLOCK_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|;[^\n]*|//[^\n]*|/\*(.*?)\*/', re.S)
_ARGUMENT = re.compile(r"\\(@|\(\)|[A-Za-z_.$][\w.$]*)")
_NAMED = re.compile(r"([A-Za-z_.$][\w.$]*)\s*=(?!=)\s*")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"?|\s+|[^\s"]')
_OPERATORS = "+-*/%&|^<>=!~"

Line = tuple[int, str]


class Statement(NamedTuple):
    """One statement; `number` is the line of the text that it stands in, in a macro that of the macro's body."""

    number: int
    text: str

    def error(self, message: str, hint: str | None = None) -> CompileError:
        """The error for what is wrong with it."""
        return CompileError(f"ISA line {self.number}: {message}", hint=hint)


@dataclass(frozen=True)
class _Macro:
    """A macro: its parameters with what they are when left out (None: it must be given), and its lines."""

    parameters: tuple[tuple[str, str | None], ...]
    rest: bool
    lines: list[Line]


@dataclass
class _Lines:
    """Lines being read: the text itself, or what a macro or a repetition became."""

    lines: list[Line]
    at: int = 0
    conditions: int = 0
    is_macro: bool = False


@dataclass
class _Condition:
    """An `.if` that is open: whether the lines now count, and whether some branch of it has counted."""

    active: bool
    taken: bool


@dataclass
class Statements:
    """The statements of a text, in order. Labels are statements of their own, that end with a colon.

    `number_of` gives the value of an expression at this place, `is_defined` tells whether a symbol is.
    """

    text: str
    number_of: Callable[[str], int]
    is_defined: Callable[[str], bool]
    macros: dict[str, _Macro] = field(default_factory=dict)
    stack: list[_Lines] = field(default_factory=list)
    conditions: list[_Condition] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    expanded: int = 0
    made: int = 0

    def __iter__(self) -> Iterator[Statement]:
        text = self.text
        if "/*" in text:
            text = _BLOCK_COMMENT.sub(_without_block_comment, text)
        self.numbered = _NUMBERED.search(text) is not None
        self.stack = [_Lines(list(enumerate(text.split("\n"), 1)))]
        while (line := self._next()) is not None:
            number, raw = line
            stripped = without_comment(raw).strip()
            if not stripped or stripped[0] == "#":
                if WAVE_BARRIER in raw and self._active() and _BARRIER_LINE.fullmatch(raw):
                    yield Statement(number, raw.strip())
                continue
            statement = Statement(number, stripped)
            if stripped[0] == "." or ":" in stripped or self.macros or self.conditions or self.numbered:
                yield from self._statements(statement)
            else:
                yield statement
        if self.conditions:
            raise CompileError("the assembly ends within an .if", hint="it needs its .endif")

    def _active(self) -> bool:
        """Whether the lines now count: no condition is open that does not hold."""
        return not self.conditions or self.conditions[-1].active

    def metadata(self, start: Statement) -> list[Line]:
        """The lines up to the end of the metadata, as they are."""
        lines: list[Line] = []
        while (line := self._next()) is not None:
            if line[1].strip() == END_OF_METADATA:
                return lines
            lines.append(line)
        raise start.error(f"the metadata has no {END_OF_METADATA}")

    def _next(self) -> Line | None:
        while self.stack:
            top = self.stack[-1]
            if top.at < len(top.lines):
                top.at += 1
                return top.lines[top.at - 1]
            if len(self.stack) > 1 and len(self.conditions) > top.conditions:
                raise CompileError(f"ISA line {top.lines[-1][0]}: an .if of a macro or repetition ends within it",
                                   hint="it needs its .endif")
            self.stack.pop()
        return None

    def _push(self, statement: Statement, lines: list[Line], is_macro: bool = False) -> None:
        self.expanded += len(lines)
        if self.expanded > _MOST_LINES or len(self.stack) > _MOST_NESTED:
            raise statement.error(f"macros and repetitions give more than {_MOST_LINES} lines, or lie more than "
                                  f"{_MOST_NESTED} deep", hint="a macro that calls itself needs an .if that ends it")
        self.stack.append(_Lines(lines, 0, len(self.conditions), is_macro))

    def _statements(self, statement: Statement) -> Iterator[Statement]:
        active = self._active()
        while active and ":" in statement.text and (found := _LABEL.match(statement.text)):
            label = found[1].strip('"')
            if label.isdecimal():
                self.counts[label] = self.counts.get(label, 0) + 1
                label = _numbered_label(label, self.counts[label])
            yield Statement(statement.number, label + ":")
            statement = Statement(statement.number, statement.text[found.end():])
        word, _, rest = statement.text.replace("\t", " ").partition(" ")
        if not word:
            return
        if word[0] == "." and (word.startswith(".if") or word in (".else", ".elseif", ".endif")):
            self._condition(statement, word, rest.strip())
        elif active and not self._control(statement, word, rest.strip()):
            if self.numbered:
                statement = Statement(statement.number, _NUMBER_REFERENCE.sub(self._numbered, statement.text))
            yield statement

    def _numbered(self, found: re.Match[str]) -> str:
        """`1b` is the last label 1, `1f` the next."""
        return _numbered_label(found[1], self.counts.get(found[1], 0) + (found[2] == "f"))

    def _control(self, statement: Statement, word: str, rest: str) -> bool:
        """Does what a directive says about the lines to come, or expands a macro; False where it is neither."""
        if word in self.macros:
            self._expand(statement, word, rest)
        elif word[0] != ".":
            return False
        elif word in _BLOCKS:
            lines = self._body(statement, word)
            if word == ".macro":
                self._define(statement, rest, lines)
            else:
                self._repeat(statement, word, rest, lines)
        elif word == ".exitm":
            self._leave_macro(statement)
        elif word == ".purgem":
            if self.macros.pop(rest, None) is None:
                raise statement.error(f"there is no macro {rest}")
        elif word in (".error", ".err"):
            raise statement.error(f"the assembly says: {rest or word}")
        elif word in (".endr", ".endm", ".endmacro"):
            raise statement.error(f"{word} ends nothing here")
        elif word in _REFUSED:
            raise statement.error(f"the directive {word} cannot be read here", hint=_REFUSED[word])
        else:
            return word in (".warning", ".print", ".noaltmacro")
        return True

    def _body(self, statement: Statement, word: str) -> list[Line]:
        """The lines up to the directive that ends this one."""
        opening, closing = _BLOCKS[word]
        lines: list[Line] = []
        depth = 1
        while (line := self._next()) is not None:
            first = without_comment(line[1]).split(None, 1)[:1]
            depth += (first[0] in opening) - (first[0] in closing) if first else 0
            if not depth:
                return lines
            lines.append(line)
        raise statement.error(f"{word} has no {closing[0]}")

    def _condition(self, statement: Statement, word: str, rest: str) -> None:
        if word.startswith(".if"):
            outer = self._active()
            holds = outer and self._holds(statement, word, rest)
            self.conditions.append(_Condition(holds, holds or not outer))
            return
        if len(self.conditions) <= self.stack[-1].conditions:
            raise statement.error(f"{word} belongs to no .if")
        top = self.conditions[-1]
        if word == ".endif":
            self.conditions.pop()
        else:
            top.active = not top.taken and (word == ".else" or self._holds(statement, word, rest))
            top.taken = top.taken or top.active

    def _holds(self, statement: Statement, word: str, rest: str) -> bool:
        if word in _COMPARED:
            return _COMPARED[word](self._number(statement, rest))
        if word in (".ifdef", ".ifndef", ".ifnotdef"):
            return self.is_defined(rest) == (word == ".ifdef")
        if word in (".ifb", ".ifnb"):
            return (not rest) == (word == ".ifb")
        if word in (".ifc", ".ifnc", ".ifeqs", ".ifnes"):
            sides = [side.strip() for side in rest.split(",", 1)]
            if len(sides) == 2:
                return (sides[0] == sides[1]) == (word in (".ifc", ".ifeqs"))
        raise statement.error(f"the condition '{statement.text[:80]}' cannot be read")

    def _number(self, statement: Statement, text: str) -> int:
        try:
            return self.number_of(text)
        except BadExpression as error:
            raise statement.error(f"{error}, and a number is needed here") from None

    def _leave_macro(self, statement: Statement) -> None:
        while len(self.stack) > 1:
            left = self.stack.pop()
            del self.conditions[left.conditions:]
            if left.is_macro:
                return
        raise statement.error(".exitm stands in no macro")

    def _define(self, statement: Statement, head: str, lines: list[Line]) -> None:
        name, _, rest = head.replace(",", " ", 1).partition(" ")
        parameters: list[tuple[str, str | None]] = []
        takes_rest = False
        for text in _arguments(rest):
            parameter, _, default = text.partition("=")
            bare, _, kind = parameter.strip().partition(":")
            takes_rest = kind == "vararg"
            parameters.append((bare, None if kind == "req" else unquoted(default.strip())))
        if not name or name in self.macros:
            raise statement.error(f"the macro {name} is defined twice" if name else "a macro needs a name")
        self.macros[name] = _Macro(tuple(parameters), takes_rest, lines)

    def _expand(self, statement: Statement, name: str, rest: str) -> None:
        macro = self.macros[name]
        names = [parameter for parameter, _ in macro.parameters]
        given: dict[str, str] = {}
        for place, text in enumerate(_arguments(rest, len(names) - 1 if macro.rest else None)):
            named = _NAMED.match(text)
            if named and named[1] in names:
                given[named[1]] = text[named.end():]
            elif place < len(names):
                given[names[place]] = text
            else:
                raise statement.error(f"macro {name} takes {len(names)} arguments, and '{text[:40]}' is one more")
        values = {}
        for parameter, default in macro.parameters:
            value = given.get(parameter, "") or default
            if value is None:
                raise statement.error(f"macro {name} needs its argument '{parameter}'")
            values[parameter] = unquoted(value)
        values["@"] = str(self.made)
        self.made += 1
        self._push(statement, _replaced(macro.lines, values), is_macro=True)

    def _repeat(self, statement: Statement, word: str, rest: str, lines: list[Line]) -> None:
        if word in (".rept", ".rep"):
            count = self._number(statement, rest)
            if not 0 <= count * max(len(lines), 1) <= _MOST_LINES:
                raise statement.error(f"{word} {count} gives more than {_MOST_LINES} lines")
            self._push(statement, lines * count)
            return
        first, *others = _arguments(rest) or [""]
        values = list("".join(others)) if word == ".irpc" else others
        self._push(statement, [line for value in values for line in _replaced(lines, {first: unquoted(value)})])


def _numbered_label(number: str, count: int) -> str:
    return f".Lnumber{number}.{count}"


def _without_block_comment(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else " " + "\n" * found[0].count("\n")


def unquoted(text: str) -> str:
    r"""A string of assembly without its quotes, or the text itself.

    >>> unquoted(r'"a\"b"'), unquoted("v0")
    ('a"b', 'v0')
    """
    return unescaped(text[1:-1], 8) if len(text) > 1 and text[0] == text[-1] == '"' else text


def _replaced(lines: list[Line], values: dict[str, str]) -> list[Line]:
    """Lines with `\\name` replaced; what is no name of `values` stays."""
    def value(found: re.Match[str]) -> str:
        return "" if found[1] == "()" else values.get(found[1], found[0])

    found = [(number, _ARGUMENT.sub(value, text) if "\\" in text else text) for number, text in lines]
    if long := next((number for number, text in found if len(text) > _LONGEST), None):
        raise CompileError(f"ISA line {long}: a macro makes a line of more than {_LONGEST} characters",
                           hint="a macro that calls itself needs an .if that ends it")
    return found


def _arguments(text: str, whole_from: int | None = None) -> list[str]:
    """The arguments of a macro, which commas or spaces part; from number `whole_from` on all that is left is one.

    A space beside an operator or within brackets parts nothing.
    """
    if whole_from == 0:
        return [text] if text else []
    found, current, depth = [], "", 0
    pieces = list(_PIECE.finditer(text))
    for place, piece in enumerate(pieces):
        word = piece[0]
        if word.isspace() and depth == 0:
            after = pieces[place + 1][0] if place + 1 < len(pieces) else ","
            parts = current and after != "," and after not in _OPERATORS and current[-1] not in _OPERATORS
        else:
            parts = word == "," and depth == 0
            depth += (word in "([") - (word in ")]")
            current += "" if parts else word
        if parts:
            found.append(current)
            current = ""
            if whole_from is not None and len(found) >= whole_from:
                return [*found, text[piece.end():].strip()]
    return [*found, current] if current or found else []
