"""What the rows of the table are made of: functions of `Value`s that several instructions share.

Source: the operation descriptions of AMD's CDNA3 and CDNA4 ISA documents.
"""

from __future__ import annotations

from typing import Any

from flylab.emulator.handlers.ir import Value, width

Pair = tuple[Value, Value]

EXPONENT = {"half": (10, 0x1F, 15, "i16"), "float": (23, 0xFF, 127, "i32"), "double": (52, 0x7FF, 1023, "i64")}


def nonzero(value: Value) -> Pair:
    """A scalar result with SCC = (result != 0)."""
    return value, value.cmp("ne", 0)


def add_carry(x: Value, y: Value, carry: Value | None = None) -> Pair:
    """x + y (+ carry) and the unsigned carry out."""
    total = x + y
    out = total.cmp("ult", x)
    if carry is None:
        return total, out
    more = total + carry.to(x.type)
    return more, out | more.cmp("ult", total)


def sub_borrow(x: Value, y: Value, borrow: Value | None = None) -> Pair:
    """x - y (- borrow) and the unsigned borrow out."""
    out, rest = x.cmp("ult", y), x - y
    if borrow is None:
        return rest, out
    less = borrow.to(x.type)
    return rest - less, out | rest.cmp("ult", less)


def add_overflow(x: Value, y: Value) -> Pair:
    """x + y with the signed overflow."""
    total = x + y
    return total, (~(x ^ y) & (x ^ total)).cmp("slt", 0)


def sub_overflow(x: Value, y: Value) -> Pair:
    """x - y with the signed overflow."""
    rest = x - y
    return rest, ((x ^ y) & (x ^ rest)).cmp("slt", 0)


def choose(name: str) -> Any:
    """`umin`, `umax`, `smin` or `smax` with SCC = (the first was taken); of equal ones a maximum takes the first."""
    predicate = {"umin": "ult", "umax": "uge", "smin": "slt", "smax": "sge"}[name]
    return lambda x, y: (x.call(name, y), x.cmp(predicate, y))


def high(x: Value, y: Value, signed: bool) -> Value:
    """The upper half of a product of 32-bit integers."""
    return (x.to("i64", signed) * y.to("i64", signed)).shr(32).to("i32")


def high_24(x: Value, y: Value, signed: bool) -> Value:
    """The bits from 32 up of a product of 24-bit integers."""
    return high(part_24(x, signed), part_24(y, signed), signed)


def part_24(x: Value, signed: bool) -> Value:
    """The low 24 bits of a register, extended."""
    return x.shl(8).sar(8) if signed else x & 0xFFFFFF


def field(x: Value, offset: Value, size: Value, signed: bool) -> Value:
    """Bits [offset, offset + size) of x, zero- or sign-extended; a size of 0 gives 0."""
    wide = width(x.type)
    moved = x.sar(offset) if signed else x.shr(offset)
    unused = (wide - size).call("smax", 0)
    up = moved.shl(unused)
    return size.cmp("eq", 0).select(0, up.sar(unused) if signed else up.shr(unused))


def packed_field(x: Value, what: Value, signed: bool) -> Value:
    """As `field`, offset in bits 0 to 5 of `what`, size in bits 16 to 22, as s_bfe has them."""
    bits = width(x.type)
    return field(x, (what & (bits - 1)).to(x.type), ((what.shr(16)) & 0x7F).call("umin", bits).to(x.type), signed)


def mask_of(size: Value, offset: Value, type_: str) -> Value:
    """`size` ones from bit `offset` up."""
    size, offset = size.to(type_), offset.to(type_)
    return (size.like(1).shl(size) - 1).shl(offset)


def first_bit(x: Value, name: str) -> Value:
    """The place of the first set bit from the top (`ctlz`) or bottom (`cttz`), as i32; -1 where none is set."""
    found = x.count(name)
    found = found.to("i32")
    return x.cmp("eq", 0).select(-1, found)


def first_sign_change(x: Value) -> Value:
    """How many bits from the top equal the sign bit; -1 where all do."""
    same = x ^ x.sar(width(x.type) - 1)
    return first_bit(same, "ctlz")


def is_nan(x: Value) -> Value:
    """True for any NaN."""
    return x.cmp("uno", x)


def quiet(x: Value) -> Value:
    """A NaN made quiet; other values unchanged for the caller to leave out."""
    shift, _, _, integer = EXPONENT[x.type]
    return (x.bits(integer) | (1 << (shift - 1))).bits(x.type)


def is_signalling(x: Value) -> Value:
    """True for a NaN whose quiet bit is clear."""
    shift, _, _, integer = EXPONENT[x.type]
    return is_nan(x) & (x.bits(integer) & (1 << (shift - 1))).cmp("eq", 0)


def extreme(largest: bool) -> Any:
    """v_max / v_min: a number wins over a NaN, +0 is above -0, a signalling NaN is made quiet in IEEE mode."""

    def compute(x: Value, y: Value) -> Value:
        integer = EXPONENT[x.type][3]
        picked = x.cmp("ogt" if largest else "olt", y).select(x, y)
        a, b = x.bits(integer), y.bits(integer)
        zeros = (a & b if largest else a | b).bits(x.type)  # equal values differ in the sign of zero at most
        picked = x.cmp("oeq", y).select(zeros, picked)
        picked = is_nan(x).select(y, is_nan(y).select(x, picked))
        picked = is_nan(picked).select(quiet(picked), picked)
        for source in (y, x):
            picked = x.b.where(x.b.ieee, is_signalling(source)).select(quiet(source), picked)
        return picked

    return compute


def extreme_nan(largest: bool) -> Any:
    """v_maximum / v_minimum: as above, but any NaN wins."""
    pick = extreme(largest)

    def compute(x: Value, y: Value) -> Value:
        picked = pick(x, y)
        picked = is_nan(y).select(quiet(y), picked)
        return is_nan(x).select(quiet(x), picked)

    return compute


def three(function: Any) -> Any:
    """A three-source form of a two-source function."""
    return lambda x, y, z: function(function(x, y), z)


def median(x: Value, y: Value, z: Value) -> Value:
    """v_med3: the larger of the two others where one equals the largest; where one is NaN, the least of the three.

    So is the sign of a zero decided. Source: AMD's pseudo-code, as LLVM folds it.
    """
    low, high_ = extreme(False), extreme(True)
    both = high_(x, y)
    top = high_(both, z)
    middle = top.cmp("oeq", x).select(high_(y, z), top.cmp("oeq", y).select(high_(x, z), both))
    return (is_nan(x) | is_nan(y) | is_nan(z)).select(low(low(x, y), z), middle)


def integer_median(signed: bool) -> Any:
    """The middle of three integers."""
    sign = "s" if signed else "u"
    return lambda x, y, z: x.call(sign + "min", y).call(sign + "max", x.call(sign + "max", y).call(sign + "min", z))


def legacy_product(x: Value, y: Value) -> Value:
    """A product in which 0 times anything is 0."""
    return (x.cmp("oeq", 0.0) | y.cmp("oeq", 0.0)).select(0.0, x * y)


def biased_exponent(x: Value) -> Value:
    """The exponent field of a float, as an integer of its width."""
    shift, mask, _, integer = EXPONENT[x.type]
    return x.bits(integer).shr(shift) & mask


def is_infinite(x: Value) -> Value:
    """True for either infinity."""
    return x.call("fabs").cmp("oeq", float("inf"))


def frexp_exponent(x: Value) -> Value:
    """v_frexp_exp: e with x = m * 2**e and 0.5 <= |m| < 1; 0 for 0, infinity and NaN."""
    shift, mask, bias, integer = EXPONENT[x.type]
    raw = biased_exponent(x)
    zeros = (x.bits(integer) & ((1 << shift) - 1)).count("ctlz")
    denormal = (width(integer) + 1 - bias - shift) - zeros
    plain = raw.cmp("eq", 0).select(denormal, raw - (bias - 1))
    special = x.cmp("oeq", 0.0) | raw.cmp("eq", mask)
    return special.select(0, plain).to("i32")


def frexp_fraction(x: Value) -> Value:
    """v_frexp_mant: m with x = m * 2**e; 0, infinity and NaN as they are."""
    shift, mask, bias, integer = EXPONENT[x.type]
    scaled = biased_exponent(x).cmp("eq", 0).select(x * float(2 ** (shift + 1)), x)
    keep = scaled.bits(integer) & ~(mask << shift) | ((bias - 1) << shift)
    special = x.cmp("oeq", 0.0) | is_infinite(x) | is_nan(x)
    return special.select(is_nan(x).select(quiet(x), x), keep.bits(x.type))


def power_of_two(exponent: Value) -> Value:
    """2**exponent as a double, for an i64 exponent within the normal range."""
    return (exponent + 1023).shl(52).bits("double")


def ldexp_single(x: Value, exponent: Value) -> Value:
    """x * 2**exponent for floats, rounded once: the product is exact in double."""
    step = exponent.call("smax", -400).call("smin", 400).to("i64", True)
    return (x.to("double") * power_of_two(step)).to("float")


def ldexp_double(x: Value, exponent: Value) -> Value:
    """x * 2**exponent for doubles: only the last of three factors can make a denormal, so it rounds once."""
    left = exponent.to("i64", True).call("smax", -2200).call("smin", 2200)
    for _ in range(2):
        step = left.cmp("slt", -1022).select(-969, left.cmp("sgt", 1023).select(left.like(1023), left.like(0)))
        x, left = x * power_of_two(step), left - step
    return x * power_of_two(left.call("smax", -1022).call("smin", 1023))


def fraction(x: Value, largest: float = 0.0) -> Value:
    """v_fract: x - floor(x), kept below 1: at most `largest`, by default the last number of its format before 1."""
    below = largest or 1 - 2.0 ** -(EXPONENT[x.type][0] + 1)
    part = x - x.call("floor")
    capped = part.cmp("ogt", below).select(below, part)
    return is_infinite(x).select(float("nan"), capped)


def with_byte(x: Value, at: Value, byte: Value) -> Value:
    """x with a byte in the place that the low two bits of `at` name."""
    place = (at & 3).shl(3)
    return x & ~x.like(255).shl(place) | byte.shl(place)


def unsigned_byte(x: Value) -> Value:
    """f32_to_u8: a float as an integer of [0, 255] in 32 bits, rounded as the mode says; NaN gives 0.

    At 2**23 a float's last place is 1, so the addition does it. Source: the documentation of the assembler CLRX has
    that MODE rounds here; AMD's document names the function only.
    """
    bounded = x.cmp("ogt", 0.0).select(x, 0.0)
    bounded = bounded.cmp("olt", 255.0).select(bounded, 255.0)
    return (bounded + 2.0**23).bits("i32") & 0xFF


def random_step(x: Value) -> Value:
    """v_prng_b32: the next state of a shift register."""
    return x.shl(1) ^ (x.sar(31) & 197)


def classify(x: Value, wanted: Value) -> Value:
    """v_cmp_class: true where x is of one of the ten classes whose bits are set."""
    shift, _, _, integer = EXPONENT[x.type]
    bits = x.bits(integer)
    negative, zero = bits.cmp("slt", 0), x.cmp("oeq", 0.0)
    tiny = biased_exponent(x).cmp("eq", 0) & ~zero
    infinite, nan = is_infinite(x), is_nan(x)
    normal = ~(zero | tiny | infinite | nan)
    signalling = nan & (bits & (1 << (shift - 1))).cmp("eq", 0)
    classes = [signalling, nan & ~signalling]
    classes += [negative & c for c in (infinite, normal, tiny, zero)]
    classes += [~negative & c for c in (zero, tiny, normal, infinite)]
    found = classes[0] & (wanted & 1).cmp("ne", 0)
    for n, member in enumerate(classes[1:], 1):
        found = found | member & (wanted & (1 << n)).cmp("ne", 0)
    return found


def below_lanes(bits: Value, total: Value, lane: Value, first: int) -> Value:
    """v_mbcnt: total + how many of `bits` belong to lanes before this one; bit 0 is lane `first`."""
    before = (lane - first).call("smax", 0).call("smin", 32).to("i64")
    mask = (before.like(1).shl(before) - 1).to("i32")
    return total + (bits & mask).call("ctpop")


def permute_bytes(x: Value, y: Value, selector: Value) -> Value:
    """v_perm_b32: each byte of the selector picks a byte of {x, y} (y low), a sign, 0x00 or 0xff."""
    both = x.to("i64").shl(32) | y.to("i64")
    result: Value | None = None
    for n in range(4):
        pick = selector.shr(8 * n) & 0xFF
        byte = both.shr((pick & 7).shl(3).to("i64")).to("i32") & 0xFF
        # 8 to 11 take the sign of bytes 1, 3, 5 and 7.
        at = ((pick & 3).shl(4) + 15).to("i64")
        sign = (both.shr(at).to("i32") & 1) * 0xFF
        byte = pick.cmp("ugt", 12).select(0xFF, pick.cmp("eq", 12).select(0, pick.cmp("ugt", 7).select(sign, byte)))
        placed = byte.shl(8 * n)
        result = placed if result is None else result | placed
    assert result is not None
    return result
