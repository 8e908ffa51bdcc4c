"""Checks for an attached GPU: a wave whose check fails writes down which, and ends, instead of trapping.

A trap ends the whole process with most of ROCm (https://github.com/ROCm/hip/issues/3317), and with it the notebook. So
the optimised module gets a variable, which whoever launches reads after the kernel, and each trap of a check becomes a
call, inlined at once, that fills it where nobody has done so before. The software device runs the trap.
"""

from __future__ import annotations

import re

from flylab.codegen.amdgpu import Optimised, changed
from flylab.errors import CompileError

VARIABLE = "flylab.failed_check"
WORDS = 5
"""Words of 32 bits of the variable: number * 64 + lane + 1 (0: none failed), the block's x, y, z, the thread as the
hardware packs it, x | y << 10 | z << 20."""

# As `flylab.passes.checks` makes it: M0 gets the number and the lane, the trap follows.
TRAP = re.compile(
    r"call void @llvm\.amdgcn\.s\.ttracedata\(i32 ([^)]+)\)(.*)\n\s*(?:tail )?call void @llvm\.trap\(\).*"
)
# What a kernel does not need, as LLVM found before the record was there.
UNNEEDED = re.compile(r'"amdgpu-no-work(?:group|item)-id-[xyz]" ?')

RECORD = f"""
@{VARIABLE} = protected addrspace(1) global [{WORDS} x i32] zeroinitializer, section ".bss.{VARIABLE}", align 4

define internal void @flylab.check_failed(i32 %which) alwaysinline {{
  %x = call i32 @llvm.amdgcn.workgroup.id.x()
  %y = call i32 @llvm.amdgcn.workgroup.id.y()
  %z = call i32 @llvm.amdgcn.workgroup.id.z()
  %tx = call i32 @llvm.amdgcn.workitem.id.x()
  %ty = call i32 @llvm.amdgcn.workitem.id.y()
  %tz = call i32 @llvm.amdgcn.workitem.id.z()
  %ty10 = shl i32 %ty, 10
  %tz20 = shl i32 %tz, 20
  %txy = or i32 %tx, %ty10
  %txyz = or i32 %txy, %tz20
  %lane = and i32 %which, 63
  %thread = call i32 @llvm.amdgcn.readlane.i32(i32 %txyz, i32 %lane)
  %first = add i32 %which, 1
  %swap = cmpxchg ptr addrspace(1) @{VARIABLE}, i32 0, i32 %first syncscope("agent") monotonic monotonic
  %won = extractvalue {{ i32, i1 }} %swap, 1
  br i1 %won, label %write, label %end
write:
  %p1 = getelementptr i32, ptr addrspace(1) @{VARIABLE}, i64 1
  store i32 %x, ptr addrspace(1) %p1, align 4
  %p2 = getelementptr i32, ptr addrspace(1) @{VARIABLE}, i64 2
  store i32 %y, ptr addrspace(1) %p2, align 4
  %p3 = getelementptr i32, ptr addrspace(1) @{VARIABLE}, i64 3
  store i32 %z, ptr addrspace(1) %p3, align 4
  %p4 = getelementptr i32, ptr addrspace(1) @{VARIABLE}, i64 4
  store i32 %thread, ptr addrspace(1) %p4, align 4
  br label %end
end:
  call void @llvm.amdgcn.endpgm()
  unreachable
}}

"""
DECLARED = re.compile(
    r"^declare [^@]*@llvm\.amdgcn\.(?:work(?:group|item)\.id\.[xyz]|readlane\.i32|endpgm)\(.*\n", re.MULTILINE
)
DECLARATIONS = "".join(
    f"declare i32 @llvm.amdgcn.{kind}.id.{axis}()\n" for kind in ("workgroup", "workitem") for axis in "xyz"
) + "declare i32 @llvm.amdgcn.readlane.i32(i32, i32)\ndeclare void @llvm.amdgcn.endpgm()\n"


def written_down(code: Optimised) -> Optimised:
    """The code with checks that write down what failed. Raises `CompileError` where one is not found."""
    return changed(code, _with_record)


def _with_record(text: str) -> str:
    wanted = text.count("call void @llvm.amdgcn.s.ttracedata")
    text, found = TRAP.subn(r"call void @flylab.check_failed(i32 \1)\2", text)
    if found != wanted:
        raise CompileError(f"{wanted - found} of {wanted} checks are in no form that a GPU can report",
                           hint='this is a fault of flylab: please report the kernel; flylab.use("emulated") runs it')
    text = UNNEEDED.sub("", DECLARED.sub("", text))
    start = text.index("\ndefine ")
    return text[:start] + RECORD + DECLARATIONS + text[start:]
