"""What a value means to a compilation, as something to compare with later.

Numbers, texts and containers count by value, to any depth. An object whose class a user wrote counts by what it stores
where the class compares by value (it has an `__eq__`, as a dataclass has), else by identity with those of its
attributes that are read. Anything else, such as a function, counts by identity, or where a library says that two are
equal and shows both alike. No code of the user's runs here: no `__eq__`, no property.

Arrays of numpy up to 64 KiB count by what they hold; larger ones, and tensors of torch, which count their changes, by
identity.

What does not count: the contents of larger arrays and of other objects made in C, what functions of libraries give (the
environment, a random number), attributes that are read only by a computed name (`getattr(config, name)`), and those
more than four objects deep.
"""

from __future__ import annotations

import array
import functools
import operator
import types
import weakref
from collections import ChainMap, OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from typing import Any

from flylab.compiler.kernel import Method, TracedFunction
from flylab.compiler.users import PLAIN, exact, file_of, is_library, is_users, module_of
from flylab.expr.numeric import Numeric

MISSING, GONE = object(), object()
NO_NAMES: Set[str] = frozenset()
MAX_DEPTH = 4
"""How deep attributes of attributes are followed."""
MAX_NESTING = 100
"""How deep containers in containers are."""

ARRAY_BYTES = 1 << 16
"""Up to this size an array counts by what it holds: to compare it takes a few microseconds."""


def _array_contents(value: Any) -> tuple[Any, ...] | None:
    import numpy as np  # which is imported already, where there is an array

    if not isinstance(value, np.ndarray) or value.nbytes > ARRAY_BYTES:
        return None
    inside = np.ndarray.tolist(value.ravel()) if value.dtype.hasobject else (np.ndarray.tobytes(value),)
    return str(value.dtype), str(value.shape), str(value.strides), *inside


# What each kind of container, and of callable made of others, holds.
CONTENTS: dict[type, Callable[[Any], Iterable[Any]]] = {
    tuple: tuple.__iter__,
    list: list.__iter__,
    set: set.__iter__,
    frozenset: frozenset.__iter__,
    deque: deque.__iter__,
    dict: lambda v: chain(dict.keys(v), dict.values(v)),
    OrderedDict: lambda v: chain(OrderedDict.keys(v), OrderedDict.values(v)),
    types.MappingProxyType: lambda v: chain(v.keys(), v.values()),
    type({}.keys()): lambda v: (v.mapping,),
    type({}.values()): lambda v: (v.mapping,),
    type({}.items()): lambda v: (v.mapping,),
    ChainMap: lambda v: v.maps,
    UserDict: lambda v: (v.data,),
    UserList: lambda v: (v.data,),
    slice: lambda v: (v.start, v.stop, v.step),
    range: lambda v: (v.start, v.stop, v.step),
    bytearray: lambda v: (bytes(v),),
    array.array: lambda v: (v.typecode, v.tobytes()),
    functools.partial: lambda v: (v.func, v.args, v.keywords),
    functools.partialmethod: lambda v: (v.func, v.args, v.keywords),
    functools.singledispatchmethod: lambda v: (v.func, v.dispatcher),
    functools.cached_property: lambda v: (v.func,),
    property: lambda v: (v.fget, v.fset, v.fdel),
    staticmethod: lambda v: (v.__func__,),
    classmethod: lambda v: (v.__func__,),
    types.MethodType: lambda v: (v.__func__, v.__self__),
    weakref.ref: lambda v: (v(),),
    Method: lambda v: (v.traced, v.instance),
}


KEPT = (types.FunctionType, types.BuiltinFunctionType, types.CodeType, types.ModuleType, type, TracedFunction, Numeric)


def held(value: Any) -> Any:
    """The value itself; or a weak reference to an object that counts by identity, which must not live longer for this.

    An array or a model can be large. Functions, classes and modules are kept.
    """
    kind = type(value)
    is_compared = kind.__hash__ is not None and _compares_by_value(kind) and not hasattr(kind, "__dlpack__")
    if kind in PLAIN or isinstance(value, KEPT) or is_compared:
        return value
    try:
        return weakref.ref(value)
    except TypeError:
        return value


class Same:
    """An object that counts by identity; one of a library's that is not the same must be equal and look alike."""

    def __init__(self, value: Any):
        self.held = held(value)

    @property
    def value(self) -> Any:
        """The object; GONE where nobody else has it any more."""
        if type(self.held) is not weakref.ref:
            return self.held
        found = self.held()
        return GONE if found is None else found

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Same):
            return False
        mine, theirs = self.value, other.value
        if mine is theirs:
            return mine is not GONE
        if type(mine) is not type(theirs) or not _is_compared(mine):
            return False
        try:
            return (mine == theirs) is True and repr(mine) == repr(theirs)
        except Exception:
            return False

    __hash__ = object.__hash__


@dataclass(frozen=True, eq=False)
class Atoms:
    """Numbers and texts in a container. Those that are the same objects are told first, which is fast for long ones."""

    items: tuple[Any, ...]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Atoms) or len(self.items) != len(other.items):
            return False
        return all(map(operator.is_, self.items, other.items)) or all(
            map(operator.eq, map(exact, self.items), map(exact, other.items))
        )

    __hash__ = object.__hash__


@dataclass(frozen=True)
class Watched:
    """An object: its key says which it is, what it holds, or of which class; and the attributes that count."""

    key: Any
    attributes: dict[str, Any]


def meaning(value: Any, names: Set[str] = NO_NAMES, depth: int = 0, path: frozenset[int] = frozenset()) -> Any:
    """What a value means now; `names` are the attributes that are read anywhere.

    >>> meaning([1, {"a": (2.0,)}]) == meaning([1, {"a": (2.0,)}]), meaning((1,)) == meaning((True,))
    (True, False)
    """
    kind = type(value)
    if kind in PLAIN:
        return exact(value)
    if isinstance(value, Numeric) and value.is_static:
        return kind, exact(value.value)
    key: Any = Same(value)
    if kind is types.FunctionType:  # IPython's autoreload gives it other code
        key = key, Same(value.__code__)
    if is_counted(kind):
        key = key, version(value)
    inside = contents(value)
    if inside is not None and id(value) not in path and len(path) < MAX_NESTING:
        deeper = path | {id(value)}
        is_plain = PLAIN.issuperset(map(type, inside))
        key = kind, Atoms(inside) if is_plain else [meaning(v, names, depth, deeper) for v in inside]
    if kind in CONTENTS or depth >= MAX_DEPTH or not is_watched(value):
        return key
    read = list(attributes(value, names))
    if inside is None and is_by_state(kind):
        key = Same(kind)
        read += state(value)
    return Watched(key, {n: meaning(v, names, depth + 1, path) for n, v in read if v is not MISSING})


def differences(name: str, was: Any, now: Any) -> Iterator[tuple[str, Any, Any]]:
    """The names under this one, such as `config.tile`, that mean something else now, with what they meant and mean."""
    if was == now:
        return
    if not (isinstance(was, Watched) and isinstance(now, Watched) and was.key == now.key):
        yield name, was, now
        return
    for each in {**was.attributes, **now.attributes}:
        yield from differences(f"{name}.{each}", was.attributes.get(each, MISSING), now.attributes.get(each, MISSING))


def contents(value: Any) -> tuple[Any, ...] | None:
    """What a container, or a callable made of others, holds; None for anything else."""
    read = next((CONTENTS[c] for c in type(value).__mro__ if c in CONTENTS), None)
    if read is None:
        return _array_contents(value) if hasattr(type(value), "__array_interface__") else None
    return tuple(read(value))


def is_counted(kind: type) -> bool:
    """Whether objects of a class count their changes in place, as tensors of torch do."""
    return hasattr(kind, "__dlpack__") and hasattr(kind, "_version")


def version(value: Any) -> int | None:
    """How often such an object was changed in place; None of a tensor that does not know (`torch.inference_mode`)."""
    try:
        return int(value._version)
    except RuntimeError:
        return None


def is_watched(value: Any) -> bool:
    """Whether a value's attributes can change what is compiled: not those of flylab and of libraries' modules."""
    if isinstance(value, types.FunctionType):
        return bool(value.__dict__)
    kind = type(value)
    if isinstance(value, (types.BuiltinFunctionType, TracedFunction)) or is_immutable(kind) and (
        is_immutable(value) if isinstance(value, type) else not kind.__dictoffset__
    ):
        return False
    if isinstance(value, types.ModuleType):
        if is_library(file_of(value)):
            return False
        module = value.__name__
    else:
        module = module_of(value if isinstance(value, type) else kind)
    return module == "flylab.kernels" or module.startswith("flylab.kernels.") or module.split(".")[0] != "flylab"


def is_immutable(kind: type) -> bool:
    """Whether the attributes of a class cannot be set (Py_TPFLAGS_IMMUTABLETYPE), as those of classes made in C."""
    return bool(kind.__flags__ & 1 << 8)


def is_by_state(kind: type) -> bool:
    """Whether a class compares by value, a user wrote it, and Python sees all that its objects store."""
    return _compares_by_value(kind) and is_users(kind) and is_seen(kind)


def is_seen(kind: type) -> bool:
    """Whether Python sees all that objects of a class store: no class under it keeps anything in C."""
    roots = (c for c in kind.__mro__ if c.__base__ is object)
    return all("__slots__" in vars(c) or {"__dict__", "__weakref__"} <= vars(c).keys() for c in roots)


def _is_compared(value: Any) -> bool:
    """Whether a library's `__eq__` tells that two values, which never change, are the same."""
    kind = type(value)
    return kind.__hash__ is not None and not (isinstance(value, types.FunctionType) or is_by_state(kind))


def _compares_by_value(kind: type) -> bool:
    return next(c for c in kind.__mro__ if "__eq__" in vars(c)) is not object


def state(value: Any) -> Iterator[tuple[str, Any]]:
    """All that an object stores, in its dict and its slots; not what it keeps of a `cached_property`."""
    slots = (n for c in type(value).__mro__ for n, d in vars(c).items() if isinstance(d, types.MemberDescriptorType))
    for name in (*getattr(value, "__dict__", {}), *slots):
        found = attribute(value, name)
        if not isinstance(found, functools.cached_property):
            yield name, found


def classes(value: Any) -> tuple[type, ...]:
    """The classes that an attribute of a value is looked up in."""
    own: tuple[type, ...] = value.__mro__ if isinstance(value, type) else ()
    return own + type(value).__mro__


def attribute(value: Any, name: str) -> Any:
    """An attribute as it is stored, without running any code of the user's (a property is the property itself)."""
    shared = next((vars(c)[name] for c in classes(value) if name in vars(c)), MISSING)
    own = getattr(value, "__dict__", {})
    if name in own and not isinstance(shared, functools.cached_property):
        return own[name]
    if isinstance(value, types.ModuleType):
        return MISSING
    return getattr(value, name, MISSING) if isinstance(shared, types.MemberDescriptorType) else shared


def attributes(value: Any, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """Those that count: the ones called one of `names`, and special methods; where a function names `super`, what
    these hide in the classes below, too. MISSING for one that is not there."""
    every = {*names, *operations(value)}
    for name in every:
        yield name, attribute(value, name)
    if "super" in every and not isinstance(value, types.ModuleType):
        for each in classes(value):
            if not is_immutable(each):
                yield from ((f"{each.__qualname__}.{n}", vars(each)[n]) for n in every if n in vars(each))


def operations(value: Any) -> set[str]:
    """The special methods (`__call__`, `__getitem__`) that a user gave a class, and the `__getattr__` of a module:
    syntax calls them, and names none."""
    if isinstance(value, types.ModuleType):
        return {"__getattr__"} & vars(value).keys()
    return {
        name
        for each in classes(value)
        if not is_immutable(each)
        for name, found in vars(each).items()
        if name[:2] == "__" and (_is_users_code(found) or type(found) in WRAPPERS and is_users(each))
    }


WRAPPERS = (staticmethod, classmethod, property, functools.partial, functools.partialmethod,
            functools.singledispatchmethod, types.MethodType)


def _is_users_code(value: Any) -> bool:
    """Whether a value that can be called is a function of the user's, or an object of a class of the user's."""
    if isinstance(value, types.FunctionType):
        return not is_library(value.__code__.co_filename)
    kind = type(value)
    is_object = not isinstance(value, type) and not is_immutable(kind) and callable(value)
    return isinstance(value, TracedFunction) or is_object and is_users(kind)
