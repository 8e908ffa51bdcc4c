"""The parameters of a kernel or launcher: what each is, from its annotation."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from flylab.atoms import CopyAtom, MmaAtom, TiledCopy, TiledMma
from flylab.dtypes import BOOL
from flylab.errors import ArgumentError, TraceError
from flylab.expr.numeric import Numeric, numeric_class
from flylab.expr.promotion import integer_range, promote
from flylab.expr.struct import Laid
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.typing import Constexpr, Stream
from flylab.layout import ComposedLayout, Layout
from flylab.places import SourceLine, user_frame
from flylab.shown import given

TENSOR, NUMBER, CONSTEXPR, STREAM, INFERRED = "tensor", "number", "constexpr", "stream", "inferred"
STRUCT, POINTER = "struct", "pointer"


@dataclass(frozen=True)
class Parameter:
    """One parameter. `kind` is one of the words above; `numeric` is the class of a runtime number."""

    name: str
    kind: str
    numeric: type[Numeric] | None = None
    constexpr_type: Any = None
    struct: Any = None

    def __str__(self) -> str:
        shown = {
            TENSOR: "fx.Tensor",
            POINTER: "fx.Pointer",
            STREAM: "fx.Stream",
            CONSTEXPR: f"fx.{Constexpr(self.constexpr_type)}",
            INFERRED: "(no annotation)",
            STRUCT: getattr(self.struct, "__name__", ""),
        }
        return f"{self.name}: {f'fx.{self.numeric.__name__}' if self.numeric else shown[self.kind]}"

    def check_number(self, numeric: type[Numeric], value: Any) -> None:
        """Raise `ArgumentError` unless a number (Python's, or one of the trace) fits the format without loss."""
        dtype = numeric.dtype
        if isinstance(value, Numeric):
            if not value.is_static:
                if promote(value.dtype, dtype) != dtype:
                    raise ArgumentError(
                        f"'{self}' gets {value.dtype}, which does not fit", hint=f"convert it: fx.{dtype}(...)"
                    )
                return
            value = value.value
        if dtype.is_float:
            good, expected = isinstance(value, (int, float)), "a number"
        elif dtype.kind == BOOL:
            good, expected = isinstance(value, bool), "True or False"
        else:
            low, high = integer_range(dtype)
            good = isinstance(value, int) and low <= value <= high
            expected = f"an integer from {low} to {high}"
        if not good:
            raise ArgumentError(f"'{self}' gets {given(value)}", hint=f"pass {expected}")

    def check_struct(self, value: Any) -> None:
        """Raise `ArgumentError` unless a value is an object of the parameter's struct."""
        if type(value) is not self.struct:
            same = type(value).__name__ == self.struct.__name__
            raise ArgumentError(
                f"'{self}' gets {given(value)}",
                hint="it is of another struct of this name: define the function again, after the struct" if same else
                f"make one: {self.struct.__name__}(...)",
            )

    def check_constant(self, value: Any) -> None:
        """Raise `ArgumentError` unless a value is of the type that `fx.Constexpr[...]` names."""
        wanted = self.constexpr_type
        if isinstance(wanted, type) and issubclass(wanted, Numeric) and hasattr(wanted, "dtype"):
            return self.check_number(wanted, value)
        if wanted is float and isinstance(value, int):
            return
        if isinstance(wanted, type) and not isinstance(value, wanted):
            raise ArgumentError(
                f"'{self}' gets {given(value)}",
                hint=f"pass one of type {wanted.__name__}: it is a constant of the compilation",
            )


class Signature:
    """The parameters of a function, and how call arguments are bound to them."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function
        self.python = inspect.signature(function)
        self.parameters = tuple(self._parameter(p) for p in self.python.parameters.values())

    def _parameter(self, parameter: inspect.Parameter) -> Parameter:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TraceError(
                f"'{self.function.__name__}' takes *{parameter.name}",
                where=self.where(),
                hint="a kernel or launcher names each of its parameters",
            )
        annotation = parameter.annotation
        if annotation is parameter.empty:
            return Parameter(parameter.name, INFERRED)
        if isinstance(annotation, str):
            annotation = self._evaluate(annotation, parameter.name)
        if annotation is Constexpr or isinstance(annotation, Constexpr):
            return Parameter(parameter.name, CONSTEXPR, constexpr_type=getattr(annotation, "kind", None))
        if isinstance(annotation, Laid):
            return Parameter(parameter.name, STRUCT, struct=annotation)
        if isinstance(annotation, type):
            if issubclass(annotation, Tensor):
                return Parameter(parameter.name, TENSOR)
            if issubclass(annotation, Pointer):
                return Parameter(parameter.name, POINTER)
            if issubclass(annotation, Stream):
                return Parameter(parameter.name, STREAM)
            if issubclass(annotation, Numeric) and hasattr(annotation, "dtype"):
                return Parameter(parameter.name, NUMBER, numeric_class(annotation))
            if issubclass(annotation, (Layout, ComposedLayout, tuple, list)):
                return Parameter(parameter.name, INFERRED)  # known, or with runtime numbers: the value tells
            if issubclass(annotation, (CopyAtom, MmaAtom, TiledCopy, TiledMma)):
                return Parameter(parameter.name, CONSTEXPR, constexpr_type=annotation)
        raise TraceError(
            f"parameter '{parameter.name}' of '{self.function.__name__}' is annotated {annotation!r}",
            where=self.where(),
            hint="use fx.Tensor, fx.Int32 (or another number), a struct, fx.Pointer, fx.Constexpr[int] or fx.Stream",
        )

    def _evaluate(self, text: str, name: str) -> Any:
        """An annotation that is a string: `from __future__ import annotations`, or quoted."""
        written: Any = inspect.unwrap(self.function)  # not a decorator's wrapper, which may stand in another file
        try:
            return eval(text, written.__globals__, _names_around(written))
        except Exception as error:
            raise TraceError(
                f"the annotation '{text}' of parameter '{name}' cannot be resolved ({error})",
                where=self.where(),
                hint="the names in it must be importable where the function is defined",
            ) from None

    def where(self) -> SourceLine:
        """The function's first line."""
        code = self.function.__code__
        return SourceLine.of(code.co_filename, code.co_firstlineno, function=self.function.__name__)

    def bind(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Call arguments by parameter name, defaults filled in.

        Raises `ArgumentError` (with the signature) for a missing, unknown or doubled argument.
        """
        try:
            bound = self.python.bind(*args, **named)
        except TypeError as error:
            shown = ", ".join(map(str, self.parameters))
            raise ArgumentError(
                f"{self.function.__name__}(...): {error}", hint=f"its parameters are ({shown})"
            ) from None
        bound.apply_defaults()
        return bound.arguments


def _names_around(function: Any) -> dict[str, Any]:
    """The variables of the functions around one, which a quoted annotation may name: where it is being defined, also
    those that it does not use."""
    frame, names = user_frame(), {}
    if frame is not None and any(constant is function.__code__ for constant in frame.f_code.co_consts):
        names = dict(frame.f_locals)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        with suppress(ValueError):  # it has no value yet
            names[name] = cell.cell_contents
    return names
