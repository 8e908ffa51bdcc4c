"""The fuzz corpus: random LLVM IR compiled for both chips runs on the software device as it does on this machine.

The chips' code comes from Debian's LLVM 22 where its tools are on PATH, as `make test` brings them to Debian; elsewhere
from llvmlite's LLVM. The oracle is llvmlite's code for this machine: another instruction set, one thread at a time.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from random import Random

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import CompileError, UnknownInstruction
from tests.emulator.fuzz import SLOT_BYTES, THREADS, FuzzProgram, chip_kernel, host_loop, spelled, table_text
from tests.emulator.structured import LONG_DIVISION
from tests.emulator.toolchain import CHIPS, IDS, ROUND_BFLOAT, WAVES, Host, aligned, compile_for

TOOLS = [shutil.which(f"{name}-22") for name in ("opt", "llc", "llvm-stress")]
PROGRAMS = 104
TOGETHER = 4  # programs in a module
MODULES = PROGRAMS // TOGETHER


def compiled(chip: str, ir: str, opt: int) -> str:
    """Assembly of LLVM IR, from Debian's tools where they are there."""
    optimiser, generator, _ = TOOLS
    if not optimiser or not generator:
        return compile_for(chip, ir, opt)
    flags = ["-mtriple=amdgcn-amd-amdhsa", f"-mcpu={chip}"]
    text = subprocess.run([optimiser, f"-O{opt}", *flags, "-S"], input=ir, capture_output=True, text=True, check=True)
    return subprocess.run([generator, f"-O{opt}", *flags], input=text.stdout, capture_output=True, text=True,
                          check=True).stdout


def run_on_host(host: Host, number: int, arrays: list[np.ndarray], uniform: int) -> None:
    signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)
    signature(host.address(f"k{number}"))(*(array.ctypes.data for array in arrays), uniform)


def run_module(module: int, chips: tuple[str, ...] = CHIPS) -> dict[str, list[str]]:
    """The unknown instructions of each chip, one for each program that has some; the others run as on the host."""
    opt = module % 4
    programs = [FuzzProgram(TOGETHER * module + n, n, opt) for n in range(TOGETHER)]
    text = table_text() + "\n".join(program.text for program in programs)
    host = Host(LONG_DIVISION + ROUND_BFLOAT + spelled(text + "".join(map(host_loop, range(TOGETHER))), chip=False))
    ir = spelled(text + "".join(map(chip_kernel, range(TOGETHER))) + IDS, chip=True) + "\n" + WAVES
    unknown: dict[str, list[str]] = {}
    for chip in chips:
        device = Program.from_assembly(compiled(chip, ir, opt))
        unknown[chip] = []
        for number in range(TOGETHER):
            random = Random(module)
            inputs = aligned(np.array([random.choice((n, random.getrandbits(64), random.getrandbits(6), -n % 2**64))
                                       for n in range(2 * THREADS)], np.uint64))
            uniform = random.getrandbits(5)
            slots = [aligned(np.arange(THREADS * SLOT_BYTES // 4, dtype=np.uint32)) for _ in range(2)]
            found, wanted = (aligned(np.zeros(THREADS, np.uint64)) for _ in range(2))
            try:
                device.load(f"k{number}")
            except UnknownInstruction as error:
                unknown[chip].append(error.message)
                continue
            run_on_host(host, number, [inputs, wanted, slots[0]], uniform)
            device.launch(kernel=f"k{number}", grid=1, block=THREADS, args=[inputs, found, slots[1], np.int64(uniform)])
            where = f"program {number} of module {module} at -O{opt} on {chip}"
            assert found.tolist() == wanted.tolist(), where
            assert slots[1].tolist() == slots[0].tolist(), where
    return unknown


@pytest.mark.parametrize("module", range(MODULES))
def test_the_corpus(module: int) -> None:
    assert run_module(module) == {chip: [] for chip in CHIPS}


ALLOCATION = re.compile(r"(%\w+) = alloca (.*?)(?:, align \d+)?$", re.M)
IN_PRIVATE = r"\1.own = alloca \2, addrspace(5)\n  \1 = addrspacecast ptr addrspace(5) \1.own to ptr"


@pytest.mark.skipif(not all(TOOLS), reason="LLVM's tools opt-22, llc-22 and llvm-stress-22 are not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_what_llvm_stress_makes_can_be_executed(chip: str) -> None:
    """Its programs are full of values that are not defined, so they are decoded and made ready, and not run."""
    ready = 0
    for seed in range(16):
        made = subprocess.run([str(TOOLS[2]), f"-seed={seed}", "-size=150"], capture_output=True, text=True, check=True)
        kernel = re.sub(r"define void @autogen_SD\d+\(", "define amdgpu_kernel void @k(", made.stdout)
        try:
            device = Program.from_assembly(compiled(chip, ALLOCATION.sub(IN_PRIVATE, kernel), seed % 4))
        except CompileError as error:
            assert "has a descriptor and no instructions" in error.message  # LLVM saw that it cannot be run
            continue
        device.load("k")
        ready += 1
    assert ready >= 8
