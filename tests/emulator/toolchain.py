"""What the software device's tests compile with: the same LLVM IR for a chip, and for this machine as the oracle."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np

from flylab.emulator import Program

CHIPS = ("gfx942", "gfx950")
ASSEMBLER = shutil.which("llvm-mc-22")
_ABSENT = re.compile(r"<stdin>:(\d+):\d+: error: .*(?:invalid instruction|not supported)")
_SPELLED = re.compile(rb"[\x05-\x60]((?:v|s|ds|buffer|global|flat|scratch|tbuffer)_[a-z0-9_]{2,60})")
WAVES = 'attributes #0 = { "amdgpu-flat-work-group-size"="1,1024" }'
IDS = "\n".join(f"declare i32 @llvm.amdgcn.work{kind}.id.{axis}()" for kind in ("item", "group") for axis in "xyz")
# What hosts without instructions for bfloat16 call to round to it.
ROUND_BFLOAT = """
define bfloat @__truncsfbf2(float %x) {
  %bits = bitcast float %x to i32
  %high = lshr i32 %bits, 16
  %odd = and i32 %high, 1
  %most = add i32 %bits, 32767
  %sum = add i32 %most, %odd
  %rounded = lshr i32 %sum, 16
  %quiet = or i32 %high, 64
  %nan = fcmp uno float %x, %x
  %picked = select i1 %nan, i32 %quiet, i32 %rounded
  %short = trunc i32 %picked to i16
  %value = bitcast i16 %short to bfloat
  ret bfloat %value
}
"""


@cache
def _targets() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def compile_for(chip: str, ir: str, opt: int = 2) -> str:
    """Assembly of LLVM IR for a chip."""
    return _emit(chip, ir, opt)[0]


def compile_object(chip: str, ir: str, opt: int = 2) -> bytes:
    """The object file of the same."""
    return _emit(chip, ir, opt)[1]


def _emit(chip: str, ir: str, opt: int) -> tuple[str, bytes]:
    _targets()
    module = llvm.parse_assembly(ir)
    module.triple = "amdgcn-amd-amdhsa"
    machine = llvm.Target.from_triple(module.triple).create_target_machine(cpu=chip, opt=opt)
    builder = llvm.create_pass_builder(machine, llvm.PipelineTuningOptions(speed_level=opt))
    builder.getModulePassManager().run(module, builder)
    # Emitting changes the module, so the object is made from a copy.
    copy = llvm.parse_bitcode(module.as_bitcode())
    return machine.emit_assembly(module), machine.emit_object(copy)


def program(chip: str, ir: str, opt: int = 2) -> Program:
    """A program for the software device."""
    return Program.from_assembly(compile_for(chip, ir, opt))


class Host:
    """LLVM IR compiled for this machine."""

    def __init__(self, ir: str):
        _targets()
        features = llvm.get_host_cpu_features()
        if "avx512bf16" in features:
            features["avx512bf16"] = False  # its conversion makes denormals zero
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features.flatten(), opt=1, jit=True)
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(ir), machine)
        self._engine.finalize_object()

    def call(self, name: str, arrays: list[np.ndarray], count: int) -> None:
        """Calls a function that takes a pointer for each array, then a count."""
        signature = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * len(arrays), ctypes.c_int64)
        signature(self.address(name))(*(a.ctypes.data for a in arrays), count)

    def address(self, name: str) -> int:
        """Where a function is."""
        return int(self._engine.get_function_address(name))


def aligned(data: np.ndarray) -> np.ndarray:
    """A copy that begins at a multiple of 64 bytes, as the vector types of a host function want."""
    memory = np.zeros(data.nbytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    view = memory[start:start + data.nbytes].view(data.dtype)
    view[:] = data.ravel()
    return view


def kernel(signature: str, body: str, declarations: str = "") -> str:
    """An AMDGPU kernel `k` with %t, %g and %i (the thread's number in the grid, for blocks of 256), in address space 1.

    In the signature `ptr` stands for a global pointer.
    """
    return f"""
define amdgpu_kernel void @k({signature.replace("ptr", "ptr addrspace(1)")}) #0 {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = mul i32 %g, 256
  %i32 = add i32 %first, %t
  %i = zext i32 %i32 to i64
{body}
  ret void
}}
{IDS}
{declarations}
{WAVES}
"""


def element(name: str, type_: str, pointer: str, index: str = "%i") -> str:
    """A line that makes `name` the address of an element."""
    return f"  {name} = getelementptr {type_}, ptr addrspace(1) {pointer}, i64 {index}\n"


def assembly(body: str, chip: str = "gfx942", arguments: int = 1, vgprs: int = 16, **descriptor: int) -> str:
    """A hand-written kernel `k` whose arguments are pointers, at s[0:1]; the workgroup's number is in s2."""
    settings = {"kernarg_size": 8 * arguments, "user_sgpr_count": 2, "user_sgpr_kernarg_segment_ptr": 1,
                "system_sgpr_workgroup_id_x": 1, "next_free_vgpr": vgprs, "next_free_sgpr": 32,
                "accum_offset": min(-(-vgprs // 4) * 4, 256),
                "float_denorm_mode_32": 3, "float_denorm_mode_16_64": 3, "ieee_mode": 1, "dx10_clamp": 1} | descriptor
    lines = "\n".join(f"  .amdhsa_{name} {value}" for name, value in settings.items())
    args = "\n".join(f"      - .address_space: global\n        .name: a{n}\n        .offset: {8 * n}\n"
                     "        .size: 8\n        .value_kind: global_buffer" for n in range(arguments))
    return f"""
.amdgcn_target "amdgcn-amd-amdhsa--{chip}"
.text
.type k,@function
k:
{body}
.Lend:
  .size k, .Lend-k
.amdhsa_kernel k
{lines}
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.kernels:
  - .name: k
    .args:
{args}
    .kernarg_segment_size: {8 * arguments}
    .max_flat_workgroup_size: 1024
...
.end_amdgpu_metadata
"""


def spelled_in_the_assembler() -> set[str]:
    """The mnemonics of every AMD chip, as the assembler's library holds them: each behind a byte with its length."""
    assert ASSEMBLER is not None
    library = next((Path(ASSEMBLER).resolve().parents[1] / "lib").glob("libLLVM.so.*"))
    found = set()
    for match in _SPELLED.finditer(library.read_bytes()):
        length, text = match[0][0], match[1]
        found.add(text[:length].decode() if len(text) >= length else "")
    return found - {""}


def known_to(chip: str, mnemonics: list[str]) -> set[str]:
    """Those that LLVM's assembler has for a chip, whatever it says of the missing operands."""
    assert ASSEMBLER is not None
    command = [ASSEMBLER, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"]
    said = subprocess.run(command, input="\n".join(mnemonics), capture_output=True, text=True, check=False).stderr
    absent = {int(found[1]) - 1 for found in map(_ABSENT.match, said.splitlines()) if found}
    return {name for n, name in enumerate(mnemonics) if n not in absent}
