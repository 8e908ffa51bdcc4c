"""The check of missing `s_waitcnt`: registers used before the load that fills them is known to have come back.

Operations of vector memory raise vmcnt and come back in order, those of LDS raise lgkmcnt and do so too; scalar loads
raise lgkmcnt, flat ones both, and come back in any order, so that while one is on its way only a wait for 0 says
anything. A register is pending from its load until enough has been waited for; reading it is a finding, and so is
overwriting it by what is not ordered behind the load. Then it counts as arrived, so that only the first use is told.
A wave holds no more operations than its counter counts: it issues no other one before the first is back.

Of a vector register the lanes count that were active at the load: others are not filled, and may be used. An
instruction that obeys EXEC uses its active lanes, any other one (matrix instructions, v_readlane) all of them.
Nothing else waits: neither s_barrier nor the end. Source: CDNA3 and CDNA4 ISA, "Manually inserted wait states" and
S_WAITCNT; LLVM 22, SIInsertWaitcnts, whose output is clean under this check.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from flylab.codegen.assembly.effects import Effects, effects
from flylab.codegen.assembly.registers import register_name
from flylab.codegen.isa import IsaKernel
from flylab.emulator.checks.lds_use import may_use_lds
from flylab.emulator.checks.pending import Register, Suspects, filled, in_order, suspects
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.linking import Code
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.probes.probe import Frame, Piece, Site, find
from flylab.emulator.probes.shadow import RING, ROWS_AT, RowShadow, WaveShadow

MISSING_VM, MISSING_LGKM = 401, 402
_COUNTERS = {MISSING_VM: "vmcnt", MISSING_LGKM: "lgkmcnt"}
# What the fields of the shadow are called by counter.
_PREFIX = {"vmcnt": "vm", "lgkmcnt": "lgkm"}
# The most that each counts, in 6 and 4 bits.
_MOST = {"vmcnt": 63, "lgkmcnt": 15}
# Words of a use: the row or the scalar register, and flags.
OVERWRITES, ORDERED_VM, ORDERED_LGKM = 1, 2, 4


class Waits:
    """The instrument."""

    name = "waits"
    tally_bytes = 0

    def __init__(self) -> None:
        self.helpers: Mapping[str, Callable[[str], str]] = {
            "use row": _use_row_text, "use scalar": _use_scalar_text, "track": _track_text}
        self.kinds: Mapping[int, Callable[[Entry, Scene], Finding]] = {
            kind: partial(_finding, counter) for kind, counter in _COUNTERS.items()}

    def prepare(self, template: object, kernel: IsaKernel, registers: Registers) -> None:
        """Nothing is on its way when a wave begins."""

    def pieces(self, site: Site) -> Sequence[Piece]:
        """Uses of registers that may be pending, then what the instruction issues or waits for.

        What other checks put behind these pieces sees an operation's own numbers in `vm_issued` and `lgkm_issued`.
        """
        found, counted = site.once(_suspects)
        uses = found.by_instruction[site.instruction.index]
        pieces = [_use(site, register, overwrites) for register, overwrites in uses]
        if counted and site.effects.raises:
            tracked = [r for r in filled(site.effects) if r in found.registers]
            pieces.append(_issue(site, tracked))
        if counted:
            pieces += [Piece(f"wait {name} {min(count, 1)}", partial(_emit_wait, name, count > 0), (count,))
                       for name, count in site.effects.waits.items()]
        return pieces


def _suspects(code: Code) -> tuple[Suspects, bool]:
    """What may be pending in a kernel; whether its operations must be counted, for this check or that of LDS."""
    kernel = code.kernel
    found = suspects([i.mnemonic for i in kernel.instructions], [i.operands for i in kernel.instructions],
                     kernel.labels, [effects(i, kernel.target) for i in kernel.instructions])
    return found, bool(found.registers) or may_use_lds(code)


def _place(registers: Registers, register: Register) -> int:
    """The row of a vector register, or the number of a scalar one."""
    file, number = register
    return registers.accumulators + number if file == "a" else number


def _use(site: Site, register: Register, overwrites: bool) -> Piece:
    effect = site.effects
    ordered = effect.raises if overwrites and in_order(effect) else ()
    flags = OVERWRITES * overwrites | ORDERED_VM * ("vmcnt" in ordered) | ORDERED_LGKM * ("lgkmcnt" in ordered)
    words = _place(site.registers, register), flags
    if register[0] == "s":
        return Piece("use scalar", _emit_use_scalar, words, ("use scalar",))
    return Piece(f"use row {effect.ignores_exec}", partial(_emit_use_row, effect.ignores_exec), words, ("use row",))


def _emit_use_row(ignores_exec: bool, frame: Frame) -> None:
    lanes = frame.b.const(-1, "i64") if ignores_exec else frame.exec
    frame.call("use row", "%w", frame.shadow, frame.index, lanes, frame.word(0), frame.word(1))


def _emit_use_scalar(frame: Frame) -> None:
    frame.call("use scalar", "%w", frame.shadow, frame.index, frame.exec, frame.word(0), frame.word(1))


def _issue(site: Site, tracked: Sequence[Register]) -> Piece:
    """The operation gets the next number of its counters, and the registers that it fills are pending."""
    effect = site.effects
    scalar = bool(tracked) and tracked[0][0] == "s"
    words = tuple(_place(site.registers, register) for register in tracked)
    key = f"issue {effect.raises} {in_order(effect)} {effect.kind == 'flat'} {scalar} {len(words)}"
    emit = partial(_emit_issue, effect.raises, in_order(effect), effect.kind == "flat", scalar, len(words))
    return Piece(key, emit, words, ("track",) if words and not scalar else ())


def _emit_issue(raises: Sequence[str], ordered: bool, flat: bool, scalar: bool, count: int, frame: Frame) -> None:
    b, numbers = frame.b, {}
    for name in raises:
        prefix = _PREFIX[name]
        numbers[name] = number = b.field(frame.shadow, WaveShadow, f"{prefix}_issued") + 1
        b.set_field(frame.shadow, WaveShadow, f"{prefix}_issued", number)
        ring = b.at(frame.shadow, getattr(WaveShadow, f"{prefix}_ring").offset)
        b.store(frame.index.to("i32"), b.at(ring, (number & RING - 1).to("i64").shl(2)))
        if not ordered:
            b.set_field(frame.shadow, WaveShadow, f"{prefix}_flat" if flat else "lgkm_scalar", number)
        _emit_full(b, frame.shadow, name, number)
    for n in range(count):
        if scalar:
            b.store(numbers["lgkmcnt"], _scalar(b, frame.shadow, frame.word(n)))
        else:
            zero = b.const(0, "i32")
            frame.call("track", frame.shadow, frame.index, frame.exec, frame.word(n), numbers.get("vmcnt", zero),
                       numbers.get("lgkmcnt", zero))


def _emit_full(b: Builder, shadow: str, name: str, number: Value) -> None:
    """An operation that is issued while its counter is full waits for the first of those on their way."""
    prefix, most = _PREFIX[name], _MOST[name]
    done = b.field(shadow, WaveShadow, f"{prefix}_done")
    with b.when((number - done).cmp("ugt", most) & _in_order(b, shadow, prefix, done)):
        b.set_field(shadow, WaveShadow, f"{prefix}_done", number - most)


def _emit_wait(name: str, some: bool, frame: Frame) -> None:
    """Up to how many operations are done: all, or, where none is out of order, all but the last few."""
    b, prefix = frame.b, _PREFIX[name]
    issued, done = (b.field(frame.shadow, WaveShadow, f"{prefix}_{which}") for which in ("issued", "done"))
    if some:
        most = issued.call("usub.sat", frame.word(0)).call("umax", done)
        issued = _in_order(b, frame.shadow, prefix, done).select(most, done)
    b.set_field(frame.shadow, WaveShadow, f"{prefix}_done", issued)


def _in_order(b: Builder, shadow: str, prefix: str, done: Value) -> Value:
    """True where no operation on its way comes back out of order."""
    last = b.field(shadow, WaveShadow, f"{prefix}_flat")
    if prefix == "lgkm":
        last = last.call("umax", b.field(shadow, WaveShadow, "lgkm_scalar"))
    return last.cmp("ule", done)


def _row(b: Builder, shadow: str, number: Value) -> str:
    return b.at(b.at(shadow, ROWS_AT), number.to("i64") * ctypes.sizeof(RowShadow))


def _scalar(b: Builder, shadow: str, number: Value) -> str:
    return b.at(b.at(shadow, WaveShadow.sgpr_lgkm.offset), number.to("i64").shl(2))


def _track_text(name: str) -> str:
    """A row that a load will fill, in its active lanes; lanes that an earlier one is still to fill stay pending."""
    b = Builder()
    lanes, row = Value(b, "%lanes", "i64"), _row(b, "%shadow", Value(b, "%row", "i32"))
    with b.when(lanes.cmp("ne", 0)):
        before = b.const(False, "i1")
        for prefix in _PREFIX.values():
            done = b.field("%shadow", WaveShadow, f"{prefix}_done")
            before = before | b.field(row, RowShadow, prefix).cmp("ugt", done)
        b.set_field(row, RowShadow, "lanes", lanes | before.select(b.field(row, RowShadow, "lanes"), 0))
        for prefix in _PREFIX.values():
            number = Value(b, f"%{prefix}", "i32")
            with b.when(number.cmp("ne", 0)):
                b.set_field(row, RowShadow, prefix, number)
                b.set_field(row, RowShadow, f"{prefix}_at", Value(b, "%index", "i64").to("i32"))
    b.do("ret void")
    return b.function(name, "void @(ptr %shadow, i64 %index, i64 %lanes, i32 %row, i32 %vm, i32 %lgkm)")


_USE = "void @(ptr %w, ptr %shadow, i64 %index, i64 %lanes, i32 %place, i32 %flags)"


def _use_row_text(name: str) -> str:
    """A use of a row: a finding for each counter that it is still behind."""
    b = Builder()
    place, flags = Value(b, "%place", "i32"), Value(b, "%flags", "i32")
    row = _row(b, "%shadow", place)
    lanes = Value(b, "%lanes", "i64") & b.field(row, RowShadow, "lanes")
    with b.when(lanes.cmp("ne", 0)):
        for kind, flag in ((MISSING_VM, ORDERED_VM), (MISSING_LGKM, ORDERED_LGKM)):
            prefix = _PREFIX[_COUNTERS[kind]]
            number, done = b.field(row, RowShadow, prefix), b.field("%shadow", WaveShadow, f"{prefix}_done")
            with b.when(number.cmp("ugt", done) & (flags & flag).cmp("eq", 0)):
                load = b.field(row, RowShadow, f"{prefix}_at").to("i64")
                _find(b, kind, lanes, load, number, done)
                b.set_field(row, RowShadow, prefix, 0)
    b.do("ret void")
    return b.function(name, _USE)


def _use_scalar_text(name: str) -> str:
    """A use of a scalar register."""
    b = Builder()
    place = _scalar(b, "%shadow", Value(b, "%place", "i32"))
    number, done = b.load(place, "i32"), b.field("%shadow", WaveShadow, "lgkm_done")
    with b.when(number.cmp("ugt", done)):
        ring = b.at("%shadow", WaveShadow.lgkm_ring.offset)
        load = b.load(b.at(ring, (number & RING - 1).to("i64").shl(2)), "i32").to("i64")
        _find(b, MISSING_LGKM, Value(b, "%lanes", "i64"), load, number, done)
        b.store(b.const(0, "i32"), place)
    b.do("ret void")
    return b.function(name, _USE)


def _find(b: Builder, kind: int, lanes: Value, load: Value, number: Value, done: Value) -> None:
    """A finding for the load; with it, how far a wait would have to go, the flags, and the register's place."""
    prefix = _PREFIX[_COUNTERS[kind]]
    behind = b.field("%shadow", WaveShadow, f"{prefix}_issued") - number
    needed = _in_order(b, "%shadow", prefix, done).select(behind, 0)
    find(b, "%w", Value(b, "%index", "i64"), kind, lanes.count("cttz") & 63, load, needed, Value(b, "%flags", "i32"),
         Value(b, "%place", "i32"))


def _finding(counter: str, entry: Entry, scene: Scene) -> Finding:
    """The finding in words."""
    kernel, load = scene.kernel, int(entry.key)
    needed, flags, place = (int(n) for n in entry.more[:3])
    first = scene.instruction(load)
    use = scene.instruction(entry.index)
    names = ", ".join(_named(effects(first, kernel.target), effects(use, kernel.target), bool(flags & OVERWRITES)))
    names = names or f"register {place}"
    does = "is overwritten" if flags & OVERWRITES else "is used"
    wait = f"s_waitcnt {counter}({needed})"
    return scene.finding(
        entry, "missing wait", f"{names} {does} before the load that fills it has been waited for: "
        f"{scene.at(load)}", f"{wait} before it would do", (load,), registers=names, counter=counter, count=needed)


def _named(load: Effects, use: Effects, overwrites: bool) -> Iterator[str]:
    """The registers of a load that another instruction uses, as its text would have them."""
    wanted = {(s.file, s.first + n) for s in (use.writes if overwrites else use.reads) for n in range(s.count)}
    for span in load.writes:
        run: list[int] = []
        for number in (*range(span.first, span.first + span.count), -1):
            if (span.file, number) in wanted:
                run.append(number)
            elif run:
                yield register_name(span.file, run[0], len(run))
                run = []


INSTRUMENT = Waits()
