"""Random programs give on the software device what they give as plain Python, one thread after another."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import flylab
from tests.compiler.control_programs import program
from tests.compiler.plain_python import THREADS, Overflow, expected
from tests.samples import cell

TOGETHER = 4
"""Programs that are compiled into one kernel, which is quicker."""
ROUNDS = max(settings.default.max_examples // 4, 1)  # type: ignore[union-attr]


def launcher_of(programs: dict[str, str]) -> Callable[..., Any]:
    """The launcher of a kernel that runs these functions, each on a tensor of its own."""
    tensors = [f"A_{name}" for name in programs]
    parameters = ", ".join(f"{a}: fx.Tensor" for a in tensors)
    calls = "\n".join(f"    {name}(A_{name}, t, n)" for name in programs)
    launcher: Callable[..., Any] = cell(
        "from types import SimpleNamespace\n\n" + "\n".join(programs.values()) + f"""
@flyc.kernel
def k({parameters}, n: fx.Int32):
    t = fx.thread_idx.x
{calls}

@flyc.jit
def launch({parameters}, n: fx.Int32):
    k({', '.join(tensors)}, n).launch(grid=1, block={THREADS})
""")["launch"]
    return launcher


def check(programs: dict[str, str], n: int, chip: str) -> None:
    """Compare the device with Python for each program; those in which a Python number overflows are left out."""
    wanted = {}
    for name, text in programs.items():
        with contextlib.suppress(Overflow):
            wanted[name] = expected(text, name, THREADS, n)
    if not wanted:
        return
    written = [np.full(THREADS, -1, np.int32) for _ in wanted]
    with flylab.use(chip):
        launcher_of({name: programs[name] for name in wanted})(*written, n)
    for (name, want), got in zip(wanted.items(), written, strict=True):
        if (got != want).any():
            thread = int(np.argmax(got != want))
            pytest.fail(f"on {chip}, n={n}, thread {thread}: {got[thread]}, Python gives {want[thread]}, for\n"
                        f"{programs[name]}")


# A seed does not shrink.
@settings(max_examples=ROUNDS, phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(st.lists(st.integers(0, 2**32), min_size=TOGETHER, max_size=TOGETHER), st.integers(0, 6),
       st.sampled_from(["gfx942", "gfx950"]))
def test_programs_give_what_python_gives(seeds: list[int], n: int, chip: str) -> None:
    check({f"p{i}": program(seed, f"p{i}") for i, seed in enumerate(seeds)}, n, chip)


def test_a_wrong_program_is_found() -> None:
    """The comparison itself: Python's result of another program does not pass."""
    right = "def p(A, t, n):\n    A[t] = t + n\n"
    check({"p": right}, 3, "gfx942")
    assert (expected(right.replace("t + n", "t - n"), "p", THREADS, 3) != expected(right, "p", THREADS, 3)).any()


def test_programs_use_every_kind_of_control_flow() -> None:
    text = "\n".join(program(seed, "p") for seed in range(300))
    for word in ("if ", "elif ", "else:", "for ", "while ", "break", "continue", "return", " and ", " or ", "not ",
                 ":=", "lambda", "nonlocal", "try:", "finally:", "with ", "del ", "range_constexpr", ", -1):",
                 "enumerate"):
        assert word in text, word
