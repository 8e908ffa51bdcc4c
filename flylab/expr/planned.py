"""Names that the language does not have: asking for one is an error that says why, or which names are close."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from flylab.errors import TraceError
from flylab.expr.unoffered import unoffered


class UnknownName(TraceError, AttributeError):
    """A name that a module of the language does not have."""


_FLYC = ("compile", "from_c_void_p", "from_dlpack", "from_torch_tensor", "jit", "kernel", "JitArgumentRegistry")
_ELSEWHERE = {
    **dict.fromkeys(("syncthreads", "sync_threads", "__syncthreads"), "the barrier of a block is fx.gpu.barrier()"),
    **{name: f"it is flyc.{name}: import flylab.compiler as flyc" for name in _FLYC},
}
"""Names of CUDA, and of `flyc`, and what says the same here."""


def missing(module: str, name: str, known: dict[str, Any]) -> Exception:
    """The error for an unknown attribute: published and not offered, misspelt, or nothing of the language."""
    if name in _ELSEWHERE:
        return unknown(module, name, known, _ELSEWHERE[name])
    if name.startswith("__"):
        return AttributeError(name)
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
