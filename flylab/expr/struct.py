"""Structs and unions in C layout: `fx.struct`, `fx.union`, `fx.Array`, `fx.Align`, and their storage in memory.

    @fx.struct
    class Shared:
        a: fx.Array[fx.Float16, 8192]
        b: fx.Align[fx.Array[fx.Float16, 8192], 128]
        count: fx.Int32 = 0

    print(Shared.table)
"""

from __future__ import annotations

import types
from typing import Any

from flylab.errors import TraceError
from flylab.expr.storage import Peeked, Storage
from flylab.expr.struct_declaration import raise_alignment
from flylab.expr.struct_layout import (
    Align,
    Array,
    Field,
    Laid,
    alignof,
    offsetof,
    sizeof,
)
from flylab.expr.struct_table import Arena, Table
from flylab.expr.struct_values import (
    Elements,
    Struct,
    Union,
    assembled,
    numbers_in,
)
from flylab.places import here

__all__ = [
    "Align", "Arena", "Array", "Elements", "Empty", "Field", "Peeked", "Storage", "Laid", "Struct", "Table",
    "alignof", "assembled", "is_composite_type", "is_struct_type", "numbers_in", "offsetof", "sizeof", "struct",
    "union",
]  # fmt: skip


def _made(base: type[Struct], klass: Any, options: dict[str, Any]) -> Any:
    word = "union" if base is Union else "struct"
    if klass is None:
        return lambda later: _made(base, later, options)
    if not isinstance(klass, type):
        raise TraceError(f"@fx.{word} on {klass!r}", where=here(), hint="it goes above a class with annotated fields")
    if isinstance(klass, Laid):  # it inherits from a struct, and so is declared
        if klass.__struct__.is_union != (base is Union):
            raise TraceError(f"@fx.{word} on {klass.__name__}, which inherits from the other kind", where=here(),
                             hint="put one into the other as a field")
        if options:
            raise_alignment(klass, options)
        return klass
    if "__slots__" in vars(klass):
        raise TraceError(f"@fx.{word} on {klass.__name__}, which has __slots__", where=here(), hint="leave them out")
    inherited = tuple(b for b in klass.__bases__ if b is not object)
    body = {name: value for name, value in vars(klass).items() if name not in ("__dict__", "__weakref__")}
    made = types.new_class(klass.__name__, (*inherited, base), options,
                           lambda names: names.update(body, __qualname__=klass.__qualname__))
    _hand_over(klass, made)
    return made


def _hand_over(old: type, new: type) -> None:
    """Make methods that say `super()` or `__class__` mean the new class."""
    for value in vars(old).values():
        for each in (value, getattr(value, "__func__", None), *(getattr(value, n, None) for n in ("fget", "fset"))):
            for cell in getattr(each, "__closure__", None) or ():
                if cell.cell_contents is old:
                    cell.cell_contents = new


def struct(klass: Any = None, /, **options: Any) -> Any:
    """Make a class of annotated fields a struct: `@fx.struct`, or `@fx.struct(align=64)`.

    Fields are numbers, `fx.Array[...]`, `fx.Align[...]`, other structs and unions, laid out as C does. An object holds
    a value for each. `S.size`, `S.align`, `S.offsetof("x")` and `S.x` tell where they lie, `S.table` prints it;
    `S.at(pointer)`, `S.load` and `S.store` reach one in memory. See `Struct`.
    """
    return _made(Struct, klass, options)


def union(klass: Any = None, /, **options: Any) -> Any:
    """Make a class of annotated fields a union: its fields share their bytes. See `Union`."""
    return _made(Union, klass, options)


@struct
class Empty:
    """A struct without fields, of no bytes: for a field that a variant of a struct does not need."""


def is_struct_type(obj: Any) -> bool:
    """True for a struct as `fx.struct` makes it, a class; not for a union, and not for its objects.

    >>> is_struct_type(Empty), is_struct_type(Empty())
    (True, False)
    """
    return isinstance(obj, Laid) and not obj.__struct__.is_union


def is_composite_type(obj: Any) -> bool:
    """True for what is made of several values: structs, unions and `fx.Array[...]`.

    >>> import flylab.expr as fx
    >>> is_composite_type(fx.Array[fx.Int32, 2]), is_composite_type(fx.Int32)
    (True, False)
    """
    return isinstance(obj, (Laid, Array))
