"""`fx.printf`: lines of text from the device, printed where the launch is called.

What is known while tracing is formatted at once. A number of the device is recorded where the kernel runs, and becomes
text after the launch: by block, then by thread, then in the order of the thread's own program.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable
from typing import Any

from flylab.dialect.types import POINTERS
from flylab.dtypes import DTYPES
from flylab.errors import TraceError
from flylab.expr.emit import fly, mlir_type, op
from flylab.expr.gpu import Tuple3D
from flylab.expr.layout_value import LayoutValue
from flylab.expr.lines import Field, Line, check_spec, is_unfinished, shown
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Numeric, is_mlir_value
from flylab.expr.promotion import plain
from flylab.expr.state import active
from flylab.expr.struct_values import Struct, Union
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.vector import Vector
from flylab.expr.words import words_of
from flylab.shown import a_kind

# C's conversions, and those that are no part of a text such as 50%done.
_PERCENT = re.compile(r"%[-+#0]*\d*(?:\.\d+)?(?:hh|ll|[hlzjt])?[diouxXeEfFgGaAcsp]")
_CONVERSION = re.compile(rf"(?<![\w%}}]){_PERCENT.pattern}(?!\w)")


def printf(*args: Any, format_str: str = "", **named: Any) -> None:
    """Print a line for each thread that comes here: `fx.printf("tid={} val={:.3f}", tid, val)`.

    The text is a format of Python's: `{}`, or numbered `{0}`, with a specification for numbers, `{:>8}`, `{:.3f}`,
    `{:x}`; `{{` is a brace. A value is a number of any format, a Vector, tuple, list, struct, layout, a pointer (its
    address), or what Python knows while tracing; the specification holds for each number in it. A newline is added
    where there is none. In a launcher the line is printed at each launch; outside of both, at once. Without a text the
    values are printed with blanks between them. Lines come out after the kernel, in `sys.stdout` of the launching
    thread, by block, then thread, x fastest.

    >>> printf("{} threads, {:x}, {{}}", 64, 255)
    64 threads, ff, {}

    Raises `TraceError` where the numbers of `{}` and of values differ, for a specification that does not fit, and for a
    value that cannot be shown.
    """
    if named:
        name = next(iter(named))
        raise TraceError(f"printf(..., {name}=...): its values have no names",
                         hint=f'write {{}} for {{{name}}}, and pass the values in order: fx.printf("x = {{}}", x)')
    text, values = _arguments(args, format_str)
    line, words = Line(), []
    for literal, index, spec in _parsed(text, len(values)):
        line.say(literal)
        if index is not None:
            words += _show(line, values[index], spec)
    if not line.texts[-1].endswith("\n"):
        line.say("\n")
    function = active.function
    if function is None:
        print(line.filled([]), end="")
        return
    formats = ", ".join(f.dtype.name for f in line.fields)
    fly("printf", words, [], format=line.format, formats=formats, site=len(function.lines))
    function.lines.append(line)


def _arguments(args: tuple[Any, ...], format_str: str) -> tuple[str, list[Any]]:
    """The text and the values."""
    values = list(args)
    text = format_str
    if not text and values and isinstance(values[0], str):
        text = values.pop(0)
    elif not text:
        text = " ".join("{}" for _ in values)
    if not isinstance(text, str) or not (args or text):
        raise TraceError(f"printf of {'nothing' if not text else repr(text)}", hint='write fx.printf("x = {}", x)')
    if is_unfinished(text):
        raise TraceError(f"printf of a text that is finished already: {text!r}",
                         hint='no f-string and no str(): fx.printf("x = {}", x) shows the number of each thread')
    return text, values


def _parsed(text: str, count: int) -> list[tuple[str, int | None, str]]:
    """The pieces of a format: text, the number of the value after it, and its specification."""
    try:
        pieces = list(string.Formatter().parse(text))
    except ValueError as error:
        raise TraceError(
            f"printf cannot read its format {text!r}: {error}", hint="a brace is written {{ or }}"
        ) from None
    names = [name for _, name, _, _ in pieces if name is not None]
    for _, name, spec, conversion in pieces:
        if name is not None and (conversion or "{" in (spec or "") or not re.fullmatch(r"\d{0,4}", name)):
            shape = f"{{{name}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}"
            raise TraceError(f"printf has no {shape} in its format",
                             hint="write {}, {0} or {:>8}, pass the values in order; a brace is written {{ or }}")
    if len({bool(name) for name in names}) > 1:
        raise TraceError(f"printf's format {text!r} mixes {{}} with numbered ones", hint="number all of them, or none")
    numbers = [int(name) if name else at for at, name in enumerate(names)]
    _check_count(text, numbers, count)
    left = iter(numbers)
    return [(literal, None if name is None else next(left), spec or "") for literal, name, spec, _ in pieces]


def _check_count(text: str, numbers: list[int], count: int) -> None:
    asked = len(set(numbers))
    if set(numbers) == set(range(count)):
        if found := _CONVERSION.findall(text):
            raise TraceError(f"printf's format has a {found[0]} of C's: {text!r}",
                             hint=f'write {{}} in its place and pass a value; for the text itself pass "{found[0]}"')
        return
    found = _PERCENT.findall(text)
    hint = "give one value for each {}; a brace is written {{ or }}"
    if found and count > asked:
        hint = f"write {{}} in place of {found[0]}: the format is Python's"
    missing = sorted(set(range(max(numbers, default=-1) + 1)) - set(numbers))
    number = f", none of them {{{missing[0]}}}" if missing else ""
    raise TraceError(f"printf's format asks for {asked} value{'s' * (asked != 1)}{number}, and {count} "
                     f"{'is' if count == 1 else 'are'} given: {text!r}", hint=hint)


def _show(line: Line, value: Any, spec: str, inside: bool = False) -> list[Any]:
    """Add a value to a line; the words of what only the device knows of it."""
    value = plain(value)
    if isinstance(value, Numeric):
        check_spec(spec, value.dtype)
        if value.is_static:
            line.say(shown(value.value, value.dtype, spec))
            return []
        line.ask(Field(value.dtype, spec))
        return words_of(value)
    if isinstance(value, Pointer):
        return _show_address(line, value, spec)
    if isinstance(value, Vector):
        return _show_all(line, value, spec, "[", "]")
    if isinstance(value, LayoutValue):
        return _show_layout(line, value, spec)
    if isinstance(value, list):
        return _show_all(line, value, spec, "[", "]")
    if isinstance(value, Tuple3D):
        value = tuple(value)
    if isinstance(value, tuple):
        return _show_all(line, value, spec, "(", ",)" if len(value) == 1 else ")")
    if isinstance(value, dict):
        return _show_fields(line, [(f"{key!r}: ", each) for key, each in value.items()], spec, "{", "}")
    if isinstance(value, Struct) and not isinstance(value, Union):
        fields = [(f"{name}=", getattr(value, name)) for name in type(value).fields]
        return _show_fields(line, fields, spec, f"{type(value).__name__}(", ")")
    line.say(_known(value, spec, inside))
    return []


def _show_all(line: Line, values: Iterable[Any], spec: str, opening: str, closing: str) -> list[Any]:
    words: list[Any] = []
    line.say(opening)
    for number, each in enumerate(values):
        line.say(", " if number else "")
        words += _show(line, each, spec, inside=True)
    line.say(closing)
    return words


def _show_fields(line: Line, values: list[tuple[str, Any]], spec: str, opening: str, closing: str) -> list[Any]:
    words: list[Any] = []
    line.say(opening)
    for number, (name, each) in enumerate(values):
        line.say(f"{', ' if number else ''}{name}")
        words += _show(line, each, spec, inside=True)
    line.say(closing)
    return words


def _show_layout(line: Line, layout: LayoutValue, spec: str) -> list[Any]:
    """A layout's text, with its runtime leaves in place of what is known of them."""
    words: list[Any] = []
    for text, number in zip(re.split(r"\?(?:\{[^}]*\})?", str(layout)), [*layout.numbers(), None], strict=True):
        line.say(text)
        words += [] if number is None else _show(line, number, spec)
    return words


def _show_address(line: Line, pointer: Pointer, spec: str) -> list[Any]:
    if pointer.spec.space != "global":
        raise TraceError(f"printf of {name_of(pointer, 'a pointer')} into {pointer.spec.space} memory",
                         hint="only pointers into global memory have an address to show")
    from mlir import ir

    number = DTYPES["Uint64"]
    check_spec(spec, number)
    line.ask(Field(number, spec or "#x"))
    bare = fly("to_llvm_ptr", [pointer.value], [ir.Type.parse(POINTERS["global"])])
    return words_of(CLASSES[number.name](op("llvm.ptrtoint", [bare], mlir_type(number))))


def _known(value: Any, spec: str, inside: bool) -> str:
    """The text of what Python knows, as `format` gives it; in a list or tuple as Python shows it there."""
    if isinstance(value, Tensor) or is_mlir_value(value):
        hint = "load it: t.load() is a vector, t[i] one element; fx.get_iter(t) is its address"
        raise TraceError(f"printf of {name_of(value, 'this value')}, which is {a_kind(value)}",
                         hint=hint if isinstance(value, Tensor) else "wrap it in its format first: fx.Int32(value)")
    try:
        number = isinstance(value, (int, float))
        text = repr(value) if inside and isinstance(value, str) else format(value, spec if number or not inside else "")
    except (TypeError, ValueError) as error:
        raise TraceError(f"printf shows {value!r} by {{:{spec}}}: {error}",
                         hint="use a specification that Python has for it") from None
    if is_unfinished(text) and not isinstance(value, str):
        raise TraceError(f"printf of {a_kind(value)} that holds numbers of the device: {text}",
                         hint="print these numbers: pass them, or a tuple of them")
    return text
