"""The places of operations: the user's line that is running as an MLIR location, and the user's name for a thing."""

from __future__ import annotations

import ast
import warnings
from typing import Any

from flylab.places import here, position, user_frame

_locations: dict[tuple[str, int, int], Any] = {}


def mlir_location() -> Any:
    """The MLIR location of the user's line that is running now (columns count from 1 there)."""
    from mlir import ir

    frame = user_frame()
    if frame is None:
        return ir.Location.unknown()
    line, column, _ = position(frame.f_code, frame.f_lasti, frame.f_lineno)
    key = (frame.f_code.co_filename, line, (column or 0) + 1)
    found = _locations.get(key)
    if found is None:
        found = _locations[key] = ir.Location.file(*key)
    return found


def name_of(value: Any, fallback: str) -> str:
    """The name that the user's frame has for an object, quoted; else `fallback`."""
    frame = user_frame()
    if frame is not None:
        for names in (frame.f_locals, frame.f_globals):
            for name, bound in names.items():
                if bound is value and not name.startswith("_"):
                    return f"'{name}'"
    return fallback


def first_argument(fallback: str) -> str:
    """The first argument of the user's call that is running, as it is written, quoted; else `fallback`."""
    place = here()
    if place is None or place.column is None or place.end_column is None:
        return fallback
    try:
        call = ast.parse(place.text[place.column:place.end_column].strip(), mode="eval").body
    except SyntaxError:
        return fallback
    return f"'{ast.unparse(call.args[0])}'" if isinstance(call, ast.Call) and call.args else fallback


def warn_deprecated(message: str) -> None:
    """A DeprecationWarning at the user's line that is running, which Python shows once for each line."""
    frame = user_frame()
    if frame is None:
        warnings.warn(message, DeprecationWarning, stacklevel=3)
        return
    line = position(frame.f_code, frame.f_lasti, frame.f_lineno)[0]
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__", "<unknown>")
    warnings.warn_explicit(message, DeprecationWarning, frame.f_code.co_filename, line, module, registry)
