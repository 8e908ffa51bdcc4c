"""Conversions of 32 fp6 or bf6 floats at once, which fill six registers, with a scale (gfx950).

Source: CDNA4 ISA, v_cvt_scalef32_*pk32* and 2xpk16; numbers and their undecided points as in `scaled`. A handler
goes over the lanes 16 at a time and over pairs of floats, 12 bits of the six registers each. Every register is read
before one is written.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder, Slots
from flylab.emulator.decoding.operands import CONSTANT, SCALAR, VECTOR, OperandError, constant_bits, operands_of
from flylab.emulator.handlers.ir import Builder, Value
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.handlers.vector import CHUNK
from flylab.emulator.instructions.scaled import NARROW, halves_of, narrowed, widened
from flylab.emulator.numbers.float_mode import Mode
from flylab.emulator.numbers.semantics import random_step
from flylab.emulator.state import EXEC, ROW_BYTES, WAVE_SIZE

_PAIRS, _CODES, _BITS = 16, 6, 6
_WIDTHS = {"f32": 32, "f16": 16, "bf16": 16}
_CHUNK_BYTES = 4 * CHUNK


@dataclass(frozen=True)
class Shape:
    """One of the instructions: its small and its wide format, which way it goes, how it rounds, how its floats lie."""

    narrow: str
    wide: str
    narrows: bool
    random: bool
    twice: bool

    @property
    def results(self) -> int:
        """Registers of the result."""
        return _CODES if self.narrows else _WIDTHS[self.wide]

    @property
    def sources(self) -> tuple[int, ...]:
        """Registers of each source but the scale, which is last."""
        if not self.narrows:
            return (_CODES,)
        wide = _WIDTHS[self.wide]
        return (wide // 2,) * 2 if self.twice else (wide, 1) if self.random else (wide,)


def _shapes() -> dict[str, Shape]:
    found = {}
    for narrow in ("fp6", "bf6"):
        for wide in _WIDTHS:
            found[f"v_cvt_scalef32_pk32_{wide}_{narrow}"] = Shape(narrow, wide, False, False, False)
            found[f"v_cvt_scalef32_sr_pk32_{narrow}_{wide}"] = Shape(narrow, wide, True, True, False)
            if wide == "f32":
                found[f"v_cvt_scalef32_2xpk16_{narrow}_{wide}"] = Shape(narrow, wide, True, False, True)
            else:
                found[f"v_cvt_scalef32_pk32_{narrow}_{wide}"] = Shape(narrow, wide, True, False, False)
    return found


SHAPES = _shapes()


def _converting(decoder: Decoder, instruction: Instruction) -> Coded:
    name = base_name(instruction.mnemonic)
    shape = SHAPES[name]
    if instruction.modifiers:
        raise OperandError(f"the modifier '{instruction.modifiers[0]}' is not one that it takes")
    result, *sources = operands_of(instruction, 2 + len(shape.sources))
    slots = Slots([decoder.registers.offset(result, shape.results, VECTOR)])
    for operand, count in zip(sources, (*shape.sources, 1), strict=True):
        if operand.kind == CONSTANT and count == 1:
            slots.put(constant_bits(operand, "i32"))
        else:
            files = (VECTOR, SCALAR) if count == 1 else (VECTOR,)
            slots.put(decoder.registers.offset(operand, count, *files))
    kinds = tuple(operand.kind for operand in sources)
    overflow = decoder.mode.fp16_overflow
    return Coded(f"{name} {kinds} {overflow}", partial(_write, shape, kinds, decoder.mode), slots)


def _write(shape: Shape, kinds: tuple[str, ...], mode: Mode, name: str) -> str:
    return _Wide(shape, kinds, mode).text(name)


class _Wide:
    """The handler: of 16 lanes, the sources it may overwrite are copied, then 16 pairs are converted one by one."""

    def __init__(self, shape: Shape, kinds: tuple[str, ...], mode: Mode):
        self.shape, self.kinds, self.b = shape, kinds, Builder()
        self.b.saturate = mode.flag(self.b, "fp16_overflow")
        self.chunk, self.pair = Value(self.b, "%chunk", "i64"), Value(self.b, "%pair", "i64")

    def text(self, name: str) -> str:
        b, shape = self.b, self.shape
        b.do(f"%codes = alloca [{(_CODES + 1) * CHUNK} x i32], align 64")
        b.do(f"%state = alloca [{CHUNK} x i32], align 64")
        exec_ = b.load(b.at("%s", 4 * EXEC), "i64")
        b.jump("step")
        b.label("step")
        b.do("%chunk = phi i64 [ 0, %entry ], [ %chunk_next, %finish ]")
        active = b.let(f"bitcast i{CHUNK} {exec_.shr(self.chunk).to(f'i{CHUNK}').name} to <{CHUNK} x i1>", "i1", CHUNK)
        scale = self.single(len(self.kinds)).bits("float")
        if shape.random:
            b.store(self.single(2), "%state", 64)
        for n in range(_CODES + 1):
            kept = not shape.narrows and n < _CODES
            b.store(self.load(1, n) if kept else b.const(0, "i32", CHUNK), self.word(n), 64)
        b.jump("pairs")
        b.label("pairs")
        b.do("%pair = phi i64 [ 0, %step ], [ %pair_next, %pairs ]")
        if shape.narrows:
            self.narrow(scale)
        else:
            self.widen(scale, active)
        b.do("%pair_next = add i64 %pair, 1")
        b.branch(b.let(f"icmp eq i64 %pair_next, {_PAIRS}", "i1"), "finish", "pairs")
        b.label("finish")
        for n in range(_CODES if shape.narrows else 0):
            self.store(active, b.load(self.word(n), "i32", CHUNK, 64), n)
        b.do(f"%chunk_next = add i64 %chunk, {CHUNK}")
        b.branch(b.let(f"icmp eq i64 %chunk_next, {WAVE_SIZE}", "i1"), "done", "step")
        b.label("done")
        next_record(b)
        return b.function(name, HANDLER)

    def narrow(self, scale: Value) -> None:
        """One pair of floats to its 12 bits."""
        b, shape = self.b, self.shape
        if shape.wide != "f32":
            floats = halves_of(shape.wide, self.load(1, self.pair))
        elif shape.twice:
            floats = self.load(1, self.pair).bits("float"), self.load(2, self.pair).bits("float")
        else:
            low, high = (self.load(1, self.pair.shl(1) + n).bits("float") for n in range(2))
            floats = low, high
        codes = []
        for x in floats:
            random = b.load("%state", "i32", CHUNK, 64) if shape.random else None
            codes.append(narrowed(NARROW[shape.narrow], x, scale, random))
            if random is not None:
                b.store(random_step(random), "%state", 64)
        place, shift = self.place()
        both = (codes[0] | codes[1].shl(_BITS)).to("i64").shl(shift)
        for n, part in enumerate((both.to("i32"), both.shr(32).to("i32"))):
            word = self.word(place + n)
            b.store(b.load(word, "i32", CHUNK, 64) | part, word, 64)

    def widen(self, scale: Value, active: Value) -> None:
        """12 bits to a pair of floats."""
        b, shape = self.b, self.shape
        place, shift = self.place()
        low, high = (b.load(self.word(place + n), "i32", CHUNK, 64).to("i64") for n in range(2))
        code = (low | high.shl(32)).shr(shift).to("i32")
        first, second = (widened(NARROW[shape.narrow], c, scale, shape.wide) for c in (code, code.shr(_BITS)))
        if shape.wide == "f32":
            self.store(active, first, self.pair.shl(1))
            self.store(active, second, self.pair.shl(1) + 1)
        else:
            self.store(active, first | second.shl(16), self.pair)

    def place(self) -> tuple[Value, Value]:
        """The word in which the pair's 12 bits begin, and where in it, in every lane."""
        bit = self.pair * (2 * _BITS)
        return bit.shr(5), (bit & 31).splat(CHUNK)

    def word(self, number: Value | int) -> str:
        """The pointer to these lanes of a word of codes."""
        return self.b.at("%codes", number * _CHUNK_BYTES)

    def row(self, operand: int, register: Value | int) -> str:
        """The pointer to these lanes of a register of an operand."""
        row = self.b.at(self.b.at("%v", slot(self.b, operand)), register * ROW_BYTES)
        return self.b.at(row, self.chunk.shl(2))

    def load(self, operand: int, register: Value | int) -> Value:
        return self.b.load(self.row(operand, register), "i32", CHUNK, 64)

    def store(self, active: Value, value: Value, register: Value | int) -> None:
        place = self.row(0, register)
        self.b.store(active.select(value, self.b.load(place, "i32", CHUNK, 64)), place, 64)

    def single(self, operand: int) -> Value:
        """A source of one register, in every lane."""
        b, kind = self.b, self.kinds[operand - 1]
        if kind == VECTOR:
            return self.load(operand, 0)
        bits = slot(b, operand)
        return (bits if kind == CONSTANT else b.load(b.at("%s", bits), "i32")).splat(CHUNK)


DECODERS = dict.fromkeys(SHAPES, _converting)
