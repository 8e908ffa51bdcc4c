"""The patterns of `ds_swizzle_b32`: how they are spelled, and from which lane each lane takes.

Source: DS_SWIZZLE_B32 in the instruction lists of AMD's Vega and CDNA3 ISA documents; LLVM's "Syntax of AMDGPU
instruction modifiers", swizzle.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from flylab.codegen.assembly.encoding import integer
from flylab.emulator.decoding.operands import OperandError, bounded

HALF = 32
_LOW = HALF - 1
_PATTERN = re.compile(r"offset:swizzle\((\w+),(.*)\)")
_MASK = re.compile('"([01pi]{5})"')
# What each named pattern takes, and the bits of the offset that it stands for.
_NAMED: dict[str, tuple[tuple[Collection[int], ...], Callable[..., int]]] = {
    "QUAD_PERM": ((range(4),) * 4, lambda a, b, c, d: 0x8000 | a | b << 2 | c << 4 | d << 6),
    "BROADCAST": (((2, 4, 8, 16, 32), range(HALF)), lambda size, lane: HALF - size | lane << 5),
    "SWAP": (((1, 2, 4, 8, 16),), lambda size: _LOW | size << 10),
    "REVERSE": (((2, 4, 8, 16, 32),), lambda size: _LOW | size - 1 << 10),
    "FFT": ((range(HALF),), lambda swizzle: 0xE000 | swizzle),
    "ROTATE": ((range(2), range(HALF)), lambda direction, size: 0xC000 | direction << 10 | size << 5),
}


def swizzle_offset(modifiers: tuple[str, ...]) -> int:
    """The 16 bits that a swizzle's modifiers spell, as a number or as a pattern with its name.

    >>> [hex(swizzle_offset((f"offset:{text}",))) for text in ("0x401f", "swizzle(SWAP,16)", "swizzle(FFT,3)")]
    ['0x401f', '0x401f', '0xe003']

    Raises `OperandError` for what is no pattern.
    """
    if not modifiers:
        return 0
    word = " ".join(modifiers)
    found = _PATTERN.fullmatch(word.replace(" ", ""))
    if found is None:
        if not word.startswith("offset:"):
            raise OperandError(f"the modifier '{word}' is not one that the software device knows here")
        return bounded(word.removeprefix("offset:"), 0, 0xFFFF, "the offset")
    name, rest = found.groups()
    if name == "BITMASK_PERM" and (mask := _MASK.fullmatch(rest)):
        and_, or_, xor = (int("".join(str(int(c in chosen)) for c in mask[1]), 2) for chosen in ("pi", "1", "i"))
        return and_ | or_ << 5 | xor << 10
    limits, compute = _NAMED.get(name, ((), lambda: 0))
    numbers = [integer(text) for text in rest.split(",")]
    if len(numbers) != len(limits) or not all(n in limit for n, limit in zip(numbers, limits, strict=True)):
        raise OperandError(f"'{word}' is no swizzle that the software device knows")
    if name == "BROADCAST" and numbers[1] >= numbers[0]:  # type: ignore[operator]
        raise OperandError(f"'{word}' names a lane that its group does not have")
    return compute(*numbers)


def pattern(offset: int) -> list[int]:
    """The lane that each of 32 lanes takes from; both halves of a wave do the same.

    >>> pattern(0x80B1)[:4], pattern(0x401F)[:2]
    ([1, 0, 3, 2], [16, 17])
    """
    low, middle = offset & _LOW, offset >> 5 & _LOW
    if offset >= 0xE000:  # FFT: the lane's bits in the other order, as far as the pattern does not keep them
        mirrored = [int(f"{lane:05b}"[::-1], 2) for lane in range(HALF)]
        return [mirrored[lane] >> low.bit_count() | lane & low for lane in range(HALF)]
    if offset >= 0xC000:  # rotate
        turn = -middle if offset >> 10 & 1 else middle
        return [lane & low | lane + turn & ~low & _LOW for lane in range(HALF)]
    if offset >= 0x8000:  # within quads
        return [lane & ~3 | offset >> 2 * (lane & 3) & 3 for lane in range(HALF)]
    return [(lane & low | middle) ^ offset >> 10 & _LOW for lane in range(HALF)]
