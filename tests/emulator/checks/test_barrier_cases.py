"""The users' cases of barriers that only some threads reach: who waits where, and who left or ended where."""

from __future__ import annotations

import numpy as np
import pytest

from flylab.errors import CheckError, OutOfBounds
from tests.samples import cell

chips = pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
TEXT = """\
@flyc.kernel{options}
def k(A: fx.Tensor):
    t = gpu.thread_idx.x
{body}

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block={block})
"""


def launched(body: str, chip: str, monkeypatch: pytest.MonkeyPatch, block: int, known: bool = True) -> np.ndarray:
    """What a kernel of this body, which begins in line 4, leaves in A."""
    monkeypatch.setenv("FLYLAB_DEVICE", f"emulated:{chip}")
    inner = "\n".join("    " + line for line in body.strip().split("\n"))
    options = f"(known_block_size=[{block}, 1, 1])" if known else ""
    names = cell(TEXT.format(block=block, body=inner, options=options))
    A = np.zeros(512, np.float32)
    names["launch"](A)
    return A


def barriers(body: str, chip: str, monkeypatch: pytest.MonkeyPatch, block: int, known: bool = True) -> list:
    """What is found about barriers in a kernel of this body."""
    with pytest.raises(CheckError) as error:
        launched(body, chip, monkeypatch, block, known)
    return [finding for finding in error.value.findings if finding.kind == "barrier"]


@chips
@pytest.mark.parametrize("block, known", [(64, True), (64, False), (256, True)])
def test_every_second_thread_waits(chip, block, known, monkeypatch):
    """D01; in a block of 64 LLVM removes the barrier, where it knows the block."""
    (found,) = barriers("if t % 2 == 0:\n    gpu.barrier()\nA[t] = 1.0", chip, monkeypatch, block, known)
    assert found.where.line == 5 and found.where.text.strip() == "gpu.barrier()"
    assert found.details["waiting"] == tuple(range(0, 64, 2)) and found.details["missing"] == tuple(range(1, 64, 2))
    assert "threads 0, 2, 4, 6, ... (32 of them) wait in line 5" in found.message
    assert "threads 1, 3, 5, 7, ... (32 of them) of the same wave do not come, which left at" in found.message
    assert "line 4" in found.message and found.block == (0, 0, 0) and "take it out of the branch" in found.hint


@chips
@pytest.mark.parametrize("block", [64, 256])
def test_half_a_wave_waits(chip, block, monkeypatch):
    found = barriers("if t < 32:\n    gpu.barrier()\nA[t] = 1.0", chip, monkeypatch, block)[0]
    assert "threads 0 to 31 wait in line 5, and threads 32 to 63 of the same wave" in found.message
    assert "left at" in found.message and "line 4" in found.message


@chips
def test_a_whole_wave_does_not_come(chip, monkeypatch):
    found = barriers("if t < 64:\n    gpu.barrier()\nA[t] = 1.0", chip, monkeypatch, 128)
    assert len(found) == 1 and found[0].where.line == 5
    assert found[0].details == {"waiting": tuple(range(64)), "missing": tuple(range(64, 128))}
    assert "threads 64 to 127 ended without coming to it" in found[0].message


@chips
@pytest.mark.parametrize("block, first, wave", [(64, 50, 0), (256, 100, 1), (256, 64, 0)])
def test_a_barrier_after_some_threads_returned(chip, block, first, wave, monkeypatch):
    body = f"if t >= {first}:\n    return\nA[t] = 1.0\ngpu.barrier()\nA[t + 256] = A[t ^ 1]"
    found = barriers(body, chip, monkeypatch, block)[0]
    assert found.where.line == 7
    assert found.details["waiting"] == tuple(range(64 * wave, min(first, 64 * wave + 64)))
    assert found.details["missing"][0] == first


@chips
def test_barriers_in_a_loop_that_threads_leave_at_different_rounds(chip, monkeypatch):
    body = "n = fx.Int32(0)\nwhile n < t:\n    gpu.barrier()\n    n = n + 1\nA[t] = 1.0"
    found = barriers(body, chip, monkeypatch, 64)[0]
    assert found.where.line == 6 and 0 in found.details["missing"] and 63 in found.details["waiting"]


@chips
@pytest.mark.parametrize("block", [64, 128, 96])
def test_barriers_that_all_threads_reach(chip, block, monkeypatch):
    """In uniform branches, in loops, after threads came together again, with a part of a wave."""
    body = """
gpu.barrier()
x = fx.Float32(0)
if t < 20:
    x = A[t] + 1
gpu.barrier()
for n in range(fx.Int32(A[0]) + 3):
    if n > 1:
        gpu.barrier()
    x = x + 1
A[t] = x
"""
    got = launched(body, chip, monkeypatch, block)
    np.testing.assert_array_equal(got[:block], np.where(np.arange(block) < 20, 4, 3))


@chips
def test_a_barrier_of_the_wave_in_a_branch(chip, monkeypatch):
    found = barriers("if t % 3 == 0:\n    fx.rocdl.wave_barrier()\nA[t] = 1.0", chip, monkeypatch, 256)[0]
    assert found.where.line == 5 and found.details["waiting"] == tuple(range(0, 64, 3))


@chips
@pytest.mark.parametrize("block", [64, 256])
def test_an_error_of_one_thread_while_others_wait(chip, block, monkeypatch):
    """D02: the launch ends with that error, in its line and thread."""
    body = "A[t] = 1.0\nif t == 13:\n    A[t + 100000] = 1.0\ngpu.barrier()\nA[t] = 2.0"
    with pytest.raises(OutOfBounds) as error:
        launched(body, chip, monkeypatch, block)
    assert error.value.where is not None and error.value.where.line == 6 and "thread (13, 0, 0)" in str(error.value)


METAL = """
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
k:
  v_cmp_gt_u32 vcc, 64, v0
  s_cbranch_vccz second
  s_barrier
  s_branch end
second:
  s_barrier
end:
  s_endpgm
.amdhsa_kernel k
  .amdhsa_next_free_vgpr 1
  .amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
"""


def test_waves_at_different_barriers_are_told_when_all_is_asked_for():
    from flylab.emulator import Program

    program = Program.from_assembly(METAL)
    program.launch(grid=1, block=128, args=[])
    with pytest.raises(CheckError, match="waves meet at different barriers: wave 1 here") as error:
        program.launch(grid=1, block=128, args=[], check="all")
    assert [f.instruction for f in error.value.findings] == [4] and error.value.findings[0].others == (2,)
