"""What there is to see of a workgroup from one of its waves: where it is, registers, LDS, arrays, findings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from flylab.codegen.assembly.registers import NUMBERED_SGPRS
from flylab.codegen.isa import Instruction
from flylab.emulator.arguments import shown, whole
from flylab.emulator.debugger.changes import Array, State
from flylab.emulator.debugger.copies import Copied
from flylab.emulator.debugger.names import Names
from flylab.emulator.debugger.places import Places, line_of
from flylab.emulator.debugger.session import Session
from flylab.emulator.execution.faults import coordinates
from flylab.emulator.execution.geometry import Dims
from flylab.emulator.probes.findings import Finding
from flylab.emulator.state import M0, SCC, SGPR_COUNT, WAVE_SIZE
from flylab.errors import DebugError, DeviceError
from flylab.locks import cached_property
from flylab.places import SourceLine


@dataclass(frozen=True)
class Lane:
    """One lane of the wave: its thread in the block, whether it is active, and its vector registers, 32 bits each."""

    number: int
    thread: Dims
    active: bool
    v: Array
    a: Array


class WaveView:
    """A workgroup under the debugger as it is now, seen from the wave in focus."""

    def __init__(self, session: Session, memory: Mapping[str, Copied], printed: Callable[[], str] | None = None):
        self._session, self._memory, self._printed = session, dict(memory), printed
        self._wave = 0
        self._kernel = session.loaded.kernel
        self._names = Names(session.loaded.registers)

    @cached_property
    def _places(self) -> Places:
        return Places(self._kernel)

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return self._kernel.name

    @property
    def block(self) -> Dims:
        """The workgroup, as (x, y, z)."""
        return coordinates(self._session.group, self._session.run.geometry.grid)

    @property
    def wave(self) -> int:
        """The number of the wave in focus: the one that is stepped and seen. It can be set."""
        return self._wave

    @wave.setter
    def wave(self, number: int) -> None:
        number = whole("the wave", number)
        if not 0 <= number < self._session.waves:
            raise DebugError(f"there is no wave {number}: a block of {self._session.run.geometry.threads} threads has "
                             f"{self._session.waves}", hint=f"waves are numbered 0 to {self._session.waves - 1}")
        self._wave = number

    @property
    def time(self) -> int:
        """Instructions that the workgroup has executed so far."""
        return self._session.time

    @property
    def steps(self) -> int:
        """Instructions that the wave in focus has executed so far."""
        return self._session.steps[self._wave]

    @property
    def instruction(self) -> Instruction | None:
        """The instruction that the wave executes next; None where it has ended."""
        return None if self.ended else self._kernel.instructions[self._session.index(self._wave)]

    @property
    def pc(self) -> int | None:
        """The byte of the function's code at which that instruction is."""
        return self.instruction.address if self.instruction else None

    @property
    def line(self) -> SourceLine | None:
        """The user's line that it comes from; of assembly without a line table, the line of the assembly."""
        return line_of(self._kernel, self.instruction) if self.instruction else None

    @property
    def ended(self) -> bool:
        """True where the wave in focus has come to its end."""
        return self._session.ended(self._wave)

    @property
    def finished(self) -> bool:
        """True where the whole workgroup has come to its end."""
        return all(map(self._session.ended, range(self._session.waves)))

    @property
    def at_barrier(self) -> bool:
        """True where the wave has come to a barrier and waits for others."""
        return self._session.waiting(self._wave)

    @property
    def error(self) -> DeviceError | None:
        """The error that the workgroup runs into now: the next instruction of one of its waves makes it."""
        return self._session.error()

    @property
    def sgprs(self) -> Array:
        """The scalar registers s0, s1 ... as uint32."""
        return self._scalars()[:NUMBERED_SGPRS]

    def sgpr(self, n: int) -> int:
        """A scalar register."""
        return int(self._scalars()[self._names.checked("s", n)])

    def vgpr(self, n: int, dtype: Any = np.uint32) -> Array:
        """A vector register in its 64 lanes, as uint32 or seen as another format: float32, float16 (two a lane)."""
        return _seen_as(dtype, self._vectors()[self._names.checked("v", n)])

    def agpr(self, n: int, dtype: Any = np.uint32) -> Array:
        """An accumulator register in its 64 lanes, as `vgpr`."""
        return _seen_as(dtype, self._vectors()[self._names.checked("a", n)])

    def register(self, name: str) -> Any:
        """A register by its name: `v3`, `v[2:3]` and `a0` as arrays of lanes, `s4`, `s[4:5]`, `vcc` as numbers."""
        named = self._names.find(name)
        if named.file != "s":
            first = self._names.checked(named.file, named.first)
            rows = self._vectors()[first:first + named.count]
            return rows if named.count > 1 else rows[0]
        words = self._scalars()[named.first:named.first + named.count]
        return sum(int(word) << (32 * n) for n, word in enumerate(words))

    @property
    def exec(self) -> int:
        """EXEC: a bit for each lane that is active."""
        return int(self.register("exec"))

    @property
    def vcc(self) -> int:
        """VCC, 64 bits."""
        return int(self.register("vcc"))

    @property
    def scc(self) -> int:
        """SCC, 0 or 1."""
        return int(self._scalars()[SCC])

    @property
    def m0(self) -> int:
        """M0, 32 bits."""
        return int(self._scalars()[M0])

    def lane(self, n: int) -> Lane:
        """A lane of the wave."""
        n = whole("the lane", n)
        if not 0 <= n < WAVE_SIZE:
            raise DebugError(f"there is no lane {n}", hint=f"a wave has lanes 0 to {WAVE_SIZE - 1}")
        values, first = self._vectors()[:, n], self._names.vectors
        thread = coordinates(self._wave * WAVE_SIZE + n, self._session.run.geometry.block)
        return Lane(n, thread, bool(self.exec >> n & 1), values[:first], values[first:])

    @property
    def lds(self) -> Array:
        """The bytes of the workgroup's LDS; `.view("float32")` sees them as numbers."""
        return _copied(self._session.worker.lds, self._session.run.launch.lds_bytes, np.uint8)

    def memory(self, name: str) -> Array:
        """An array argument as it is now, in its shape and format, as a copy."""
        if name not in self._memory:
            known = ", ".join(self._memory) or "none"
            raise DebugError(f"the launch has no array argument {shown(name)}", hint=f"its arrays are {known}")
        return self._memory[name].array()

    def result(self) -> dict[str, Array]:
        """All array arguments as they are now."""
        return {name: self.memory(name) for name in self._memory}

    @property
    def printed(self) -> str:
        """What the launch has printed till now (`fx.printf`)."""
        return self._printed() if self._printed else ""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What the checks have found till now."""
        return self._session.run.watching.findings().listed

    def state(self) -> State:
        """All of the above at once: the wave's registers, LDS and arrays."""
        return self._state(self.result())

    def _state(self, memory: dict[str, Array]) -> State:
        return State(self.time, self._session.writes, self._vectors(), self._scalars(), self.lds, memory)

    def _vectors(self) -> Array:
        size = self._session.run.launch.vgpr_bytes
        rows = self._session.loaded.registers.rows
        address = self._session.worker.vgprs + self._wave * size
        return _copied(address, rows * WAVE_SIZE * 4, np.uint32).reshape(rows, WAVE_SIZE)

    def _scalars(self) -> Array:
        return _copied(self._session.worker.sgprs + self._wave * 4 * SGPR_COUNT, 4 * SGPR_COUNT, np.uint32)


def _seen_as(dtype: Any, row: Array) -> Array:
    """A row of registers as another format, some elements a lane."""
    try:
        format_ = np.dtype(dtype)
    except TypeError:
        format_ = None
    if format_ is None or format_.hasobject or format_.itemsize not in (1, 2, 4):
        raise DebugError(f"a register has 32 bits a lane, and cannot be seen as {shown(dtype)}",
                         hint="numpy's formats of 8, 16 and 32 bits fit: float32, float16, int8")
    return np.asarray(row.view(format_))


def _copied(address: int, size: int, dtype: Any) -> Array:
    return np.frombuffer(bytearray(ctypes.string_at(address, size)), dtype)
