"""Functions of `Value`s run on whole arrays, outside any kernel: 16 elements at a time, compiled for this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from flylab.emulator.handlers.ir import Builder, Value, full_type
from tests.emulator.toolchain import Host, aligned

LANES = 16
_NUMPY = {"i16": "u2", "i32": "u4", "i64": "u8", "half": "f2", "float": "f4", "double": "f8"}


class Vectorised:
    """`function` of sources of these element types, with a result of element type `result`."""

    def __init__(self, function: Callable[..., Any], sources: tuple[str, ...], result: str):
        self.sources, self.result = sources, result
        b = Builder()
        b.jump("step")
        b.label("step")
        b.do("%at = phi i64 [ 0, %entry ], [ %next, %step ]")
        values = []
        for n, type_ in enumerate(sources):
            pointer = b.let(f"getelementptr {type_}, ptr %x{n}, i64 %at", "ptr").name
            values.append(b.load(pointer, type_, LANES, 1))
        found: Value = function(*values)
        b.store(found, b.let(f"getelementptr {result}, ptr %r, i64 %at", "ptr").name, 1)
        assert found.type == result and full_type(found.type, found.lanes) == f"<{LANES} x {result}>"
        b.do(f"%next = add i64 %at, {LANES}")
        b.branch(b.let("icmp uge i64 %next, %count", "i1"), "done", "step")
        b.label("done")
        b.do("ret void")
        arguments = ", ".join([*(f"ptr %x{n}" for n in range(len(sources))), "ptr %r", "i64 %count"])
        self.host = Host(b.function("f", f"void @({arguments})"))

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """The results; arrays are read as the sources' types, or as their bits."""
        count = arrays[0].size
        padded = [aligned(np.resize(a.view(_NUMPY[t]), -(-count // LANES) * LANES))
                  for a, t in zip(arrays, self.sources, strict=True)]
        found = np.zeros(-(-count // LANES) * LANES, _NUMPY[self.result])
        self.host.call("f", [*padded, found], found.size)
        return found[:count]
