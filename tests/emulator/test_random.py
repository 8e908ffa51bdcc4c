"""Random expressions: what LLVM makes of them for a chip must equal what it makes of them for this machine."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.emulator.snippets import INTEGERS, Snippet
from tests.emulator.test_differential import check

BINARY = ("add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "icmp ult", "icmp sgt", "icmp eq", "udiv",
          "srem")
PLACES = st.integers(0, 40)
CHOICES = st.lists(st.tuples(st.sampled_from(BINARY), PLACES, PLACES, st.integers(-300, 1 << 33)), min_size=3,
                   max_size=14)


def integer_body(type_: str, steps: list[tuple[str, int, int, int]]) -> str:
    """Instructions on two inputs; each takes earlier values, or a constant where its second number is even."""
    bits = 8 * INTEGERS[type_]
    names, lines = ["%x0", "%x1"], []
    for n, (operation, first, second, constant) in enumerate(steps):
        a = names[first % len(names)]
        wrapped = (constant + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)
        b = str(wrapped) if second % 2 else names[second % len(names)]
        if operation in ("shl", "lshr", "ashr"):
            lines.append(f"  %m{n} = and {type_} {b}, {bits - 1}")
            b = f"%m{n}"
        elif operation in ("udiv", "srem"):
            # An odd number that is not negative: no division by zero, and none that overflows.
            lines += [f"  %q{n} = lshr {type_} {b}, 1", f"  %m{n} = or {type_} %q{n}, 1"]
            b = f"%m{n}"
        if operation.startswith("icmp"):
            lines += [f"  %c{n} = {operation} {type_} {a}, {b}",
                      f"  %v{n} = select i1 %c{n}, {type_} {names[second % len(names)]}, {type_} {names[0]}"]
        else:
            lines.append(f"  %v{n} = {operation} {type_} {a}, {b}")
        names.append(f"%v{n}")
    return "\n".join([*lines, f"  %r = xor {type_} {names[-1]}, {names[-2]}"])


@settings(max_examples=25)
@given(st.sampled_from(["gfx942", "gfx950"]), st.integers(1, 3),
       st.lists(st.tuples(st.sampled_from(sorted(INTEGERS)), CHOICES), min_size=4, max_size=4))
def test_integer_expressions(chip: str, opt: int, programs: list[tuple[str, list[tuple[str, int, int, int]]]]) -> None:
    check(chip, opt, [Snippet(f"{n}", (type_, type_), type_, integer_body(type_, steps))
                      for n, (type_, steps) in enumerate(programs)])


FLOAT_BINARY = ("fadd", "fsub", "fmul", "fdiv", "fcmp olt", "fcmp une")
FLOAT_STEPS = st.lists(st.tuples(st.sampled_from(FLOAT_BINARY), PLACES, PLACES,
                                 st.floats(-1e6, 1e6, width=32)), min_size=3, max_size=10)


def float_body(type_: str, steps: list[tuple[str, int, int, float]]) -> str:
    """As `integer_body`, on floats."""
    names, lines = ["%x0", "%x1"], []
    for n, (operation, first, second, constant) in enumerate(steps):
        a = names[first % len(names)]
        literal = f"0x{np.float64(constant).view('u8'):016X}"
        b = literal if second % 3 == 1 else names[second % len(names)]
        if operation.startswith("fcmp"):
            lines += [f"  %c{n} = {operation} {type_} {a}, {b}",
                      f"  %v{n} = select i1 %c{n}, {type_} {names[second % len(names)]}, {type_} {names[0]}"]
        else:
            lines.append(f"  %v{n} = {operation} {type_} {a}, {b}")
        names.append(f"%v{n}")
    return "\n".join([*lines, f"  %r = fadd {type_} {names[-1]}, {names[-2]}"])


@settings(max_examples=20)
@given(st.sampled_from(["gfx942", "gfx950"]), st.integers(1, 3),
       st.lists(st.tuples(st.sampled_from(["float", "double"]), FLOAT_STEPS), min_size=3, max_size=3))
def test_float_expressions(chip: str, opt: int, programs: list[tuple[str, list[tuple[str, int, int, float]]]]) -> None:
    check(chip, opt, [Snippet(f"{n}", (type_, type_), type_, float_body(type_, steps))
                      for n, (type_, steps) in enumerate(programs)])
