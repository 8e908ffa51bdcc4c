"""A plain interpreter of what is defined, instruction by instruction and bit by bit, written from the words of the
check's description alone: the oracle for random programs.

A scalar register is a list of 32 bits, each 0, 1 or None where it is undefined. A vector register has a number for each
lane, or None. What the numbers of undefined operands are does not matter, so they are not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

LANES = 64
WORD = 1 << 32
Bit = int | None
Bits = list[Bit]


def known(bits: Sequence[Bit]) -> int | None:
    """The number that bits are, or None where one of them is undefined."""
    return None if None in bits else sum((bit or 0) << n for n, bit in enumerate(bits))


def bits_of(number: int, size: int = 32) -> Bits:
    return [number >> n & 1 for n in range(size)]


def from_lowest_undefined(bits: Sequence[Bit], exact: int) -> Bits:
    """The bits of a sum whose operands have `bits` undefined: those below the lowest such bit are those of `exact`."""
    first = next((n for n, bit in enumerate(bits) if bit is None), len(bits))
    return [exact >> n & 1 if n < first else None for n in range(len(bits))]


def and_(x: Bit, y: Bit) -> Bit:
    return 0 if 0 in (x, y) else None if None in (x, y) else 1


def not_(x: Bit) -> Bit:
    return None if x is None else 1 - x


def or_(x: Bit, y: Bit) -> Bit:
    return not_(and_(not_(x), not_(y)))


def xor_(x: Bit, y: Bit) -> Bit:
    return None if None in (x, y) else int(x != y)


LOGIC: dict[str, Callable[[Bit, Bit], Bit]] = {
    "and": and_, "or": or_, "xor": xor_, "andn2": lambda x, y: and_(x, not_(y)), "orn2": lambda x, y: or_(x, not_(y)),
    "nand": lambda x, y: not_(and_(x, y)), "nor": lambda x, y: not_(or_(x, y)), "xnor": lambda x, y: not_(xor_(x, y))}


@dataclass
class Wave:
    """One wave: registers, LDS by bytes (None: never written, or undefined when stored)."""

    scalars: dict[int, Bits] = field(default_factory=dict)
    vectors: dict[int, list[int | None]] = field(default_factory=dict)
    lds: dict[int, int | None] = field(default_factory=dict)
    scc: Bit = None
    exec: int = (1 << LANES) - 1

    def s(self, name: str, size: int = 32) -> Bits:
        """The bits of a scalar operand: a register, a pair, or a constant."""
        if name.lstrip("-").isdigit() or name.startswith("0x"):
            return bits_of(int(name, 0), size)
        if name == "exec":
            return bits_of(self.exec, 64)
        first = 106 if name == "vcc" else int(name.strip("s[").split(":")[0])
        return [bit for n in range(size // 32) for bit in self.scalars.get(first + n, [None] * 32)]

    def set_s(self, name: str, bits: Bits) -> None:
        first = 106 if name == "vcc" else int(name.strip("s[").split(":")[0])
        for n in range(len(bits) // 32):
            self.scalars[first + n] = list(bits[32 * n:32 * n + 32])

    def v(self, name: str) -> list[int | None]:
        """The lanes of a vector operand: a register, or a scalar in every lane."""
        if name[0] == "v" and name != "vcc":
            return self.vectors.get(int(name[1:]), [None] * LANES)
        return [known(self.s(name))] * LANES

    def set_v(self, name: str, lanes: Sequence[int | None]) -> None:
        """Writes the active lanes."""
        old = self.v(name)
        self.vectors[int(name[1:])] = [new if self.exec >> n & 1 else old[n] for n, new in enumerate(lanes)]

    def set_mask(self, name: str, lanes: Sequence[Bit]) -> None:
        """Writes a bit for each lane, 0 where it is not active."""
        self.set_s(name, [bit if self.exec >> n & 1 else 0 for n, bit in enumerate(lanes)])

    def set_condition(self, bits: Sequence[Bit]) -> None:
        """SCC: whether the bits are not all 0."""
        self.scc = 1 if 1 in bits else None if None in bits else 0


def lanewise(compute: Callable[..., int], *operands: Sequence[int | None]) -> list[int | None]:
    """A lane is defined where it is in all operands."""
    return [None if None in lane else compute(*lane) % WORD for lane in zip(*operands, strict=True)]


def parts(compute: Callable[..., int], *operands: Sequence[int | None]) -> list[int | None]:
    """A lane is defined where it is in one of the operands."""
    return [None if all(x is None for x in lane) else compute(*(x or 0 for x in lane)) % WORD
            for lane in zip(*operands, strict=True)]
