"""How a probe is put together: pieces of IR by instruments, one after the other, before the instruction's handler.

Each instruction that is watched has a note, constant and shared by all workers: the address of its own handler, where
the wave's shadow lies, its number, and the words of its pieces. A probe with the same pieces has the same code, so that
few are compiled. Counters have a tally for each instruction, which each worker has for itself.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from flylab.codegen.assembly.effects import Effects, effects
from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.decoding.decode import Coded
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.handlers import jit
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER
from flylab.emulator.linking import END_OF_FUNCTION, Code
from flylab.emulator.probes.shadow import Template
from flylab.emulator.state import EXEC, RECORD_BYTES, Worker

if TYPE_CHECKING:
    from flylab.emulator.probes.findings import Entry, Finding, Scene

T = TypeVar("T")
NOTE_BYTES = 256
# A note: the handler (8 bytes), where the shadow is behind %v, the instruction's number, then the words.
SHADOW_SLOT, INDEX_SLOT, WORDS_AT = 8, 12, 16
MOST_WORDS = (NOTE_BYTES - WORDS_AT) // 4


@dataclass(frozen=True)
class Piece:
    """A part of a probe. `emit` writes IR that falls through at its end, `words` are its constants of 32 bits each.

    Pieces with the same `key` have the same IR. `helpers` are the instrument's native functions that it calls.
    """

    key: str
    emit: Callable[[Frame], None]
    words: tuple[int, ...] = ()
    helpers: tuple[str, ...] = ()


@dataclass(frozen=True)
class Site:
    """What an instrument decides by: an instruction, what it does, and how it was decoded."""

    code: Code
    instruction: Instruction
    effects: Effects
    registers: Registers
    coded: Coded
    known: dict[Callable[[Code], Any], Any]
    """What was asked of the whole code, which all its instructions share."""

    @property
    def kernel(self) -> IsaKernel:
        return self.code.kernel

    def once(self, of: Callable[[Code], T]) -> T:
        """What a function tells of the whole code, computed once for all its instructions."""
        if of not in self.known:
            self.known[of] = of(self.code)
        found: T = self.known[of]
        return found


class Instrument(Protocol):
    """A check, or the counters: says which pieces the probe of an instruction has, and what they found in words.

    `helpers` are native functions by name, each written by a function of its symbol (`HELPER` signature and more).
    `kinds` turn what its pieces found into findings. `tally_bytes` is the room that it needs for each instruction.
    """

    name: str
    tally_bytes: int
    helpers: Mapping[str, Callable[[str], str]]
    kinds: Mapping[int, Callable[[Entry, Scene], Finding]]

    def pieces(self, site: Site) -> Sequence[Piece]:
        """What the probe of an instruction has of this instrument; nothing for most."""

    def prepare(self, template: Template, kernel: IsaKernel, registers: Registers) -> None:
        """Sets what a wave's shadow begins with."""


class Frame:
    """What a piece writes its IR with. The pointers are names of SSA values that hold in the whole probe."""

    def __init__(self, b: Builder):
        self.b = b
        records = b.field("%w", Worker, "records").name
        here, start = (b.let(f"ptrtoint ptr {p} to i64", "i64") for p in ("%r", records))
        self.note = b.at(b.field("%w", Worker, "notes").name, (here - start) * (NOTE_BYTES // RECORD_BYTES))
        self.handler = b.load(self.note, "ptr", align=8).name
        self.shadow = b.at("%v", b.load(b.at(self.note, SHADOW_SLOT), "i32"))
        """The wave's shadow."""
        self.group = b.field("%w", Worker, "group_shadow").name
        """The workgroup's shadow."""
        self.index = b.load(b.at(self.note, INDEX_SLOT), "i32").to("i64")
        """The instruction's number."""
        self.tally = b.at(b.field("%w", Worker, "tallies").name, self.index * b.field("%w", Worker, "tally_bytes"))
        """The worker's tally of the instruction."""
        self.exec = b.load(b.at("%s", 4 * EXEC), "i64")
        self._first = self._helpers_at = 0
        self._helpers: tuple[str, ...] = ()

    def begin(self, piece: Piece) -> None:
        """Makes `word` and `call` count from the piece's own words; its helpers' addresses come first."""
        self._helpers_at, self._helpers = self._first, piece.helpers
        self._words_at = self._first + 2 * len(piece.helpers)
        self._first = self._words_at + len(piece.words)

    def word(self, number: int) -> Value:
        """A constant of the piece, an i32."""
        return self.b.load(self.b.at(self.note, WORDS_AT + 4 * (self._words_at + number)), "i32")

    def call(self, helper: str, *args: Value | str, result: str = "void") -> Value | None:
        """Calls a native helper with pointers (their names) and values; its result, where it has one."""
        b = self.b
        text = f"call {result} {self.address_of(helper)}({', '.join(_typed(a) for a in args)})"
        if result == "void":
            b.do(text)
            return None
        return b.let(text, result)

    def address_of(self, helper: str) -> str:
        """The address of a native helper, for one that calls another."""
        place = WORDS_AT + 4 * (self._helpers_at + 2 * self._helpers.index(helper))
        return self.b.load(self.b.at(self.note, place), "ptr", align=4).name

    def find(self, kind: Value | int, lane: Value | int, key: Value | int, *more: Value | int) -> None:
        """Puts a finding on the worker's list, unless one of this kind, instruction and key is there; up to 4 more."""
        find(self.b, "%w", self.index, kind, lane, key, *more)


def find(b: Builder, worker: str, index: Value, kind: Value | int, lane: Value | int, key: Value | int,
         *more: Value | int) -> None:
    """Puts a finding on a worker's list, in a probe or in a helper of one."""
    words = [b.const(w, "i64") if isinstance(w, int) else w.to("i64") for w in (kind, lane, key, *more, *(0,) * 4)][:7]
    arguments = ", ".join(w.typed for w in (index, *words))
    b.do(f"call void {b.field(worker, Worker, 'find').name}(ptr {worker}, {arguments})")


def _typed(argument: Value | str) -> str:
    return f"ptr {argument}" if isinstance(argument, str) else argument.typed


@dataclass
class Probes:
    """The probes of a kernel: the first handler of each instruction, the notes, and who asked for them."""

    entries: list[int]
    notes: bytes
    instruments: tuple[Instrument, ...]

    @property
    def tally_bytes(self) -> int:
        """Bytes of an instruction's tally."""
        return sum(i.tally_bytes for i in self.instruments)

    def shadow(self, kernel: IsaKernel, registers: Registers) -> bytes:
        """What the shadow of each wave begins as; nothing where nobody finds anything, as counters do not."""
        if not any(instrument.kinds for instrument in self.instruments):
            return b""
        template = Template(registers.rows)
        for instrument in self.instruments:
            instrument.prepare(template, kernel, registers)
        return bytes(template.data)


@dataclass
class _Plan:
    """The pieces of an instruction, each with the addresses of its helpers to come."""

    pieces: list[tuple[Instrument, Piece]] = field(default_factory=list)

    @property
    def key(self) -> str:
        return "probe " + " + ".join(f"{i.name} {p.key}" for i, p in self.pieces)


def attach(code: Code, coded: Sequence[Coded], handlers: Sequence[int], registers: Registers,
           instruments: Sequence[Instrument]) -> Probes:
    """Makes the probes of a kernel. `handlers` are those of its instructions."""
    plans, known = [], dict[Any, Any]()
    for one, instruction in zip(coded, code.kernel.instructions, strict=True):
        plan = _Plan()
        if instruction.mnemonic != END_OF_FUNCTION:
            site = Site(code, instruction, effects(instruction, code.kernel.target), registers, one, known)
            plan.pieces = [(i, piece) for i in instruments for piece in i.pieces(site)]
        plans.append(plan)
    wanted: dict[str, Any] = {}
    for plan in plans:
        if plan.pieces:
            wanted.setdefault(plan.key, partial(_write, [p for _, p in plan.pieces]))
            wanted |= {_helper_key(i, name): i.helpers[name] for i, piece in plan.pieces for name in piece.helpers}
    addresses = jit.addresses(wanted)
    entries = [addresses[plan.key] if plan.pieces else handler for plan, handler in zip(plans, handlers, strict=True)]
    notes = b"".join(_note(handler, registers.shadow_at, number, _words(plan.pieces, addresses), code)
                     for number, (plan, handler) in enumerate(zip(plans, handlers, strict=True)))
    return Probes(entries, notes, tuple(instruments))


def _helper_key(instrument: Instrument, name: str) -> str:
    return f"probe helper {instrument.name} {name}"


def _words(pieces: Iterable[tuple[Instrument, Piece]], addresses: Mapping[str, int]) -> list[int]:
    words: list[int] = []
    for instrument, piece in pieces:
        for name in piece.helpers:
            address = addresses[_helper_key(instrument, name)]
            words += [address & 0xFFFFFFFF, address >> 32]
        words += [word & 0xFFFFFFFF for word in piece.words]
    return words


def _note(handler: int, shadow_at: int, number: int, words: list[int], code: Code) -> bytes:
    if len(words) > MOST_WORDS:
        raise ValueError(f"the probes of '{code.kernel.instructions[number].text}' have {len(words)} words, and a note "
                         f"holds {MOST_WORDS}")
    return struct.pack(f"<QII{len(words)}I", handler, shadow_at, number, *words).ljust(NOTE_BYTES, b"\0")


def _write(pieces: Sequence[Piece], name: str) -> str:
    """The IR of a probe."""
    b = Builder()
    frame = Frame(b)
    for piece in pieces:
        frame.begin(piece)
        piece.emit(frame)
    status = b.let(f"musttail call i32 {frame.handler}(ptr %r, ptr %v, ptr %s, ptr %w)", "i32")
    b.do(f"ret {status.typed}")
    return b.function(name, HANDLER)
