"""How definedness goes through scalar instructions, bit by bit, as the masks of lanes need it.

Bitwise operations are as Memcheck has them: a 0 that is defined decides an `and`. Bits that only travel (moves, shifts,
fields) take their definedness along by the operation itself; a sum is defined below its lowest undefined bit; a choice
needs its condition. Every other result, and SCC, is defined where all sources are; SCC of "the result is not 0" also
where a defined bit is set.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from flylab.codegen.isa import Instruction
from flylab.emulator.checks.definedness.observe import SCALARS, into_exec
from flylab.emulator.checks.definedness.places import SGPR_ORIGIN, SGPR_VALID, Words
from flylab.emulator.decoding.operands import CONSTANT, constant_bits, parse_operand
from flylab.emulator.decoding.table import TYPES, Row
from flylab.emulator.handlers.ir import Value, width
from flylab.emulator.probes.probe import Frame, Piece
from flylab.emulator.state import EXEC, SCC

# Names of the operations whose bits only travel, and the sources that say where to.
_TRAVELS = re.compile(r"s_(movk?_|brev|bitreplicate|sext|lsh[lr]_b|ashr_i|bfe|pack)")
_STEERED = re.compile(r"s_(lsh[lr]_b|ashr_i|bfe)")
_BITWISE = re.compile(r"s_(and|or|xor|andn1|andn2|orn1|orn2|nand|nor|xnor|not)(_saveexec|_wrexec)?_b(32|64)$")
_SUMS = re.compile(r"s_(addk?|subb?|addc|mulk?|lshl[1-4]_add)_[iu]32$")
_CHOICES = re.compile(r"s_(cselect|cmovk?)_")
NONZERO = re.compile(r"s_(and|or|xor|andn1|andn2|orn1|orn2|nand|nor|xnor|not|lsh[lr]|ashr|bfe|wqm|quadmask|bcnt)")


@dataclass
class Source:
    """A source while IR is written: its value, and the bits that are undefined (None of a constant)."""

    value: Value
    undefined: Value | None
    number: Value | None = None

    def bits(self) -> Value:
        """The undefined bits."""
        return self.undefined if self.undefined is not None else self.value.like(0)


@dataclass(frozen=True)
class Scalar:
    """A scalar instruction of the operation table: its row, and for each operand its kind.

    `kinds` are "s" or "k" for the named sources, `results` the words of the named results, `sources` those of sources.
    """

    row: Row
    kinds: str
    results: tuple[int, ...]
    sources: tuple[int, ...]
    to_exec: bool

    @property
    def key(self) -> str:
        """What tells its code from that of others."""
        return f"scalar {self.row.mnemonic} {self.kinds} {self.results} {self.sources} {self.to_exec}"


def scalar_piece(row: Row, instruction: Instruction) -> Piece:
    """The piece of a scalar instruction; undefined bits that go into EXEC are reported."""
    words, kinds, places = Words(), "", []
    operands = [parse_operand(text) for text in instruction.operands]
    results = operands[:len(row.named_results)]
    for operand, type_ in zip(operands[len(results):], row.named_sources, strict=True):
        kinds += "k" if operand.kind == CONSTANT else "s"
        bits = TYPES[type_].bits
        if operand.kind == CONSTANT:
            value = constant_bits(operand, bits)
            places.append(len(words.values))
            words.values += [value & 0xFFFFFFFF, value >> 32][:width(bits) // 32 or 1]
        else:
            places.append(words.put(operand.index))
    to_exec = ".exec" in row.results or any(EXEC <= o.index < EXEC + 2 for o in results)
    form = Scalar(row, kinds, tuple(words.put(o.index) for o in results), tuple(places), to_exec)
    return Piece(form.key, lambda frame: _Emitter(frame, form).emit(), tuple(words.values),
                 (SCALARS,) if to_exec else ())


class _Emitter:
    """Writes the IR of one scalar instruction."""

    def __init__(self, frame: Frame, form: Scalar):
        self.frame, self.b, self.form = frame, frame.b, form
        self.name = form.row.mnemonic
        self.results = [frame.word(n) for n in form.results]
        self.named: list[Source] = []
        self.arguments = self._arguments()

    def _arguments(self) -> list[Source]:
        found = []
        named = iter(zip(self.form.kinds, self.form.sources, strict=True))
        for type_name in self.form.row.sources:
            if type_name[0] == ".":
                number = self.b.const({".scc": SCC, ".exec": EXEC}[type_name], "i32")
                source = self._register(number, {".scc": "i32", ".exec": "i64"}[type_name])
                if type_name == ".exec":
                    source.undefined = None
            elif type_name[0] == "@":
                source = self._register(self.results[0], TYPES[type_name[1:]].bits)
            else:
                kind, word = next(named)
                type_ = TYPES[type_name].bits
                source = self._constant(word, type_) if kind == "k" else self._register(self.frame.word(word), type_)
                self.named.append(source)
            found.append(source)
        return found

    def _register(self, number: Value, type_: str) -> Source:
        b, at = self.b, number * 4
        value = b.load(b.at("%s", at), type_)
        return Source(value, ~b.load(b.at(self.frame.shadow, at + SGPR_VALID), type_), number)

    def _constant(self, word: int, type_: str) -> Source:
        low = self.frame.word(word)
        if type_ == "i64":
            return Source(low.to("i64") | self.frame.word(word + 1).to("i64").shl(32), None)
        return Source(low.to(type_), None)

    def emit(self) -> None:
        b = self.b
        unknown = [s for s in self.arguments if s.undefined is not None]
        if not unknown:
            self._defined()
            return
        any_ = b.const(False, "i1")
        for source in unknown:
            any_ = any_ | source.bits().cmp("ne", 0)
        some, fast, end = (b.fresh(prefix) for prefix in ("some", "fast", "end"))
        b.branch(any_, some, fast)
        b.label(fast)
        self._defined()
        b.jump(end)
        b.label(some)
        self._some(unknown)
        b.jump(end)
        b.label(end)

    def _stores(self) -> list[tuple[Value, str]]:
        """The number and type of each register that is written and kept in the shadow: all but EXEC."""
        named = iter(self.results)
        found = []
        for type_name in self.form.row.results:
            if type_name == ".scc":
                found.append((self.b.const(SCC, "i32"), "i32"))
            elif type_name[0] != ".":
                found.append((next(named), TYPES[type_name].bits))
        return found

    def _defined(self) -> None:
        for number, type_ in self._stores():
            self.b.store(self.b.const(-1, type_), self.b.at(self.frame.shadow, number * 4 + SGPR_VALID))

    def _some(self, unknown: list[Source]) -> None:
        """Where a bit of a source is undefined."""
        b, row = self.b, self.form.row
        origin = self._origin(unknown)
        undefined = self._undefined()
        parts: list[Value] = []
        for type_name in row.results:
            if type_name == ".scc":
                parts.append(self._condition(undefined))
            elif type_name == ".exec" or "_saveexec" not in self.name:
                parts.append(undefined)
            else:
                parts.append(undefined.like(0))  # EXEC as it was
        if self.form.to_exec:
            self._into_exec(row, parts, unknown)
        stored = [p for p, t in zip(parts, row.results, strict=True) if t == ".scc" or t[0] != "."]
        for (number, type_), bits in zip(self._stores(), stored, strict=True):
            b.store(~bits, b.at(self.frame.shadow, number * 4 + SGPR_VALID))
            for half in range(width(type_) // 32):
                b.store(origin, b.at(self.frame.shadow, number * 4 + (SGPR_ORIGIN + 4 * half)))

    def _origin(self, unknown: list[Source]) -> Value:
        """What left the first source undefined that is, an i32."""
        b = self.b
        origin = b.const(0, "i32")
        for source in reversed(unknown):
            assert source.number is not None
            halves = width(source.value.type) // 32
            for half in reversed(range(halves)):
                bits = source.bits().shr(32 * half) if half else source.bits()
                here = b.load(b.at(self.frame.shadow, source.number * 4 + (SGPR_ORIGIN + 4 * half)), "i32")
                origin = (bits.to("i32") if halves > 1 else bits).cmp("ne", 0).select(here, origin)
        return origin

    def _into_exec(self, row: Row, parts: list[Value], unknown: list[Source]) -> None:
        """Reports undefined bits that go into EXEC in lanes that are active, and takes them as defined."""
        named = [t for t in row.results if t != ".scc"]
        place = named.index(".exec") if ".exec" in named else 0
        lanes = parts[place].to("i64")
        if parts[place].type == "i32":  # one half of EXEC
            high = self.results[0].cmp("eq", EXEC + 1)
            lanes = high.select(lanes.shl(32), lanes)
        into_exec(self.frame, lanes, [s.number for s in unknown if s.number], width(parts[place].type) // 32)
        for n, type_name in enumerate(row.results):
            if type_name != ".exec":
                parts[n] = parts[n].like(0)

    def _undefined(self) -> Value:
        """The undefined bits of the result."""
        result = next((t for t in self.form.row.results if t != ".scc"), None)
        type_ = "i64" if result == ".exec" else TYPES[result].bits if result else "i32"
        if _BITWISE.match(self.name):
            return self._bitwise()
        if _TRAVELS.match(self.name):
            return self._travelled()
        if _SUMS.match(self.name):
            return self._sum()
        if _CHOICES.match(self.name):
            return self._chosen()
        return self._whole().to(type_, True)

    def _any(self, sources: list[Source]) -> Value:
        """True where a bit of one of the sources is undefined."""
        found = self.b.const(False, "i1")
        for source in sources:
            if source.undefined is not None:
                found = found | source.bits().cmp("ne", 0)
        return found

    def _whole(self) -> Value:
        """All bits or none, an i1."""
        return self._any(self.arguments)

    def _bitwise(self) -> Value:
        """The bits in which the result is not the same whatever the undefined ones are."""
        lows = [s.value & ~s.bits() for s in self.arguments]
        highs = [s.value | s.bits() for s in self.arguments]
        if len(lows) == 1:
            return self.arguments[0].bits()
        corners = [self._computed([x, y]) for x in (lows[0], highs[0]) for y in (lows[1], highs[1])]
        differs = corners[0].like(0)
        for corner in corners[1:]:
            differs = differs | (corner ^ corners[0])
        return differs

    def _computed(self, values: list[Value]) -> Value:
        """The result that is not SCC, of these sources."""
        found: Any = self.form.row.compute(*values)
        if not isinstance(found, tuple):
            return found  # type: ignore[no-any-return]
        names = self.form.row.results
        return found[names.index(".exec") if ".exec" in names else 0]  # type: ignore[no-any-return]

    def _travelled(self) -> Value:
        """The undefined bits where the operation takes them; all where it is not known where to."""
        steered = bool(_STEERED.match(self.name))
        data = self.arguments[:1] if steered else self.arguments
        moved = self._computed([s.bits() for s in data] + [s.value for s in self.arguments[len(data):]])
        lost = self._any(self.arguments[len(data):]).to(moved.type, True)
        return moved | lost

    def _sum(self) -> Value:
        """A bit of a sum or product depends on those up to it."""
        bits = self.b.const(0, "i32")
        for source in self.arguments:
            own = source.bits()
            if own.type == "i16":
                own = own.to("i32")
            bits = bits | own
        return bits | -bits

    def _chosen(self) -> Value:
        """The one that SCC picks; nothing where it is undefined."""
        scc = self.arguments[-1]
        yes, no = (s.bits() for s in self.arguments[:2])
        if yes.type != no.type:
            yes = yes.to(no.type)
        return scc.value.cmp("ne", 0).select(yes, no) | self._any([scc]).to(no.type, True)

    def _condition(self, undefined: Value) -> Value:
        """The bits of SCC that are undefined: all or none, an i32."""
        b = self.b
        bad = self._whole()
        if NONZERO.match(self.name) and (_BITWISE.match(self.name) or _TRAVELS.match(self.name)):
            values = [s.value for s in self.arguments]
            set_ = (self._computed(values) & ~undefined).cmp("ne", 0)
            bad = undefined.cmp("ne", 0) & (set_ ^ b.const(True, "i1"))
        return bad.to("i32", True)
