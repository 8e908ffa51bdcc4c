"""The page `notebooks/reference/numbers.md`, written from the data that tracing uses: formats, promotion, operators.

    python -m flylab.expr.number_tables > notebooks/reference/numbers.md
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from flylab.dtypes import BOOL, DTYPES, DType
from flylab.errors import TraceError
from flylab.expr.arithmetic import BINARY, COMPARE
from flylab.expr.promotion import integer_range, literal, promote
from flylab.targets import TARGETS

HEAD = """# Numbers

The number formats of a kernel, what an operation on two of them gives, and how one becomes another. The tables are
written by `python -m flylab.expr.number_tables` from the data that tracing uses; a test compares this page with it.

A number known while tracing and one of the device follow the same rules, bit for bit but for the sign and the other
bits of a NaN. Vectors follow those of their elements.
"""

FORMATS = """## Formats

`fx.Int32(x)` makes a number. Range: least and greatest, of a float the smallest and the largest positive number.
numpy: the type of an array's elements (small ones from the package `ml_dtypes`). `fx.Index` is an old name of
`fx.Int64`, deprecated: saying it warns.
"""

SMALL = """## Floats of fewer than 16 bits

They are converted, copied, chosen between and multiplied by matrix instructions; they have no operators and no
comparisons. Convert first: `x.to(fx.Float32)`. Rounding is to nearest, ties to even; of
Float8E8M0FNU, which has powers of 2 alone, ties to the larger (and to 2^-126 above the least, 2^-127, as `ml_dtypes`).
"By" says which chip has instructions for it; elsewhere a conversion is a sequence of operations on the bits.
"""

PROMOTION = """## Promotion

The format of `a + b` for operands of two formats, in either order, scalars or vectors. A float wins over an integer;
of two of a kind the wider wins; of equally wide integers the unsigned one; Float16 with BFloat16 gives Float32; a
Boolean takes the other's format. Two Booleans count as Int32 in arithmetic and stay Boolean in `&`, `|` and `^`. A
float of fewer than 16 bits has no common format with another.
"""

LITERALS = """## Python's numbers

The format that a Python number takes beside an operand: that one's, where it fits. A float beside an integer is a
Float32; an integer that does not fit is an Int64, and an error where their common format does not hold it.
`BFloat16 * 1.5` is a BFloat16.
"""

OPERATORS = """## Operators

The operation of MLIR that each becomes; "no" is an error. Integers wrap. `//` and `%` round down, as Python's, so that
`(a // b) * b + a % b == a`. `fx.max` and `fx.min` give NaN where one of two is NaN, `fx.maxnumf` and `fx.minnumf` the
other one. A comparison gives a Boolean; one with NaN is false, but for `!=`.

Known while tracing, a division by zero and a shift by a count that the format does not have are errors. On the device
a shift by such a count moves every bit out, and a division by zero gives what the divisor 1 would.
"""

CONVERSIONS = """## Conversions

`x.to(fx.Float32)`, `fx.Float32(x)`, and `v.to(fx.Float32)` of a vector:

| from | to | gives |
|---|---|---|
| integer | integer | the low bits, read as the format; a wider one keeps the value |
| float | integer | the nearest integer towards zero; NaN gives 0, what is out of range the least or greatest |
| any | float | the nearest number, rounded once, ties to even; what is beyond the largest as above, else infinity |
| any | Boolean | whether it is not 0 (NaN is not 0) |
| Boolean | any | 0 or 1 |

`x.bitcast(fx.Int32)` reads the same bits as another format of the same width; of a vector the widths may differ, and
element 0 is the lowest bits.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def _range(dtype: DType) -> str:
    if dtype.kind == BOOL:
        return "False, True"
    form = dtype.encoding
    if form is None:
        low, high = integer_range(dtype)
        return f"-2^{dtype.bits - 1} to 2^{dtype.bits - 1} - 1" if low else f"0 to 2^{high.bit_length()} - 1"
    return f"{form.value(1 if form.mantissa else 0):.6g} to {form.value(form.largest):.8g}"


def formats() -> str:
    """The table of formats."""
    rows = [(f"`{d}`", str(d.bits), f"`{d.mlir}`", _range(d), d.numpy_name.rstrip("_") or "none")
            for d in DTYPES.values()]
    return table(("fx", "bits", "MLIR", "range", "numpy"), rows)


def _beyond(dtype: DType) -> tuple[str, str]:
    """What becomes of numbers beyond the largest, and of NaN."""
    form = dtype.encoding
    assert form is not None
    if form.has_infinity:
        return "infinity", f"{form.nan:#04x}, with the sign"
    if form.nan is None:
        return "the largest", "0 of the other sign"
    return "NaN", f"{form.nan:#04x}" + ("" if form.unsigned_zero or not form.mantissa else ", with the sign")


def small_floats() -> str:
    """The table of the small floats: bits, specials, and the chips that convert them."""
    rows = []
    for d in (d for d in DTYPES.values() if d.is_small_float):
        form = d.encoding
        assert form is not None
        chips = ", ".join(f"{chip} ({name})" for chip in TARGETS.values()
                          for name, dtype in chip.float8.items() if dtype == d.name)
        zero = "none" if not form.mantissa else "0" if form.unsigned_zero else "0, -0"
        rows.append((f"`{d}`", f"{form.exponent}, {form.mantissa}", str(form.bias), zero, *_beyond(d), chips or "no"))
    return table(("fx", "exponent, mantissa", "bias", "zeros", "beyond the largest", "NaN", "by"), rows)


def _common(a: DType, b: DType) -> str:
    try:
        return str(promote(a, b))
    except TraceError:
        return "error"


def promotion() -> str:
    """The matrix of promotion; the small floats are all alike and have one row."""
    shown = [d for d in DTYPES.values() if not d.is_small_float]
    rows = [(f"**{a}**", *(_common(a, b) for b in shown)) for a in shown]
    small = next(d for d in DTYPES.values() if d.is_small_float)
    below = (_common(small, b).replace(str(small), "the float's") for b in shown)
    rows.append(("**a float below 16 bits**", *below))
    return table(("", *(str(d) for d in shown)), rows)


def _beside(value: float, other: DType) -> str:
    try:
        return str(literal(value, other))
    except TraceError:
        return "error"


def literals() -> str:
    """What Python numbers become beside each format."""
    shown = {"True": True, "1": 1, "-1": -1, "2**40": 2**40, "2**100": 2**100, "1.5": 1.5}
    rows = [(f"**{d}**", *(_beside(value, d) for value in shown.values())) for d in DTYPES.values()
            if not d.is_float]
    rows.append(("**a float**", *["the float's"] * len(shown)))
    return table(("beside", *(f"`{text}`" for text in shown)), rows)


def operators() -> str:
    """The operation of each operator, for signed and unsigned integers and floats."""
    names = {"max": "fx.max", "min": "fx.min", "maxnum": "fx.maxnumf", "minnum": "fx.minnumf"}
    ours = {"floordiv": "floor of `arith.divsi`", "floormod": "floor of `arith.remsi`", "": "no"}
    rows = []
    for symbol, row in BINARY.items():
        cells = [ours.get(name, f"`{name}`") for name in (row.signed, row.unsigned, row.float)]
        rows.append((f"`{names.get(symbol, symbol)}`", *cells))
    rows.append(("`" + "` `".join(COMPARE) + "`", "`arith.cmpi`", "`arith.cmpi`", "`arith.cmpf`"))
    return table(("", "signed", "unsigned", "float of 16 bits or more"), rows)


def page() -> str:
    """The whole page."""
    parts = (HEAD, FORMATS, formats(), SMALL, small_floats(), PROMOTION, promotion(), LITERALS, literals(), OPERATORS,
             operators(), CONVERSIONS)
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
