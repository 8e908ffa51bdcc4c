"""A software device whose table instructions are off by an ulp, as the chip's may be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from flylab.emulator.program import device_tables

# Ulps that AMD's ISA documents allow: 1 of Float32 and Float16, 2**29 of Float64 (which are computed wider here).
ALLOWED = {"f16": 1 << 13, "f32": 1, "f64": 1 << 29}
NAMES = [f"v_{name}_{kind}" for kind in ALLOWED for name in ("rcp", "rsq", "sqrt", "exp", "log", "sin", "cos")
         if kind != "f64" or name in ("rcp", "rsq")] + ["v_rcp_iflag_f32"]


def _moved(compute: Callable[[Any], Any], ulps: int) -> Callable[[Any], Any]:
    """The instruction, its result `ulps` further from 0; 0, infinity and NaN stay."""
    def result(x: Any) -> Any:
        value = compute(x)
        size = value.call("fabs")
        plain = size.cmp("ogt", 0.0) & size.cmp("olt", float("inf"))
        integer = {"float": "i32", "double": "i64"}[value.type]
        return plain.select((value.bits(integer) + ulps).bits(value.type), value)

    return result


@contextmanager
def off_by(step: int) -> Iterator[None]:
    """Within it the results are `step` times what is allowed from the nearest number, away from 0 where it is above."""
    table = device_tables()[0]
    before = {name: table[name] for name in NAMES}
    for name, row in before.items():
        compute = _moved(row.compute, step * ALLOWED[name[-3:]])
        # The name is part of a handler's key: the usual handlers are kept.
        table[name] = replace(row, mnemonic=f"{name} off by {step}", compute=compute)
    try:
        yield
    finally:
        table.update(before)
