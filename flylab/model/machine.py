"""What the model knows of the products: peak rates, bandwidths, clocks; each figure with its mark and its source.

Marks: "S" published by AMD, "M" measured on the chip by others, "D" derived, "?" not known: a parameter to be fitted.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from flylab.errors import FlylabError
from flylab.targets import Target, target

SHEET = "AMD's data sheet of the product"
PAPER = "AMD's CDNA3 and CDNA4 white papers"


@dataclass(frozen=True)
class Figure:
    """One figure: its value, its unit, how sure it is (S, M, D or ?), and where it is from."""

    value: float
    unit: str
    mark: str
    source: str

    def __post_init__(self) -> None:
        if self.mark not in ("S", "M", "D", "?") or not self.source:
            raise ValueError(f"a figure without mark or source: {self}")

    def __str__(self) -> str:
        return f"{self.value:g} {self.unit} [{self.mark}]"


# Floating-point (or integer) operations per clock of a compute unit, dense. "vector f32" is fused multiply-adds of the
# vector units. Source: AMD's data sheets; peak = this x compute units x clock.
OPERATIONS = MappingProxyType({
    "gfx942": MappingProxyType({"f64": 256, "f32": 256, "xf32": 1024, "f16": 2048, "bf16": 2048, "fp8": 4096,
                                "i8": 4096, "vector f32": 128}),
    "gfx950": MappingProxyType({"f64": 128, "f32": 256, "f16": 4096, "bf16": 4096, "fp8": 8192, "i8": 8192,
                                "fp6": 16384, "fp4": 16384, "vector f32": 128})})


@dataclass(frozen=True)
class Product:
    """A product: its chip, compute dies, clocks in MHz, and bandwidths in bytes a second of the whole device."""

    name: str
    chip: Target
    dies: int
    peak: Figure
    sustained: Figure
    hbm: Figure
    infinity_cache: Figure
    infinity_cache_bytes: int = 256 << 20
    l2_bytes_per_clock: int = 16 * 128
    """Of one die: 16 channels of 128 bytes. Source: AMD's CDNA3 white paper."""

    def __str__(self) -> str:
        return (f"{self.name} ({self.chip}): {self.chip.compute_units} compute units on {self.dies} dies, clock "
                f"{self.peak}, sustained {self.sustained}, HBM {self.hbm}, Infinity Cache {self.infinity_cache}")

    __repr__ = __str__

    def clock(self, clock: str | float = "peak") -> Figure:
        """The clock by name (`peak` or `sustained`), or a number of MHz.

        >>> PRODUCTS["MI300X"].clock("peak").value
        2100

        Raises `FlylabError` for another word, and for a number that is not positive.
        """
        if clock in ("peak", "sustained"):
            return self.peak if clock == "peak" else self.sustained
        if isinstance(clock, str) or not clock > 0:
            raise FlylabError(f"no clock {clock!r}", hint='"peak", "sustained", or a number of MHz')
        return Figure(clock, "MHz", "D", "given by the caller")


_LEAST = "the least with which the published 3378 TFLOP/s of fp8 can be"
_SUSTAINED = "AMD measured 1.1 to 1.23 GHz under matrix load on MI300X at 750 W"
PRODUCTS = {p.name: p for p in (
    Product("MI300X", target("gfx942"), 8, Figure(2100, "MHz", "S", SHEET), Figure(1200, "MHz", "M", _SUSTAINED),
            Figure(5.3e12, "B/s", "S", SHEET), Figure(17.2e12, "B/s", "S", PAPER)),
    Product("MI350X", target("gfx950"), 8, Figure(2200, "MHz", "S", SHEET),
            Figure(1611, "MHz", "?", "as on MI355X; not published"), Figure(8.0e12, "B/s", "S", SHEET),
            Figure(17.2e12, "B/s", "?", "as on MI300X; not published")),
    Product("MI355X", target("gfx950"), 8, Figure(2400, "MHz", "S", SHEET),
            Figure(1611, "MHz", "D", _LEAST), Figure(8.0e12, "B/s", "S", SHEET),
            Figure(17.2e12, "B/s", "?", "as on MI300X; not published")))}
DEFAULT_PRODUCT = {"gfx942": "MI300X", "gfx950": "MI350X"}


def product(name: str | Target | Product) -> Product:
    """A product by its name, or the usual one of a chip.

    >>> product("MI355X").peak.value, product("gfx950").name
    (2400, 'MI350X')

    Raises `FlylabError` for one that is not known.
    """
    if isinstance(name, Product):
        return name
    found = PRODUCTS.get(DEFAULT_PRODUCT.get(str(name), str(name)))
    if found is None:
        raise FlylabError(f"unknown product {str(name)!r}",
                          hint=f"the model knows {', '.join(PRODUCTS)}, and their chips")
    return found
