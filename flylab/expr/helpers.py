"""Functions of the user's that Python runs as they are: their branches are Python's, as an error there has to say."""

from __future__ import annotations

import types

from flylab.places import user_frame

UNREAD: dict[int, tuple[types.CodeType, str]] = {}
"""Why the text of a function could not be read, by the id of its code, which is kept."""
REWRITTEN: dict[int, types.CodeType] = {}
"""The codes whose control flow goes through the hooks, by id."""


def why_pythons() -> tuple[str, str] | None:
    """Why Python itself runs the function that tracing is in, and how to mend that; None where it was rewritten."""
    frame = user_frame()
    code = frame.f_code if frame is not None else None
    if code is None or id(code) in REWRITTEN or code.co_name == "<module>":
        return None
    if id(code) in UNREAD:
        return UNREAD[id(code)][1], "define it in a file or a notebook cell; for exec, register it in linecache.cache"
    if code.co_name == "<lambda>":
        message = "this lambda is not written in a kernel, so its choices are Python's"
        return message, "write it as a function, with `def`"
    return (f"Python calls '{code.co_name}', so its branches are Python's",
            "call a function or a method in the kernel instead: these have the device's branches")
