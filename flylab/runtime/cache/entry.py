"""A compilation as bytes, and back, with nothing of MLIR or LLVM loaded.

What a launch needs is JSON: the launcher's plan, the kernels' arguments, checks and lines. The texts that are shown,
and from which everything else can be made again, follow it compressed, and are unpacked when they are asked for.
"""

from __future__ import annotations

import functools
import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

from flylab.compiler.kernel import TracedFunction
from flylab.compiler.passing import HostArgument
from flylab.dtypes import DTYPES, DType
from flylab.errors import Check
from flylab.expr.lines import Field, Line
from flylab.passes.host import HostProgram
from flylab.places import SourceLine
from flylab.runtime.cache.relocate import moved, numbered
from flylab.runtime.compiled import Compiled
from flylab.targets import Target

LEVEL = 3
"""How hard zlib tries: 1 is twice as fast and leaves a quarter more."""


class _Places:
    """Places in the user's source, each once, by number. A file is its number among the user's files, or its name."""

    def __init__(self, files: Sequence[str]):
        self.files = {file: number for number, file in enumerate(files)}
        self.rows: dict[SourceLine, int] = {}

    def number(self, place: SourceLine | None) -> int | None:
        return None if place is None else self.rows.setdefault(place, len(self.rows))

    def plain(self) -> list[Any]:
        return [(self.files.get(p.file, p.file), p.line, p.text, p.column, p.end_column, p.function) for p in self.rows]


def to_bytes(made: Compiled, files: Sequence[str], traced: Sequence[TracedFunction]) -> bytes:
    """A compilation as bytes. `files` are the user's, `traced` the kernels that it may launch.

    Raises `ValueError` where a kernel is not among them: it was made while tracing.
    """
    places, order = _Places(files), list(map(id, traced))
    kernels = [
        {
            "symbol": symbol,
            "function": order.index(id(function)),
            "operands": [dtype and dtype.name for dtype in made.operand_types[symbol]],
            "block": made.blocks[symbol],
            "launched": places.number(made.launch_lines.get(symbol)),
        }
        for symbol, function in made.functions.items()
    ]
    head = {
        "arguments": _spelled(made.arguments),
        "kernels": kernels,
        "host": [made.host.text, [places.number(place) for place in made.host.places]],
        "checks": [[symbol, [[c.message, places.number(c.where), c.hint] for c in checks]]
                   for symbol, checks in made.checks.items()],
        "lines": [[symbol, [[line.texts, [(f.dtype.name, f.spec) for f in line.fields]] for line in lines]]
                  for symbol, lines in made.lines.items()],
        "places": places.plain(),
    }  # fmt: skip
    texts = [packed(text, files) for text in (made.llvm, made.traced_text)]
    first = json.dumps(head | {"sizes": list(map(len, texts))}, separators=(",", ":")).encode()
    return b"%d\n" % len(first) + first + b"".join(texts)


def from_bytes(data: bytes, launcher: TracedFunction, arguments: list[HostArgument], target: Target, level: int,
               files: Sequence[str], traced: Sequence[TracedFunction], code: Any) -> Compiled:
    """The compilation of `to_bytes`, in the process that these kernels and files are of; `code` is its machine code.

    Raises `ValueError`, `KeyError` and their like for what is no such bytes, or is of other arguments.
    """
    number, _, rest = data.partition(b"\n")
    size = int(number)
    head = json.loads(rest[:size])
    if head["arguments"] != _spelled(arguments):
        raise ValueError("it is of other arguments")
    llvm, traced_ir = (bytes(part) for part in _cut(memoryview(rest)[size:], head["sizes"]))
    places = [SourceLine(files[f] if isinstance(f, int) else f, *others) for f, *others in head["places"]]

    def place(number: int | None) -> SourceLine | None:
        return None if number is None else places[number]

    kernels, (text, host_places) = head["kernels"], head["host"]
    made = Compiled(
        launcher=launcher,
        target=target,
        opt_level=level,
        arguments=arguments,
        host=HostProgram.of(text, [place(n) for n in host_places]),
        functions={k["symbol"]: traced[k["function"]] for k in kernels},
        operand_types={k["symbol"]: [_dtype(name) for name in k["operands"]] for k in kernels},
        blocks={k["symbol"]: k["block"] and tuple(k["block"]) for k in kernels},
        checks={symbol: [Check(message, place(n), hint) for message, n, hint in rows]
                for symbol, rows in head["checks"]},
        lines={symbol: [Line(texts, [Field(DTYPES[name], spec) for name, spec in fields]) for texts, fields in rows]
               for symbol, rows in head["lines"]},
        launch_lines={k["symbol"]: place(k["launched"]) for k in kernels},
        print_llvm=functools.partial(unpacked, llvm, tuple(files)),
        code=code,
        print_traced=functools.partial(unpacked, traced_ir, tuple(files)),
    )  # fmt: skip
    for function in (launcher, *made.functions.values()):
        function.last = made
    return made


def packed(text: str, files: Sequence[str]) -> bytes:
    """A text of the compiler for the disk. Raises `ValueError` where another process could not put its files in."""
    names = numbered(files)
    found = moved(text, files, names)
    if moved(found, names, files) != text:
        raise ValueError("a text names files in a way that cannot be changed")
    return zlib.compress(found.encode(), LEVEL)


def unpacked(data: bytes, files: Sequence[str]) -> str:
    """The text of `packed`, with this process's files."""
    return moved(zlib.decompress(data).decode(), numbered(files), files)


def _spelled(arguments: Iterable[HostArgument]) -> list[list[str]]:
    return [[a.name, a.kind, getattr(a.spec, "__name__", None) or str(a.spec)] for a in arguments if a.kind in _RUNTIME]


_RUNTIME = ("tensor", "number", "struct")
"""The kinds of arguments whose spelling tells what they are, in every process."""


def _dtype(name: str | None) -> DType | None:
    return None if name is None else DTYPES[name]


def _cut(data: memoryview, sizes: Sequence[int]) -> Iterable[memoryview]:
    if sum(sizes) != len(data):
        raise ValueError("it is cut")
    start = 0
    for size in sizes:
        yield data[start : start + size]
        start += size
