"""What a compilation is made from as plain data that is the same in every process: its name on disk is a digest of it.

`flylab.compiler.meaning` compares values inside of a process, where identity tells of anything that it is the same.
Here a value counts by what it holds: a function by its code, its text and what it reads, a class by its name and what
is read of it, an object of the user's by its class and what is read of it. Where that does not say all there is to
know (an open file, a large array), or where tracing does more than make code, the compilation is not kept.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

from flylab.compiler.dependencies import Dependencies
from flylab.compiler.kernel import Kernel, TracedFunction
from flylab.compiler.meaning import (
    CONTENTS,
    MAX_NESTING,
    MISSING,
    attribute,
    contents,
    is_by_state,
    is_seen,
    operations,
    state,
)
from flylab.compiler.reads import places
from flylab.compiler.users import PLAIN, exact, file_of, is_library, is_users, module_of
from flylab.expr.numeric import Numeric
from flylab.expr.struct import Laid, Struct
from flylab.expr.typing import Constexpr, Stream
from flylab.layout import Basis, Layout
from flylab.runtime.cache import code
from flylab.runtime.cache.identity import installed
from flylab.shown import a_kind

Plain = Any
"""Numbers and texts, in tuples of tuples."""
MAX_BYTES = 1 << 16
"""The bytes of an array that still counts by its contents."""
DESCRIPTORS = (types.BuiltinFunctionType, types.MethodDescriptorType, types.WrapperDescriptorType,
               types.MethodWrapperType, types.ClassMethodDescriptorType, types.GetSetDescriptorType,
               types.MemberDescriptorType)


# What those made in C keep, without a method of the user's; the rest has attributes for all that it keeps.
HIDDEN: dict[str, Callable[[Any], Any]] = {
    "builtins.int": int.__int__,
    "builtins.float": float.__float__,
    "builtins.complex": complex.__complex__,
    "builtins.str": str.__str__,
    "builtins.bytes": bytes.__bytes__,
    "decimal.Decimal": lambda v: sys.modules["decimal"].Decimal.as_tuple(v),
    "operator.itemgetter": lambda v: v.__reduce__()[1],
    "_collections._tuplegetter": lambda v: v.__reduce__()[1],
    "collections._tuplegetter": lambda v: v.__reduce__()[1],  # from Python 3.12 on
    "re.Pattern": lambda v: (v.pattern, v.flags),
    "types.SimpleNamespace": vars,
}
BUILTIN = frozenset(sys.builtin_module_names) - {"builtins"}


class Unfit(Exception):
    """Why something has no digest, as a sentence."""


class Fingerprint:
    """One walk over a launcher, its constants, and all that they reach by name.

    `plain` is what it found, `traced` are the kernels and launchers in the order met, and `files` are those of the
    user's functions: in the same order in every process that finds the same. Files count by their numbers, since a
    notebook's cells have other names in each process. Raises `Unfit` where there is no saying.
    """

    def __init__(self, launcher: TracedFunction, constants: dict[str, Any], dependencies: Dependencies):
        self.names = [*sorted(dependencies.names), "__wrapped__"]
        self.traced: list[TracedFunction] = []
        self.files: list[str] = []
        self._met: dict[int, tuple[int, Any]] = {}
        """Functions, classes, modules and objects by their ids: the number of each, and itself, which keeps the id."""
        try:
            self.plain = self.of(launcher), *((name, self.of(value)) for name, value in constants.items())
        except RecursionError:
            raise Unfit("it reads objects that refer to one another too deeply") from None

    def of(self, value: Any, path: frozenset[int] = frozenset()) -> Plain:
        """A value as plain data; `path` are the containers around it."""
        if type(value) in PLAIN:
            kind, *exactly = exact(value)
            return kind.__name__, *exactly
        if value is MISSING:
            return ("missing",)
        for kinds, rule in RULES:
            if isinstance(value, kinds):
                return rule(self, value)
        inside = contents(value)
        if inside is None:
            return self._object(value)
        if id(value) in path or len(path) >= MAX_NESTING:
            raise Unfit("it reads a container that contains itself, or a hundred in one another")
        items = [self.of(v, path | {id(value)}) for v in inside]
        if isinstance(value, (set, frozenset)):
            items.sort(key=repr)
        return self.of(type(value)), tuple(items), *(() if type(value) in CONTENTS else self._attributes(value))

    def _again(self, value: Any) -> Plain:
        """The number of what was met before; None for what is met for the first time."""
        known = self._met.get(id(value))
        if known is None:
            self._met[id(value)] = len(self._met), value
            return None
        return "again", known[0]

    def _attributes(self, value: Any, more: Iterable[tuple[str, Any]] = ()) -> Plain:
        """What is read of a value by name, as `meaning` has it."""
        read = [(n, attribute(value, n)) for n in (*self.names, *sorted(operations(value)))]
        return tuple((name, self.of(found)) for name, found in (*read, *more) if found is not MISSING)

    def kernel(self, value: TracedFunction) -> Plain:
        """A kernel or launcher: its function, what its parameters are, its options."""
        known = self._again(value)
        if known is None:
            self.traced.append(value)
            parameters = [(p.name, p.kind, p.numeric, p.constexpr_type, p.struct) for p in value.signature.parameters]
            block = value.known_block_size if isinstance(value, Kernel) else None
            known = value.decorator, value.name, block, self.of(parameters), self.of(value.function)
        return known

    def function(self, value: types.FunctionType) -> Plain:
        """A function: the user's by its code, text and what it reads, a library's by its name."""
        if (known := self._again(value)) is not None:
            return known
        made = value.__code__
        if is_library(made.co_filename):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            return "library", self._named(value), self.of(cells), self.of(value.__dict__.get("__wrapped__"))
        if why := code.unfit(value):
            raise Unfit(why)
        file, text = code.written(value)
        if file not in self.files:
            self.files.append(file)
        reads = [(place.name, self.of(place())) for place in sorted(places(value), key=lambda place: place.name)]
        return ("function", self.files.index(file), code.parts(made), text,
                tuple(reads), self._attributes(value) if value.__dict__ else ())

    def klass(self, value: type) -> Plain:
        """A class: its name, and of the user's what is read of it."""
        known = self._again(value)
        if known is not None:
            return known
        if is_library_class(value):
            return "class", self._named(value)
        placed = self.of(value.__struct__) if isinstance(value, Laid) else ()
        bases = tuple(self.of(base) for base in value.__bases__)
        members = [(n, m._value_) for n, m in value._member_map_.items()] if isinstance(value, enum.EnumMeta) else []
        return "class", value.__qualname__, bases, placed, self.of(members), self._attributes(value)

    def module(self, value: types.ModuleType) -> Plain:
        """A module: of the user's what is read of it, of a library its name and release."""
        known = self._again(value)
        if known is not None:
            return known
        if is_library(file_of(value)) or value.__name__ in sys.builtin_module_names:
            return "module", _release(value.__name__)
        return "module", value.__name__, self._attributes(value)

    def builtin(self, value: Any) -> Plain:
        """A function made in C, with what it is bound to."""
        bound = getattr(value, "__self__", None)
        known = self._again(value)
        return known or ("builtin", value.__qualname__, None if bound is None else self.of(bound))

    def member(self, value: enum.Enum) -> Plain:
        """A member of an enumeration."""
        known = self._again(value)
        return known or ("member", self.of(type(value)), value._name_, self.of(value._value_), self._attributes(value))

    def number(self, value: Numeric) -> Plain:
        """A number of flylab's that tracing knows."""
        if not value.is_static:
            raise Unfit(f"it reads {a_kind(value)} that only the device knows")
        return self.of(type(value)), self.of(value.value)

    def partly(self, *names: str) -> Callable[[Any], Plain]:
        """How an object counts by some attributes."""
        return lambda value: (self.of(type(value)), *(self.of(getattr(value, n)) for n in names))

    def _object(self, value: Any) -> Plain:
        known = self._again(value)
        if known is not None:
            return known
        kind = type(value)
        module = module_of(kind)
        if module.partition(".")[0] in ("numpy", "torch", "ml_dtypes"):
            return _of_arrays(value)
        if module == "functools" and hasattr(value, "__wrapped__"):
            return "wrapper", kind.__qualname__, self.of(value.__wrapped__)
        if dataclasses.is_dataclass(kind) and module.partition(".")[0] == "flylab" and is_library_class(kind):
            return self.of(kind), *(self.of(getattr(value, f.name)) for f in dataclasses.fields(kind) if f.compare)
        if not is_library_class(kind):
            stored = state(value) if is_by_state(kind) else ()
            return self.of(kind), self._hidden(value), self._attributes(value, stored)
        if module not in ("builtins", "itertools") and code.is_pure(module):
            fields = [(name, found) for name, found in state(value) if name[:2] != "__"]  # no addresses
            return self.of(kind), self._hidden(value), self.of(fields)
        raise Unfit(f"it reads an object of {module}.{kind.__qualname__}, whose contents no key tells")

    def _hidden(self, value: Any) -> Plain:
        """What an object keeps where Python's attributes do not show it, in a class made in C."""
        kind = type(value)
        told = next(filter(None, (HIDDEN.get(f"{module_of(c)}.{c.__qualname__}") for c in kind.__mro__)), None)
        if told is None and not is_seen(kind):
            raise Unfit(f"it reads an object of {module_of(kind)}.{kind.__qualname__}, whose contents no key tells")
        return told and self.of(told(value))

    def _named(self, value: Any) -> Plain:
        return value.__qualname__, *_release(module_of(value))


def is_library_class(kind: type) -> bool:
    """Whether flylab, Python or a package has a class. One of the user's may say that it is in `builtins`."""
    made_in_python = bool(kind.__flags__ & 1 << 9)  # Py_TPFLAGS_HEAPTYPE
    return not made_in_python or module_of(kind) in BUILTIN or not is_users(kind)


def _release(module: str) -> Plain:
    """What decides what is in a library's module. Raises `Unfit` for one of Python's that looks at the world."""
    if code.is_pure(module):
        return (module,)
    if module.partition(".")[0] in sys.stdlib_module_names:
        raise Unfit(f"it reads Python's '{module}', which tells of more than the program")
    return module, *installed(module)


def _of_arrays(value: Any) -> Plain:
    """A value of numpy or torch: formats and numbers by what they are, small arrays by their bytes."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic)):
        if value.dtype.hasobject or value.nbytes > MAX_BYTES:
            raise Unfit(f"it reads an array of {value.nbytes} bytes")
        return name, repr(value.dtype), value.shape, value.tobytes()
    if name == "torch.dtype" or numpy is not None and isinstance(value, numpy.dtype):
        return name, repr(value)
    if kind.__qualname__ in ("ufunc", "_ArrayFunctionDispatcher"):
        return name, str(value.__name__)
    raise Unfit(f"it reads a {name}, whose contents no key tells")


RULES: tuple[tuple[Any, Callable[[Fingerprint, Any], Plain]], ...] = (
    (Numeric, Fingerprint.number),
    (enum.Enum, Fingerprint.member),
    (TracedFunction, Fingerprint.kernel),
    (types.FunctionType, Fingerprint.function),
    (type, Fingerprint.klass),
    (types.ModuleType, Fingerprint.module),
    (DESCRIPTORS, Fingerprint.builtin),
    (Layout, lambda self, v: self.partly("shape", "stride", "overcover")(v)),
    (Basis, lambda self, v: self.partly("scale", "path")(v)),
    (Constexpr, lambda self, v: self.partly("kind")(v)),
    (Struct, lambda self, v: (self.of(type(v)), self.of(vars(v)))),
    (Stream, lambda self, v: ("stream",)),
    (type(NotImplemented), lambda self, v: ("NotImplemented",)),
)
