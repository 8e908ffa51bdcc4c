"""Where the fields of structs and unions lie: against ctypes and numpy, and what cannot be declared."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.expr as fx
from flylab.errors import FlylabError, LayoutError, TraceError
from tests.expr.declared import Declared, structs
from tests.samples import cell


def check(ours: Any, c: Any) -> None:
    """Sizes, alignments and offsets as ctypes has them, to any depth."""
    assert (fx.sizeof(ours), fx.alignof(ours)) == (ctypes.sizeof(c), ctypes.alignment(c))
    for name, kind in getattr(c, "_fields_", ()):
        field = ours.fields[name]
        assert (field.offset, field.size) == (getattr(c, name).offset, getattr(c, name).size)
        assert fx.offsetof(ours, name) == field.offset == getattr(ours, name).offset
        check(field.kind, kind)
    if hasattr(c, "_length_"):
        assert ours.stride == ctypes.sizeof(c._type_)
        check(ours.element, c._type_)


@given(structs())
def test_as_ctypes_and_numpy_lay_out(declared: Declared):
    check(declared.ours, declared.c)
    assert declared.ours.size == declared.numpy.itemsize
    assert [f.offset for f in declared.ours.fields.values()] == [o for _, o in declared.numpy.fields.values()]


@given(structs())
def test_the_table_covers_every_byte_once(declared: Declared):
    rows = declared.ours.table.rows
    covered = [0] * declared.ours.size
    for offset, size, _, field, _ in rows:
        # Fields of fields lie in a field that has a row of its own; so does the padding between them.
        if "." not in field and (field or not _inside(offset, rows)):
            for byte in range(offset, offset + size):
                covered[byte] += 1
    assert covered == [1] * declared.ours.size


def _inside(offset: int, rows: Any) -> bool:
    return any(o <= offset < o + s for o, s, _, field, _ in rows if field and "." not in field)


@given(st.lists(st.tuples(st.sampled_from([fx.Int8, fx.Int32, fx.Float64]), st.integers(0, 6)), min_size=1, max_size=6))
def test_alignments_asked_for(wanted: list[tuple[Any, int]]):
    """Each field at the first place that its alignment allows, and no struct smaller than an array of it allows."""
    aligned = [(kind, max(1 << power, fx.sizeof(kind))) for kind, power in wanted]
    body = {"__annotations__": {f"f{i}": fx.Align[kind, n] for i, (kind, n) in enumerate(aligned)}}
    made = fx.struct(type("S", (), body))
    at = 0
    for field, (kind, n) in zip(made.fields.values(), aligned, strict=True):
        assert field.offset == next(o for o in range(at, at + n) if o % n == 0) and field.align == n
        at = field.offset + fx.sizeof(kind)
    assert made.align == max(n for _, n in aligned) and made.size % made.align == 0 and 0 <= made.size - at < made.align


@fx.struct(align=64)
class Shared:
    """As section 5 of the reference declares one, with more in it."""

    a: fx.Array[fx.Float16, 4096, 16]
    b: fx.Array[fx.BFloat16, 3]
    wide: fx.Int128
    count: fx.Int32 = 7
    flag: fx.Boolean = True
    limit: ClassVar[int] = 9

    def twice(self) -> Any:
        return self.count * 2


def test_a_table_in_text():
    assert str(Shared.table) == (
        "struct Shared: 8256 bytes, aligned to 64\n"
        "offset  size  align  field  type\n"
        "     0  8192     16  a      Array[Float16, 4096, 16]\n"
        "  8192     6      2  b      Array[BFloat16, 3]\n"
        "  8198    10      1         padding\n"
        "  8208    16     16  wide   Int128\n"
        "  8224     4      4  count  Int32\n"
        "  8228     1      1  flag   Boolean\n"
        "  8229    27      1         padding")
    assert repr(Shared.table) == str(Shared.table)
    assert Shared.__doc__.startswith("As section 5") and (Shared.limit, Shared.__name__) == (9, "Shared")
    assert repr(Shared.count) == "<field count: Int32, 4 bytes at 8224>"


def test_a_table_in_a_notebook():
    @fx.struct
    class Odd:
        x: fx.Int8
        inner: Inner

    html = Odd.table._repr_html_()
    assert "<caption>struct Odd: 12 bytes, aligned to 4</caption>" in html
    assert html.count("<tr") == 1 + 6 and '<td>inner.y</td><td>Int32</td>' in html
    assert '<tr style="opacity: 0.6"><td>1</td><td>3</td><td>1</td><td></td><td>padding</td></tr>' in html


@fx.struct
class Inner:
    y: fx.Int32
    z: fx.Uint8


def test_offsets_by_path():
    @fx.struct
    class Outer:
        head: fx.Uint8
        items: fx.Array[Inner, 3]
        grid: fx.Array[fx.Array[fx.Float32, 4], 2]

    assert [fx.offsetof(Outer, p) for p in ("head", "items", "items[2].z", "grid[1][3]")] == [0, 4, 24, 56]
    assert Outer.offsetof("items[1].y") == 12


@pytest.mark.parametrize("path, message, hint", [
    ("itms", "Outer has no field 'itms'", "'items'"), ("items[3]", "has no element 3", "sizeof"),
    ("head.x", "Uint8 has no fields", "struct"), ("head[0]", "Uint8 has no element 0", ""),
    ("items[-1]", "offsetof(..., 'items[-1]')", "a path"), ("", "offsetof(..., '')", "a path"),
])
def test_paths_that_are_not_there(path, message, hint):
    @fx.struct
    class Outer:
        head: fx.Uint8
        items: fx.Array[Inner, 3]

    with pytest.raises(LayoutError) as caught:
        fx.offsetof(Outer, path)
    assert message in caught.value.message and hint in caught.value.hint


def test_inheritance_is_as_in_ctypes():
    """What is inherited comes first, with its padding at the end."""
    @fx.struct
    class Derived(Inner):
        w: fx.Uint8

    class CInner(ctypes.Structure):
        _fields_ = [("y", ctypes.c_int32), ("z", ctypes.c_uint8)]

    class CDerived(CInner):
        _fields_ = [("w", ctypes.c_uint8)]

    assert Derived.size == ctypes.sizeof(CDerived) == 12
    assert list(Derived.fields) == ["y", "z", "w"] and Derived.w.offset == CDerived.w.offset == 8
    assert Derived(1, 2, 3).y.value == 1 and isinstance(Derived(1, 2, 3), Inner)


def test_without_the_decorator_and_with_parentheses():
    class Plain(fx.Struct):
        x: fx.Float64

    @fx.struct()
    class Called:
        x: fx.Float64

    @fx.struct(align=32)
    class Later(Called):
        y: fx.Int8

    assert (Plain.size, Called.size, Later.size, Later.align) == (8, 8, 32, 32)


def test_names_that_are_attributes_of_the_type_are_free():
    @fx.struct
    class Named:
        size: fx.Int16
        align: fx.Int8
        fields: fx.Int8
        table: fx.Int32

    named = Named(1, 2, 3, 4)
    assert (named.size.value, named.align.value, named.fields.value, named.table.value) == (1, 2, 3, 4)
    assert (Named.size, Named.align, list(Named.fields)) == (8, 4, ["size", "align", "fields", "table"])


def test_which_types_are_composite():
    @fx.union
    class Either:
        a: fx.Int32

    given = (Inner, Either, fx.Array[Inner, 2], fx.Int32, Inner(1, 2), int)
    assert [fx.is_struct_type(t) for t in given] == [True, False, False, False, False, False]
    assert [fx.is_composite_type(t) for t in given] == [True, True, True, False, False, False]
    assert (fx.Empty.size, fx.Empty.align, fx.Empty() == fx.Empty()) == (0, 1, fx.Boolean(True))


def test_an_arena_places_one_after_the_other():
    arena = fx.Arena(8)
    assert [arena.allocate(k) for k in (fx.Int8, Inner, fx.Array[fx.Float16, 5])] == [0, 4, 12]
    assert (arena.size, arena.alignment) == (22, 8)
    assert arena.allocate(fx.Align[fx.Int8, 64]) == 64 and arena.alignment == 64
    assert arena.allocate(fx.Int8, 16) == 80


FUTURE = """
from __future__ import annotations

def factory(n):
    element = fx.Float32

    @fx.struct
    class Local:
        a: fx.Array[element, n]
        b: "fx.Int8" = 3
    return Local

def outer(wide):
    def inner():
        @fx.struct
        class Deep:
            x: wide
            y: fx.Array[fx.Int8, Deep_count]
            Deep_count = 5
        return Deep
    return inner()

Made = factory(6)
Deep = outer(fx.Float64)
"""


def test_annotations_that_are_texts_L24():
    """L24: `from __future__ import annotations`, with names of the functions around the class."""
    names = cell(FUTURE)
    assert (names["Made"].size, names["Made"].b.offset, names["Made"](a=[0] * 6).b.value) == (28, 24, 3)
    assert (names["Deep"].size, names["Deep"].y.size) == (16, 5)


DECLARATIONS: dict[str, tuple[str, str, str]] = {
    "unresolved": ('x: "fx.Int32 + nothing"', "'fx.Int32 + nothing' of field 'x' of struct S cannot be resolved (name",
                   "known where the class is written"),
    "misspelt": ('x: "fx.Flaot32"', "field 'x' of struct S is annotated fx.Flaot32: fx has no name", "fx.Float32"),
    "int": ("x: int", "field 'x' of struct S is int, which has no place in memory", "fx.Int32"),
    "a value": ("x: 3", "field 'x' of struct S is 3", "fx numbers"),
    "tensor": ("x: fx.Tensor", "is Tensor, which has no place in memory", "fx.Array"),
    "base": ("x: fx.Numeric", "is Numeric, which has no place in memory", "fx numbers"),
    "a list": ("x: [fx.Int32]", "has no place in memory", "fx.Array"),
    "int4": ("x: fx.Int4", "field 'x' of struct S is Int4, of 4 bits", "fx.Array[fx.Uint8, n]"),
    "fp6 array": ("x: fx.Array[fx.Float6E2M3FN, 32]", "the element of an fx.Array is Float6E2M3FN, of 6 bits", "Uint8"),
    "array of nothing": ("x: fx.Array[fx.Int8, 0]", "fx.Array[Int8, 0] has no elements", "fx.Empty"),
    "array of half": ("x: fx.Array[fx.Int8, 2.5]", "2.5 is no integer", "how many elements"),
    "array without a count": ("x: fx.Array[fx.Int8]", "fx.Array[...] of 1 item", "fx.Array[fx.Float16, 4096]"),
    "array of int": ("x: fx.Array[int, 4]", "the element of an fx.Array is int", "fx.Int32"),
    "array of aligned": ("x: fx.Array[fx.Align[fx.Int8, 4], 4]", "an alignment is of a field", "element, count, align"),
    "align 3": ("x: fx.Align[fx.Int8, 3]", "3 is no power of 2", "4, 8, 16"),
    "align down": ("x: fx.Align[fx.Float64, 4]", "Float64 is aligned to 8 bytes by itself", "raised and not lowered"),
    "align of nothing": ("x: fx.Align[fx.Int8]", "fx.Align[", "fx.Align[fx.Float32, 16]"),
    "default": ("x: fx.Int32 = 'a'", "the default of field 'x' of struct S is a Int32, and gets 'a'", "a number"),
    "default list": ("x: fx.Array[fx.Int8, 3] = [1, 2]", "has 3 elements, and gets 2", "as many"),
    "reserved": ("view: fx.Int32", "structs and their storage have a 'view' of their own", "call it otherwise"),
}


@pytest.mark.parametrize("name", DECLARATIONS)
def test_refused_declarations(name):
    body, message, hint = DECLARATIONS[name]
    with pytest.raises(FlylabError) as caught:
        cell(f"@fx.struct\nclass S:\n    {body}\n")
    assert message in caught.value.message and hint in caught.value.hint


CLASSES: dict[str, tuple[str, str, str]] = {
    "two parents": ("@fx.struct\nclass A:\n  x: fx.Int8\n@fx.struct\nclass B:\n  y: fx.Int8\n"
                    "class C(A, B):\n  pass", "struct C inherits from A and B", "as fields"),
    "twice": ("@fx.struct\nclass A:\n  x: fx.Int8\n@fx.struct\nclass B(A):\n  x: fx.Int8",
              "field 'x' of struct B is a field of A already", "otherwise"),
    "plain parent": ("class A:\n  x: fx.Int8\n@fx.struct\nclass B(A):\n  y: fx.Int8",
                     "inherits from A, which has fields and is no struct", "above A"),
    "union of a struct": ("@fx.struct\nclass A:\n  x: fx.Int8\n@fx.union\nclass B(A):\n  y: fx.Int8",
                          "@fx.union on B, which inherits from the other kind", "as a field"),
    "union of a union": ("@fx.union\nclass A:\n  x: fx.Int8\n@fx.union\nclass B(A):\n  y: fx.Int8",
                         "union B inherits from A", "as fields"),
    "empty union": ("@fx.union\nclass A:\n  pass", "union A has no fields", "annotate"),
    "union with a default": ("@fx.union\nclass A:\n  x: fx.Int8 = 1", "field 'x' of union A has a default", "make one"),
    "an option": ("@fx.struct(packed=True)\nclass A:\n  x: fx.Int8", "struct A: no option packed", "align="),
    "an option of a child": ("@fx.struct\nclass A:\n  x: fx.Int8\n@fx.struct(pack=1)\nclass B(A):\n  y: fx.Int8",
                             "struct B: no option pack", "align="),
    "a function": ("@fx.struct\ndef f():\n  pass", "@fx.struct on <function f", "above a class"),
    "slots": ("@fx.struct\nclass A:\n  __slots__ = ('q',)\n  x: fx.Int8", "which has __slots__", "leave them out"),
}


@pytest.mark.parametrize("name", CLASSES)
def test_refused_classes(name):
    text, message, hint = CLASSES[name]
    with pytest.raises(TraceError) as caught:
        cell(text)
    assert message in caught.value.message and hint in caught.value.hint
    assert caught.value.where is not None and caught.value.where.file.startswith("<cell")


def test_sizes_of_what_has_none():
    for question in (fx.sizeof, fx.alignof):
        with pytest.raises(TraceError, match="is int, which has no place in memory"):
            question(int)


def test_a_dtype_of_numpy_is_no_field():
    with pytest.raises(TraceError, match="is float32, which has no place in memory"):
        fx.Array[np.float32, 4]


def test_layouts_need_no_mlir():
    text = ("import sys; sys.modules['mlir'] = sys.modules['llvmlite'] = None\n"
            "import flylab.expr as fx\n"
            "@fx.struct\nclass S:\n    a: fx.Int8\n    b: fx.Array[fx.Float64, 2] = [1, 2]\n"
            "print(S.size, S.offsetof('b[1]'), S(3).replace(a=4), S.table.rows[1])")
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.stdout == "24 16 S(a=Int8(4), b=(Float64(1.0), Float64(2.0))) (1, 7, 1, '', 'padding')\n", done.stderr
