"""Buffers by descriptor: pointers, loads, stores and atomics, offsets of any size, the legacy functions, refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
from flylab.errors import TraceError
from tests.samples import cell, kernel_of


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(request.param):
        yield


# The words of a descriptor, from its documentation: the base, then the bytes, then flags; the wheel prints the same
# flags word, (7 << 12) | (4 << 15).
@pytest.mark.parametrize("call, records", [
    ("rocdl.make_buffer_ptr(p, 100)", 100),
    ("rocdl.make_buffer_ptr(p)", 2**32 - 16),
    ("rocdl.make_buffer_ptr(p, n)", 40),
    ("rocdl.make_buffer_ptr(p, fx.Int64(n) - 41)", 0),
    ("fx.get_iter(rocdl.make_buffer_tensor(A))", 256),
    ("fx.get_iter(rocdl.make_buffer_tensor(A, num_records_bytes=n))", 40),
    ("fx.get_iter(rocdl.make_buffer_tensor(A, True))", 2**32 - 16),
])
def test_the_descriptor(call: str, records: int) -> None:
    A, B = np.arange(64, dtype=np.int32), np.zeros(4, np.int64)
    names = cell(f"""
        from mlir.dialects import llvm
        from mlir import ir

        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
            rocdl = fx.rocdl
            p = fx.get_iter(A)
            raw = rocdl.get_buffer_rsrc({call})
            whole = fx.as_dsl_value(llvm.PtrToIntOp(ir.IntegerType.get_signless(128), raw).result, fx.Uint128)
            B[0] = (whole & (2**48 - 1)).to(fx.Int64) - fx.ptrtoint(p)
            B[1] = (whole >> 48).to(fx.Int64) & 0xffff
            B[2] = (whole >> 64).to(fx.Int64) & 0xffffffff
            B[3] = (whole >> 96).to(fx.Int64)

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
            k(A, B, n).launch(grid=1, block=1)
    """)
    names["launch"](A, B, 40)
    assert B.tolist() == [0, 0, records, (7 << 12) | (4 << 15)]


def test_loads_and_stores_of_every_width() -> None:
    A, B = np.arange(4096, dtype=np.uint8), np.zeros(64 * 64, np.uint8)
    launch = kernel_of("""
        raw, T = fx.rocdl, fx.T
        i = fx.thread_idx.x
        a, b = (raw.make_buffer_ptr(fx.get_iter(t), 4096) for t in (A, B))
        place = 64 * i
        for bytes, kind in ((1, T.i8), (2, T.f16), (4, fx.Float32), (8, T.vec(2, T.i32)), (12, T.vec(3, T.f32)),
                            (16, T.vec(8, T.bf16))):
            raw.raw_ptr_buffer_store(raw.raw_ptr_buffer_load(kind, a, place + 16, 0, 0), b, place + 16)
            place = place + (4 if bytes < 4 else bytes)
        x = raw.raw_ptr_buffer_load(T.i32, raw.get_buffer_rsrc(a), 0, 16, 1)
        raw.raw_ptr_buffer_store(x, raw.get_buffer_rsrc(b), 64 * i, fx.Int32(4), 2)
    """, "A: fx.Tensor, B: fx.Tensor")["launch"]
    compiled = flyc.compile(launch, A, B)
    compiled(A, B)
    wanted = np.zeros((64, 64), np.uint8)
    for start, size in ((16, 1), (20, 2), (24, 4), (28, 8), (36, 12), (48, 16)):
        wanted[:, start:start + size] = A.reshape(64, 64)[:, start:start + size]
    wanted[:, 4:8] = A[16:20]
    assert np.array_equal(B.reshape(64, 64), wanted)
    found = re.findall(r"buffer_(?:load|store)_\w+", compiled.code.assembly)
    assert {"buffer_load_ubyte", "buffer_load_ushort", "buffer_load_dwordx3", "buffer_store_dwordx4"} <= set(found)


def test_cache_policies_reach_the_instruction() -> None:
    compiled = flyc.compile(kernel_of("""
        b = fx.rocdl.make_buffer_ptr(fx.get_iter(A), 256)
        x = fx.rocdl.raw_ptr_buffer_load(fx.Float32, b, 4 * fx.thread_idx.x, 0, 1 | 16)
        fx.rocdl.raw_ptr_buffer_store(x + 1.0, b, 4 * fx.thread_idx.x, 0, 2)
    """)["launch"], np.zeros(64, np.float32))
    assert re.search(r"buffer_load_dword .* sc0 sc1$", compiled.code.assembly, re.M)
    assert re.search(r"buffer_store_dword .* nt$", compiled.code.assembly, re.M)


def test_scalar_loads() -> None:
    A, B = np.arange(100, 164, dtype=np.int32), np.zeros((5, 64), np.int32)
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
            i = fx.thread_idx.x
            b = fx.rocdl.make_buffer_ptr(fx.get_iter(A), 240)
            v = fx.rocdl.s_buffer_load(b, n, count=4)
            assert v.dtype is fx.Int32 and v.numel == 4
            B[0, i] = fx.rocdl.s_buffer_load(b, 3)
            B[1, i] = v[0]
            B[2, i] = v[3]
            B[3, i] = fx.rocdl.s_buffer_load(b, n + 51, cache_modifier=1)
            B[4, i] = fx.rocdl.s_buffer_load(b, n + 2**30)

        @flyc.jit
        def launch(A: fx.Tensor, B: fx.Tensor, n: fx.Int32):
            k(A, B, n).launch(grid=1, block=64)
    """)
    compiled = flyc.compile(names["launch"], A, B, 8)
    compiled(A, B, 8)
    assert B[:, 0].tolist() == [103, 108, 111, 159, 0] and np.array_equal(B, B[:, :1].repeat(64, 1))
    compiled(A, B, 9)
    assert B[3:, 0].tolist() == [0, 0], "word 60 is beyond 240 bytes"
    assert "s_buffer_load_dwordx4" in compiled.code.assembly


def test_atomics() -> None:
    A, D = np.arange(64, dtype=np.float32), np.arange(-32, 32, dtype=np.float64)
    S, U, C = (np.arange(-32, 32, dtype=np.int32) for _ in range(3))
    old = np.zeros(64, np.int32)
    kernel_of("""
        raw, i = fx.rocdl, fx.thread_idx.x
        a, d, s, u, c = (raw.make_buffer_ptr(fx.get_iter(t), 4 * 60) for t in (A, D, S, U, C))
        raw.raw_ptr_buffer_atomic_fadd(fx.Float32(0.5), a, 4 * i)
        raw.raw_ptr_buffer_atomic_fmax(fx.Float64(3.0), d, 8 * i, 0, 0)
        raw.raw_ptr_buffer_atomic_smax(-5, s, 4 * i)
        raw.raw_ptr_buffer_atomic_umin(fx.Uint32(9), u, 4 * i)
        Old[i] = raw.raw_ptr_buffer_atomic_cmpswap(None, 77, i - 30, c, 4 * i, 0, 0)
    """, "A: fx.Tensor, D: fx.Tensor, S: fx.Tensor, U: fx.Tensor, C: fx.Tensor, Old: fx.Tensor")["launch"](
        A, D, S, U, C, old)
    at, start = np.arange(64), np.arange(-32, 32)
    assert np.array_equal(A, at + np.where(at < 60, 0.5, 0))
    assert np.array_equal(D, np.where(at < 30, np.maximum(start, 3), start))
    assert np.array_equal(S, np.where(at < 60, np.maximum(start, -5), start))
    assert np.array_equal(U, np.where(at < 60, np.minimum(start.astype(np.uint32), 9).astype(np.int32), start))
    assert np.array_equal(C, start), "i - 30 is nowhere what is there"
    assert np.array_equal(old, np.where(at < 60, start, 0))


FAR = cell("""
    @flyc.kernel
    def k(A: fx.Tensor, far: fx.Int32, body: fx.Constexpr):
        body(A, far)

    @flyc.jit
    def launch(A: fx.Tensor, far: fx.Int32, body: fx.Constexpr):
        k(A, far, body).launch(grid=1, block=1)
""")["launch"]


@pytest.mark.parametrize("max_size", [False, True])
@pytest.mark.parametrize("far", [2**30, 2**30 + 1, -(2**30), 2**31 - 1, -(2**31)])
def test_an_offset_that_would_wrap_32_bits_is_outside(far: int, max_size: bool) -> None:
    """4 * far bytes are a multiple of 2**32, or just before it: in 32 bits they would be inside, or near the end."""
    A = np.arange(1, 65, dtype=np.float32)

    def body(A: Any, far: Any) -> None:
        from flylab.kernels.common import buffer_ops

        buffer = flylab.expr.rocdl.make_buffer_tensor(A, max_size)
        rsrc = buffer_ops.create_buffer_resource(A, max_size)
        A[1] = buffer[far]
        A[2] = buffer_ops.buffer_load(rsrc, far)
        A[3] = buffer_ops.buffer_load(rsrc, far, 4)[1]
        buffer[far] = 9.0
        buffer_ops.buffer_store(flylab.expr.Float32(9.0), rsrc, far)

    FAR(A, far, body)
    assert A.tolist() == [1, 0, 0, 0, *range(5, 65)]


@pytest.mark.parametrize("row", [1, 3, 7])
def test_a_view_beyond_4_gib_is_reached_by_64_bits(row: int) -> None:
    """Rows a GiB apart, of which only the first is memory: the address that is refused is the right one."""
    A = np.zeros(64, np.float32)

    def body(A: Any, far: Any) -> None:
        fx = flylab.expr
        fx.make_view(fx.get_iter(A), fx.make_layout((8, 64), (2**28, 1)))[far, 5] = 1.0

    with pytest.raises(flylab.errors.OutOfBounds, match=str(row * 2**30 + 20 - 256)):
        FAR(A, row, body)
    FAR(A, 0, body)
    assert A[5] == 1 and A.sum() == 1


def test_tensors_beyond_4_gib_are_refused() -> None:
    for call in ("make_buffer_tensor(wide)", "make_buffer_tensor(wide, True)"):
        names = kernel_of(f"wide = fx.make_view(fx.get_iter(A), fx.make_layout((8, 64), (2**28, 1)))\nfx.rocdl.{call}")
        with pytest.raises(TraceError, match=f"'wide' spans {7 * 2**30 + 256} bytes") as caught:
            flyc.compile(names["launch"], np.zeros(64, np.float32))
        assert "below 4 GiB" in str(caught.value.hint)


def test_the_legacy_functions() -> None:
    """Offsets count elements of the format that is loaded or stored."""
    A, B = np.arange(128, dtype=np.float32), np.zeros(256, np.float32)
    kernel_of("""
        from flylab.kernels.common.buffer_ops import buffer_load, buffer_store, create_buffer_resource
        i = fx.thread_idx.x
        a, b = create_buffer_resource(A), create_buffer_resource(B, num_records_bytes=4 * 200)
        buffer_store(buffer_load(a, 127 - i), b, i)
        v = buffer_load(a, i * 2, vec_width=2, dtype=fx.T.f32, mask=i < 32)
        buffer_store(v, b, 64 + 2 * i, mask=i % 2 == 0)
        x = buffer_load(a, 2 * i, dtype=fx.Float16, soffset_bytes=2, cache_modifier=2)
        buffer_store(x.to(fx.Float32), b, 192 + i)
    """, "A: fx.Tensor, B: fx.Tensor")["launch"](A, B)
    at = np.arange(64)
    wanted = np.zeros(256, np.float32)
    wanted[:64] = 127 - at
    for i in range(0, 64, 2):
        wanted[64 + 2 * i:66 + 2 * i] = A[2 * i:2 * i + 2] if i < 32 else 0
    wanted[192:200] = A.view(np.float16)[2 * at + 1][:8]
    assert np.array_equal(B, wanted)


@pytest.mark.parametrize("call, message, hint", [
    ("make_buffer_ptr(A)", "is a Tensor, not a pointer", "fx.get_iter"),
    ("make_buffer_ptr(b)", "is into buffer memory", "global memory"),
    ("make_buffer_ptr(p, -1)", "a num_records_bytes of -1", "0 to 4294967295"),
    ("make_buffer_ptr(p, 1.5)", "the num_records_bytes is 1.5", "an int"),
    ("make_buffer_tensor(A, num_records_bytes=fx.Float32(fx.thread_idx.x))", "is a Float32", "number of bytes"),
    ("get_buffer_rsrc(p)", "into global memory", "make_buffer_ptr"),
    ("get_buffer_rsrc(b + 3)", "was moved", "take the descriptor first"),
    ("s_buffer_load(b, 0, count=3)", "a count of 3", "count is 1 or 4"),
    ("s_buffer_load(b, 1.5)", "the offset is a Float32", "an integer"),
    ("raw_ptr_buffer_load(fx.Float32, A, 0)", "is no buffer descriptor", "get_buffer_rsrc"),
    ("raw_ptr_buffer_load(fx.T.vec(5, fx.T.f32), b, 0)", "of 160 bits", "8, 16, 32, 64, 96, 128"),
    ("raw_ptr_buffer_load(fx.Float32, b, fx.Int64(0))", "the offset is a value of Int64", "Int32"),
    ("raw_ptr_buffer_load(fx.Float32, b, 0, 0, 4)", "an aux of 0x4", "1 (sc0), 2 (nt) and 16 (sc1)"),
    ("raw_ptr_buffer_atomic_fmax(fx.Float32(1.0), b, 0)", "of Float32, which the chips do not have", "Float64"),
    ("raw_ptr_buffer_atomic_smax(fx.Int16(1), b, 0)", "of Int16", "Int32, Int64"),
    ("raw_ptr_buffer_atomic_cmpswap(None, fx.Int32(1), fx.Int64(1), b, 0)", "of Int32(1) and Int64(1)", "one format"),
])
def test_refusals(call: str, message: str, hint: str) -> None:
    names = kernel_of(f"p = fx.get_iter(A)\nb = fx.rocdl.make_buffer_ptr(p, 64)\nfx.rocdl.{call}")
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        flyc.compile(names["launch"], np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 5
    assert hint in str(caught.value.hint)
