"""The roofline of a product: what an arithmetic intensity allows, by its peak rate and its memory."""

from __future__ import annotations

from dataclasses import dataclass

from flylab.errors import FlylabError
from flylab.model.machine import OPERATIONS, Figure, Product, product


@dataclass(frozen=True)
class Place:
    """Where a run lies: operations per byte, the rate attainable there (operations a second), and what bounds it."""

    intensity: float
    attainable: float
    bound_by: str

    def __str__(self) -> str:
        return f"{self.intensity:.4g} operations a byte: at most {self.attainable / 1e12:.4g} T/s (modelled), " \
               f"bound by {self.bound_by}"

    __repr__ = __str__


@dataclass(frozen=True)
class Roofline:
    """Peak rate in operations a second, bandwidths in bytes a second, and the ridges between them, all modelled."""

    product: Product
    dtype: str
    clock: Figure
    peak: float
    bandwidths: dict[str, float]

    @property
    def ridges(self) -> dict[str, float]:
        """Operations per byte from which on a memory no longer bounds."""
        return {name: self.peak / bandwidth for name, bandwidth in self.bandwidths.items()}

    def place(self, operations: float, bytes: float, memory: str = "HBM") -> Place:
        """Where so many operations on so many bytes of a memory lie.

        >>> roofline("MI300X", "f16").place(2 * 4096**3, 3 * 2 * 4096**2).bound_by
        'f16 peak'

        Raises `FlylabError` for a memory without a bandwidth here, and for counts that are not positive.
        """
        if memory not in self.bandwidths or operations <= 0 or bytes <= 0:
            raise FlylabError(f"no place for {operations} operations on {bytes} bytes of {memory!r}",
                              hint=f"both are positive, and the memory is one of {', '.join(self.bandwidths)}")
        intensity = operations / bytes
        by_memory = intensity * self.bandwidths[memory]
        return Place(intensity, min(by_memory, self.peak), memory if by_memory < self.peak else f"{self.dtype} peak")

    def __str__(self) -> str:
        ridges = ", ".join(f"{name} at {ridge:.4g} operations a byte" for name, ridge in self.ridges.items())
        return (f"{self.product.name}, {self.dtype}: peak {self.peak / 1e12:.4g} T/s, modelled at {self.clock}; "
                f"ridges: {ridges}")

    __repr__ = __str__


def roofline(chip: str | Product, dtype: str, clock: str | float = "peak") -> Roofline:
    """The roofline of a product (or of a chip's usual one) for a type of number, at a clock.

    `dtype` is one of "f64", "f32", "xf32", "f16", "bf16", "fp8", "i8", "fp6", "fp4" of the matrix units, or
    "vector f32". Peak = operations per clock of a compute unit x compute units x clock. Source: AMD's data sheets.

    >>> print(roofline("MI300X", "f16"))
    MI300X, f16: peak 1307 T/s, modelled at 2100 MHz [S]; ridges: HBM at 246.7 operations a byte, \
Infinity Cache at 76.01 operations a byte, L2 at 38 operations a byte

    Raises `FlylabError` for a type that the chip has no matrix instructions for.
    """
    known = product(chip)
    rates = OPERATIONS[known.chip.arch]
    if dtype not in rates:
        raise FlylabError(f"{known.name} has no peak for {dtype!r}", hint=f"it has {', '.join(rates)}")
    found = known.clock(clock)
    hertz = found.value * 1e6
    bandwidths = {"HBM": known.hbm.value, "Infinity Cache": known.infinity_cache.value,
                  "L2": known.dies * known.l2_bytes_per_clock * hertz}
    return Roofline(known, dtype, found, rates[dtype] * known.chip.compute_units * hertz, bandwidths)
