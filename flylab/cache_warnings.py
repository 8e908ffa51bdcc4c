"""What is wrong with a folder of kept files is said once in a process, at the user's line; nothing else comes of it."""

from __future__ import annotations

import warnings

from flylab.errors import CacheWarning
from flylab.places import user_frame

_said: set[str] = set()


def warn(kind: str, sentence: str) -> None:
    """A `CacheWarning` at the line of the user's code that runs now, where none of the kind was given before."""
    if kind in _said:
        return
    _said.add(kind)
    frame = user_frame()
    if frame is None:  # a thread of flylab's own
        warnings.warn_explicit(sentence, CacheWarning, "flylab", 1)
    else:
        warnings.warn_explicit(sentence, CacheWarning, frame.f_code.co_filename, frame.f_lineno,
                               module=str(frame.f_globals.get("__name__")))


def why(error: OSError) -> str:
    """The system's word for what went wrong."""
    return error.strerror or str(error)
