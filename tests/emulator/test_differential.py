"""Element-wise kernels on the software device against the same LLVM IR compiled for this machine."""

from __future__ import annotations

import numpy as np
import pytest

from tests.emulator.snippets import FLOATS, INTEGERS, Snippet, all_snippets, as_float, lanes, scalar, values
from tests.emulator.toolchain import IDS, ROUND_BFLOAT, WAVES, Host, aligned, program

THREADS = 1024
# Snippets compiled together: a module's fixed costs are paid once.
BATCH = 24


def chip_text(number: int, snippet: Snippet) -> str:
    """The snippet as a kernel of an AMDGPU module."""
    pointers = ", ".join(f"ptr addrspace(1) %p{n}" for n in range(len(snippet.sources) + 1))
    return f"""
define amdgpu_kernel void @k{number}({pointers}) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %first = mul i32 %g, 256
  %i32 = add i32 %first, %t
  %i = sext i32 %i32 to i64
{element_text(snippet, "ptr addrspace(1)")}
  ret void
}}
"""


def host_text(number: int, snippet: Snippet) -> str:
    """The snippet as a loop of a function for this machine."""
    pointers = ", ".join(f"ptr %p{n}" for n in range(len(snippet.sources) + 1))
    return f"""
define void @k{number}({pointers}, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{element_text(snippet, "ptr")}
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %count
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


def element_text(snippet: Snippet, pointer: str) -> str:
    """Loads, the snippet's body, and the store, for element %i."""
    lines = []
    for n, type_ in enumerate(snippet.sources):
        lines.append(f"  %a{n} = getelementptr {type_}, {pointer} %p{n}, i64 %i")
        lines.append(f"  %x{n} = load {type_}, {pointer} %a{n}")
    last = len(snippet.sources)
    lines += [snippet.body, f"  %b = getelementptr {snippet.result}, {pointer} %p{last}, i64 %i",
              f"  store {snippet.result} %r, {pointer} %b"]
    return "\n".join(lines)


def slots(type_: str) -> int:
    """Elements that a value takes in memory: three are padded to four."""
    return 4 if lanes(type_) == 3 else lanes(type_)


def array_of(type_: str, seed: int) -> np.ndarray:
    return aligned(values(scalar(type_), THREADS * slots(type_), seed))


def differences(snippet: Snippet, found: np.ndarray, wanted: np.ndarray, sources: list[np.ndarray]) -> list[str]:
    """Where the two results differ, at most three, with what they were computed from."""
    type_, count = scalar(snippet.result), slots(snippet.result)
    different = found != wanted
    if type_ in FLOATS:
        a, b = as_float(found, type_), as_float(wanted, type_)
        different &= ~(np.isnan(a) & np.isnan(b))
        if snippet.name.startswith(("maxnum", "minnum")):
            different &= ~((a == 0) & (b == 0))  # LLVM leaves the sign of the zero open
    different &= np.arange(found.size) % count < lanes(snippet.result)
    return [f"{[hex(s.reshape(THREADS, -1)[at // count][at % count]) for s in sources if s.size == found.size]} "
            f"gave {found[at]:#x}, not {wanted[at]:#x}" for at in np.flatnonzero(different)[:3]]


def check(chip: str, opt: int, snippets: list[Snippet]) -> None:
    """Runs a batch on both and compares."""
    declarations = "\n".join(sorted({line for s in snippets for line in s.declarations.split("\n")}))
    chip_module = IDS + WAVES + "\n" + declarations + "".join(chip_text(n, s) for n, s in enumerate(snippets))
    host_module = ROUND_BFLOAT + declarations + "".join(host_text(n, s) for n, s in enumerate(snippets))
    device, host = program(chip, chip_module, opt), Host(host_module)
    broken = {}
    for number, snippet in enumerate(snippets):
        sources = [array_of(type_, 10 * number + n) for n, type_ in enumerate(snippet.sources)]
        size = (FLOATS | INTEGERS)[scalar(snippet.result)]
        empty = np.zeros(THREADS * slots(snippet.result), f"u{size}")
        found, wanted = aligned(empty), aligned(empty)
        device.launch(kernel=f"k{number}", grid=THREADS // 256, block=256, args=[*sources, found])
        host.call(f"k{number}", [*sources, wanted], THREADS)
        if wrong := differences(snippet, found, wanted, sources):
            broken[snippet.name] = wrong
    assert broken == {}


EVERY = all_snippets(4)
NARROW = [s for s in all_snippets(2) if any(t.startswith("<2") for t in s.sources)]


@pytest.mark.parametrize("first", range(0, len(EVERY), BATCH))
def test_as_on_this_machine(first: int) -> None:
    check("gfx942", 2, EVERY[first:first + BATCH])


@pytest.mark.parametrize("first", range(0, len(NARROW), BATCH))
def test_as_on_this_machine_in_pairs(first: int) -> None:
    check("gfx950", 3, NARROW[first:first + BATCH])


@pytest.mark.parametrize("opt", [0, 1])
def test_unoptimised_code(opt: int) -> None:
    check("gfx950", opt, EVERY[::9])
