"""The operation table: what a row says, and the types its operands are written in.

A row is a mnemonic, a signature and a function. The signature reads `results = sources`, each a type below:

    b16 b32 b64        integers, or bits
    f16 f32 f64        floats; an f16 is computed in f32 (exact for + - * / sqrt, then rounded once), f16d in f64,
                       and f16b is left as it is: to f32, a signalling NaN would become quiet
    mask               a bit for each lane, in a pair of scalar registers; in the function one i1 a lane
    .scc .vcc .exec    implied registers, which the text does not name (.scc an i1, the others a mask or a b64)
    .lane              the number of the lane
    @t                 the old value of the first result, as type t
    f16+ b16+          as f16, b16, with the result's upper half kept instead of cleared
    f16^               as f16, with the result in the upper half and the lower kept

The function takes the sources and returns the result, or a tuple of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from flylab.emulator.handlers.ir import width
from flylab.locks import cached_property

SCALAR_FAMILY, VECTOR_FAMILY, PACKED_FAMILY, MIXED_FAMILY = "scalar", "vector", "packed", "mixed"


@dataclass(frozen=True)
class Type:
    """An operand type: the registers it takes, the IR type of its bits and of its value."""

    name: str
    registers: int
    bits: str
    value: str

    @property
    def is_float(self) -> bool:
        return self.bits in ("half", "float", "double")

    @property
    def integer(self) -> str:
        """The integer type as wide as its bits."""
        return f"i{width(self.bits)}"


TYPES = {t.name: t for t in (
    Type("b16", 1, "i16", "i16"), Type("b32", 1, "i32", "i32"), Type("b64", 2, "i64", "i64"),
    Type("f16", 1, "half", "float"), Type("f16d", 1, "half", "double"), Type("f16b", 1, "half", "half"),
    Type("f32", 1, "float", "float"), Type("f64", 2, "double", "double"), Type("f16+", 1, "half", "float"),
    Type("f16^", 1, "half", "float"), Type("b16+", 1, "i16", "i16"), Type("f16d+", 1, "half", "double"),
    Type("mask", 2, "i64", "i1"),
)}
IMPLIED = (".scc", ".vcc", ".exec", ".lane")


@dataclass(frozen=True)
class Row:
    """One operation of the table; `clamped` is its function where the text says `clamp` and the result is no float."""

    mnemonic: str
    family: str
    results: tuple[str, ...]
    sources: tuple[str, ...]
    compute: Callable[..., Any]
    clamped: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        for name in (*self.results, *self.sources):
            if name.lstrip("@") not in TYPES and name not in IMPLIED:
                raise ValueError(f"{self.mnemonic}: unknown operand type {name!r}")

    @cached_property
    def named_results(self) -> tuple[str, ...]:
        """The types of the results that the text names."""
        return tuple(t for t in self.results if t[0] != ".")

    @cached_property
    def named_sources(self) -> tuple[str, ...]:
        """The types of the sources that the text names."""
        return tuple(t for t in self.sources if t[0] not in ".@")

    @cached_property
    def clamps_floats(self) -> bool:
        """True where `clamp` holds the result between 0 and 1."""
        return any(t in TYPES and TYPES[t].is_float for t in self.results)

    @cached_property
    def uses_floats(self) -> bool:
        """True where a handler depends on the float mode."""
        return any(t.lstrip("@") in TYPES and TYPES[t.lstrip("@")].is_float for t in (*self.results, *self.sources))


def rows(family: str, entries: Iterable[tuple[Any, ...]]) -> dict[str, Row]:
    """Rows from tuples (mnemonics, signature, function[, function under clamp]); several mnemonics share a row."""
    table: dict[str, Row] = {}
    for names, signature, compute, *clamped in entries:
        results, _, sources = signature.partition("=")
        for name in names.split():
            if name in table:
                raise ValueError(f"two rows for {name}")
            table[name] = Row(name, family, tuple(results.split()), tuple(sources.split()), compute, *clamped)
    return table
