"""Plain values of Python, and what belongs to the user rather than to a library."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

from flylab.places import is_own

PLAIN = frozenset({type(None), type(...), bool, int, float, complex, str, bytes})

LIBRARY = os.path.dirname(os.__file__) + os.sep
"""Where Python's library lies. `sysconfig` knows as well, and takes milliseconds to say it."""


def exact(value: Any) -> Any:
    """A plain value as something that equals only the very same: `1`, `1.0` and `True` differ, and so do 0.0 and -0.0.

    >>> exact(1) == exact(1), exact(1) == exact(True), exact(0.0) == exact(-0.0)
    (True, False, False)
    """
    if type(value) is complex:
        return complex, value.real.hex(), value.imag.hex()
    return type(value), value.hex() if type(value) is float else value


def is_users(kind: type) -> bool:
    """Whether a user wrote a class, and no library."""
    module = sys.modules.get(module_of(kind))
    return module is None or not is_library(file_of(module))


def file_of(module: Any) -> str:
    """The file of a module, "" where it has none; its own `__getattr__` is not asked."""
    return str(getattr(module, "__dict__", {}).get("__file__") or "")


def module_of(kind: type) -> str:
    """The module that a class says it is in; "" for one that was made where no module has a name."""
    return str(getattr(kind, "__module__", ""))


@functools.cache
def is_library(file: str) -> bool:
    """Whether a file belongs to flylab itself, Python's library or an installed package."""
    top = _installed(file)
    return is_own(file) or top not in ("", *_with_kernels) or not top and file.startswith(("<frozen", LIBRARY))


_with_kernels: set[str] = set()
_FOLDERS = tuple(f"{os.sep}{name}-packages{os.sep}" for name in ("site", "dist"))
"""Where packages are installed; Debian has the second."""


def note_kernels(file: str) -> None:
    """A package with a kernel or launcher in it is the user's, wherever it is installed."""
    top = _installed(file)
    if top and top not in _with_kernels:
        _with_kernels.add(top)
        is_library.cache_clear()


def _installed(file: str) -> str:
    """The folder or file of the installed package that a file belongs to, "" of one that belongs to none."""
    end = max(file.rfind(folder) + len(folder) if folder in file else 0 for folder in _FOLDERS)
    return file[:end] + file[end:].partition(os.sep)[0] if end else ""
