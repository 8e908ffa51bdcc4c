"""The annotations of a class body as objects, also where they are texts (`from __future__ import annotations`)."""

from __future__ import annotations

import sys
from collections import ChainMap
from collections.abc import Iterator
from types import FrameType
from typing import Any, ClassVar, get_origin

from flylab.errors import FlylabError, TraceError
from flylab.places import here, user_frame


def resolved(body: dict[str, Any], what: str) -> dict[str, Any]:
    """What the names of a class body annotate, ClassVars aside, by name.

    A text is evaluated with the names of the class, of the functions around it that are running, and of its module.
    Raises `TraceError`, naming `what` and the field, for one that does not resolve.
    """
    names: ChainMap[str, Any] | None = None
    found = {}
    for name, annotation in body.get("__annotations__", {}).items():
        if isinstance(annotation, str):
            module = sys.modules.get(str(body.get("__module__")))
            names = names or ChainMap(body, *_scopes(), {} if module is None else vars(module))
            annotation = _evaluated(annotation, names, f"field '{name}' of {what}")
        if annotation is not ClassVar and get_origin(annotation) is not ClassVar:
            found[name] = annotation
    return found


def _evaluated(text: str, names: Any, what: str) -> Any:
    try:
        found = eval(text, {}, names)
        return eval(found, {}, names) if isinstance(found, str) else found  # quoted where all are texts
    except FlylabError as error:
        raise TraceError(f"{what} is annotated {text}: {error.message}", where=here(), hint=error.hint) from None
    except Exception as error:
        raise TraceError(
            f"the annotation '{text}' of {what} cannot be resolved ({error})",
            where=here(),
            hint="its names must be known where the class is written: imported, or in a function that is still running",
        ) from None


def _scopes() -> Iterator[dict[str, Any]]:
    """The local names of the frame that writes the class, of the functions around it that run, and its globals."""
    frame: FrameType | None = user_frame()
    if frame is None:
        return
    yield frame.f_locals
    code, outer = frame.f_code, frame.f_back
    while outer is not None:
        if code in outer.f_code.co_consts:
            yield outer.f_locals
            code = outer.f_code
        outer = outer.f_back
    yield frame.f_globals
