"""Atomic operations: values against numpy, the chips' own instructions, and refusals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from tests.samples import cell, kernel_of

INTEGERS = ("Int32", "Uint32", "Int64", "Uint64")
NUMPY = {
    "add": np.add, "sub": np.subtract, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "max": np.maximum, "min": np.minimum, "xchg": lambda old, new: new,
}
FORMATS = (*INTEGERS, "Float16", "BFloat16", "Float32", "Float64")
FLOATS = ("add", "sub", "max", "min", "xchg")
SOURCE = """
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor, Old: fx.Tensor):
        i = fx.thread_idx.x
        {place}
        {body}
        {after}

    @flyc.jit
    def launch(A: fx.Tensor, B: fx.Tensor, Old: fx.Tensor):
        k(A, B, Old).launch(grid=1, block=64)
"""
GLOBAL = ("p = fx.get_iter(A)", "pass")
LDS = ("p = fx.SharedAllocator().allocate(fx.Array[fx.{0}, {1}]).peek().ptr\n"
       "        for n in range_constexpr({1} // 64): p[64 * n + i] = A[64 * n + i]\n"
       "        fx.barrier()",
       "fx.barrier()\n        for n in range_constexpr({1} // 64): A[64 * n + i] = p[64 * n + i]")


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(request.param):
        yield


def run(body: list[str], where: tuple[str, str], A: np.ndarray, B: np.ndarray) -> tuple[np.ndarray, str]:
    """The numbers before, for each thread, with A changed in place; and the assembly."""
    name = next(n for n in FORMATS if getattr(fx, n).dtype.to_numpy() == A.dtype)
    place, after = (part.format(name, A.size) for part in where)
    launch = cell(SOURCE.format(place=place, body="\n        ".join(body), after=after))["launch"]
    old = np.zeros_like(A)
    compiled = flyc.compile(launch, A, B, old)
    compiled(A, B, old)
    return old, compiled.code.assembly


def numbers(dtype: Any, seed: int) -> np.ndarray:
    """64 numbers of a format from everywhere in its range, negative ones too."""
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return (rng.standard_normal(64) * 100).astype(dtype)
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    return rng.integers(low, high, 64, dtype=dtype, endpoint=True)


@pytest.mark.parametrize("where", [GLOBAL, LDS], ids=["global", "lds"])
@pytest.mark.parametrize("dtype", [*INTEGERS, "Float32", "Float64"])
def test_each_thread_at_a_place_of_its_own(dtype: str, where: tuple[str, str]) -> None:
    names = list(NUMPY) if dtype in INTEGERS else FLOATS
    body = [f"Old[{64 * n} + i] = fx.atomic_{name}(p + ({64 * n} + i), B[i])" for n, name in enumerate(names)]
    A, B = np.tile(numbers(dtype.lower(), 1), len(names)), numbers(dtype.lower(), 2)
    before = A.copy()
    old, _ = run(body, where, A, B)
    with np.errstate(over="ignore"):
        assert np.array_equal(A, np.concatenate([NUMPY[name](before[:64], B) for name in names]))
    assert np.array_equal(old, before)


@pytest.mark.parametrize("where", [GLOBAL, LDS], ids=["global", "lds"])
@pytest.mark.parametrize("dtype", INTEGERS)
def test_all_threads_at_one_place(dtype: str, where: tuple[str, str]) -> None:
    """The end is that of any order; and some order of the threads gives all numbers before."""
    names = ("add", "xor", "max", "min")
    A, B = np.tile(numbers(dtype.lower(), 3), len(names)), numbers(dtype.lower(), 4)
    start = A[0]
    olds, _ = run([f"Old[{64 * n} + i] = fx.atomic_{name}(p + {64 * n}, B[i])" for n, name in enumerate(names)],
                  where, A, B)
    for n, name in enumerate(names):
        old, end = olds[64 * n:64 * n + 64], A[64 * n]
        with np.errstate(over="ignore"):
            assert end == NUMPY[name].reduce(np.append(B, start), dtype=B.dtype), name
            after = NUMPY[name](old, B)
        # What each found is what another one left, or the start.
        assert sorted([*after, start]) == sorted([*old, end]), name


@pytest.mark.parametrize("where", [GLOBAL, LDS], ids=["global", "lds"])
@pytest.mark.parametrize("name, short", [("Float16", "f16"), ("BFloat16", "bf16")])
def test_two_small_floats_at_once(name: str, short: str, where: tuple[str, str]) -> None:
    dtype = getattr(fx, name).dtype.to_numpy()
    body = [f"pair = fx.atomic_add(p + 2 * i, fx.Vector.from_elements([B[i], B[i + 64]], fx.{name}))",
            "Old[i] = pair[0]", "Old[i + 64] = pair[1]"]
    A, B = (np.concatenate([numbers(np.float32, s), numbers(np.float32, s + 1)]).astype(dtype) for s in (5, 7))
    before = A.copy()
    old, assembly = run(body, where, A, B)
    pairs = np.stack([B[:64], B[64:]], axis=1).reshape(128)
    assert np.array_equal(A, before + pairs)
    assert np.array_equal(old, np.concatenate([before[::2], before[1::2]]))
    assert ("global_atomic_pk_add_" if where is GLOBAL else "ds_pk_add_rtn_") + short in assembly


# The instructions of both chips. Source: CDNA3 ISA, "FLAT, Scratch and Global format" and "LDS instructions".
INSTRUCTIONS = [
    ("add", "Float32", "global_atomic_add_f32", "ds_add_rtn_f32"),
    ("sub", "Float32", "global_atomic_add_f32", "ds_add_rtn_f32"),
    ("add", "Float64", "global_atomic_add_f64", "ds_add_rtn_f64"),
    ("max", "Float64", "global_atomic_max_f64", "ds_max_rtn_f64"),
    ("max", "Float32", "global_atomic_cmpswap", "ds_max_rtn_f32"),
    ("max", "Int32", "global_atomic_smax", "ds_max_rtn_i32"),
    ("max", "Uint32", "global_atomic_umax", "ds_max_rtn_u32"),
    ("min", "Int64", "global_atomic_smin_x2", "ds_min_rtn_i64"),
    ("min", "Uint64", "global_atomic_umin_x2", "ds_min_rtn_u64"),
    ("xchg", "Float32", "global_atomic_swap", "ds_wrxchg_rtn_b32"),
]


@pytest.mark.parametrize("name, dtype, in_global, in_lds", INSTRUCTIONS)
def test_the_chips_own_instruction(name: str, dtype: str, in_global: str, in_lds: str) -> None:
    for where, instruction in ((GLOBAL, in_global), (LDS, in_lds)):
        A, B = numbers(dtype.lower(), 9), numbers(dtype.lower(), 10)
        _, assembly = run([f"Old[i] = fx.atomic_{name}(p + i, B[i])"], where, A, B)
        found = set(re.findall(r"^\s+((?:global_atomic|ds)_\w+)", assembly, re.M))
        assert instruction in found and not {f for f in found - {instruction} if "atomic" in f or "cmpst" in f}


@pytest.mark.parametrize("sign", [True, False, None])
@pytest.mark.parametrize("name", ["max", "min"])
def test_floats_by_their_sign(name: str, sign: bool | None) -> None:
    A, B = numbers(np.float32, 11), numbers(np.float32, 12)
    B = B if sign is None else np.abs(B) * (1 if sign else -1)
    start, rule = A[0], {"max": np.fmax, "min": np.fmin}[name]
    old, assembly = run([f"Old[i] = fx.atomic_f{name}(p, B[i], is_positive={sign})"], GLOBAL, A, B)
    assert A[0] == rule.reduce(np.append(B, start))
    assert set(old) <= {start, *B}
    assert ("cmpswap" in assembly) == (sign is None)


def test_compare_and_swap() -> None:
    A = np.arange(64, dtype=np.int32)
    B = np.where(np.arange(64) % 3 == 0, A, A + 100).astype(np.int32)
    body = ["old, hit = fx.atomic_cas(p + i, B[i], 7 - i, success_ordering=fx.AtomicOrdering.AcqRel,",
            "                         failure_ordering='acquire', syncscope=fx.SyncScope.System)",
            "Old[i] = old", "B[i] = hit.to(fx.Int32)"]
    before, hit = A.copy(), A == B
    old, _ = run(body, GLOBAL, A, B)
    assert np.array_equal(old, before)
    assert np.array_equal(B, hit)
    assert np.array_equal(A, np.where(hit, 7 - before, before))


def test_scope_and_order_reach_llvm() -> None:
    """Names of LLVM's language reference; the default is the chip's scope, and no order."""
    for extra, shown in (("", 'syncscope("agent") monotonic'),
                         (", syncscope=fx.rocdl.SyncScope.Workgroup", 'syncscope("workgroup") monotonic'),
                         (", syncscope='', ordering=fx.AtomicOrdering.SeqCst", "seq_cst")):
        names = kernel_of(f"fx.atomic_add(fx.get_iter(A), 1.0{extra})")
        compiled = flyc.compile(names["launch"], np.zeros(64, np.float32))
        (line,) = re.findall(r"atomicrmw fadd .*", str(compiled.show("llvm")))
        assert shown in line and "!amdgpu.no.fine.grained.memory" in line


@pytest.mark.parametrize("call, message, hint", [
    ("atomic_and(p, 1.0)", "atomic_and of Float32", "Int32, Uint32, Int64 or Uint64"),
    ("atomic_add(p, fx.Int32(1))", "the value is a Int32, the pointer is to Float32", "Float32)"),
    ("atomic_add(A, 1.0)", "is a Tensor, not a pointer", "fx.get_iter"),
    ("atomic_add(fx.recast_iter(fx.Float16, p), 1.0)", "a single Float16", "([x, y], fx.Float16)"),
    ("atomic_max(fx.recast_iter(fx.Float16, p), 1.0)", "atomic_max of Float16", "Float32, Float64"),
    ("atomic_add(fx.recast_iter(fx.Int8, p), 1)", "atomic_add of Int8", "Int32"),
    ("atomic_add(p, fx.Vector.filled(2, 1.0, fx.Float32))", "of a vector Float32", "one for each"),
    ("atomic_add(fx.get_iter(fx.rocdl.make_buffer_tensor(A)), 1.0)", "in buffer memory", "fx.get_iter"),
    ("atomic_add(p, 1.0, ordering=fx.AtomicOrdering.NotAtomic)", "it is atomic", "Monotonic"),
    ("atomic_add(p, 1.0, ordering='relaxed')", "'relaxed' is no AtomicOrdering", "fx.AtomicOrdering.AcqRel"),
    ("atomic_add(p, 1.0, syncscope='device')", "'device' is no Sync", "fx.SyncScope.Agent"),
    ("atomic_cas(p, 1.0, 2.0)", "atomic_cas of Float32", "Int32"),
    ("atomic_fmax(fx.recast_iter(fx.Int32, p), 1, is_positive=True)", "atomic_fmax of", "fx.atomic_max is that"),
    ("atomic_cas(fx.recast_iter(fx.Int32, p), 1, 2, failure_ordering='release')", "a failure stores", "Acquire"),
])
def test_refusals(call: str, message: str, hint: str) -> None:
    with pytest.raises(TraceError, match=re.escape(message)) as caught:
        flyc.compile(kernel_of(f"p = fx.get_iter(A)\nfx.{call}")["launch"], np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 4
    assert hint in str(caught.value.hint)


def test_only_in_a_kernel() -> None:
    with pytest.raises(TraceError, match="only has a meaning inside an @flyc.kernel"):
        fx.atomic_add(None, 1)
