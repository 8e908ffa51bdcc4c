"""The check of LDS: threads that reach one byte with no barrier between, and writes that were not waited for.

Lanes count as threads, so what two lanes of one wave exchange needs a barrier too, which in a block of one wave is no
instruction (`flylab/codegen/barriers.py`). What is found depends on the barriers alone, and not on the order in which
the device happens to run waves: accesses between two barriers are concurrent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from flylab.codegen.isa import IsaKernel
from flylab.emulator.checks import lds_cells, lds_lane, race_words
from flylab.emulator.checks.lds_cells import LANE_NAME, LANES_NAME, QUICK_SIZES, TIME_BITS, quick_name
from flylab.emulator.checks.lds_use import BY_LANE, BY_ROW, GENERIC, ONE, LdsUse, lds_use, may_use_lds
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.execution.initial import entry
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.probes.probe import Frame, Piece, Site
from flylab.emulator.probes.shadow import CELL_BYTES, CELLS_AT, GroupShadow, GroupWave, Template, WaveShadow, group_wave
from flylab.emulator.state import LDS_SPARE, LDS_STEP, M0, ROW_BYTES, SHARED_APERTURE, WAVE_SIZE, Launch, Worker
from flylab.errors import DeviceError

# Times, of which cells hold so many bits, begin anew from here on.
MOST_TIME = (1 << TIME_BITS) - 2
RESTART = "restart"


class Races:
    """The instrument."""

    name = "races"
    tally_bytes = 0
    helpers: Mapping[str, Callable[[str], str]]
    kinds: Mapping[int, Callable[[Entry, Scene], Finding]] = race_words.KINDS

    def __init__(self) -> None:
        self.helpers = {**lds_cells.HELPERS, LANE_NAME: lds_lane.lane_text, RESTART: _restart_text}

    def prepare(self, template: Template, kernel: IsaKernel, registers: Registers) -> None:
        """Nothing is known when a wave begins. Raises `DeviceError` for a kernel whose instructions have no numbers."""
        if len(kernel.instructions) >> lds_cells.INDEX_BITS:
            raise DeviceError(f"kernel '{kernel.name}' has {len(kernel.instructions)} instructions, and races are "
                              f"checked in up to {1 << lds_cells.INDEX_BITS}", hint="launch it with check=None")

    def pieces(self, site: Site) -> Sequence[Piece]:
        """What a probe has to do for a barrier, and for a use of LDS."""
        if not site.once(may_use_lds):
            return ()
        found = []
        if site.instruction.barriers:
            found.append(Piece("wave barrier", _emit_wave_barrier, (), (RESTART,)))
        if site.effects.kind == "barrier":
            found.append(Piece("barrier", _emit_barrier, (), (RESTART,)))
        if site.effects.kind == "end":
            found.append(Piece("end", _emit_end))
        if site.instruction.index == entry(site.kernel):
            found.append(Piece("begin", _emit_begin, (), (RESTART,)))
        if use := lds_use(site):
            found.append(_use_piece(use))
        return found


def _use_piece(use: LdsUse) -> Piece:
    flags = use.bytes | (lds_cells.READS * use.reads | lds_cells.WRITES * use.writes | lds_cells.IS_ATOMIC * use.atomic
                         | lds_cells.IS_SWAP * use.swap | lds_cells.IS_DIRECT * use.direct
                         | lds_cells.HIGH * use.high)
    quick = use.form == BY_ROW and use.bytes in QUICK_SIZES and use.reads != use.writes
    lanes = quick_name(use.bytes, use.writes) if quick else LANES_NAME
    words = (flags, use.row, *(word for place in use.places for word in place))
    names = (LANE_NAME, lanes) if use.form == BY_ROW else (LANE_NAME,)
    key = f"use {use.form} {len(use.places)} {lanes} {use.bytes if use.form == BY_LANE else ''} {use.m0_bits}"
    return Piece(key, partial(_emit_use, use.form, len(use.places), use.bytes, use.m0_bits, lanes), words, names)


def _emit_use(form: str, places: int, size: int, m0_bits: int, lanes: str, frame: Frame) -> None:
    b, flags = frame.b, frame.word(0)
    at = [(frame.word(2 + 2 * n), _row(frame, frame.word(3 + 2 * n))) for n in range(places)]
    row = _row(frame, frame.word(1))
    if form == BY_ROW:
        for n, (offset, data) in enumerate(at):
            offset2, data2 = at[n - 1]
            frame.call(lanes, "%w", frame.shadow, frame.index, frame.exec, flags, row, offset, offset2, data, data2,
                       frame.address_of(LANE_NAME))
        return
    (offset, data), = at
    active = frame.exec
    if form == GENERIC:
        high = b.load(b.at(row, ROW_BYTES), "i32", WAVE_SIZE, 64)
        active = active & high.cmp("eq", SHARED_APERTURE >> 32).recast("i64", 0)
    first = (b.load(b.at("%s", 4 * M0), "i32") & m0_bits) + offset
    if form == ONE:
        # An atomic of the wave, once for all lanes.
        active = active & (b.const(0, "i64") - active)
    with b.set_bits(active) as (lane, _):
        address = first + (lane * size).to("i32") if form == BY_LANE else first
        if form == GENERIC:
            address = b.load(b.at(row, lane.shl(2)), "i32") + offset
        frame.call(LANE_NAME, "%w", frame.shadow, frame.index, lane, address, flags, row, offset, offset, data, data)


def _row(frame: Frame, number: Value) -> str:
    return frame.b.at("%v", number.to("i64") * ROW_BYTES)


def _emit_begin(frame: Frame) -> None:
    _next_time(frame)


def _next_time(frame: Frame) -> Value:
    """The time that is next, after which times begin anew where there is no room for more."""
    b = frame.b
    with b.when(b.field(frame.group, GroupShadow, "last").cmp("uge", MOST_TIME)):
        frame.call(RESTART, "%w")
    return b.field(frame.group, GroupShadow, "last") + 1


def _emit_barrier(frame: Frame) -> None:
    """A wave comes to a barrier: what it did is older than what follows, and it may not have waited for all of it."""
    b = frame.b
    now = _next_time(frame)
    barriers = b.field(frame.shadow, WaveShadow, "barriers") + 1
    b.set_field(frame.shadow, WaveShadow, "barriers", barriers)
    b.set_field(frame.group, GroupShadow, "last", now)
    parity = barriers & 1
    b.store(now, b.at(b.at(frame.group, GroupShadow.floors.offset), parity.shl(3)), 8)
    _leave_done(frame, [parity.shl(2)])


def _emit_end(frame: Frame) -> None:
    """A wave ends: for all barriers to come it has waited for no more."""
    _leave_done(frame, [0, 4])


def _leave_done(frame: Frame, places: list[Value | int]) -> None:
    """Keeps what the wave has waited for, at places for the last two barriers."""
    b = frame.b
    wave = group_wave(b, frame.group, b.field("%w", Worker, "wave"))
    vm, lgkm = (b.field(frame.shadow, WaveShadow, f"{name}_done") for name in ("vm", "lgkm"))
    for place in places:
        b.store(vm, b.at(b.at(wave, GroupWave.vm_done.offset), place))
        b.store(lgkm, b.at(b.at(wave, GroupWave.lgkm_done.offset), place))
    with b.when(b.field(wave, GroupWave, "written").cmp("ugt", lgkm)):
        b.set_field(frame.group, GroupShadow, "unwaited", b.field(frame.group, GroupShadow, "last"))


def _emit_wave_barrier(frame: Frame) -> None:
    """A barrier of the wave: it orders its lanes, which in a workgroup of one wave are all."""
    b = frame.b
    with b.when(frame.exec.cmp("ne", 0)):
        now = _next_time(frame)
        b.set_field(frame.group, GroupShadow, "last", now)
        b.set_field(frame.shadow, WaveShadow, "floor", now)
        with b.when(b.field(b.field("%w", Worker, "launch").name, Launch, "waves").cmp("eq", 1)):
            for parity in range(2):
                b.store(now, b.at(frame.group, GroupShadow.floors.offset + 8 * parity), 8)
            with b.when(b.field(frame.shadow, WaveShadow, "barriers").cmp("eq", 0)):
                b.set_field(frame.shadow, WaveShadow, "barriers", 2)


def _restart_text(name: str) -> str:
    """Times begin anew: all cells are cleared, so that nothing is known of what was since the last barrier."""
    b = Builder()
    group = b.field("%w", Worker, "group_shadow").name
    size = ((b.field("%w", Worker, "lds_bytes") + (LDS_SPARE + LDS_STEP - 1)) & -LDS_STEP) * CELL_BYTES
    place = b.let("alloca i64", "ptr").name
    b.store(b.const(0, "i64"), place, 8)
    with b.forever() as (_, end):
        at = b.load(place, "i64", align=8)
        b.leave_when(at.cmp("uge", size), end)
        b.store(b.const(0, "i64", 8), b.at(b.at(group, CELLS_AT), at), 8)
        b.store(at + 64, place, 8)
    for field, value in (("first", 1), ("last", 1), ("unwaited", 0), ("met_first", 0)):
        b.set_field(group, GroupShadow, field, value)
    for parity in range(2):
        b.store(b.const(1, "i64"), b.at(group, GroupShadow.floors.offset + 8 * parity), 8)
    b.do("ret void")
    return b.function(name, "void @(ptr %w)")


INSTRUMENT = Races()
