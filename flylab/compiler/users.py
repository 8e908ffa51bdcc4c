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
    return not is_library(getattr(sys.modules.get(str(kind.__module__)), "__file__", None) or "")


@functools.cache
def is_library(file: str) -> bool:
    """Whether a file belongs to flylab itself, Python's library or an installed package."""
    installed = "-packages" + os.sep in file  # site-packages, or Debian's dist-packages
    return is_own(file) or installed or file.startswith(("<frozen", LIBRARY))
