"""Small floats: from a code to a 32-bit float and back, for every format of 16 bits and fewer of `flylab.dtypes`.

Written against `Value`, so that a handler does 64 lanes at once; in integer arithmetic, so that the host's slow
denormals do not come in, but for halves, which hosts convert themselves. Source: the OCP specifications of 8-bit floats
and of MX, AMD's CDNA3 and CDNA4 ISA documents. What those leave open is decided thus:

* A NaN becomes a quiet one and keeps its sign; between formats of 16 bits and more it keeps the top of its payload, of
  8 bits there is one (that of bf8 is LLVM's, 0x7E). A format with no NaN (fp6, fp4) gives its largest number, of the
  NaN's sign. From bf16 every code is a float as it stands, a signalling NaN too.
* Stochastic rounding takes as many of the upper random bits as a float's fraction has bits more than the format's (for
  fp8 `S1[31:12]`, as the document has it), adds them below the last place and cuts. A carry goes to the exponent, and a
  denormal is shifted to its place first. The document's pseudo-code adds them to the fraction, drops the carry and
  rounds to nearest; read by the letter it would halve the numbers just below a power of two, which rounds to nothing.
* Where a conversion saturates, a finite number beyond the range becomes the largest, and an infinity does what it does
  elsewhere, as the document says of FP16_OVFL for halves.
"""

from __future__ import annotations

from flylab.dtypes import DTYPES, Encoding
from flylab.emulator.handlers.ir import Value

NEAREST, TOWARD_ZERO, STOCHASTIC = "nearest even", "toward zero", "stochastic"
_HALF = DTYPES["Float16"].encoding
_FRACTION, _BIAS, _INFINITY, _QUIET, _SIGN = 23, 127, 0x7F800000, 0x7FC00000, -0x80000000


def decode(code: Value, form: Encoding) -> Value:
    """The float that the low bits of an i32 stand for; those above the format's are ignored.

    A number is its bits moved to a float's places with the exponent's bias made up for; a denormal is read as a normal
    number of the lowest exponent, less that power of two.
    """
    size = code & (form.sign - 1)
    if form.mantissa == 0:
        return _scale(size, form)
    if form.bias == _BIAS:
        return code.shl(_FRACTION - form.mantissa).bits("float")
    if form == _HALF:
        return code.to("i16").bits("half").to("float")
    moved = size.shl(_FRACTION - form.mantissa)
    bits = moved + ((_BIAS - form.bias) << _FRACTION)
    with code.b.to_nearest():  # exact, but for the sign of zero when rounded down
        denormal = (bits + (1 << _FRACTION)).bits("float") - 2.0 ** (1 - form.bias)
    bits = size.cmp("ult", 1 << form.mantissa).select(denormal.bits("i32"), bits)
    if form.unsigned_zero:
        bits = (code & (2 * form.sign - 1)).cmp("eq", form.sign).select(_QUIET, bits)
    elif form.nan is not None:
        if form.has_infinity:
            bits = size.cmp("eq", form.overflow).select(_INFINITY, bits)
        bits = size.cmp("ugt", form.overflow if form.has_infinity else form.largest).select(_QUIET, bits)
    return (bits | code.shl(31 - form.exponent - form.mantissa) & _SIGN).bits("float")


def _scale(code: Value, form: Encoding) -> Value:
    """A power of two (E8M0): the least is a denormal float."""
    bits = code.cmp("eq", 0).select(1 << (_FRACTION - 1), code.shl(_FRACTION))
    return code.cmp("eq", form.nan or 0).select(_QUIET, bits).bits("float")


def encode(x: Value, form: Encoding, how: str = NEAREST, random: Value | None = None,
           saturate: bool | Value = False) -> Value:
    """The code of a float in the low bits of an i32, rounded `how`; `random` is what STOCHASTIC adds, 32 bits.

    With `saturate` (or in the lanes where it holds) a finite number beyond the range becomes the largest. Of E8M0 there
    is no such function: no instruction rounds to it.
    """
    assert form.mantissa
    if form == _HALF and how != STOCHASTIC and saturate is False:
        return _half(x, how)
    bits = x.bits("i32")
    lost = _FRACTION - form.mantissa
    if form.bias == _BIAS and how == NEAREST and saturate is False:  # a float's upper bits, rounded up to an infinity
        upper = bits.shr(lost)
        rounded = (bits + ((1 << (lost - 1)) - 1) + (upper & 1)).shr(lost)
        return x.cmp("uno", x).select(upper | 1 << (form.mantissa - 1), rounded)
    size = bits & 0x7FFFFFFF
    placed = _placed(size, form, jam=how == NEAREST)
    if how == NEAREST:
        placed = placed + ((1 << (lost - 1)) - 1) + (placed.shr(lost) & 1)
    elif how == STOCHASTIC:
        assert random is not None
        placed = placed + random.shr(32 - lost)
    code = placed.shr(lost)
    code = code.cmp("ugt", form.largest).select(_beyond(size, form, how, saturate), code)
    if form.nan is not None:
        nan = size.shr(lost) & (form.sign - 1) | form.nan if form.sign >= 1 << 15 else size.like(form.nan)
        code = size.cmp("ugt", _INFINITY).select(nan, code)
    sign = bits.shr(31).shl(form.exponent + form.mantissa)
    if form.unsigned_zero:
        return (code.cmp("eq", 0) | code.cmp("eq", form.sign)).select(code, code | sign)
    return code | sign


def _half(x: Value, how: str) -> Value:
    """As `encode`, by the host's conversion."""
    with x.b.to_nearest():
        near = x.to("half")
    bits = near.bits("i16").to("i32")
    if how == NEAREST:
        return bits
    return near.to("float").call("fabs").cmp("ogt", x.call("fabs")).select(bits - 1, bits)


def _placed(size: Value, form: Encoding, jam: bool) -> Value:
    """The bits of a positive float with the format's bias, as if it had as many fraction bits as a float.

    A number below the least normal one is shifted to the place of the denormals; with `jam` what is shifted out leaves
    its trace in the last bit.
    """
    if form.bias == _BIAS:
        return size
    exponent = size.shr(_FRACTION) - (_BIAS + 1 - form.bias)
    number = size & ((1 << _FRACTION) - 1) | 1 << _FRACTION
    down = (-exponent).call("smax", 0).call("smin", 31)
    shifted = number.shr(down)
    if jam:
        shifted = shifted | shifted.shl(down).cmp("ne", number).to("i32")
    return shifted + exponent.call("smax", 0).shl(_FRACTION)


def _beyond(size: Value, form: Encoding, how: str, saturate: bool | Value) -> Value:
    """The code of what is beyond the largest number; cut towards zero, only an infinity is."""
    over, largest = size.like(form.overflow), size.like(form.largest)
    if form.overflow == form.largest:
        return over
    bounded = size.b.where(True if how == TOWARD_ZERO else saturate, size.cmp("ult", _INFINITY))
    return bounded.select(largest, over)
