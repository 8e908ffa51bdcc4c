"""The oracles themselves, against what they are not made of: numpy, this machine's instructions, values by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.emulator.oracles import exact
from tests.emulator.oracles.exact import FORMATS
from tests.emulator.oracles.executor import Executor
from tests.emulator.oracles.lanes import Context, Lanes
from tests.emulator.oracles.pcode_parser import PseudocodeError, parse
from tests.emulator.oracles.pcode_run import Machine
from tests.emulator.oracles.text import Text
from tests.emulator.snippets import values
from tests.emulator.toolchain import Host, aligned

HALF, SINGLE, DOUBLE = (FORMATS["f", width] for width in (16, 32, 64))


def run(text: str, **names: tuple[str, int, int]) -> dict[str, Any]:
    """The names after a text of pseudo-code."""
    machine = Machine({"D0": ("b", 64, 0), **names}, "gfx942")
    machine.body(parse(text))
    return machine.names


@pytest.mark.parametrize("text, names, result", [
    ("D0.u32 = S0.u32 + S1.u32", {"S0": 0xFFFFFFFF, "S1": 2}, 1),
    ("D0.i32 = S0.i32 >> S1[4 : 0].u32", {"S0": 0x80000000, "S1": 0x21}, 0xC0000000),
    ("D0.u32[31 : 0] = S0.u32[0 : 31]", {"S0": 0x80000001}, 0x80000001),
    ("D0.u32[31 : 0] = S0.u32[0 : 31]", {"S0": 0x00000003}, 0xC0000000),
    ("tmp = 0;\nfor i in 0 : 31 do\ntmp += S0.u32[i] == 1'1U ? 1 : 0\nendfor;\nD0.i32 = tmp", {"S0": 0xF0F}, 8),
    ("tmp = -1;\nfor i in 0 : 31 do\nif S0.u32[i] == 1'1U then\ntmp = i;\nbreak\nendif\nendfor;\nD0.i32 = tmp",
     {"S0": 0x50}, 4),
    ("if S0.i32 < 0 then\nD0.u32 = 1U\nelsif S0.i32 == 0 then\nD0.u32 = 2U\nelse\nD0.u32 = 3U\nendif", {"S0": 5}, 3),
    ("ABSDIFF = lambda(x, y) (\nx > y ? x - y : y - x);\nD0.u32 = ABSDIFF(S0.u32[7 : 0], S1.u32[7 : 0])",
     {"S0": 0x105, "S1": 0x2FF}, 0xFA),
    ("D0 = { S1[15 : 0].u16, S0[31 : 16].u16 }", {"S0": 0x11112222, "S1": 0x33334444}, 0x44441111),
    ("D0.i32 = 32'I(signext(S0.i8))", {"S0": 0x80}, 0xFFFFFF80),
    ("D0.f32 = S0.f32 * S1.f32", {"S0": 0x3FC00000, "S1": 0xC0000000}, 0xC0400000),
    ("D0.f32 = fma(S0.f32, S0.f32, -S0.f32)", {"S0": 0x3F800000}, 0),
    ("D0.f16 = f32_to_f16(S0.f32)", {"S0": 0x477FF000}, 0x7C00),
    ("D0.f32 = S0.f32 * 2.0F ** S1.i32", {"S0": 0x00000001, "S1": 149}, 0x3F800000),
    ("D0.u32 = 32'U(isSignalNAN(64'F(S0.f32)))", {"S0": 0x7F800001}, 1),
    ("D0.u32 = 32'U(isSignalNAN(64'F(S0.f32)))", {"S0": 0x7FC00001}, 0),
    ("D0.u32 = 32'U(S0.f32 == -0.0F)", {"S0": 0}, 0),
])
def test_pseudo_code_by_hand(text: str, names: dict[str, int], result: int) -> None:
    found = run(text, **{name: ("b", 32, raw) for name, raw in names.items()})
    assert found["D0"][2] & 0xFFFFFFFF == result


@pytest.mark.parametrize("text, message", [
    ("D0.u32 = @", "no token"), ("D0.u32 = S0.u32 +", "list index|stands where"), ("D0.u32 = nobody", "named nobody"),
    ("D0.f32 = S0.f32 + S1.f16", r"\+ of f32 and f16"), ("D0.f32 = shade(S0.f32)", "calls shade"),
    ("for i of 3", "without 'in'"), ("if S0 then D0 = S0", "'endif' should"),
])
def test_pseudo_code_that_cannot_be_run(text: str, message: str) -> None:
    with pytest.raises((PseudocodeError, IndexError), match=message):
        run(text, S0=("b", 32, 1), S1=("b", 32, 1))


@pytest.mark.parametrize("source, target", [("float", "half"), ("double", "float"), ("double", "half")])
def test_exact_conversions_are_numpys(source: str, target: str) -> None:
    sizes = {"half": 2, "float": 4, "double": 8}
    raw = values(source, 4096, 3)
    with np.errstate(all="ignore"):
        wanted = raw.view(f"f{sizes[source]}").astype(f"f{sizes[target]}")
    forms = FORMATS["f", 8 * sizes[source]], FORMATS["f", 8 * sizes[target]]
    found = np.array([exact.converted(int(x), *forms) for x in raw], f"u{sizes[target]}").view(wanted.dtype)
    assert np.array_equal(found, wanted, equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(wanted))


@given(st.integers(0, (1 << 32) - 1))
def test_towards_zero_is_the_nearer_to_zero_of_the_two_neighbours(raw: int) -> None:
    value = exact.number(raw, SINGLE)
    if not np.isfinite(value):
        return
    found = exact.number(exact.converted(raw, SINGLE, HALF, toward_zero=True), HALF)
    assert abs(found) <= abs(value)
    size = exact.of_float(abs(found), HALF)
    assert abs(value) < exact.number(size + 1, HALF)  # of the largest number, infinity


@pytest.mark.parametrize("type_", ["float", "double"])
def test_the_fused_sum_is_this_machines(type_: str) -> None:
    size = {"float": 4, "double": 8}[type_]
    host = Host(f"""
define void @fused(ptr %x, ptr %y, ptr %z, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %xp = getelementptr {type_}, ptr %x, i64 %i
  %yp = getelementptr {type_}, ptr %y, i64 %i
  %zp = getelementptr {type_}, ptr %z, i64 %i
  %a = load {type_}, ptr %xp
  %b = load {type_}, ptr %yp
  %c = load {type_}, ptr %zp
  %r = call {type_} @llvm.fma.f{8 * size}({type_} %a, {type_} %b, {type_} %c)
  store {type_} %r, ptr %xp
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %n
  br i1 %done, label %end, label %loop
end:
  ret void
}}
declare {type_} @llvm.fma.f{8 * size}({type_}, {type_}, {type_})
""")
    arrays = [aligned(values(type_, 4096, seed)) for seed in (1, 2, 3)]
    raws = zip(*(a.tolist() for a in arrays), strict=True)
    found = np.array([exact.fused(*raw, FORMATS["f", 8 * size]) for raw in raws], f"u{size}").view(f"f{size}")
    host.call("fused", arrays, 4096)
    wanted = arrays[0].view(f"f{size}")
    assert np.array_equal(found, wanted, equal_nan=True)
    signed = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(found[signed]), np.signbit(wanted[signed]))


@given(st.integers(0, (1 << 32) - 1), st.integers(0, (1 << 32) - 1))
def test_lanes_compute_as_python_does(x: int, y: int) -> None:
    a, b = (Lanes(Context(), np.array([n], np.uint32), "i32") for n in (x, y))
    signed = [n - (1 << 32) if n >> 31 else n for n in (x, y)]
    wanted = {
        "sum": ((a + b).array[0], (x + y) % 2**32), "product": ((a * b).array[0], x * y % 2**32),
        "left": (a.shl(b).array[0], (x << y % 32) % 2**32),
        "arithmetic": (a.sar(b).array[0], (signed[0] >> y % 32) % 2**32),
        "less": (a.cmp("slt", b).array[0], signed[0] < signed[1]), "above": (a.cmp("ugt", b).array[0], x > y),
        "saturated": (a.call("uadd.sat", b).array[0], min(x + y, 2**32 - 1)),
        "capped": (a.call("ssub.sat", b).array[0], min(max(signed[0] - signed[1], -2**31), 2**31 - 1) % 2**32),
        "ones": (a.call("ctpop").array[0], x.bit_count()), "leading": (a.count("ctlz").array[0], 32 - x.bit_length()),
        "wide": (a.to("i64", True).array[0], signed[0] % 2**64),
    }
    assert {name: pair for name, pair in wanted.items() if pair[0] != pair[1]} == {}


def test_the_executor_reads_text() -> None:
    line = "v_add_u32_sdwa v0, sext(v4), v6 dst_sel:BYTE_1 dst_unused:UNUSED_PAD src0_sel:BYTE_2 src1_sel:DWORD"
    text = Text.of(line)
    assert (text.mnemonic, text.operands, text.words["src0_sel"]) == ("v_add_u32", ["v0", "sext(v4)", "v6"], "BYTE_2")
    wave = Executor("gfx942", np.zeros((8, 64), np.uint32), np.zeros(144, np.uint32))
    wave.set_scalar(126, 2, 0b101)
    wave.v[4], wave.v[6], wave.v[0] = 0x00FE0000, 3, 0xAAAAAAAA
    wave.run(line)
    assert wave.v[0, :4].tolist() == [0x0100, 0xAAAAAAAA, 0x0100, 0xAAAAAAAA]


def test_what_the_executor_lacks_is_said() -> None:
    wave = Executor("gfx942", np.zeros((8, 64), np.uint32), np.zeros(144, np.uint32))
    with pytest.raises(LookupError, match="no v_unheard_of"):
        wave.run("v_unheard_of v0, v1")
