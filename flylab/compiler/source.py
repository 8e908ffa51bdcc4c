"""The Python source of a function, wherever it was typed: a file, a cell, an `exec` in linecache."""

from __future__ import annotations

import ast
import inspect
import linecache
import sys
import tokenize
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab.compiler.cells import SHARED, cell_of
from flylab.compiler.in_place import code_of, codes_in, imports_in, is_same_code, module_around
from flylab.errors import TraceError
from flylab.expr.helpers import REWRITTEN
from flylab.places import TEXTS, SourceLine, cell_name

PROMPTS = ("<stdin>", "<console>")
"""The file names of what is typed into Python's own prompt (before Python 3.13) and into `code.interact`."""
NO_PLAIN = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


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


_texts: dict[str, list[list[str]]] = {}
"""The lines of each file as they were when a kernel or launcher was defined in it, the newest last."""
VERSIONS = 8
"""How many are kept of a file that is edited and loaded again."""


def note(function: Callable[..., Any]) -> None:
    """Keep the text of a function's file as it is now, while the function is defined: the file may be edited later."""
    file = function.__code__.co_filename
    if file not in SHARED:
        versions = _texts.setdefault(file, [])
        lines = _current(function)
        if lines and (not versions or versions[-1] is not lines):
            versions[:] = [*versions[1 - VERSIONS:], lines]


def _current(function: Callable[..., Any]) -> list[str]:
    linecache.checkcache(function.__code__.co_filename)
    return linecache.getlines(function.__code__.co_filename, function.__globals__)


def read(function: Callable[..., Any]) -> Source:
    """The source of a function: of the versions of its file that are known, the one that gives its very code.

    Raises `TraceError` where its text cannot be had (typed into a plain Python prompt, or made by `exec`), or where
    no version is that of the function (its file was edited after the import, before anything in it was decorated).
    """
    code = function.__code__
    file = code.co_filename
    cell = cell_of(code) if file in SHARED else None
    if cell is not None and (source := _found(function, *cell)) is not None:
        return source
    current, noted = _current(function), _texts.get(file, [])
    versions = [current, *(v for v in reversed(noted) if v is not current)]
    is_other_code = code in REWRITTEN or _is_transformed(function)
    if is_other_code:
        versions = noted[-1:] or [current]
    for lines in versions:
        found = _found(function, file, lines)
        is_it = found is not None and (
            _looks_like(found.parse(), code) if is_other_code else _is_text_of(found, function, lines)
        )
        if found is not None and is_it:
            TEXTS.pop(file, None)
            if lines is not current:
                TEXTS[file] = lines
            return found
    raise _unread(function, any(code.co_firstlineno <= len(lines) for lines in versions))


def _unread(function: Callable[..., Any], is_other: bool) -> TraceError:
    """What to say of a function whose text is not there; `is_other` where another one stands in its place."""
    code = function.__code__
    file, first = code.co_filename, code.co_firstlineno
    if is_other:
        return TraceError(
            f"line {first} of {file} is not '{code.co_name}' as it was imported: the file changed after its import",
            where=SourceLine.of(file, first),
            hint="import it again: restart, or importlib.reload(module)",
        )
    return TraceError(
        f"the source text of '{function.__name__}' cannot be found (it was defined in {file!r})",
        where=SourceLine(file, first, function=function.__name__),
        hint="this prompt keeps no text of what is typed: use IPython, a notebook cell or a file"
        if file in PROMPTS
        else "define it in a file or a notebook cell; for exec, register the text in linecache.cache",
    )


def _found(function: Callable[..., Any], file: str, lines: list[str]) -> Source | None:
    """What stands at a function's line; None where nothing does that Python could read."""
    code = function.__code__
    first = code.co_firstlineno
    for end_of in (_end, _end_by_tokens):  # the first is fast, and wrong for some texts that run over lines
        try:
            block = "".join(lines[first - 1 : end_of(lines, code)])
            source = Source(function.__name__, file, first, block)
            tree = source.parse()
        except (tokenize.TokenError, SyntaxError, ValueError, IndexError):
            continue
        except TraceError:
            if code.co_name == "<lambda>" or code.co_flags & NO_PLAIN:
                raise
            return None
        if first != min([tree.lineno, *(d.lineno for d in tree.decorator_list)]):
            return None
        return Source(function.__name__, file, first, "".join(lines[first - 1 : tree.end_lineno]).rstrip("\n"))
    return None


def _end(lines: list[str], code: types.CodeType) -> int:
    """The last line of a function: after those that its code names, what is indented further than its first."""
    todo, last = [code], code.co_firstlineno
    while todo:
        each = todo.pop()
        last = max([last, *(line for _, _, line in each.co_lines() if line)])
        todo += [c for c in each.co_consts if isinstance(c, types.CodeType)]
    indent = _indent(lines[code.co_firstlineno - 1]) if code.co_firstlineno <= len(lines) else 0
    while last < len(lines) and (lines[last].strip()[:1] in ("", "#") or _indent(lines[last]) > indent):
        last += 1
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _end_by_tokens(lines: list[str], code: types.CodeType) -> int:
    return code.co_firstlineno - 1 + len(inspect.getblock(lines[code.co_firstlineno - 1 :]))


def _is_text_of(source: Source, function: Any, lines: list[str]) -> bool:
    """Whether a text gives the very code of a function: compiled alone, which is fast, or with all of its file."""
    code, tree = function.__code__, source.parse()
    if not _looks_like(tree, code):
        return False
    tree.decorator_list = []
    module = module_around(tree, function)
    if not cell_name(source.file):  # IPython compiles each statement of a cell alone
        module.body[:0] = imports_in(lines)
    try:
        if is_same_code(code_of(module, tree.name, function, source.file), code):
            return True
        every = codes_in("".join(lines), function, source.file)
        return any(each.co_firstlineno == code.co_firstlineno and is_same_code(each, code) for each in every)
    except (SyntaxError, ValueError):
        return False
    except RecursionError:  # nested too deeply to be rewritten, as the error of that says
        return True


def _looks_like(tree: ast.FunctionDef, code: types.CodeType) -> bool:
    """Whether this is a function of the code's name with as many arguments."""
    arguments = [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]
    return tree.name == code.co_name and len(arguments) == code.co_argcount + code.co_kwonlyargcount


def _is_transformed(function: Callable[..., Any]) -> bool:
    """Whether something changed the syntax tree before Python compiled it, so that the text gives another code.

    pytest does, of the asserts in a test's file, and so may a notebook.
    """
    loader = function.__globals__.get("__loader__")
    ordinary = ("builtins", "zipimport", "_frozen_importlib", "_frozen_importlib_external")
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    in_cell = shell is not None and cell_name(function.__code__.co_filename) is not None
    return type(loader).__module__ not in ordinary or in_cell and bool(shell.ast_transformers)
