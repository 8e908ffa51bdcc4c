"""What the probes of a launch work with, and what came of them: findings, counters, the log of accesses."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from flylab.emulator.probes.findings import MOST_FINDINGS, Entry, Findings, Scene
from flylab.emulator.state import Memory, Worker

if TYPE_CHECKING:
    from flylab.emulator.counters.recorder import Recorder
    from flylab.emulator.counters.results import Counters
    from flylab.emulator.execution.geometry import Geometry
    from flylab.emulator.execution.run import Run
    from flylab.emulator.log import AccessLog
    from flylab.emulator.program import Loaded


class Watching:
    """The memory of probes: what a wave's shadow begins as, the notes, and of each worker its tallies and findings.

    Of a launch that nothing watches it is empty.
    """

    def __init__(self, loaded: Loaded, geometry: Geometry):
        self.loaded, self.geometry, probes = loaded, geometry, loaded.probes
        shadow = probes.shadow(loaded.kernel, loaded.registers) if probes else b""
        self.shadow, self.shadow_bytes = Memory(len(shadow), shadow), len(shadow)
        self.recorder = _recorder(loaded.watch.log) if loaded.watch.log else None
        self._notes = Memory(len(probes.notes), probes.notes) if probes else None
        self._tally_bytes = probes.tally_bytes * len(loaded.kernel.instructions) if probes else 0
        self._memory: list[Memory] = []
        self._workers: list[Worker] = []

    def equip(self, workers: Sequence[Worker], find: int) -> None:
        """Gives workers what probes need; `find` is the address of the native `find`."""
        if self.loaded.probes is None or self._notes is None:
            return
        self._workers += workers
        for worker in workers:
            tallies, findings = Memory(self._tally_bytes), Memory(MOST_FINDINGS * ctypes.sizeof(Entry))
            self._memory += [tallies, findings]
            worker.notes, worker.find, worker.findings = self._notes.address, find, findings.address
            worker.tallies, worker.tally_bytes = tallies.address, self.loaded.probes.tally_bytes
            worker.log = self.recorder.address if self.recorder else None

    def findings(self) -> Findings:
        """What the checks found, so far."""
        instruments = self.loaded.probes.instruments if self.loaded.probes else ()
        return Findings.of(self._workers, Scene(self.loaded.kernel, self.geometry), instruments)

    def counters(self) -> Counters | None:
        """What was counted, where that was asked for."""
        if not self.loaded.watch.counters:
            return None
        from flylab.emulator.counters.results import Counters

        tables = [memoryview((ctypes.c_char * self._tally_bytes).from_address(w.tallies)) for w in self._workers]
        workgroups = self.geometry.workgroups
        return Counters.of(self.loaded.kernel, tables, workgroups, workgroups * self.geometry.waves)

    def log(self, run: Run) -> AccessLog | None:
        """The accesses that were kept, where that was asked for."""
        return self.recorder.log(run) if self.recorder else None


def _recorder(room: int) -> Recorder:
    from flylab.emulator.counters.recorder import Recorder

    return Recorder(room)
