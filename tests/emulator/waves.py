"""One instruction over many waves, each with registers of its own from an array."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from flylab.emulator import Program
from tests.emulator.toolchain import assembly

# Registers of the harness itself, above those of the instruction under test.
_LANE, _FREE = 240, 240


def names(file: str, first: int, count: int) -> str:
    """Registers as the assembler writes them: v3, or a[0:15]."""
    return f"{file}{first}" if count == 1 else f"{file}[{first}:{first + count - 1}]"


def run_waves(chip: str, instruction: str, sources: Mapping[str, np.ndarray], result: tuple[str, int],
              **descriptor: int) -> np.ndarray:
    """The registers of `result` (its first, such as "v4", and their number) after one instruction of every wave.

    `sources` are bits (waves, registers, 64) or, the same for all waves, (registers, 64), by the first register's name.
    The result is (waves, registers, 64) bits.
    """
    body, arrays = ["s_load_dwordx4 s[4:7], s[0:1], 0x0", "s_waitcnt lgkmcnt(0)", f"v_lshlrev_b32 v{_LANE}, 2, v0"], []
    waves = max([a.shape[0] for a in sources.values() if a.ndim == 3] or [1])
    at = 0
    places = []
    for first, data in sources.items():
        arrays.append(np.broadcast_to(data, (waves, *data.shape[-2:])))
        places += [(at + n, first[0], int(first[1:]) + n) for n in range(data.shape[-2])]
        at += data.shape[-2]
    packed = np.ascontiguousarray(np.concatenate(arrays, axis=1), dtype=np.uint32)
    found = np.zeros((waves, result[1], 64), np.uint32)
    for base, total, moves in ((4, at, [("load", *place) for place in places]), (6, result[1], [
            ("store", n, result[0][0], int(result[0][1:]) + n) for n in range(result[1])])):
        if base == 6:
            body.append(instruction)
        body += [f"s_mul_i32 s8, s2, {256 * total}", f"s_mul_hi_u32 s9, s2, {256 * total}",
                 f"s_add_u32 s{base}, s{base}, s8", f"s_addc_u32 s{base + 1}, s{base + 1}, s9"]
        for n, (kind, place, file, register) in enumerate(moves):
            if n and n % 8 == 0:
                body += [f"s_add_u32 s{base}, s{base}, {256 * 8}", f"s_addc_u32 s{base + 1}, s{base + 1}, 0"]
            offset = f"s[{base}:{base + 1}] offset:{256 * (place % 8)}"
            body.append(f"global_load_dword {file}{register}, v{_LANE}, {offset}" if kind == "load" else
                        f"global_store_dword v{_LANE}, {file}{register}, {offset}")
    body.append("s_endpgm")
    text = assembly("\n".join(f"  {line}" for line in body), chip, 2, vgprs=512, **descriptor)
    Program.from_assembly(text).launch(grid=waves, block=64, args=[packed, found])
    return found
