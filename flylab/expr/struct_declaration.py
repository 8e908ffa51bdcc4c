"""What a class body declares: the fields of a struct or union, checked and laid out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from flylab.errors import TraceError
from flylab.expr.struct_annotations import resolved
from flylab.expr.struct_layout import BYTES, MISSING, Field, Laid, checked_align, kind_of, place, round_up
from flylab.expr.struct_values import Alternative, Member, Union, converted
from flylab.places import here

RESERVED = frozenset("leaves leaf_names with_leaves replace peek poke ptr view load".split())
"""What structs and their storage answer to by themselves."""


def declared(name: str, bases: tuple[type, ...], names: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    """The body of a struct's class: `names`, with a `Member` for each field, and where they lie as `__struct__`.

    Raises `TraceError` for what cannot be a field, and for bases that cannot be inherited from.
    """
    is_union = any(issubclass(b, Union) for b in bases)
    word = f"{'union' if is_union else 'struct'} {name}"
    align = _align(word, options)
    parent = _parent(word, bases, is_union)
    wanted = []
    for each, annotation in resolved(names, word).items():
        what = f"field '{each}' of {word}"
        _check_name(each, what, parent)
        kind, asked = kind_of(annotation, what)
        default = names.get(each, MISSING)
        if default is not MISSING:
            if is_union:
                raise TraceError(f"{what} has a default", where=here(), hint="give the value when you make one")
            default = converted(kind, default, f"the default of {what}")
        wanted.append((each, kind, asked, default))
    if is_union and not wanted:
        raise TraceError(f"{word} has no fields", where=here(), hint="annotate some: x: fx.Float32")
    own = place(wanted, is_union, parent.size, max(align, parent.align))
    member: Callable[[Field], Member] = Alternative if is_union else Member
    made = {**names, **{each: member(field) for each, field in own.fields.items()}, "__struct__": own}
    if is_union:
        made[BYTES] = Member(own.stored[BYTES])
    elif parent.fields:
        fields = {**parent.fields, **own.fields}
        made["__struct__"] = replace(own, fields=fields, stored=fields)
    return made


def raise_alignment(kind: Laid, options: dict[str, Any]) -> None:
    """Give a struct that is laid out already the alignment that the options of its decorator ask for."""
    align = max(_align(f"struct {kind.__name__}", options), kind.align)
    kind.__struct__ = replace(kind.__struct__, size=round_up(kind.size, align), align=align)


def _align(word: str, options: dict[str, Any]) -> int:
    unknown = [option for option in options if option != "align"]
    if unknown:
        raise TraceError(f"{word}: no option {', '.join(unknown)}", where=here(), hint="there is align=, in bytes")
    return checked_align(options.get("align", 1), None, word)


def _parent(word: str, bases: tuple[type, ...], is_union: bool) -> Laid:
    """The struct that a class inherits from (`Struct` itself for none)."""
    parents = [b for b in bases if isinstance(b, Laid)]
    if len(parents) != 1 or (is_union and parents[0] is not Union):
        raise TraceError(
            f"{word} inherits from {' and '.join(p.__name__ for p in parents)}",
            where=here(),
            hint="a struct inherits from one struct, a union from none; put others into it as fields",
        )
    for base in (c for b in bases if not isinstance(b, Laid) for c in b.__mro__):
        if resolved(dict(vars(base)), base.__name__):
            raise TraceError(
                f"{word} inherits from {base.__name__}, which has fields and is no struct",
                where=here(),
                hint=f"write @fx.struct above {base.__name__}",
            )
    return parents[0]


def _check_name(name: str, what: str, parent: Laid) -> None:
    if name in RESERVED or name.startswith("__") or name == BYTES:
        raise TraceError(
            f"{what}: structs and their storage have a '{name}' of their own", where=here(), hint="call it otherwise"
        )
    if name in parent.fields:
        raise TraceError(f"{what} is a field of {parent.__name__} already", where=here(), hint="call it otherwise")
