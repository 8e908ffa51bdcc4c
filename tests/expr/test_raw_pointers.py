"""Pointers without layouts: loads and stores of any type, addresses, LLVM's pointers, and refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.dtypes import DTYPES
from flylab.errors import CheckFailed, OutOfBounds, TraceError
from tests.samples import kernel_of


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(request.param):
        yield


def test_loads_and_stores_of_every_type() -> None:
    """Each thread has 8 words of A; numpy's views say what the bytes are."""
    A = np.random.default_rng(0).integers(0, 2**32, 64 * 8, dtype=np.uint32)
    B = np.zeros_like(A)
    launch = kernel_of("""
        i = fx.thread_idx.x
        a, b = fx.get_iter(A) + 8 * i, fx.get_iter(B) + 8 * i
        fx.ptr_store(fx.ptr_load(a), b)
        fx.ptr_store(fx.ptr_load(a + 1, fx.Int32) >> 31, b + 1)
        fx.ptr_store(fx.ptr_load(a + 2, fx.T.vec(2, fx.T.f16)), b + 2)
        v = fx.ptr_load(a + 4, fx.Uint32x4)
        assert isinstance(v, fx.Uint32x4)
        fx.ptr_store(fx.Vector.from_elements([v[3], v[2]], fx.Uint32), b + 4)
        fx.ptr_store(fx.ptr_load(fx.recast_iter(fx.Uint8, a + 6) + 1, fx.Uint8), b + 6)
        fx.ptr_store(9, b + 7)
        """, "A: fx.Tensor, B: fx.Tensor")["launch"]
    launch(A, B)
    rows, got = A.reshape(64, 8), B.reshape(64, 8)
    assert np.array_equal(got[:, 0], rows[:, 0])
    assert np.array_equal(got[:, 1], (rows[:, 1].view(np.int32) >> 31).view(np.uint32))
    assert np.array_equal(got[:, 2], rows[:, 2])
    assert np.array_equal(got[:, 4:6], rows[:, [7, 6]])
    assert np.array_equal(got.view(np.uint8)[:, 24], rows.view(np.uint8)[:, 25])
    assert not got.view(np.uint8)[:, 25:28].any() and not got[:, 3].any()
    assert (got[:, 7] == 9).all()


def test_wide_loads_are_one_instruction() -> None:
    compiled = flyc.compile(kernel_of("""
        p = fx.get_iter(A) + 4 * fx.thread_idx.x
        fx.ptr_store(fx.ptr_load(p, fx.Float32x4) + 1.0, p)
    """)["launch"], np.zeros(256, np.float32))
    assert re.findall(r"global_(?:load|store)\w+", compiled.code.assembly) == [
        "global_load_dwordx4", "global_store_dwordx4"]


def test_in_lds_and_registers_and_buffers() -> None:
    A = np.arange(64, dtype=np.float32)
    kernel_of("""
        i = fx.thread_idx.x
        s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek().ptr
        fx.ptr_store(A[i], s + i)
        fx.barrier()
        r = fx.memref_alloca(fx.make_rmem_tensor(2, fx.Float32).type, fx.make_layout(2, 1))
        fx.ptr_store(fx.ptr_load(s + (63 - i)), fx.get_iter(r) + 1)
        b = fx.get_iter(fx.rocdl.make_buffer_tensor(A))
        fx.ptr_store(fx.ptr_load(b + i) * 100.0 + r[1], b + i)
    """)["launch"](A)
    assert np.array_equal(A, np.arange(64) * 100.0 + np.arange(63, -1, -1))


def test_addresses_there_and_back() -> None:
    A = np.arange(64, dtype=np.float32)
    kernel_of("""
        i = fx.thread_idx.x
        p = fx.get_iter(A)
        back = fx.inttoptr(p.type, fx.ptrtoint(p) + 4 * fx.Int64(i))
        s = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 64]).peek().ptr
        there = fx.ptrtoint(s) + 4 * i
        assert there.dtype.name == "Int32"
        fx.ptr_store(fx.ptr_load(back) + 0.5, fx.inttoptr(fx.PointerType.get(fx.Float32, 2), there))
        fx.barrier()
        same = fx.make_ptr(p.type, [fx.to_llvm_ptr(p)])
        fx.ptr_store(fx.ptr_load(s + (63 - i)), fx.make_ptr(p.type, [same]) + i)
    """)["launch"](A)
    assert np.array_equal(A, np.arange(63, -1, -1) + 0.5)


def test_an_address_that_is_wrong_is_found() -> None:
    names = kernel_of("fx.ptr_store(1.0, fx.inttoptr(fx.Float32, fx.Int64(16)))")
    with pytest.raises(OutOfBounds):
        names["launch"](np.zeros(64, np.float32))
    names = kernel_of("fx.ptr_store(1.0, fx.inttoptr(fx.Float32, fx.ptrtoint(fx.get_iter(A)) + 2))")
    with pytest.raises(CheckFailed, match="no multiple of 4 bytes"):
        names["launch"](np.zeros(64, np.float32))


def test_types_of_pointers() -> None:
    kind = fx.PointerType.get(fx.Float16, fx.AddressSpace.Shared, 16)
    assert (kind.dtype, kind.space, kind.align) == (DTYPES["Float16"], "shared", 16)
    assert fx.PointerType.get(fx.Int32) == fx.PointerType.get(fx.Int32, 1, 4)


@pytest.mark.parametrize("call, message, hint", [
    ("ptr_load(A)", "ptr_load: 'A' is a Tensor, not a pointer", "fx.get_iter"),
    ("ptr_load(p, 3)", "3", "fx.Float32"),
    ("ptr_load(p, fx.Boolean)", "a Boolean in memory", "fx.Uint8"),
    ("ptr_store('x', p)", "is not a number", "fx number"),
    ("inttoptr(p.type, 1.5)", "inttoptr of 1.5", "fx.ptrtoint"),
    ("inttoptr(fx.PointerType.get(fx.Int32, 3), 0)", "register memory has no addresses", "LDS"),
    ("make_ptr(p.type, [p, 3])", "make_ptr of 2 parts", "make_buffer_ptr"),
    ("make_ptr(fx.PointerType.get(fx.Float32, fx.AddressSpace.Shared), [p])", "as f32, shared", "space stays"),
    ("to_llvm_ptr(fx.get_iter(fx.make_rmem_tensor(4, fx.Int32)))", "into register memory", "get_buffer_rsrc"),
    ("memref_alloca(A.type, 4)", "not the type of a tensor in registers", "fx.make_rmem_tensor"),
    ("PointerType.get(fx.Int32, fx.AddressSpace.Generic)", "the generic address space", "fx.AddressSpace.Global"),
    ("PointerType.get(fx.Int32, alignment=12)", "alignment=12", "a power of two"),
    ("PointerType.get(fx.Int32, 'lds')", "'lds' is no AddressSpace", "fx.AddressSpace.Shared"),
])
def test_refusals(call: str, message: str, hint: str) -> None:
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        flyc.compile(kernel_of(f"p = fx.get_iter(A)\nfx.{call}")["launch"], np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 4
    assert hint in str(caught.value.hint)
