"""Handlers of ds_read_*_tr_*: reads of LDS after which the lanes of a group hold the columns of what they read."""

from __future__ import annotations

from flylab.emulator.handlers.ir import Value
from flylab.emulator.handlers.record import slot
from flylab.emulator.memory.access import fault
from flylab.emulator.memory.lds import ADDRESS, FIRST_PLACE, STEP, LdsHandler
from flylab.emulator.state import LDS_PARTIAL


class Transpose(LdsHandler):
    """16 lanes read a matrix of 16 columns, row after row, and each of them receives one column.

    With n elements of `bits` bits a lane it has n rows: element j of lane t is element t + 16 j of all that is read.
    What a group does of which some lanes are not active is not known, so that is an error.
    Source: derived from published kernels (tests/data/ds_read_tr_gfx950.json has the table).
    """

    def __init__(self, bits: int, registers: int):
        super().__init__()
        self.bits, self.registers = bits, registers

    def text(self, name: str) -> str:
        """The handler's IR."""
        b, addresses, offset = self.b, self.row(ADDRESS), slot(self.b, FIRST_PLACE)
        rows = [self.row(FIRST_PLACE + 1, register) for register in range(self.registers)]
        self.checked_offsets(addresses, offset, 4 * self.registers)
        self.begin_steps()
        active = self.exec.shr(self.chunk) & 0xFFFF
        b.leave_when(active.cmp("eq", 0), "skipped")
        with b.when(active.cmp("ne", 0xFFFF)):
            fault(b, LDS_PARTIAL, active.count("cttz") + self.chunk, 0, STEP)
        elements = self.elements([self.place(addresses, self.chunk + n, offset) for n in range(STEP)])
        for row, words in zip(rows, self.packed(elements), strict=True):
            b.store(words, self.in_chunk(row), 64)
        b.jump("skipped")
        b.label("skipped")
        self.end_steps("finished")
        b.label("finished")
        return self.finish(name)

    def elements(self, places: list[str]) -> list[Value]:
        """The rows of the matrix, 16 elements each: those of several lanes one after the other, or of one lane."""
        b, bits = self.b, self.bits
        if bits >= 8:
            lanes = bits * STEP // 64
            read = [b.load(place, "i64", align=1) for place in places]
            rows = [b.gathered(read[n:n + lanes]) for n in range(0, STEP, lanes)]
            return [row.recast(f"i{bits}", STEP).to("i32") for row in rows]
        each = 4 if bits == 6 else 8  # elements in a word: six bits come as four in three bytes
        amounts = b.vector([bits * (n % each) for n in range(STEP)], "i32")
        found: list[Value] = []
        for place in places:
            words = self.words_of_three_bytes(place) if bits == 6 else b.load(place, "i32", 2, 1)
            spread = words.shuffle(words, [n // each for n in range(STEP)])
            found.append(b.let(f"lshr {spread.typed}, {amounts.name}", "i32", STEP) & (1 << bits) - 1)
        return found

    def words_of_three_bytes(self, place: str) -> Value:
        """12 bytes as four words of three; what the fourth byte of a word holds does not count."""
        raw = self.b.load(place, "i8", 12, 1)
        return raw.shuffle(raw, [3 * word + byte % 3 for word in range(4) for byte in range(4)]).recast("i32", 4)

    def packed(self, rows: list[Value]) -> list[Value]:
        """Each lane's column, element after element, as the registers of 16 lanes."""
        words: list[list[Value]] = [[] for _ in range(self.registers)]
        for n, row in enumerate(rows):
            word, at = divmod(n * self.bits, 32)
            words[word].append(row.shl(at))
            if at + self.bits > 32:
                words[word + 1].append(row.shr(32 - at))
        return [self.united(parts) for parts in words]

    @staticmethod
    def united(parts: list[Value]) -> Value:
        """The bits of all parts in one."""
        found = parts[0]
        for part in parts[1:]:
            found = found | part
        return found
