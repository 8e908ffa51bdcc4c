"""Structs for the tests: two of every kind of field, and random ones in flylab's, ctypes's and numpy's language."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

import flylab.expr as fx


@fx.struct
class Inner:
    half: fx.Float16
    good: fx.Boolean
    count: fx.Int64


@fx.struct
class Item:
    flag: fx.Boolean
    scale: fx.Float64
    row: fx.Array[fx.Float32, 3]
    tiny: fx.Int8
    parts: fx.Array[Inner, 2]
    marks: fx.Array[fx.Boolean, 3]
    wide: fx.Uint16 = 7


# What flylab, ctypes and numpy call one number format.
NUMBERS = {
    fx.Boolean: (ctypes.c_bool, np.dtype("?")),
    fx.Int8: (ctypes.c_int8, np.dtype("i1")), fx.Uint8: (ctypes.c_uint8, np.dtype("u1")),
    fx.Int16: (ctypes.c_int16, np.dtype("i2")), fx.Uint16: (ctypes.c_uint16, np.dtype("u2")),
    fx.Int32: (ctypes.c_int32, np.dtype("i4")), fx.Uint32: (ctypes.c_uint32, np.dtype("u4")),
    fx.Int64: (ctypes.c_int64, np.dtype("i8")), fx.Uint64: (ctypes.c_uint64, np.dtype("u8")),
    fx.Float16: (ctypes.c_uint16, np.dtype("f2")),
    fx.Float32: (ctypes.c_float, np.dtype("f4")), fx.Float64: (ctypes.c_double, np.dtype("f8")),
}  # fmt: skip


@dataclass(frozen=True)
class Declared:
    """One type, declared three times."""

    ours: Any
    c: Any
    numpy: np.dtype


def _number(kind: Any) -> Declared:
    return Declared(kind, *NUMBERS[kind])


def _array(element: Declared, count: int) -> Declared:
    return Declared(fx.Array[element.ours, count], element.c * count, np.dtype((element.numpy, (count,))))


def _composite(parts: list[Declared], is_union: bool) -> Declared:
    names = [f"f{i}" for i in range(len(parts))]
    body = {"__annotations__": {n: p.ours for n, p in zip(names, parts, strict=True)}}
    ours = (fx.union if is_union else fx.struct)(type("U" if is_union else "S", (), body))
    base = ctypes.Union if is_union else ctypes.Structure
    c = type("C", (base,), {"_fields_": [(n, p.c) for n, p in zip(names, parts, strict=True)]})
    if is_union:  # numpy has no unions: the same bytes as given offsets
        numpy = np.dtype({"names": names, "formats": [p.numpy for p in parts], "offsets": [0] * len(parts),
                          "itemsize": ctypes.sizeof(c)}, align=True)
    else:
        numpy = np.dtype([(n, p.numpy) for n, p in zip(names, parts, strict=True)], align=True)
    return Declared(ours, c, numpy)


def structs(unions: bool = True, most: int = 5) -> st.SearchStrategy[Declared]:
    """Structs of numbers, arrays, structs and (if asked for) unions, nested up to three deep."""
    numbers = st.sampled_from(list(NUMBERS)).map(_number)

    def larger(inner: st.SearchStrategy[Declared]) -> st.SearchStrategy[Declared]:
        parts = st.lists(inner, min_size=1, max_size=most)
        return st.one_of(
            st.builds(_array, inner, st.integers(1, 4)),
            st.builds(_composite, parts, st.booleans() if unions else st.just(False)),
        )

    return st.builds(_composite, st.lists(st.recursive(numbers, larger, max_leaves=6), min_size=1, max_size=most),
                     st.just(False))
