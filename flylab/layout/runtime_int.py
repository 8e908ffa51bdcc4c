"""An integer that is known only while a kernel runs, by what is known of it before: `?`, a leaf of a layout.

The algebra computes with it as with an int. What it has to decide is decided from the facts: the least and the
greatest value, and a divisor. Where they do not decide, the operation is refused: an answer that holds for some values
alone would be wrong for the others. Compiling, `made` gives the operation that computes a result on the device.

    >>> from flylab.layout import parse, zipped_divide
    >>> str(zipped_divide(parse("(?{div=128},?):(?,1)"), (128, 64)))
    '((128,64),(?{<=16777215},?{<=33554432})):((?,1),(?{i64 <2^38 div=128},64))'

In decisions, a number that cannot be negative counts as its divisor at least: an extent of 0 is an empty layout, and a
stride of 0 has to be given as 0.
"""

from __future__ import annotations

import re
from math import gcd, lcm
from typing import Any, NoReturn

from flylab.errors import LayoutError, Undecided
from flylab.layout.terms import Term, quotient, term_of, times

MOST = {32: 2**31 - 1, 64: 2**63 - 1}
"""The greatest signed value of each width."""
_MOST_DIVISOR = 1 << 30
_FAR = 1 << 32


class RuntimeInt:
    """Facts of a runtime integer: `low <= value <= high`, a multiple of `divisor`, held in `bits` (32 or 64) bits.

    32 bits hold a signed number, or an unsigned one where it cannot be negative. Numbers of one name are one number;
    without names two are equal only if they are the same object. Raises LayoutError for facts that no integer of 64
    bits has, and for what is no name.

    >>> n = RuntimeInt(divisor=8)
    >>> print(n, n * 16, n % 4, n + 2**31)
    ?{div=8} ?{i64 <2^35 div=128} 0 ?{i64 2147483648..4294967288 div=8}
    >>> m, n = RuntimeInt(name="m"), RuntimeInt(name="n", high=1000)
    >>> print(m, n, m * n, m * n // m, n - n)
    m? n?{<=1000} m*n?{i64 <2^41} n?{i64 <2^41} 0
    """

    __slots__ = ("low", "high", "divisor", "bits", "term", "origin")
    term: Term | None
    """Which number it is: a product of named numbers; None where that is not known."""
    origin: RuntimeInt
    """The number that this one was before more was known of it: itself, or an earlier one of the same value."""

    def __init__(self, low: int = 0, high: int | None = None, divisor: int = 1, bits: int = 32,
                 name: str | Term | None = None):
        given = (low, divisor, bits, 0 if high is None else high)
        if not all([type(number) is int for number in given]) or bits not in MOST:
            raise LayoutError(f"a runtime integer of {bits!r} bits from {low!r} to {high!r}, a multiple of {divisor!r}",
                              hint="give ints, and 32 or 64 bits")
        self.term = term_of(name) if isinstance(name, str) else name
        if name and (self.term is None or not isinstance(self.term, Term)):
            raise LayoutError(f"{name!r} is no name of a number", hint='give one such as "m"')
        high = MOST[bits] if high is None else high
        divisor = lcm(divisor, self.term.factor) if self.term else divisor
        divisor = gcd(divisor, _MOST_DIVISOR) if divisor > _MOST_DIVISOR else divisor
        if divisor < 1 or -(-low // divisor) > high // divisor:
            raise LayoutError(f"no integer from {low} to {high} is a multiple of {divisor}",
                              hint="give bounds that hold, low first, and a divisor of 1 or more")
        self.divisor = divisor
        self.low, self.high = -(-low // divisor) * divisor, high // divisor * divisor
        self.bits = bits if bits == 64 or _holds(self.low, self.high) else 64
        self.origin = self
        # Beyond 32 bits the next power of 2 says enough; 64 bits wrap beyond theirs.
        if self.bits == 64:
            self._round()

    def _round(self) -> None:
        lowest, highest = _ends(64, self.divisor)
        if self.high >= _FAR:
            self.high = min(((1 << self.high.bit_length()) - 1) // self.divisor * self.divisor, highest)
        if self.low < -_FAR:
            self.low = lowest
        elif self.low > _FAR:
            self.low = 0

    def __reduce__(self) -> Any:
        return RuntimeInt, (self.low, self.high, self.divisor, self.bits, self.term)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, RuntimeInt) and self.term is not None and self.term == other.term

    def __hash__(self) -> int:
        return id(self) if self.term is None else hash(self.term)

    def __copy__(self) -> RuntimeInt:
        return self

    def __deepcopy__(self, memo: Any) -> RuntimeInt:
        return self

    def made(self, operation: str, a: Any, b: Any, facts: RuntimeInt) -> RuntimeInt:
        """The result of an operation on two numbers, one of them this; for whoever computes with values as well."""
        return facts

    def known(self, low: int, high: int) -> Any:
        """The same number, known to lie between `low` and `high` also; an int where that leaves but one."""
        if max(self.low, low) == min(self.high, high):
            return max(self.low, low)
        return self.read_as(RuntimeInt(max(self.low, low), min(self.high, high), self.divisor, self.bits, self.term))

    def extent(self) -> Any:
        """The same number as an extent, which is not negative.

        >>> print(RuntimeInt(-8).extent())
        ?
        """
        return self if self.low >= 0 else self.known(0, MOST[self.bits])

    def counted(self) -> RuntimeInt:
        """The same bits as a number that is not negative: a coordinate that is divided.

        A negative coordinate is then far outside of its mode, and the division needs no correction.
        """
        if self.low >= 0:
            return self
        return self.read_as(RuntimeInt(0, 2**32 - 1 if self.bits == 32 else MOST[64], 1, self.bits))

    def multiple(self, value: Any, of: Any) -> bool:
        """Whether more than the facts tells that `value`, one of both being this, is a multiple of `of`: for whoever
        computes with values as well."""
        return False

    def read_as(self, facts: RuntimeInt) -> RuntimeInt:
        """These bits with other facts; for whoever computes with values as well."""
        facts.origin = self.origin
        return facts

    def swizzled(self, swizzle: Any) -> RuntimeInt:
        """The number with its bits exclusive-ored by a Swizzle.

        >>> from flylab.layout import Swizzle
        >>> print(RuntimeInt(high=100, divisor=8).swizzled(Swizzle(3, 3, 3)))
        ?{<=120 div=8}
        """
        if self.low >= 0 and self.high < 1 << swizzle.base + max(swizzle.shift, 0):
            return self  # the bits that are read are 0
        bits = max(self.high.bit_length(), swizzle.base + max(-swizzle.shift, 0) + swizzle.bits)
        low, high = (0, (1 << bits) - 1) if self.low >= 0 else (-MOST[64] - 1, MOST[64])
        facts = RuntimeInt(low, high, gcd(self.divisor, 1 << swizzle.base), self.bits if self.low >= 0 else 64)
        return self.made("swizzle", self, swizzle, facts)

    def _combined(self, operation: str, a: Any, b: Any, ends: list[int], divisor: int, term: Term | None = None) -> Any:
        low, high = min(ends), max(ends)
        if low == high:
            return low
        for number in (a, b):
            if type(number) is int and not -MOST[64] <= number <= MOST[64]:
                raise LayoutError(f"{number} beside {self}: the device computes with 64 bits, which do not hold it",
                                  hint="use smaller numbers beside runtime ones")
        bits = max(width(a), width(b))
        return self.made(operation, a, b, RuntimeInt(low, high, max(divisor, 1), bits, term))

    def __add__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        if type(other) is int and not other:
            return self
        ends = [self.low + low_of(other), self.high + high_of(other)]
        return self._combined("add", self, other, ends, gcd(self.divisor, divisor_of(other)))

    def __sub__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        if other == self:
            return 0
        if type(other) is int:
            return self + -other
        ends = [self.low - other.high, self.high - other.low]
        return self._combined("sub", self, other, ends, gcd(self.divisor, other.divisor))

    def __rsub__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        return self._combined("sub", other, self, [other - self.high, other - self.low],
                              gcd(self.divisor, divisor_of(other)))

    def __mul__(self, other: Any) -> Any:
        if not is_number(other):
            return NotImplemented
        if type(other) is int and other in (0, 1):
            return self if other else 0
        ends = [a * b for a in (self.low, self.high) for b in (low_of(other), high_of(other))]
        term = times(self.term, other if type(other) is int else other.term)
        return self._combined("mul", self, other, ends, self.divisor * divisor_of(other), term)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Any:
        return 0 - self

    def __floordiv__(self, other: Any) -> Any:
        return divided(self, other) if is_number(other) else NotImplemented

    def __rfloordiv__(self, other: Any) -> Any:
        return divided(other, self) if is_number(other) else NotImplemented

    def __mod__(self, other: Any) -> Any:
        return remainder(self, other) if is_number(other) else NotImplemented

    def __rmod__(self, other: Any) -> Any:
        return remainder(other, self) if is_number(other) else NotImplemented

    def __lt__(self, other: Any) -> bool:
        if self.high < least(other):
            return True
        return self != other and not least(self) >= high_of(other) and undecided(f"{self} < {other}")

    def __gt__(self, other: Any) -> bool:
        if least(self) > high_of(other):
            return True
        return self != other and not self.high <= least(other) and undecided(f"{self} > {other}")

    def __le__(self, other: Any) -> bool:
        return not self > other

    def __ge__(self, other: Any) -> bool:
        return not self < other

    def __bool__(self) -> bool:
        return self.low > 0 or self.high < 0 or undecided(f"{self} is 0")

    def __abs__(self) -> Any:
        if self.low >= 0:
            return self
        most = max(-self.low, self.high)
        return self.made("abs", self, 0, RuntimeInt(0, most, self.divisor, self.bits))

    def __index__(self) -> NoReturn:
        raise Undecided(f"{self} is known only while the kernel runs, and a number is needed before",
                        hint="give a Python int, or an fx.Constexpr parameter")

    def unless(self, size: Any) -> Any:
        """This number, but 0 where `size` is 0: what is asked of a layout that may be empty."""
        return self.made("unless", self, size, RuntimeInt(min(self.low, 0), self.high, self.divisor, self.bits)) if (
            isinstance(size, RuntimeInt)) else self

    def __str__(self) -> str:
        """`?` is a number of 32 bits that is not negative; what differs from that stands in braces, a name before."""
        notes = ["i64"] if self.bits == 64 else []
        lowest, highest = _ends(self.bits, self.divisor)
        if (self.low, self.high) == (lowest, highest):
            notes.append("signed")
        elif self.low:
            notes.append(f"{self.low}..{self.high}" if self.high != highest else f">={self.low}")
        elif self.high != highest:
            notes.append(f"<={self.high}" if self.high < _FAR else f"<2^{self.high.bit_length()}")
        if self.divisor > (self.term.factor if self.term else 1):
            notes.append(f"div={self.divisor}")
        return f"{self.term or ''}?" + ("{" + " ".join(notes) + "}" if notes else "")

    __repr__ = __str__


def _ends(bits: int, divisor: int) -> tuple[int, int]:
    """The least and the greatest multiple of `divisor` among the signed numbers of so many bits."""
    return -((MOST[bits] + 1) // divisor * divisor), MOST[bits] // divisor * divisor


_NOTES = re.compile(r"([^?]*)\?(?:\{(i64)?\s*(?:(signed)|(-?\d+)\.\.(-?\d+)|<=(\d+)|<2\^(\d+)|>=(-?\d+))?\s*"
                    r"(?:div=(\d+))?\})?")


def parse_runtime(text: str) -> RuntimeInt | None:
    """The facts that `str` wrote; None for other text.

    >>> parse_runtime("?{i64 -8..64 div=8}")
    ?{i64 -8..64 div=8}
    """
    match = _NOTES.fullmatch(text)
    if not match or match[1] and term_of(match[1]) is None:
        return None
    name, wide, signed, first, final, most, power, least_of, multiple = match.groups()
    term = term_of(name)
    bits, divisor = 64 if wide else 32, int(multiple or (term.factor if term else 1))
    low, high = _ends(bits, divisor) if signed else (0, MOST[bits])
    if first or least_of:
        low, high = int(first or least_of), int(final or MOST[bits])
    return RuntimeInt(low, int(most) if most else (1 << int(power)) - 1 if power else high, divisor, bits, term)


def _holds(low: int, high: int) -> bool:
    """Whether 32 bits hold all numbers from low to high, as signed or as unsigned ones."""
    return -MOST[32] - 1 <= low and high <= (2**32 - 1 if low >= 0 else MOST[32])


def is_number(value: Any) -> bool:
    """Whether `value` is a Python int or a RuntimeInt.

    >>> is_number(3), is_number(RuntimeInt()), is_number(True)
    (True, True, False)
    """
    return type(value) is int or isinstance(value, RuntimeInt)


def width(value: Any) -> int:
    """The bits that a number is computed with: 64 for an int that 32 signed bits do not hold.

    >>> width(2**31), width(RuntimeInt())
    (64, 32)
    """
    return value.bits if isinstance(value, RuntimeInt) else 32 if -MOST[32] - 1 <= value <= MOST[32] else 64


def low_of(value: Any) -> int:
    """The least value of a number.

    >>> low_of(3), low_of(RuntimeInt(-8))
    (3, -8)
    """
    return value.low if isinstance(value, RuntimeInt) else value


def high_of(value: Any) -> int:
    """The greatest value of a number.

    >>> high_of(3), high_of(RuntimeInt(high=8))
    (3, 8)
    """
    return value.high if isinstance(value, RuntimeInt) else value


def term_in(value: Any) -> Any:
    """A number as part of a term: an int itself, of a RuntimeInt its term."""
    return value if type(value) is int else value.term


def divisor_of(value: Any) -> int:
    """What surely divides a number: an int itself, for 0 the greatest divisor there is.

    >>> divisor_of(-12), divisor_of(RuntimeInt(divisor=8))
    (12, 8)
    """
    return value.divisor if isinstance(value, RuntimeInt) else abs(value) or _MOST_DIVISOR


def least(value: Any) -> int:
    """The least value that counts in decisions: one that cannot be negative counts as its divisor at least.

    >>> least(RuntimeInt(divisor=8)), least(RuntimeInt(-4)), least(3)
    (8, -4, 3)
    """
    low = low_of(value)
    return max(low, value.divisor) if isinstance(value, RuntimeInt) and low >= 0 else low


def divided(a: Any, b: Any) -> Any:
    """a // b, rounded down. A runtime divisor counts as 1 at least: LayoutError where it may be negative.

    >>> print(divided(RuntimeInt(divisor=8), 4), divided(RuntimeInt(high=1000), 128))
    ?{<=536870910 div=2} ?{<=7}
    """
    if type(a) is int and type(b) is int:
        return a // b
    whole = quotient(a.term, term_in(b)) if isinstance(a, RuntimeInt) else None
    if a is b or whole and not whole.names:
        return whole.factor if whole else 1
    if type(b) is int and b == 1:
        return a
    if low_of(b) < (type(b) is int):
        why = "may be negative" if isinstance(b, RuntimeInt) else "is not positive"
        raise Undecided(f"{a} is divided by {b}, which {why}",
                        hint="divide by a positive number; fx.assume(n, low=1) says that a runtime number is one")
    ends = [end // max(bound, 1) for end in (low_of(a), high_of(a)) for bound in (low_of(b), high_of(b))]
    by = divisor_of(a) // b if type(b) is int and divisor_of(a) % b == 0 else 1
    one = a if isinstance(a, RuntimeInt) else b
    return one._combined("div", a, b, ends, by, whole)


def remainder(a: Any, b: Any) -> Any:
    """a % b, not negative; see `divided`.

    >>> print(remainder(RuntimeInt(divisor=8), 4), remainder(RuntimeInt(), 64))
    0 ?{<=63}
    """
    if type(a) is int and type(b) is int:
        return a % b
    if a is b or type(b) is int and b and divisor_of(a) % b == 0:
        return 0
    if isinstance(a, RuntimeInt) and quotient(a.term, term_in(b)):
        return 0
    if low_of(b) < (type(b) is int):
        return divided(a, b)  # which refuses
    if low_of(a) >= 0 and high_of(a) < max(low_of(b), 1):
        return a
    one = a if isinstance(a, RuntimeInt) else b
    most = max(high_of(b), 1) - 1
    ends = [0, min(most, high_of(a)) if low_of(a) >= 0 else most]
    return one._combined("rem", a, b, ends, gcd(divisor_of(a), divisor_of(b)))


def undecided(condition: str, hint: str | None = None) -> NoReturn:
    """Raises Undecided: nothing tells whether the condition holds.

    >>> undecided("n is even")
    Traceback (most recent call last):
    flylab.errors.Undecided: whether n is even is known only while the kernel runs
    hint: ...
    """
    raise Undecided(f"whether {condition} is known only while the kernel runs", hint=hint or HINT)


HINT = ("give a known number (fx.Constexpr), or say what is known of it: fx.assume(n, div=8, low=1, high=1024) in a "
         "kernel, RuntimeInt(1, 1024, divisor=8) in a cell")
