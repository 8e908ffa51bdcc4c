"""Names of the language that this version does not have yet: asking for one is an error that says so."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from flylab.errors import NotSupportedError, TraceError
from flylab.expr.unoffered import unoffered

PLANNED = frozenset(
    """
    BaseBackend CompiledFunction GPUTarget JitArgumentRegistry compile_backend_name from_c_void_p
    from_dlpack from_torch_tensor get_backend register_backend is_specializable_struct_type
    """.split()
)


class UnknownName(TraceError, AttributeError):
    """A name that a module of the language does not have."""


_CUDA = dict.fromkeys(("syncthreads", "sync_threads", "__syncthreads"), "the barrier of a block is fx.gpu.barrier()")
"""Names of CUDA, and what says the same here."""


def missing(module: str, name: str, known: dict[str, Any]) -> Exception:
    """The error for an unknown attribute: planned, misspelt, or nothing of the language."""
    if name in _CUDA:
        return unknown(module, name, known, _CUDA[name])
    if name.startswith("__"):
        return AttributeError(name)
    if name in PLANNED:
        return NotSupportedError(
            f"{module}.{name} is part of the language, but this version of flylab does not have it yet",
            hint="README, \"What this version has\", lists what is there",
        )
    return unoffered(module, name) or unknown(module, name, known)


def unknown(owner: str, name: str, known: Mapping[str, Any], elsewhere: str | None = None) -> UnknownName:
    """The error for a name that a module or class does not have: where it is, or the names that are close."""
    close = difflib.get_close_matches(name, [n for n in known if not n.startswith("_")], n=3)
    hint = elsewhere or (
        "did you mean " + " or ".join(f"{owner}.{c}" for c in close) + "?"
        if close
        else f"dir({owner}) lists what it has"
    )
    return UnknownName(f"{owner} has no name {name!r}", hint=hint)
