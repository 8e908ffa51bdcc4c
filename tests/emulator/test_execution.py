"""How waves and workgroups run: ids, branches, barriers, the end, Ctrl-C, and what cannot be executed."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import DeviceError, UnknownInstruction
from tests.emulator.toolchain import CHIPS, IDS, WAVES, assembly, compile_for, element, kernel, program

AXES = "\n".join(f"  %{what}{axis} = call i32 @llvm.amdgcn.work{kind}.id.{axis}()"
                 for what, kind in (("t", "item"), ("g", "group")) for axis in "xyz")
WHERE = f"""
define amdgpu_kernel void @k(ptr addrspace(1) %c, i32 %bx, i32 %by, i32 %bz, i32 %nx, i32 %ny) #0 {{
{AXES}
  %r0 = mul i32 %gz, %ny
  %r1 = add i32 %r0, %gy
  %r2 = mul i32 %r1, %nx
  %group = add i32 %r2, %gx
  %s0 = mul i32 %tz, %by
  %s1 = add i32 %s0, %ty
  %s2 = mul i32 %s1, %bx
  %thread = add i32 %s2, %tx
  %b0 = mul i32 %bx, %by
  %size = mul i32 %b0, %bz
  %first = mul i32 %group, %size
  %at32 = add i32 %first, %thread
  %at = zext i32 %at32 to i64
{element("%pc", "i32", "%c", "%at")}
  %u0 = shl i32 %tz, 8
  %u1 = or i32 %u0, %ty
  %u2 = shl i32 %gz, 16
  %u3 = shl i32 %gy, 12
  %v0 = or i32 %u1, %u2
  %v1 = or i32 %v0, %u3
  store i32 %v1, ptr addrspace(1) %pc
  ret void
}}
{IDS}
{WAVES}
"""


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("opt", [0, 2])
@pytest.mark.parametrize("grid, block", [
    ((3,), (70,)), ((2, 3), (5, 7)), ((2, 2, 3), (3, 4, 9)), ((1, 1, 2), (64, 1, 2))])
def test_every_thread_knows_where_it_is(chip: str, opt: int, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    device = program(chip, WHERE, opt)
    (nx, ny, nz), (bx, by, bz) = ((*d, 1, 1)[:3] for d in (grid, block))
    found = np.full(nx * ny * nz * bx * by * bz, -1, "i4")
    report = device.launch(grid=grid, block=block, args=[found, bx, by, bz, nx, ny])
    gz, gy, _, tz, ty, _ = np.indices((nz, ny, nx, bz, by, bx))
    assert np.array_equal(found, (tz << 8 | ty | gz << 16 | gy << 12).ravel())
    assert (report.workgroups, report.waves) == (nx * ny * nz, nx * ny * nz * -(-bx * by * bz // 64))


COLLATZ = kernel("ptr %a, ptr %c", element("%pa", "i32", "%a") + """  %x0 = load i32, ptr addrspace(1) %pa
  br label %loop
loop:
  %x = phi i32 [%x0, %entry], [%next, %again]
  %n = phi i32 [0, %entry], [%n1, %again]
  %done = icmp ule i32 %x, 1
  br i1 %done, label %out, label %step
step:
  %low = and i32 %x, 1
  %odd = icmp eq i32 %low, 1
  br i1 %odd, label %up, label %down
up:
  %x3 = mul i32 %x, 3
  %x31 = add i32 %x3, 1
  br label %again
down:
  %half = lshr i32 %x, 1
  br label %again
again:
  %next = phi i32 [%x31, %up], [%half, %down]
  %n1 = add i32 %n, 1
  br label %loop
out:
""" + element("%pc", "i32", "%c") + "  store i32 %n, ptr addrspace(1) %pc")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("opt", [0, 1, 2, 3])
def test_lanes_leave_a_loop_one_by_one(chip: str, opt: int) -> None:
    source = np.arange(512, dtype="i4")
    found = np.zeros(512, "i4")
    program(chip, COLLATZ, opt).launch(grid=2, block=256, args=[source, found])

    def steps(x: int) -> int:
        n = 0
        while x > 1:
            x, n = (3 * x + 1 if x % 2 else x // 2), n + 1
        return n

    assert found.tolist() == [steps(x) for x in range(512)]


GEMM = kernel("ptr %a, ptr %b, ptr %c, i32 %n", """
  %row = call i32 @llvm.amdgcn.workgroup.id.y()
  %rn = mul i32 %row, %n
  br label %loop
loop:
  %k = phi i32 [0, %entry], [%k1, %loop]
  %sum = phi float [0.0, %entry], [%next, %loop]
  %ai32 = add i32 %rn, %k
  %bk = mul i32 %k, %n
  %bi32 = add i32 %bk, %i32
  %ai = sext i32 %ai32 to i64
  %bi = sext i32 %bi32 to i64
""" + element("%pa", "float", "%a", "%ai") + element("%pb", "float", "%b", "%bi") + """
  %x = load float, ptr addrspace(1) %pa
  %y = load float, ptr addrspace(1) %pb
  %next = call float @llvm.fma.f32(float %x, float %y, float %sum)
  %k1 = add i32 %k, 1
  %more = icmp slt i32 %k1, %n
  br i1 %more, label %loop, label %out
out:
  %ci32 = add i32 %rn, %i32
  %ci = sext i32 %ci32 to i64
""" + element("%pc", "float", "%c", "%ci") + "  store float %next, ptr addrspace(1) %pc",
              "declare float @llvm.fma.f32(float, float, float)")


@pytest.mark.parametrize("chip", CHIPS)
def test_a_naive_product_of_matrices(chip: str) -> None:
    random = np.random.default_rng(0)
    a, b = (random.integers(-8, 8, (256, 256)).astype("f4") for _ in range(2))
    c = np.zeros((256, 256), "f4")
    program(chip, GEMM).launch(grid=(1, 256), block=256, args=[a, b, c, 256])
    assert np.array_equal(c, a @ b)  # small integers: exact in any order


BARRIER = kernel("ptr %a, ptr %c", element("%pa", "i32", "%a") + """
  %v = add i32 %i32, 1000
  store i32 %v, ptr addrspace(1) %pa
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %other32 = xor i32 %i32, 192
  %other = zext i32 %other32 to i64
""" + element("%po", "i32", "%a", "%other") + "  %x = load i32, ptr addrspace(1) %po\n" + element("%pc", "i32", "%c") +
                 "  store i32 %x, ptr addrspace(1) %pc", "declare void @llvm.amdgcn.s.barrier()")


@pytest.mark.parametrize("chip", CHIPS)
def test_a_barrier_orders_the_waves_of_a_block(chip: str) -> None:
    """Each wave reads what another wave of its block, earlier or later, wrote before the barrier."""
    scratch, found = np.zeros(1024, "i4"), np.zeros(1024, "i4")
    program(chip, BARRIER).launch(grid=4, block=256, args=[scratch, found])
    assert np.array_equal(found, (np.arange(1024) ^ 192) + 1000)


def test_registers_survive_a_barrier_and_waves_may_end_before_it() -> None:
    body = """
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  v_lshrrev_b32_e32 v2, 6, v0
  v_readfirstlane_b32 s6, v2
  s_cmp_eq_u32 s6, 2
  s_cbranch_scc1 .Lout
  s_add_u32 s7, s6, 0x100
  s_mov_b32 m0, s6
  s_cmp_eq_u32 s6, 1
  s_barrier
  s_cselect_b32 s8, 0x10000, 0
  s_add_u32 s7, s7, s8
  s_mov_b32 s9, m0
  s_lshl_b32 s9, s9, 20
  s_add_u32 s7, s7, s9
  v_add_u32_e32 v3, s7, v2
  global_store_dword v1, v3, s[4:5]
.Lout:
  s_endpgm
"""
    found = np.zeros(256, "i4")
    report = Program.from_assembly(assembly(body)).launch(grid=1, block=256, args=[found])
    wave = np.arange(256) // 64
    assert np.array_equal(found, np.where(wave == 2, 0, 0x100 + 2 * wave + 0x10000 * (wave == 1) + (wave << 20)))
    assert report.instructions == 3 * 18 + 7


@pytest.mark.parametrize("instruction, wanted", [
    ("v_readlane_b32 s6, v0, 5", 5), ("s_mov_b32 s7, 9\n  v_readlane_b32 s6, v0, s7", 9),
    ("s_mov_b64 exec, 0x30\n  v_readfirstlane_b32 s6, v0\n  s_mov_b64 exec, -1", 4),
    ("v_writelane_b32 v0, 47, 3\n  v_readlane_b32 s6, v0, 3", 47),
    ("s_mov_b64 s[6:7], exec\n  s_bcnt1_i32_b64 s6, s[6:7]", 64),
    ("v_mbcnt_lo_u32_b32 v2, -1, 0\n  v_mbcnt_hi_u32_b32 v2, -1, v2\n  v_readlane_b32 s6, v2, 41", 41),
    ("v_cmp_gt_u32_e32 vcc, 10, v0\n  s_bcnt1_i32_b64 s6, vcc", 10),
    ("s_mov_b64 exec, 3\n  v_cmp_gt_u32_e32 vcc, 10, v0\n  s_bcnt1_i32_b64 s6, vcc\n  s_mov_b64 exec, -1", 2),
    ("v_cmpx_gt_u32_e32 vcc, 10, v0\n  s_bcnt1_i32_b64 s6, exec\n  s_mov_b64 exec, -1", 10),
    ("v_mov_b32_e32 v2, 7\n  v_mov_b32_e32 v3, 8\n  v_swap_b32 v2, v3\n  v_readlane_b32 s6, v2, 0", 8),
    ("v_mov_b32_e32 v2, 7\n  v_mov_b32_e32 v3, 8\n  v_pk_mov_b32 v[2:3], v[2:3], v[2:3] op_sel:[1,0]\n"
     "  v_lshl_add_u32 v2, v2, 8, v3\n  v_readlane_b32 s6, v2, 0", 0x807),
    ("s_movk_i32 s6, 0xfffe\n  s_bfe_u32 s6, s6, 0x80004", 0xFF), ("s_brev_b32 s6, 1", -(1 << 31)),
    ("s_mov_b32 s6, 5\n  s_addk_i32 s6, 0xffff", 4), ("s_flbit_i32_b32 s6, 0x1000", 19),
    ("s_getreg_b32 s6, hwreg(HW_REG_MODE, 4, 4)", 15),
])
def test_lanes_and_scalars(instruction: str, wanted: int) -> None:
    body = f"""
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  {instruction}
  v_mov_b32_e32 v3, s6
  global_store_dword v1, v3, s[4:5]
  s_endpgm
"""
    found = np.zeros(64, "i4")
    Program.from_assembly(assembly(body)).launch(grid=1, block=64, args=[found])
    assert np.all(found == wanted)


def test_instructions_are_counted() -> None:
    """Three of the loop for each of 10 turns, and one before, one after."""
    body = ("  s_mov_b32 s4, 10\n.Lloop:\n  s_sub_u32 s4, s4, 1\n  s_cmp_lg_u32 s4, 0\n  s_cbranch_scc1 .Lloop\n"
            "  s_endpgm")
    report = Program.from_assembly(assembly(body, arguments=0)).launch(grid=6, block=65, args=[])
    assert report.instructions == 32 * 12 and (report.workgroups, report.waves) == (6, 12)
    assert "384 instructions" in str(report) and "emulated" in str(report)


def test_an_unknown_instruction_is_named() -> None:
    text = assembly("  s_nop 0\n  v_frobnicate_b32 v0, v1, v2\n  s_endpgm")
    line = text.split("\n").index("  v_frobnicate_b32 v0, v1, v2") + 1
    with pytest.raises(UnknownInstruction) as caught:
        Program.from_assembly(text).launch(grid=1, block=64, args=[np.zeros(1)])
    assert "'v_frobnicate_b32 v0, v1, v2' of kernel 'k' (byte 0x4, ISA line " + str(line) in str(caught.value)
    assert "no instruction of this name" in str(caught.value)


@pytest.mark.parametrize("name, hint", [
    ("global_laod_dword", "did you mean 'global_load_dword'?"), ("V_ADD_U32", "in small letters: 'v_add_u32'"),
    ("v_add_nc_u32", "here it is 'v_add_u32'"), ("global_load_b128", "here it is 'global_load_dwordx4'"),
    ("ds_store_b64", "here it is 'ds_write_b64'"), ("s_load_b64", "here it is 's_load_dwordx2'"),
    ("v_wmma_f32_16x16x16_f16", "v_mfma_*"), ("hello", "instructions.md lists what there is")])
def test_an_unknown_instruction_comes_with_a_suggestion(name: str, hint: str) -> None:
    with pytest.raises(UnknownInstruction, match="no instruction of this name") as caught:
        Program.from_assembly(assembly(f"  {name} v0, v1, v2\n  s_endpgm")).load("k")
    assert hint in str(caught.value)


@pytest.mark.parametrize("instruction, why", [
    ("v_add_f32_e32 v0, v1, v99", "register v99 is beyond the 16"),
    ("v_add_f32_e32 v0, v1", "2 operands"),
    ("v_add_f32_e64 v0, v1, v2 mystery:3", "the modifier 'mystery:3'"),
    ("v_add_f32_e32 v0, $x, v1", "the operand '$x'"),
    ("buffer_load_dword v0, v1, s[4:7], 0 offen tfe", "the modifier 'tfe'"),
    ("s_branch .Lnowhere", "no label .Lnowhere"),
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 12, 2), 1", "only the rounding, denormal,"),
    ("s_getreg_b32 s0, hwreg(HW_REG_TRAPSTS)", "MODE, HW_ID and XCC_ID only"),
    ("v_add_f32_e32 s0, v1, v2", "a scalar register stands where it takes a vector register"),
    ("v_add_f64 v[0:1], v[2:3], v4", "1 registers where the instruction takes 2"),
])
def test_a_form_that_is_not_there_is_refused(instruction: str, why: str) -> None:
    with pytest.raises(UnknownInstruction, match="cannot execute") as caught:
        Program.from_assembly(assembly(f"  {instruction}\n  s_endpgm")).load("k")
    assert why in str(caught.value) and instruction in str(caught.value)


def test_no_end() -> None:
    with pytest.raises(DeviceError, match="runs past its last instruction") as caught:
        Program.from_assembly(assembly("  s_nop 0")).launch(grid=1, block=64, args=[None])
    assert "s_endpgm" in str(caught.value)


def test_a_trap_says_where() -> None:
    body = ("  v_cmp_eq_u32_e32 vcc, 70, v0\n  s_cbranch_vccz .Lout\n  s_mov_b64 exec, vcc\n  s_trap 2\n.Lout:\n"
            "  s_endpgm")
    with pytest.raises(DeviceError, match=r"trapped \(code 2\)") as caught:
        Program.from_assembly(assembly(body)).launch(grid=2, block=128, args=[None])
    assert "block (0, 0, 0), thread (70, 0, 0)" in str(caught.value)


@pytest.mark.parametrize("chip", CHIPS)
def test_a_debug_trap_and_status_bits_that_stay_go_on(chip: str) -> None:
    """llvm.debugtrap does nothing where no debugger is; LLVM makes an s_trap 3 of it."""
    ir = kernel("ptr %c", "  call void @llvm.debugtrap()\n" + element("%p", "i32", "%c")
                + "  store i32 %t, ptr addrspace(1) %p", "declare void @llvm.debugtrap()")
    text = compile_for(chip, ir)
    assert "s_trap 3" in text
    found = np.zeros(256, "i4")
    Program.from_assembly(text.replace("s_trap 3", "s_trap 3\n  s_sethalt 0\n  s_setkill 2")).launch(
        grid=1, block=256, args=[found])
    assert np.array_equal(found, np.arange(256))


def test_an_error_names_the_source_line(tmp_path: object) -> None:  # D09
    """The line of a fault comes from the line table of the assembly, its text from the file."""
    source = tmp_path / "kernel.py"  # type: ignore[operator]
    source.write_text("for n in range(4):\n    a = x[n]\n    b = x[n + 1]\n")
    body = f"""
  .file 1 "{tmp_path}" "kernel.py"
  .loc 1 1 0
  s_load_dwordx2 s[4:5], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 2, v0
  s_mov_b32 s6, 4
.Lloop:
  .loc 1 2 9
  global_load_dword v2, v1, s[4:5]
  .loc 1 3 9 is_stmt 0
  global_load_dword v3, v1, s[4:5] offset:4
  .loc 1 1 0
  v_add_u32_e32 v1, 4, v1
  s_sub_u32 s6, s6, 1
  s_cmp_lg_u32 s6, 0
  s_cbranch_scc1 .Lloop
  s_endpgm
"""
    with pytest.raises(DeviceError) as caught:
        Program.from_assembly(assembly(body)).launch(grid=1, block=64, args=[np.zeros(64, "i4")])
    where = caught.value.where
    assert where is not None and (where.file, where.line, where.function) == (str(source), 3, "k")
    assert str(caught.value).startswith(str(where)) and "    b = x[n + 1]\n" in str(caught.value)
    assert "block (0, 0, 0), thread (63, 0, 0)" in str(caught.value)


# Endless loops in which no state comes back, so that nothing shows that they have no end.
COUNTING = "s_add_u32 s9, s9, 1\n  s_addc_u32 s10, s10, 0"


@pytest.mark.parametrize("text", [
    assembly(f".L0:\n  s_barrier\n  {COUNTING}\n  s_branch .L0\n  s_endpgm"),
    assembly(f".L0:\n  {COUNTING}\n  s_branch .L0\n  s_endpgm"),
    assembly("  s_load_dwordx2 s[4:5], s[0:1], 0x0\n  v_mov_b32_e32 v1, 0\n.L0:\n  v_add_u32_e32 v2, 1, v2\n"
             "  global_store_dword v1, v2, s[4:5]\n  s_branch .L0\n  s_endpgm")], ids=["barrier", "scalar", "store"])
def test_ctrl_c_stops_an_endless_loop(text: str) -> None:
    """No thread is left in the loop; the helpers wait for the next launch, which works."""
    script = textwrap.dedent(f"""
        import os, signal, threading, numpy
        from flylab.emulator import Program
        from flylab.emulator.execution import run
        device = Program.from_assembly({text!r})
        device.load("k")
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            device.launch(grid=100, block=256, args=[numpy.zeros(1, "i4")])
        except KeyboardInterrupt:
            names = {{t.name for t in threading.enumerate()}}
            print(len(run._running), names - {{"MainThread", "flylab-helper-1"}})
    """)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "FLYLAB_EMULATOR_THREADS": "2"})
    assert done.stdout == "0 set()\n", done.stderr
