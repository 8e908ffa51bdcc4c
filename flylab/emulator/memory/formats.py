"""Buffer formats as data: how the components of an element lie in memory, and which kinds of number each may hold.

A component is a field of a dword: the dword's number, the first bit, the number of bits. AMD names a format from
its highest bits down, so that the last of 2_10_10_10 is x.
Source: CDNA3 ISA, "Buffer resource descriptor" (the fields DATA_FORMAT and NUM_FORMAT), "Memory buffer instructions".
"""

from __future__ import annotations

from dataclasses import dataclass

UNORM, SNORM, USCALED, SSCALED, UINT, SINT, RESERVED, FLOAT = range(8)
NUMBERS = ("UNORM", "SNORM", "USCALED", "SSCALED", "UINT", "SINT", "RESERVED_6", "FLOAT")
_FIXED = (UNORM, SNORM, USCALED, SSCALED, UINT, SINT)


@dataclass(frozen=True)
class DataFormat:
    """One data format: its components from x on, as (dword, first bit, bits), and the kinds of number."""

    components: tuple[tuple[int, int, int], ...]
    numbers: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of an element."""
        return max((32 * dword + first + bits for dword, first, bits in self.components), default=0) // 8

    def __post_init__(self) -> None:
        if any(first + bits > 32 for _, first, bits in self.components):
            raise ValueError(f"a component crosses a dword: {self.components}")


def _format(bits: tuple[int, ...], numbers: tuple[int, ...]) -> DataFormat:
    """Components of so many bits each, one after the other from bit 0 on."""
    firsts = [sum(bits[:n]) for n in range(len(bits))]
    return DataFormat(tuple((f // 32, f % 32, b) for f, b in zip(firsts, bits, strict=True)), numbers)


# The number of a format is its place; 0 and 15 are none.
DATA_FORMATS: dict[str, DataFormat] = {
    "INVALID": _format((), ()),
    "8": _format((8,), _FIXED),
    "16": _format((16,), (*_FIXED, FLOAT)),
    "8_8": _format((8, 8), _FIXED),
    "32": _format((32,), (UINT, SINT, FLOAT)),
    "16_16": _format((16, 16), (*_FIXED, FLOAT)),
    "10_11_11": _format((11, 11, 10), (*_FIXED, FLOAT)),
    "11_11_10": _format((10, 11, 11), (*_FIXED, FLOAT)),
    "10_10_10_2": _format((2, 10, 10, 10), _FIXED),
    "2_10_10_10": _format((10, 10, 10, 2), _FIXED),
    "8_8_8_8": _format((8, 8, 8, 8), _FIXED),
    "32_32": _format((32, 32), (UINT, SINT, FLOAT)),
    "16_16_16_16": _format((16,) * 4, (*_FIXED, FLOAT)),
    "32_32_32": _format((32,) * 3, (UINT, SINT, FLOAT)),
    "32_32_32_32": _format((32,) * 4, (UINT, SINT, FLOAT)),
    "RESERVED_15": _format((), ()),
}
# What an instruction means that names none.
DEFAULT = 1


def names(code: int) -> str:
    """The names of a format's seven bits, DATA_FORMAT below NUM_FORMAT, as the assembler spells them.

    >>> names(0x74)
    'BUF_DATA_FORMAT_32, BUF_NUM_FORMAT_FLOAT'
    """
    return f"BUF_DATA_FORMAT_{list(DATA_FORMATS)[code & 15]}, BUF_NUM_FORMAT_{NUMBERS[code >> 4 & 7]}"


def code_of(words: list[str]) -> int | None:
    """The seven bits of a format that is given by one or two names, or None where one is no such name.

    >>> code_of(["BUF_DATA_FORMAT_32", "BUF_NUM_FORMAT_FLOAT"]), code_of(["BUF_NUM_FORMAT_SINT"]), code_of(["x"])
    (116, 81, None)
    """
    data, number = DEFAULT, UNORM
    for word in words:
        kind, _, name = word.strip().partition("_FORMAT_")
        if kind == "BUF_DATA" and name in DATA_FORMATS:
            data = list(DATA_FORMATS).index(name)
        elif kind == "BUF_NUM" and name in NUMBERS:
            number = NUMBERS.index(name)
        else:
            return None
    return data | number << 4


# A row of the table that handlers read: of each component the dword's byte, the first bit and the bits, then the bytes
# of an element, the number of components, and the kinds of number as bits.
ROW, SIZE_AT, COUNT_AT, NUMBERS_AT = 16, 12, 13, 14


def table() -> bytes:
    """The formats as bytes, one row of `ROW` each."""
    rows = b""
    for format_ in DATA_FORMATS.values():
        fields = [n for dword, first, bits in format_.components for n in (4 * dword, first, bits)]
        row = bytes(fields).ljust(SIZE_AT, b"\0") + bytes([format_.bytes, len(format_.components)])
        # FLOAT takes the bit of the reserved kind, so that a byte holds all.
        rows += (row + bytes([sum(1 << min(n, RESERVED) for n in format_.numbers)])).ljust(ROW, b"\0")
    return rows
