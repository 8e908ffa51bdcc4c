"""The text of notebook cells under `%%time` and its like, which IPython compiles under a name shared by all of them."""

from __future__ import annotations
import __future__

import ast
import linecache
import types
from collections.abc import Iterator

from flylab.passes.recording import lines_of
from flylab.places import ipython

SHARED = ("<timed exec>", "<timed eval>", "<magic-timeit>", "<string>")
"""The file names that IPython gives such cells: under `%%time`, `%%timeit` and `%%prun`."""
FUTURE = sum({getattr(__future__, name).compiler_flag for name in __future__.all_feature_names})


def cell_of(code: types.CodeType) -> tuple[str, list[str]] | None:
    """The latest cell under a magic that defines a function of this code: a name for it, and the lines after the magic.

    None where IPython's history has no such cell. The name is one of its own, by which linecache knows the lines from
    then on, for errors to show.
    """
    shell = ipython()
    history = list(shell.history_manager.input_hist_raw) if shell is not None else []
    for number in reversed(range(len(history))):
        for magic, body in _under_magics(history[number]):
            text = shell.transform_cell(body)
            if _defines(text, code):
                name = f"cell In[{number}] after {magic}"
                lines = [line + "\n" for line in lines_of(text)]
                linecache.cache[name] = (len(text), None, lines, name)
                return name, lines
    return None


def _under_magics(cell: str) -> Iterator[tuple[str, str]]:
    """The magics that a cell begins with, and what follows each; one of them may stand under another."""
    while cell.startswith("%%"):
        line, _, cell = cell.partition("\n")
        yield (line.split() or [line])[0], cell


def _defines(text: str, code: types.CodeType) -> bool:
    """True for a text that defines this very function, in its lines and columns: in a module, or in `%%timeit`'s
    function, where the names of a cell are local."""
    flags = code.co_flags & FUTURE
    try:
        tree = ast.parse(text)
        timed = ast.parse("def inner(_it, _timer): pass")
        timed.body[0].body = list(tree.body)  # type: ignore[attr-defined]
        texts = (tree, timed) if tree.body else ()
        todo: list[types.CodeType] = [compile(t, code.co_filename, "exec", flags, dont_inherit=True) for t in texts]
    except (SyntaxError, ValueError):
        return False
    while todo:
        inner = [c for c in todo.pop().co_consts if isinstance(c, types.CodeType)]
        if code in inner:
            return True
        todo += inner
    return False
