"""fly-align-pointer-arguments: where pointers lie among a kernel's arguments, and that a launch puts them there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from tests.samples import kernel_of

PARAMETERS = "A: fx.Tensor, n: fx.Int32, B: fx.Tensor, C: fx.Tensor"
BUFFERS = (
    "i = fx.thread_idx.x\n"
    "a, b = (fx.rocdl.make_buffer_tensor(t) for t in (A, B))\n"
    "C[i] = a[i] + b[i] * n.to(fx.Float32)"
)
PLAIN = "i = fx.thread_idx.x\nC[i] = A[i] + B[i] * n.to(fx.Float32)"


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("body, offsets", [(BUFFERS, [0, 8, 16, 32]), (PLAIN, [0, 8, 16, 24])])
def test_pointers_of_descriptors_lie_at_16_bytes(chip: str, body: str, offsets: list[int]) -> None:
    launch: Any = kernel_of(body, PARAMETERS)["launch"]
    a, b, c = (np.arange(64, dtype=np.float32) + k for k in range(3))
    with flylab.use(chip):
        compiled = flyc.compile(launch, a, 3, b, c)
        launch(a, 3, b, c)
    arguments = [x for x in compiled.isa.kernels["k"].args if not x.hidden]
    assert [x.offset for x in arguments] == offsets
    assert [x.kind for x in arguments] == ["global_buffer", "by_value", "global_buffer", "global_buffer"]
    assert (c == a + b * 3).all()
