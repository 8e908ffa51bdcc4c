"""LDS through `fx.SharedAllocator`: what it holds on the software device, against numpy, on both chips."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.targets import TARGETS
from tests.samples import cell

chips = pytest.mark.parametrize("chip", sorted(TARGETS))
BLOCK = 256


def run(body: str, *arrays: np.ndarray, chip: str, block: int = BLOCK, head: str = "", **names: Any) -> Any:
    """Run a kernel of this body over `A`, `B` ... in one block; its compilation."""
    parameters = ", ".join(f"{name}: fx.Tensor" for name in "ABCD"[: len(arrays)])
    given = ", ".join("ABCD"[: len(arrays)])
    lines = "\n".join("    " + line for line in body.strip("\n").splitlines())
    made = cell(f"{head}\n@flyc.kernel\ndef k({parameters}):\n{lines}\n\n"
                f"@flyc.jit\ndef launch({parameters}):\n    k({given}).launch(grid=1, block={block})\n")
    made.update(names)
    with flylab.use(chip):
        made["launch"](*arrays)
        return flyc.compile(made["launch"], *arrays)


EXCHANGE = """
i = fx.thread_idx.x
lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 256]).peek()
tile = lds.view(fx.make_layout(256, 1))
tile[i] = A[i]
fx.barrier()
B[i] = tile[(i + 1) % 256]
"""


@chips
def test_neighbours_exchange_through_lds(chip: str) -> None:
    given, got = np.random.default_rng(0).random(BLOCK, np.float32), np.zeros(BLOCK, np.float32)
    compiled = run(EXCHANGE, given, got, chip=chip)
    np.testing.assert_array_equal(got, np.roll(given, -1))
    assert compiled.isa.kernels["k"].lds_bytes == 1024


@fx.struct
class Tiles:
    flag: fx.Int8
    odd: fx.Array[fx.Float16, 3]
    left: fx.Array[fx.Float16, 256]
    right: fx.Array[fx.Int32, 256]


FIELDS = """
i = fx.thread_idx.x
lds = fx.SharedAllocator().allocate(Tiles).peek()
left, right = lds.left.view(), lds.right.view()
left[i] = fx.Float16(A[i])
right[i] = i * 3
if i == 0:
    lds.flag = -7
fx.barrier()
B[i] = left[255 - i].to(fx.Float32) + right[i ^ 5] * 1.0 + lds.flag * 1000.0
"""


@chips
def test_the_fields_of_a_struct_lie_apart(chip: str) -> None:
    given, got = np.arange(BLOCK, dtype=np.float32), np.zeros(BLOCK, np.float32)
    run(FIELDS, given, got, chip=chip, Tiles=Tiles)
    i = np.arange(BLOCK)
    np.testing.assert_array_equal(got, given[::-1] + (i ^ 5) * 3 - 7000)


@pytest.mark.parametrize(("chip", "bytes_", "refused"), [("gfx942", 80_000, True), ("gfx950", 80_000, False),
                                                         ("gfx950", 170_000, True), ("gfx942", 65_536, False)])
def test_more_lds_than_the_chip_has_is_refused_where_it_is_allocated(chip: str, bytes_: int, refused: bool) -> None:
    body = f"""
lds = fx.SharedAllocator().allocate(fx.Array[fx.Uint8, {bytes_}]).peek()
lds[fx.thread_idx.x] = A[fx.thread_idx.x]
fx.barrier()
A[fx.thread_idx.x] = lds[0]
"""
    given = np.zeros(BLOCK, np.uint8)
    if not refused:
        assert run(body, given, chip=chip).isa.kernels["k"].lds_bytes == bytes_
        return
    with pytest.raises(flylab.errors.TraceError) as caught:
        run(body, given, chip=chip)
    text = str(caught.value)
    assert f"Array[Uint8, {bytes_}] takes {bytes_} bytes" in text and "SharedAllocator().allocate" in text
    assert "65536 on gfx942 (MI300X)" in text and "163840 on gfx950 (MI350X)" in text
