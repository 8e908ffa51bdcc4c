"""Workgroups that wait for others: suspended, resumed by any thread, and started up to what the chip holds at once.

A launch comes here when a workgroup has used up a turn of instructions or only spins. From then on workgroups are given
out one by one, in rising order as the chip's dispatcher does, beside those that are suspended; when none of these is
left, workers take whole chunks again. Where all that are resident only spin, and none can be started, one thread runs a
turn of each alone: if no memory changes, and the state of each comes back, nothing will ever change.
"""

from __future__ import annotations

import ctypes
import heapq
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from flylab.codegen.isa import IsaKernel
from flylab.emulator.probes.shadow import defined_at, group_shadow_bytes
from flylab.emulator.state import FAULT, LDS_SPARE, LDS_STEP, SGPR_COUNT, SUSPENDED, Memory, Wave, Worker

if TYPE_CHECKING:
    from flylab.emulator.execution.geometry import Geometry
    from flylab.emulator.execution.run import Run

# Memory for workgroups that are suspended; only scratch memory can make that of a whole chip larger.
MOST_RESIDENT_BYTES = 1 << 30
# Turns in all of the workgroups below one that failed, which may spin for ever for its sake.
TURNS_AFTER_FAULT = 16
# Another thread of the host may write what a kernel waits for: so long a launch stands still before it is given up.
GRACE_SECONDS = 0.25
POLL_SECONDS = 0.01


def workgroups_per_unit(kernel: IsaKernel, waves: int, lds_bytes: int) -> int:
    """How many workgroups a compute unit holds at once, of so many waves and bytes of LDS; 0 where none fits."""
    return min(kernel.needs(waves * kernel.target.wave_size, lds_bytes).workgroups().values())


def resident_workgroups(kernel: IsaKernel, geometry: Geometry) -> int:
    """How many workgroups of a launch the whole chip holds at once; a workgroup waits in vain for one beyond these."""
    return workgroups_per_unit(kernel, geometry.waves, geometry.lds_bytes(kernel)) * kernel.target.compute_units


class Context:
    """What a workgroup is while it runs: vector registers, scalar registers, waves and LDS."""

    def __init__(self, run: Run):
        waves = run.geometry.waves
        lds = -(-(run.launch.lds_bytes + LDS_SPARE) // LDS_STEP) * LDS_STEP
        sizes = [waves * run.launch.vgpr_bytes, waves * 4 * SGPR_COUNT, waves * ctypes.sizeof(Wave), lds]
        if run.loaded.probes is not None:
            sizes.append(group_shadow_bytes(lds))
        self.defined_at = defined_at(lds)
        self.sizes, self.bytes = tuple(sizes), sum(sizes)
        self.memory = [Memory(size) for size in sizes]
        self.group = self.used = self.executed = 0
        self.idle = False

    def give(self, worker: Worker) -> None:
        """Makes a worker run in this memory."""
        worker.vgprs, worker.sgprs, worker.waves, worker.lds, *shadow = (m.address for m in self.memory)
        worker.group_shadow = shadow[0] if shadow else None
        worker.lds_defined = shadow[0] + self.defined_at if shadow else None

    def suspend(self, worker: Worker) -> None:
        """Keeps where a worker stands."""
        self.group, self.used, self.idle = worker.group, worker.used, bool(worker.idle)
        self.executed = worker.count - worker.group_count

    def resume(self, worker: Worker) -> None:
        """Makes a worker go on with this workgroup."""
        self.give(worker)
        worker.group, worker.group_end, worker.used, worker.resuming = self.group, self.group + 1, self.used, 1
        worker.group_count = worker.count - self.executed & (1 << 64) - 1


class Residents:
    """The suspended workgroups of one launch, and who does what next.

    Only threads that no Ctrl-C reaches come here.
    """

    def __init__(self, run: Run):
        self.run = run
        self.most = run.opening.resident
        self.suspended: deque[Context] = deque()
        self.left: list[tuple[int, int]] = []
        """Ranges of workgroups that workers took and gave back."""
        self.still = False
        """True where the launch was found to stand still for ever."""
        self.starved = False
        """True where memory, not the chip, is why no further workgroup was started."""
        self._free: list[Context] = []
        self._changed = threading.Condition()
        self._streak, self._total, self._patience = 0, -1, TURNS_AFTER_FAULT
        """Turns in a row in which nothing moved; changes of memory at the last one; turns left after a fault."""
        self._began: dict[int, int] = {}
        """Changes of memory when a worker's turn began."""

    def next(self, n: int, status: int) -> bool:
        """Takes note of how worker `n` came back, and gives it something to go on with; False where it may end."""
        with self._changed:
            self._settle(n, status)
            self._changed.notify_all()
            while not self.run.launch.stop:
                self._drop()
                if self._start(n):
                    return self._busy(n)
                everyone_idles = self._streak >= len(self.suspended) > 0
                if not everyone_idles and self._resume(n):
                    return self._busy(n)
                if not self.suspended:
                    break
                if any(self.run.busy):
                    self._changed.wait(POLL_SECONDS)
                elif self._stands_still(n):
                    self.run.launch.stop = 1
            self._changed.notify_all()
            return False

    def _busy(self, n: int) -> bool:
        self.run.busy[n] = True
        self._began[n] = self.run.changes()
        return True

    def _settle(self, n: int, status: int) -> None:
        """Worker `n` has left its workgroup: it waits, it ended, or it failed."""
        worker, total = self.run.workers[n], self.run.changes()
        self.run.busy[n] = False
        if status == SUSPENDED:
            self.run.launch.stepping = 1
            context = self.run.contexts[n]
            assert context is not None
            context.suspend(worker)
            self.suspended.append(context)
            self.run.contexts[n] = None
            still = context.idle and self._began.pop(n, None) == self._total == total
            self._streak = self._streak + 1 if still else 0
            self._patience -= self._failed()
            worker.group += 1
        else:
            self._streak = 0
        self._total = total
        if status != FAULT and worker.group < worker.group_end:
            heapq.heappush(self.left, (worker.group, worker.group_end))
        worker.group = worker.group_end = worker.resuming = 0

    def _failed(self) -> bool:
        return bool(self.run.launch.limit < self.run.launch.total)

    def _drop(self) -> None:
        """After a fault, drops the workgroups above it, and those below it that would go on for ever."""
        if self._failed():
            spinning = self._streak >= len(self.suspended) and not any(self.run.busy)
            for context in list(self.suspended):
                if spinning or self._patience <= 0 or context.group > self.run.launch.limit:
                    self.suspended.remove(context)
                    self._free.append(context)

    def unstarted(self) -> int:
        """How many workgroups nobody has begun."""
        never: int = max(0, self.run.launch.total - self.run.launch.next)
        return never + sum(end - first for first, end in self.left)

    def _lowest(self) -> int:
        """The number of the next workgroup that nobody began, which may be beyond the last."""
        following: int = self.run.launch.next
        return self.left[0][0] if self.left else following

    def _start(self, n: int) -> bool:
        """Makes worker `n` begin workgroups, where one is left and the chip would hold it."""
        launch, worker, resident = self.run.launch, self.run.workers[n], len(self.suspended) + sum(self.run.busy)
        self.starved = False
        if self._lowest() >= min(launch.total, launch.limit) or resident >= self.most:
            return False
        context = self.run.contexts[n]
        if context is None:
            context = self._free.pop() if self._free else Context(self.run)
            self.starved = resident * context.bytes >= MOST_RESIDENT_BYTES
            if self.starved:
                self._free.append(context)
                return False
            self.run.contexts[n] = context
        context.give(worker)
        if not self.suspended:
            launch.stepping = 0
        if self.left:
            first, end = heapq.heappop(self.left)
            if self.suspended and first + 1 < end:
                heapq.heappush(self.left, (first + 1, end))
                end = first + 1
        elif self.suspended:
            first = self.run.take()
            if first >= launch.total:
                return False
            end = first + 1
        else:
            first = end = 0
        worker.group, worker.group_end = first, end
        self._streak = 0
        return True

    def _resume(self, n: int) -> bool:
        """Makes worker `n` go on with the workgroup that has waited longest."""
        if not self.suspended:
            return False
        if (own := self.run.contexts[n]) is not None:
            self._free.append(own)
        context = self.run.contexts[n] = self.suspended.popleft()
        context.resume(self.run.workers[n])
        return True

    def _stands_still(self, n: int) -> bool:
        """True where nothing can ever change again, shown by a turn of each workgroup alone."""
        self._streak = 0
        provable = not self.run.others()
        before, until = self.run.changes(), time.monotonic() + (GRACE_SECONDS if provable else POLL_SECONDS)
        while time.monotonic() < until and not self.run.launch.stop:
            time.sleep(POLL_SECONDS)
        for _ in range(len(self.suspended)):
            self._resume(n)
            self._settle(n, self.run.enter(n))
            if not self.suspended or not self.suspended[-1].idle or self.run.launch.stop:
                return False
        self.still = provable and not self.run.others() and self.run.changes() == before
        return self.still
