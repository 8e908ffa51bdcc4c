"""Instructions read as repeats of earlier ones are what they would be if each were read by itself."""

from __future__ import annotations

import pytest

from flylab.emulator import Program
from flylab.emulator.decoding.decode import Coded, decode
from flylab.emulator.decoding.repeats import Repeats
from flylab.emulator.instructions.control import past_end
from flylab.emulator.linking import END_OF_FUNCTION
from flylab.emulator.program import device_tables
from flylab.errors import UnknownInstruction
from tests.emulator.toolchain import CHIPS, assembly, element, kernel, program

BODIES = {
    "division of integers": ("<4 x i64>", "  %z = udiv <4 x i64> %x, %y"),
    "division of floats": ("<8 x float>", "  %z = fdiv <8 x float> %x, %y"),
    "packed halves": ("<8 x half>", "  %m = fmul <8 x half> %x, %y\n  %z = fsub <8 x half> %m, %x"),
    "pairs of floats": ("<8 x float>", "  %m = fmul <8 x float> %x, %y\n  %z = fadd <8 x float> %m, %x"),
    "bytes": ("<8 x i8>", "  %m = mul <8 x i8> %x, %y\n  %z = sub <8 x i8> %m, %x"),
}


def decoded(device: Program) -> list[Coded]:
    table, others = device_tables()
    return decode(device._image.code(device._kernel(None)), table, others | {END_OF_FUNCTION: past_end})


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("type_, body", BODIES.values(), ids=BODIES)
def test_repeats_are_read_as_if_they_were_none(
        chip: str, type_: str, body: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "".join(element(f"%p{name}", type_, f"%{name}") for name in "abc")
    lines += f"  %x = load {type_}, ptr addrspace(1) %pa\n  %y = load {type_}, ptr addrspace(1) %pb\n"
    device = program(chip, kernel("ptr %a, ptr %b, ptr %c", f"{lines}{body}\n  store {type_} %z, ptr addrspace(1) %pc"))
    quick = [(coded.key, coded.slots) for coded in decoded(device)]
    found = []
    monkeypatch.setattr(Repeats, "find", lambda self, instruction: found.append(instruction))
    assert quick == [(coded.key, coded.slots) for coded in decoded(device)] and len(found) > 20


@pytest.mark.parametrize("first, second, why", [
    ("v_add3_u32 v1, s2, s2, v3", "v_add3_u32 v1, s2, s3, v3", "it reads s2 and s3"),
    ("v_add3_u32 v1, v2, v2, v3", "v_add3_u32 v1, v2, v2, v16", "v16 is beyond the 16"),
    ("v_lshlrev_b64 v[2:3], 1, v[4:5]", "v_lshlrev_b64 v[2:3], 1, v[5:6]", "begin at an even one"),
    ("s_and_b64 s[2:3], s[4:5], s[6:7]", "s_and_b64 s[2:3], s[4:5], s[7:8]", "begin at a multiple of 2"),
    ("s_add_u32 s2, s3, s4", "s_add_u32 s2, s3, s102", "the scalar registers end at s101"),
    ("v_add_f32_e64 v1, v2, v3", "v_add_f32_e64 v1, v2, v3 quad_perm:[0,1,2,3]", "only an instruction with the suffix"),
    ("v_mul_f32 v1, 2.0, v3", "v_mul_f32 v1, v3, 2.5", "no room for the constant"),
])
def test_what_only_looks_like_a_repeat_is_refused(first: str, second: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match=why) as caught:
        Program.from_assembly(assembly(f"  {first}\n  {second}\n  s_endpgm")).load("k")
    assert second in str(caught.value)
