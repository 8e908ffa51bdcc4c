"""A function as something to take a digest of: its code, its text, and the names that make it unfit for that."""

from __future__ import annotations

import linecache
import types
from typing import Any

from flylab.compiler import source as sources
from flylab.compiler.cells import SHARED
from flylab.compiler.reads import imports_in, names_in, nested
from flylab.errors import TraceError

UNFIT = {
    name: why
    for why, names in {
        "which does something while it is traced": "print input open breakpoint display",
        "through which it reaches names that no text shows":
            "eval exec compile globals locals vars dir getattr hasattr setattr delattr getmembers attrgetter "
            "methodcaller get_type_hints __subclasses__ __dict__ __import__ import_module",
        "which reads what can change at any time":
            "environ getenv time time_ns perf_counter perf_counter_ns monotonic now today urandom random rand randn "
            "randint default_rng seed uuid1 uuid4 getpid stdin stdout stderr",
    }.items()
    for name in names.split()
}
"""Names that a traced function, or one that it calls, must not read if its compilation is to be kept: a process that
reads the compilation from disk does not trace."""

PURE = frozenset(
    "__future__ abc array argparse ast bisect builtins cmath collections contextlib copy dataclasses decimal enum "
    "fractions functools heapq inspect itertools math numbers operator pathlib re statistics string struct textwrap "
    "types typing typing_extensions warnings _operator _functools _collections _struct _bisect _heapq posixpath".split()
)
"""The modules of Python whose functions give the same for the same."""


def is_generated(function: types.FunctionType) -> bool:
    """Whether a dataclass, or another class of a library, wrote a method: it does what the class says."""
    return function.__code__.co_filename == "<string>" and function.__name__[:2] == "__"


def unfit(function: types.FunctionType) -> str | None:
    """Why a function must be traced anew in each process, as a sentence; None where it need not."""
    code, name = function.__code__, function.__name__
    if is_generated(function):
        return None
    found = next((word for word in sorted(names_in(code)) if word in UNFIT and word not in function.__globals__), None)
    if found:
        return f"'{name}' names '{found}', {UNFIT[found]}"
    outside = next((module for level, module in imports_in(code) if level or not is_pure(module)), None)
    return outside and f"'{name}' imports '{outside}' while it is traced"


def is_pure(module: str) -> bool:
    """Whether what a module has is known by the releases of Python and flylab."""
    top = module.partition(".")[0]
    return top in PURE or top == "flylab"


def parts(code: types.CodeType) -> tuple[Any, ...]:
    """All of a code object but its file: what it does, and the lines and columns where it does it."""
    return (
        code.co_qualname, code.co_firstlineno, code.co_flags, code.co_argcount, code.co_posonlyargcount,
        code.co_kwonlyargcount, code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars,
        code.co_linetable, code.co_exceptiontable, tuple(_constant(c) for c in code.co_consts),
    )  # fmt: skip


def _constant(value: Any) -> Any:
    if isinstance(value, types.CodeType):
        return parts(value)
    if isinstance(value, frozenset):  # in the order of hashes, which differ from process to process
        return "frozenset", tuple(sorted(repr(_constant(v)) for v in value))
    return tuple(map(_constant, value)) if isinstance(value, tuple) else repr(value)


def written(function: types.FunctionType) -> tuple[str, str | None]:
    """The file of a function, and its text, of which tracing makes what it runs; no text where it cannot be had."""
    code = function.__code__
    file = code.co_filename
    if file in SHARED and not is_generated(function):
        try:
            source = sources.read(function)
        except TraceError:
            return file, None
        return source.file, source.text
    linecache.checkcache(file)
    lines = linecache.getlines(file, function.__globals__)
    last = _last_line(code)
    return file, "".join(lines[code.co_firstlineno - 1 : last]) if last <= len(lines) else None


def _last_line(code: types.CodeType) -> int:
    inner = [_last_line(c) for c in nested(code)]
    return max([code.co_firstlineno, *(end for _, end, _, _ in code.co_positions() if end), *inner])

