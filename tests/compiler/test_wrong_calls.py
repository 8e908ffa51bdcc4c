"""Calls of the language that do not fit its parameters are refused at their line, with the parameters."""

from __future__ import annotations

import pytest

from flylab.errors import FlylabError, TraceError
from tests.samples import compile_body

HEAD = """
atom = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
c = fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)
r = fx.make_rmem_tensor(1, fx.Int32)
"""
CALLS = [
    ("fx.gemm(atom, r)", "fx.gemm missing 3 required positional arguments", "call it as fx.gemm(mma_atom, d, a, b, c,"),
    ("fx.copy(c, A)", "fx.copy missing 1 required positional argument: 'dst'",
     "call it as fx.copy(copy_atom, src, dst, *, pred=None"),
    ("fx.mma_atom_call(atom, r, r)", "fx.mma_atom_call missing 2", "fx.mma_atom_call(mma_atom, d, a, b, c"),
    ("fx.slice(A)", "fx.slice missing 1", "fx.slice(source, coord)"),
    ("fx.zipped_divide(A)", "fx.zipped_divide missing 1", "fx.zipped_divide(layout, divisor)"),
    ("fx.gpu.barrier(3)", "fx.gpu.barrier takes 0 positional arguments but 1 was given", "fx.gpu.barrier()"),
    ("fx.make_layout(4, strid=3)", "fx.make_layout got an unexpected keyword argument 'strid'", "stride=None"),
    ("A.fill()", "A.fill missing 1", "A.fill(number)"),
    ("for _ in range(4): fx.copy(c)", "fx.copy missing 2", "fx.copy("),
    ("fx.scatter(c, A, r, fx.get_iter(A))", "fx.scatter: base_iter is 'r', a Tensor, not a pointer",
     "fx.scatter(copy_atom, src_tensor, base_iter, offset_tensor)"),
    ("fx.scatter(c, fx.get_iter(A), fx.get_iter(A), r)", "src_tensor is .* a Pointer, not a tensor", "the order is"),
    ("fx.gather(c, r, fx.get_iter(A), A)", "fx.gather: base_iter is 'r'",
     "fx.gather(copy_atom, base_iter, offset_tensor, dst_tensor)"),
    *((f"{name}()", f"has no name '{name.split('.')[-1]}'", "the barrier of a block is fx.gpu.barrier()")
      for name in ("fx.syncthreads", "fx.gpu.syncthreads", "fx.gpu.sync_threads", "fx.gpu.__syncthreads")),
]  # fmt: skip


@pytest.mark.parametrize(("call", "message", "hint"), CALLS, ids=[call for call, _, _ in CALLS])
def test_refused_at_its_line(call: str, message: str, hint: str) -> None:
    with pytest.raises(FlylabError, match=message) as caught:
        compile_body(HEAD + call)
    assert caught.value.where is not None and caught.value.where.line == 6
    assert hint in str(caught.value.hint)


@pytest.mark.parametrize("call", [
    "(lambda a: a)()", "x = 3; x(1)", "def gemm(a, b): pass\ngemm(1)", "len(3)", "fx.rocdl.__name__()",
])  # fmt: skip
def test_pythons_own_error_of_the_users_functions_stays(call: str) -> None:
    with pytest.raises(TypeError) as caught:
        compile_body(HEAD + call)
    assert not isinstance(caught.value, TraceError)
