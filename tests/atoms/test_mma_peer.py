"""MMA atoms beside what flydsl 0.5.0 printed for its own (tests/data/peer_mma_atoms.txt).

They differ where the evidence is against it. Instructions of 2, 4 and 16 blocks (`32x32x1 f32`, `16x16x4 f16` ...) it
takes for ones of one block, with layouts that hold too few values; compiling them ends its process or fails in LLVM.
AMD's tables for the very instructions are ours (test_mma.py). So with the older bf16 instructions (`16x16x8 bf16`),
which neither chip has. Of scaled fp8 it has 32 consecutive elements of K in a thread, and the published code that the
layout is derived from two runs of 16.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from flylab.atoms import MFMA, MmaAtom, mma_atom, mma_op
from flylab.dtypes import DTYPES
from flylab.errors import LayoutError
from flylab.layout import Layout, size

TEXT = (Path(__file__).parents[1] / "data" / "peer_mma_atoms.txt").read_text()
LINES = [line.split(" | ") for line in TEXT.splitlines() if not line.startswith("#")]
ATOMS = [line for line in LINES if len(line) == 7]
DIED = [line for line in LINES if len(line) == 3]
# Atoms of the older bf16 instructions, which LLVM has for neither chip.
NOT_THERE = ("32x32x2, (bf16", "16x16x2, (bf16", "4x4x2, (bf16", "16x16x8, (bf16")


def offsets(layout: Layout) -> list[int]:
    """Every (thread, value), compared as a map: strides of extent 1 do not count."""
    return [layout(t, v) for v in range(size(layout[1])) for t in range(size(layout[0]))]


def kind_of(atom: str) -> str:
    """Same, or how ours differs: an atom that is not there, of several blocks, or of another order of K."""
    if any(name in atom for name in NOT_THERE):
        return "not there"
    op = mma_atom(atom).op
    if op.blocks > 1:
        return "blocks"
    return "order" if op.row is not None and op.row.mixed and op.dtype_a.bits == 8 else "same"


@pytest.mark.parametrize("chip, atom, shape, threads, a, b, c", ATOMS, ids=[f"{x[0]}-{x[1]}" for x in ATOMS])
def test_as_the_published_package(chip: str, atom: str, shape: str, threads: str, a: str, b: str, c: str) -> None:
    kind = kind_of(atom)
    if kind == "not there":
        with pytest.raises(LayoutError, match="no chip has MFMA"):
            mma_atom(atom)
        return
    ours: MmaAtom = mma_atom(atom)
    assert str(ours) == atom
    assert str(ours.shape_mnk).replace(" ", "") == shape and str(ours.thr_layout).replace(":0", ":1") == threads
    pairs = [(Layout.parse(peer), mine) for peer, mine in (
        (a, ours.layout_A_tv), (b, ours.layout_B_tv), (c, ours.layout_C_tv)) if ",0)" not in peer.split(":")[0]]
    if kind == "same":
        assert len(pairs) == 3
        assert all(offsets(peer) == offsets(mine) for peer, mine in pairs)
    elif kind == "blocks":
        # Theirs holds fewer values than the instruction's registers, in A and B or in C.
        assert len(pairs) < 3 or any(size(peer) != size(mine) for peer, mine in pairs)
    else:
        assert offsets(pairs[2][0]) == offsets(pairs[2][1])
        for peer, mine in pairs[:2]:
            assert offsets(peer) != offsets(mine) and sorted(offsets(peer)) == sorted(offsets(mine))


def test_how_many_differ() -> None:
    kinds = [kind_of(line[1]) for line in ATOMS]
    assert {kind: kinds.count(kind) for kind in kinds} == {"same": 52, "blocks": 14, "not there": 8, "order": 8}


def test_where_it_died() -> None:
    """Its process ended at the float64 instruction and at bf8, which ours has."""
    assert sorted({name for _, name, _ in DIED}) == ["MFMA_16x16x32_Float8E5M2", "MFMA_16x16x4_Float64"]
    assert mma_op(MFMA, (16, 16, 32), DTYPES["Float8E5M2"]).chips == ("gfx950",)
    assert mma_op(MFMA, (16, 16, 4), DTYPES["Float64"]).chips == ("gfx942", "gfx950")
