"""A slow executor of straight-line vector and scalar code: an instruction's text, registers in, registers out.

It reads the text, fetches operands and places results with code of its own. Of the device it shares the operation
table's signatures and functions, which run on numpy arrays (`lanes`), and the numbers of the scalar registers.
"""

from __future__ import annotations

import re
import struct
from typing import Any

import numpy as np

from flylab.emulator.decoding.table import Row
from flylab.emulator.program import device_tables
from tests.emulator.oracles.lanes import DTYPES, Context, Lanes, quieted
from tests.emulator.oracles.specials import SPECIAL
from tests.emulator.oracles.text import Text, constant, part_of, stripped

WAVE = 64
ACCUMULATORS = 32  # the row of a0
VCC, M0, EXEC, SCC, MODE = 106, 124, 126, 128, 129
_NAMED = {"vcc": (VCC, 2), "vcc_lo": (VCC, 1), "vcc_hi": (VCC + 1, 1), "exec": (EXEC, 2), "exec_lo": (EXEC, 1),
          "exec_hi": (EXEC + 1, 1), "m0": (M0, 1), "flat_scratch_lo": (102, 1), "flat_scratch_hi": (103, 1)}
# An operand type of the table: registers, the integer type of its bits, the float type of the bits, that of the value.
_TYPES = {"b16": (1, "i16", "", ""), "b32": (1, "i32", "", ""), "b64": (2, "i64", "", ""),
          "f16": (1, "i16", "half", "float"), "f16b": (1, "i16", "half", "half"), "f16d": (1, "i16", "half", "double"),
          "f32": (1, "i32", "float", "float"), "f64": (2, "i64", "double", "double")}
_EXPONENTS = {"i16": 0x7C00, "i32": 0x7F800000, "i64": 0x7FF0000000000000}
_SIGNS = {"i16": 1 << 15, "i32": 1 << 31, "i64": 1 << 63}


class Executor:
    """One wave's registers: `v` rows of 64 x u32, `s` the scalar file in the device's numbering.

    The mode is the kernel's: float denormals by the bits of MODE in `s`, `ieee` and `dx10_clamp`.
    """

    def __init__(self, chip: str, v: np.ndarray, s: np.ndarray, ieee: bool = True, dx10_clamp: bool = True):
        self.chip, self.v, self.s = chip, v.copy(), s.copy()
        self.ieee, self.dx10_clamp = ieee, dx10_clamp

    # registers

    def scalar(self, at: int, count: int) -> int:
        return sum(int(self.s[at + n]) << 32 * n for n in range(count))

    def set_scalar(self, at: int, count: int, value: int) -> None:
        for n in range(count):
            self.s[at + n] = value >> 32 * n & 0xFFFFFFFF

    @property
    def active(self) -> np.ndarray:
        return self.lanes_of(self.scalar(EXEC, 2))

    @staticmethod
    def lanes_of(mask: int) -> np.ndarray:
        return np.array([mask >> n & 1 for n in range(WAVE)], bool)

    @staticmethod
    def mask_of(lanes: np.ndarray) -> int:
        return sum(1 << n for n in range(WAVE) if lanes[n])

    def register(self, text: str) -> tuple[str, int, int] | None:
        """The file ("v" or "s"), the first number and the count of the registers that a text names."""
        if text in _NAMED:
            return "s", *_NAMED[text]
        found = re.fullmatch(r"([vsa])(?:(\d+)|\[(\d+):(\d+)\])", text)
        if not found:
            return None
        first = int(found[2] or found[3])
        count = 1 if found[2] else int(found[4]) - first + 1
        return ("v", ACCUMULATORS + first, count) if found[1] == "a" else (found[1], first, count)

    # sources

    def fetch(self, text: str, registers: int, integer: str, lanes: int, double: bool = False) -> np.ndarray:
        """The whole bits of an operand without modifiers, in every lane; constants in the format of the operand."""
        place = self.register(text)
        if place is None:
            return np.full(lanes, constant(text, integer, double), np.uint64)
        file, first, _ = place
        if file == "s":
            return np.full(lanes, self.scalar(first, registers), np.uint64)
        low = self.v[first].astype(np.uint64)
        return low | self.v[first + 1].astype(np.uint64) << np.uint64(32) if registers == 2 else low

    def source(self, text: str, type_name: str, lanes: int, select: str = "", negative: bool = False,
               raw: bool = False) -> Lanes:
        """An operand as the row's function takes it: part taken, denormals flushed, modifiers applied; or its bits."""
        if type_name == "mask":
            return Lanes(Context(self.ieee), self.lanes_of(int(self.fetch(text, 2, "i64", 1)[0])), "i1")
        registers, integer, float_bits, value = _TYPES[type_name]
        text, modifiers = stripped(text)
        bits = self.fetch(text, registers, integer, lanes, type_name == "f64")
        if select:
            bits = part_of(bits, select, "sext" in modifiers)
        bits = bits.astype(DTYPES[integer])
        sign = np.array(_SIGNS[integer], bits.dtype)
        if float_bits:
            bits = self.flushed(bits, integer, 1)
        if "abs" in modifiers:
            bits = bits & ~sign
        if ("neg" in modifiers) != negative:
            bits = bits ^ sign
        found = Lanes(Context(self.ieee), bits, integer)
        return found.bits(float_bits).to(value) if float_bits and not raw else found

    def flushed(self, bits: np.ndarray, integer: str, side: int) -> np.ndarray:
        """Denormals made zero where MODE takes none (side 1), or gives none (side 2)."""
        allowed = int(self.s[MODE]) >> (4 if integer == "i32" else 6) & side
        tiny = (bits & np.array(_EXPONENTS[integer], bits.dtype)) == 0
        return bits if allowed else np.where(tiny, bits & np.array(_SIGNS[integer], bits.dtype), bits)

    # execution

    def run(self, text: str) -> None:
        """Executes an instruction."""
        parsed = Text.of(text)
        table = device_tables()[0]
        if parsed.mnemonic in SPECIAL:
            SPECIAL[parsed.mnemonic](self, parsed)
        elif parsed.mnemonic in table:
            self.row(table[parsed.mnemonic], parsed)
        else:
            raise LookupError(f"the numpy executor has no {parsed.mnemonic}")

    def row(self, row: Row, text: Text) -> None:
        """An instruction of the table."""
        named = [t for t in row.results if t[0] != "."]
        targets, operands = text.operands[:len(named)], text.operands[len(named):]
        lanes = 1 if row.family == "scalar" else WAVE
        function = row.clamped if "clamp" in text.words and row.clamped else row.compute
        halves = range(2) if row.family == "packed" else range(1)
        found = [function(*self.arguments(row, text, targets, operands, lanes, half)) for half in halves]
        if row.family == "packed":
            self.place_packed(row, text, targets[0], found)
            return
        results = found[0] if isinstance(found[0], tuple) else (found[0],)
        places = iter(targets)
        active, writes = self.active, []
        for type_name, value in zip(row.results, results, strict=True):
            writes.append((type_name, None if type_name[0] == "." else next(places), value))
        for type_name, place, value in writes:
            self.place(row, text, type_name, place, value, active)

    def arguments(self, row: Row, text: Text, targets: list[str], operands: list[str], lanes: int,
                  half: int, raw: bool = False) -> list[Lanes]:
        """What the row's function takes, or its bits; of a packed row, for one half of the result."""
        found, places = [], iter(enumerate(operands))
        for type_name in row.sources:
            if type_name == ".lane":
                found.append(Lanes(Context(), np.arange(WAVE, dtype=np.uint32), "i32"))
            elif type_name == ".scc":
                found.append(Lanes(Context(), np.array([self.s[SCC] != 0]), "i1"))
            elif type_name[0] == ".":
                mask = self.scalar({".vcc": VCC, ".exec": EXEC}[type_name], 2)
                found.append(Lanes(Context(), np.array([mask], np.uint64), "i64") if lanes == 1 else
                             Lanes(Context(), self.lanes_of(mask), "i1"))
            elif type_name[0] == "@":
                select = f"WORD_{half}" if row.family == "packed" else ""
                found.append(self.source(targets[0], type_name[1:], lanes, select))
            else:
                n, operand = next(places)
                found.append(self.operand(row, text, operand, type_name, n, lanes, half, raw))
        return found

    def operand(self, row: Row, text: Text, operand: str, type_name: str, n: int, lanes: int, half: int,
                raw: bool) -> Lanes:
        """The n-th operand of the text."""
        if row.family == "packed":
            return self.packed(text, operand, type_name, n, half, raw)
        if row.family == "mixed":
            halved = text.bit("op_sel_hi", n)
            return self.source(operand, "f16" if halved else "f32", lanes,
                               f"WORD_{text.bit('op_sel', n)}" if halved else "", raw=raw)
        select = "WORD_1" if text.bit("op_sel", n) else text.words.get(f"src{n}_sel", "")
        return self.source(operand, type_name, lanes, select, raw=raw)

    def packed(self, text: Text, operand: str, type_name: str, n: int, half: int, raw: bool) -> Lanes:
        """A packed operand's half; of 32-bit floats, one of two registers."""
        high = text.bit("op_sel_hi", n, 1) if half else text.bit("op_sel", n)
        negative = bool(text.bit("neg_hi" if half else "neg_lo", n))
        place = self.register(operand)
        if type_name.endswith("32"):
            if place:
                operand = f"{place[0]}{place[1] + high}"
            return self.source(operand, type_name, WAVE, negative=negative, raw=raw)
        if place is None and re.search(r"\d\.\d", operand) and not type_name.startswith("f"):
            bits = struct.unpack("<I", struct.pack("<f", float(operand)))[0]  # integers take a float's 32 bits
            operand = hex(bits >> 16 * high & 0xFFFF)
        elif place is None:
            value = constant(operand, "i16" if re.search(r"\d\.\d", operand) else "i32")
            operand = hex(value >> 16 * high & 0xFFFF)
        return self.source(operand, type_name, WAVE, f"WORD_{high}" if place else "", negative, raw)

    # results

    def place(self, row: Row, text: Text, type_name: str, target: str | None, value: Lanes, active: np.ndarray) -> None:
        """Writes one result."""
        if type_name == ".scc":
            self.s[SCC] = int(value.array[0])
        elif type_name in (".exec", ".vcc", "mask"):
            at = self.register(target)[1] if target else {".exec": EXEC, ".vcc": VCC}[type_name]  # type: ignore[index]
            if value.type == "i1":
                self.set_scalar(at, 2, self.mask_of(value.array & active))
            else:
                self.set_scalar(at, 2, int(value.array[0]))
        else:
            registers = _TYPES[type_name.rstrip("+^")][0]
            bits = self.finished(text, type_name, value)
            file, first, _ = self.register(target or "") or ("", 0, 0)
            if file == "s":
                self.set_scalar(first, registers, int(bits[0]))
                return
            bits = self.merged(text, type_name, first, bits)
            self.write(first, registers, bits, active)

    def write(self, first: int, registers: int, bits: np.ndarray, active: np.ndarray) -> None:
        for n in range(registers):
            word = (bits >> np.uint64(32 * n) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
            self.v[first + n] = np.where(active, word, self.v[first + n])

    def finished(self, text: Text, type_name: str, value: Lanes) -> np.ndarray:
        """A result's bits: scaled, clamped, rounded, denormals flushed; as u64."""
        _, integer, float_bits, _ = _TYPES[type_name.rstrip("+^")]
        if not float_bits:
            return value.array.astype(np.uint64)
        x = value.array
        with np.errstate(all="ignore"):
            scale = float(text.words.get("mul", 1)) / float(text.words.get("div", 1))
            # In IEEE mode, and where results may be denormal, hardware ignores it; else it makes -0 into 0.
            scaled = scale != 1 and not self.ieee and not int(self.s[MODE]) >> (5 if integer == "i32" else 7) & 1
            x = x * x.dtype.type(scale) if scaled else x
            if "clamp" in text.words:
                x = np.where(np.isnan(x) & (not self.dx10_clamp), x, np.where(x > 0, np.minimum(x, 1), 0))
            x = (x if x.dtype == DTYPES[float_bits] else quieted(x)).astype(DTYPES[float_bits])
        bits = self.flushed(x.view(DTYPES[integer]), integer, 2).astype(np.uint64)
        return np.where(bits == _SIGNS[integer], np.uint64(0), bits) if scaled else bits

    def merged(self, text: Text, type_name: str, first: int, bits: np.ndarray) -> np.ndarray:
        """A result of less than a register with what the rest of the register becomes."""
        select, unused = text.words.get("dst_sel", "DWORD"), text.words.get("dst_unused", "UNUSED_PAD")
        sources = len(text.operands) - 1
        if "op_sel" in text.words and text.bit("op_sel", sources):
            select, unused = "WORD_1", "UNUSED_PRESERVE"
        old = self.v[first].astype(np.uint64)
        if select == "DWORD":
            if type_name[-1] == "^":
                return bits << np.uint64(16) | old & np.uint64(0xFFFF)
            return bits | old & np.uint64(0xFFFF0000) if type_name[-1] == "+" else bits
        size = 8 if select.startswith("BYTE") else 16
        at = size * int(select[-1])
        ones = ((1 << size) - 1) << at
        moved = bits << np.uint64(at) & np.uint64(ones)
        if unused == "UNUSED_PRESERVE":
            return moved | old & np.uint64(0xFFFFFFFF ^ ones)
        if unused == "UNUSED_SEXT":
            negative = bits >> np.uint64(size - 1) & np.uint64(1)
            above = 0xFFFFFFFF & ~((1 << at + size) - 1)
            return moved | negative * np.uint64(above)
        return moved

    def place_packed(self, row: Row, text: Text, target: str, halves: list[Any]) -> None:
        _, integer, _, _ = _TYPES[row.results[0]]
        low, high = (self.finished(text, row.results[0], half) for half in halves)
        wide = 16 if integer == "i16" else 32
        _, first, _ = self.register(target) or ("", 0, 0)
        self.write(first, 1 if wide == 16 else 2, low | high << np.uint64(wide), self.active)
