"""Handlers that count how often they change memory, made from handlers that do not know of it.

The search for a launch that stands still (`residents.py`) goes by `Worker.changes`. This pass over the IR of a handler
finds every write of memory, so that no handler can forget to count. A pointer that does not come from a register file,
the record or the worker is one into memory. Few or narrow writes are compared with what is there; a block of many, or a
wide one, counts as a change without a look, so that block copies stay quick: a launch whose spinning waves make such
writes is never found to stand still.
"""

from __future__ import annotations

import re

from flylab.emulator.state import Worker

_NAME = r"%[\w.]+"
_HANDLER = re.compile(r"define i32 @[\w.]+\(ptr %r, ptr %v, ptr %s, ptr %w\)")
_OFFSET = re.compile(rf"\s*({_NAME}) = getelementptr [^,]+, ptr ({_NAME}),")
_STORE = re.compile(rf"\s*store (atomic |volatile )?(<[^>]+>|\S+) (.+?), ptr ({_NAME})(?:[ ,].*)?$")
_ATOMIC = re.compile(rf"\s*({_NAME}) = (?:atomicrmw \w+|cmpxchg) ptr ({_NAME}), (i\d+) ")
_BULK = re.compile(r"call void @llvm\.(mem|masked\.(store|scatter|compressstore))")
_INTEGER = re.compile(r"(?:<(\d+) x )?i(\d+)>?$")
_ENDS = re.compile(r"\s*(ret |%[\w.]+ = musttail )")
_LABEL = re.compile(r"[\w.]+:")
# A block with more writes, or a write of more bits, counts as a change as a whole.
MOST_COMPARED, MOST_BITS = 4, 128


def counting(text: str) -> str:
    """The IR of a handler with its changes of memory counted; any other IR, and one that writes none, as it is."""
    lines = text.split("\n")
    begin = next((n for n, line in enumerate(lines) if _HANDLER.match(line)), None)
    if begin is None:
        return text
    end = lines.index("}", begin)
    body = lines[begin + 2:end]
    found = _Pass(body).lines
    return text if found == body else "\n".join([*lines[:begin + 2], *found, *lines[end:]])


class _Pass:
    """The lines of one function's body, after its first label, with the counting in them."""

    def __init__(self, body: list[str]):
        self._count = 0
        self._files = {"%r", "%v", "%s", "%w"}
        self.lines: list[str] = []
        blocks: list[list[str]] = [[]]
        for line in body:
            if _LABEL.match(line):
                blocks.append([])
            blocks[-1].append(line)
        writes = False
        for block in blocks:
            made = self._block(block)
            writes |= made != block
            self.lines += made
        if writes:
            self.lines = ["  %changes = alloca i64", "  store i64 0, ptr %changes",
                          *(new for line in self.lines for new in self._flushed(line))]

    def _block(self, block: list[str]) -> list[str]:
        places = [self._memory(line) for line in block]
        wide = any(place == "" or (place and not self._narrow(line)) for line, place in zip(block, places, strict=True))
        count = sum(place is not None for place in places)
        if wide or count > MOST_COMPARED:
            first = next(n for n, place in enumerate(places) if place is not None)
            return [*block[:first], *self._add("1"), *block[first:]]
        found: list[str] = []
        for line, place in zip(block, places, strict=True):
            found += [line] if place is None else self._compared(line)
        return found

    def _memory(self, line: str) -> str | None:
        """The pointer that a line writes memory through, "" where it is not one, or None for another line."""
        if (offset := _OFFSET.match(line)) and offset[2] in self._files:
            self._files.add(offset[1])
        if store := _STORE.match(line):
            return None if store[4] in self._files else store[4]
        if atomic := _ATOMIC.match(line):
            return atomic[2]
        return "" if _BULK.search(line) else None

    def _narrow(self, line: str) -> bool:
        """True for what can be compared with what is there: an atomic, or a store of a few integers."""
        store = _STORE.match(line)
        if store is None:
            return True
        integer = _INTEGER.match(store[2])
        return integer is not None and int(integer[1] or 1) * int(integer[2]) <= MOST_BITS and not store[1]

    def _compared(self, line: str) -> list[str]:
        """A write, and one more change where it changes what is there."""
        store = _STORE.match(line)
        if store is None:
            return self._compared_atomic(line)
        old, differs = self._fresh(), self._fresh()
        _, type_, value, pointer = store.groups()
        before = [f"  {old} = load {type_}, ptr {pointer}, align 1", f"  {differs} = icmp ne {type_} {old}, {value}"]
        if lanes := _INTEGER.match(type_)[1]:  # type: ignore[index]
            bits, any_ = self._fresh(), self._fresh()
            before += [f"  {bits} = bitcast <{lanes} x i1> {differs} to i{lanes}",
                       f"  {any_} = icmp ne i{lanes} {bits}, 0"]
            differs = any_
        return [*before, *self._add_flag(differs), line]

    def _compared_atomic(self, line: str) -> list[str]:
        """The value before, which the operation gives, against that after it."""
        atomic = _ATOMIC.match(line)
        assert atomic is not None
        before, pointer, type_ = atomic.groups()
        after = [line]
        if "cmpxchg" in line:
            pair, before = before, self._fresh()
            after.append(f"  {before} = extractvalue {{ {type_}, i1 }} {pair}, 0")
        now, differs = self._fresh(), self._fresh()
        return [*after, f"  {now} = load {type_}, ptr {pointer}, align 1",
                f"  {differs} = icmp ne {type_} {now}, {before}", *self._add_flag(differs)]

    def _add_flag(self, flag: str) -> list[str]:
        wide = self._fresh()
        return [f"  {wide} = zext i1 {flag} to i64", *self._add(wide)]

    def _add(self, more: str) -> list[str]:
        old, new = self._fresh(), self._fresh()
        return [f"  {old} = load i64, ptr %changes", f"  {new} = add i64 {old}, {more}",
                f"  store i64 {new}, ptr %changes"]

    def _flushed(self, line: str) -> list[str]:
        """A line; before one that leaves the handler, the changes go to the worker."""
        if not _ENDS.match(line) or re.match(r"\s*ret i32 %", line):  # what follows a tail call
            return [line]
        at, total, more, new = (self._fresh() for _ in range(4))
        return [f"  {at} = getelementptr i8, ptr %w, i64 {Worker.changes.offset}", f"  {total} = load i64, ptr {at}",
                f"  {more} = load i64, ptr %changes", f"  {new} = add i64 {total}, {more}",
                f"  store i64 {new}, ptr {at}", line]

    def _fresh(self) -> str:
        self._count += 1
        return f"%changes{self._count}"
