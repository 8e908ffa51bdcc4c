"""Every instruction's operation of the last IR: it says what the instruction does, and the lines of both agree."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

import flylab
import flylab.compiler as flyc
from flylab.codegen.origins import IR, origins
from flylab.dialect.context import entered
from flylab.errors import CompileError
from flylab.passes import pipeline
from flylab.passes.recording import lines_of
from tests.samples import kernel_of

torch = pytest.importorskip("torch")  # the arguments of some launches are its tensors

from tests.kernels.every import CHIPS, LAUNCHES, compiled  # noqa: E402

NAMES = ["total", "tree divergent", "tiles in LDS", "mfma direct", "spmm staged", "naive GEMM", "cookbook unary",
         "transpose f32 through LDS", "tiled MMA f16", "sgemv wave"]
MEANT = {
    r"v_s?mfmac?_": "mfma", r"s_barrier": r"barrier", r"s_endpgm": "llvm.return",
    r"(global|flat)_load": r"llvm\.load|llvm\.cond_br", r"(global|flat)_store": r"llvm\.store",
    r"buffer_load": r"raw\.ptr\.buffer\.load|llvm\.load", r"buffer_store": r"raw\.ptr\.buffer\.store|llvm\.store",
    r"ds_read": r"llvm\.load", r"ds_write": r"llvm\.store", r"ds_bpermute": "bpermute",
    r"s_cbranch": r"llvm\.(cond_)?br"}
"""What operations instructions come from: by what they do, whatever the compiler."""


def text_of(made):
    return made.recording(made.launcher.source.file)[-1]


def said(made):
    """Each instruction with its origin, and the text of its operation."""
    words = lines_of(text_of(made).text)
    for kernel in made.isa.kernels.values():
        found = made.origins[kernel.name]
        assert len(found) == len(kernel.instructions)
        for instruction, origin in zip(kernel.instructions, found, strict=True):
            assert origin.operation >= 1
            yield instruction, origin, words[origin.operation - 1]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_an_instruction_does_what_its_operation_says(name, chip):
    seen, strange = set(), []
    for instruction, origin, text in said(compiled(name, chip)):
        assert re.search(r"llvm\.|rocdl\.", text), text
        for pattern, meant in MEANT.items():
            if re.match(pattern, instruction.mnemonic) and not origin.inferred:
                seen.add(pattern)
                if not re.search(meant, text):
                    strange.append((instruction.text, text))
    assert "s_endpgm" in seen and len(seen) > 2
    # LLVM gives a load whose value is only stored the place of the store.
    assert len(strange) <= 1 and all("load" in i or "read" in i for i, _ in strange), strange
    assert all("llvm.store" in text for _, text in strange), strange


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("name", NAMES)
def test_lines_of_instructions_and_of_their_operations_agree(name, chip):
    """Two compilations and the printed text say the same: the instruction's `.loc`, and the line of its operation."""
    made = compiled(name, chip)
    agree = 0
    for instruction, origin, _ in said(made):
        assert (origin.line.file, origin.line.line) == instruction.source[:2]
        links = made.recording(instruction.source[0])[-1].lines
        if not origin.inferred:
            assert links[origin.operation - 1] == instruction.source[1], instruction
        agree += links[origin.operation - 1] == instruction.source[1]
    assert agree >= 0.95 * sum(len(kernel.instructions) for kernel in made.isa.kernels.values())


def test_waits():
    """Those that the compiler put in are inferred, those of a barrier or of the user's own call are not."""
    body = """
        t = fx.thread_idx.x
        lds = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek().view()
        lds[t] = A[t]
        gpu.barrier()
        fx.rocdl.sched_barrier(0)
        A[t] = lds[63 - t]
    """
    with flylab.use("gfx942"):
        made = flyc.compile(kernel_of(body, block=128)["launch"], torch.zeros(128))
    waits = [(origin.inferred, text.split()[0]) for i, origin, text in said(made) if i.mnemonic == "s_waitcnt"]
    kinds = dict.fromkeys(waits)
    assert any(inferred for inferred, _ in kinds) and (False, "rocdl.barrier") in kinds
    assert all(word == "rocdl.barrier" for inferred, word in kinds if not inferred)
    # A wait has the line of what waits: the store to LDS waits for the load of A.
    lines = [origin.line.line for i, origin, _ in said(made) if i.mnemonic == "s_waitcnt" and origin.inferred]
    assert 5 in lines


def test_two_operations_in_one_instruction():
    """An instruction of two operations of one line has one of them; it is said that it was chosen."""
    found = [(origin, text) for i, origin, text in said(compiled("tree divergent", "gfx942"))
             if i.mnemonic == "ds_read2_b32"]
    assert found and all("llvm.load" in text for _, text in found) and any(o.inferred for o, _ in found)


def test_another_compilation_is_refused():
    made, other = compiled("cookbook unary", "gfx950"), compiled("cookbook binary", "gfx950")
    with entered():
        from mlir import ir

        module = ir.Module.parse(made.traced_text)
        pipeline.run(module, made.target)
        with pytest.raises(CompileError, match="gives other instructions when it is compiled again") as refused:
            origins(module, other.isa, other.opt_level)
    assert "'binary_kernel'" in refused.value.message and refused.value.hint


def test_nothing_of_it_stays():
    """What is compiled after it is as before: LLVM's options are the process's."""
    with flylab.use("gfx950"):
        launcher, *arguments = LAUNCHES["tree strided"]("gfx950")
        made = flyc.compile(launcher, *arguments)
    before = made.code.assembly
    assert made.origins
    assert IR not in before
    again = replace(made.code)  # without what it remembers
    assert "assembly" not in vars(again) and again.assembly == before
