"""What the published wheel takes in silence, or dies of, is refused here: at its line, and with a way out.

One row for each fault on record that a kernel can show. Faults of the language (a `return` in a runtime `if`, steps
that count down) are mended instead: tests/compiler; those of the algebra: tests/layout/test_peer.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.errors import FlylabError
from tests.samples import kernel_of


class Fault(NamedTuple):
    """A kernel's body, the line that is wrong, words of the message and of the hint, the chip, and the block."""

    body: str
    line: int
    message: str
    hint: str
    arch: str = "gfx942"
    block: Any = 64


FRAGMENTS = (
    "atom = fx.make_mma_atom(fx.rocdl.MFMA({op}))\n"
    "a, b = (fx.make_rmem_tensor({n}, {kind}) for _ in range(2))\n"
    "c = fx.make_rmem_tensor(4, fx.Float32)\n"
    "for t in (a, b, c): t.fill(0)\n"
    "fx.gemm(atom, c, a, b, c)"
)
TILED = (
    "atom = fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)\n"
    "tiled = fx.make_tiled_copy_tv(atom, fx.make_layout((16, 8), (8, 1)), fx.make_layout((1, 1), (1, 1)))\n"
    "tile = fx.make_view(fx.get_iter(A), fx.make_layout((16, 8), (8, 1)))\n"
    "part = tiled.get_slice(fx.thread_idx.x).partition_S(tile)"
)
FAULTS = {
    "a 128-bit copy of a source of stride 64": Fault(
        "src = fx.make_view(fx.get_iter(A), fx.make_layout(4, 64))\n"
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32), src, fx.make_rmem_tensor(4, fx.Float32))",
        2, "moves 4 consecutive elements", "stride 1"),
    "a copy whose width is not the fragment's": Fault(
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32), A, fx.make_rmem_tensor(2, fx.Float32))",
        1, "the atom moves 4", "64 bits"),
    "f32 into a fragment of f16": Fault(
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), A, fx.make_rmem_tensor(64, fx.Float16))",
        1, "Float16", "convert"),
    "registers that nothing was stored to": Fault(
        "r = fx.make_rmem_tensor(1, fx.Float32)\nA[0] = r[0]", 2, "nothing was stored to it", "fill it first"),
    "a sum in a loop that was never begun": Fault(
        "r = fx.make_rmem_tensor(1, fx.Float32)\nfor i in range(4):\n    r[0] = r[0] + A[i]\nA[0] = r[0]", 3,
        "nothing was stored to it", "fill it first"),
    "a product in a loop into registers never filled": Fault(
        FRAGMENTS.format(op="16, 16, 16, fx.Float16", n=4, kind="fx.Float16").replace("(a, b, c)", "(a, b)").replace(
            "fx.gemm", "for i in range(4):\n    fx.gemm"), 6, "nothing was stored to it", "fill it first"),
    "80 KB of LDS on gfx942": Fault(
        "fx.SharedAllocator().allocate(fx.Array[fx.Uint8, 80_000])", 1, "80000", "163840 on gfx950"),
    "170 KB of LDS on gfx950": Fault(
        "fx.SharedAllocator().allocate(fx.Array[fx.Uint8, 170_000])", 1, "170000", "65536 on gfx942", "gfx950"),
    "a block of 2048 threads": Fault(
        "A[0] = 1.0", 1, "2048 threads, gfx942 runs at most 1024", "smaller block", block=2048),
    "a tiled copy for 128 threads in a block of 64": Fault(TILED, 4, "128 threads", "block=128"),
    "OCP fp8 on gfx942": Fault(
        FRAGMENTS.format(op="16, 16, 32, fx.Float8E4M3FN", n=8, kind="fx.Float8E4M3FN"), 5, "compiled for gfx942",
        "Float8E4M3FNUZ"),
    "FNUZ fp8 on gfx950": Fault(
        FRAGMENTS.format(op="16, 16, 32, fx.Float8E4M3FNUZ", n=8, kind="fx.Float8E4M3FNUZ"), 5, "compiled for gfx950",
        "Float8E4M3FN", "gfx950"),
    "an MFMA of gfx950 on gfx942": Fault(
        FRAGMENTS.format(op="16, 16, 32, fx.Float16", n=8, kind="fx.Float16"), 5, "compiled for gfx942",
        'flylab.use("gfx950")'),
    "a copy of gfx950 on gfx942": Fault(
        "lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).view(fx.make_layout((4, 64), (1, 4)))\n"
        "rows = fx.logical_divide(fx.rocdl.make_buffer_tensor(A), fx.make_layout(4, 1))\n"
        "fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopyLDS128b(), fx.Float32), rows, lds)", 3, "gfx942", ""),
    "a transposing read on gfx942": Fault(
        "lds = fx.SharedAllocator().allocate(fx.Array[fx.Float16, 4]).view()\n"
        "fx.copy(fx.make_copy_atom(fx.rocdl.cdna4.LDSReadTrans(16, 64), fx.Float16), lds, "
        "fx.make_rmem_tensor(4, fx.Float16))", 2, "gfx942", ""),
    "an MFMA of a type that there is none of": Fault(
        "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Int32))", 1, "MFMA(16, 16, 16, Int32)", ""),
    "a shape that does not divide": Fault("fx.shape_div(12, 5)", 1, "5", ""),
    "a mode out of range": Fault("fx.get(fx.make_shape(4, 8), 2)", 1, "2", ""),
    "an indivisible composition": Fault(
        "fx.composition(fx.make_layout((6, 4), (1, 8)), fx.make_layout(4, 4))", 1, "4", ""),
    "an indivisible recast": Fault("fx.recast_layout(fx.make_layout((3, 8), (1, 3)), 8, 16)", 1, "3", ""),
}


@pytest.mark.parametrize("name", FAULTS)
def test_refused_at_its_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fault = FAULTS[name]
    monkeypatch.setenv("FLYLAB_DEVICE", f"emulated:{fault.arch}")
    launch = kernel_of(fault.body, block=fault.block)["launch"]
    with pytest.raises(FlylabError) as caught:
        flyc.compile(launch, np.zeros(64, np.float32))
    error = caught.value
    assert fault.message in error.message and fault.hint in str(error.hint), str(error)
    if fault.block == 64:  # else it is the launch's line
        assert error.where is not None and error.where.line == 2 + fault.line, str(error)
