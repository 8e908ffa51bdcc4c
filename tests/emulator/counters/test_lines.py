"""Cache accesses, lines, bytes and clamped lanes of memory instructions against brute force over random accesses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.counters.accesses import RECORDS, Accesses, by_copy, copies, random_accesses, run
from tests.emulator.toolchain import CHIPS

# The instruction, bytes of a lane, the constant offset, and bytes of a piece that a descriptor lets through or not.
PAIR = [(f"global_load_{name} v[10:13], v[4:5], off offset:16".replace("v[10:13]", registers), size, 16)
        for name, size, registers in (("ubyte", 1, "v10"), ("dword", 4, "v10"), ("dwordx2", 8, "v[10:11]"),
                                      ("dwordx3", 12, "v[10:12]"), ("dwordx4", 16, "v[10:13]"))]
OTHERS = [("global_load_dwordx4 v[10:13], v2, s[20:21]", 16, 0), ("global_store_short v[4:5], v10, off", 2, 0),
          ("global_store_dwordx4 v2, v[10:13], s[20:21] offset:4", 16, 4),
          ("flat_load_dwordx2 v[10:11], v[4:5] offset:8", 8, 8), ("global_atomic_add_x2 v[4:5], v[10:11], off", 8, 0)]
BUFFERS = [("buffer_load_dword v10, v2, s[24:27], 0 offen", 4, 0, 4),
           ("buffer_load_dwordx4 v[10:13], v2, s[24:27], 0 offen offset:8", 16, 8, 4),
           ("buffer_store_dwordx3 v[10:12], v2, s[24:27], 0 offen", 12, 0, 4),
           ("buffer_store_byte v10, v2, s[24:27], 4 offen", 1, 4, 1),
           ("buffer_atomic_add_x2 v[10:11], v2, s[24:27], 0 offen", 8, 0, 8),
           ("tbuffer_load_format_xy v[10:11], v2, s[24:27], 0 format:[BUF_DATA_FORMAT_16_16,BUF_NUM_FORMAT_UINT] offen",
            4, 0, 4)]


def _brute_force(accesses: Accesses, size: int, offset: int, piece: int, records: int) -> dict[str, np.ndarray]:
    """Byte by byte: the lines that each quad touches, those of the wave, bytes, and lanes that are not served whole."""
    found = {name: np.zeros(len(accesses.active), np.int64)
             for name in ("accesses", "lines", "least_accesses", "bytes", "clamped")}
    for n, (addresses, active) in enumerate(zip(accesses.addresses.tolist(), accesses.active, strict=True)):
        quads: list[set[int]] = [set() for _ in range(16)]
        for lane in np.flatnonzero(active).tolist():
            start = addresses[lane] + offset
            served = [start + at for at in range(size) if start + at // piece * piece + piece <= records]
            quads[lane // 4] |= {at // 128 for at in served}
            found["bytes"][n] += len(served)
            found["clamped"][n] += len(served) < size
        found["accesses"][n] = sum(map(len, quads))
        found["least_accesses"][n] = sum(map(bool, quads))
        found["lines"][n] = len(set().union(*quads))
    return found


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("text", "size", "offset", "piece", "records"), [
    *((*case, 1, 1 << 40) for case in PAIR + OTHERS), *((*case, RECORDS) for case in BUFFERS)])
def test_lines_and_bytes_are_those_of_brute_force(chip: str, text: str, size: int, offset: int, piece: int,
                                                  records: int) -> None:
    odd = 4 * (size == 12) + 6 * (size == 16 and "global" in text)
    accesses = random_accesses(2, False)
    accesses = Accesses(accesses.addresses + odd, accesses.active)
    report = run(chip, text, accesses)
    for figure, wanted in _brute_force(accesses, size, offset, piece, records).items():
        assert np.array_equal(copies(report, figure, text), by_copy(wanted)), figure
    assert report.clamped == copies(report, "clamped", text).sum()
