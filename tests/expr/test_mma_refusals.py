"""Matrix products that do not fit are refused: by the user's names, with shapes, the line, and a way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import FlylabError, LayoutError, NotSupportedError, TraceError
from tests.samples import kernel_of

HEAD = """
atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
a, b = (fx.make_rmem_tensor((4, 2, 3), fx.Float16) for _ in range(2))
d = fx.make_rmem_tensor((4, 2, 2), fx.Float32)
"""
LINE = 6  # the first after these

# A body (with the fragments before it), words of the message, words of the hint.
BODIES: dict[str, tuple[str, str, str]] = {
    "too few values": ("w = fx.make_rmem_tensor((2, 2, 3), fx.Float16)\nfx.gemm(atom, d, w, b, d)",
                       "'w' (2,2,3):(1,2,4) has 2 values in its first mode", "(V, M, K) of A"),
    "too many values, of one atom else": (
        "v, w = fx.make_rmem_tensor(4, fx.Float16), fx.make_rmem_tensor(8, fx.Float16)\n"
        "e = fx.make_rmem_tensor(4, fx.Float32)\nfx.gemm(atom, e, v, w, e)",
        "'w' 8:1 has 8 values in its first mode, and a thread gives", "for several atoms the fragments are (V, M, N)"),
    "one register for all of D": ("w = fx.make_view(fx.get_iter(d), fx.make_layout((4, 2, 2), (0, 4, 8)))\n"
                                  "fx.gemm(atom, w, a, b, d)",
                                  "'w' (4,2,2):(0,4,8) has one register for several values of D",
                                  "fx.make_rmem_tensor((4, 2, 2), fx.Float32)"),
    "f32 into an f16 atom": ("w = fx.make_rmem_tensor((4, 2, 3), fx.Float32)\nfx.gemm(atom, d, w, b, d)",
                             "'w' holds Float32, and A of fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32> is Float16",
                             "make the fragment of fx.Float16"),
    "f16 accumulator": ("fx.gemm(atom, a, a, b, a)", "'a' holds Float16, and D of", "fx.Float32"),
    "other K": ("w = fx.make_rmem_tensor((4, 2, 4), fx.Float16)\nfx.gemm(atom, d, a, w, d)",
                "'a' (4,2,3):(1,4,8) has 3 atoms along K, 'w' (4,2,4):(1,4,8) has 4", "(V, N, K) of B"),
    "other M": ("w = fx.make_rmem_tensor((4, 3, 3), fx.Float16)\nfx.gemm(atom, d, w, b, d)",
                "'d' (4,2,2):(1,4,8) has 2 atoms along M, 'w' (4,3,3):(1,4,12) has 3", "(V, M, N) of D"),
    "other N": ("w = fx.make_rmem_tensor((4, 3, 3), fx.Float16)\nfx.gemm(atom, d, a, w, d)",
                "2 atoms along N, 'w' (4,3,3):(1,4,12) has 3", "(V, M, N) of D"),
    "C of another shape": ("w = fx.make_rmem_tensor((4, 2, 1), fx.Float32)\nfx.gemm(atom, d, a, b, w)",
                           "'d' (4,2,2):(1,4,8) has 2 atoms along N, 'w'", "C"),
    "a mode too many": ("w = fx.make_rmem_tensor((4, 2, 3, 2), fx.Float16)\nfx.gemm(atom, d, w, b, d)",
                        "has 4 modes", "slice what has more"),
    "a mode too few": ("w = fx.make_rmem_tensor((4, 2), fx.Float32)\nfx.gemm(atom, w, a, b, w)", "has 2 modes",
                       "(V, M, N)"),
    "in global memory": ("g = fx.make_view(fx.get_iter(A), fx.make_layout((4, 2, 2), (1, 4, 8)))\n"
                         "fx.gemm(atom, g, a, b, d)", "'g' (4,2,2):(1,4,8) is in global memory", "fx.copy(atom, tile"),
    "a vector": ("v = d.load()\nfx.gemm(atom, d, a, b, v)", "'v' is a Vector, not a tensor", "fx.make_rmem_tensor"),
    "an operation": ("op = fx.rocdl.MFMA(16, 16, 16, fx.Float16)\nfx.gemm(op, d, a, b, d)", "'op', ...): not an MMA",
                     "fx.make_mma_atom"),
    "several atoms in one call": ("fx.mma_atom_call(atom, d, a, b, d)", "'d' (4,2,2):(1,4,8) has 16 values", "fx.gemm"),
    "an order by name": ("fx.gemm(atom, d, a, b, d, traversal_order='KMN')", "traversal_order='KMN'",
                         "GemmTraversalOrder"),
    "a layout that is too small": ("fx.gemm(atom, d, a, b, d, traversal_layout=fx.make_layout((2, 2), (1, 2)))",
                                   "(2,2):(1,2) does not reach each of the 12 atoms of (M, N, K) = (2, 2, 3)",
                                   "fx.make_layout((2, 2, 3))"),
    "order and layout": ("fx.gemm(atom, d, a, b, d, traversal_order=fx.GemmTraversalOrder.KMN, "
                         "traversal_layout=fx.make_layout(12, 1))", "with both", "one of them"),
    "a callback without an atom": ("fx.gemm(atom, d, a, b, d, atom_callback=lambda atom, place: None)", "gave None",
                                   "fx.atom_set_value"),
    "a callback with another": ("o = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.BFloat16))\n"
                                "fx.gemm(atom, d, a, b, d, atom_callback=lambda atom, place: o)", "(bf16, bf16)",
                                "only the state"),
    "no such state": ("fx.gemm(atom, d, a, b, d, scale_a=1)", "has no 'scale_a'", "it has no state"),
    "not an atom with a state": ("fx.atom_set_value(a, 'scale_a', 1)", "atom_set_value('a', ...)", "MFMA_Scale"),
    "not an operation": ("fx.make_mma_atom(atom)", "not an MMA operation", "fx.rocdl.MFMA"),
    "no index": ("s = fx.make_mma_atom(fx.rocdl.SMFMAC(16, 16, 32, fx.Float16))\n"
                 "w = fx.make_rmem_tensor(8, fx.Float16)\n"
                 "fx.gemm(s, fx.slice(d, (None, 0, 0)), fx.slice(a, (None, 0, 0)), w, fx.slice(d, (None, 0, 0)))",
                 "the index of fly_rocdl.cdna3.smfmac<16x16x32, (f16, f16) -> f32, abid = 0> is not set",
                 "fx.atom_set_value(atom, 'index'"),
    "an index of 64 bits": ("s = fx.make_mma_atom(fx.rocdl.SMFMAC(16, 16, 32, fx.Float16))\nx = fx.Int64(A[0])\n"
                            "fx.atom_set_value(s, 'index', x)", "the index is 'x' of Int64", "fx.Int32"),
    "an index of many bits": ("s = fx.make_mma_atom(fx.rocdl.SMFMAC(16, 16, 32, fx.Float16))\n"
                              "fx.atom_set_value(s, 'index', 2**32)", "the index is 4294967296", "fx.Int32"),
    "raw: fewer operands": ("fx.rocdl.mfma_f32_16x16x16f16(None, [a.load()])", "takes 6 operands, and 1 operands",
                            "[a, b, c, cbsz, abid, blgp]"),
    "raw: no list": ("fx.rocdl.mfma_f32_16x16x16f16(None, 1)", "takes 6 operands, and 1 are given", "cbsz"),
    "raw: a vector too long": ("v = a.load()\nfx.rocdl.mfma_f32_16x16x16f16(None, [v, v, v, 0, 0, 0])",
                               "a is 'v' of type vector<24xf16>, and the instruction takes vector<4xf16>",
                               "give 4 elements of fx.Float16"),
    "raw: bytes": ("v = fx.Vector.filled(8, 1, fx.Int8)\nw = fx.Vector.filled(4, 0, fx.Int32)\n"
                   "fx.rocdl.mfma_i32_16x16x32_i8(None, [v, v, w, 0, 0, 0])", "takes i64", "v.bitcast(fx.Int64)[0]"),
    "raw: bf16": ("v = fx.Vector.filled(4, 1.0, fx.BFloat16)\nw = fx.Vector.filled(4, 0.0, fx.Float32)\n"
                  "fx.rocdl.mfma_f32_16x16x16bf16_1k(None, [v, v, w, 0, 0, 0])", "takes vector<4xi16>",
                  "v.bitcast(fx.Int16)"),
    "raw: the result's type": ("v = fx.Vector.filled(4, 1.0, fx.Float16)\nw = fx.Vector.filled(4, 0.0, fx.Float32)\n"
                               "fx.rocdl.mfma_f32_16x16x16f16(fx.T.vec(16, fx.T.f32), [v, v, w, 0, 0, 0])",
                               "gives vector<4xf32>, and its result type is vector<16xf32>", "T.vec(4, T.f32)"),
    "raw: cbsz": ("v = fx.Vector.filled(4, 1.0, fx.Float16)\nw = fx.Vector.filled(4, 0.0, fx.Float32)\n"
                  "fx.rocdl.mfma_f32_16x16x16f16(None, [v, v, w, 1, 0, 0])", "a cbsz of 1", "give 0"),
    "raw: a tensor": ("w = fx.Vector.filled(4, 0.0, fx.Float32)\n"
                      "fx.rocdl.mfma_f32_16x16x16f16(None, [a, w, w, 0, 0, 0])", "a is 'a', a Tensor", "vector<4xf16>"),
    "raw: neither chip's": ("fx.rocdl.mfma_f32_16x16x8bf16(None, [])", "no name 'mfma_f32_16x16x8bf16'",
                            "did you mean"),
}


@pytest.mark.parametrize("chip", ["gfx942", "gfx950"])
@pytest.mark.parametrize("name", BODIES)
def test_refused(name: str, chip: str) -> None:
    body, message, hint = BODIES[name]
    names = kernel_of(HEAD + body)
    with flylab.use(chip), pytest.raises(FlylabError) as caught:
        flyc.compile(names["launch"], np.zeros(64, np.float32))
    text = str(caught.value)
    assert message in text and hint in text, text
    assert caught.value.where is not None and caught.value.where.line >= LINE - 1 + body.count("\n")


ATOMS = {
    "gfx950's f16 on gfx942": ("gfx942", "MFMA(16, 16, 32, fx.Float16)",
                               "of gfx950, and the kernel is compiled for gfx942", 'flylab.use("gfx950")'),
    "xf32 on gfx950": ("gfx950", "MFMA(16, 16, 8, fx.Float32)", "of gfx942, and the kernel is compiled for gfx950",
                       'flylab.use("gfx942")'),
    "OCP fp8 on gfx942": ("gfx942", "MFMA(16, 16, 32, fx.Float8E4M3FN)", "Float8E4M3FN",
                          "the 8-bit floats of gfx942 are Float8E4M3FNUZ, Float8E5M2FNUZ"),
    "FNUZ fp8 on gfx950": ("gfx950", "MFMA(32, 32, 16, fx.Float8E5M2FNUZ)", "Float8E5M2FNUZ",
                           "the 8-bit floats of gfx950 are Float8E4M3FN, Float8E5M2"),
    "scaled on gfx942": ("gfx942", "cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN)", "of gfx950", "flylab.use"),
}


@pytest.mark.parametrize("name", ATOMS)
def test_atoms_of_the_other_chip(name: str) -> None:
    chip, op, message, hint = ATOMS[name]
    names = kernel_of(f"""
        atom = fx.make_mma_atom(fx.rocdl.{op})
        a = fx.make_rmem_tensor(atom.num_values('A'), getattr(fx, atom.dtype_a.name))
        d = fx.make_rmem_tensor(atom.num_values('C'), fx.Float32)
        fx.gemm(atom, d, a, a, d)
    """)
    with flylab.use(chip), pytest.raises(TraceError) as caught:
        flyc.compile(names["launch"], np.zeros(64, np.float32))
    assert message in str(caught.value) and hint in str(caught.value)
    assert "fx.gemm" in str(caught.value)


def test_a_raw_call_of_the_other_chip() -> None:
    names = kernel_of("fx.rocdl.mfma_f32_16x16x32_f16(None, [])")
    with flylab.use("gfx942"), pytest.raises(TraceError, match="is of gfx950, and the kernel is compiled for gfx942"):
        flyc.compile(names["launch"], np.zeros(64, np.float32))


def test_scales_of_zero() -> None:
    names = kernel_of("""
        atom = fx.make_mma_atom(fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN))
        a, d = fx.make_rmem_tensor(32, fx.Float8E4M3FN), fx.make_rmem_tensor(4, fx.Float32)
        fx.gemm(atom, d, a, a, d, scale_a=0, scale_b=0)
    """)
    with flylab.use("gfx950"), pytest.raises(TraceError, match="all 0, which is 2") as caught:
        flyc.compile(names["launch"], np.zeros(64, np.float32))
    assert "0x7f7f7f7f" in str(caught.value.hint)


def test_a_block_of_half_a_wave() -> None:
    @flyc.kernel
    def k(A: fx.Tensor):
        atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
        a, d = fx.make_rmem_tensor(4, fx.Float16), fx.make_rmem_tensor(4, fx.Float32)
        fx.gemm(atom, d, a, a, d)

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=32)

    with pytest.raises(TraceError, match="is done by 64 threads, and the block has 32") as caught:
        flyc.compile(launch, np.zeros(64, np.float32))
    assert "multiple of 64" in str(caught.value.hint)


def test_a_fragment_that_was_never_written() -> None:
    names = kernel_of(HEAD + "d.fill(0.0)\nfx.gemm(atom, d, a, b, d)")
    with pytest.raises(FlylabError, match="element 0 of a fragment in registers is read, and nothing was stored to it"):
        flyc.compile(names["launch"], np.zeros(64, np.float32))


def test_outside_of_a_kernel() -> None:
    atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    with pytest.raises(TraceError, match="fx.gemm only has a meaning inside an @flyc.kernel"):
        fx.gemm(atom, None, None, None, None)  # type: ignore[arg-type]
    assert str(atom.layout_A_tv) == "((16,4),4):((1,64),16)"  # an atom does


def test_operations() -> None:
    with pytest.raises(LayoutError, match=r"no chip has MFMA\(16, 16, 16, Int8\)") as caught:
        fx.rocdl.MFMA(16, 16, 16, fx.Int8)
    assert "16x16x32" in str(caught.value.hint)
    for bad in (lambda: fx.rocdl.MFMA(16.0, 16, 16, fx.Float16), lambda: fx.rocdl.MFMA(16, 16, 16, "f16"),  # type: ignore
                lambda: fx.rocdl.MFMA(16, 16, 16, None), lambda: fx.UniversalFMA(fx.Int32),
                lambda: fx.rocdl.cdna4.MFMA_Scale(16, 16, 128, fx.Float8E4M3FN, opsel_a=4),
                lambda: fx.rocdl.SMFMAC(16, 16, 64, fx.Int8, abid=2),
                lambda: fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float16)):
        with pytest.raises(FlylabError) as refused:
            bad()
        assert refused.value.hint
    for wmma, hint in ((fx.rocdl.WMMA, "fx.rocdl.MFMA"), (fx.rocdl.WMMAScale, "MFMA_Scale")):
        with pytest.raises(NotSupportedError, match="flylab compiles for gfx942 and gfx950") as other:
            wmma(16, 16, 32, fx.Float16)
        assert hint in str(other.value.hint)


@pytest.mark.parametrize("make, listed", [
    (lambda: fx.rocdl.MFMA(16, 16, 3, fx.Float16), "4x4x4 (16 blocks), 16x16x4 (4 blocks), 16x16x16, 16x16x32"),
    (lambda: fx.rocdl.MFMA(16, 16, 3, fx.Float32), "16x16x8 (gfx942)"),
    (lambda: fx.rocdl.MFMA(16, 16, 3, fx.Int8), "16x16x32, 16x16x64 (gfx950)"),
    (lambda: fx.rocdl.SMFMAC(16, 16, 3, fx.Float16), "16x16x32, 16x16x64 (gfx950)"),
])
def test_what_there_is_says_the_chip_and_the_blocks(make: Any, listed: str) -> None:
    """Which chip has which: the tables of AMD's CDNA3 and CDNA4 manuals."""
    with pytest.raises(FlylabError, match="no chip has") as caught:
        make()
    assert listed in str(caught.value.hint)


def test_the_other_chips_operation_is_named_as_it_is_written() -> None:
    names = kernel_of("atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Float16))\n"
                      "a, d = fx.make_rmem_tensor(8, fx.Float16), fx.make_rmem_tensor(4, fx.Float32)\n"
                      "a.fill(0)\nd.fill(0)\nfx.gemm(atom, d, a, a, d)")
    with pytest.raises(FlylabError, match=r"MFMA\(16, 16, 32, Float16\) is an instruction of gfx950"):
        flyc.compile(names["launch"], np.zeros(64, np.float32))


def test_a_copy_that_no_chip_has_is_refused_and_not_listed() -> None:
    assert "BufferCopyLDS64b" not in dir(fx.rocdl) and "BufferCopyLDS32b" in dir(fx.rocdl)
    with pytest.raises(FlylabError, match="no fx.rocdl.BufferCopyLDS of 64 bits"):
        fx.rocdl.BufferCopyLDS64b()


@pytest.mark.parametrize("op", [fx.rocdl.MFMA(4, 4, 4, fx.Float16), fx.rocdl.MFMA(32, 32, 1, fx.Float32)])
def test_an_element_of_a_block(op: Any) -> None:
    """All elements m + M*k + M*K*b are owned once, and block b by the threads that hold it in C."""
    M, N, K = op.shape_mnk
    a, c = op.layout_A_tv, op.layout_C_tv
    blocks = M * K * op.blocks
    assert sorted(a.offsets().ravel().tolist()) == list(range(blocks))
    assert sorted(c.offsets().ravel().tolist()) == list(range(M * N * op.blocks))
    # Of A lane l holds row l % M of block l // M: CDNA3 ISA, "Dense Matrix Layout".
    for lane in range(64):
        assert (a(lane, 0) % M, a(lane, 0) // (M * K)) == (lane % M, lane // M)
