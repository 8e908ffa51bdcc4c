"""Occupancy against what LLVM itself prints, against the hardware guide's table, and cliffs by trying every amount."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from dataclasses import replace
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flylab.codegen.assembly.occupancy import Needs, best, of_workgroups
from flylab.codegen.isa import Isa
from flylab.errors import FlylabError
from flylab.model import occupancy
from flylab.targets import target
from tests.emulator.toolchain import CHIPS, assembly

LLC = shutil.which("llc-22")  # llvmlite's own LLVM prints no comments
VECTORS = (16, 64, 65, 72, 73, 80, 81, 96, 97, 128, 129, 168, 169, 256)
ACCUMULATORS = (0, 1, 24, 255)
# Of all sizes up to the largest LLVM looks at the ends alone, and misses better ones between where 768 is the largest.
THREADS = (64, 128, 192, 256, 512, 1024)


def sweep(chip: str) -> str:
    """A module with a kernel for each of many amounts of registers, LDS in whole granules, and workgroup sizes."""
    granule, parts = target(chip).lds_granule, []
    sizes = [(vectors, accumulators, scalars, 0, threads) for vectors, accumulators, scalars, threads in
             itertools.product(VECTORS, ACCUMULATORS, (32, 94, 95, 98), (64, 256))]
    sizes += [(vectors, 0, 32, granules * granule, threads) for vectors, granules, threads in
              itertools.product((16, 96), (1, 2, 5, 9, 12, 13, 16, 17, 25, 32, 42, 43, 64, 65, 128), THREADS)
              if granules * granule <= target(chip).lds_bytes]
    for n, (vectors, accumulators, scalars, lds, threads) in enumerate(sizes):
        clobbers = [f"~{{v{vectors - 1}}}", f"~{{s{scalars - 1}}}"] + [f"~{{a{accumulators - 1}}}"] * (accumulators > 0)
        body = f'  call void asm sideeffect "; clobber", "{",".join(clobbers)}"()\n'
        if lds:
            parts.append(f"@lds{n} = internal addrspace(3) global [{lds} x i8] poison, align 16")
            body += f'  call void asm sideeffect "; use", "v"(ptr addrspace(3) @lds{n})\n'
        parts.append(f'define amdgpu_kernel void @k{n}() "amdgpu-flat-work-group-size"="1,{threads}" {{\n{body}'
                     "  ret void\n}")
    return "\n".join(parts)


@cache
def printed(chip: str) -> tuple[Isa, list[int]]:
    """The kernels of the sweep and the occupancy that LLVM prints for each."""
    command = [str(LLC), "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-o", "-"]
    text = subprocess.run(command, input=sweep(chip), text=True, capture_output=True, check=True).stdout
    return Isa.parse(text), [int(n) for n in re.findall(r"^; Occupancy: (\d+)", text, re.M)]


@pytest.mark.skipif(LLC is None, reason="llc-22 is not installed")
@pytest.mark.parametrize("chip", CHIPS)
def test_what_llvm_prints(chip: str) -> None:
    isa, wanted = printed(chip)
    assert len(wanted) == len(isa.kernels) > 300 and set(wanted) == set(range(1, 9))
    needs = [kernel.needs(kernel.max_workgroup) for kernel in isa.kernels.values()]
    found = [kernel.occupancy.waves_per_simd for kernel in isa.kernels.values()]
    assert [row for row in zip(needs, found, wanted, strict=True) if row[1] != row[2]] == []


# The hardware guide's table: total vector registers, waves per SIMD.
@pytest.mark.parametrize("registers, waves", [(64, 8), (72, 7), (80, 6), (96, 5), (128, 4), (168, 3), (256, 2),
                                              (512, 1)])
@pytest.mark.parametrize("chip", CHIPS)
def test_the_table_of_registers(chip: str, registers: int, waves: int) -> None:
    needs = Needs(target(chip), registers, 32, 0, 64)
    assert best(needs).waves_per_simd == of_workgroups(needs).waves_per_simd == waves
    if registers < 512:
        assert best(replace(needs, vector=registers + 1)).waves_per_simd < waves


def chips_and_amounts() -> st.SearchStrategy[Needs]:
    return st.builds(lambda chip, vector, scalar, lds, waves, few: Needs(
        target(chip), vector, scalar, lds % (target(chip).lds_bytes + 1), 64 * waves - few),
        st.sampled_from(CHIPS), st.integers(0, 512), st.integers(0, 102), st.just(0) | st.integers(0, 163840),
        st.integers(1, 16), st.integers(0, 63))


@given(chips_and_amounts())
def test_workgroups_by_filling_a_compute_unit(needs: Needs) -> None:
    """Puts one workgroup after another on a compute unit until something is used up."""
    chip, groups = needs.chip, 0
    while True:
        waves = (groups + 1) * -(-needs.threads // 64)
        # The fullest SIMD has a quarter of the waves, rounded up where a SIMD has room for that.
        vector = max(-(-needs.vector // 8) * 8, 8)
        room = min(8, 512 // vector, 8 if needs.scalar <= 100 else 7)
        lds = (groups + 1) * -(-needs.lds // chip.lds_granule) * chip.lds_granule
        if waves > 4 * room or lds > chip.lds_bytes or (needs.threads > 64 and groups == 16):
            break
        groups += 1
    found = of_workgroups(needs)
    assert (found.workgroups, found.waves_per_cu) == (groups, groups * found.waves)
    assert found.waves_per_simd == -(-found.waves_per_cu // 4) == found.limits[found.limiter]


@given(chips_and_amounts())
def test_the_best_by_trying_every_size(needs: Needs) -> None:
    sizes = [of_workgroups(replace(needs, threads=64 * n)).waves_per_simd for n in range(1, needs.waves + 1)]
    assert best(needs).waves_per_simd == max(sizes)


@given(chips_and_amounts())
def test_cliffs_by_trying_every_amount(needs: Needs) -> None:
    kernel = next(iter(Isa.parse(assembly("  s_endpgm", needs.chip.arch)).kernels.values()))
    kernel = replace(kernel, vgprs=needs.vector, sgprs=needs.scalar, lds_bytes=needs.lds)
    report = occupancy(kernel, needs.threads)
    assert report.occupancy == of_workgroups(needs) and report.needs == needs
    now, wanted = report.occupancy.waves_per_cu, {}
    for resource, name, most, step in (("vector registers", "vector", 512, 1), ("scalar registers", "scalar", 102, 1),
                                       ("LDS", "lds", needs.chip.lds_bytes, needs.chip.lds_granule)):
        used = getattr(needs, name)
        # Only at the ends of granules can anything change.
        down, up = sorted({used - used % step, *range(0, used, step)} - {used}, reverse=True), \
            sorted({n + 1 for n in range(0, most, step)} - set(range(used + 1)))
        for amounts in (down, up):
            first = next((n for n in amounts if of_workgroups(replace(needs, **{name: n})).waves_per_cu != now), None)
            if first is not None:
                wanted[resource, first - used] = of_workgroups(replace(needs, **{name: first})).waves_per_cu
    assert {(c.resource, c.change): c.waves_per_cu for c in report.cliffs} == wanted


def test_what_a_report_says() -> None:
    kernel = Isa.parse(assembly("  s_endpgm", vgprs=84, group_segment_fixed_size=16384)).kernels["k"]
    text = str(occupancy(kernel, 256, lds=4096))
    assert "occupancy (modelled) of 'k' on gfx942" in text and "3 waves per SIMD, limited by LDS" in text
    assert "3 workgroups, 12 waves on a CU" in text and "4096 fewer bytes of LDS: 4 waves per SIMD (16 per CU)" in text
    one = occupancy(replace(kernel, vgprs=65, lds_bytes=0), 64)
    assert "1 fewer vector register: 8 waves per SIMD (32 per CU)" in str(one)
    assert occupancy(replace(kernel, required_workgroup=(16, 8, 1))).needs.threads == 128


@pytest.mark.parametrize("block, lds, message", [
    (0, 0, "a workgroup of 0 threads, and kernel 'k' allows 1 to 1024"), (1025, 0, "a workgroup of 1025 threads"),
    (64, 65537, "with 0 bytes of static and 65537 of dynamic LDS takes 65537, and a workgroup of gfx942 has 65536"),
    (64, -1, "-1 of dynamic LDS")])
def test_what_cannot_be_launched(block: int, lds: int, message: str) -> None:
    kernel = Isa.parse(assembly("  s_endpgm")).kernels["k"]
    with pytest.raises(FlylabError, match=message) as caught:
        occupancy(kernel, block, lds)
    assert caught.value.hint
