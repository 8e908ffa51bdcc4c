"""How numbers, arrays, structs and unions lie in memory: sizes, alignments and offsets in bytes, as in C on x86-64.

A field begins at the next multiple of its alignment, the size of a struct is a multiple of its own, which is the
largest of its fields', and the fields of a union all begin at 0. A number is aligned to its size; a Boolean is a byte.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flylab.dtypes import BOOL
from flylab.errors import LayoutError, TraceError
from flylab.expr.numeric import CLASSES, Numeric
from flylab.expr.promotion import plain

if TYPE_CHECKING:
    from flylab.expr.struct_table import Table


@dataclass(frozen=True)
class Placed:
    """The fields of a struct or union by name, with its size and alignment in bytes.

    `stored` is what its objects store: the fields; of a union, the bytes that they share.
    """

    fields: Mapping[str, Field]
    stored: Mapping[str, Field]
    size: int
    align: int
    is_union: bool


class Laid(type):
    """The type of a struct or union, as `fx.struct` and `fx.union` make it: what is known of its bytes.

    These are attributes of the class and not of its objects, whose names are left to the fields.
    """

    __struct__: Placed

    @property
    def fields(cls) -> Mapping[str, Field]:
        """The fields by name."""
        return cls.__struct__.fields

    @property
    def stored(cls) -> Mapping[str, Field]:
        """What an object stores: its fields, or the bytes of a union."""
        return cls.__struct__.stored

    @property
    def is_union(cls) -> bool:
        """Whether the fields share their bytes."""
        return cls.__struct__.is_union

    @property
    def size(cls) -> int:
        """Bytes, padding included."""
        return cls.__struct__.size

    @property
    def align(cls) -> int:
        """The alignment in bytes."""
        return cls.__struct__.align

    @property
    def table(cls) -> Table:
        """Each field's offset, size and alignment, to be printed."""
        from flylab.expr.struct_table import table_of

        return table_of(cls)

    def offsetof(cls, path: str) -> int:
        """The offset in bytes of a field; see `flylab.expr.struct.offsetof`."""
        return offsetof(cls, path)


@dataclass(frozen=True)
class Array:
    """`count` elements one after the other: `fx.Array[fx.Float16, 4096]`, or with an alignment in bytes as the third.

    >>> import flylab.expr as fx
    >>> buffer = fx.Array[fx.Float16, 4096, 16]
    >>> print(buffer, sizeof(buffer), alignof(buffer))
    Array[Float16, 4096, 16] 8192 16

    Raises `TraceError` for an element that is no number, array, struct or union, and for a count below 1.
    """

    element: Any
    count: int
    align: int = 0

    def __class_getitem__(cls, given: Any) -> Array:
        items = given if isinstance(given, tuple) else (given,)
        if not 2 <= len(items) <= 3:
            raise TraceError(
                f"fx.Array[...] of {len(items)} item{'s' * (len(items) != 1)}",
                hint="give the element and how many: fx.Array[fx.Float16, 4096], and an alignment in bytes if you like",
            )
        return cls(*items)

    def __post_init__(self) -> None:
        element, align = kind_of(self.element, "the element of an fx.Array")
        if align:
            raise TraceError(
                f"fx.Array[fx.Align[...], {self.count}]: an alignment is of a field, and not of an element",
                hint="give the array the alignment: fx.Array[element, count, align]",
            )
        count = _whole(self.count, f"fx.Array[{name_of_kind(element)}, {self.count!r}]", "how many elements it has")
        if count < 1:
            raise TraceError(
                f"fx.Array[{name_of_kind(element)}, {count}] has no elements",
                hint="leave the field out, or declare it fx.Empty",
            )
        wanted = self.align and checked_align(self.align, element, str(self))
        for name, value in (("element", element), ("count", count), ("align", wanted)):
            object.__setattr__(self, name, value)

    @property
    def stride(self) -> int:
        """Bytes from one element to the next."""
        return round_up(sizeof(self.element), alignof(self.element))

    def __str__(self) -> str:
        return f"Array[{name_of_kind(self.element)}, {self.count}{f', {self.align}' if self.align else ''}]"


@dataclass(frozen=True)
class Align:
    """A field's type with a larger alignment in bytes: `x: fx.Align[fx.Float32, 16]`. Its size stays.

    Raises `TraceError` for what is no power of 2, or less than the type has by itself.
    """

    kind: Any
    align: int

    def __class_getitem__(cls, given: Any) -> Align:
        if not isinstance(given, tuple) or len(given) != 2:
            raise TraceError(f"fx.Align[{given!r}]", hint="give a type and bytes: fx.Align[fx.Float32, 16]")
        return cls(*given)

    def __post_init__(self) -> None:
        kind, before = kind_of(self.kind, "the type of an fx.Align")
        align = max(before, checked_align(self.align, kind, f"fx.Align[{name_of_kind(kind)}, {self.align!r}]"))
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "align", align)


@dataclass(frozen=True)
class Field:
    """One field: its type, and where it begins, in bytes. `default` is MISSING where it has none."""

    name: str
    kind: Any
    offset: int
    align: int
    default: Any

    @property
    def size(self) -> int:
        """Its bytes."""
        return sizeof(self.kind)

    def __repr__(self) -> str:
        return f"<field {self.name}: {name_of_kind(self.kind)}, {self.size} bytes at {self.offset}>"


MISSING = type("Missing", (), {"__repr__": lambda self: "MISSING"})()
"""What stands for no value, where None would be one."""
BYTES = "_bytes"
"""The name under which an object of a union stores its bytes."""


def round_up(n: int, multiple: int) -> int:
    """The least multiple of a number that is not below `n`.

    >>> round_up(13, 8)
    16
    """
    return -(-n // multiple) * multiple


def _whole(value: Any, what: str, meaning: str) -> int:
    try:
        if not isinstance(value, bool):
            return operator.index(plain(value))
    except TypeError:
        pass
    raise TraceError(f"{what}: {value!r} is no integer", hint=f"it is {meaning}: an integer, known while tracing")


def checked_align(align: Any, kind: Any, what: str) -> int:
    """An alignment in bytes. Raises `TraceError` for one that is no power of 2, or below the type's own."""
    wanted, own = _whole(align, what, "an alignment in bytes"), alignof(kind) if kind is not None else 1
    if wanted < 1 or wanted & (wanted - 1):
        raise TraceError(f"{what}: {wanted} is no power of 2", hint="give an alignment in bytes: 4, 8, 16 ...")
    if wanted < own:
        raise TraceError(
            f"{what}: {name_of_kind(kind)} is aligned to {own} bytes by itself",
            hint="an alignment can be raised and not lowered; declare bytes: fx.Array[fx.Uint8, n]",
        )
    return wanted


def is_number(kind: Any) -> bool:
    """True for a number format, such as `fx.Float32`."""
    return isinstance(kind, type) and issubclass(kind, Numeric) and hasattr(kind, "dtype")


def is_parted(kind: Any) -> bool:
    """True for a struct, whose fields lie beside each other; not for a union, whose fields share their bytes."""
    return isinstance(kind, Laid) and not kind.is_union


INSTEAD = {int: "fx.Int32 (or another width)", float: "fx.Float32 (or another width)", bool: "fx.Boolean"}


def kind_of(annotation: Any, what: str) -> tuple[Any, int]:
    """The type that an annotation names, and the alignment that it asks for (0 for none).

    Raises `TraceError`, which begins with `what`, for anything without a known number of bytes.
    """
    if isinstance(annotation, Align):
        return annotation.kind, annotation.align
    if isinstance(annotation, (Array, Laid)):
        return annotation, 0
    if is_number(annotation):
        dtype = annotation.dtype
        if dtype.bits % 8 and dtype.kind != BOOL:
            raise TraceError(
                f"{what} is {dtype}, of {dtype.bits} bits: less than a byte has no address",
                hint="hold several in bytes: fx.Array[fx.Uint8, n]",
            )
        return annotation, 0
    hint = "fx numbers, fx.Array[...], fx.Align[...], structs and unions can be stored"
    if isinstance(annotation, type) and annotation in INSTEAD:
        hint = f"how many bytes it has is not said: use {INSTEAD[annotation]}"
    shown = getattr(annotation, "__name__", None) or repr(annotation)
    raise TraceError(f"{what} is {shown}, which has no place in memory", hint=hint)


def name_of_kind(kind: Any) -> str:
    """A type as it is shown: `Float32`, `Array[Float16, 8]`, the name of a struct."""
    return str(kind) if isinstance(kind, Array) else str(getattr(kind, "__name__", kind))


def sizeof(kind: Any) -> int:
    """The bytes of a number format, array, struct or union.

    >>> import flylab.expr as fx
    >>> sizeof(fx.BFloat16), sizeof(fx.Boolean), sizeof(fx.Array[fx.Int32, 3])
    (2, 1, 12)
    """
    kind, _ = kind_of(kind, "what sizeof is asked for")
    if isinstance(kind, Array):
        return kind.count * kind.stride
    return kind.size if isinstance(kind, Laid) else max(kind.dtype.bits // 8, 1)


def alignof(kind: Any) -> int:
    """The alignment in bytes of a number format, array, struct or union.

    >>> import flylab.expr as fx
    >>> alignof(fx.Int128), alignof(fx.Array[fx.Int32, 3])
    (16, 4)
    """
    kind, align = kind_of(kind, "what alignof is asked for")
    if isinstance(kind, Array):
        return max(align, kind.align, alignof(kind.element))
    return max(align, kind.align if isinstance(kind, Laid) else sizeof(kind))


def offsetof(kind: Any, path: str) -> int:
    """The offset in bytes of a field, or of a field of a field, or an element: `offsetof(S, "items[2].x")`.

    >>> import flylab.expr as fx
    >>> offsetof(fx.Array[fx.Int32, 3], "[2]")
    8

    Raises `LayoutError` for a path that is not there.
    """
    offset = 0
    if not re.fullmatch(r"(\w+|\[\d+\])(\.\w+|\[\d+\])*", path):
        raise LayoutError(f"offsetof(..., {path!r})", hint='a path is like "x", "inner.x" or "items[2].x"')
    for name, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        if index:
            if not isinstance(kind, Array) or int(index) >= kind.count:
                raise LayoutError(f"offsetof: {name_of_kind(kind)} has no element {index}", hint="see fx.sizeof")
            offset, kind = offset + int(index) * kind.stride, kind.element
        else:
            field = field_of(kind, name) if isinstance(kind, Laid) else None
            if field is None:
                raise LayoutError(f"offsetof: {name_of_kind(kind)} has no fields", hint="ask a struct")
            offset, kind = offset + field.offset, field.kind
    return offset


def field_of(kind: Laid, name: str) -> Field:
    """A field by name. Raises `LayoutError` with close names where there is none."""
    found = kind.fields.get(name)
    if found is None:
        raise LayoutError(f"{name_of_kind(kind)} has no field '{name}'", hint=close_names(kind, name))
    return found


def close_names(kind: Laid, name: str) -> str:
    """A hint: the fields that `name` may have meant, or all."""
    import difflib

    close = difflib.get_close_matches(name, kind.fields, n=3)
    if close:
        return "did you mean " + " or ".join(f"'{c}'" for c in close) + "?"
    return f"its fields are {', '.join(kind.fields)}" if kind.fields else "it has none"


def place(wanted: list[tuple[str, Any, int, Any]], is_union: bool, start: int, align: int) -> Placed:
    """The fields (name, type, alignment asked for, default) placed from `start` on.

    `align` is the least alignment of the whole.
    """
    placed, at, end = [], start, start
    for name, kind, asked, default in wanted:
        own = max(asked, alignof(kind))
        align = max(align, own)
        offset = 0 if is_union else round_up(at, own)
        placed.append(Field(name, kind, offset, own, default))
        at = offset + sizeof(kind)
        end = max(end, at)
    fields = {field.name: field for field in placed}
    if not is_union:
        return Placed(fields, fields, round_up(end, align), align, False)
    size = round_up(end, align)
    return Placed(fields, {BYTES: Field(BYTES, Array(CLASSES["Uint8"], size), 0, align, MISSING)}, size, align, True)


def in_memory(kind: type[Numeric]) -> type[Numeric]:
    """The format that a number is loaded and stored in: bytes for a Boolean."""
    return CLASSES["Uint8"] if kind.dtype.kind == BOOL else kind
