"""Where each element of a matrix instruction lies: every element of AMD's tables, probed on the device one by one.

A probe is a wave whose A is 0 but for a 1 where the table says that an element lies: the element's row of D is then the
row of B that it is multiplied with, wherever the table says that these lie. So with B; and C comes out as it goes in.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from flylab.mfma import BITS, FORMATS, Mfma, mfma
from flylab.targets import TARGETS
from tests.emulator.matrices import codes_of, moderate, numpy_type, put_bits, values
from tests.emulator.mfma_tables import Place, tables
from tests.emulator.waves import names, run_waves

A, B, C, D, INDEX = 0, 16, 32, 64, 96
# Which two of four elements a sparse A stores: both numbers in four bits.
PAIRS = [i | j << 2 for j in range(4) for i in range(j)]


INSTRUCTIONS = [(chip, name) for chip in TARGETS for name in tables(chip)]


class Case:
    """An instruction with its table: places of A (of a sparse one, those that a random index picks), B and D."""

    def __init__(self, chip: str, name: str):
        self.chip = chip
        base, _, format_ = name.partition(".")
        self.row, self.modifiers = mfma(base), ""
        if self.row.mixed:
            number = FORMATS.index(format_)
            self.row, self.modifiers = self.row.with_formats(number, number), f" cbsz:{number} blgp:{number}"
        self.table = tables(chip)[name]
        self.places = {"a": self.table["a"], "b": self.table["b"]}
        self.index = np.zeros((1, 64), np.uint32)
        if self.row.sparse:
            self.places["a"] = self.pick()

    def pick(self) -> list[Place]:
        """Fills the index, and says which element of A each stored one then is."""
        random = np.random.default_rng(0)
        pairs = {}
        for place in self.table["k"]:
            pairs[place.row, place.columns] = pair = int(random.choice(PAIRS))
            self.index[0, place.lane] |= np.uint32(pair << place.bit)
        return [replace(place, bit=place.bit + n * BITS[self.row.a_type],
                        columns=(place.columns[pairs[place.row, place.columns] >> 2 * n & 3],))
                for place in self.table["a"] for n in range(2)]

    def type_of(self, side: str) -> str:
        return self.row.a_type if side == "a" else self.row.b_type

    def registers(self, side: str, codes: np.ndarray) -> np.ndarray:
        """Registers (waves, registers, 64) from the codes (waves, elements) of a side."""
        bits = BITS[self.type_of(side)]
        found = np.zeros((len(codes), (self.row.a if side == "a" else self.row.b).registers, 64), np.uint64)
        for n, place in enumerate(self.places[side]):
            put_bits(found[:, :, place.lane:place.lane + 1], bit_of(place, bits), codes[:, n:n + 1], bits)
        return found.astype(np.uint32)

    def run(self, a: np.ndarray, b: np.ndarray, c: np.ndarray | None = None) -> np.ndarray:
        """D for registers of A, B and (else 0) C."""
        row = self.row
        sources = {f"v{A}": a, f"v{B}": b}
        third = "0"
        if row.sparse:
            sources |= {f"v{INDEX}": self.index, f"v{D}": np.zeros((row.result_registers, 64)) if c is None else c}
            third = f"v{INDEX}"
        elif c is not None:
            sources[f"v{C}"], third = c, names("v", C, row.result_registers)
        text = ", ".join([f"{row.name} {names('v', D, row.result_registers)}", names("v", A, row.a.registers),
                          names("v", B, row.b.registers), third]) + self.modifiers
        return run_waves(self.chip, text, sources, (f"v{D}", row.result_registers))

    def result(self, found: np.ndarray, matrix: str = "d") -> np.ndarray:
        """The numbers (waves, blocks, m, n) in registers, where the table of a matrix says that they lie."""
        row = self.row
        dtype = numpy_type(row.result, self.chip)
        codes = np.zeros((len(found), row.blocks, row.m, row.n), f"u{dtype.itemsize}")
        for place in self.table[matrix]:
            first = bit_of(place, row.result_bits) // 32
            for half in range(row.result_bits // 32):
                codes[:, place.block, place.row, place.columns[0]] |= (
                    found[:, first + half, place.lane].astype(codes.dtype) << codes.dtype.type(32 * half))
        return codes.view(dtype)


def bit_of(place: Place, bits: int) -> int:
    """The first bit of an element in its registers; of 64-bit ones the table names the last register first."""
    return 32 * (place.register - (bits == 64 and place.register % 2)) + place.bit


@pytest.mark.parametrize("chip, name", INSTRUCTIONS)
@pytest.mark.parametrize("side", ["a", "b"])
def test_each_element_of_a_source(chip: str, name: str, side: str) -> None:
    case = Case(chip, name)
    row, other = case.row, "b" if side == "a" else "a"
    count = len(case.places[side])
    hot = np.eye(count, dtype=np.uint64) * np.uint64(codes_of(np.array(1.0), case.type_of(side), chip))
    codes = moderate(case.type_of(other), (1, len(case.places[other])), chip, 1)
    given = {side: case.registers(side, hot), other: case.registers(other, codes)}
    found = case.result(case.run(given["a"], given["b"]))
    # By the table alone: the numbers of the other side as a matrix, of which one row or column comes out.
    numbers = values(codes[0], case.type_of(other), chip)
    if case.type_of(other) == "xf32":
        numbers = (np.float32(numbers).view("u4") & 0xFFFFE000).view("f4")
    full = np.zeros((row.blocks, row.k, row.n) if side == "a" else (row.blocks, row.m, row.k))
    for place, number in zip(case.places[other], numbers, strict=True):
        full[place.block, place.row, place.columns[0]] = number
    wanted = np.zeros(found.shape)
    for n, place in enumerate(case.places[side]):
        if side == "a":
            wanted[n, place.block, place.row] = full[place.block, place.columns[0]]
        else:
            wanted[n, place.block, :, place.columns[0]] = full[place.block, :, place.row]
    assert np.array_equal(found, wanted)
    assert np.count_nonzero(wanted) > wanted.size // (2 * row.m * row.blocks) * (0.4 if row.sparse else 0.8)


@pytest.mark.parametrize("chip, name", INSTRUCTIONS)
def test_each_element_of_the_addend(chip: str, name: str) -> None:
    case = Case(chip, name)
    zeros = {side: case.registers(side, np.zeros((1, len(case.places[side])), np.uint64)) for side in "ab"}
    distinct = np.arange(case.row.result_registers * 64, dtype=np.uint32).reshape(1, -1, 64) + 0x3F800000
    found = case.run(zeros["a"], zeros["b"], distinct)
    assert np.array_equal(found, distinct)
    if "c" in case.table:
        assert np.array_equal(case.result(found, "c"), case.result(found, "d"))


@pytest.mark.parametrize("chip, name", INSTRUCTIONS)
def test_the_closed_form_is_the_table(chip: str, name: str) -> None:
    """What other parts of flylab read of an instruction, against the same tables."""
    row: Mfma = Case(chip, name).row
    table = tables(chip)[name]
    for side, operand in (("a", row.a), ("b", row.b)):
        for place in table[side]:
            items = range(len(place.columns) // 2) if row.sparse and side == "a" else range(1)
            for n in items:
                item = bit_of(place, operand.bits) // operand.bits + n
                block, index, k = operand.element(place.lane, item)
                along, across = (place.columns[0], place.row) if side == "a" else (place.row, place.columns[0])
                assert (block, index) == (place.block, across)
                assert (k // 2 * 4 if len(items) > 1 else k) == along
    for place in table["d"]:
        item = bit_of(place, row.result_bits) // row.result_bits
        assert row.result_place(place.block, place.row, place.columns[0]) == (item, place.lane)
