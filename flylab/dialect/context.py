"""The process-wide MLIR context with the Fly dialect loaded, and the lock that guards it.

One context for all compilations: making one costs milliseconds, and types remembered by `flylab.dialect.types` belong
to it. `entered()` is the only way in: leaving a context entered at exit ends the process.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flylab import installing
from flylab.errors import ToolchainError
from flylab.locks import fork_safe_lock

CREATED = ("arith", "func", "gpu", "llvm", "math", "rocdl", "scf", "ub", "vector", "irdl")
"""The dialects whose operations tracing and our passes create."""

LONGEST = 10
"""Seconds that Python waits at its end for what another thread does with MLIR, and no thread begins anything then: the
bindings would end the process with an error where a thread is stopped in them."""

_lock = fork_safe_lock()
_context: Any = None
_declaration: Any = None  # The IRDL module: dropping it would drop the dialect's definitions.


def _make() -> Any:
    global _context, _declaration
    atexit.register(_lock.acquire, timeout=LONGEST)
    try:
        from mlir import ir
        from mlir._mlir_libs import _mlir
        from mlir.dialects import irdl
    except ImportError as error:
        raise missing(error) from error
    from flylab.dialect.operations import irdl_text

    _mlir.globals.append_dialect_search_prefix("flylab.dialect.bindings")
    # Loading every dialect that MLIR has would cost 8 ms; a parser or a pass loads what else it needs.
    context = ir.Context(load_on_create_dialects=[])
    context.enable_multithreading(False)
    for name in CREATED:
        context.get_dialect_descriptor(name)
    with context, ir.Location.unknown():
        _declaration = ir.Module.parse(irdl_text())
        irdl.load_dialects(_declaration)
    _context = context


def missing(error: ImportError) -> ToolchainError:
    """What is raised where MLIR cannot be imported."""
    return ToolchainError(f"the MLIR Python bindings cannot be imported ({error})",
                          hint=f"{installing.needed(*installing.COMPILER)} "
                               "(Linux and macOS, Python 3.11 to 3.13)")


@contextmanager
def entered() -> Iterator[Any]:
    """Enter the context (and take its lock: one compilation at a time in a process)."""
    with _lock:
        if _context is None:
            _make()
        from mlir import ir

        with _context, ir.Location.unknown():
            yield _context
