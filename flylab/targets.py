"""The chips that flylab compiles for, one row each.

Source of the figures: AMD's CDNA3 and CDNA4 ISA documents and data sheets, as collected in LLVM 22's AMDGPU target.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from flylab.errors import FlylabError, TraceError


@dataclass(frozen=True)
class Target:
    """One chip: identifiers, and the limits that the compiler, the software device and the views share."""

    arch: str
    products: tuple[str, ...]
    compute_units: int
    simds_per_cu: int
    waves_per_simd: int
    wave_size: int
    vgprs_per_lane: int
    vgpr_granule: int
    lds_bytes: int
    lds_granule: int
    max_workgroup: int
    ocp_fp8: bool
    """True where the fp8 instructions use the OCP encodings, False where they use FNUZ."""

    def __str__(self) -> str:
        return self.arch

    @property
    def float8(self) -> dict[str, str]:
        """The 8-bit floats that the chip has instructions for, by what these call them.

        >>> target("gfx942").float8
        {'fp8': 'Float8E4M3FNUZ', 'bf8': 'Float8E5M2FNUZ'}
        """
        kinds = ("E4M3FN", "E5M2") if self.ocp_fp8 else ("E4M3FNUZ", "E5M2FNUZ")
        return dict(zip(("fp8", "bf8"), [f"Float8{kind}" for kind in kinds], strict=True))


TARGETS = {
    t.arch: t
    for t in (
        Target("gfx942", ("MI300X", "MI300A", "MI325X"), 304, 4, 8, 64, 512, 8, 64 * 1024, 512, 1024, False),
        Target("gfx950", ("MI350X", "MI355X"), 256, 4, 8, 64, 512, 8, 160 * 1024, 1280, 1024, True),
    )
}
DEFAULT_ARCH = "gfx942"
(WAVE_SIZE,) = {each.wave_size for each in TARGETS.values()}
"""The threads of a wave, on every chip."""


def target(arch: str | Target) -> Target:
    """The row of a chip, by its LLVM name.

    >>> target("gfx950").lds_bytes
    163840

    Raises `FlylabError` for a chip that flylab does not compile for.
    """
    if isinstance(arch, Target):
        return arch
    try:
        return TARGETS[arch]
    except (KeyError, TypeError):
        raise FlylabError(f"unknown chip {arch!r}", hint=meant(str(arch)) or f"flylab knows {known_chips()}") from None


def known_chips() -> str:
    """Every chip with a product that has it, for a sentence."""
    return ", ".join(f"{t.arch} ({t.products[0]})" for t in TARGETS.values())


def meant(name: str) -> str | None:
    """The chip that a name stands for that is a product's, its beginning, or in capitals; None where it is none's.

    >>> meant("mi300"), meant("GFX950"), meant("gfx90a")
    ('mi300 is gfx942', 'GFX950 is gfx950', None)
    """
    asked = name.lower()
    found = [t.arch for t in TARGETS.values()
             if asked == t.arch or len(asked) > 4 and any(p.lower().startswith(asked) for p in t.products)]
    return f"{name} is {found[0]}" if len(found) == 1 else None


def lds_needed(variables: Iterable[tuple[int, int]]) -> int:
    """The bytes of LDS that LLVM needs at most for variables of (bytes, alignment) each: the best aligned come first.

    It aligns each to its size, rounded up to a power of 2, as far as 16. Source: LLVM 22, AMDGPULowerModuleLDSPass.

    >>> lds_needed([(3, 1), (64, 16), (8, 128)])
    83
    """
    end = 0
    aligned = [(max(align, min(16, 1 << (size - 1).bit_length())), size) for size, align in variables if size]
    for align, size in sorted(aligned, reverse=True):
        end = -(-end // align) * align + size
    return end


def check_lds(lds_bytes: int, chip: Target, what: str) -> None:
    """Raises `TraceError`, which begins with `what`, for more bytes of LDS than a block has on a chip.

    >>> check_lds(65_536, target("gfx942"), "two tiles have 65536 bytes")
    """
    if lds_bytes > chip.lds_bytes:
        limits = " and ".join(f"{t.lds_bytes} on {t} ({t.products[0]})" for t in TARGETS.values())
        raise TraceError(
            f"{what}, more than the {chip.lds_bytes} of LDS that a block has on {chip}",
            hint=f"it has {limits}: use smaller tiles or fewer stages, or let buffers share bytes (fx.union)",
        )
