"""Objects of structs and unions: made, read, set, compared, taken apart and put together again."""

from __future__ import annotations

import copy
import ctypes
import struct as packing
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError, FlylabError, TraceError
from tests.samples import cell, kernel_of


@fx.struct
class Point:
    x: fx.Float32
    y: fx.Float32 = 0.5


@fx.struct
class Shape:
    kind: fx.Int8
    corners: fx.Array[Point, 2]
    weights: fx.Array[fx.Float16, 3] = (1, 2, 3)
    origin: Point = Point(8, 9)


@fx.union
class Word:
    number: fx.Float32
    bits: fx.Uint32
    halves: fx.Array[fx.Int16, 2]
    point: fx.Array[fx.Boolean, 4]


def shape() -> Any:
    return Shape(200, [Point(1), Point(y=3, x=2)])


def test_values_are_converted_and_defaults_filled_in():
    made = shape()
    assert repr(made) == (
        "Shape(kind=Int8(-56), corners=(Point(x=Float32(1.0), y=Float32(0.5)), Point(x=Float32(2.0), y=Float32(3.0))), "
        "weights=(Float16(1.0), Float16(2.0), Float16(3.0)), origin=Point(x=Float32(8.0), y=Float32(9.0)))")
    made.kind = 2.9
    made.weights = np.array([0.1, 0.2, 70000])
    assert made.kind.value == 2 and [w.value for w in made.weights] == np.float16([0.1, 0.2, np.inf]).tolist()


def test_a_struct_in_a_struct_is_a_copy_and_reached_in_place():
    point = Point(1, 2)
    made = Shape(1, [point, point], origin=point)
    point.x = 100
    made.origin.y = 7
    made.corners[0].x = 5
    assert (made.origin.x.value, made.origin.y.value) == (1, 7)
    assert [c.x.value for c in made.corners] == [5, 1] and Shape(0, [point] * 2).origin.y.value == 9


def test_replace_and_copies_leave_the_first_alone():
    first = shape()
    second = first.replace(kind=3, origin=Point(0))
    third = copy.deepcopy(second)
    third.origin.x = 4
    assert [s.origin.x.value for s in (first, second, third)] == [8, 0, 4] and second.kind.value == 3
    with pytest.raises(TraceError, match="Shape has no field 'knid'"):
        first.replace(knid=1)


def test_equality_is_a_boolean_of_all_fields():
    assert (shape() == shape()).value is True and (shape() != shape()).value is False
    other = shape()
    other.corners[1].y = 4
    assert (shape() == other).value is False and bool(shape() != other)
    assert (Point(float("nan")) == Point(float("nan"))).value is False
    assert (Point(1) == 1) is False and (Point(1) != 1) is True
    with pytest.raises(TypeError, match="unhashable"):
        hash(Point(1))


def test_leaves_and_back():
    made = shape()
    leaves = made.leaves()
    assert [leaf.value for leaf in leaves] == [-56, 1, 0.5, 2, 3, 1, 2, 3, 8, 9]
    again = made.with_leaves(leaf * 2 for leaf in leaves)
    assert type(again) is Shape and again.corners[1].x.value == 4 and again.kind.value == -112
    assert type(again.kind) is fx.Int8 and made.kind.value == -56
    for wrong, message in ((leaves[1:], "fewer leaves"), ([*leaves, leaves[0]], "more leaves")):
        with pytest.raises(TraceError, match=message):
            made.with_leaves(wrong)


def test_state_can_be_saved_and_put_back():
    made = shape()
    saved = dict(vars(made))
    made.kind, made.origin = 1, Point(0, 0)
    vars(made).update(saved)
    assert bool(made == shape())


def test_methods_properties_and_super():
    @fx.struct
    class Base:
        x: fx.Int32

        def total(self) -> Any:
            return self.x

        @property
        def double(self) -> Any:
            return self.x * 2

        @double.setter
        def double(self, value: Any) -> None:
            self.x = value // 2

    @fx.struct
    class Derived(Base):
        y: fx.Int32

        def total(self) -> Any:
            return super().total() + self.y

    @fx.struct
    class Twice:
        x: fx.Int32

        def __init__(self, x: Any):
            super().__init__(x * 2)
            assert isinstance(self, __class__)  # noqa: F821

    made = Derived(1, 2)
    made.double = 10
    assert (made.total().value, made.double.value, Twice(4).x.value) == (7, 10, 8)


def test_an_error_in_a_property_is_shown():
    @fx.struct
    class Broken:
        x: fx.Int32

        @property
        def bad(self) -> Any:
            return self.x.nothing

    with pytest.raises(AttributeError, match="'Int32' object has no attribute 'nothing'"):
        _ = Broken(1).bad


def test_a_field_without_a_value_yet():
    @fx.struct
    class Late:
        x: fx.Int32

        def __init__(self) -> None:
            """Sets nothing."""

    late = Late()
    with pytest.raises(AttributeError, match="field 'x' of 'late' has no value yet") as caught:
        _ = late.x
    assert "default" in caught.value.hint and not hasattr(late, "x") and repr(late) == "Late(x=MISSING)"


WRONG: dict[str, tuple[str, str, str]] = {
    "no value": ("Shape(1)", "Shape(...) gets no value for 'corners'", "Shape(corners=...)"),
    "unknown": ("Point(1, z=2)", "Point has no field 'z'", "its fields are x, y"),
    "twice": ("Point(1, x=2)", "gets 'x' twice", "by name or in order"),
    "too many": ("Point(1, 2, 3)", "gets 3 values, and has 2 fields", "x, y"),
    "text": ("Point('1')", "field 'x' of Point is a Float32, and gets '1' (a str)", "number"),
    "nothing": ("Point(None)", "field 'x' of Point is a Float32, and gets None", "number"),
    "other struct": ("Shape(1, [Point(1), 2])", "element 1 of field 'corners' of Shape is a Point, and gets 2",
                     "Point(...)"),
    "count": ("Shape(1, [Point(1)])", "field 'corners' of Shape has 2 elements, and gets 1", "as many"),
    "one number": ("Shape(1, [Point(1)] * 2, weights=5)", "is an Array[Float16, 3], and gets 5", "[x] * 3"),
    "text as array": ("Shape(1, [Point(1)] * 2, weights='ab')", "is an Array[Float16, 3], and gets 'ab'", "list of 3"),
    "set unknown": ("p.xx = 1", "Point has no field 'xx'", "did you mean 'x'?"),
    "read unknown": ("p.xx", "Point has no field 'xx'", "did you mean 'x'?"),
    "set a method": ("p.leaves = 1", "Point has no field 'leaves'", "x, y"),
    "set an element": ("s.weights[0] = 1", "[0] = ... of an array in a struct", "all elements"),
    "two of a union": ("Word(number=1, bits=2)", "values for 'number' and 'bits', which share", "one of them"),
    "unknown of a union": ("Word(nmber=1)", "Word has no field 'nmber'", "'number'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name):
    text, message, hint = WRONG[name]
    with pytest.raises(FlylabError) as caught:
        exec(text, {"Shape": Shape, "Point": Point, "Word": Word, "p": Point(1), "s": shape()})
    assert message in caught.value.message and hint in caught.value.hint


class CWord(ctypes.Union):
    _fields_ = [("number", ctypes.c_float), ("bits", ctypes.c_uint32), ("halves", ctypes.c_int16 * 2)]


@given(st.integers(0, 2**32 - 1), st.floats(width=32, allow_nan=False), st.integers(-2**15, 2**15 - 1))
def test_a_union_reads_its_bytes_in_every_format(bits, number, half):
    """As a union of C does."""
    ours, c = Word(bits=bits), CWord(bits=bits)
    for name, value in (("bits", bits), ("number", number), ("halves", [half, bits % 100])):
        setattr(ours, name, value)
        setattr(c, name, (ctypes.c_int16 * 2)(*value) if name == "halves" else value)
        assert ours.bits.value == c.bits and [h.value for h in ours.halves] == list(c.halves)
        assert packing.pack("<f", ours.number.value) == packing.pack("<f", c.number)
        assert [b.value for b in ours.point] == [bool(byte) for byte in bytes(c)]


def test_a_union_of_structs():
    @fx.union
    class Both:
        point: Point
        shape: Shape
        raw: fx.Array[fx.Uint8, 36]

    both = Both(shape=shape())
    assert both.raw[0].value == 200 and bool(both.shape == shape())
    both.point = Point(2, 4)
    assert packing.unpack("<2f", bytes(b.value for b in both.raw[:8])) == (2, 4)
    assert both.shape.corners[0].x.value == 4 and len(both.leaves()) == Both.size == 36
    assert bool(Both() == Both(raw=[0] * 36)) and repr(both) == "Both(36 bytes)"
    assert bool(both.with_leaves(both.leaves()) == both)


def test_in_a_kernel_arrays_of_numbers_are_vectors():
    """Also those of an object made outside; leaves are numbers and vectors, and can be merged one by one."""
    outside = shape()
    names = kernel_of("""
        t = fx.thread_idx.x
        a, b = outside, outside.replace(kind=t, weights=[t, t * 2, 5], origin=Point(A[t]))
        assert isinstance(a.weights, fx.Vector) and len(b.leaves()) == 8
        a.weights * 2.0
        c = a.with_leaves([fx.arith.select(t < 32, x, y) for x, y in zip(a.leaves(), b.leaves())])
        same = a == b
        A[t] = c.weights[1].to(fx.Float32) * 100 + c.kind.to(fx.Float32) + c.origin.x + same.select(1000.0, 0.0)
    """)
    names.update(outside=outside, Point=Point)
    a = np.arange(64, dtype=np.float32)
    names["launch"](a)
    t = np.arange(64)
    np.testing.assert_array_equal(a, np.where(t < 32, 200 - 56 + 8, t * 200 + t + t))


def test_an_object_that_a_kernel_reads_is_watched():
    """A change recompiles; an equal object, or none, does not."""
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[0] = CONFIG.x + CONFIG.y

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=1)
    """)
    names["CONFIG"] = Point(1, 2)
    a = np.zeros(1, np.float32)
    names["launch"](a)
    first = flyc.compile(names["launch"], a)
    names["CONFIG"] = Point(1, 2)
    assert flyc.compile(names["launch"], a) is first and a[0] == 3
    names["CONFIG"].y = 5
    names["launch"](a)
    assert a[0] == 6


def test_wrong_arguments_are_type_errors_too():
    with pytest.raises(TypeError):
        Point()
    assert issubclass(ArgumentError, TypeError)
