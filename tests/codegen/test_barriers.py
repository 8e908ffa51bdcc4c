"""Barriers of blocks of one wave in the listing: where LLVM leaves no instruction, a comment with the user's line."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.codegen.amdgpu import optimise
from flylab.codegen.barriers import MOST, numbered
from flylab.codegen.isa import Isa
from flylab.errors import CompileError
from flylab.targets import target
from tests.samples import cell

CHIPS = ("gfx942", "gfx950")
HEAD = '@flyc.kernel({options})\ndef k(A: fx.Tensor):\n    t = gpu.thread_idx.x\n'
TAIL = "\n@flyc.jit\ndef launch(A: fx.Tensor):\n    k(A).launch(grid=1, block={block})\n"
BODY = """\
    gpu.barrier()
    for n in range(fx.Int32(A[0])):
        A[t] = A[t ^ 1] + 1.0
        gpu.barrier()
        A[t] = A[t ^ 2]
        fx.rocdl.wave_barrier()
    if t % 2 == 0:
        gpu.barrier()
        A[t] = A[t ^ 4] * 2.0
        fx.printf("a;b // {}", t)
    fx.rocdl.sched_barrier(0x7ff)
    fx.rocdl.s_barrier()
"""


def compiled(body: str, block: int, chip: str, monkeypatch: pytest.MonkeyPatch) -> flyc.Compiled:
    monkeypatch.setenv("FLYLAB_DEVICE", f"emulated:{chip}")
    options = f"known_block_size=[{block}, 1, 1]"
    launch = cell(HEAD.format(options=options) + body + TAIL.format(block=block))["launch"]
    return flyc.compile(launch, np.zeros(64, np.float32))


def plain(llvm_ir: str, chip: str) -> str:
    """The listing without anything of `flylab.codegen.barriers`."""
    return replace(optimise(llvm_ir, target(chip)), barriers=()).assembly


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("block", [64, 256])
def test_the_listing_is_the_plain_one_and_has_the_barriers(chip, block, monkeypatch):
    """Neither the numbers nor the verbose listing change anything: what is new are the barriers of waves."""
    made = compiled(BODY, block, chip, monkeypatch)
    mine = [line for line in made.code.assembly.split("\n") if "; wave barrier" not in line]
    monkeypatch.setattr("flylab.codegen.amdgpu.numbered", lambda text: (text, ()))
    expected = plain(made.llvm, chip).split("\n")
    assert [line for line in mine if line.strip()] == [line for line in expected if line.strip()]


@pytest.mark.parametrize("chip", CHIPS)
def test_places_of_barriers(chip, monkeypatch):
    """Each barrier of a block of one wave is before an instruction, with its line; in larger ones it is itself one."""
    found = [place for i in compiled(BODY, 64, chip, monkeypatch).isa.kernels["k"].instructions for place in i.barriers]
    assert sorted(place[1] for place in found if place) == [4, 7, 9, 11, 15] and len(found) == 5
    instructions = compiled(BODY, 256, chip, monkeypatch).isa.kernels["k"].instructions
    assert [place[1] for i in instructions for place in i.barriers if place] == [9]
    assert sorted(i.source[1] for i in instructions if i.mnemonic == "s_barrier" and i.source) == [4, 7, 11, 15]


def test_more_barriers_than_numbers(monkeypatch):
    """Those beyond the last number are there, and have no line."""
    body = "".join(f"    A[t] = A[t ^ {n % 64}]\n    gpu.barrier()\n" for n in range(MOST + 2))
    found = [place for i in compiled(body, 64, "gfx942", monkeypatch).isa.kernels["k"].instructions
             for place in i.barriers]
    assert len(found) == MOST + 2


def test_a_mask_of_the_user_is_no_number():
    text, _ = numbered("  call void @llvm.amdgcn.s.barrier(), !dbg !1\n"
                       "  call void @llvm.amdgcn.sched.barrier(i32 2047), !dbg !1\n"
                       "  call void @llvm.amdgcn.sched.barrier(i32 8), !dbg !1\n")
    assert "i32 147)" in text and "i32 145)" in text and "i32 8)" in text and "2047" not in text


ASSEMBLY = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
k:
  s_nop 0
  ; wave barrier
  ; wave barriers are comments
  .if 0
  ; wave barrier at hidden.py:1:1
  .endif
  ; wave barrier at /a b/k.py:12:5
  s_nop 1
  s_endpgm
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 1
  .amdhsa_next_free_sgpr 1
.end_amdhsa_kernel
"""


def test_barriers_of_assembly_text():
    instructions = Isa.parse(ASSEMBLY).kernels["k"].instructions
    assert [i.barriers for i in instructions] == [(), (None, ("/a b/k.py", 12, 5)), ()]


def test_a_descriptor_with_a_barrier_is_refused_as_before():
    text = ASSEMBLY.replace("  .amdhsa_next_free_sgpr 1", "  s_nop 0")
    with pytest.raises(CompileError, match="stands in the descriptor"):
        Isa.parse(text)
