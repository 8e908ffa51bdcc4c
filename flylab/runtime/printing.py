"""What a kernel prints: the buffer it writes records into, and their lines, in order, once it has run.

A device hands the buffer's address to the kernel and gives its bytes back; `flylab.passes.printf` says what is in it.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence

from flylab import settings
from flylab.errors import DeviceError
from flylab.expr.lines import Line
from flylab.passes.printf import CAPACITY, LOST, NEXT, RECORD_WORDS, START

WORD = 4
Dims = tuple[int, ...]


class PrintBuffer:
    """The buffer for one launch of a kernel, of `most` bytes where the settings say more.

    Its pages take no memory until they are written. Raises `DeviceError` where the system has no room for it.
    """

    def __init__(self, most: int = 1 << 48) -> None:
        self.nbytes = -(-min(settings.PRINTF_BYTES.value(), most) // 8) * 8
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
        try:
            self._memory = mmap.mmap(-1, self.nbytes, flags=flags)
        except OSError as error:
            raise DeviceError(f"there is no room for the {self.nbytes} bytes that a kernel prints into: {error}",
                              hint=f"set {settings.PRINTF_BYTES.names[0]} to fewer") from None
        self._start = ctypes.c_char.from_buffer(self._memory)
        self.address = ctypes.addressof(self._start)
        self._put(NEXT, START)
        self._put(CAPACITY, self.nbytes)

    def _put(self, offset: int, value: int) -> None:
        self._memory[offset : offset + 8] = value.to_bytes(8, "little")

    def _get(self, offset: int) -> int:
        return int.from_bytes(self._memory[offset : offset + 8], "little")

    def text(self, lines: Sequence[Line], grid: Dims, block: Dims, last: int | None = None) -> str:
        """All lines that the kernel printed, by block, then thread, then in the thread's own order.

        `lines` are the kernel's calls of printf. Blocks after `last` are left out: of a launch that failed there, it is
        chance how far they came.
        """
        with memoryview(self._memory) as whole, whole.cast("I") as words:
            found = []
            at, end = START // WORD, min(self._get(NEXT), self.nbytes) // WORD
            while at < end:
                if not words[at]:  # nothing was written here: no room, or the launch failed before
                    at += 1
                    continue
                line = lines[words[at] - 1]
                where = _linear(words[at + 1 : at + RECORD_WORDS], grid, block)
                if last is None or where[0] <= last:
                    found.append((*where, at))
                at += RECORD_WORDS + line.words
            found.sort()
            return "".join([_text(lines[words[at] - 1], words, at + RECORD_WORDS) for _, _, at in found])

    @property
    def lost(self) -> int:
        """How many lines found no room."""
        return self._get(LOST)

    def check(self, kernel: str) -> None:
        """Raise `DeviceError` where lines found no room, with their number."""
        lost = self.lost
        if lost:
            raise DeviceError(
                f"kernel '{kernel}' printed {lost} line{'s' * (lost > 1)} more than the {self.nbytes} bytes for them "
                "hold; the lines above are those that found room, and its results are complete",
                hint=f"print from fewer threads, or set {settings.PRINTF_BYTES.names[0]}={self._get(NEXT)} in the "
                "environment",
            )


def _text(line: Line, words: memoryview, at: int) -> str:
    return line.filled(words[at : at + line.words].tolist())


def _linear(place: memoryview, grid: Dims, block: Dims) -> tuple[int, int]:
    """The numbers of a record's block and thread, x fastest."""
    thread, x, yz = place
    group = ((yz >> 16) * grid[1] + (yz & 0xFFFF)) * grid[0] + x
    row = (thread >> 20) * block[1] + (thread >> 10 & 1023)
    return group, row * block[0] + (thread & 1023)
