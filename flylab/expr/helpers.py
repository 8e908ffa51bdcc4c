"""The user's code as Python runs it: what it asks for now, and functions whose branches are Python's."""

from __future__ import annotations

import dis

from flylab.by_code import ByCode
from flylab.errors import TraceError
from flylab.places import user_frame

UNREAD: ByCode[tuple[str, str]] = ByCode()
"""Why the text of a function could not be read and how to mend that, by its code."""
REWRITTEN: ByCode[None] = ByCode()
"""The codes whose control flow goes through the hooks."""


class WrongCount(TraceError, ValueError):
    """More names, or fewer, than there are elements for them: a ValueError, as in Python."""


def instruction() -> str:
    """The name of Python's instruction that runs now in the user's code: "CALL", "BINARY_SUBSCR", ..."""
    frame = user_frame()
    return "" if frame is None else dis.opname[frame.f_code.co_code[frame.f_lasti]]


def check_unpacked(what: str, count: int) -> None:
    """Refuse `a, b = v` of a vector of another count, where Python would not say of what there were too many."""
    frame = user_frame()
    if frame is None or frame.f_code.co_code[frame.f_lasti] != dis.opmap["UNPACK_SEQUENCE"]:
        return
    names = next(i.argval for i in dis.get_instructions(frame.f_code) if i.offset == frame.f_lasti)
    if names != count:
        raise WrongCount(
            f"{what} has {count} elements, and {names} names are to take them",
            hint="give a name for each, or take some: v[0], or a, *rest = v",
        )


def why_pythons() -> tuple[str, str] | None:
    """Why Python itself runs the function that tracing is in, and how to mend that; None where it was rewritten."""
    frame = user_frame()
    code = frame.f_code if frame is not None else None
    if code is None or code in REWRITTEN or code.co_name == "<module>":
        return None
    unread = UNREAD.get(code)
    if unread is not None:
        return unread
    if code.co_name == "<lambda>":
        message = "this lambda is not written in a kernel, so its choices are Python's"
        return message, "write it as a function, with `def`"
    return (f"Python calls '{code.co_name}', so its branches are Python's",
            "call a function or a method in the kernel instead: these have the device's branches")
