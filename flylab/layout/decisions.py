"""What can be decided of numbers of which some are known only at run time.

Each function works on ints and RuntimeInts alike. A number that cannot be negative counts as its divisor at least.
"""

from __future__ import annotations

from typing import Any

from flylab.layout.runtime_int import HINT, RuntimeInt, divided, high_of, least, low_of, remainder, undecided


def rounded_up(a: Any, b: Any) -> Any:
    """a / b, rounded up.

    >>> rounded_up(9, 4), print(rounded_up(RuntimeInt(), 128))
    ?{<=16777216}
    (3, None)
    """
    if type(a) is int and type(b) is int:
        return -(-a // b)
    if surely_divides(b, a):
        return divided(a, b)
    count = divided(a + last(b), b)
    return count.known(count.low, max(high_of(a), 0)) if isinstance(count, RuntimeInt) else count


def at_least_one(number: Any) -> Any:
    """The number, or 1 if that is more.

    >>> at_least_one(0), at_least_one(RuntimeInt(high=7))
    (1, ?{1..7})
    """
    if not isinstance(number, RuntimeInt):
        return max(number, 1)
    if number.low >= 1:
        return number
    return number.made("max", number, 1, RuntimeInt(1, max(number.high, 1), 1, number.bits))


def last(extent: Any) -> Any:
    """The last coordinate of an extent. A runtime extent counts as 1 at least.

    >>> last(8), last(RuntimeInt(high=100))
    (7, ?{<=99})
    """
    below = extent - 1
    return below.known(0, below.high) if isinstance(below, RuntimeInt) else below


def divides(divisor: Any, value: Any) -> bool:
    """Whether `divisor` divides `value`. Raises Undecided where the facts do not tell.

    >>> divides(4, RuntimeInt(divisor=8)), divides(4, 6)
    (True, False)
    """
    rest = remainder(value, divisor)
    if type(rest) is int:
        return rest == 0
    single = value.term if isinstance(value, RuntimeInt) and value.term and len(value.term.names) == 1 else "n"
    hint = f"say so: fx.assume({single}, div={divisor})" if type(divisor) is int else HINT
    undecided(f"{divisor} divides {value}", hint)


def surely_divides(divisor: Any, value: Any) -> bool:
    """Whether `divisor` is known to divide `value`.

    >>> surely_divides(4, RuntimeInt(divisor=8)), surely_divides(4, RuntimeInt())
    (True, False)
    """
    if type(divisor) is int and type(value) is int:
        return divisor != 0 and value % divisor == 0
    return low_of(divisor) >= 0 and divisor != 0 and remainder(value, divisor) == 0


def surely_less(a: Any, b: Any) -> bool:
    """Whether a < b is known.

    >>> surely_less(7, RuntimeInt(divisor=8)), surely_less(8, RuntimeInt(divisor=8))
    (True, False)
    """
    return high_of(a) < least(b)


def same(a: Any, b: Any) -> bool:
    """Whether two numbers are equal. Raises Undecided where the facts do not tell.

    >>> same(1, RuntimeInt(divisor=8)), same(2, 2)
    (False, True)
    """
    if a == b or type(a) is int and type(b) is int:
        return bool(a == b)
    return not (surely_less(a, b) or surely_less(b, a)) and undecided(f"{a} is {b}")
