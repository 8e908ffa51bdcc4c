"""Text that a notebook cell shows as it is, with its lines and without quotation marks; and values as errors show them.
"""

from __future__ import annotations

import reprlib
from typing import Any

LONGEST = 60
_short = reprlib.Repr()
_short.maxstring = _short.maxother = LONGEST
_ARRAYS = "__array_interface__", "__dlpack__", "__cuda_array_interface__"


class Text(str):
    """A text whose `repr` is itself, so that a cell or a prompt that ends in it shows what `print` does.

    >>> Text("two\\nlines")
    two
    lines
    """

    def __repr__(self) -> str:
        return str(self)


def a_kind(value: Any) -> str:
    """The kind of a value, for a sentence.

    >>> import numpy
    >>> a_kind(3), a_kind("x"), a_kind(numpy.zeros(2))
    ('an int', 'a str', 'an ndarray')
    """
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' or name == 'ndarray' else 'a'} {name}"


def short(value: Any) -> str:
    """A value in a part of a line: of an array what it is, and none of its elements.

    >>> import numpy
    >>> short("x"), short(numpy.zeros((4, 2), "float32")), short(range(3))
    ("'x'", 'a numpy.ndarray of shape (4, 2), float32', 'range(0, 3)')
    """
    shape = getattr(value, "shape", None)
    if not isinstance(value, type) and shape and any(hasattr(value, name) for name in _ARRAYS):
        kind = type(value)
        dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
        return f"a {kind.__module__.split('.')[0]}.{kind.__name__} of shape {tuple(shape)}, {dtype}"
    return _short.repr(value)


def given(value: Any) -> str:
    """A value that does not fit, and its type.

    >>> given(2), given([0] * 100)
    ('2 (an int)', '[0, 0, 0, 0, 0, 0, ...] (a list)')
    """
    text, kind = short(value), type(value).__name__
    return text if text.startswith("a ") else f"{text} (a{'n' * (kind[0] in 'aeiouAEIOU')} {kind})"
