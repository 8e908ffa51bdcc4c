"""The log of accesses against the addresses that a kernel was given, and against the layouts of tiled copies."""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.copy import tiled_copy as copying

import flylab
import flylab.expr as fx
from flylab.emulator import Program
from flylab.emulator.log import AccessLog, Tensor
from flylab.errors import DeviceError
from tests.emulator.counters.accesses import COPIES, WAVES, brute_force, random_accesses, run
from tests.emulator.toolchain import CHIPS, assembly


def _log(text: str, chip: str) -> AccessLog:
    log = run(chip, text, random_accesses(1, False), log=True).log
    assert log is not None
    return log


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("text", "size", "offsets", "does"), [
    ("ds_read_b128 v[10:13], v2 offset:24", 16, [24], "load"),
    ("ds_write2_b32 v2, v10, v11 offset0:3 offset1:9", 4, [12, 36], "store"),
    ("ds_wrxchg2_rtn_b64 v[10:13], v2, v[14:15], v[16:17] offset0:1 offset1:0", 8, [8, 0], "atomic")])
def test_accesses_of_lds_are_logged_as_they_were_made(chip: str, text: str, size: int, offsets: list[int],
                                                      does: str) -> None:
    log, accesses = _log(text, chip), random_accesses(1, False)
    numbers = [n for n, other in enumerate(log.texts) if other.strip() == text]
    some = accesses.active.any(axis=1)
    assert len(log.where(space="lds")) == len(offsets) * some.sum() and log.left_out == 0
    for copy in (0, 5, COPIES - 1):
        for wave in range(0, WAVES, 11):
            entries = log.where(instruction=numbers[copy], block=wave).entries
            access = wave * COPIES + copy
            assert len(entries) == len(offsets) * some[access]
            for place, (entry, offset) in enumerate(zip(entries, offsets, strict=False)):
                wanted = np.where(accesses.active[access], accesses.addresses[access] + offset, 0)
                assert np.array_equal(entry["addresses"], wanted.astype(np.uint64))
                assert entry["lanes"] == accesses.masks[access]
                assert (entry["bytes"], entry["does"], entry["place"], entry["visit"]) == (size, does, place, 0)


@pytest.mark.parametrize("chip", CHIPS)
def test_words_banks_and_cycles_of_an_entry(chip: str) -> None:
    log, accesses = _log("ds_read_b64 v[10:11], v2", chip), random_accesses(1, False)
    cycles = brute_force(chip, "read", 8, accesses)[1][accesses.active.any(axis=1)]
    lds = log.where(space="lds")
    for n in range(0, len(lds), 37):
        traffic = lds.lds(n)
        assert sum(traffic.cycles) == cycles[n]
        assert np.array_equal(traffic.words, traffic.offsets[:, None] // 4 + np.arange(2))
        assert np.array_equal(traffic.banks, traffic.words % {"gfx942": 32, "gfx950": 64}[chip])
        assert np.array_equal(traffic.phase, traffic.lanes // {"gfx942": 16, "gfx950": 32}[chip])


def test_a_full_log_says_how_many_accesses_it_left_out() -> None:
    whole, part = _log("ds_read_b32 v10, v2", "gfx942"), run(
        "gfx942", "ds_read_b32 v10, v2", random_accesses(1, False), log=10).log
    assert part is not None
    assert np.array_equal(part.entries, whole.entries[:10]) and part.left_out == len(whole) - 10
    assert f"{part.left_out:,} more were left out" in str(part)


def test_visits_count_the_rounds_of_a_loop_for_each_wave() -> None:
    body = """  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_mov_b32 s6, 3
  s_waitcnt lgkmcnt(0)
.Lnext:
  global_load_dword v2, v1, s[4:5]
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 .Lnext
  s_waitcnt vmcnt(0)
  s_endpgm"""
    log = Program.from_assembly(assembly(body)).launch(
        grid=2, block=128, args=[np.zeros(128, np.float32)], check=None, log=True).log
    assert log is not None and len(log) == 12
    for block in (0, 1):
        for wave in (0, 1):
            entries = log.where(block=block, wave=wave).entries
            assert entries["visit"].tolist() == [0, 1, 2] and entries["instruction"].tolist() == [4] * 3
            # A round has four instructions; the loads are the only ones that are logged.
            assert np.diff(entries["time"]).tolist() == [4, 4]
    assert (np.diff(log.where(block=1).entries["time"]) > 0).all()


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize(("dtype", "vec"), [(np.float32, 4), (np.float16, 8), (np.uint8, 4)])
def test_a_tiled_copy_touches_what_its_layout_says(chip: str, dtype: type, vec: int) -> None:
    rows, columns = copying.REPEAT * copying.ROWS, copying.COLUMNS * vec
    a, b = (np.zeros((2 * rows, 2 * columns), dtype) for _ in range(2))
    with flylab.use(chip), flylab.watch(check=None, log=True):
        (report,) = copying.tiled_copy(a, b, *a.shape, vec).reports
    log: AccessLog = report.log
    with flylab.use(chip):
        format_ = {np.float32: fx.Float32, np.float16: fx.Float16, np.uint8: fx.Uint8}[dtype]
        atom = fx.make_copy_atom(fx.rocdl.BufferCopy(vec * 8 * a.itemsize), format_)
        copy = fx.make_tiled_copy_tv(atom, fx.make_layout((copying.ROWS, copying.COLUMNS), (copying.COLUMNS, 1)),
                                     fx.make_layout((1, vec), (vec, 1)))
    places = fx.make_view((0, 0), fx.make_identity_layout((rows, columns)))
    read, written = log.where(does="load"), log.where(does="store")
    touched = {True: read.elements("A"), False: written.elements("B")}
    for block in range(4):
        row, column = block // 2 * rows, block % 2 * columns
        for thread in range(256):
            share = copy.get_slice(thread)
            for source, part in ((True, share.partition_S(places)), (False, share.partition_D(places))):
                wanted = {(row + i, column + j) for i, j in (part(n) for n in range(fx.size(part)))}
                mine = (read if source else written).entries
                elements = touched[source]
                chosen = (mine["block"][elements.entry] == block) & (
                    64 * mine["wave"][elements.entry] + elements.lane == thread)
                assert {tuple(c) for c in elements.coordinates[chosen].tolist()} == wanted
    assert len(touched[True]) == a.size == len(touched[False])


def test_coordinates_of_strided_views() -> None:
    base = np.zeros((6, 10), np.int32)
    views = {"whole": base, "inner": base[1:5, 2:9:3], "turned": base.T[::-1],
             "wide": np.broadcast_to(base[0], (4, 10))}
    for name, view in views.items():
        tensor = Tensor(name, view.ctypes.data, view.shape, view.strides, view.itemsize)
        every = base.ctypes.data + np.arange(base.nbytes)
        coordinates, inside = tensor.coordinates(every)
        wanted: dict[int, tuple[int, ...]] = {}
        for index in np.ndindex(view.shape):
            at = view.ctypes.data + sum(i * s for i, s in zip(index, view.strides, strict=True))
            for byte in range(4):
                wanted.setdefault(at + byte, index)
        found = {int(a): tuple(c) for a, c, good in zip(every, coordinates.tolist(), inside, strict=True) if good}
        assert found == wanted
    overlapping = Tensor("o", 0, (4, 4), (4, 4), 4)
    with pytest.raises(DeviceError, match="the elements of 'o' overlap: shape"):
        overlapping.coordinates(np.arange(4))


def test_what_a_log_cannot_show_is_told() -> None:
    log = _log("global_load_dword v10, v[4:5], off", "gfx942")
    with pytest.raises(DeviceError, match="entry 0 is a load of global memory, and none of LDS") as raised:
        log.lds(0)
    assert "space=" in str(raised.value.hint)
    with pytest.raises(DeviceError, match="the launch of 'k' has no array 'A'") as raised:
        log.elements("A")
    assert raised.value.hint == "it has a0, a1, a2"
    for entry in (len(log), -1):
        for ask in (log.lds, log.lanes):
            with pytest.raises(DeviceError, match=f"the log has no entry {entry}") as raised:
                ask(entry)
            assert raised.value.hint == f"it has {len(log)}, numbered from 0"
    for wrong in (-1, 1.5, "all", None):
        with pytest.raises(DeviceError, match="log is"):
            run("gfx942", "s_nop 0", random_accesses(1, False), log=wrong)


def test_the_size_of_a_log() -> None:
    """Memory is taken as it is written, so that much can be asked for; but not more than there are addresses."""
    text, one = "global_load_dword v10, v[4:5], off", random_accesses(1, False)
    few = run("gfx942", text, one, log=np.int64(2)).log
    assert few is not None and len(few) == 2 and few.left_out > 0
    many = run("gfx942", text, one, log=1 << 22).log
    assert many is not None and len(many) == len(few) + few.left_out
    for room in (1 << 50, 1 << 62, 1 << 80):
        with pytest.raises(DeviceError, match=f"no room for a log of {room} accesses"):
            run("gfx942", text, one, log=room)


def test_a_thread_is_found_by_its_coordinates() -> None:
    log = _log("ds_read_b32 v10, v2", "gfx942")
    mine = log.where(thread=(9, 0, 0), space="lds")
    active = random_accesses(1, False).active[:, 9]
    assert len(mine) == active.sum() and (mine.entries["lanes"] == 1 << 9).all()
