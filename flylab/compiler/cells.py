"""The text of notebook cells under `%%time` and its like, which IPython compiles under a name shared by all of them."""

from __future__ import annotations

import linecache
import sys
import types
from typing import Any

from flylab.passes.recording import lines_of

SHARED = ("<timed exec>", "<timed eval>")
"""The file names that IPython gives such cells."""


def timed_cell(code: types.CodeType) -> list[str]:
    """The lines of the latest cell in IPython's history that defines a function of this code; none if there is none.

    They become what linecache knows under the shared name, for errors to show.
    """
    shell: Any = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    history = shell.history_manager.input_hist_raw if shell is not None else []
    for cell in reversed(history):
        magic, _, body = cell.partition("\n")
        if magic.startswith("%%") and _defines(shell.transform_cell(body), code):
            lines = [line + "\n" for line in lines_of(shell.transform_cell(body))]
            linecache.cache[code.co_filename] = (len(body), None, lines, code.co_filename)
            return lines
    return []


def _defines(text: str, code: types.CodeType) -> bool:
    try:
        todo = [compile(text, code.co_filename, "exec")]
    except SyntaxError:
        return False
    while todo:
        inner = [c for c in todo.pop().co_consts if isinstance(c, types.CodeType)]
        if any(
            (c.co_name, c.co_firstlineno, c.co_code) == (code.co_name, code.co_firstlineno, code.co_code)
            and c.co_consts == code.co_consts
            for c in inner
        ):
            return True
        todo += inner
    return False
