"""Loads from memory straight to LDS: `buffer_load_* ... lds`, `global_load_lds_*`, `scratch_load_lds_*`.

Lane n writes at byte M0 + constant offset + n * size of the workgroup's LDS. A byte or half is extended to 4 bytes, and
gfx950 moves up to 16. The constant offset counts in both addresses. Lanes that are out of a buffer's range write zeros.
Sources: CDNA3 ISA, "Memory buffer load to LDS"; LLVM, llvm.amdgcn.raw.ptr.buffer.load.lds and global.load.lds.
"""

from __future__ import annotations

from flylab.emulator.handlers.ir import Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.memory.access import OFFSET, Access, fault_of_wave
from flylab.emulator.memory.lds import check_lds
from flylab.emulator.memory.moves import VectorAccess
from flylab.emulator.state import LDS_UNALIGNED_BASE, M0, WAVE_SIZE, Worker


class LoadToLds(VectorAccess):
    """A load whose data goes to LDS."""

    def __init__(self, access: Access):
        super().__init__(access)
        self.pieces = access.registers
        self.size = 4 * access.registers

    def begin(self) -> None:
        b = self.b
        first = b.load(b.at("%s", 4 * M0), "i32") + slot(b, OFFSET)
        fault_of_wave(b, LDS_UNALIGNED_BASE, self.exec, (first & 3).cmp("ne", 0), first.to("i64"), self.size)
        start, used = first.to("i64"), b.const(WAVE_SIZE, "i64") - self.exec.count("ctlz")
        with b.when((start + used * self.size).cmp("ugt", b.field("%w", Worker, "lds_bytes"))):
            # 64 bits wide, so that the last lanes of a base near 2**32 do not wrap into LDS.
            steps = b.vector(range(0, self.size * WAVE_SIZE, self.size), "i64")
            check_lds(b, self.exec, start.splat(WAVE_SIZE) + steps, self.size)
        self.cells = b.at(b.field("%w", Worker, "lds").name, start)

    def target(self, lane: Value, register: Value | int) -> str:
        """Where in LDS a register of a lane goes."""
        return self.b.at(self.cells, lane * self.size + register * 4)

    def one(self, lane: Value, pointer: str, piece: Value | None) -> None:
        b, access = self.b, self.access
        for register in range(access.registers) if piece is None else (piece,):
            memory = b.at(pointer, register * 4) if piece is None else pointer
            data = b.load(memory, f"i{8 * access.unit}", align=1)
            b.store(data.to("i32", access.signed), self.target(lane, register))

    def drop(self, lane: Value, piece: Value | None) -> None:
        for register in range(self.access.registers) if piece is None else (piece,):
            self.b.store(self.b.const(0, "i32"), self.target(lane, register))
