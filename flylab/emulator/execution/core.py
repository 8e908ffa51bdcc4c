"""The native core: the scheduler of waves and workgroups."""

from __future__ import annotations

import ctypes

from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.probes.shadow import MOST_WAVES, GroupShadow, GroupWave, WaveShadow
from flylab.emulator.state import (
    BARRIER,
    DONE,
    END,
    EXEC,
    FAULT,
    FINISHED,
    FIRST,
    LDS_FILL,
    LDS_STEP,
    PAUSED,
    PROBE,
    PROBES,
    READY,
    ROW_BYTES,
    SGPR_COUNT,
    STRETCH,
    SUSPENDED,
    TURN,
    WAITING,
    WAVE_SIZE,
    YIELD,
    Launch,
    Wave,
    Worker,
)

HASH_FACTOR = 0x9E3779B97F4A7C15  # odd, so that a product with it is one to one


def run_text(name: str) -> str:
    """A worker: runs workgroups in rising order until none is left, a lower one failed, or the launch was stopped.

    Returns FINISHED; FAULT with the fault's fields set; SUSPENDED where the workgroup at hand has used up its turn or
    only spins, with what it is in the worker; PAUSED between two workgroups, for Python to see to its signals.
    """
    b = Builder()
    launch = b.field("%w", Worker, "launch").name
    b.set_field("%w", Worker, "turn_end", b.field("%w", Worker, "count") + TURN)
    with b.forever() as (_, finished):
        with b.when(b.field("%w", Worker, "resuming").cmp("eq", 0)):
            _next_group(b, launch, finished)
        first = b.field("%w", Worker, "resuming").cmp("eq", 0).select(b.const(FIRST, "i64"), PROBE)
        _new_stretch(b, first)
        for field in ("resuming", "looks", "idle"):
            b.set_field("%w", Worker, field, 0)
        group = b.field("%w", Worker, "group")
        _group(b, launch, group, finished)
        b.set_field("%w", Worker, "group", group + 1)
        _count(b, "groups")
        b.leave_when(b.field(launch, Launch, "stepping").cmp("ne", 0), finished)
        with b.when(b.field("%w", Worker, "count").cmp("uge", b.field("%w", Worker, "turn_end"))):
            _return(b, PAUSED)
    b.do(f"ret i32 {FINISHED}")
    return b.function(name, "i32 @(ptr %w)")


def take_text(name: str) -> str:
    """The number of the next workgroup of a launch that nobody took, as an i64; from `total` on there is none."""
    b = Builder()
    b.do("%taken = atomicrmw add ptr " + b.at("%launch", Launch.next.offset) + ", i64 1 monotonic")
    b.do("ret i64 %taken")
    return b.function(name, "i64 @(ptr %launch)")


def _return(b: Builder, status: int) -> None:
    b.do(f"ret i32 {status}")
    b.label(b.fresh("unreached"))


def _next_group(b: Builder, launch: str, finished: str) -> None:
    """The next workgroup of the worker's, which are taken in chunks; to `finished` where there is none to begin."""
    group = b.field("%w", Worker, "group")
    with b.when(group.cmp("uge", b.field("%w", Worker, "group_end"))):
        b.leave_when(b.field(launch, Launch, "stepping").cmp("ne", 0), finished)
        chunk = b.field(launch, Launch, "chunk")
        start = b.let(f"atomicrmw add ptr {b.at(launch, Launch.next.offset)}, {chunk.typed} monotonic", "i64")
        b.set_field("%w", Worker, "group", start)
        b.set_field("%w", Worker, "group_end", (start + chunk).call("umin", b.field(launch, Launch, "total")))
    group = b.field("%w", Worker, "group")
    b.leave_when(group.cmp("uge", b.field(launch, Launch, "total")), finished)
    _leave_when_stopped(b, launch, group, finished)
    b.set_field("%w", Worker, "used", 0)
    b.set_field("%w", Worker, "group_count", b.field("%w", Worker, "count"))
    _fill_lds(b)
    begin_group_shadow(b)
    _set_states(b, launch, None, READY)


def _leave_when_stopped(b: Builder, launch: str, group: Value, target: str) -> None:
    """Leaves on Ctrl-C, and where a workgroup with a lower number has failed: that one is the launch's error."""
    stop, limit = (b.let(f"load atomic i64, ptr {b.at(launch, offset)} monotonic, align 8", "i64")
                   for offset in (Launch.stop.offset, Launch.limit.offset))
    b.leave_when(stop.cmp("ne", 0) | limit.cmp("ult", group), target)


def _count(b: Builder, name: str) -> None:
    b.set_field("%w", Worker, name, b.field("%w", Worker, name) + 1)


def _group(b: Builder, launch: str, group: Value, finished: str) -> None:
    """Runs one workgroup: rounds over its waves; when none is ready, those at the barrier go on."""
    with b.forever() as (_, group_done):
        for name in ("ready", "waiting", "wave"):
            b.set_field("%w", Worker, name, 0)
        with b.forever() as (_, round_done):
            index = b.field("%w", Worker, "wave")
            b.leave_when(index.cmp("uge", b.field(launch, Launch, "waves")), round_done)
            wave = _wave_at(b, index)
            with b.when(b.field(wave, Wave, "state").cmp("eq", READY)):
                _run_wave(b, launch, group, index, wave, finished)
            with b.when(b.field(wave, Wave, "state").cmp("eq", WAITING)):
                _count(b, "waiting")
            b.set_field("%w", Worker, "wave", index + 1)
        with b.when(b.field("%w", Worker, "ready").cmp("eq", 0)):
            b.leave_when(b.field("%w", Worker, "waiting").cmp("eq", 0), group_done)
            _leave_when_stopped(b, launch, group, finished)
            _set_states(b, launch, WAITING, READY)
        long = b.field("%w", Worker, "count").cmp("uge", b.field("%w", Worker, "look_at"))
        with b.when(b.field("%w", Worker, "ready").cmp("ne", 0) | long):
            _look(b, launch)


def _look(b: Builder, launch: str) -> None:
    """After a round in which a wave used up its stretch: suspends a workgroup that only spins, or whose turn is over.

    It only spins where the state of all its waves comes back while no memory changed. In the first PROBES looks of a
    turn the state is compared with one that is held, which is replaced at ages that double (Brent). The stretches are
    the same between two looks, so a state has one successor. How the waves are interleaved does not matter: with memory
    as it is, each of them repeats what it did.
    """
    looks = b.field("%w", Worker, "looks")
    with b.when(looks.cmp("eq", PROBES)):
        with b.when(b.field("%w", Worker, "count").cmp("uge", b.field("%w", Worker, "turn_end"))):
            _return(b, SUSPENDED)
        _new_stretch(b, b.const(STRETCH, "i64"))
    with b.when(looks.cmp("ult", PROBES)):
        b.set_field("%w", Worker, "looks", looks + 1)
        _new_stretch(b, (looks + 1).cmp("eq", PROBES).select(b.const(STRETCH, "i64"), PROBE))
        b.set_field("%w", Worker, "vectors", 0)
        _hash_waves(b, launch, "hash", vectors=False)
        now, changes, first = b.field("%w", Worker, "hash"), b.field("%w", Worker, "changes"), looks.cmp("eq", 0)
        same = now.cmp("eq", b.field("%w", Worker, "held")) & changes.cmp("eq", b.field("%w", Worker, "held_changes"))
        with b.when(~first & same):
            _hash_waves(b, launch, "vectors", vectors=True)
            with b.when(b.field("%w", Worker, "vectors").cmp("eq", b.field("%w", Worker, "held_vectors"))):
                b.set_field("%w", Worker, "idle", 1)
                _return(b, SUSPENDED)
        age, oldest = b.field("%w", Worker, "age") + 1, b.field("%w", Worker, "oldest")
        b.set_field("%w", Worker, "age", age)
        vectors = b.field("%w", Worker, "vectors")
        unknown = vectors.cmp("ne", 0) & b.field("%w", Worker, "held_vectors").cmp("eq", 0)
        with b.when(first | age.cmp("eq", oldest) | unknown):
            for name, value in (("held", now), ("held_vectors", vectors), ("held_changes", changes), ("age", 0)):
                b.set_field("%w", Worker, name, value)
            b.set_field("%w", Worker, "oldest", first.select(b.const(1, "i64"), oldest.shl(1)))


def _new_stretch(b: Builder, stretch: Value) -> None:
    b.set_field("%w", Worker, "stretch", stretch)
    b.set_field("%w", Worker, "look_at", b.field("%w", Worker, "count") + stretch)


def _hash_waves(b: Builder, launch: str, field: str, vectors: bool) -> None:
    """Sets a field from each wave: where it is, whether it waits, its scalar registers; or vector registers and private
    memory."""
    b.set_field("%w", Worker, field, 1)
    b.set_field("%w", Worker, "cursor", 0)
    with b.forever() as (_, end):
        index = b.field("%w", Worker, "cursor")
        b.leave_when(index.cmp("uge", b.field(launch, Launch, "waves")), end)
        wave = _wave_at(b, index)
        state = b.field(wave, Wave, "state")
        _mix(b, field, state)
        with b.when(state.cmp("ne", DONE)):
            vgprs, sgprs = registers_of(b, launch, b.field(wave, Wave, "slot"))
            if vectors:
                _hash_bytes(b, field, vgprs, b.field(launch, Launch, "state_bytes"))
            else:
                _mix(b, field, b.let(f"ptrtoint ptr {b.field(wave, Wave, 'pc').name} to i64", "i64"))
                _hash_bytes(b, field, sgprs, b.const(4 * SGPR_COUNT, "i64"))
        b.set_field("%w", Worker, "cursor", index + 1)


def _mix(b: Builder, field: str, value: Value) -> None:
    mixed = (b.field("%w", Worker, field) ^ value) * HASH_FACTOR
    b.set_field("%w", Worker, field, mixed ^ mixed.shr(32))


def _hash_bytes(b: Builder, field: str, pointer: str, size: Value) -> None:
    """Mixes memory into a field; `size` is a multiple of 64 and not 0. Each step is one to one in all eight columns."""
    before, head, end = b.fresh("before"), b.fresh("head"), b.fresh("after")
    at, following, columns, mixed = ("%" + b.fresh(prefix) for prefix in ("at", "next", "columns", "mixed"))
    b.jump(before)
    b.label(before)
    b.jump(head)
    b.label(head)
    b.do(f"{at} = phi i64 [ 0, %{before} ], [ {following}, %{head} ]")
    b.do(f"{columns} = phi <8 x i64> [ zeroinitializer, %{before} ], [ {mixed}, %{head} ]")
    value = (Value(b, columns, "i64", 8) ^ b.load(b.at(pointer, Value(b, at, "i64")), "i64", 8, 64)) * HASH_FACTOR
    b.do(f"{mixed} = xor {value.typed}, {value.shr(29).name}")
    b.do(f"{following} = add i64 {at}, 64")
    b.branch(Value(b, following, "i64").cmp("uge", size), end, head)
    b.label(end)
    for column in range(8):
        _mix(b, field, b.let(f"extractelement <8 x i64> {mixed}, i64 {column}", "i64"))


def _wave_at(b: Builder, index: Value) -> str:
    return b.at(b.field("%w", Worker, "waves").name, index * ctypes.sizeof(Wave))


def _fill_lds(b: Builder) -> None:
    """The workgroup's LDS as it begins: what a kernel reads of it before it writes is garbage, and always the same."""
    _fill(b, "lds", LDS_FILL)


def _fill(b: Builder, memory: str, word: int) -> None:
    """Fills the bytes that go with those of LDS."""
    b.set_field("%w", Worker, "cursor", 0)
    with b.forever() as (_, end):
        at = b.field("%w", Worker, "cursor")
        b.leave_when(at.cmp("uge", b.field("%w", Worker, "lds_bytes")), end)
        place = b.at(b.field("%w", Worker, memory).name, at)
        for step in range(0, LDS_STEP, 64):
            b.store(b.const(word, "i32", 16), b.at(place, step), 64)
        b.set_field("%w", Worker, "cursor", at + LDS_STEP)


def begin_group_shadow(b: Builder) -> None:
    """A workgroup's shadow as it begins: in an epoch of its own, no wave has been anywhere, nobody wrote to LDS."""
    shadow = b.field("%w", Worker, "group_shadow").name
    with b.when(b.let(f"icmp ne ptr {shadow}, null", "i1")):
        first = b.field(shadow, GroupShadow, "last") + 1
        b.set_field(shadow, GroupShadow, "first", first)
        b.set_field(shadow, GroupShadow, "last", first)
        words = ctypes.sizeof(GroupWave) * MOST_WAVES // 4
        b.store(b.const(0, "i32", words), b.at(shadow, GroupShadow.waves.offset), 8)
        _fill(b, "lds_defined", 0)


def _set_states(b: Builder, launch: str, old: int | None, new: int) -> None:
    """Every wave from state `old` to `new`; with no old state, every wave to its very beginning."""
    b.set_field("%w", Worker, "cursor", 0)
    with b.forever() as (_, end):
        index = b.field("%w", Worker, "cursor")
        b.leave_when(index.cmp("uge", b.field(launch, Launch, "waves")), end)
        wave = _wave_at(b, index)
        if old is None:
            b.set_field(wave, Wave, "pc", "null")
            b.set_field(wave, Wave, "state", new)
        else:
            with b.when(b.field(wave, Wave, "state").cmp("eq", old)):
                b.set_field(wave, Wave, "state", new)
        b.set_field("%w", Worker, "cursor", index + 1)


def _run_wave(b: Builder, launch: str, group: Value, index: Value, wave: str, finished: str) -> None:
    """Runs a ready wave until it ends, waits, has used its budget, or fails."""
    with b.when(b.let(f"icmp eq ptr {b.field(wave, Wave, 'pc').name}, null", "i1")):
        used = b.field("%w", Worker, "used")
        b.set_field(wave, Wave, "slot", used)
        b.set_field("%w", Worker, "used", used + 1)
        b.set_field(wave, Wave, "pc", b.field(launch, Launch, "entry"))
        begin_wave(b, launch, group, index, *registers_of(b, launch, used))
    vgprs, sgprs = registers_of(b, launch, b.field(wave, Wave, "slot"))
    pc = b.field(wave, Wave, "pc")
    b.set_field("%w", Worker, "base", pc)
    b.set_field("%w", Worker, "until", b.field("%w", Worker, "count") + b.field("%w", Worker, "stretch"))
    handler = b.load(pc.name, "ptr", align=8)
    status = b.let(f"call i32 {handler.name}({pc.typed}, ptr {vgprs}, ptr {sgprs}, ptr %w)", "i32")
    with b.when(status.cmp("eq", FAULT)):
        b.do(f"atomicrmw umin ptr {b.at(launch, Launch.limit.offset)}, {group.typed} monotonic")
        b.do(f"ret i32 {FAULT}")
        b.label(b.fresh("unreached"))
    with b.when(status.cmp("eq", END)):
        b.set_field(wave, Wave, "state", DONE)
        slot = b.field(wave, Wave, "slot")
        with b.when((slot + 1).cmp("eq", b.field("%w", Worker, "used"))):
            b.set_field("%w", Worker, "used", slot)  # the next wave takes the same, warm registers
    with b.when(status.cmp("ne", END)):
        b.set_field(wave, Wave, "pc", b.field("%w", Worker, "pc"))
    with b.when(status.cmp("eq", BARRIER)):
        b.set_field(wave, Wave, "state", WAITING)
    with b.when(status.cmp("eq", YIELD)):
        _count(b, "ready")
        _leave_when_stopped(b, launch, group, finished)


def registers_of(b: Builder, launch: str, slot: Value) -> tuple[str, str]:
    """The pointers to the vector and the scalar registers in a slot of the worker's."""
    vgprs = b.at(b.field("%w", Worker, "vgprs").name, slot * b.field(launch, Launch, "vgpr_bytes"))
    return vgprs, b.at(b.field("%w", Worker, "sgprs").name, slot * (4 * SGPR_COUNT))


def begin_wave(b: Builder, launch: str, group: Value, index: Value, vgprs: str, sgprs: str) -> None:
    """The registers at a wave's start: scalar ones from the launch, workgroup ids, work-item ids, EXEC."""
    b.store(b.load(b.field(launch, Launch, "initial_sgprs").name, "i32", SGPR_COUNT), sgprs)
    row = b.at(b.field(launch, Launch, "initial_v0").name, index * ROW_BYTES)
    b.store(b.load(row, "i32", WAVE_SIZE), vgprs)
    mask = b.at(b.field(launch, Launch, "initial_exec").name, index * 8)
    b.store(b.load(mask, "i64"), b.at(sgprs, 4 * EXEC))
    _begin_shadow(b, launch, vgprs, b.load(mask, "i64"))
    x_count, y_count = b.field(launch, Launch, "grid_x"), b.field(launch, Launch, "grid_y")
    rows = group.divide(x_count)
    for name, value in (("x", group.modulo(x_count)), ("y", rows.modulo(y_count)), ("z", rows.divide(y_count))):
        b.store(value.to("i32"), b.at(sgprs, b.field(launch, Launch, f"group_{name}_at")))


def _begin_shadow(b: Builder, launch: str, vgprs: str, exec_: Value) -> None:
    """A wave's shadow as it begins, where the launch has one: a copy of the launch's."""
    size = b.field(launch, Launch, "shadow_bytes")
    shadow = b.at(vgprs, b.field(launch, Launch, "shadow_at"))
    with b.when(size.cmp("ne", 0)):
        b.set_field("%w", Worker, "cursor", 0)
        with b.forever() as (_, end):
            at = b.field("%w", Worker, "cursor")
            b.leave_when(at.cmp("uge", size), end)
            b.store(b.load(b.at(b.field(launch, Launch, "shadow").name, at), "i64", 8, 64), b.at(shadow, at), 64)
            b.set_field("%w", Worker, "cursor", at + 64)
        b.set_field(shadow, WaveShadow, "initial_exec", exec_)
