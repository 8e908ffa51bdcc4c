"""Products of named numbers, `128*m*n`: which number a runtime integer is, where that is known.

Two runtime integers of one term are the same number, and a term divides another if all of its factors occur there.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass

NAME = r"[A-Za-z_][A-Za-z_0-9]{0,29}"
_PATTERN = re.compile(r"(?:(\d{1,19})\*)?([A-Za-z_]\w{0,39}(?:\*[A-Za-z_]\w{0,39}){0,9})?", re.ASCII)
_MOST_FACTORS, _LONGEST = 10, 120  # names, and their letters


@dataclass(frozen=True, slots=True)
class Term:
    """A positive factor times the product of named numbers, which are sorted."""

    factor: int
    names: tuple[str, ...]

    def __str__(self) -> str:
        product = "*".join(self.names)
        return product if self.factor == 1 else f"{self.factor}*{product}"


def term_of(text: str) -> Term | None:
    """The term that `str` wrote; None for the text of none.

    >>> term_of("128*m*n"), term_of("")
    (Term(factor=128, names=('m', 'n')), None)
    """
    match = _PATTERN.fullmatch(text)
    return Term(int(match[1] or 1), tuple(sorted(match[2].split("*")))) if match and match[2] else None


def times(a: Term | None, b: Term | int | None) -> Term | None:
    """The product, of two terms or of a term and a positive int; None where it is no term.

    >>> print(times(term_of("m"), term_of("8*k")), times(term_of("m"), 4), times(term_of("m"), None))
    8*k*m 4*m None
    """
    if a is None or b is None or isinstance(b, int) and b < 1:
        return None
    other = Term(b, ()) if isinstance(b, int) else b
    names = tuple(sorted(a.names + other.names))
    factor = a.factor * other.factor
    long = len(names) > _MOST_FACTORS or sum(map(len, names)) > _LONGEST or factor >= 1 << 63
    return None if long else Term(factor, names)


def quotient(a: Term | None, b: Term | int | None) -> Term | None:
    """a / b, where b divides a; a term without names is a known number. None where it does not, or is not known to.

    >>> print(quotient(term_of("8*m*n"), term_of("4*n")), quotient(term_of("m"), term_of("n")))
    2*m None
    """
    if a is None or b is None or isinstance(b, int) and b < 1:
        return None
    other = Term(b, ()) if isinstance(b, int) else b
    left = Counter(a.names)
    left.subtract(other.names)
    if a.factor % other.factor or min(left.values(), default=0) < 0:
        return None
    return Term(a.factor // other.factor, tuple(sorted(left.elements())))
