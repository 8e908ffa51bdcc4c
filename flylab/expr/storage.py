"""Structs, arrays and numbers in memory: a `Storage` is a place of a known type, with places for its fields."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from flylab.dtypes import BOOL
from flylab.errors import TraceError
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, as_numeric, binary, interval
from flylab.expr.recast import aligned, retyped
from flylab.expr.room import Room
from flylab.expr.span import LEAST, MOST
from flylab.expr.struct_layout import (
    Array,
    Laid,
    alignof,
    field_of,
    in_memory,
    is_number,
    is_parted,
    kind_of,
    name_of_kind,
    sizeof,
)
from flylab.expr.struct_values import Elements, blank, converted
from flylab.expr.tensor import Pointer
from flylab.expr.vector import Vector
from flylab.expr.views import make_view
from flylab.layout import Layout
from flylab.shown import a_kind


class Storage:
    """A place in memory for a number, an `fx.Array[...]`, a struct or a union.

    `storage.x` and `storage[i]` are the places of a field and of an element. `.peek()` gives what is there: a number;
    of a struct or array its fields in place (`Peeked`). `.load()` reads everything into a value, `.poke(value)` stores
    one. `.ptr` is the pointer, `.view(layout)` the elements of an array as a tensor.
    """

    __slots__ = ("_kind", "_bytes", "_parts")
    _kind: Any
    _bytes: Pointer
    _parts: Mapping[int, Pointer]
    """Pointers of their own to parts of a struct in LDS, by offset: see `flylab.expr.shared`."""

    def __init__(self, kind: Any, pointer: Pointer, parts: Mapping[int, Pointer] | None = None):
        """Of a pointer to bytes whose alignment is known to be that of the type; `Storage.at` checks it."""
        object.__setattr__(self, "_kind", kind)
        object.__setattr__(self, "_bytes", pointer)
        object.__setattr__(self, "_parts", parts or {})

    @classmethod
    def at(cls, kind: Any, pointer: Any, index: Any = 0) -> Storage:
        """The place at a pointer, whose format does not matter, or `index` places of the same type after it.

        That the address has the alignment of the type is checked, on the device where it is not known before.
        """
        kind, align = kind_of(kind, "what a Storage holds")
        if not isinstance(pointer, Pointer):
            raise TraceError(
                f"{name_of_kind(kind)} at {a_kind(pointer)}", hint="give a pointer: fx.get_iter(tensor)"
            )
        base = aligned(pointer, max(align, alignof(kind)), CLASSES["Uint8"], name_of_kind(kind))
        return cls(kind, moved(base, index, sizeof(kind)))

    @property
    def ptr(self) -> Pointer:
        """The pointer: to numbers of the array's or the place's own format, else to bytes. Booleans are bytes."""
        kind = self._kind.element if isinstance(self._kind, Array) else self._kind
        if not is_number(kind):
            return self._bytes
        pointer = retyped(self._bytes, in_memory(kind), self._bytes.spec.known_align)
        if kind is self._kind:
            return pointer
        return Pointer(pointer.value, pointer.reach, Room(self._kind.count, self._kind))

    def view(self, layout: Any = None) -> Any:
        """The numbers of an array as a tensor, one after the other or through a layout.

        Raises `TraceError` for a layout that goes beyond the array.
        """
        kind = self._kind
        if not isinstance(kind, Array) or not is_number(kind.element):
            raise TraceError(f"view of a {name_of_kind(kind)}", hint="an array of numbers can be seen through a layout")
        return make_view(self.ptr, Layout(kind.count, 1) if layout is None else layout)

    def peek(self) -> Any:
        """What is there: a number is read; a struct or an array gives its fields in place, to be read one by one."""
        return self.load() if is_number(self._kind) else Peeked(self)

    def load(self) -> Any:
        """All of it as a value: a number, a Vector, an object of the struct."""
        kind = self._kind
        if isinstance(kind, Laid):
            made = blank(kind)
            for name in kind.stored:
                vars(made)[name] = self._field(kind.stored[name]).load()
            return made
        if isinstance(kind, Array) and not is_number(kind.element):
            return Elements(self[i].load() for i in range(kind.count))
        vector = self._numbers().load()
        if (kind.element if isinstance(kind, Array) else kind).dtype.kind == BOOL:
            vector = Vector.compared("!=", vector, 0)
        return Vector(vector, kind.count) if isinstance(kind, Array) else vector[0]

    def poke(self, value: Any) -> None:
        """Store a value: a number, the elements of an array, an object of the struct. Padding is left as it is."""
        self._store(converted(self._kind, value, f"a {name_of_kind(self._kind)} in memory"))

    def _store(self, value: Any) -> None:
        kind = self._kind
        if isinstance(kind, Laid):
            for name in kind.stored:
                self._field(kind.stored[name])._store(getattr(value, name))
        elif isinstance(kind, Array) and not is_number(kind.element):
            for i, each in enumerate(value):
                self[i]._store(each)
        elif isinstance(kind, Array):
            self._numbers().store(value.to(in_memory(kind.element)))
        else:
            self._numbers().fill(in_memory(kind)(value))

    def _numbers(self) -> Any:
        return make_view(self.ptr, Layout(self._kind.count if isinstance(self._kind, Array) else 1, 1))

    def _field(self, field: Any) -> Storage:
        kind, start, end = field.kind, field.offset, field.offset + field.size
        inside = {at - start: part for at, part in self._parts.items() if start <= at < end}
        if inside and not is_parted(kind):
            return Storage(kind, inside[0])
        return Storage(kind, moved(self._bytes, start, 1), inside)

    def __getattr__(self, name: str) -> Storage:
        if name.startswith("__") or name in Storage.__slots__:
            raise AttributeError(name)
        kind = self._kind
        if not isinstance(kind, Laid):
            raise TraceError(f".{name} of a {name_of_kind(kind)} in memory", hint="it has .peek(), .poke(x) and .ptr")
        return self._field(field_of(kind, name))

    def __setattr__(self, name: str, value: Any) -> None:
        raise TraceError(
            f".{name} = ... of a {name_of_kind(self._kind)} in memory", hint=f"store it: .{name}.poke(value)"
        )

    def __getitem__(self, index: Any) -> Storage:
        kind = self._kind
        if not isinstance(kind, Array):
            raise TraceError(f"[...] of a {name_of_kind(kind)} in memory, which has no elements", hint="name a field")
        return Storage(kind.element, moved(self._bytes, _checked_index(index, kind), kind.stride))

    def __len__(self) -> int:
        if not isinstance(self._kind, Array):
            raise TraceError(f"len of a {name_of_kind(self._kind)} in memory", hint="an array has one")
        return int(self._kind.count)

    def __iter__(self) -> Iterator[Storage]:
        return (self[i] for i in range(len(self)))

    def __bool__(self) -> bool:
        raise TraceError(f"a {name_of_kind(self._kind)} in memory as a condition", hint="compare what .peek() gives")

    def __dir__(self) -> list[str]:
        fields = self._kind.fields if isinstance(self._kind, Laid) else ()
        return ["load", "peek", "poke", "ptr", "view", *fields]

    def __repr__(self) -> str:
        return f"Storage({name_of_kind(self._kind)}, {self._bytes.spec.space})"


class Peeked:
    """The fields of a struct, or the elements of an array, in place: naming one reads it, setting one stores it.

    What is no number is a `Peeked` of its own; an array has `.view(layout)`, `.ptr`, `[i]` and a length.
    """

    __slots__ = ("_storage",)
    _storage: Storage

    def __init__(self, storage: Storage):
        object.__setattr__(self, "_storage", storage)

    @property
    def ptr(self) -> Pointer:
        """The pointer of its storage."""
        return self._storage.ptr

    def view(self, layout: Any = None) -> Any:
        """The numbers of an array as a tensor; see `Storage.view`."""
        return self._storage.view(layout)

    def load(self) -> Any:
        """All of it as a value; see `Storage.load`."""
        return self._storage.load()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in Peeked.__slots__:
            raise AttributeError(name)
        return getattr(self._storage, name).peek()

    def __setattr__(self, name: str, value: Any) -> None:
        self._storage.__getattr__(name).poke(value)

    def __getitem__(self, index: Any) -> Any:
        return self._storage[index].peek()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._storage[index].poke(value)

    def __len__(self) -> int:
        return len(self._storage)

    def __iter__(self) -> Iterator[Any]:
        return (each.peek() for each in self._storage)

    def __dir__(self) -> list[str]:
        return dir(self._storage)

    def __repr__(self) -> str:
        return f"Peeked({self._storage!r})"


def _checked_index(index: Any, kind: Array) -> Any:
    number = as_numeric(index)
    if number.is_static and not 0 <= int(number) < kind.count:
        raise TraceError(
            f"element {int(number)} of {kind}", hint=f"its elements are 0 to {kind.count - 1}, and -1 is none of them"
        )
    return number


def moved(pointer: Pointer, index: Any, stride: int) -> Pointer:
    """A pointer to bytes moved by `index` times `stride` bytes."""
    number = as_numeric(index)
    if number.dtype.is_float or number.dtype.bits > 64:
        raise TraceError(f"{name_of(index, repr(index))} as an index is {number.dtype}", hint="convert it: fx.Int32(x)")
    if number.is_static and int(number) * stride == 0:
        return pointer
    low, high = (end * stride for end in interval(number))
    wide = CLASSES["Int32" if low >= LEAST and high <= MOST else "Int64"](number)
    return pointer + binary("*", wide, stride)


