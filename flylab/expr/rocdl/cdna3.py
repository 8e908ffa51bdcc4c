"""What gfx942 (CDNA3) brought, by its chip's name: `fx.rocdl.cdna3`. gfx950 has it too."""

from __future__ import annotations

from typing import Any

from flylab.expr.planned import missing
from flylab.expr.rocdl import schedule


def s_waitcnt(vmcnt: Any = None, lgkmcnt: Any = None, expcnt: Any = None) -> None:
    """Wait until at most so many memory operations are open: `rocdl.s_waitcnt` with its counters by position too."""
    schedule.s_waitcnt(vmcnt=vmcnt, lgkmcnt=lgkmcnt, expcnt=expcnt)


def __getattr__(name: str) -> Any:
    raise missing("fx.rocdl.cdna3", name, globals())
