"""`flyc.JitArgumentRegistry`: types of the user's own as launch arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from flylab.errors import ArgumentError, NotSupportedError
from flylab.expr.numeric import Numeric
from flylab.expr.struct import Struct
from flylab.expr.typing import Stream
from flylab.runtime.adaptors import PointerArgument, TensorArgument
from flylab.shown import a_kind

Made = TypeVar("Made", bound=Callable[[Any], Any])
_registered: dict[type, Callable[[Any], Any]] = {}
_ARGUMENTS = (Numeric, Struct, Stream, PointerArgument, TensorArgument)
MOST_STEPS = 16
"""How often what a function gives may be of a registered type again."""


class JitArgumentRegistry:
    """Which function makes a launch argument of an object of a type: a tensor, a number, a struct, a pointer.

        @flyc.JitArgumentRegistry.register(Image)
        def _(image):
            return flyc.from_dlpack(image.pixels).mark_layout_dynamic()

    From then on `launch(Image(...))` passes what the function gives. It is called at each launch, and its result counts
    as if it had been passed itself. Subclasses count too, unless they are registered themselves.
    """

    @classmethod
    def register(cls, py_type: type, *, dsl_type: Any = None) -> Callable[[Made], Made]:
        """A decorator for the function, or class, that makes an argument of an object of `py_type`.

        `dsl_type` (`fx.Tensor`, `fx.Int32`) says what a kernel sees; the parameter's annotation says so too, and
        decides. Raises `ArgumentError` for what is no type, and for one of flylab's own.
        """
        if not isinstance(py_type, type):
            raise ArgumentError(f"JitArgumentRegistry.register({py_type!r}): {a_kind(py_type)}, not a class",
                                hint="give the class whose objects are passed: register(Image)")
        if issubclass(py_type, _ARGUMENTS):
            raise ArgumentError(f"JitArgumentRegistry.register({py_type.__name__}): its objects are what they are to "
                                "every launch", hint="register a class of your own, which may derive from it")

        def remember(function: Made) -> Made:
            if not callable(function):
                raise ArgumentError(f"JitArgumentRegistry.register({py_type.__name__}) of {function!r}",
                                    hint="decorate a function of one object that gives a launch argument")
            _registered[py_type] = function
            return function

        return remember

    @classmethod
    def get(cls, py_type: type) -> Callable[[Any], Any] | None:
        """The function for objects of a type, of the nearest base class that has one; None where there is none."""
        return next((_registered[each] for each in py_type.__mro__ if each in _registered), None)

    @classmethod
    def unregister(cls, py_type: type) -> None:
        """Forget the function of a type, if it has one."""
        _registered.pop(py_type, None)

    @classmethod
    def register_jit_arg(cls, jit_arg: type, dsl_type: Any) -> None:
        """Refused: such a class hands over pointers and types of the published package's own MLIR."""
        raise NotSupportedError("JitArgumentRegistry.register_jit_arg takes classes that speak the published package's "
                                "own protocol of C pointers and MLIR types, which flylab does not have",
                                hint="@flyc.JitArgumentRegistry.register(MyType) of a function that gives a tensor, a "
                                "number, a struct or flyc.from_c_void_p(...)")


def registered_types() -> Mapping[type, Callable[[Any], Any]]:
    """The types and their functions, as they are at any time."""
    return _registered


def registered(value: Any) -> Any:
    """What is passed for a value: itself, or what the function of its type makes of it.

    Raises `ArgumentError` where these functions come to no end.
    """
    if not _registered:
        return value
    given = value
    for _ in range(MOST_STEPS):
        make = JitArgumentRegistry.get(type(given))
        if make is None:
            return given
        before, given = type(given), make(given)
        if type(given) is before:
            return given
    raise ArgumentError(f"the functions of JitArgumentRegistry make no launch argument of {a_kind(value)}",
                        hint="give a tensor, a number or a struct in the end")
