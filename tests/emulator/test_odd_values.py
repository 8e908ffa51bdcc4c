"""Values and text that are far from what anyone means: each is an error of flylab's, at once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import ArgumentError, CompileError, DeviceError, UnknownInstruction
from tests.emulator.toolchain import assembly

END = "  s_endpgm"
HUGE = 10 ** 5000


class Hostile:
    def __repr__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("given, text", [
    ({"grid": HUGE}, "the grid is a number of 16610 bits"), ({"block": HUGE}, "the block is a number of 16610 bits"),
    ({"shared": HUGE}, "the dynamic LDS is a number of 16610 bits"), ({"grid": Hostile()}, "the grid is <Hostile"),
    ({"kernel": Hostile()}, "kernel is <Hostile")])
def test_launches(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        Program.from_assembly(assembly(END)).launch(**{"grid": 1, "block": 64, "args": [None]} | given)
    assert text in str(caught.value)


def test_a_program_of_text() -> None:
    with pytest.raises(DeviceError, match="a str was given") as caught:
        Program(assembly(END))  # type: ignore[arg-type]
    assert "Program.from_assembly(text) reads assembly" in str(caught.value)


def test_a_program_goes_to_another_process() -> None:
    text = assembly("  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_lshlrev_b32 v1, 2, v0\n  s_waitcnt lgkmcnt(0)\n"
                    "  global_store_dword v1, v0, s[4:5]\n" + END)
    numbers = np.zeros(64, np.int32)
    pickle.loads(pickle.dumps(Program.from_assembly(text))).launch(grid=1, block=64, args=[numbers])
    assert (numbers == np.arange(64)).all()


@pytest.mark.parametrize("body, why", [
    ("s_endpgm\ud800", r"ISA line 6 holds the character '\\ud800'"), ("s_endpgm\0", r"the character '\\x00'"),
    (".macro a x\n a \\x\\x\n.endm\n a 1", "ISA line 7: a macro makes a line of more than 65536 characters"),
    (".macro a x\n b \\x\\x\n.endm\n.macro b x\n a \\x\\x\n.endm\n a 1", "a line of more than 65536 characters"),
    ("s_mov_b32 s4, 18446744073709551616+0", "does not fit|no number|not one that"),
    ("s_branch 65536", "'s_branch 65536' jumps by more words than 16 bits hold"),
])
def test_text(body: str, why: str) -> None:
    with pytest.raises((CompileError, UnknownInstruction), match=why):
        Program.from_assembly(assembly(f"{body}\n{END}")).load("k")


def test_symbols_defined_by_each_other_twice() -> None:
    """Each is met once: 2**40 ways lead from the first to the last."""
    chain = "\n".join(f".set x{n}, x{n + 1}+x{n + 1}" for n in range(40))
    isa = Program.from_assembly(assembly(f"{chain}\n.set x40, 1\n  s_mov_b32 s4, x0>>20\n{END}")).isa
    assert isa.kernels["k"].instructions[0].operands == ("s4", str(1 << 20))


def test_a_name_with_a_suffix_that_nothing_has() -> None:
    with pytest.raises(UnknownInstruction, match="no instruction of this name") as caught:
        Program.from_assembly(assembly(f"  v_mull_f32_e32 v1, v2, v3\n{END}")).load("k")
    assert "did you mean 'v_mul_f32'?" in str(caught.value)


def test_static_lds_that_is_too_large() -> None:
    device = Program.from_assembly(assembly(END, group_segment_fixed_size=65537))
    with pytest.raises(DeviceError, match="with 65537 bytes of static and 0 of dynamic LDS takes 65537"):
        device.launch(grid=1, block=64, args=[None])


def test_the_name_of_a_file() -> None:
    with pytest.raises(CompileError, match="this is a file's name, 'gemm.s'"):
        Program.from_assembly("gemm.s")
