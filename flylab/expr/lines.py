"""What one `fx.printf` prints: pieces of text, and between them the numbers that only the device knows.

The device records the words of these numbers, lowest bits first; here they become text again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from flylab.dtypes import BOOL, DType
from flylab.errors import TraceError
from flylab.expr.bits import of_bits
from flylab.expr.folding import normalise
from flylab.expr.words import BITS, word_count

# Of a format specification: what makes it say itself how many digits of a float are shown.
_DIGITS = re.compile(r"\.\d+|[a-zA-Z%]$")
_LONGEST = 9999
# The text of a number that only the device knows.
_UNKNOWN = re.compile(r"\b(?:U?[Ii]nt\d+|B?[Ff]loat\w+|Boolean|Index)\(\?\)|\bVector\(\w+ x ")


def is_unfinished(text: str) -> bool:
    """Whether a text was made of numbers that only the device knows: it shows no value in their places.

    >>> is_unfinished("too big: Int32(?)"), is_unfinished("too big: 3")
    (True, False)
    """
    return _UNKNOWN.search(text) is not None


def shortest(value: float, dtype: DType) -> str:
    """The fewest digits that give a float of this format back, in Python's spelling; of 8 bits and below its value.

    >>> from flylab.dtypes import DTYPES
    >>> shortest(0.10009765625, DTYPES["BFloat16"]), shortest(0.10000000149011612, DTYPES["Float32"])
    ('0.1', '0.1')
    """
    if not value or not math.isfinite(value) or dtype.bits not in (16, 32):
        return repr(float(value))
    if dtype.name != "BFloat16":
        import numpy

        return repr(float(numpy.format_float_scientific(dtype.to_numpy().type(value), unique=True)))
    return _by_trying(value, dtype)


@lru_cache(maxsize=1 << 16)
def _by_trying(value: float, dtype: DType) -> str:
    texts = (f"{value:.{digits}e}" for digits in range(17))
    return repr(float(next(text for text in texts if normalise(float(text), dtype) == value)))


def shown(value: Any, dtype: DType, spec: str = "") -> str:
    """A number of a format as text, by one of Python's format specifications.

    >>> from flylab.dtypes import DTYPES
    >>> shown(-2, DTYPES["Int32"], ">5"), shown(0.1, DTYPES["Float64"]), shown(255, DTYPES["Uint8"], "#x")
    ('   -2', '0.1', '0xff')
    """
    if dtype.kind == BOOL:
        value = bool(value)
    elif dtype.is_float and not _DIGITS.search(spec):
        text = shortest(value, dtype)
        return format(float(text), spec) if spec else text
    return format(value, spec)


def check_spec(spec: str, dtype: DType) -> None:
    """Refuse a format specification that a number of this format cannot be shown by."""
    why = "a character is no way to show every integer" if spec.endswith("c") else ""
    if any(int(size) > _LONGEST for size in re.findall(r"\d+", spec)):
        why = f"sizes are at most {_LONGEST}"
    try:
        format(1.5 if dtype.is_float else dtype.kind == BOOL or 1, "" if why else spec)
    except ValueError as error:
        why = str(error)
    if why:
        raise TraceError(f"printf shows {dtype} by {{:{spec}}}: {why}",
                         hint="use a specification of Python's for numbers: {:.3f}, {:>8}, {:x}")


@dataclass(frozen=True)
class Field:
    """A number in a line: its format, and the specification that it is shown by."""

    dtype: DType
    spec: str = ""

    @property
    def words(self) -> int:
        """How many words are recorded."""
        return word_count(self.dtype.bits)

    def text(self, words: Sequence[int]) -> str:
        """The number that these words are, as text."""
        bits = 0
        for at, word in enumerate(words):
            bits |= word << BITS * at
        return shown(of_bits(bits & ((1 << self.dtype.bits) - 1), self.dtype), self.dtype, self.spec)


@dataclass
class Line:
    """The text of one printf: `texts[0]`, the first field, `texts[1]` ... up to the last text."""

    texts: list[str] = field(default_factory=lambda: [""])
    fields: list[Field] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Add known text."""
        self.texts[-1] += text

    def ask(self, number: Field) -> None:
        """Add a number of the device."""
        self.fields.append(number)
        self.texts.append("")

    @property
    def words(self) -> int:
        """How many words a record of it holds."""
        return sum(f.words for f in self.fields)

    @property
    def format(self) -> str:
        """The line as a format of Python's."""
        escaped = [text.replace("{", "{{").replace("}", "}}") for text in self.texts]
        specs = [f"{{:{f.spec}}}" if f.spec else "{}" for f in self.fields]
        return "".join(part for pair in zip(escaped, [*specs, ""], strict=True) for part in pair)

    def filled(self, words: Sequence[int]) -> str:
        """The text of a record's words."""
        parts, at = [self.texts[0]], 0
        for number, text in zip(self.fields, self.texts[1:], strict=True):
            parts += number.text(words[at : at + number.words]), text
            at += number.words
        return "".join(parts)
