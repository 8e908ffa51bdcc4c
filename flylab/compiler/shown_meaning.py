"""A meaning (`flylab.compiler.meaning`) as a short text."""

from __future__ import annotations

import ast
import functools
import reprlib
import types
from typing import Any

from flylab.compiler.kernel import TracedFunction
from flylab.compiler.meaning import GONE, MISSING, Atoms, Same, Watched
from flylab.compiler.users import PLAIN, is_users
from flylab.shown import a_kind

LONGEST = 60
BRACKETS = {list: "[{}]", tuple: "({})", set: "{{{}}}", frozenset: "frozenset({{{}}})"}
_short = reprlib.Repr()
_short.maxstring = _short.maxother = LONGEST


def object_of(told: Any) -> Any:
    """The object that a meaning is of, where it counts by identity; else None."""
    key = told.key if isinstance(told, Watched) else told
    if isinstance(key, tuple) and key and isinstance(key[0], Same):
        key = key[0]
    return key.value if isinstance(key, Same) else None


def shown(told: Any) -> str:
    """A meaning as a text of at most a line.

    >>> from flylab.compiler.meaning import meaning
    >>> shown(meaning(2.0)), shown(meaning([1, {"a": 2}])), shown(meaning(len))
    ('2.0', "[1, {'a': 2}]", 'len')
    """
    text = _text(told)
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def shown_defaults(told: Any) -> str:
    """The meaning of a function's default arguments: those by position, and those by keyword if there are any."""
    if told is MISSING:
        return "none"
    inside = told[1].items if isinstance(told[1], Atoms) else told[1]
    given = [shown(x) for x in inside if x not in (None, (type(None), None))]
    return " and ".join(given) or "none"


def _text(told: Any) -> str:
    if told is MISSING:
        return "nothing"
    if isinstance(told, Watched):
        return _text(told.key)
    if isinstance(told, Same):
        return _object(told.value)
    if isinstance(told, tuple) and told and isinstance(told[0], Same):
        return _object(told[0].value)
    if isinstance(told, tuple) and told and told[0] in PLAIN:
        return _plain(*told)
    kind, inside = told
    if isinstance(inside, tuple):
        return f"{kind.__name__}({_text(inside)})"
    return _container(kind, [repr(x) for x in inside.items] if isinstance(inside, Atoms) else [*map(_text, inside)])


def _plain(kind: type, *stored: Any) -> str:
    if kind is complex:
        return repr(complex(*map(float.fromhex, stored)))
    value = float.fromhex(stored[0]) if kind is float else stored[0]
    return _short.repr(value)


def _container(kind: type, items: list[str]) -> str:
    if hasattr(kind, "__array_interface__"):
        return f"an array of {ast.literal_eval(items[0])}, shape {ast.literal_eval(items[1])}"
    if issubclass(kind, (dict, types.MappingProxyType)):
        half = len(items) // 2
        return "{" + ", ".join(f"{k}: {v}" for k, v in zip(items[:half], items[half:], strict=True)) + "}"
    if kind in BRACKETS:
        comma = "," if kind is tuple and len(items) == 1 else ""
        return BRACKETS[kind].format(", ".join(items) + comma)
    return f"{kind.__name__}({', '.join(items)})"


def _object(value: Any) -> str:
    if value is MISSING:
        return "nothing"
    if value is GONE:
        return "an object that is gone"
    if isinstance(value, types.ModuleType):
        return f"module {value.__name__}"
    if isinstance(value, type):
        return f"class {value.__name__}"
    if isinstance(value, (types.FunctionType, types.BuiltinFunctionType, TracedFunction, functools.partial)):
        return getattr(value, "__name__", "a partial")
    if is_users(type(value)):
        return f"{a_kind(value)}"
    try:
        return _short.repr(value)
    except Exception:
        return f"{a_kind(value)}"

