"""Kernels with LDS, compiled by LLVM for both chips, against numpy: transposes, reductions, histograms, dynamic LDS."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import OutOfBounds
from tests.emulator.toolchain import CHIPS, compile_for, element, kernel

BARRIER = """
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
"""
DECLARED = "declare void @llvm.amdgcn.s.barrier()\n"


def built(chip: str, ir: str, *mnemonics: str) -> Program:
    """A program whose assembly holds these instructions."""
    text = compile_for(chip, ir)
    assert not [m for m in mnemonics if not re.search(rf"\b{m}\b", text)]
    return Program.from_assembly(text)


def transpose(type_: str, vector: int, padding: int) -> str:
    """Blocks of 256 threads; each turns a tile of 16 rows of 16 vectors around through LDS: out[c][r] = in[r][c]."""
    row = 16 + padding
    full = f"<{vector} x {type_}>" if vector > 1 else type_
    body = (element("%pi", full, "%in") + f"  %x = load {full}, ptr addrspace(1) %pi\n"
            "  %r = lshr i32 %t, 4\n  %c = and i32 %t, 15\n"
            f"  %r0 = mul i32 %r, {row}\n  %at = add i32 %r0, %c\n"
            f"  %pw = getelementptr {full}, ptr addrspace(3) @tile, i32 %at\n"
            f"  store {full} %x, ptr addrspace(3) %pw\n{BARRIER}"
            f"  %c0 = mul i32 %c, {row}\n  %from = add i32 %c0, %r\n"
            f"  %pr = getelementptr {full}, ptr addrspace(3) @tile, i32 %from\n"
            f"  %y = load {full}, ptr addrspace(3) %pr\n" + element("%po", full, "%out") +
            f"  store {full} %y, ptr addrspace(1) %po")
    return kernel("ptr %in, ptr %out", body, f"{DECLARED}@tile = internal addrspace(3) global [{16 * row} x {full}] "
                  "poison, align 16")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("type_, vector, dtype, name", [
    ("i8", 1, "u1", "b8"), ("half", 1, "f2", "b16"), ("float", 1, "f4", "b32"), ("float", 2, "f4", "b64"),
    ("half", 8, "f2", "b128"), ("i32", 4, "i4", "b128"), ("double", 2, "f8", "b128")])
@pytest.mark.parametrize("padding", [0, 1])
def test_transposes(chip: str, type_: str, vector: int, dtype: str, name: str, padding: int) -> None:
    device = built(chip, transpose(type_, vector, padding), f"ds_write_{name}")
    data = np.random.default_rng(vector).integers(0, 200, (7, 16, 16, vector)).astype(dtype)
    found = np.zeros_like(data)
    device.launch(grid=7, block=256, args=[data, found])
    assert np.array_equal(found, data.transpose(0, 2, 1, 3))


REDUCE = kernel("ptr %in, ptr %out", element("%pi", "float", "%in") + """
  %x = load float, ptr addrspace(1) %pi
  %mine = getelementptr float, ptr addrspace(3) @sums, i32 %t
  store float %x, ptr addrspace(3) %mine
  br label %round
round:
  %step = phi i32 [ 128, %entry ], [ %less, %joined ]
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %on = icmp ult i32 %t, %step
  br i1 %on, label %adds, label %joined
adds:
  %other = add i32 %t, %step
  %theirs = getelementptr float, ptr addrspace(3) @sums, i32 %other
  %a = load float, ptr addrspace(3) %mine
  %b = load float, ptr addrspace(3) %theirs
  %sum = fadd float %a, %b
  store float %sum, ptr addrspace(3) %mine
  br label %joined
joined:
  %less = lshr i32 %step, 1
  %more = icmp ne i32 %less, 0
  br i1 %more, label %round, label %done
done:
  %zeroth = icmp eq i32 %t, 0
  br i1 %zeroth, label %writes, label %end
writes:
  %total = load float, ptr addrspace(3) @sums
  %g64 = zext i32 %g to i64
  %po = getelementptr float, ptr addrspace(1) %out, i64 %g64
  store float %total, ptr addrspace(1) %po
  br label %end
end:""", DECLARED + "@sums = internal addrspace(3) global [256 x float] poison, align 4")


@pytest.mark.parametrize("chip", CHIPS)
def test_a_tree_of_sums(chip: str) -> None:
    """Bit for bit: the tree adds in an order that numpy can follow."""
    data = np.random.default_rng(0).standard_normal(256 * 40).astype("f4")
    found = np.zeros(40, "f4")
    built(chip, REDUCE, "ds_write_b32").launch(grid=40, block=256, args=[data, found])
    level = data.reshape(40, 256)
    while level.shape[1] > 1:
        half = level.shape[1] // 2
        level = level[:, :half] + level[:, half:]
    assert np.array_equal(found, level[:, 0])


def gathering(operation: str, type_: str) -> str:
    """Every thread of a block does an atomic on one of 16 cells of LDS, which then go out."""
    zero = f"  %cell0 = getelementptr {type_}, ptr addrspace(3) @cells, i32 %t\n"
    body = (element("%pi", type_, "%in") + f"  %x = load {type_}, ptr addrspace(1) %pi\n" +
            element("%pk", "i32", "%keys") + "  %k = load i32, ptr addrspace(1) %pk\n  %few = icmp ult i32 %t, 16\n"
            "  br i1 %few, label %clear, label %cleared\nclear:\n" + zero +
            f"  store {type_} zeroinitializer, ptr addrspace(3) %cell0\n  br label %cleared\ncleared:\n{BARRIER}"
            f"  %cell = getelementptr {type_}, ptr addrspace(3) @cells, i32 %k\n"
            f"  %old = atomicrmw {operation} ptr addrspace(3) %cell, {type_} %x syncscope(\"workgroup\") monotonic\n"
            f"{BARRIER}  br i1 %few, label %out1, label %end\nout1:\n"
            f"  %cell2 = getelementptr {type_}, ptr addrspace(3) @cells, i32 %t\n"
            f"  %y = load {type_}, ptr addrspace(3) %cell2\n"
            "  %g16 = mul i32 %g, 16\n  %o = add i32 %g16, %t\n  %o64 = zext i32 %o to i64\n" +
            element("%po", type_, "%out", "%o64") + f"  store {type_} %y, ptr addrspace(1) %po\n  br label %end\nend:")
    return kernel("ptr %in, ptr %keys, ptr %out", body,
                  f"{DECLARED}@cells = internal addrspace(3) global [16 x {type_}] poison, align 8")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("operation, type_, dtype, mnemonic, function", [
    ("add", "i32", "i4", "ds_add_u32", np.add), ("add", "i64", "i8", "ds_add_u64", np.add),
    ("umax", "i32", "u4", "ds_max_u32", np.maximum), ("min", "i64", "i8", "ds_min_i64", np.minimum),
    ("xor", "i32", "u4", "ds_xor_b32", np.bitwise_xor), ("fadd", "float", "f4", "ds_add_f32", np.add),
    ("fadd", "double", "f8", "ds_add_f64", np.add), ("fmax", "float", "f4", "ds_max_f32", np.maximum),
    ("fadd", "<2 x half>", "f2", "ds_pk_add_f16", np.add),
    ("fadd", "<2 x bfloat>", ml_dtypes.bfloat16, "ds_pk_add_bf16", np.add)])
def test_atomics(chip: str, operation: str, type_: str, dtype: Any, mnemonic: str, function: np.ufunc) -> None:
    """Floats are small whole numbers, whose sums are exact in any order."""
    random = np.random.default_rng(5)
    pairs = 2 if type_[0] == "<" else 1
    data = random.integers(0 if operation == "umax" else -3, 4, (6, 256, pairs)).astype(dtype)
    keys = random.integers(0, 16, (6, 256)).astype("i4")
    found = np.ones((6, 16, pairs), dtype)
    built(chip, gathering(operation, type_), mnemonic).launch(grid=6, block=256, args=[data, keys, found])
    expected = np.zeros_like(found)
    for block in range(6):
        for key, value in zip(keys[block], data[block], strict=True):
            expected[block, key] = function(expected[block, key], value)
    assert np.array_equal(found, expected)


DYNAMIC = kernel("ptr %in, ptr %out", element("%pi", "i32", "%in") + """
  %x = load i32, ptr addrspace(1) %pi
  %one = getelementptr i32, ptr addrspace(3) @fixed, i32 %t
  store i32 %t, ptr addrspace(3) %one
  %mine = getelementptr i32, ptr addrspace(3) @more, i32 %t
  store i32 %x, ptr addrspace(3) %mine
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %back = sub i32 255, %t
  %theirs = getelementptr i32, ptr addrspace(3) @more, i32 %back
  %y = load i32, ptr addrspace(3) %theirs
  %two = getelementptr i32, ptr addrspace(3) @fixed, i32 %back
  %u = load i32, ptr addrspace(3) %two
  %z = add i32 %y, %u
""" + element("%po", "i32", "%out") + "  store i32 %z, ptr addrspace(1) %po",
    DECLARED + "@fixed = internal addrspace(3) global [256 x i32] poison, align 16\n"
               "@more = external addrspace(3) global [0 x i32], align 16")


@pytest.mark.parametrize("chip", CHIPS)
def test_dynamic_lds_lies_behind_the_static(chip: str) -> None:
    device = built(chip, DYNAMIC)
    data = np.random.default_rng(2).integers(0, 1000, (5, 256)).astype("i4")
    found = np.zeros_like(data)
    device.launch(grid=5, block=256, args=[data, found], shared=1024)
    assert np.array_equal(found, data[:, ::-1] + np.arange(256)[::-1])
    message = (r"an LDS access of 4 bytes at byte 2044, the workgroup has 2044 bytes \(1024 static \+ 1020 dynamic\)\n"
               r" +in block \(0, 0, 0\), thread \(255, 0, 0\)")
    with pytest.raises(OutOfBounds, match=message):
        device.launch(grid=5, block=256, args=[data, found], shared=1020)


@pytest.mark.parametrize("chip", CHIPS)
def test_any_alignment(chip: str) -> None:
    """LLVM reads and writes 16 bytes of unknown alignment at once."""
    body = (element("%pi", "<4 x i32>", "%in") + "  %x = load <4 x i32>, ptr addrspace(1) %pi\n"
            "  %b = mul i32 %t, 17\n  %p = getelementptr i8, ptr addrspace(3) @bytes, i32 %b\n"
            f"  store <4 x i32> %x, ptr addrspace(3) %p, align 1\n{BARRIER}"
            "  %back = sub i32 255, %t\n  %b2 = mul i32 %back, 17\n"
            "  %q = getelementptr i8, ptr addrspace(3) @bytes, i32 %b2\n"
            "  %y = load <4 x i32>, ptr addrspace(3) %q, align 1\n" + element("%po", "<4 x i32>", "%out") +
            "  store <4 x i32> %y, ptr addrspace(1) %po")
    ir = kernel("ptr %in, ptr %out", body, f"{DECLARED}@bytes = internal addrspace(3) global [4352 x i8] poison")
    data = np.random.default_rng(2).integers(0, 1000, (3, 256, 4)).astype("i4")
    found = np.zeros_like(data)
    built(chip, ir, "ds_write_b128", "ds_read_b128").launch(grid=3, block=256, args=[data, found])
    assert np.array_equal(found, data[:, ::-1])
