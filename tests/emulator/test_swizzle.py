"""ds_swizzle_b32: patterns as LLVM encodes them, lanes as AMD's documents have them, on a whole wave."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.emulator.memory.swizzle import pattern, swizzle_offset
from flylab.errors import UnknownInstruction
from tests.emulator.lds_wave import ALL, random_wave, run
from tests.emulator.toolchain import CHIPS

# What llvm-mc 22 makes of them for gfx942 and gfx950.
ENCODED = {
    "swizzle(ROTATE,1,3)": 0xC460, "swizzle(ROTATE,0,0)": 0xC000, "swizzle(FFT,3)": 0xE003, "swizzle(FFT,31)": 0xE01F,
    'swizzle(BITMASK_PERM,"01pip")': 0x0907, 'swizzle(BITMASK_PERM, "00000")': 0, "swizzle(QUAD_PERM,0,1,2,3)": 0x80E4,
    "swizzle(SWAP,16)": 0x401F, "swizzle(SWAP,1)": 0x041F, "swizzle(REVERSE,8)": 0x1C1F, "swizzle(REVERSE,32)": 0x7C1F,
    "swizzle(BROADCAST,8,3)": 0x0078, "swizzle(BROADCAST,32,3)": 0x0060, "swizzle(QUAD_PERM,3,3,3,0)": 0x803F,
    "0xc023": 0xC023, "36608": 0x8F00,
}
# The two tables that the CDNA3 ISA document prints of the FFT mode, lanes counted from 1.
FFT = {
    0x00: "1 11 9 19 5 15 d 1d 3 13 b 1b 7 17 f 1f 2 12 a 1a 6 16 e 1e 4 14 c 1c 8 18 10 20",
    0x10: "1 9 5 d 3 b 7 f 2 a 6 e 4 c 8 10 11 19 15 1d 13 1b 17 1f 12 1a 16 1e 14 1c 18 20",
}


def by_the_document(offset: int, data: np.ndarray, valid: list[int]) -> np.ndarray:
    """DS_SWIZZLE_B32 over 64 threads, one after the other."""
    out = np.zeros(64, "u4")
    for i in range(64):
        mask, middle = offset & 0x1F, offset >> 5 & 0x1F
        if offset >= 0xE000:
            reverse = sum((i >> n & 1) << 4 - n for n in range(5))
            j = reverse >> bin(mask).count("1") | i & mask
        elif offset >= 0xC000:
            rotate = -middle if offset & 1 << 10 else middle
            j = i & mask | (i + rotate) & ~mask & 0x1F
        elif offset & 0x8000:
            j = i & 0x1C | offset >> 2 * (i % 4) & 3
        else:
            j = ((i & 0x1F & mask) | middle) ^ (offset >> 10 & 0x1F)
        j |= i & 0x20
        out[i] = data[j] if valid[j] else 0
    return out


@pytest.mark.parametrize("text, offset", ENCODED.items())
def test_spelling(text: str, offset: int) -> None:
    assert swizzle_offset((f"offset:{text}",)) == offset


@pytest.mark.parametrize("swizzle, table", FFT.items())
def test_printed_tables(swizzle: int, table: str) -> None:
    assert [lane + 1 for lane in pattern(0xE000 | swizzle)] == [int(word, 16) for word in table.split()]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 0xFFFF), st.sampled_from((ALL, 0x00FF_FFFF_0F0F_8001, 1 << 40)), st.sampled_from((4, 2)))
def test_whole_waves(offset: int, exec_: int, result: int) -> None:
    before = random_wave(offset)
    valid = [exec_ >> lane & 1 for lane in range(64)]
    found = run(f"ds_swizzle_b32 v{result}, v2 offset:{offset}", before, CHIPS[offset % 2], exec_).row(result)
    assert np.array_equal(found, np.where(valid, by_the_document(offset, before.row(2), valid), before.row(result)))


def test_no_offset_is_every_lane_from_the_first() -> None:
    found, before = run("ds_swizzle_b32 v4, v2", random_wave(1)).row(4), random_wave(1).row(2)
    assert (found[:32] == before[0]).all() and (found[32:] == before[32]).all()


@pytest.mark.parametrize("text", ["swizzle(SWAP,32)", "swizzle(SWAP,3)", "swizzle(REVERSE,1)", "swizzle(BROADCAST,4,4)",
                                  "swizzle(QUAD_PERM,0,1,2)", "swizzle(QUAD_PERM,0,1,2,4)", "swizzle(TURN,1)",
                                  'swizzle(BITMASK_PERM,"01pi")', "swizzle(BITMASK_PERM,3)", "swizzle(FFT,x)"])
def test_refused_patterns(text: str) -> None:
    """LLVM's assembler refuses the same."""
    with pytest.raises(UnknownInstruction, match=r"is no swizzle|names a lane that its group does not have"):
        run(f"ds_swizzle_b32 v4, v2 offset:{text}", random_wave(0))


@pytest.mark.parametrize("text, message", [("offset:65536", "no number from 0 to 65535"),
                                           ("gds", "the modifier 'gds'")])
def test_other_modifiers(text: str, message: str) -> None:
    with pytest.raises(UnknownInstruction, match=message):
        run(f"ds_swizzle_b32 v4, v2 {text}", random_wave(0))
