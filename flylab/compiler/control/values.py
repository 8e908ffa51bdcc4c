"""What a variable's value is made of: the numbers, vectors and pointers in it that can differ from path to path.

A value is taken apart into a tree; two trees of one form are joined, leaf by leaf, and what comes of it is put together
again. What is the same on both paths stays as it is, known or not.
"""

from __future__ import annotations

import copy
import functools
import math
import types
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from flylab.atoms import CopyAtom, CopyOp, MmaAtom, MmaOp, TiledCopy, TiledMma
from flylab.compiler.users import PLAIN, exact, is_users
from flylab.dialect.types import Ptr, to_mlir
from flylab.dtypes import BOOL, DTYPES, dtype_text
from flylab.errors import TraceError
from flylab.expr.atom_state import whole_state, with_whole_state
from flylab.expr.emit import fly, mlir_type, op
from flylab.expr.layout_value import LayoutValue
from flylab.expr.numeric import CLASSES, Numeric, as_numeric, divisor_of, interval
from flylab.expr.span import LEAST, MOST, Span
from flylab.expr.storage import Peeked, Storage
from flylab.expr.struct_layout import name_of_kind
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.tiled import ThrCopy, ThrMma
from flylab.expr.vector import Vector
from flylab.expr.views import (
    composed_get_inner,
    composed_get_offset,
    get_iter,
    make_composed_layout,
    make_layout,
    make_view,
)
from flylab.layout import ComposedLayout, Layout, Swizzle
from flylab.layout.layout import has_basis

ANYWHERE = Span(LEAST, MOST, False)
"""Where a buffer's pointer can be that a loop moves."""

OPAQUE = frozenset({"flylab", "numpy", "torch", "mlir", "enum"})
"""Packages whose objects are one thing each."""
HEAP_TYPE = 1 << 9
"""The flag (Py_TPFLAGS_HEAPTYPE) of classes written in Python, which `exec` may have left without a module."""

HEAP_TYPE = 1 << 9
"""The flag of a class that a `class` statement made."""


COMPOSED = "a composed layout"
"""The form of its tree, beside its outer part."""


class _Nothing:
    """The value of what has none yet: the result of a function before its `return`."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = _Nothing()


class Mismatch(Exception):
    """Two values that no one value can stand for: `path` leads to the part, `a` and `b` say what they are."""

    def __init__(self, path: str, a: str, b: str, leaves: tuple[Any, Any] = (None, None)):
        super().__init__(path, a, b)
        self.path, self.a, self.b = path, a, b
        self.leaves = leaves

    def hint(self, otherwise: str) -> str:
        """How to mend it: of registers what they lack, of all else what is given."""
        if any(isinstance(v, (Pointer, Tensor)) and v.spec.space == "register" for v in self.leaves):
            return ("registers have no address, so it has to be one fragment on all paths: exchange what fragments "
                    "hold, by load() and store(), or make one fragment with a mode that says which")
        return otherwise


@dataclass(frozen=True)
class Kind:
    """What a leaf is on the device: a number, a vector or a pointer."""

    text: str
    mlir: Callable[[], Any]
    make: Callable[[Any], Any]
    numeric: type[Numeric] | None = None


@dataclass(frozen=True)
class Leaf:
    """A part that is not taken apart."""

    value: Any


@dataclass(frozen=True)
class Tree:
    """A part of several: `form` says what it is, `keys` what its parts are called, `build` puts it together."""

    form: Any
    keys: tuple[str, ...]
    parts: tuple[Any, ...]
    build: Callable[[list[Any]], Any]
    text: str
    value: Any = None
    """What it was taken apart of."""


def apart(value: Any) -> Leaf | Tree:
    """A value as a tree. Layouts and tensors with runtime parts are asked for them here, where tracing stands.

    Raises `TraceError` for a value that leads to itself.
    """
    try:
        return _apart(value)
    except RecursionError:
        raise TraceError("a value that differs from path to path leads to itself",
                         hint="merge and carry values without a cycle: numbers, lists and objects of these") from None


def _apart(value: Any) -> Leaf | Tree:
    kind = type(value)
    if kind in PLAIN or isinstance(value, (Numeric, Vector, Pointer)):
        return Leaf(value)
    if isinstance(value, Tensor):
        return _tensor(value)
    if isinstance(value, (Storage, Peeked)):
        return _place(value)
    if isinstance(value, (ThrCopy, ThrMma)):
        return Tree((kind, value.tiled), (".thr_idx",), (Leaf(value.thr_idx),), lambda v: kind(value.tiled, v[0]),
                    f"a {kind.__name__} of {value.tiled}")
    if _is_composed(value):
        return _composed(value)
    if isinstance(value, LayoutValue) or (kind is Layout and not has_basis(value.stride)):
        modes = (apart(value.shape), apart(value.stride))
        return Tree("layout", (".shape", ".stride"), modes, lambda v: make_layout(*v), f"a layout {value}")
    if isinstance(value, (tuple, list)):
        keys = tuple(f"[{i}]" for i in range(len(value)))
        build = getattr(kind, "_make", kind)
        text = f"a {kind.__name__} of {len(value)}"
        return Tree((kind, len(value)), keys, tuple(map(apart, value)), build, text, value)
    if isinstance(value, dict):
        names = tuple(value)
        parts = tuple(map(apart, value.values()))
        text = f"a dict with the keys {', '.join(map(repr, names))}"
        return Tree((kind, names), tuple(f"[{n!r}]" for n in names), parts,
                    lambda v: _filled_dict(value, dict(zip(names, v, strict=True))), text, value)
    if isinstance(value, (CopyAtom, MmaAtom)):
        state = whole_state(value)
        return Tree((kind, value), tuple(f" (its {name})" for name in state), tuple(map(apart, state.values())),
                    lambda v: with_whole_state(value, dict(zip(state, v, strict=True))), f"the atom {value}")
    if isinstance(value, (TiledCopy, TiledMma)):
        name = "atom" if isinstance(value, TiledCopy) else "mma_atom"
        return Tree((kind, value), (f".{name}",), (apart(getattr(value, name)),),
                    lambda v: replace(value, **{name: v[0]}), f"the {value}")
    if hasattr(kind, "with_leaves"):  # a struct
        return Tree(kind, tuple(f".{n}" for n in value.leaf_names()), tuple(map(apart, value.leaves())),
                    value.with_leaves, f"a {kind.__name__}")
    attributes = attributes_of(value)
    if attributes is not None:
        names = tuple(attributes)
        return Tree((kind, names), tuple(f".{n}" for n in names), tuple(map(apart, attributes.values())),
                    lambda v: _filled_object(value, dict(zip(names, v, strict=True))), f"a {kind.__name__}", value)
    return Leaf(value)


def _tensor(value: Tensor) -> Leaf | Tree:
    """A tensor in memory: its pointer and its layout. Registers have no address, so a fragment is one thing."""
    if value.space == "register":
        return Leaf(value)
    layout = value.layout
    inside = _composed(layout, value.space) if _is_composed(layout) else apart(layout)
    parts = (Leaf(get_iter(value)), inside)
    kind = _met(value.spec.pointer)
    return Tree(("tensor", kind.dtype, kind.space, kind.align), (" (its pointer)", ".layout"), parts,
                lambda v: make_view(*v), f"a tensor {value.spec}")


def _is_composed(value: Any) -> bool:
    return isinstance(value, ComposedLayout) or isinstance(value, LayoutValue) and value.is_composed


def _composed(value: Any, space: str = "") -> Leaf | Tree:
    """A swizzled layout: its offset, as steps that the swizzle keeps together and a rest, so that a loop which moves it
    by whole steps leaves its alignment known; and its inner layout. Offsets in LDS have 32 bits, others may need 64."""
    outer = (value.form.value() if isinstance(value, LayoutValue) else value).outer
    if not isinstance(outer, Swizzle):
        return Leaf(value)
    offset, inner = composed_get_offset(value), composed_get_inner(value)
    step = 1 << min(outer.base, 16)
    steps, rest = 0, offset
    if isinstance(offset, int):
        steps, rest = divmod(offset, step)
    elif divisor_of(offset) % step == 0:
        steps, rest = offset // step, 0
    width = CLASSES["Int32" if space == "shared" else "Int64"]

    def build(v: list[Any]) -> Any:
        return make_composed_layout(outer, v[0] * step + v[1], v[2])

    keys = (" (its offset)", " (its offset)", ".inner")
    return Tree((COMPOSED, outer), keys, (Leaf(width(steps)), Leaf(rest), apart(inner)), build,
                f"a layout {value}")


def _place(value: Storage | Peeked) -> Tree:
    """A struct or array in memory: its pointer."""
    storage = value._storage if isinstance(value, Peeked) else value
    kind, pointer = storage._kind, storage._bytes
    spec = pointer.spec
    return Tree((type(value), kind, spec.space), (" (its pointer)",), (Leaf(pointer),),
                lambda v: Storage(kind, v[0]) if value is storage else Peeked(Storage(kind, v[0])),
                f"a {name_of_kind(kind)} in {spec.space} memory")


def _filled_dict(like: dict[Any, Any], items: dict[Any, Any]) -> dict[Any, Any]:
    made = copy.copy(like)
    made.update(items)
    return made


def _filled_object(like: Any, attributes: dict[str, Any]) -> Any:
    made = copy.copy(like)
    set_attributes(made, attributes)
    return made


def set_attributes(value: Any, attributes: dict[str, Any], gone: Iterable[str] = ()) -> None:
    """Set attributes past any `__setattr__`, property or field of the class's, and delete others."""
    kind: Any = type if isinstance(value, type) else object
    own = None if isinstance(value, type) else getattr(value, "__dict__", None)
    for name, each in attributes.items():
        if own is None or isinstance(getattr(type(value), name, None), types.MemberDescriptorType):
            kind.__setattr__(value, name, each)
        else:
            own[name] = each
    for name in gone:
        kind.__delattr__(value, name)


def attributes_of(value: Any) -> dict[str, Any] | None:
    """The attributes of an object of a user's class, which control flow carries; None for anything else."""
    kind = type(value)
    if kind is types.SimpleNamespace:
        return dict(vars(value))
    if isinstance(value, (type, types.ModuleType, types.FunctionType)) or not _is_carried(kind):
        return None
    slots = _slots_of(kind)  # type: ignore[arg-type]
    found = {n: getattr(value, n) for n in slots if hasattr(value, n)}
    return found | vars(value) if hasattr(value, "__dict__") else found if slots else None


def _is_carried(kind: type) -> bool:
    """Whether it is a class that the user wrote in Python, wherever: `exec` gives it the module `builtins`."""
    made = kind.__flags__ & HEAP_TYPE if kind.__module__ == "builtins" else kind.__module__.split(".")[0] not in OPAQUE
    return bool(made) and is_users(kind)


@functools.cache
def _slots_of(kind: type) -> tuple[str, ...]:
    """The names of the slots of a class and its bases."""
    return tuple(n for k in kind.__mro__ for n, v in vars(k).items() if isinstance(v, types.MemberDescriptorType))


def same(a: Any, b: Any) -> bool:
    """Whether two values are one and the same, so that nothing has to be decided on the device."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) in PLAIN:
        return bool(exact(a) == exact(b))
    if isinstance(a, Numeric):
        return (exact(a._value) == exact(b._value)) if a.is_static and b.is_static else a._value is b._value
    if isinstance(a, Vector):
        return a._value is b._value and a.shape == b.shape and a.dtype is b.dtype
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, types.FunctionType):  # defined twice, as in a loop
        given = [(f.__defaults__, *(f.__kwdefaults__ or {}).values()) for f in (a, b)]
        cells = [tuple(map(id, f.__closure__ or ())) for f in (a, b)]
        return a.__code__ is b.__code__ and cells[0] == cells[1] and same(*given)
    return bool(a == b) if isinstance(a, (Layout, ComposedLayout, CopyOp, MmaOp)) else False


def describe(value: Any) -> str:
    """What an error calls a value: `i32`, `vector<4xf32>`, `a list of 2`."""
    if isinstance(value, Tree):
        return value.text
    if isinstance(value, Leaf):
        value = value.value
    if isinstance(value, Numeric):
        return dtype_text(value.dtype)
    if isinstance(value, Vector):
        return f"vector<{value.numel}x{dtype_text(value.dtype.dtype)}> of shape {value.shape}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return f"Python's {value!r}"
    return repr(value) if isinstance(value, (Pointer, Tensor)) else f"{type(value).__name__} {value!r}"


@dataclass(frozen=True)
class Slot:
    """A leaf that the device decides: its kind, and what is known of it on all paths."""

    kind: Kind
    bounds: tuple[int, int] | None = None
    divisor: int = 1

    def made(self, value: Any) -> Any:
        """The leaf that an MLIR value is."""
        found = self.kind.make(value)
        return found if self.bounds is None else found.with_facts(self.bounds, self.divisor)


@dataclass(frozen=True, eq=False)
class Copy:
    """A new container that stands for one of others, whichever path was taken."""

    made: Any
    originals: tuple[Any, ...]


@dataclass(frozen=True)
class Joined:
    """What stands for several values of one form: slots, fixed values, and how they are put together."""

    slots: list[Slot]
    build: Callable[[Iterator[Any], list[Copy]], Any]
    take: Callable[[Any, str], list[Any]]
    """The leaves of another tree of this form, one for each slot; raises `Mismatch`."""

    def rebuilt(self, values: Iterator[Any], copies: list[Copy]) -> Any:
        """The value, of MLIR values for its slots; notes the containers that stand for others in `copies`."""
        return self.build(values, copies)


def join(a: Leaf | Tree, b: Leaf | Tree, path: str = "", facts: bool = True, old: Collection[int] = ()) -> Joined:
    """What stands for both of two values; raises `Mismatch` where nothing can. With `facts`, what is known of both.

    `old` are the ids of the containers that were there before: beside nothing at all, such a one stays itself.
    """
    if isinstance(a, Leaf) and isinstance(b, Leaf) and same(a.value, b.value):
        return fixed(a.value)
    for one, other in ((a, b), (b, a)):
        if isinstance(one, Leaf) and one.value is NOTHING:
            literal = isinstance(other, Leaf) and isinstance(other.value, (bool, int, float))
            # A Python number stays one, and so takes the format of what it meets later.
            return fixed(other.value) if literal else widen(other, old)
    if isinstance(a, Tree) and isinstance(b, Tree) and a.form == b.form:
        if a.value is not None and a.value is b.value:  # what changed in it is merged in its own place
            return fixed(a.value)
        parts = [join(x, y, path + k, facts, old) for x, y, k in zip(a.parts, b.parts, a.keys, strict=True)]
        return _together(a, parts, a.value, b.value)
    if isinstance(a, Tree) or isinstance(b, Tree):
        raise Mismatch(path, describe(a), describe(b))
    kind = _common(a.value, b.value, path)
    numbers = kind.numeric is not None and not kind.numeric.dtype.is_float and kind.numeric.dtype.kind != BOOL
    if not (numbers and facts):
        return _slot(Slot(kind))
    assert kind.numeric is not None
    x, y = (as_numeric(v, kind.numeric.dtype) for v in (a.value, b.value))
    (low, high), (least, most) = interval(x), interval(y)
    return _slot(Slot(kind, (min(low, least), max(high, most)), math.gcd(divisor_of(x), divisor_of(y))))


def widen(tree: Leaf | Tree, old: Collection[int] = ()) -> Joined:
    """What stands for any value of this form: every number, vector and pointer in it may change, but not in `old`."""
    if isinstance(tree, Tree):
        if id(tree.value) in old:
            return fixed(tree.value)
        if tree.form == "layout":
            return fixed_tree(tree)
        if isinstance(tree.form, tuple) and tree.form[0] is COMPOSED:
            steps, rest, inner = tree.parts
            moved = fixed(rest.value) if isinstance(rest.value, int) else widen(rest)
            return _together(tree, [widen(steps), moved, widen(inner)])
        return _together(tree, [widen(part, old) for part in tree.parts], tree.value)
    kind = kind_of(tree.value)
    return fixed(tree.value) if kind is None else _slot(Slot(kind))


def fixed(value: Any) -> Joined:
    """A value that is the same on all paths."""

    def take(other: Any, path: str) -> list[Any]:
        if other.value is value or isinstance(other, Leaf) and (same(value, other.value) or other.value is NOTHING):
            return []
        leaf = other.value if isinstance(other, Leaf) else other
        raise Mismatch(path, describe(value), describe(other), (value, leaf))

    return Joined([], lambda values, copies: value, take)


def fixed_tree(tree: Tree) -> Joined:
    """A value of parts of which none changes."""
    return _together(tree, [fixed(p.value) if isinstance(p, Leaf) else fixed_tree(p) for p in tree.parts])


def _slot(slot: Slot) -> Joined:
    return Joined([slot], lambda values, copies: slot.made(next(values)),
                  lambda tree, path: [_fitting(tree, slot.kind, path)])


def _together(tree: Tree, parts: list[Joined], *originals: Any) -> Joined:
    def build(values: Iterator[Any], copies: list[Copy]) -> Any:
        made = tree.build([part.build(values, copies) for part in parts])
        if originals and tree.value is not None and not isinstance(made, tuple):
            copies.append(Copy(made, originals))
        return made

    def take(other: Any, path: str) -> list[Any]:
        if isinstance(other, Leaf) and other.value is NOTHING:
            return [NOTHING for part in parts for _ in part.slots]
        if not isinstance(other, Tree) or other.form != tree.form:
            raise Mismatch(path, tree.text, describe(other))
        return [leaf for part, inner, key in zip(parts, other.parts, tree.keys, strict=True)
                for leaf in part.take(inner, path + key)]

    return Joined([s for part in parts for s in part.slots], build, take)


def kind_of(value: Any, beside: Any = None) -> Kind | None:
    """What a leaf is on the device; None for what is only known while tracing."""
    if isinstance(value, (bool, int, float)):
        value = as_numeric(value, beside.dtype if isinstance(beside, Numeric) else _default(value, beside))
    if isinstance(value, Numeric):
        cls = type(value)
        return Kind(dtype_text(value.dtype), lambda: mlir_type(cls.dtype), cls, cls)
    if isinstance(value, Vector):
        shape, dtype, numel = value.shape, value.dtype, value.numel
        return Kind(describe(value), lambda: mlir_type(dtype.dtype, numel), lambda v: Vector(v, shape, dtype))
    if isinstance(value, Pointer) and value.spec.space != "register":
        spec, reach = _met(value.spec), None if value.reach is None else ANYWHERE
        return Kind(f"a pointer {spec}", lambda: to_mlir(spec), lambda v: Pointer(v, reach))
    return None


def _met(spec: Ptr) -> Ptr:
    """The type of a pointer where paths meet: in global memory they may bring others, of less alignment."""
    return Ptr(spec.dtype, spec.space) if spec.space == "global" else spec


def _default(value: Any, beside: Any) -> Any:
    """The format of a Python number beside another one: a float beside an integer is one."""
    if isinstance(beside, float) and not isinstance(value, bool):
        return DTYPES["Float32"]
    return None


def _common(a: Any, b: Any, path: str) -> Kind:
    """The kind of two leaves that differ: a Python number takes the format of the other."""
    kinds = kind_of(a, b), kind_of(b, a)
    if kinds[0] is not None and kinds[1] is not None and kinds[0].text == kinds[1].text:
        return kinds[0]
    wide = [k for k in kinds if k is not None and k.numeric is not None]
    if len(wide) == 2 and all(type(v) is int for v in (a, b)):  # one of them does not fit 32 bits
        return wide[0] if wide[0].numeric is CLASSES["Int64"] else wide[1]
    raise Mismatch(path, describe(a), describe(b), (a, b))


def _fitting(tree: Any, kind: Kind, path: str) -> Any:
    """A leaf as one of this kind: a known number is brought to it, anything else must be of it."""
    if isinstance(tree, Tree):
        raise Mismatch(path, kind.text, tree.text)
    value = tree.value
    if value is NOTHING:
        return value
    if isinstance(value, (bool, int, float)) and kind.numeric is not None:
        value = as_numeric(value, kind.numeric.dtype)
    found = kind_of(value)
    if found is None or found.text != kind.text:
        raise Mismatch(path, kind.text, describe(tree.value))
    return value


def ir_value(leaf: Any, slot: Slot) -> Any:
    """The MLIR value of a leaf, made at the insertion point where it is a known number or nothing at all."""
    if leaf is NOTHING:
        from mlir import ir

        if slot.kind.numeric is None and not slot.kind.text.startswith("vector"):
            raise TraceError(f"{slot.kind.text} has a value on one path only",
                             hint="give it one before the branch, or return on one path only")
        return op("ub.poison", [], slot.kind.mlir(), {"value": ir.Attribute.parse("#ub.poison")})
    if isinstance(leaf, Numeric) and leaf.is_static:
        return leaf.ir_value()
    if isinstance(leaf, Pointer) and leaf.spec != _met(leaf.spec):
        return fly("recast_iter", [leaf._value], [_met(leaf.spec)])
    return leaf._value
