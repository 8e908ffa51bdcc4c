"""Handlers of LDS instructions whose address is in M0: ds_append, ds_consume, ds_read_addtid, ds_write_addtid."""

from __future__ import annotations

from flylab.emulator.handlers.record import slot
from flylab.emulator.memory.lds import LdsHandler, check_lds
from flylab.emulator.state import M0, WAVE_SIZE

OFFSET, DATA = 0, 1


class Counter(LdsHandler):
    """A dword goes up or down by the number of active lanes, which all receive what was there before.

    Source: CDNA3 ISA, DS_APPEND and DS_CONSUME; that M0 is the address: LLVM's lowering of llvm.amdgcn.ds.append.
    """

    def __init__(self, down: bool):
        super().__init__()
        self.down = down

    def text(self, name: str) -> str:
        """The handler's IR."""
        b = self.b
        with b.when(self.exec.cmp("ne", 0)):
            address = b.load(b.at("%s", 4 * M0), "i32") + slot(b, OFFSET)
            check_lds(b, self.exec, address.splat(WAVE_SIZE), 4)
            place, lanes = b.at(self.lds, address), self.exec.call("ctpop").to("i32")
            before = b.load(place, "i32", align=1)
            b.store(before - lanes if self.down else before + lanes, place, 1)
            row = self.row(DATA)
            old = b.load(row, "i32", WAVE_SIZE, 64)
            b.store(self.exec.recast("i1", WAVE_SIZE).select(before.splat(WAVE_SIZE), old), row, 64)
        return self.finish(name)


class LaneAddressed(LdsHandler):
    """Each lane's dword lies side by side with the next one's, from M0[15:0] plus the offset on."""

    def __init__(self, store: bool):
        super().__init__()
        self.store = store

    def text(self, name: str) -> str:
        """The handler's IR."""
        b = self.b
        base = (b.load(b.at("%s", 4 * M0), "i32") & 0xFFFF) + slot(b, OFFSET)
        lanes = b.vector(range(0, 4 * WAVE_SIZE, 4), "i32")
        check_lds(b, self.exec, lanes + base.splat(WAVE_SIZE), 4)
        first, row = b.at(self.lds, base), self.row(DATA)
        with b.set_bits(self.exec) as (lane, _):
            register, memory = b.at(row, lane.shl(2)), b.at(first, lane.shl(2))
            source, target = (register, memory) if self.store else (memory, register)
            b.store(b.load(source, "i32", align=1), target, 1)
        return self.finish(name)
