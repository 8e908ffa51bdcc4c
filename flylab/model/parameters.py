"""What the cycle model does not read off a listing or a data sheet: each parameter with its mark, and its source.

Marks as in `flylab.model.machine`: S published, M measured by others, D derived, ? fitted to published results. Which
results they are, and how well the others come out, is in notebooks/reference/model.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from flylab.model.machine import Figure

FITTED = "fitted to published results: notebooks/reference/model.md"
GUIDE = "AMD's CDNA3 ISA document and performance guides"


def _figure(value: float, unit: str, mark: str, source: str) -> Figure:
    found: Figure = field(default=Figure(value, unit, mark, source))
    return found


@dataclass(frozen=True)
class Parameters:
    """The parameters of `estimate`; `dataclasses.replace` makes others. They print as a list with their sources.

    >>> Parameters()
    Parameters()
    >>> print(str(Parameters()).split("\\n")[0])
    issue: 4 clocks [S], AMD's CDNA3 ISA document and performance guides: a wave of 64 lanes on 16 lanes
    """

    issue: Figure = _figure(4, "clocks", "S", GUIDE + ": a wave of 64 lanes on 16 lanes")
    transcendental: Figure = _figure(16, "clocks", "S", GUIDE)
    packed: Figure = _figure(8, "clocks", "D", "the published peak of 128 operations a clock of the vector units")
    matrix_gap: Figure = _figure(4, "slots", "S", "AMD's matrix instruction calculator: passes and 4 more")
    accesses_per_clock: Figure = _figure(4, "cache accesses", "D",
                                         "the 64 bytes of 16 lanes of 4 bytes, four of them at once")
    l1_bytes_per_clock: Figure = _figure(64, "bytes", "S", "AMD's CDNA3 white paper: of a compute unit")
    memory_latency: Figure = _figure(1000, "clocks", "M", "a friendly round trip to the L2 on MI355X, under load")
    """Of a load that the L1 does not have."""
    l1_latency: Figure = _figure(150, "clocks", "?", FITTED)
    lds_latency: Figure = _figure(58, "clocks", "?", FITTED)
    scalar_latency: Figure = _figure(257, "clocks", "?", FITTED)
    barrier: Figure = _figure(60, "clocks", "?", FITTED)
    bytes_in_flight: Figure = _figure(44_000, "bytes", "M", "measured on MI355X: of a compute unit")
    wave_launch: Figure = _figure(2.5, "clocks", "?", FITTED)
    """Between waves that one die starts."""
    hbm_read: Figure = _figure(0.79, "of the peak", "?", FITTED)
    hbm_write: Figure = _figure(0.577, "of the peak", "?", FITTED)
    infinity_cache: Figure = _figure(0.428, "of the peak", "?", FITTED)
    least: Figure = _figure(7.2, "microseconds", "?", FITTED)
    """Between two launches at least, however little they do."""
    overlap: Figure = _figure(6, "(power)", "?", FITTED)
    """How well resources overlap: their times are added as a norm of this power."""

    def __str__(self) -> str:
        return "\n".join(f"{each.name}: {getattr(self, each.name)}, {getattr(self, each.name).source}"
                         for each in fields(self))

    def __repr__(self) -> str:
        changed = [each.name for each in fields(self) if getattr(self, each.name) != each.default]
        return f"Parameters({', '.join(f'{name}={getattr(self, name)!r}' for name in changed)})"

    def unknown(self) -> list[str]:
        """The names of those that are not known."""
        return [each.name for each in fields(self) if getattr(self, each.name).mark == "?"]
