"""`fx.struct` and `fx.union`: classes declared with annotated fields, and their objects, which hold a number for each.

An object is plain Python state: `vars(s)` holds the value of each field, which may be saved and put back. A number is
of its field's format, an array of numbers is a Vector in a kernel and a tuple elsewhere, other arrays are tuples, a
struct in a struct is an object of its own. A union holds its bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, TypeVar

from flylab.errors import ArgumentError, TraceError
from flylab.expr.location import name_of
from flylab.expr.numeric import Numeric, compare, is_mlir_value
from flylab.expr.promotion import plain
from flylab.expr.state import current_kernel
from flylab.expr.struct_layout import (
    BYTES,
    MISSING,
    Array,
    Field,
    Laid,
    Placed,
    close_names,
    is_number,
    name_of_kind,
)
from flylab.expr.vector import Vector
from flylab.shown import a_kind

S = TypeVar("S", bound="Struct")


class UnknownField(TraceError, AttributeError):
    """A field that a struct does not have, or that has no value."""


class Elements(tuple[Any, ...]):
    """The elements of an array that is no Vector. Like a tuple; an element is set by setting the whole field."""

    __slots__ = ()

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TraceError(
            f"[{index}] = ... of {name_of(self, 'an array in a struct')}, whose elements cannot be set one by one",
            hint="set the field to a list of all elements; in memory, an element of its storage",
        )


class Member:
    """A field as its class has it: reads and sets the value of an object; `S.x` itself is the `Field`."""

    def __init__(self, field: Field):
        self.field = field

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self.field
        if self.field.name not in vars(instance):
            raise AttributeError(self.field.name)  # which asks `Struct.__getattr__`
        return in_kernel(vars(instance)[self.field.name])

    def __set__(self, instance: Any, value: Any) -> None:
        what = f"field '{self.field.name}' of {type(instance).__name__}"
        vars(instance)[self.field.name] = converted(self.field.kind, value, what)


class StructType(Laid):
    """The type of a struct: beside its bytes, what reads and writes it in memory."""

    def __new__(mcls, name: str, bases: tuple[type, ...], names: dict[str, Any], **options: Any) -> StructType:
        """Make a class; in its body, the annotated fields become `Member`s."""
        if "__struct__" not in names:  # it is in Struct and Union themselves
            from flylab.expr.struct_declaration import declared

            names = declared(name, bases, names, options)
        return super().__new__(mcls, name, bases, names)

    def at(cls, pointer: Any, index: Any = 0) -> Any:
        """The `Storage` of the struct at a pointer, or of the one `index` structs after it."""
        from flylab.expr.storage import Storage

        return Storage.at(cls, pointer, index)

    def load(cls, pointer: Any, index: Any = 0) -> Any:
        """The object that memory holds at a pointer: every field is read."""
        return cls.at(pointer, index).load()

    def store(cls, pointer: Any, value: Any, index: Any = 0) -> None:
        """Write an object to memory; padding is left as it is."""
        cls.at(pointer, index).poke(value)


class Struct(metaclass=StructType):
    """The base of structs: `@fx.struct class S: ...` makes a class with it, `class S(fx.Struct): ...` is the same.

    >>> import flylab.expr as fx
    >>> @fx.struct
    ... class Point:
    ...     x: fx.Float32
    ...     y: fx.Float32 = 0
    >>> Point(x=1), Point.size, Point.y.offset
    (Point(x=Float32(1.0), y=Float32(0.0)), 8, 4)

    Fields are given by name or in order; a value is converted to its field's format. Raises `TraceError` for a field
    that is not there, that gets no value, or a value that it cannot hold.
    """

    __struct__: ClassVar[Placed] = Placed({}, {}, 0, 1, False)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, *args: Any, **named: Any) -> None:
        kind = type(self)
        _check_arguments(kind, args, named)
        given = dict(zip(kind.fields, args, strict=False)) | named
        for name, field in kind.fields.items():
            value = given.get(name, field.default)
            if value is not MISSING:
                setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        for each in type(self).__mro__:
            if name in vars(each):
                if hasattr(vars(each)[name], "__set__"):  # a field, or a property of the user's
                    return object.__setattr__(self, name, value)
                break
        raise _unknown(type(self), name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in type(self).stored:
            raise UnknownField(
                f"field '{name}' of {name_of(self, type(self).__name__)} has no value yet",
                hint="set it first, or give its declaration a default",
            )
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)  # a property of the user's, whose own error this shows
        raise _unknown(type(self), name)

    def leaves(self) -> list[Any]:
        """The numbers and vectors that it holds, in the order of the fields."""
        return [leaf for name in type(self).stored for leaf in leaves_of(getattr(self, name))]

    def leaf_names(self) -> list[str]:
        """Where each of `leaves()` is: `x`, `corner.y`, `weights[2]`."""
        return [path for name in type(self).stored for path in names_of(getattr(self, name), name)]

    def with_leaves(self: S, leaves: Iterable[Any]) -> S:
        """An object of the same type that holds these numbers and vectors, as `leaves()` gives them."""
        rest = iter(leaves)
        made: S = like(self, rest)
        if next(rest, MISSING) is not MISSING:
            raise TraceError(f"more leaves than {a_kind(self)} has", hint="give what leaves() gives")
        return made

    def replace(self: S, **changes: Any) -> S:
        """A copy with other values in some fields: `p.replace(x=1.0)`."""
        made = copied(self)
        for name, value in changes.items():
            setattr(made, name, value)
        return made

    __replace__ = replace

    def __eq__(self, other: object) -> Any:
        """Whether all fields are equal, as an fx.Boolean; a plain False for an object of another type."""
        if type(other) is not type(self):
            return NotImplemented
        from flylab.expr.formats import Boolean

        result: Any = Boolean(True)
        for mine, theirs in zip(self.leaves(), other.leaves(), strict=True):
            pairs = zip(mine, theirs, strict=True) if isinstance(mine, Vector) else [(mine, theirs)]
            for x, y in pairs:
                result = result & compare("==", x, y)
        return result

    def __ne__(self, other: object) -> Any:
        same = self.__eq__(other)
        return NotImplemented if same is NotImplemented else ~same

    def __repr__(self) -> str:
        shown = [f"{name}={vars(self).get(name, MISSING)!r}" for name in type(self).fields]
        return f"{type(self).__name__}({', '.join(shown)})"


class Alternative(Member):
    """A field of a union as its class has it."""

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        from flylab.expr.struct_bytes import read

        if instance is None:
            return self.field
        raw = getattr(instance, BYTES)
        return read(self.field.kind, raw, 0)

    def __set__(self, instance: Any, value: Any) -> None:
        from flylab.expr.struct_bytes import write

        what = f"field '{self.field.name}' of {type(instance).__name__}"
        new = converted(self.field.kind, value, what)
        setattr(instance, BYTES, write(self.field.kind, new, getattr(instance, BYTES), 0))


class Union(Struct):
    """The base of unions: `@fx.union class U: ...`. All fields share the bytes; each reads them in its own format.

    >>> import flylab.expr as fx
    >>> @fx.union
    ... class Word:
    ...     number: fx.Float32
    ...     bits: fx.Uint32
    >>> Word(number=1.0).bits
    Uint32(1065353216)

    It is made with a value for one field, or with none: all zeros.
    """

    __struct__: ClassVar[Placed] = Placed({}, {}, 0, 1, True)

    def __init__(self, **named: Any) -> None:
        kind = type(self)
        _check_arguments(kind, (), named)
        if len(named) > 1:
            raise ArgumentError(
                f"{kind.__name__}(...) gets values for {' and '.join(map(repr, named))}, which share their bytes",
                hint="give one of them",
            )
        setattr(self, BYTES, [0] * kind.size)
        for name, value in named.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({type(self).size} bytes)"


def in_kernel(value: Any) -> Any:
    """An array of numbers, which a kernel sees as a Vector."""
    if isinstance(value, Elements) and isinstance(value[0], Numeric) and current_kernel() is not None:
        return Vector.from_elements(value, type(value[0]))
    return value


def _unknown(kind: StructType, name: str) -> UnknownField:
    return UnknownField(f"{kind.__name__} has no field '{name}'", hint=close_names(kind, name))


def _check_arguments(kind: StructType, args: tuple[Any, ...], named: dict[str, Any]) -> None:
    names = list(kind.fields)
    for name in named:
        if name not in kind.fields:
            raise _unknown(kind, name)
        if name in names[: len(args)]:
            raise ArgumentError(f"{kind.__name__}(...) gets '{name}' twice", hint="give it by name or in order")
    if len(args) > len(names):
        raise ArgumentError(
            f"{kind.__name__}(...) gets {len(args)} values, and has {len(names)} fields", hint=close_names(kind, "")
        )
    missing = [n for n in names[len(args):] if n not in named and kind.fields[n].default is MISSING]
    if missing and not kind.__struct__.is_union:
        raise ArgumentError(
            f"{kind.__name__}(...) gets no value for {', '.join(map(repr, missing))}",
            hint=f"give it by name: {kind.__name__}({missing[0]}=...), or give its declaration a default",
        )


def converted(kind: Any, value: Any, what: str) -> Any:
    """A value as a field of this type holds it. Raises `TraceError`, which begins with `what`, where it cannot."""
    if isinstance(kind, Array):
        return _array(kind, value, what)
    if isinstance(kind, Laid):
        return _composite(kind, value, what)
    if type(value) is kind:
        return value
    number: Any = plain(value)
    if isinstance(number, (Numeric, bool, int, float)) or is_mlir_value(number):
        return kind(number)
    raise TraceError(
        f"{what} is a {name_of_kind(kind)}, and gets {value!r} ({a_kind(value)})", hint="give a number"
    )


def _composite(kind: Any, value: Any, what: str) -> Any:
    if type(value) is not kind:
        raise TraceError(
            f"{what} is a {kind.__name__}, and gets {value!r} ({a_kind(value)})",
            hint=f"give a {kind.__name__}(...); of a storage, .load() is one",
        )
    return copied(value)


def _array(kind: Array, value: Any, what: str) -> Any:
    if isinstance(value, str) or not (isinstance(value, (Vector, Sequence)) or hasattr(value, "__array_interface__")):
        raise TraceError(
            f"{what} is an {kind}, and gets {value!r} ({a_kind(value)})",
            hint=f"give a list of {kind.count} elements"
            + (f": [x] * {kind.count}" if isinstance(value, (Numeric, int, float)) else ""),
        )
    if len(value) != kind.count:
        raise TraceError(f"{what} has {kind.count} elements, and gets {len(value)}", hint="give as many as it has")
    if not is_number(kind.element):
        return Elements(converted(kind.element, each, f"element {i} of {what}") for i, each in enumerate(value))
    if isinstance(value, Vector):
        same = value if value.dtype is kind.element else value.to(kind.element)
        return Vector(same, kind.count)
    elements = Elements(converted(kind.element, each, f"element {i} of {what}") for i, each in enumerate(value))
    return elements if current_kernel() is None else Vector.from_elements(elements, kind.element)


def blank(kind: Any) -> Any:
    """An object of a struct or union in which nothing is stored yet."""
    return object.__new__(kind)


def copied(value: S) -> S:
    """An object of its own with the same values (which, numbers and vectors, never change)."""
    made: S = blank(type(value))
    for name, each in vars(value).items():
        vars(made)[name] = _copied(each)
    return made


def _copied(value: Any) -> Any:
    if isinstance(value, Struct):
        return copied(value)
    return Elements(map(_copied, value)) if isinstance(value, Elements) else value


def leaves_of(value: Any) -> list[Any]:
    """The numbers and vectors in the value of a field."""
    if isinstance(value, Struct):
        return value.leaves()
    if isinstance(value, Elements):
        return [leaf for each in value for leaf in leaves_of(each)]
    return [value]


def names_of(value: Any, name: str) -> list[str]:
    """The names of the `leaves_of` the value of a field of this name."""
    if isinstance(value, Struct):
        return [f"{name}.{path}" for path in value.leaf_names()]
    if isinstance(value, Elements):
        return [path for i, each in enumerate(value) for path in names_of(each, f"{name}[{i}]")]
    return [name]


def like(value: Any, leaves: Iterator[Any], kind: Any = None) -> Any:
    """A value of the same build with other leaves."""
    if isinstance(value, Struct):
        made = blank(type(value))
        for name, field in type(value).stored.items():
            vars(made)[name] = like(getattr(value, name), leaves, field.kind)
        return made
    if isinstance(value, Elements):
        return Elements(like(each, leaves, kind.element) for each in value)
    leaf = next(leaves, MISSING)
    if leaf is MISSING:
        raise TraceError("fewer leaves than the struct has", hint="give what leaves() gives")
    return converted(kind, leaf, "a leaf")


def numbers_in(kind: Any, name: str) -> list[tuple[str, type[Numeric]]]:
    """The numbers that a value of a type is made of, in order: the path to each, from `name` on, and its format."""
    if isinstance(kind, Laid):
        return [found for f in kind.stored.values() for found in numbers_in(f.kind, f"{name}.{f.name}")]
    if isinstance(kind, Array):
        return [found for i in range(kind.count) for found in numbers_in(kind.element, f"{name}[{i}]")]
    return [(name, kind)]


def assembled(kind: Any, numbers: Iterator[Any]) -> Any:
    """The value of a type that is made of these numbers."""
    if isinstance(kind, Laid):
        made = blank(kind)
        for name, field in kind.stored.items():
            vars(made)[name] = assembled(field.kind, numbers)
        return made
    if isinstance(kind, Array):
        return in_kernel(Elements([assembled(kind.element, numbers) for _ in range(kind.count)]))
    return next(numbers)
