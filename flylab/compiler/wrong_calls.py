"""A call of flylab that does not fit its parameters: Python's TypeError becomes an error with the line and them."""

from __future__ import annotations

import builtins
import inspect
import re
from types import FrameType, TracebackType
from typing import Any

from flylab.errors import TraceError
from flylab.places import of_traceback, user_frame_of

_UNFIT = re.compile(
    r"(?:(?P<name>[\w.<>]+)\(\) )?(?P<what>missing (?:a|\d+) required .*|takes .* positional arguments? but .*|"
    r"got an unexpected keyword argument .*|got multiple values for .*|multiple values for .*|"
    r"got some positional-only arguments .*|too many positional arguments)"
)
_CALL = re.compile(r"[A-Za-z_][\w.]*(?=\()")


def explained(error: TypeError) -> TraceError | None:
    """The error that takes the place of Python's, where the user's code calls a function of flylab so; else None."""
    unfit = _UNFIT.fullmatch(str(error))
    frame, where = user_frame_of(error.__traceback__), of_traceback(error.__traceback__)
    if unfit is None or frame is None or where is None or where.column is None:
        return None
    call = _CALL.match(where.text, where.column)
    function = call and _named(call[0], frame)
    if not call or not _is_flylabs(function) or not _is_of(unfit["name"], function, error.__traceback__, frame):
        return None
    parameters = _parameters(function)
    return TraceError(f"{call[0]} {unfit['what']}", where=where,
                      hint=f"call it as {call[0]}{parameters}" if parameters else f"help({call[0]}) says what it takes")


def _named(dotted: str, frame: FrameType) -> Any:
    """What a dotted name stands for in a frame, or None."""
    root, *rest = dotted.split(".")
    names = {**vars(builtins), **frame.f_globals, **frame.f_locals}
    try:
        found = names.get(root)
        for name in rest:
            found = getattr(found, name)
    except Exception:  # an attribute of the user's may raise anything
        return None
    return found


def _is_flylabs(function: Any) -> bool:
    module = str(getattr(function, "__module__", ""))
    return callable(function) and module.startswith("flylab.") and not module.startswith("flylab.kernels")


def _is_of(name: str | None, function: Any, traceback: TracebackType | None, frame: FrameType) -> bool:
    """Whether the error is of the call of the function, and not of one further inside of flylab."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    if traceback is not None and traceback.tb_frame is frame:
        return True
    # A wrapper calls the function itself, or binds its arguments by inspect, which says no name.
    return name is None or name.split(".")[-1] in (getattr(function, "__name__", None), "__init__", "__new__")


def _parameters(function: Any) -> str:
    """The parameters without their annotations; empty where Python cannot tell."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    plain = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=plain, return_annotation=signature.empty))
