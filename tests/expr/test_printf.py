"""`fx.printf`: what a line says, of values of every kind; and what it refuses, at its line."""

from __future__ import annotations

import textwrap
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.expr as fx
from flylab.dtypes import DTYPES
from flylab.emulator import windows
from flylab.errors import TraceError
from flylab.expr.bits import of_bits, to_bits
from flylab.expr.lines import shortest
from tests.samples import cell, kernel_of

ARRAYS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64",
          "bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e4m3", "float8_e4m3b11fnuz")


def printed(body: str, capsys: pytest.CaptureFixture[str], array: Any = None) -> list[str]:
    """The lines that the first thread prints by this body, with a tensor `A` and `t`, which is 0 there."""
    guarded = "t = fx.thread_idx.x\n" + textwrap.dedent(body)
    kernel_of(guarded)["launch"](np.zeros(64, np.float32) if array is None else array)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) % 64 == 0
    return lines[: len(lines) // 64]


def dtype_of(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, None) or name)


@pytest.mark.parametrize("name", ARRAYS)
def test_numbers_of_every_format(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An integer is exact. A float's text gives the float back, and no fewer digits do."""
    dtype = dtype_of(name)
    bits = np.random.default_rng(0).integers(0, 256, (64, dtype.itemsize), dtype=np.uint8)
    bits[0], bits[1] = 0, 255
    values = bits.view(dtype).ravel()
    kernel_of('fx.printf("{}", A[fx.thread_idx.x])')["launch"](values.copy())
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 64
    for value, line in zip(values, lines, strict=True):
        if dtype.kind in "iu":
            assert line == str(int(value))
        else:
            check_float(float(value), line, dtype)


def check_float(value: float, line: str, dtype: np.dtype) -> None:
    if value != value:
        assert line == "nan"
        return
    assert line == repr(float(line)), "Python's spelling"
    with np.errstate(over="ignore"):
        assert dtype.type(float(line)) == dtype.type(value)
        if dtype.itemsize == 1 or not np.isfinite(value):
            assert float(line) == value
            return
        digits = len(line.lstrip("-").split("e")[0].replace(".", "").strip("0"))
        for fewer in range(digits - 1):
            assert dtype.type(float(f"{value:.{fewer}e}")) != dtype.type(value)


@given(st.sampled_from(["Float16", "BFloat16", "Float32", "Float64"]), st.data())
def test_fewest_digits(name: str, data: st.DataObject) -> None:
    dtype = DTYPES[name]
    value = of_bits(data.draw(st.integers(0, (1 << dtype.bits) - 1)), dtype)
    text = shortest(value, dtype)
    check_float(value, text, dtype.to_numpy())
    if value == value:
        assert to_bits(float(text), dtype) == to_bits(value, dtype)


def test_extreme_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    body = """
    zero = fx.Int64(A[t])
    fx.printf("{} {}", zero + -2**63, fx.Uint64(zero) - 1)
    wide = fx.Int128(zero)
    fx.printf("{} {} {}", (wide + 1) << 126, wide - 1, fx.Uint128(zero) - 1)
    fx.printf("{} {} {} {}", A[t] / 0.0, -1.0 / A[t], 1.0 / A[t], -A[t])
    fx.printf("{} {} {}", zero == 0, zero != 0, (zero + 9).to(fx.Int4))
    """
    assert printed(body, capsys) == [
        f"{-2**63} {2**64 - 1}", f"{2**126} -1 {2**128 - 1}", "nan -inf inf -0.0", "True False -7"]


SPECS = {"d": "Int32", ">8": "Int32", "<6": "Int32", "^+9": "Int32", "08": "Int32", "x": "Int32", "#010x": "Int32",
         "b": "Uint8", "o": "Uint16", ",": "Int64", "_x": "Uint32", "e": "Int32", ".3f": "Float32", "10.2e": "Float64",
         "g": "Float16", "+.1%": "Float32", "*^12": "Float32", ".0f": "BFloat16", " ": "Float64", "G": "Float32"}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize("static", [False, True])
def test_specifications_are_pythons(spec: str, static: bool, capsys: pytest.CaptureFixture[str]) -> None:
    kind = SPECS[spec]
    value: Any = 77 if "int" in kind.lower() else 1.75
    number = f"fx.{kind}({value})" if static else f"fx.{kind}(A[t] + {value})"
    fill = "0" if static else "A[t].to(fx.Int32)"
    if "int" in kind.lower() and not static:
        number = f"fx.{kind}({fill} + {value})"
    assert printed(f'fx.printf("|{{:{spec}}}|", {number})', capsys) == [f"|{value:{spec}}|"]


def test_a_width_shows_the_fewest_digits(capsys: pytest.CaptureFixture[str]) -> None:
    """Where the specification says nothing of digits, a float has those of its own format."""
    body = 'fx.printf("{:>8}|{:<8}|{:.9f}|{}", A[t], fx.Float16(A[t]), A[t], fx.Float32(0.1))'
    assert printed(body, capsys, np.full(64, 0.1, np.float32)) == ["     0.1|0.1     |0.100000001|0.1"]


def test_static_and_runtime_agree(capsys: pytest.CaptureFixture[str]) -> None:
    values = [0.1, 65504.0, 1e-7, -0.0, 3.14159, 1e30]
    for name in ("Float16", "BFloat16", "Float32", "Float64"):
        known = ", ".join(f"fx.{name}({v})" for v in values)
        runtime = ", ".join(f"fx.{name}({v}).bitcast(fx.Int{DTYPES[name].bits}) | zero" for v in values)
        runtime = ", ".join(f"({part}).bitcast(fx.{name})" for part in runtime.split(", "))
        first, second = printed(f"zero = fx.Int{DTYPES[name].bits}(A[t])\n"
                                f"fx.printf({known})\nfx.printf({runtime})", capsys)
        assert first == second


CASES = {
    "text alone": ('fx.printf("hello")', ["hello"]),
    "newlines": ('fx.printf("a\\n")\nfx.printf("b\\n\\n")', ["a", "b", ""]),
    "braces, literal (L22)": ('fx.printf("{{}} {} {{{}}}", t, t + 1)', ["{} 0 {1}"]),
    "a percent sign": ('fx.printf("100% {}", t)', ["100% 0"]),
    "numbered": ('fx.printf("{1} {0} {1}", t, t + 1)', ["1 0 1"]),
    "the keyword": ('fx.printf(t, t + 1, format_str="a={} b={}")', ["a=0 b=1"]),
    "no text": ("fx.printf(t, 1.5, t == 0)", ["0 1.5 True"]),
    "a vector": ('fx.printf("{} {:.1f}", v, v)', ["[1.0, 2.0] [1.0, 2.0]"]),
    "tuples": ('fx.printf("{} {} {}", (t, t + 2), (t,), (1, (t, fx.Int8(-3))))', ["(0, 2) (0,) (1, (0, -3))"]),
    "lists and dicts": ('fx.printf("{} {}", [t, "a", None], {"k": t, 2: v})',
                        ["[0, 'a', None] {'k': 0, 2: [1.0, 2.0]}"]),
    "a specification in a tuple": ('fx.printf("{:>3}", (t, 5))', ["(  0,   5)"]),
    "what Python knows": ('fx.printf("{} {} {:>4} {}", True, None, "ab", fx.make_layout((4, 8), (1, 4)))',
                          ["True None   ab (4,8):(1,4)"]),
    "numpy's numbers": ('import numpy\nfx.printf("{} {}", numpy.int64(3), numpy.float32(0.1))',
                        ["3 0.10000000149011612"]),
    "coordinates": ('fx.printf("{}", fx.idx2crd(t + 9, fx.make_layout((4, 8), (8, 1))))', ["(1, 1)"]),
    "a layout of the device": ('fx.printf("{}", fx.make_layout((fx.assume(t + 8, div=8), 64), (64, 1)))',
                               ["(8,64):(64,1)"]),
    "a composed layout": (
        'fx.printf("{}", fx.composition(fx.Swizzle(1, 0, 3), fx.make_layout((fx.assume(t + 8, div=8), 8), (8, 1))))',
        ["S<1,0,3> o 0 o (8,8):(8,1)"]),
    "ids": ('fx.printf("{} {}", fx.thread_idx, fx.block_dim)', ["(0, 0, 0) (64, 1, 1)"]),
    "a struct": ('@fx.struct\nclass P:\n    a: fx.Int32\n    b: fx.Array[fx.Float32, 2]\n'
                 'fx.printf("{} {:.2f}", P(a=t, b=v), (P(a=3, b=v).b,))', ["P(a=0, b=[1.0, 2.0]) ([1.00, 2.00],)"]),
    "C's conversion inside of a word": ('fx.printf("{}%done 50%d {:.0%}", t, 0.5)', ["0%done 50%d 50%"]),
    "C's conversion as a value": ('fx.printf("{} {}", "%d", t)', ["%d 0"]),
    "order of the program": ('for i in range_constexpr(3):\n    fx.printf("{}", t + i)', ["0", "1", "2"]),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_line_says(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    body, lines = CASES[name]
    assert printed("v = fx.Vector.from_elements([A[t] + 1.0, 2.0], fx.Float32)\n" + body, capsys) == lines


def test_pointers_are_addresses(capsys: pytest.CaptureFixture[str]) -> None:
    array = np.zeros(64, np.float32)
    start = windows.ARRAYS
    assert printed('p = fx.get_iter(A)\nfx.printf("{} {} {:d}", p, p + (t + 3), p)', capsys, array) == [
        f"{start:#x} {start + 12:#x} {start}"]


def test_outside_of_a_kernel_it_prints_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    fx.printf("{} {:x} {}", 3, 255, fx.BFloat16(3.14159))
    assert capsys.readouterr().out == "3 ff 3.14\n"
    with pytest.raises(TraceError, match="asks for 1 value, and 0 are given"):
        fx.printf("{}")


REFUSALS = {
    "one {} too many (L22)": ('fx.printf("{} {} {}", t, t)', "asks for 3 values, and 2 are given", "one value for"),
    "one value too many": ('fx.printf("{}", t, t)', "asks for 1 value, and 2 are given", "a brace is written {{"),
    "%d with a value (L22)": ('fx.printf("tid=%d", t)', "asks for 0 values, and 1 is given", "{} in place of %d"),
    "%5.2f among others": ('fx.printf("{} %5.2f", t, A[t])', "asks for 1 value, and 2 are given", "in place of %5.2f"),
    "%d beside enough {}": ('fx.printf("100% of {} %d", t)', "has a %d of C's", "write {} in its place"),
    "a value by name": ('fx.printf("{x}", x=t)', "printf(..., x=...): its values have no names", "write {} for {x}"),
    "a hole": ('fx.printf("{0} {2}", t, t, t)', "none of them {1}", "one value for each"),
    "mixed": ('fx.printf("{0} {}", t, t)', "mixes {} with numbered", "number all of them"),
    "an open brace": ('fx.printf("{", t)', "cannot read its format '{'", "written {{ or }}"),
    "a name": ('fx.printf("{tid}", t)', "has no {tid} in its format", "in order"),
    "an attribute": ('fx.printf("{0.x}", fx.thread_idx)', "has no {0.x}", "in order"),
    "a conversion": ('fx.printf("{!r}", t)', "has no {!r}", "in order"),
    "a width from a value": ('fx.printf("{:{}}", t, 5)', "has no {:{}}", "in order"),
    "of a float for an integer": ('fx.printf("{:.3d}", t)', "shows Int32 by {:.3d}: Precision", "{:.3f}"),
    "of an integer for a float": ('fx.printf("{:x}", A[t])', "shows Float32 by {:x}: Unknown format code", "{:.3f}"),
    "nonsense": ('fx.printf("{:q!}", t)', "shows Int32 by {:q!}: Invalid format", "{:>8}"),
    "a character": ('fx.printf("{:c}", t)', "no way to show every integer", "{:x}"),
    "a width without end": ('fx.printf("{:99999999}", t)', "sizes are at most 9999", "{:>8}"),
    "of what Python knows": ('fx.printf("{:d}", "text")', "shows 'text' by {:d}: Unknown format code", "Python has"),
    "a tensor": ('fx.printf("{}", A)', "printf of 'A', which is a Tensor", "t.load() is a vector"),
    "a pointer into registers": ('fx.printf("{}", fx.get_iter(fx.make_rmem_tensor(4, fx.Float32)))',
                                 "into register memory", "global memory"),
    "a raw MLIR value": ('fx.printf("{}", t.ir_value())', "printf of this value, which is a", "fx.Int32(value)"),
    "an f-string": ('fx.printf(f"tid={t}")', "finished already: 'tid=Int32(?)'", 'fx.printf("x = {}", x)'),
    "an object that holds numbers": ('import types\nfx.printf("{}", types.SimpleNamespace(a=t))',
                                     "SimpleNamespace that holds numbers of the device", "print these numbers"),
    "nothing": ("fx.printf()", "printf of nothing", 'fx.printf("x = {}", x)'),
    "a format that is no text": ("fx.printf(t, format_str=5)", "printf of 5", 'fx.printf("x = {}", x)'),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_at_its_line(name: str) -> None:
    body, message, hint = REFUSALS[name]
    with pytest.raises(TraceError) as caught:
        kernel_of("t = fx.thread_idx.x\n" + body)["launch"](np.zeros(64, np.float32))
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")
    assert caught.value.where is not None and caught.value.where.line == 3 + body.count("\n") + 1


def test_a_value_of_another_kernel_is_refused() -> None:
    names = cell("""
        kept = []

        @flyc.kernel
        def k(A: fx.Tensor):
            kept.append(fx.thread_idx.x)

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    names["launch"](np.zeros(64, np.float32))
    with pytest.raises(TraceError, match="used after its kernel was traced"):
        fx.printf("{}", names["kept"][0])
