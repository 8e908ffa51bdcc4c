"""Random programs with branches and loops give on the software device what they give compiled for this machine.

The oracle is LLVM's code for this machine: another instruction set, another code generator, and one thread at a time.
"""

from __future__ import annotations

import ctypes
from random import Random

import llvmlite.binding as llvm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.emulator import Program
from flylab.errors import DeviceError, OutOfBounds
from tests.emulator.structured import CHIP, HOST, LONG_DIVISION, TABLE, RandomProgram, chip_kernel, host_loop
from tests.emulator.toolchain import CHIPS, IDS, WAVES, Host, aligned, assembly, element, kernel, program

THREADS = 128
PROGRAMS = 3  # compiled together
EXAMPLES = settings.default.max_examples // 10 if settings.default else 20


def in_registers(text: str) -> str:
    """LLVM IR with the variables that are in memory made values, and no more: what the front end gives at -O0."""
    module = llvm.parse_assembly(text)
    machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine(cpu="gfx942")
    builder = llvm.create_pass_builder(machine, llvm.PipelineTuningOptions(speed_level=0))
    passes = llvm.create_new_function_pass_manager()
    passes.add_sroa_pass()
    for function in module.functions:
        if not function.is_declaration:
            passes.run(function, builder)
    return str(module)


def check(random: Random, chip: str, opt: int, registers: bool) -> None:
    texts = [RandomProgram(random, f"f{n}").write(random.randint(1, 3)) for n in range(PROGRAMS)]
    host = Host(LONG_DIVISION + "".join(t.format(**HOST) + host_loop(n) for n, t in enumerate(texts)))
    ir = "".join(t.format(**CHIP) + chip_kernel(n) for n, t in enumerate(texts)) + IDS + "\n" + WAVES
    device = program(chip, in_registers(ir) if registers else ir, opt)
    for number in range(PROGRAMS):
        near = [random.choice((lane, random.getrandbits(64), random.getrandbits(6), -lane % 2**64))
                for lane in range(2 * THREADS)]
        inputs, table = aligned(np.array(near, np.uint64)), aligned(np.array(
            [random.getrandbits(32) for _ in range(TABLE)], np.uint32))
        uniform = random.getrandbits(5)
        found, wanted = (aligned(np.zeros(THREADS, np.uint64)) for _ in range(2))
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64, ctypes.c_int64)
        arrays = [a.ctypes.data for a in (inputs, wanted, table)]
        signature(host.address(f"k{number}"))(*arrays, uniform, THREADS)
        device.launch(kernel=f"k{number}", grid=1, block=THREADS, args=[inputs, found, table, np.int64(uniform)])
        assert found.tolist() == wanted.tolist(), texts[number]


@settings(max_examples=EXAMPLES)
@given(st.integers(0, 2**32), st.sampled_from(CHIPS), st.integers(0, 3), st.booleans())
def test_random_programs(seed: int, chip: str, opt: int, registers: bool) -> None:
    check(Random(seed), chip, opt, registers)


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("opt", range(4))
def test_programs_at_every_level(chip: str, opt: int) -> None:
    """The same two programs, with variables in memory and as values."""
    for registers in (False, True):
        check(Random(7), chip, opt, registers)
        check(Random(22), chip, opt, registers)


PRIVATE = """
  %a = alloca [64 x i32], addrspace(5)
  %e = getelementptr i32, ptr addrspace(5) %a, i32 %n
  store i32 %t, ptr addrspace(5) %e
  %more = mul i32 %t, %n
  %f = getelementptr i32, ptr addrspace(5) %a, i32 %more
  %v = load i32, ptr addrspace(5) %f
""" + element("%o", "i32", "%p") + "  store i32 %v, ptr addrspace(1) %o\n"


@pytest.mark.parametrize("opt", [0, 2])
def test_private_memory_ends(opt: int) -> None:
    """Each lane has its own; an access beyond it names the thread, the place and the size."""
    device = program("gfx942", kernel("ptr %p, i32 %n", PRIVATE), opt)
    out = np.zeros(64, np.uint32)
    with pytest.raises(OutOfBounds) as caught:
        device.launch(grid=1, block=64, args=[out, np.int32(5)])
    size = device.isa.kernels["k"].scratch_bytes
    assert f"of the thread's private memory, which has {size}" in caught.value.message
    assert "thread (13, 0, 0)" in caught.value.message and caught.value.hint
    with pytest.raises(OutOfBounds, match="an access of 4 bytes at byte"):
        device.launch(grid=1, block=64, args=[out, np.int32(-40)])


def test_private_memory_has_a_limit() -> None:
    device = Program.from_assembly(assembly("  s_endpgm", private_segment_fixed_size=1 << 24))
    with pytest.raises(DeviceError, match="a block of 64 threads with 16777216 bytes of private memory each takes"):
        device.launch(grid=1, block=64, args=[np.zeros(64, np.uint32)])


FAR = """
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_mov_b32 s4, 0
  v_mov_b32_e32 v1, 0
.LBB0_1:
  s_cmp_eq_u32 s4, 5
  s_cbranch_scc0 .LBB0_2
  s_getpc_b64 s[98:99]
.Lpost_getpc1:
  s_add_u32 s98, s98, (.LBB0_4-.Lpost_getpc1)&4294967295
  s_addc_u32 s99, s99, (.LBB0_4-.Lpost_getpc1)>>32
  s_setpc_b64 s[98:99]
.LBB0_2:
  s_add_i32 s4, s4, 1
  v_add_u32_e32 v1, s4, v1
  s_getpc_b64 s[98:99]
.Lpost_getpc0:
  s_add_u32 s98, s98, (.LBB0_1-.Lpost_getpc0)&4294967295
  s_addc_u32 s99, s99, (.LBB0_1-.Lpost_getpc0)>>32
  s_setpc_b64 s[98:99]
.LBB0_4:
  v_lshlrev_b32_e32 v0, 2, v0
  global_store_dword v0, v1, s[6:7]
  s_endpgm"""


def test_jumps_by_computed_addresses() -> None:
    """A branch reaches 128 KB of code; for more LLVM computes the address to jump to, as here forward and backward."""
    found = np.zeros(64, np.uint32)
    report = Program.from_assembly(assembly(FAR)).launch(grid=1, block=64, args=[found])
    assert found.tolist() == [1 + 2 + 3 + 4 + 5] * 64
    # Counted: the start, five turns through both branches and the jump back, the last through the jump out, the end.
    assert report.instructions == 3 + 5 * (2 + 6) + 6 + 3


@pytest.mark.parametrize("address", ["s_mov_b64 s[4:5], 64", "s_getpc_b64 s[4:5]\n  s_add_u32 s4, s4, 2",
                                     "s_getpc_b64 s[4:5]\n  s_add_u32 s4, s4, 0x10000\n  s_addc_u32 s5, s5, 0"])
def test_a_jump_to_nowhere(address: str) -> None:
    device = Program.from_assembly(assembly(f"  {address}\n  s_setpc_b64 s[4:5]\n  s_endpgm"))
    with pytest.raises(DeviceError, match="a jump to an address that is no instruction"):
        device.launch(grid=1, block=64, args=[np.zeros(64, np.uint32)])
