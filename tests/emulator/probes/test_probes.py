"""Probes: pieces of several instruments in one, their words and helpers, findings, and what a launch is watched for."""

from __future__ import annotations

import sys
import types
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import flylab
from flylab.emulator import Program, watch
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.linking import Code
from flylab.emulator.probes.findings import MOST_FINDINGS, Finding, check_error
from flylab.emulator.probes.probe import MOST_WORDS, Frame, Piece, find
from flylab.emulator.probes.shadow import GroupShadow, WaveShadow
from flylab.emulator.state import Worker
from flylab.emulator.watch import watched
from flylab.errors import CheckError, DeviceError, FlylabError, OutOfBounds
from flylab.places import SourceLine
from flylab.settings import SMALL_LAUNCH
from tests.emulator.toolchain import CHIPS, assembly
from tests.samples import kernel_of

KIND = 900
BODY = """
  v_mov_b32_e32 v1, 1
  s_cmp_lg_u32 s2, 0
  v_mov_b32_e32 v2, 2
  s_endpgm
"""


class Instrument:
    """One that puts the same pieces in front of each instruction whose name begins so."""

    def __init__(self, name: str, starts: str, emit: Callable[[Frame], None], words: tuple[int, ...] = (),
                 helpers: dict[str, Callable[[str], str]] | None = None, tally_bytes: int = 0):
        self.name, self.starts, self.emit, self.words = name, starts, emit, words
        self.helpers, self.tally_bytes = helpers or {}, tally_bytes
        # Native code is kept by its key, and this text may have changed.
        code = emit.__code__
        self.key = f"{zlib.crc32(code.co_code + repr([c for c in code.co_consts if isinstance(c, int)]).encode())}"
        self.kinds = {KIND: lambda e, s: s.finding(e, name, f"{name} {e.key} {list(e.more)}", f"mend {name}")}

    def pieces(self, site: object) -> list[Piece]:
        found = site.instruction.mnemonic.startswith(self.starts)  # type: ignore[attr-defined]
        return [Piece(self.key, self.emit, self.words, tuple(self.helpers))] if found else []

    def prepare(self, template: object, kernel: object, registers: object) -> None:
        template.wave.barriers = 5  # type: ignore[attr-defined]
        template.rows[1].origin = 77  # type: ignore[attr-defined]


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Instrument], None]]:
    def put(instrument: Instrument) -> None:
        module = types.ModuleType(f"flylab.emulator.{instrument.name}")
        module.INSTRUMENT = instrument  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, module.__name__, module)
        watch.CHECKS[instrument.name] = instrument.name

    monkeypatch.setattr(watch, "CHECKS", {})
    watch.instrument.cache_clear()
    yield put
    watch.instrument.cache_clear()


def findings(body: str = BODY, grid: int = 1, block: int = 64, chip: str = "gfx942") -> tuple:
    with pytest.raises(CheckError) as caught:
        Program.from_assembly(assembly(body, chip)).launch(grid=grid, block=block, args=[np.zeros(4, "i4")],
                                                           check="all")
    return caught.value.findings


@pytest.mark.parametrize("chip", CHIPS)
def test_pieces_of_two_instruments_have_their_own_words_and_helpers(
        chip: str, install: Callable[[Instrument], None]) -> None:
    def double(name: str) -> str:
        b = Builder()
        b.do(f"ret {(Value(b, '%x', 'i64') * 2).typed}")
        return b.function(name, "i64 @(ptr %w, i64 %x)")

    def plain(frame: Frame) -> None:
        frame.find(KIND, 2, frame.word(1), frame.word(0), frame.exec)

    def helped(frame: Frame) -> None:
        found = frame.call("double", "%w", frame.word(0).to("i64"), result="i64")
        assert found is not None
        frame.find(KIND + 1, 0, found)

    first, second = Instrument("plain", "v_", plain, (10, 20)), Instrument("helped", "v_", helped, (21,),
                                                                          {"double": double})
    second.kinds = {KIND + 1: second.kinds[KIND]}
    install(first)
    install(second)
    found = findings(block=3, chip=chip)
    assert [f.message.partition("\n")[0] for f in found] == [  # what later instruments find explains the rest
        *["helped 42 [0, 0, 0, 0]"] * 2, *["plain 20 [10, 7, 0, 0]"] * 2]
    assert [f.instruction for f in found] == [0, 2, 0, 2]
    assert found[2].thread == (2, 0, 0)
    assert "at 'v_mov_b32_e32 v1, 1' (byte 0x0" in found[2].message and found[2].hint == "mend plain"


def test_one_finding_for_each_kind_instruction_and_key(install: Callable[[Instrument], None],
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those that are alike, the one of the first workgroup, however many threads run."""
    monkeypatch.setenv("FLYLAB_EMULATOR_THREADS", "3")

    def emit(frame: Frame) -> None:
        wave = frame.b.field("%w", Worker, "wave")
        for key in (1, 2, 1):
            frame.find(KIND, 0, frame.b.const(key, "i64"), wave)

    install(Instrument("twice", "v_mov", emit))
    found = findings(grid=500, block=128)
    assert [(f.instruction, f.message.split()[1], f.block) for f in found] == [
        (0, "1", (0, 0, 0)), (0, "2", (0, 0, 0)), (2, "1", (0, 0, 0)), (2, "2", (0, 0, 0))]


def test_findings_without_room_are_counted(install: Callable[[Instrument], None]) -> None:
    def emit(frame: Frame) -> None:
        with frame.b.set_bits(frame.b.const(-1, "i64")) as (lane, _):
            for high in range(5):
                frame.find(KIND, lane, lane + 64 * high)

    install(Instrument("many", "v_mov_b32_e32", emit))
    with pytest.raises(CheckError, match="many 0") as caught:
        Program.from_assembly(assembly(BODY)).launch(grid=1, block=64, args=[np.zeros(4, "i4")], check="all")
    assert len(caught.value.findings) == MOST_FINDINGS
    assert f"({640 - MOST_FINDINGS} further ones were not kept)" in str(caught.value)
    assert f"and {MOST_FINDINGS - 1} more findings:" in str(caught.value)


def test_shadows_begin_as_the_template_says(install: Callable[[Instrument], None]) -> None:
    """Each wave gets a copy, and its own EXEC; each workgroup an epoch of its own."""
    def emit(frame: Frame) -> None:
        b = frame.b
        before = b.field(frame.shadow, WaveShadow, "barriers")
        frame.find(KIND, 0, b.field("%w", Worker, "group") * 2 + b.field("%w", Worker, "wave"), before,
                   b.field(frame.shadow, WaveShadow, "initial_exec"), b.field(frame.group, GroupShadow, "first"))
        b.set_field(frame.shadow, WaveShadow, "barriers", before + 1)

    install(Instrument("begin", "s_cmp", emit))
    found = findings(grid=2, block=100)
    lines = [f.message.partition("\n")[0] for f in found]
    full, rest = (1 << 64) - 1, (1 << 36) - 1
    firsts = {line.split()[-2].strip(",]") for line in lines}
    assert [line.split(",")[:2] for line in lines] == [
        [f"begin {n} [5", f" {mask}"] for n, mask in enumerate((full, rest, full, rest))]
    assert firsts <= {"1", "2"}


def test_a_finding_in_a_helper(install: Callable[[Instrument], None]) -> None:
    def inner(name: str) -> str:
        b = Builder()
        find(b, "%w", Value(b, "%index", "i64"), KIND, 0, 7)
        b.do("ret void")
        return b.function(name, "void @(ptr %w, i64 %index)")

    def emit(frame: Frame) -> None:
        frame.call("inner", "%w", frame.index)

    install(Instrument("outer", "s_cmp", emit, helpers={"inner": inner}))
    (found,) = findings()
    assert found.message.startswith("outer 7") and found.instruction == 1


def test_what_is_asked_of_the_whole_code_is_asked_once(install: Callable[[Instrument], None],
                                                       monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each kernel, whatever others are made ready in between or by other threads."""
    asked: list[str] = []
    found: list[str] = []

    def name_of(code: Code) -> str:
        asked.append(code.kernel.name)
        return code.kernel.name

    instrument = Instrument("whole", "", lambda frame: None)
    monkeypatch.setattr(instrument, "pieces", lambda site: found.append(site.once(name_of)) or [])
    install(instrument)
    for _ in range(2):
        Program.from_assembly(assembly(BODY)).launch(grid=1, block=64, args=[np.zeros(4, "i4")], check="all")
    assert asked == ["k", "k"] and found == ["k"] * 8


def test_a_fault_has_what_was_found_before(install: Callable[[Instrument], None]) -> None:
    install(Instrument("before", "v_mov", lambda frame: frame.find(KIND, 0, 0)))
    body = "  v_mov_b32_e32 v1, 1\n  global_load_dword v1, v[2:3], off\n  s_endpgm"
    with pytest.raises(OutOfBounds) as caught:
        Program.from_assembly(assembly(body)).launch(grid=1, block=64, args=[np.zeros(4, "i4")], check="all")
    assert [f.kind for f in caught.value.findings] == ["before"]


def test_too_many_words_are_refused(install: Callable[[Instrument], None]) -> None:
    install(Instrument("wide", "v_mov", lambda frame: None, words=(0,) * (MOST_WORDS + 1)))
    with pytest.raises(ValueError, match=f"{MOST_WORDS + 1} words"):
        Program.from_assembly(assembly(BODY)).launch(grid=1, block=64, args=[np.zeros(4, "i4")], check="all")


@pytest.mark.parametrize("asked, threads, checks, strict", [
    ("auto", SMALL_LAUNCH, ("a", "b"), False), ("auto", SMALL_LAUNCH + 1, (), False),
    ("all", 1 << 30, ("a", "b"), True),
    (None, 1, (), False), ("none", 1, (), False), (("b",), 1 << 30, ("b",), False), ([], 1, (), False),
    ("b", 1 << 30, ("b",), False)])
def test_what_is_watched(asked: object, threads: int, checks: tuple, strict: bool, monkeypatch: pytest.MonkeyPatch
                         ) -> None:
    monkeypatch.setattr(watch, "CHECKS", {"a": "x", "b": "y"})
    monkeypatch.delenv("FLYLAB_CHECK", raising=False)
    found = watched(asked, False, False, threads)
    assert (found.checks, found.strict) == (checks, strict)


@pytest.mark.parametrize("asked", ["every", ("a", "c"), 3, True, ([],)])
def test_an_unknown_check_is_refused(asked: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "CHECKS", {"a": "x", "b": "y"})
    with pytest.raises(DeviceError) as caught:
        watched(asked, False, False, 64)
    assert caught.value.hint == 'it is "auto", "all", None, or a tuple of a, b'


def test_the_environment_decides_where_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "CHECKS", {"a": "x"})
    for word, checks in (("none", ()), ("all", ("a",)), ("auto", ("a",))):
        monkeypatch.setenv("FLYLAB_CHECK", word)
        assert watched("auto", False, False, 64).checks == checks
        assert watched(None, False, False, 64).checks == ()
    monkeypatch.setenv("FLYLAB_CHECK", "some")
    with pytest.raises(FlylabError, match="FLYLAB_CHECK='some'"):
        watched("auto", False, False, 64)


def test_a_launcher_is_watched_inside_the_block(install: Callable[[Instrument], None],
                                                monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_CHECK", "none")
    install(Instrument("seen", "global_store", lambda frame: frame.find(KIND, 0, 0)))
    launch, numbers = kernel_of("A[fx.thread_idx.x] = 1.0")["launch"], np.zeros(64, np.float32)
    launch(numbers)
    with flylab.watch(check="all"), pytest.raises(CheckError, match="seen 0") as caught:
        launch(numbers)
    assert caught.value.where is not None and caught.value.where.text.strip() == "A[fx.thread_idx.x] = 1.0"
    with flylab.watch(check="all"), flylab.watch(check=None):
        launch(numbers)
    launch(numbers)
    assert numbers.all()
    try:
        flylab.watch(check="all")
        with pytest.raises(CheckError):
            launch(numbers)
    finally:
        flylab.watch()
    launch(numbers)


@pytest.mark.parametrize("log", [-1, 2.5, "yes"])
def test_a_log_takes_a_number_of_entries(log: object) -> None:
    with pytest.raises(DeviceError, match="log is"):
        watched(None, False, log, 64)  # type: ignore[arg-type]


def test_findings_that_one_change_would_mend_take_one_line() -> None:
    def found(number: int, line: int, kind: str = "race", hint: str = "a barrier") -> Finding:
        return Finding(kind, f"message {number}\n    in block", SourceLine("k.py", line, "s[t] = 1"), number, (0, 0, 0),
                       (0, 0, 0), hint)

    findings = (found(1, 9), found(2, 9), found(3, 9, "waits"), found(4, 9), found(5, 11), found(6, 11))
    assert str(check_error(findings)) == (
        "k.py, line 9\n    s[t] = 1\nmessage 1\n    in block\nand 2 more like it, at other instructions of the line\n"
        "and 3 more findings:\n    3. message 3 (line 9)\n    5. message 5 (line 11), and 1 like it\nhint: a barrier")
    assert str(check_error(findings[:1])).count("more") == 0
    without = tuple(replace(finding, where=None) for finding in findings[:2])
    assert "and 1 more finding:\n    2. message 2\n" in str(check_error(without))
    far = replace(found(7, 3), where=SourceLine("other.py", 3))
    assert "\n    2. message 7 (other.py, line 3)\n" in str(check_error((findings[0], far)))


def test_a_finding_shows_as_it_prints() -> None:
    finding = Finding("race", "two threads", SourceLine("k.py", 3, "s[t] = 1"), 7, (0, 0, 0), (1, 0, 0), "a barrier")
    assert repr(finding) == str(finding) == "k.py, line 3\n    s[t] = 1\ntwo threads\nhint: a barrier"
