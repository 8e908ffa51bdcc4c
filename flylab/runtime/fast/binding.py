"""A generated Python function for each launcher: it binds the arguments of a call, and looks up its plan.

The function has the launcher's own parameters and defaults. It makes a key of what decides a compilation: of a tensor
its format, shape, strides and how its address is aligned, of a constant its exact type and value; not the value of a
runtime number. For a key that is known it runs the plan. What it does not know it answers with `Missed`, and the call
takes the way of the first one, which also explains what is wrong with it.

    def launch(A, n):
        try:
            if type(A) in _torch: ...
            _key = (_k0,)
            for _plan in _plans.get(_key, ()):
                if _plan.fits():
                    _run = _plan.run
                    break
            else:
                return _Missed(_key)
        except Exception:
            return _missed
        return _run(_p0, _l0, _h0, n)
"""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from flylab.compiler.signature import CONSTEXPR, INFERRED, NUMBER, POINTER, STREAM, STRUCT, TENSOR, Parameter, Signature
from flylab.compiler.users import PLAIN, exact
from flylab.expr.numeric import Numeric
from flylab.expr.promotion import integer_range, plain
from flylab.expr.struct import Struct
from flylab.expr.typing import Stream
from flylab.runtime.adaptors import PointerArgument, TensorArgument
from flylab.runtime.arguments import number_of
from flylab.runtime.registry import JitArgumentRegistry
from flylab.runtime.tensors import is_array


class Missed:
    """A call for which there is no plan, with its key where it has one."""

    __slots__ = ("key",)

    def __init__(self, key: Any = None):
        self.key = key


MISSED = Missed()


class Itself:
    """An object in a key that equals only itself; the key keeps it."""

    __slots__ = ("object",)

    def __init__(self, object: Any):
        self.object = object

    def __eq__(self, other: object) -> bool:
        return type(other) is Itself and self.object is other.object

    def __hash__(self) -> int:
        return id(self.object)


KEYED = 16
"""A key holds addresses modulo so many bytes."""
NO_CONSTANTS = (Numeric, Struct, Stream, TensorArgument, PointerArgument)
TORCH: set[type] = set()
NUMPY: set[type] = set()
"""The types of tensors and arrays of which plans are made; those of the libraries that are imported."""


def note_libraries() -> None:
    """Fill `TORCH` and `NUMPY` with what is imported by now."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if numpy is not None and not NUMPY:
        NUMPY.add(numpy.ndarray)
    if torch is not None and not TORCH and hasattr(torch, "nn"):
        TORCH.update((torch.Tensor, torch.nn.Parameter))


def constant(value: Any) -> Any:
    """A constant in a key, beside its type: equal for the very same value, or for the very same object.

    Raises `TypeError` for a value that is no constant, or may be none: a number, struct or tensor for the device.

    >>> constant(0.0) == constant(-0.0), constant((1, 2)) == constant((1, True)), constant([1]) == constant([1])
    (False, False, False)
    """
    kind = type(value)
    if kind in PLAIN:
        return exact(value)
    if (number := plain(value)) is not value:  # of numpy or torch
        return exact(number)
    if kind is tuple:
        return tuple([(type(item), constant(item)) for item in value])
    if isinstance(value, NO_CONSTANTS) or is_array(value) or JitArgumentRegistry.get(kind) is not None:
        raise TypeError(value)
    return Itself(value)


# The parts of the generated function; {p} is a prefix that no parameter's name starts with, {x} the parameter, {i} its
# number. `data_ptr` comes first: it fails for tensors without memory of their own. A torch tensor's storage and the
# array that owns a numpy array's memory give the bytes that may be touched, which `as_strided` does not heed.
# What is said of a tensor, beside what it is: its key holds the shape, so the numbers of a runtime layout too.
_SAID_PART = """\
{p}m{i} = None
if type({x}) is {p}TensorArgument:
    {p}m{i}, {x} = {x}.said, {x}.tensor
    if type({x}) not in {p}torch and type({x}) not in {p}numpy:
        return {p}missed
"""
_TORCH_PART = """\
if type({x}) in {p}torch:
    {p}p{i}, {p}s = {x}.data_ptr(), {x}.untyped_storage()
    {p}l{i} = {p}s.data_ptr()
    {p}h{i} = {p}l{i} + {p}s.nbytes()
    {p}k{i} = {x}.dtype, {x}.shape, {x}.stride(), {x}.device, {x}.is_neg(), {p}p{i} % {p}keyed
"""
_NUMPY_PART = """\
elif type({x}) in {p}numpy:
    {p}p{i} = {p}address({x})
    {p}l{i}, {p}h{i} = {p}owned({x}) if {x}.base is not None else ({p}p{i}, {p}p{i} + {x}.nbytes)
    {p}k{i} = {x}.dtype, {x}.shape, {x}.strides, {x}.flags.writeable, {p}p{i} % {p}keyed
"""
_OTHER_PART = "else:\n    return {p}missed\n"
_CONSTANT_PART = "else:\n    {p}p{i} = {p}l{i} = {p}h{i} = None\n    {p}k{i} = type({x}), {p}constant({x})\n"
_INTEGER_PART = """\
if type({x}) is not int:
    {x} = {p}number({p}a{i}, {x})
if not {low} <= {x} <= {high}:
    return {p}missed
"""
_FLOAT_PART = "if type({x}) is not float:\n    {x} = {p}real({p}a{i}, {x})\n"
_BOOL_PART = "if {x} is not True and {x} is not False:\n    return {p}missed\n"
_PLAIN_PART = "{p}k{i} = {x} if type({x}) in {p}plain else {p}constant({x})\n"
_END = """\
for {p}plan in {p}plans.get({p}key, ()):
    if {p}plan.fits():
        {p}run = {p}plan.run
        break
else:
    return {p}Missed({p}key)
"""


def binder(signature: Signature, plans: dict[Any, Any]) -> Callable[..., Any] | None:
    """The function for a launcher's parameters that looks up `plans`; None where a parameter is a struct."""
    note_libraries()
    parameters = signature.parameters
    if any(p.kind == STRUCT for p in parameters):
        return None
    prefix = "_"
    while any(p.name.startswith(prefix) for p in parameters):
        prefix += "_"
    body, keys, passed = "", "", ""
    for i, parameter in enumerate(parameters):
        part, key, values = _part(parameter)
        fill = {"p": prefix, "x": parameter.name, "i": i}
        body += part.format(**fill)
        keys += key.format(**fill)
        passed += values.format(**fill)
    body += f"{prefix}key = ({keys})\n" + _END.format(p=prefix)
    text = "\n".join([
        f"def bound({_parameters(signature, prefix)}):",
        " try:",
        *("  " + line for line in body.splitlines()),
        " except Exception:",
        f"  return {prefix}missed",
        f" return {prefix}run({passed})",
    ])
    names: dict[str, Any] = {"plans": plans, "torch": TORCH, "numpy": NUMPY, "plain": _SIMPLE, "missed": MISSED,
                             "Missed": Missed, "address": numpy_address(), "owned": numpy_owned, "constant": constant,
                             "number": number_of, "real": _real, "keyed": KEYED, "TensorArgument": TensorArgument}
    names |= {f"a{i}": parameter for i, parameter in enumerate(parameters)}
    names |= {f"d{i}": python.default for i, python in enumerate(signature.python.parameters.values())}
    space: dict[str, Any] = {prefix + name: value for name, value in names.items()}
    exec(compile(text, FILE, "exec"), space)
    found: Callable[..., Any] = space["bound"]
    return found


FILE = "<flylab binding>"
# Constants that equal only the same, where their types do.
_SIMPLE = frozenset({int, bool, str, bytes, type(None), type(...)})


def _part(parameter: Parameter) -> tuple[str, str, str]:
    """The text that looks at a parameter's argument, what it adds to the key, and to what the plan is run on."""
    if parameter.kind in (TENSOR, POINTER):
        return _SAID_PART + _TORCH_PART + _NUMPY_PART + _OTHER_PART, "{p}m{i}, {p}k{i}, ", "{p}p{i}, {p}l{i}, {p}h{i}, "
    if parameter.kind == INFERRED:
        text = _SAID_PART + _TORCH_PART + _NUMPY_PART + _CONSTANT_PART
        return text, "{p}m{i}, {p}k{i}, ", "{p}p{i}, {p}l{i}, {p}h{i}, "
    if parameter.kind == CONSTEXPR:
        return _PLAIN_PART, "type({x}), {p}k{i}, ", ""
    if parameter.kind == STREAM:
        return "", "", "{x}, "
    assert parameter.kind == NUMBER and parameter.numeric is not None
    dtype = parameter.numeric.dtype
    if dtype.is_float:
        return _FLOAT_PART, "", "{x}, "
    if dtype.kind == "bool":
        return _BOOL_PART, "", "{x}, "
    low, high = integer_range(dtype)
    return _INTEGER_PART.replace("{low}", str(low)).replace("{high}", str(high)), "", "{x}, "


def _parameters(signature: Signature, prefix: str) -> str:
    """The parameters as they are written after `def`."""
    found, last = [], None
    for i, python in enumerate(signature.python.parameters.values()):
        if python.kind is not inspect.Parameter.POSITIONAL_ONLY and last is inspect.Parameter.POSITIONAL_ONLY:
            found.append("/")
        if python.kind is inspect.Parameter.KEYWORD_ONLY and last is not inspect.Parameter.KEYWORD_ONLY:
            found.append("*")
        found.append(python.name if python.default is python.empty else f"{python.name}={prefix}d{i}")
        last = python.kind
    return ", ".join(found + ["/"] * (last is inspect.Parameter.POSITIONAL_ONLY))


def _real(parameter: Parameter, value: Any) -> float:
    """The number for a parameter of a float format, where a double holds it. Raises where it does not."""
    number = number_of(parameter, value)
    if number != float(number):
        raise ArithmeticError(number)
    return float(number)


def numpy_owned(array: Any) -> tuple[int, int]:
    """The first byte and the end of the memory that a numpy array is a view of.

    Raises `TypeError` where the owner is no numpy array that holds memory of its own.
    """
    base = array.base
    if type(base) not in NUMPY or base.base is not None:
        raise TypeError(array)
    start = numpy_address()(base)
    return start, start + base.nbytes


def _through_ctypes(array: Any) -> int:
    """The address of an array's first element, as numpy's `ctypes` attribute says it: about a microsecond."""
    found: int = array.ctypes.data
    return found


def _through_header(array: Any) -> int:
    """The same out of the array's C structure, in a sixth of the time.

    Source: numpy/ndarraytypes.h, where `char *data` is the first member of PyArrayObject_fields after Python's header.
    """
    return _pointer_at(id(array) + _HEADER).value or 0


_pointer_at, _HEADER = ctypes.c_void_p.from_address, object.__basicsize__


@cache
def numpy_address() -> Callable[[Any], int]:
    """What gives the address of an array's first element: the fast way, where it says the same as the documented."""
    import numpy

    if sys.implementation.name != "cpython":  # where `id` is no address
        return _through_ctypes
    tried = numpy.zeros(8, "uint8")
    same = all(_through_header(a) == _through_ctypes(a) for a in (tried, tried[3:], tried[::-1]))
    return _through_header if same else _through_ctypes
