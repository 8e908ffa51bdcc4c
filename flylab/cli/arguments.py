"""Launch arguments from texts: `A=f32[1024,64]`, `A,B=f16[64]`, `n=1024`, `N=constexpr:4`, `x=f32:0.5`.

A tensor is its format, its shape and, after a colon, its strides in elements: `f32[8,64]:(1,8)`. Anything else is a
Python expression, in which the names of the file count.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flylab.cli.usage import UsageError, nearest
from flylab.dtypes import BOOL, DTYPE_OF_TEXT, DTYPES, DType
from flylab.targets import Target

if TYPE_CHECKING:
    from flylab.compiler.jit import Launcher
    from flylab.compiler.signature import Parameter

SYNTAX = """\
arguments: -a NAME=VALUE, or -a NAME,NAME=VALUE for several of one kind
  A=f32[1024,64]         a tensor: format and shape, row by row. Formats: f32 f16 bf16 f64 i8 i32 u8 ..., fp8 and bf8
                         are the chip's own
  A=f32[8,64]:(1,8)      a tensor with strides, in elements
  A=DATA                 an array that the file makes, or any expression that gives one
  n=1024                 a number, or any other Python expression; the file's names count: n=4*BLOCK, dtype=fx.Float16
  N=constexpr:4          a constant, where the launcher's annotation does not say so
  x=f32:0.5              a number of that format, where the annotation does not say so
"""
CALLED_TEXT = re.compile(r"\s*(\w+)\s*(?:\((.*)\))?\s*")
Make = Callable[[str, DType, Sequence[int], Sequence[int] | None], Any]
TENSOR_TEXT = re.compile(r"\s*(\w+)\s*\[(.*?)\]\s*(?::\s*\((.*)\)\s*)?")
TYPED_TEXT = re.compile(r"\s*(\w+)\s*:(.+)")


@dataclass(frozen=True)
class Text:
    """The text that is given for an argument; `origin` is the function of the file that gives it, "" for --arg."""

    name: str
    text: str
    origin: str = ""

    def __str__(self) -> str:
        return f"{self.origin}: {self.name!r}: {self.text!r}" if self.origin else self.like(self.text)

    def like(self, text: str) -> str:
        """How another text is given for it."""
        return f"{self.name!r}: {text!r}" if self.origin else f"--arg {self.name}={text}"


def assignments(texts: Iterable[str]) -> dict[str, str]:
    """The text given for each name. Raises `UsageError` for one that is no assignment, and for a name given twice.

    >>> assignments(["A,B=f32[8]", "n=8"])
    {'A': 'f32[8]', 'B': 'f32[8]', 'n': '8'}
    """
    found: dict[str, str] = {}
    for text in texts:
        names, equals, value = text.partition("=")
        for name in (part.strip() for part in names.split(",")):
            if not equals or not name.isidentifier() or not value.strip():
                raise UsageError(f"--arg {text}", hint="give a name and a value: --arg A=f32[1024], --arg n=1024")
            if name in found:
                raise UsageError(f"--arg gives '{name}' twice: {found[name]} and {value}", hint="give it once")
            found[name] = value
    return found


def arguments_for(launcher: Launcher, given: Mapping[str, Any], names: Mapping[str, Any], chip: Target,
                  make: Make) -> dict[str, Any]:
    """The arguments of a launcher by name, from each `Text` (other values stay as they are).

    `make` makes a tensor of format and shape. Arguments with defaults may lack. Raises `UsageError` for a name that the
    launcher does not have, for one that lacks, and for a text that gives no value.
    """
    parameters = {p.name: p for p in launcher.signature.parameters}
    for name in given:
        if name not in parameters:
            shown = ", ".join(map(str, parameters.values()))
            raise UsageError(f"launcher '{launcher.name}' has no parameter '{name}'",
                             hint=nearest(name, parameters) or f"its parameters are ({shown})")
    values = {name: _value(parameters[name], value, names, chip, make) if isinstance(value, Text) else value
              for name, value in given.items()}
    missing = [p for p in parameters.values() if p.name not in values and p.kind != "stream"
               and launcher.signature.python.parameters[p.name].default is launcher.signature.python.empty]
    if missing:
        raise UsageError(f"launcher '{launcher.name}' needs {', '.join(map(str, missing))}",
                         where=launcher.signature.where(),
                         hint=f"for example, with your own shapes: {_example(missing)}")
    return values | {p.name: _stream() for p in parameters.values() if p.kind == "stream" and p.name not in values}


def _stream() -> Any:
    from flylab.expr.typing import Stream

    return Stream(None)


def _example(missing: Sequence[Parameter]) -> str:
    """Options that give what is missing, tensors together."""
    tensors = ",".join(p.name for p in missing if p.kind == "tensor")
    return " ".join([f"-a {tensors}=f32[1024]"] * bool(tensors)
                    + [f"-a {p.name}=1024" for p in missing if p.kind != "tensor"])


def _value(parameter: Parameter, given: Text, names: Mapping[str, Any], chip: Target, make: Make) -> Any:
    """The value of a text for a parameter."""
    text = given.text
    if (match := TENSOR_TEXT.fullmatch(text)) and (dtype := format_of(match[1], chip)) is not None:
        shape = _numbers(given, match[2], names)
        strides = None if match[3] is None else _numbers(given, match[3], names)
        return make(given.name, dtype, shape, strides)
    if parameter.kind == "tensor":
        return _given_tensor(given, names, chip, match[1] if match else None)
    if match := TYPED_TEXT.fullmatch(text):
        if match[1] == "constexpr":
            return _constant(parameter, given, match[2], names)
        if (dtype := format_of(match[1], chip)) is not None:
            return _typed(given, dtype, _evaluated(given, match[2], names))
    if parameter.constexpr_type is str and text.strip()[:1] not in ("'", '"'):
        return text
    return _evaluated(given, text, names)


def _given_tensor(given: Text, names: Mapping[str, Any], chip: Target, word: str | None) -> Any:
    """A tensor that the file makes; `word` stands where a format would stand, and is none."""
    from flylab.runtime.adaptors import TensorArgument
    from flylab.runtime.tensors import is_array

    hint = f"give a format and a shape: {given.like('f32[1024,64]')}"
    if word is not None and word not in names:
        raise UsageError(f"{given}: no number format is called {word!r}",
                         hint=nearest(word, [*DTYPE_OF_TEXT, "fp8", "bf8"]) or hint)
    called = CALLED_TEXT.fullmatch(given.text)
    if called and called[1] not in names and format_of(called[1], chip):
        raise UsageError(f"{given}: a tensor's shape stands in brackets",
                         hint=given.like(f"{called[1]}[{called[2] or '1024'}]"))
    value = _evaluated(given, given.text, names)
    if not (isinstance(value, TensorArgument) or is_array(value)):
        raise UsageError(f"{given}: this is no tensor, but of type {type(value).__name__}", hint=hint)
    return value


def _constant(parameter: Parameter, given: Text, text: str, names: Mapping[str, Any]) -> Any:
    if parameter.kind not in ("constexpr", "inferred"):
        raise UsageError(f"{given}: the parameter is '{parameter}'",
                         hint="leave constexpr: out, or annotate it fx.Constexpr[int]")
    return _evaluated(given, text, names)


def _typed(given: Text, dtype: DType, value: Any) -> Any:
    """A number of a format, which it fits into."""
    import numpy

    from flylab.expr.numeric import CLASSES
    from flylab.expr.promotion import integer_range

    if not dtype.is_float and dtype.kind != BOOL and isinstance(value, int | float | numpy.number):
        low, high = integer_range(dtype)
        if not low <= value <= high or value != int(value):
            raise UsageError(f"{given}: {dtype} has the integers from {low:,} to {high:,}",
                             hint="give one of them, or another format")
    return CLASSES[dtype.name](value)


def format_of(word: str, chip: Target) -> DType | None:
    """The number format of a word: `f32`, `u8`, `Float32`, numpy's `float32`, and `fp8` or `bf8`, the chip's own.

    >>> from flylab.targets import target
    >>> [format_of(word, target("gfx942")).name for word in ("fp8", "i8", "u8", "int8")]
    ['Float8E4M3FNUZ', 'Int8', 'Uint8', 'Int8']
    """
    names = {text.lower(): row for text, row in DTYPE_OF_TEXT.items()}
    names |= {row.name.lower(): row for row in DTYPES.values()} | {d.numpy_name: d for d in DTYPES.values()}
    names |= {f"u{row.bits}": row for row in DTYPES.values() if row.kind == "uint"}
    names |= {word: DTYPES[name] for word, name in chip.float8.items()}
    return names.get(word.lower())


def _numbers(given: Text, text: str, names: Mapping[str, Any]) -> tuple[int, ...]:
    found = _evaluated(given, f"({text},)" if text.strip() else "()", names)
    if not all(type(n) is int for n in found):
        raise UsageError(f"{given}: {text!r} are no integers", hint=given.like("f32[1024,64]"))
    return tuple(found)


def _evaluated(given: Text, text: str, names: Mapping[str, Any]) -> Any:
    """The value of a Python expression, in which the file's names count, and `fx` and `np`."""
    import numpy

    import flylab.expr

    try:
        return eval(text.strip(), {"fx": flylab.expr, "np": numpy, **names})
    except Exception as error:
        quoted = given.like(f'"{text}"') if given.origin else f"--arg '{given.name}=\"{text}\"'"
        also = f"; a text is quoted: {quoted}" if text.strip().isidentifier() else ""
        raise UsageError(f"{given}: {type(error).__name__}: {error}",
                         hint=f"give a Python expression of the file's names{also}") from None


def tensor(name: str, dtype: DType, shape: Sequence[int], strides: Sequence[int] | None = None) -> Any:
    """A numpy array of this format, shape and strides (in elements), in memory that costs nothing until it is touched.

    Raises `UsageError` for extents or strides that cannot be.

    >>> tensor("A", DTYPES["Float32"], (8, 64), (1, 8)).strides
    (4, 32)
    """
    import numpy

    if strides is None:
        strides = [_product(shape[n + 1:]) for n in range(len(shape))]
    if len(strides) != len(shape) or any(extent < 1 for extent in shape):
        raise UsageError(f"'{name}': shape {tuple(shape)} with strides {tuple(strides)}",
                         hint="extents are 1 or more, and each has a stride: f32[8,64]:(1,8)")
    if dtype.bits % 8 or not dtype.numpy_name:
        raise UsageError(f"'{name}': tensors of {dtype} are not there yet", hint="give its bytes: u8[...]")
    reach = [(extent - 1) * stride for extent, stride in zip(shape, strides, strict=True)]
    below, size = -sum(r for r in reach if r < 0), dtype.bits // 8
    count = below + sum(r for r in reach if r > 0) + 1
    try:
        memory = mmap.mmap(-1, count * size, **_unreserved())
    except (OSError, OverflowError, ValueError) as error:
        raise UsageError(f"'{name}': {count * size:,} bytes: {error}", hint="give a smaller shape") from None
    flat = numpy.frombuffer(memory, numpy.uint8).view(dtype.to_numpy())
    return numpy.lib.stride_tricks.as_strided(flat[below:], tuple(shape), [stride * size for stride in strides])


def _product(extents: Sequence[int]) -> int:
    result = 1
    for extent in extents:
        result *= extent
    return result


def _unreserved() -> dict[str, int]:
    """Linux promises memory only as it is touched, where it is asked to."""
    if not hasattr(mmap, "MAP_NORESERVE"):
        return {}
    return {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_NORESERVE}
