"""Single instructions on the software device: its decoder and its compiled handlers, on registers of the test's own.

Without a launch there is no memory to load from and store to, so every register can be compared, and an instruction
costs microseconds. Launches have tests of their own.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

import numpy as np

from flylab.emulator import Program
from flylab.emulator.program import Loaded
from flylab.emulator.state import RECORD_BYTES, SGPR_COUNT, WAVE_SIZE, Worker
from tests.emulator.oracles.executor import ACCUMULATORS
from tests.emulator.toolchain import assembly

ROWS = 64
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)


@dataclass
class Registers:
    """A wave's vector rows (ROWS, 64) and scalar file, at addresses fit for handlers."""

    v: np.ndarray
    s: np.ndarray

    @classmethod
    def empty(cls) -> Registers:
        memory = np.zeros(ROWS * WAVE_SIZE + SGPR_COUNT + 32, np.uint32)
        start = -memory.ctypes.data // 4 % 16
        rows = memory[start:start + ROWS * WAVE_SIZE].reshape(ROWS, WAVE_SIZE)
        return cls(rows, memory[start + ROWS * WAVE_SIZE:][:SGPR_COUNT])


class Device:
    """Instructions of one chip, decoded and compiled together; each is run alone."""

    def __init__(self, chip: str, texts: list[str], **descriptor: int):
        body = "\n".join(f"  {text}" for text in [*texts, "s_endpgm"])
        program = Program.from_assembly(assembly(body, chip, vgprs=ROWS, accum_offset=ACCUMULATORS, **descriptor))
        loaded: Loaded = program.load("k")
        records = [loaded.records[at:at + RECORD_BYTES] for at in range(0, len(loaded.records), RECORD_BYTES)]
        end = records[len(texts)]
        self.mode = loaded.mode
        self._records = [ctypes.create_string_buffer(record + end, 2 * RECORD_BYTES) for record in records[:len(texts)]]
        memory = ctypes.create_string_buffer(ctypes.sizeof(Worker) + 64)
        self._worker = Worker.from_buffer(memory, -ctypes.addressof(memory) % 64)
        self._memory = Registers.empty()

    def run(self, index: int, v: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The registers after instruction `index`, of those before it."""
        record = self._records[index]
        address = ctypes.addressof(record)
        self._memory.v[:], self._memory.s[:] = v, s
        self._worker.base = address
        handler = _HANDLER(int.from_bytes(record.raw[:8], "little"))
        handler(address, self._memory.v.ctypes.data, self._memory.s.ctypes.data, ctypes.addressof(self._worker))
        return self._memory.v.copy(), self._memory.s.copy()
