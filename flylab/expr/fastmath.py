"""Fast-math flags: what float arithmetic may assume and reorder, as a scope or for one operation.

Without them an operation is IEEE's, rounded by itself: `a * b + c` is two roundings.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from flylab.errors import TraceError
from flylab.expr.state import active


class FastMathFlags(enum.IntFlag):
    """What float operations may do beyond IEEE; joined by `|`. Source: MLIR's `#arith.fastmath`, LLVM's LangRef.

    reassoc: sums and products in another order. nnan, ninf: no NaN, no infinity comes in or out. nsz: the sign of zero
    is free. arcp: a division may be a product with the reciprocal. contract: a product and a sum may be one fma. afn:
    functions may be approximate. fast: all of them.

    >>> FastMathFlags.nnan | FastMathFlags.contract
    <FastMathFlags.nnan|contract: 34>
    """

    none = 0
    reassoc = 1
    nnan = 2
    ninf = 4
    nsz = 8
    arcp = 16
    contract = 32
    afn = 64
    fast = 127


def flags_of(given: Any) -> FastMathFlags:
    """Flags from themselves, from MLIR's flags or attribute, or from text: one name, or several joined by `,` or `|`.

    >>> flags_of("contract, nsz") == FastMathFlags.contract | FastMathFlags.nsz
    True

    Raises `TraceError` for what names no flags.
    """
    if isinstance(given, enum.IntFlag) and 0 <= given <= FastMathFlags.fast:
        return FastMathFlags(int(given))
    text = given if isinstance(given, str) else str(given) if type(given).__module__.startswith("mlir.") else ""
    names = re.split(r"[,|\s]+", text.removeprefix("#arith.fastmath<").removesuffix(">").strip())
    flags = FastMathFlags.none
    for name in names:
        if name not in FastMathFlags.__members__:
            known = ", ".join(FastMathFlags.__members__)
            raise TraceError(f"{given!r} is no fast-math flag", hint=f"the flags are {known}; join them with |")
        flags |= FastMathFlags[name]
    return flags


@contextmanager
def fastmath(flags: Any) -> Iterator[None]:
    """A scope in which every float operation has these flags: `with fx.arith.fastmath("contract"):`.

    An inner scope's flags take the place of the outer one's; a kernel that is launched in a scope is in it too.
    Conversions and choices are exact in any scope. Raises `TraceError` for what names no flags, and outside of a kernel
    or launcher, where there would be nothing to hold for.
    """
    chosen = flags_of(flags)
    if active.function is None:
        raise TraceError(
            "fastmath has a meaning inside an @flyc.kernel or @flyc.jit function only",
            hint="open the scope in the kernel, around the arithmetic that it is for",
        )
    with within(chosen):
        yield


@contextmanager
def within(explicit: Any) -> Iterator[None]:
    """A scope of the flags that one call was given; None leaves those of the scope around it."""
    before = active.fastmath
    active.fastmath = before if explicit is None else flags_of(explicit)
    try:
        yield
    finally:
        active.fastmath = before


def attributes(explicit: Any = None) -> dict[str, Any]:
    """The attributes that carry the flags of a float operation of `arith` or `math`: {} where it has none.

    `explicit` are the operation's own flags, which take the place of the scope's; None for the scope's.
    """
    flags = active.fastmath if explicit is None else flags_of(explicit)
    if not flags:
        return {}
    from mlir import ir

    names = "fast" if flags == FastMathFlags.fast else ",".join(f.name or "" for f in FastMathFlags if f & flags)
    return {"fastmath": ir.Attribute.parse(f"#arith.fastmath<{names}>")}
