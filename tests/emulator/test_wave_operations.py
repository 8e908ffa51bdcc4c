"""Lanes of a wave that work together: butterflies, reductions and swaps, as LLVM compiles them for both chips."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from flylab.codegen.isa import Isa
from flylab.emulator import Program
from flylab.errors import CompileError, UnknownInstruction
from tests.emulator.oracles.device import Device
from tests.emulator.test_dpp import CONTROLS, EXECS, LANES, moved, state, wide
from tests.emulator.toolchain import CHIPS, assembly, compile_for, element, kernel

# The code of a control in llvm.amdgcn.update.dpp. Source: CDNA3 ISA, table of DPP_CTRL.
UPDATE = "declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32 immarg, i32 immarg, i32 immarg, i1 immarg)"
CODES = {"row_shl": 0x100, "row_shr": 0x110, "row_ror": 0x120, "wave_shl": 0x12F, "wave_rol": 0x133, "wave_shr": 0x137,
         "wave_ror": 0x13B, "row_mirror": 0x140, "row_half_mirror": 0x141, "row_newbcast": 0x150}


def code(control: str) -> int:
    """The number of a control."""
    name, _, text = control.partition(":")
    if name == "quad_perm":
        return sum(int(lane) << 2 * n for n, lane in enumerate(text.strip("[]").split(",")))
    if name == "row_bcast":
        return {15: 0x142, 31: 0x143}[int(text)]
    return CODES[name] + int(text or 0)


@cache
def butterfly(chip: str, steps: str) -> Program:
    """A kernel whose threads take their value %s0 through the steps to %end."""
    body = (element("%p", "i32", "%in") + "  %s0 = load i32, ptr addrspace(1) %p\n" + steps
            + element("%q", "i32", "%out") + "  store i32 %end, ptr addrspace(1) %q")
    declarations = f"""
{UPDATE}
declare {{i32, i32}} @llvm.amdgcn.permlane16.swap(i32, i32, i1 immarg, i1 immarg)
declare {{i32, i32}} @llvm.amdgcn.permlane32.swap(i32, i32, i1 immarg, i1 immarg)"""
    return Program.from_assembly(compile_for(chip, kernel("ptr %in, ptr %out", body, declarations)))


def summed(chip: str, steps: str, data: np.ndarray) -> np.ndarray:
    """What every thread has in the end; `data` is what each begins with."""
    found = np.zeros(data.size, np.int32)
    butterfly(chip, steps).launch(grid=1, block=data.size, args=[np.ascontiguousarray(data), found])
    return found


def dpp_step(n: int, control: str) -> str:
    """Adds the value of the lane that a control names."""
    return (f"  %m{n} = call i32 @llvm.amdgcn.update.dpp.i32(i32 0, i32 %s{n}, i32 {code(control)}, i32 15, i32 15, "
            f"i1 true)\n  %s{n + 1} = add i32 %s{n}, %m{n}\n")


def swap_step(n: int, rows: int) -> str:
    """Adds the value of the lane 16 or 32 further: after the swap a lane has its own and the other's."""
    return (f"  %m{n} = call {{i32, i32}} @llvm.amdgcn.permlane{rows}.swap(i32 %s{n}, i32 %s{n}, i1 false, i1 false)\n"
            f"  %a{n} = extractvalue {{i32, i32}} %m{n}, 0\n  %b{n} = extractvalue {{i32, i32}} %m{n}, 1\n"
            f"  %s{n + 1} = add i32 %a{n}, %b{n}\n")


# xor of the lane with 1, 2, then (each four being equal) 7 for 4 and 15 for 8.
XOR_WITHIN_ROWS = ("quad_perm:[1,0,3,2]", "quad_perm:[2,3,0,1]", "row_half_mirror", "row_mirror")


@pytest.mark.parametrize("chip", CHIPS)
def test_a_butterfly_of_16_lanes_gives_every_lane_the_sum(chip: str) -> None:
    """Case D06, width 16: one-hot at each lane, and any numbers."""
    steps = "".join(dpp_step(n, control) for n, control in enumerate(XOR_WITHIN_ROWS)) + "  %end = add i32 %s4, 0\n"
    random = np.random.default_rng(1).integers(-99, 99, (4, 64)).astype(np.int32)
    for data in (*np.eye(64, dtype=np.int32), *random):
        assert np.array_equal(summed(chip, steps, data), data.reshape(4, 16).sum(axis=1).repeat(16))


def test_a_butterfly_of_the_wave_gives_every_lane_the_sum() -> None:
    """Case D06: one-hot at each lane, and any numbers; gfx950 swaps rows, and rows of rows."""
    steps = "".join(dpp_step(n, control) for n, control in enumerate(XOR_WITHIN_ROWS))
    steps += swap_step(4, 16) + swap_step(5, 32) + "  %end = add i32 %s6, 0\n"
    for hot in np.eye(64, dtype=np.int32):
        assert np.all(summed("gfx950", steps, hot) == 1)
    data = np.random.default_rng(2).integers(-99, 99, 256).astype(np.int32)
    assert np.array_equal(summed("gfx950", steps, data), data.reshape(4, 64).sum(axis=1).repeat(64))


@pytest.mark.parametrize("chip", CHIPS)
def test_a_sum_of_the_wave_by_broadcasts_of_rows(chip: str) -> None:
    """The scan of GCN's days: the last lane has the sum, which every lane then reads."""
    lines = ["v_mov_b32_e32 v2, v3"]
    lines += [f"v_add_u32_dpp v2, v2, v2 row_shr:{n} bound_ctrl:0" for n in (1, 2, 4, 8)]
    lines += [f"v_add_u32_dpp v2, v2, v2 {c}" for c in ("row_bcast:15 row_mask:0xa", "row_bcast:31 row_mask:0xc")]
    lines += ["v_readlane_b32 s2, v2, 63"]
    device = Device(chip, lines)
    v, s = state(4)
    wanted = np.cumsum(v[3], dtype=np.uint32)
    for n in range(len(lines)):
        v, s = device.run(n, v, s)
    assert np.array_equal(v[2], wanted)
    assert s[2] == wanted[-1]


@pytest.mark.parametrize("chip", CHIPS)
def test_update_dpp(chip: str) -> None:
    """The intrinsic, with an old value that lanes with no source keep."""
    controls = CONTROLS[::4]
    body = element("%p", "i32", "%in") + "  %x = load i32, ptr addrspace(1) %p\n"
    for n, control in enumerate(controls):
        body += (f"  %m{n} = call i32 @llvm.amdgcn.update.dpp.i32(i32 -7, i32 %x, i32 {code(control)}, i32 {n % 16}, "
                 f"i32 {15 - n % 5}, i1 {'true' if n % 3 == 0 else 'false'})\n")
        body += element(f"%q{n}", "i32", "%out", f"{64 * n}") + element(f"%r{n}", "i32", f"%q{n}")
        body += f"  store i32 %m{n}, ptr addrspace(1) %r{n}\n"
    text = compile_for(chip, kernel("ptr %in, ptr %out", body, UPDATE))
    assert text.count("_dpp") >= len(controls) - 2
    data = np.arange(100, 164, dtype=np.int32)
    found = np.zeros((len(controls), 64), np.int32)
    Program.from_assembly(text).launch(grid=1, block=64, args=[data, found])
    for n, control in enumerate(controls):
        values, takes_part = moved(data, control, n % 16, 15 - n % 5, n % 3 == 0, EXECS[0])
        assert np.array_equal(found[n], np.where(takes_part, values, -7)), control


REDUCTIONS = {"umin": np.minimum, "umax": np.maximum, "add": np.add, "and": np.bitwise_and, "or": np.bitwise_or,
              "xor": np.bitwise_xor}


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("strategy", [0, 2])
def test_reductions_of_a_wave(name: str, chip: str, strategy: int) -> None:
    body = element("%p", "i32", "%in") + f"""  %x = load i32, ptr addrspace(1) %p
  %bit = and i32 %t, 5
  %odd = icmp ne i32 %bit, 0
  br i1 %odd, label %some, label %end
some:
  %r = call i32 @llvm.amdgcn.wave.reduce.{name}.i32(i32 %x, i32 {strategy})
  br label %end
end:
  %v = phi i32 [ %r, %some ], [ 5, %entry ]
{element("%q", "i32", "%out")}  store i32 %v, ptr addrspace(1) %q"""
    text = compile_for(chip, kernel("ptr %in, ptr %out", body,
                                    f"declare i32 @llvm.amdgcn.wave.reduce.{name}.i32(i32, i32 immarg)"))
    data = np.random.default_rng(5).integers(0, 1 << 32, 256, dtype=np.uint64).astype(np.uint32)
    found = np.zeros(256, np.uint32)
    Program.from_assembly(text).launch(grid=1, block=256, args=[data, found])
    active = (np.arange(256) & 5) != 0
    for first in range(0, 256, 64):
        wave = slice(first, first + 64)
        wanted = REDUCTIONS[name].reduce(data[wave][active[wave]], dtype=np.uint32)
        assert np.array_equal(found[wave], np.where(active[wave], wanted, 5))


@pytest.mark.parametrize("rows", [16, 32])
@pytest.mark.parametrize("modifiers", ["", " bound_ctrl:1", " fi:1", " bound_ctrl:1 fi:1"])
def test_swaps_of_rows(rows: int, modifiers: str) -> None:
    """The document's loops over lanes; a lane whose partner is inactive keeps its value without a modifier."""
    device = Device("gfx950", [f"v_permlane{rows}_swap_b32{'_e64' if modifiers else '_e32'} v2, v3{modifiers}"])
    for exec_ in EXECS:
        v, s = state(rows, exec_)
        wanted = v.copy()
        for lane in LANES:
            if lane & rows:
                for register, here, there in ((2, lane, lane - rows), (3, lane - rows, lane)):
                    taken = v[5 - register, there] if exec_ >> there & 1 or "fi" in modifiers else (
                        0 if "bound_ctrl" in modifiers else v[register, here])
                    if exec_ >> here & 1:
                        wanted[register, here] = taken
        assert np.array_equal(device.run(0, v, s)[0], wanted), hex(exec_)


def test_a_swap_is_not_on_gfx942() -> None:
    with pytest.raises(UnknownInstruction, match="gfx942 has no such instruction, gfx950 has"):
        Program.from_assembly(assembly("  v_permlane32_swap_b32_e32 v1, v2\n  s_endpgm")).load("k")


def test_lanes_read_and_written_by_number() -> None:
    texts = ["v_readlane_b32 s2, v3, s4", "v_readlane_b32 s2, v3, 63", "v_readlane_b32 vcc_lo, v3, m0",
             "v_writelane_b32 v2, s5, s5", "v_writelane_b32 v2, -3, m0", "v_readfirstlane_b32 s2, v3"]
    device = Device("gfx942", texts)
    for exec_ in EXECS:  # but for the first active lane, EXEC does not count
        for lane in (0, 1, 63, 64, 0xFFFFFFFF, 1 << 31 | 17):
            v, s = state(lane % 1000, exec_)
            s[4] = s[5] = s[124] = lane
            runs = [device.run(n, v, s) for n in range(len(texts))]
            assert runs[0][1][2] == v[3, lane % 64]
            assert runs[1][1][2] == v[3, 63]
            assert runs[2][1][106] == v[3, lane % 64]
            first = (exec_ & -exec_).bit_length() - 1 if exec_ else 0
            assert runs[5][1][2] == v[3, first]
            for n, value in ((3, lane), (4, 0xFFFFFFFD)):
                wanted = v.copy()
                wanted[2, lane % 64] = value
                assert np.array_equal(runs[n][0], wanted)
                assert wide(runs[n][1], 126) == exec_


def test_waves_of_32_lanes_are_refused() -> None:
    """Case D06: these chips have none."""
    with pytest.raises(CompileError, match="wavefront_size32 is 1, and 0 to 0 are possible") as caught:
        Isa.parse(assembly("  s_endpgm", wavefront_size32=1))
    assert "the waves of these chips have 64 lanes" in str(caught.value)
