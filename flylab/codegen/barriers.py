"""Barriers that leave no instruction, kept in the assembly text as comments, with the user's line of each.

In a block of one wave LLVM makes a barrier one of the wave, `llvm.amdgcn.wave.barrier`, which orders memory and is no
instruction: a verbose listing has `; wave barrier` in its place, and no `.loc`. The software device must know of it. So
the listing is made verbose, and of its comments this one is kept, with the place that it comes from:

    ; wave barrier at my_kernel.py:12:9

The place is found by a `llvm.amdgcn.sched.barrier` beside each barrier, which is no instruction either, and of which a
verbose listing has the mask. A mask that lets ALU, VMEM and DS pass lets everything pass, and its other eight bits
change nothing (LLVM 22, `invertSchedBarrierMask`): they number the barriers. LLVM keeps barriers in their order, and
these among each other; so where a block of code has as many of both, the places of its barriers are known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from flylab.codegen.assembly.macros import WAVE_BARRIER
from flylab.codegen.assembly.strings import without_comment
from flylab.codegen.llvm import places_of
from flylab.passes.recording import lines_of

ALL_PASS = 0x91
"""The bits of a scheduling mask that let everything pass: ALU, VMEM and DS."""
_FREE = (0x2, 0x4, 0x8, 0x20, 0x40, 0x100, 0x200, 0x400)
MOST = (1 << len(_FREE)) - 1
"""How many barriers of a module have a number; those beyond have no place."""
_CALL = re.compile(r"^ +(?:tail )?call void @llvm\.amdgcn\.(?:s|wave)\.barrier\(\).*, !dbg (!\d+)$", re.MULTILINE)
_MASK = re.compile(r"(?<=@llvm\.amdgcn\.sched\.barrier\(i32 )\d+(?=\))")
_DECLARATION = "declare void @llvm.amdgcn.sched.barrier(i32 immarg)\n"
_NUMBER = re.compile(r"\s*; sched_barrier mask\(0x([0-9A-F]{8})\)")
_SECTION = re.compile(r'\s*\.section\s+\.AMDGPU\.csdata,')


def numbered(llvm_ir: str) -> tuple[str, tuple[str, ...]]:
    """LLVM IR whose barriers have numbers from 1 on, and their places, `file:line:column` each.

    >>> text, places = numbered('''  call void @llvm.amdgcn.s.barrier(), !dbg !3
    ... !1 = !DIFile(filename: "k.py", directory: "")
    ... !2 = distinct !DISubprogram(name: "k", file: !1)
    ... !3 = !DILocation(line: 5, column: 9, scope: !2)''')
    >>> print(text.splitlines()[1], places)
      call void @llvm.amdgcn.sched.barrier(i32 147), !dbg !3 ('k.py:5:9',)
    """
    if not _CALL.search(llvm_ir):
        return llvm_ir, ()
    known = {name: "{}:{}:{}".format(*place) for name, place in places_of(llvm_ir).items()}
    places: list[str] = []

    def with_number(found: re.Match[str]) -> str:
        places.append(known.get(found[1], ""))
        number = len(places) if len(places) <= MOST else 0
        return f"{found[0]}\n  call void @llvm.amdgcn.sched.barrier(i32 {mask_of(number)}), !dbg {found[1]}"

    # A mask of the user's that lets everything pass must not look like a number.
    text = _MASK.sub(lambda mask: str(ALL_PASS if int(mask[0]) & ALL_PASS == ALL_PASS else int(mask[0])), llvm_ir)
    declared = "" if "declare void @llvm.amdgcn.sched.barrier(" in text else "\n" + _DECLARATION
    return _CALL.sub(with_number, text) + declared, tuple(places)


def mask_of(number: int) -> int:
    """The scheduling mask that holds a number and lets everything pass."""
    return ALL_PASS | sum(bit for n, bit in enumerate(_FREE) if number >> n & 1)


def _number_of(mask: int) -> int:
    return sum(1 << n for n, bit in enumerate(_FREE) if mask & bit) if mask & ALL_PASS == ALL_PASS else 0


def settled(listing: str, places: tuple[str, ...]) -> str:
    """A verbose listing without its comments, but for the barriers of waves, which have their places.

    What else it has more than a plain listing, the section of the kernels' figures, is taken out too.
    """
    kept: list[str] = []
    at: list[int] = []
    numbers: list[int] = []

    def end_of_block() -> None:
        found = numbers if len(numbers) == len(at) else [0] * len(at)
        for line, number in zip(at, found, strict=True):
            if number and places[number - 1] and kept[line].strip() == WAVE_BARRIER:
                kept[line] += f" at {places[number - 1]}"
        at.clear()
        numbers.clear()

    for line in _without_comments(listing):
        if line.strip() in (WAVE_BARRIER, "s_barrier"):
            at.append(len(kept))
            kept.append(line)
        elif found := _NUMBER.fullmatch(line):
            if number := _number_of(int(found[1], 16)):
                numbers.append(number)
        else:
            if _ends_block(line):
                end_of_block()
            kept.append(line)
    end_of_block()
    return "\n".join(kept)


def _ends_block(line: str) -> bool:
    """Whether code before and after a line is not in one block: a label, or a jump."""
    words = line.split(None, 1)
    return bool(words) and (words[0].endswith(":") or words[0].startswith(("s_cbranch", "s_branch", "s_endpgm")))


def _without_comments(listing: str) -> Iterator[str]:
    """The lines of a plain listing, and those of the comments that count."""
    verbatim, lines = "", iter(lines_of(listing))
    for line in lines:
        word = line.strip()
        if verbatim:  # the user's assembly, and metadata, are no comments of LLVM's
            verbatim = "" if word == verbatim else verbatim
            yield line
        elif word == ";;#ASMSTART" or word == ".amdgpu_metadata":
            verbatim = ";;#ASMEND" if word == ";;#ASMSTART" else ".end_amdgpu_metadata"
            yield line
        elif word == WAVE_BARRIER or _NUMBER.fullmatch(line) or not word:
            yield line
        elif _SECTION.match(line):
            next(skipped for skipped in lines if skipped.strip() == ".text")
        elif (plain := without_comment(line).rstrip()):
            yield plain
