"""Code generation: nothing is fused or flushed, addresses are wide, bad IR is refused; texts are readable."""

from __future__ import annotations

import subprocess
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.codegen import amdgpu, llvm
from flylab.codegen.assembly import strings
from flylab.codegen.isa import Isa
from flylab.errors import CompileError
from flylab.targets import TARGETS, target
from tests import samples
from tests.emulator.toolchain import ASSEMBLER
from tests.kernels import reference_kernels
from tests.samples import cell, compile_body

A = np.zeros(1024, np.float32)
FMA = """
@flyc.kernel
def k(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    t = fx.thread_idx.x
    C[t] = A[t] * B[t] + C[t]
    fx.slice(C, (t,)).store(fx.slice(A, (t,)).load() * fx.slice(B, (t,)).load() - fx.slice(C, (t,)).load())

@flyc.jit
def launch(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    k(A, B, C).launch(grid=1, block=64)
"""


@pytest.mark.parametrize("level", range(4))
@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_products_and_sums_are_not_fused(level: int, chip: str, dtype: Any) -> None:
    x = np.zeros(64, dtype)
    ir = flyc.compile(cell(FMA)["launch"], x, x, x).llvm
    kernel = amdgpu.assemble(ir, target(chip), level).kernels["k"]
    words = [i.mnemonic for i in kernel.instructions]
    assert any("mul" in w for w in words)
    assert not [w for w in words if any(part in w for part in ("fma", "mad_f", "mac_f", "dot"))]


def test_denormals_are_kept() -> None:
    descriptor = flyc.compile(reference_kernels.square, A, A, 1024).isa.kernels["elementwise_kernel"].descriptor
    assert descriptor["float_denorm_mode_32"] == descriptor["float_denorm_mode_16_64"] == 3


def test_wide_copies_are_single_instructions() -> None:
    for launcher, word in ((reference_kernels.layout_copy, "dword"), (reference_kernels.square, "dwordx4")):
        compiled = flyc.compile(launcher, A, A, 1024)
        (kernel,) = compiled.isa.kernels.values()
        words = [i.mnemonic for i in kernel.instructions if i.mnemonic.startswith("global_")]
        assert words == [f"global_load_{word}", f"global_store_{word}"]


@pytest.mark.parametrize(
    "dtype, bits, word",
    [
        (np.float16, 16, "ushort"),
        (np.float16, 128, "dwordx4"),
        (np.uint8, 8, "ubyte"),
        (np.uint8, 128, "dwordx4"),
        (np.float64, 64, "dwordx2"),
        (np.float64, 128, "dwordx4"),
    ],
)
@pytest.mark.parametrize("buffer", [False, True])
def test_copies_of_every_width(dtype: Any, bits: int, word: str, buffer: bool) -> None:
    size = bits // 8 // np.dtype(dtype).itemsize
    made = "fx.rocdl.make_buffer_tensor(A)" if buffer else "A"
    (kernel,) = compile_body(
        f"""
        tiles = fx.logical_divide({made}, {size})
        atom = fx.make_copy_atom(fx.UniversalCopy({bits}), A.dtype)
        r = fx.make_rmem_tensor({size}, A.dtype)
        fx.copy(atom, fx.slice(tiles, (None, fx.thread_idx.x % {64 // size})), r)
        fx.copy(atom, r, fx.slice(tiles, (None, 0)))
    """,
        dtype,
    ).isa.kernels.values()
    kind = "buffer" if buffer else "global"
    words = [i.mnemonic for i in kernel.instructions if i.mnemonic.startswith(("global_", "buffer_"))]
    stored = {"ushort": "short", "ubyte": "byte"}.get(word, word)
    assert words == [f"{kind}_load_{word}", f"{kind}_store_{stored}"]


def test_block_size_reaches_the_code_object() -> None:
    assert flyc.compile(reference_kernels.layout_copy, A, A, 1024).isa.kernels["my_kernel"].max_workgroup == 256
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = fx.Float32(fx.block_dim.x)

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32):
            k(A).launch(grid=1, block=n)
    """)["launch"]
    x = np.zeros(64, np.float32)
    assert flyc.compile(launch, x, 32).isa.kernels["k"].max_workgroup == 1024
    launch(x, 32)
    assert x.tolist() == [32.0] * 32 + [0.0] * 32


def test_bad_ir_is_refused() -> None:
    with pytest.raises(CompileError, match="LLVM refuses the IR"):
        amdgpu.assemble("define void @k( {", target("gfx942"))


def test_what_is_not_lowered_is_named_before_it_can_end_the_process() -> None:
    from mlir import ir

    from flylab.dialect.context import entered

    with entered():
        module = ir.Module.parse("module { llvm.func @f() { %c = arith.constant 1 : i32\n llvm.return } }")
        with pytest.raises(CompileError, match="arith.constant was not lowered to LLVM"):
            llvm.translate(module)


def test_readable_texts_leave_nothing_out_but_debug_data() -> None:
    compiled = flyc.compile(reference_kernels.layout_copy, A, A, 1024)
    file = samples.__file__
    text, lines = llvm.readable(compiled.llvm, file)
    assert "!dbg" not in text and "DILocation" not in text
    assert len(lines) == len(text.splitlines())
    assert [x.split(", !dbg")[0] for x in compiled.llvm.splitlines() if x.startswith("  ")] == [
        x for x in text.splitlines() if x.startswith("  ")
    ]
    isa, links = amdgpu.readable(compiled.isa.text, file)
    assert len(links) == len(isa.splitlines())
    assert ".loc" not in isa and ".debug" not in isa
    instructions = [str(i) for i in compiled.isa.kernels["my_kernel"].instructions]
    shown = [" ".join(x.split(";")[0].split()) for x in isa.splitlines()]
    assert [x for x in shown if x in set(instructions)] == instructions
    assert ".amdhsa_kernel my_kernel" in isa


@pytest.mark.parametrize("chip", TARGETS)
def test_the_readable_isa_is_a_program(chip: str) -> None:
    """It has what it names, so an assembler takes it, and the software device runs it."""
    with flylab.use(chip):
        compiled = flyc.compile(reference_kernels.layout_copy, A, A, 1024)
    text = str(compiled.show("isa"))
    found = [str(i) for i in Isa.parse(text).kernels["my_kernel"].instructions]
    assert found == [str(i) for i in compiled.isa.kernels["my_kernel"].instructions]
    if ASSEMBLER:
        command = [ASSEMBLER, "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}", "-filetype=obj", "-o", "/dev/null"]
        done = subprocess.run(command, input=text, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


def test_strings_of_llvm() -> None:
    assert strings.unescaped(r"a\5Cb\22") == 'a\\b"'
    assert strings.unescaped(r"a\\b \303\274", 8) == "a\\b ü"
