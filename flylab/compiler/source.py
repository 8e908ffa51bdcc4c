"""The Python source of a function, wherever it was typed: a file, a cell, an `exec` in linecache."""

from __future__ import annotations

import ast
import inspect
import linecache
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.compiler.cells import SHARED, cell_of
from flylab.errors import TraceError
from flylab.places import SourceLine

PROMPTS = ("<stdin>", "<console>")
"""The file names of what is typed into Python's own prompt (before Python 3.13) and into `code.interact`."""


@dataclass(frozen=True)
class Source:
    """The text of one function as it stands in its file, decorators included.

    `first_line` is the line of its first decorator (or of `def`), counted from 1; `file` is a path or a cell's name.
    """

    name: str
    file: str
    first_line: int
    text: str

    def __str__(self) -> str:
        return self.text

    def parse(self) -> ast.FunctionDef:
        """The function's syntax tree, with the lines and columns of the file."""
        indented = self.text[:1].isspace()
        # Blank lines in front give the file's line numbers; the body of an `if` keeps an indented function's columns.
        above = self.first_line - 1
        head = "\n" * (above - 1) + "if True:\n" if indented else "\n" * above
        module = ast.parse(head + self.text, filename=self.file)
        body = module.body[0].body if indented else module.body  # type: ignore[attr-defined]
        found = body[0]
        if isinstance(found, ast.FunctionDef):
            return found
        raise TraceError(
            f"'{self.name}' is no plain function",
            where=SourceLine.of(self.file, self.first_line),
            hint="decorate a function written with `def` (not a lambda, not `async def`)",
        )


def read(function: Callable[..., Any]) -> Source:
    """The source of a function.

    Raises `TraceError` where its text cannot be had (typed into a plain Python prompt, or made by `exec`), or where
    what stands there is not this function (its file was edited after the import).
    """
    code = function.__code__
    file = code.co_filename
    cell = cell_of(code) if file in SHARED else None
    if cell is not None:
        file, lines = cell
    else:
        linecache.checkcache(file)  # a module that was edited and loaded again
        lines = linecache.getlines(file, function.__globals__)
    first = code.co_firstlineno
    if first > len(lines):
        raise TraceError(
            f"the source text of '{function.__name__}' cannot be found (it was defined in {code.co_filename!r})",
            where=SourceLine(code.co_filename, first, function=function.__name__),
            hint="this prompt keeps no text of what is typed: use IPython, a notebook cell or a file"
            if code.co_filename in PROMPTS
            else "define it in a file or a notebook cell; for exec, register the text in linecache.cache",
        )
    block = "".join(inspect.getblock(lines[first - 1 :])).rstrip("\n")
    source = Source(function.__name__, file, first, block)
    if not _is_text_of(source, code):
        raise TraceError(
            f"line {first} of {code.co_filename} is not '{code.co_name}' any more: the file changed after its import",
            where=SourceLine.of(code.co_filename, first),
            hint="import it again: restart, or importlib.reload(module)",
        )
    return source


def _is_text_of(source: Source, code: types.CodeType) -> bool:
    try:
        found = source.parse()
    except SyntaxError:
        return False
    arguments = [a.arg for a in (*found.args.posonlyargs, *found.args.args, *found.args.kwonlyargs)]
    count = code.co_argcount + code.co_kwonlyargcount
    return found.name == code.co_name and len(arguments) == count
