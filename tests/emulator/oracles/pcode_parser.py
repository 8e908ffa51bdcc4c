"""AMD's instruction pseudo-code, read into a tree.

The text is data of the pip package tinygrad (`str_pcode.py`, made from AMD's CDNA4 ISA document). It is parsed as a
Python literal; no code of that package runs.

A tree is nested tuples, the first element of which names the node:

    ("number", kind, width, value)  ("name", text)  ("cast", kind, width, tree)  ("call", name, [trees])
    ("field", tree, kind, width)  ("slice", tree, high, low)  ("part", tree, first, count)  ("index", tree, place)
    ("join", [trees])  ("unary", operator, tree)  ("binary", operator, left, right)  ("choose", test, yes, no)
    ("set", [targets], operator, tree)  ("if", [(test, body)], otherwise)  ("for", name, first, last, body)
    ("declare", name, kind, width, count)  ("lambda", name, [parameters], body)  ("return", tree)  ("break",)
    ("value", tree)
"""

from __future__ import annotations

import ast
import importlib.util
import re
from functools import cache
from pathlib import Path
from typing import Any

Tree = tuple[Any, ...]

_TOKEN = re.compile(r"""
    (?P<skip>//[^\n]*|\s+)
  | (?P<cast>\d+'(?:BF|[UIFB])(?![\w]))
  | (?P<sized>\d+'(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)[UI]?)
  | (?P<real>\d+\.\d+F?)
  | (?P<integer>(?:0x[0-9a-fA-F]+|\d+)(?:ULL|LL|U)?)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<symbol>\*\*|&&|\|\||<<|>>|<=|>=|==|!=|<>|\+:|\+=|-=|[-+*/&|^~!<>=?:;,.(){}\[\]])
""", re.X)
_LEVELS = (("||",), ("&&",), ("|",), ("^",), ("&",), ("==", "!=", "<>"), ("<", "<=", ">", ">="), ("<<", ">>"),
           ("+", "-"), ("*", "/"), ("**",))
_TYPE = re.compile(r"(bf|fp|[uifb])(\d+)")
_STOPS = ("elsif", "else", "endif", "endfor", ")")


class PseudocodeError(Exception):
    """Text that is none of the pseudo-code's language, or asks for what no arithmetic can answer."""


def document_path() -> Path:
    """Where the data is; a package that is found is not imported."""
    found = importlib.util.find_spec("tinygrad")
    if found is None or not found.submodule_search_locations:
        raise PseudocodeError("tinygrad is not installed")
    return Path(found.submodule_search_locations[0]) / "runtime/autogen/amd/cdna/str_pcode.py"


@cache
def document() -> dict[str, str]:
    """The pseudo-code by mnemonic in small letters, without what names an encoding."""
    module = ast.parse(document_path().read_text(encoding="utf-8"))
    table = next(n.value for n in module.body if isinstance(n, ast.Assign) and isinstance(n.value, ast.Dict))
    texts: dict[str, str] = {}
    for key, value in zip(table.keys, table.values, strict=True):
        assert isinstance(key, ast.Attribute)
        texts.setdefault(re.sub("_e(32|64)$", "", key.attr.lower()), ast.literal_eval(value))
    return texts


@cache
def program(mnemonic: str) -> list[Tree]:
    """The tree of an instruction's pseudo-code. Raises `PseudocodeError` where there is none or it cannot be read."""
    text = document().get(mnemonic)
    if text is None:
        raise PseudocodeError("the document has no pseudo-code of it")
    # A lane's own registers by another name.
    text = text.replace("VGPR[laneId][VDST.u32]", "D0").replace("VGPR[laneId][SRC0.u32]", "S0")
    return parse(text)


def parse(text: str) -> list[Tree]:
    """The statements of a text."""
    parser = _Parser(text)
    body = parser.statements()
    if parser.kind != "end":
        raise PseudocodeError(f"{parser.text!r} stands where a statement should")
    return body


def type_of(text: str) -> tuple[str, int] | None:
    """The kind and the width of a type such as u32, f16, bf16."""
    found = _TYPE.fullmatch(text)
    return (found[1], int(found[2])) if found else None


class _Parser:
    """A parser by recursive descent, one token ahead."""

    def __init__(self, text: str):
        self.tokens: list[tuple[str, str]] = []
        at = 0
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise PseudocodeError(f"{text[at:at + 20]!r} is no token")
            if found.lastgroup != "skip":
                self.tokens.append((str(found.lastgroup), found[0]))
            at = found.end()
        self.at = 0

    @property
    def kind(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else "end"

    @property
    def text(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1][1]

    def skip(self, text: str) -> bool:
        """Takes the token where it is this one."""
        if self.text == text:
            self.at += 1
            return True
        return False

    def want(self, text: str) -> None:
        if not self.skip(text):
            raise PseudocodeError(f"{self.text!r} stands where {text!r} should")

    # statements

    def statements(self) -> list[Tree]:
        found = []
        while self.kind != "end" and self.text not in _STOPS:
            if not self.skip(";"):
                found.append(self.statement())
        return found

    def statement(self) -> Tree:
        if self.skip("if"):
            return self.branches()
        if self.skip("for"):
            return self.loop()
        if self.skip("declare"):
            return self.declaration()
        if self.skip("break"):
            return ("break",)
        if self.skip("return"):
            return ("return", self.expression())
        first = self.expression()
        if self.text in ("+=", "-="):
            operator = self.take()[0]
            return ("set", [first], operator, self.expression())
        if self.text != "=":
            return ("value", first)
        self.take()
        if self.text == "lambda":
            return self.function(first[1])
        targets, value = [first], self.expression()
        while self.skip("="):
            targets.append(value)
            value = self.expression()
        return ("set", targets, "", value)

    def branches(self) -> Tree:
        tests = []
        while True:
            test = self.expression()
            self.want("then")
            tests.append((test, self.statements()))
            if not self.skip("elsif"):
                break
        otherwise = self.statements() if self.skip("else") else []
        self.want("endif")
        return ("if", tests, otherwise)

    def loop(self) -> Tree:
        name = self.take()
        if not self.skip("in"):
            raise PseudocodeError("a loop without 'in'")
        first = self.expression()
        self.want(":")
        last = self.expression()
        self.want("do")
        body = self.statements()
        self.want("endfor")
        return ("for", name, first, last, body)

    def declaration(self) -> Tree:
        name = self.take()
        self.want(":")
        width, kind = self.take().split("'")
        count = None
        if self.skip("["):
            count = int(self.take())
            self.want("]")
        return ("declare", name, kind.lower(), int(width), count)

    def function(self, name: str) -> Tree:
        self.want("lambda")
        self.want("(")
        parameters = []
        while not self.skip(")"):
            parameters.append(self.take())
            self.skip(",")
        self.want("(")
        body = self.statements()
        self.want(")")
        return ("lambda", name, parameters, body)

    # expressions

    def expression(self) -> Tree:
        test = self.level(0)
        if not self.skip("?"):
            return test
        yes = self.expression()
        self.want(":")
        return ("choose", test, yes, self.expression())

    def level(self, n: int) -> Tree:
        if n == len(_LEVELS):
            return self.unary()
        left = self.level(n + 1)
        while self.kind == "symbol" and self.text in _LEVELS[n]:
            operator = self.take()
            left = ("binary", operator, left, self.level(n + 1))
        return left

    def unary(self) -> Tree:
        if self.kind == "symbol" and self.text in ("-", "+", "~", "!"):
            return ("unary", self.take(), self.unary())
        return self.postfix(self.primary())

    def primary(self) -> Tree:
        kind = self.kind
        if self.skip("("):
            inner = self.expression()
            self.want(")")
            return inner
        if self.skip("{"):
            return ("join", self.listed("}"))
        text = self.take()
        if kind == "cast":
            width, to = text.split("'")
            self.want("(")
            inner = self.expression()
            self.want(")")
            return ("cast", to.lower(), int(width), inner)
        if kind in ("sized", "real", "integer"):
            return _number(kind, text)
        if kind != "name":
            raise PseudocodeError(f"{text!r} stands where a value should")
        return ("call", text, self.listed(")")) if self.skip("(") else ("name", text)

    def listed(self, end: str) -> list[Tree]:
        found = []
        while not self.skip(end):
            found.append(self.expression())
            self.skip(",")
        return found

    def postfix(self, tree: Tree) -> Tree:
        while True:
            if self.skip("."):
                name = self.take()
                known = type_of(name)
                tree = ("field", tree, *known) if known else ("name", f"{tree[1]}.{name}")
            elif self.skip("["):
                first = self.expression()
                if self.skip(":"):
                    tree = ("slice", tree, first, self.expression())
                elif self.skip("+:"):
                    tree = ("part", tree, first, self.expression())
                else:
                    tree = ("index", tree, first)
                self.want("]")
            else:
                return tree


def _number(kind: str, text: str) -> Tree:
    if kind == "real":
        return ("number", "f", 32 if text.endswith("F") else 64, float(text.rstrip("F")))
    if kind == "integer":
        digits = text.rstrip("UL")
        unsigned, long = "U" in text, text.endswith("LL")
        value = int(digits, 0)
        wide = 64 if long or value >> 32 else 32
        return ("number", "u" if unsigned or value >> (wide - 1) else "i", wide, value)
    width, digits = text.split("'")
    if "." in digits:
        return ("number", "f", int(width), float(digits))
    return ("number", "i" if digits[-1] not in "UI" or digits[-1] == "I" else "u", int(width),
            int(digits.rstrip("UI"), 0))
