"""What a launch passes: a launcher's arguments as tracing sees them, and a kernel's as its parameters get them.

A tensor, a pointer and a number are one argument of the device function each. A layout, a tuple or a struct with
runtime numbers is passed as these numbers, and a tensor of a runtime layout as its pointer and these: whoever gets them
puts them together again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from flylab.compiler.signature import CONSTEXPR, INFERRED, NUMBER, POINTER, STREAM, STRUCT, TENSOR, Parameter
from flylab.dialect.types import Algebra
from flylab.errors import ArgumentError, TraceError
from flylab.expr.algebra import is_runtime
from flylab.expr.layout_value import LayoutValue, term_known
from flylab.expr.numeric import CLASSES, Numeric, numeric_class
from flylab.expr.state import FunctionState
from flylab.expr.struct import Struct, assembled, numbers_in
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.typing import Stream
from flylab.expr.views import get_iter, get_layout, make_view
from flylab.layout import Layout
from flylab.layout.runtime_int import RuntimeInt
from flylab.layout.runtime_leaves import map_runtime, runtime_leaves
from flylab.layout.terms import Term
from flylab.shown import a_kind

MOST_BYTES = 4096
"""The most bytes of a struct that is passed, number by number: what a kernel's arguments have in all."""


@dataclass(frozen=True)
class HostArgument:
    """A launch argument as tracing sees it: what it is, without its data.

    `kind` is that of a Parameter; `spec` a MemRef for a tensor, a Ptr for a pointer, the class of a number or struct,
    the value of a Constexpr.
    """

    name: str
    kind: str
    spec: Any

    def on_device(self) -> list[HostArgument]:
        """The arguments that a device function takes for it: one for each number of a struct, none for a constant; for
        a tensor its pointer, and then the numbers of its layout that are not known.

        Raises `ArgumentError` for a struct that is too large to be passed.
        """
        if self.kind == STRUCT:
            if self.spec.size > MOST_BYTES:
                raise ArgumentError(
                    f"'{self.name}' is {self.spec.__name__}, of {self.spec.size} bytes: a launch passes at most "
                    f"{MOST_BYTES}",
                    hint="put it into a tensor of bytes, and load what is needed: S.at(fx.get_iter(tensor)).peek()",
                )
            return [HostArgument(path, NUMBER, number) for path, number in numbers_in(self.spec, self.name)]
        if self.kind == TENSOR and self.spec.is_runtime:
            start = HostArgument(self.name, TENSOR, self.spec.with_layout(Layout(1), self.spec.align))
            kinds = [CLASSES[f"Int{leaf.bits}"] for leaf in runtime_leaves(self.spec.layout)]
            return [start, *[HostArgument(f"{self.name}.{i}", NUMBER, kind) for i, kind in enumerate(kinds)]]
        return [self] if self.kind in (TENSOR, POINTER, NUMBER) else []


Slot = tuple[HostArgument, Any, Term | None]
"""An argument of the device function, the launcher's value, and which number that is, where it is known."""


@dataclass(frozen=True)
class Passed:
    """A kernel's parameter: the arguments that it takes, with the launcher's values, and what it is made of them."""

    name: str
    slots: list[Slot]
    made: Callable[[list[Any], Names], Any] = lambda values, names: values[0]

    def received(self, values: Iterator[Any], names: Names) -> Any:
        """What the kernel gets, from the arguments of its device function. What the launcher knows, the kernel does."""
        found = []
        for argument, given, term in self.slots:
            value = host_value(argument, values)
            if isinstance(value, Numeric) and isinstance(given, Numeric) and value.dtype == given.dtype:
                value.bounds, value.divisor = given.bounds, given.divisor
                if term is not None:
                    names.state.terms[value.value, value.dtype] = names.here(term)
            found.append(value)
        return self.made(found, names)


class Names:
    """The launcher's names of numbers, as the kernel calls them: it may use the same names for others."""

    def __init__(self, state: FunctionState):
        self.state = state
        self.known: dict[str, str] = {}

    def here(self, term: Term) -> Term:
        """A term of the launcher in the kernel's names."""
        for name in term.names:
            if name not in self.known:
                self.known[name] = self.state.reserved(name)
        return Term(term.factor, tuple(sorted([self.known[name] for name in term.names])))

    def leaf(self, facts: RuntimeInt) -> RuntimeInt:
        """The facts of a leaf in the kernel's names."""
        return RuntimeInt(facts.low, facts.high, facts.divisor, facts.bits, facts.term and self.here(facts.term))


def host_value(argument: HostArgument, values: Iterator[Any]) -> Any:
    """What the traced function gets for a parameter: a value of the trace, or the constant itself."""
    if argument.kind == TENSOR and argument.spec.is_runtime:
        start, *numbers = [host_value(each, values) for each in argument.on_device()]
        return make_view(get_iter(start), LayoutValue.of(Algebra.of(argument.spec.layout), numbers))
    if argument.kind == TENSOR:
        return Tensor(next(values))
    if argument.kind == POINTER:
        return Pointer(next(values))
    if argument.kind == NUMBER:
        return argument.spec(next(values))
    if argument.kind == STRUCT:
        return assembled(argument.spec, iter([host_value(each, values) for each in argument.on_device()]))
    return argument.spec


def passed(parameter: Parameter, value: Any) -> Passed:
    """A kernel's parameter and what the launcher passes for it."""
    name = parameter.name
    if isinstance(value, Tensor) and value.spec.is_runtime and parameter.kind in (TENSOR, INFERRED):
        return _tensor(name, value)
    if isinstance(value, (LayoutValue, tuple, list)) and is_runtime(value) and parameter.kind == INFERRED:
        return _tree(name, value)
    if isinstance(value, Struct) and parameter.kind in (STRUCT, INFERRED) or parameter.kind == STRUCT:
        return _struct(parameter, value)
    return Passed(name, [_argument(parameter, value)])


def _struct(parameter: Parameter, value: Any) -> Passed:
    """A struct: one slot for each number in it."""
    if parameter.kind == STRUCT:
        parameter.check_struct(value)
    kind = type(value)
    slots: list[Slot] = [
        (argument, leaf, None if leaf.is_static else term_known(leaf))
        for argument, leaf in zip(HostArgument(parameter.name, STRUCT, kind).on_device(), value.leaves(), strict=True)
    ]
    return Passed(parameter.name, slots, lambda values, names: assembled(kind, iter(values)))


def _tensor(name: str, tensor: Tensor) -> Passed:
    """A tensor of a runtime layout: its pointer, and its layout."""
    start = make_view(get_iter(tensor), Layout(1))
    layout = _tree(name, get_layout(tensor))
    return Passed(name, [(HostArgument(name, TENSOR, start.spec), start, None), *layout.slots],
                  lambda values, names: make_view(get_iter(values[0]), layout.made(values[1:], names)))


def _tree(name: str, value: Any) -> Passed:
    """A layout or tuple: one slot for each runtime number in it."""
    if isinstance(value, LayoutValue):
        form = value.form
        return Passed(name, [_slot(name, number) for number in value.numbers()],
                      lambda values, names: LayoutValue.of(Algebra.of(map_runtime(names.leaf, form.value())), values))
    if not isinstance(value, (tuple, list)):
        return Passed(name, [_slot(name, value)]) if is_runtime(value) else Passed(name, [], lambda *_: value)
    parts = [_tree(f"{name}.{i}", each) for i, each in enumerate(value)]

    def together(values: list[Any], names: Names) -> Any:
        rest = iter(values)
        return type(value)([part.made([next(rest) for _ in part.slots], names) for part in parts])

    return Passed(name, [slot for part in parts for slot in part.slots], together)


def _slot(name: str, number: Any) -> Slot:
    if not isinstance(number, Numeric):
        raise TraceError(f"'{name}' gets {number!r}, which a kernel cannot take", hint="pass an fx number")
    return HostArgument(name, NUMBER, type(number)), number, term_known(number)


def _kind(parameter: Parameter, value: Any) -> str:
    if parameter.kind != INFERRED:
        return parameter.kind
    if isinstance(value, Tensor):
        return TENSOR
    if isinstance(value, Pointer):
        return POINTER
    if isinstance(value, Stream):
        return STREAM
    return NUMBER if isinstance(value, Numeric) and not value.is_static else CONSTEXPR


def _argument(parameter: Parameter, value: Any) -> Slot:
    kind = _kind(parameter, value)
    if kind == TENSOR and isinstance(value, Tensor):
        return HostArgument(parameter.name, TENSOR, value.spec), value, None
    if kind == POINTER and isinstance(value, (Tensor, Pointer)):
        pointer = value if isinstance(value, Pointer) else get_iter(value)
        return HostArgument(parameter.name, POINTER, pointer.spec), pointer, None
    if kind == NUMBER and isinstance(value, (Numeric, int, float)):
        numeric = parameter.numeric or numeric_class(type(value))
        parameter.check_number(numeric, value)
        term = term_known(value) if isinstance(value, Numeric) and not value.is_static else None
        return HostArgument(parameter.name, NUMBER, numeric), value, term
    if kind == STREAM:
        return HostArgument(parameter.name, STREAM, value), value, None
    if kind == CONSTEXPR:
        if isinstance(value, (Pointer, Tensor)) or is_runtime(value):
            raise TraceError(
                f"'{parameter.name}' is a Constexpr, and gets a value only known on the device",
                hint="leave out its annotation" if isinstance(value, (LayoutValue, tuple, list)) else
                f"declare it fx.Int32 in the kernel, or fx.Constexpr in the launcher: {parameter}",
            )
        constant = value.value if isinstance(value, Numeric) else value
        parameter.check_constant(constant)
        return HostArgument(parameter.name, CONSTEXPR, constant), value, None
    raise TraceError(f"'{parameter}' gets {a_kind(value)}: {value!r}",
                     hint=f"annotate it {parameter.name}: fx.Pointer" if isinstance(value, Pointer) else
                     "pass what the annotation says")
