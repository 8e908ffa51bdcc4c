"""A kernel's body run on the software device, and by Python itself, thread by thread: the two must agree.

Python is the oracle, so its side knows nothing of flylab: `fx` is a few plain names there.
"""

from __future__ import annotations

import builtins
import math
import textwrap
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from tests.samples import cell

THREADS = 64
UNTOUCHED = -99
"""What a result holds where the kernel writes nothing."""

A = [(37 * i) % 23 - 5 for i in range(THREADS)]
X = [((29 * i) % 31 - 11) / 4 for i in range(THREADS)]
BOUNDS = (0, 1, 7, 70)
"""The values that `n` takes: no round, one, some threads of the block, and all."""

PARAMETERS = "R: fx.Tensor, A: fx.Tensor, X: fx.Tensor, n: fx.Int32, m: fx.Int32, c: fx.Constexpr[int]"
IMPORTS = "import functools, types\nfrom flylab.expr import const_expr, range_constexpr\n"


def text_of(body: str, head: str = "") -> str:
    """A cell with the kernel of a body over `t`, behind what it needs."""
    inner = textwrap.indent("t = fx.thread_idx.x\n" + textwrap.dedent(body).strip("\n"), "    ")
    names = ", ".join(p.split(":")[0] for p in PARAMETERS.split(", "))
    return (
        f"{IMPORTS}{textwrap.dedent(head)}\n@flyc.kernel\ndef k({PARAMETERS}):\n{inner}\n\n"
        f"@flyc.jit\ndef launch({PARAMETERS}):\n    k({names}).launch(grid=1, block={THREADS})\n"
    )


def line_of(body: str, marked: str, head: str = "") -> int:
    """The line of a cell's text that holds `marked`."""
    lines = text_of(body, head).splitlines()
    return next(i for i, line in enumerate(lines, 1) if marked in line)


def by_device(body: str, head: str = "", bounds: tuple[int, ...] = BOUNDS, out: Any = np.int32,
              m: int = 3, chip: str = "gfx942") -> list[list[Any]]:
    """What every thread leaves in R, for each n of `bounds`, on the software device."""
    launch = cell(text_of(body, head))["launch"]
    found = []
    with flylab.use(chip):
        for n in bounds:
            R = np.full(THREADS, UNTOUCHED, out)
            launch(R, np.array(A, np.int32), np.array(X, np.float32), n, m, 4)
            found.append(R.tolist())
    return found


class _Device(types.SimpleNamespace):
    """What the bodies use of `fx`, in plain Python."""

    def __init__(self) -> None:
        super().__init__(
            Int32=int, Int64=int, Float32=float, Boolean=bool, const_expr=bool, range_constexpr=range,
            min=builtins.min, max=builtins.max, ceildiv=lambda a, b: -(-a // b),
            thread_idx=types.SimpleNamespace(x=0), sqrt=math.sqrt,
        )


def by_python(body: str, head: str = "", bounds: tuple[int, ...] = BOUNDS, out: Any = np.int32,
              m: int = 3) -> list[list[Any]]:
    """The same by Python, one thread after the other."""
    fx = _Device()
    flat = types.SimpleNamespace(jit=lambda f: f, kernel=lambda f: f)
    names: dict[str, Any] = {"fx": fx, "flyc": flat}
    text = text_of(body, head).replace("from flylab.expr import const_expr, range_constexpr\n",
                                       "const_expr, range_constexpr = bool, range\n")
    text = text[: text.index("@flyc.jit\ndef launch(")]
    exec(compile(text.replace("fx.Tensor", "object").replace("fx.Constexpr[int]", "object"), "<oracle>", "exec"), names)
    found = []
    for n in bounds:
        R = [UNTOUCHED] * THREADS
        for fx.thread_idx.x in range(THREADS):
            names["k"](R, list(A), list(X), n, m, 4)
        found.append(np.array(R).astype(out).tolist())
    return found


def agree(body: str, head: str = "", **options: Any) -> None:
    """Assert that device and Python leave the same."""
    chip = options.pop("chip", "gfx942")
    expected = by_python(body, head, **options)
    assert any(r != UNTOUCHED for row in expected for r in row), "the program writes nothing"
    found = by_device(body, head, chip=chip, **options)
    for n, mine, right in zip(options.get("bounds", BOUNDS), found, expected, strict=True):
        assert mine == right, f"n={n}"


def refused(body: str, head: str = "") -> flylab.errors.FlylabError:
    """The error of compiling a body."""
    launch = cell(text_of(body, head))["launch"]
    try:
        flyc.compile(launch, np.zeros(THREADS, np.int32), np.array(A, np.int32), np.array(X, np.float32), 1, 3, 4)
    except flylab.errors.FlylabError as error:
        return error
    raise AssertionError("the program was not refused")


def programs(file: str, case: str) -> dict[str, tuple[str, str]]:
    """The programs of a case in `cases/<file>.txt`, by name: what stands before the kernel, and its body.

    A case begins with a line `=== L01: ...`, a program with `--- its name`; a line `%%` ends what stands before.
    """
    text = (Path(__file__).parent / "cases" / f"{file}.txt").read_text(encoding="utf-8")
    found: dict[str, tuple[str, str]] = {}
    section = next(s for s in text.split("=== ") if s.startswith(f"{case}:"))
    for block in section.split("\n--- ")[1:]:
        name, _, program = block.partition("\n")
        head, _, body = program.rpartition("%%\n")
        found[name] = head, body
    return found


def each_program(file: str, case: str) -> Any:
    """Runs a test with the head and the body of each program of a case."""
    found = programs(file, case)
    return pytest.mark.parametrize("head, body", list(found.values()), ids=list(found))
