"""Random values of LLVM IR for the fuzz corpus: integers, floats and vectors, defined whatever the operands are.

Every operation is one whose result LLVM defines to the bit on every target, for all operands that the writer gives it:
shifts are masked, divisors odd and not negative, conversions saturate, two zeros of different sign are never asked for
the lesser, and the bits of a NaN (which targets choose) are replaced before they are looked at.
"""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

BINARY = ("add", "sub", "mul", "and", "or", "xor")
SHIFTS = ("shl", "lshr", "ashr")
DIVISIONS = ("udiv", "urem", "sdiv", "srem")
PREDICATES = ("eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge")
FLOAT_PREDICATES = ("oeq", "olt", "ole", "ogt", "oge", "one", "ord", "ueq", "ult", "ule", "ugt", "uge", "une", "uno")
SATURATING = ("uadd.sat", "sadd.sat", "usub.sat", "ssub.sat")
EXTREMES = ("umin", "umax", "smin", "smax")
OVERFLOWS = ("uadd", "sadd", "usub", "ssub", "umul", "smul")
ROUNDINGS = ("floor", "ceil", "trunc", "rint", "roundeven", "nearbyint")
REDUCTIONS = ("add", "mul", "and", "or", "xor", "umin", "umax", "smin", "smax")
# Zeros, ones, the least and greatest normal and denormal numbers, infinity, and what rounds to even.
FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, 3.0, 1e-3, -7.25, 255.5, 65504.0, 6.1035e-05, 5.96e-08, math.inf, 1e6, -3.14159)


class Type(NamedTuple):
    """An LLVM type: "i" for integers, "f" for IEEE floats, "b" for bfloat, bits of an element, elements."""

    kind: str
    bits: int
    lanes: int = 1

    def __str__(self) -> str:
        names = {16: "half", 32: "float", 64: "double"}
        name = f"i{self.bits}" if self.kind == "i" else "bfloat" if self.kind == "b" else names[self.bits]
        return name if self.lanes == 1 else f"<{self.lanes} x {name}>"

    @property
    def mangled(self) -> str:
        """The type in an intrinsic's name."""
        name = "bf16" if self.kind == "b" else f"{self.kind}{self.bits}"
        return name if self.lanes == 1 else f"v{self.lanes}{name}"

    @property
    def integer(self) -> Type:
        return Type("i", self.bits, self.lanes)

    @property
    def element(self) -> Type:
        return Type(self.kind, self.bits)

    @property
    def size(self) -> int:
        return self.bits * self.lanes

    def of(self, lanes: int) -> Type:
        return Type(self.kind, self.bits, lanes)


I1, I8, I32, I64, BOTH = Type("i", 1), Type("i", 8), Type("i", 32), Type("i", 64), Type("i", 128)
INTEGERS = [Type("i", n) for n in (8, 16, 32, 32, 64, 64, 128)]
ODD = [Type("i", n) for n in (1, 3, 7, 24, 33, 48)]
FLOATING = [Type("f", 32), Type("f", 32), Type("f", 64), Type("f", 16), Type("b", 16)]
VECTORS = [Type("i", bits, lanes) for bits, lanes in (
    (8, 2), (8, 4), (8, 8), (8, 16), (16, 2), (16, 3), (16, 4), (16, 8), (32, 2), (32, 3), (32, 4), (32, 8), (64, 2),
    (64, 4))] + [Type("f", 32, 2), Type("f", 32, 4), Type("f", 16, 2), Type("f", 16, 4), Type("f", 64, 2)]
TYPES = [*INTEGERS * 3, *FLOATING * 2, *VECTORS]


@dataclass
class Writer:
    """A function being written: its lines, and the variables that values come from, which are in memory."""

    random: Random
    opt: int
    lines: list[str] = field(default_factory=list)
    allocated: list[str] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    variables: dict[str, Type] = field(default_factory=dict)
    declared: set[str] = field(default_factory=set)

    def let(self, text: str) -> str:
        name = f"%t{next(self.numbers)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def call(self, result: Type | str, name: str, *arguments: tuple[Type, str], extra: str = "") -> str:
        """A call of an intrinsic."""
        types = ", ".join(str(t) for t, _ in arguments) + (", i1" if extra else "")
        self.declared.add(f"declare {result} @llvm.{name}({types})")
        values = ", ".join(f"{t} {v}" for t, v in arguments) + extra
        return self.let(f"call {result} @llvm.{name}({values})")

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def constant(self, type_: Type) -> str:
        if type_.lanes > 1:
            if self.chance(0.3):
                return f"splat ({type_.element} {self.constant(type_.element)})"
            parts = (f"{type_.element} {self.constant(type_.element)}" for _ in range(type_.lanes))
            return f"<{', '.join(parts)}>"
        if type_.kind == "i":
            value = self.random.choice((0, 1, 2, 3, 7, 31, 100, 255, -1, -2, 1 << 15, 1 << 31,
                                        self.random.getrandbits(128)))
            value &= (1 << type_.bits) - 1
            return str(value) if type_.bits > 1 else ("false", "true")[value]
        return float_text(type_, self.random.choice(FLOATS))

    def value(self, type_: Type, depth: int) -> str:
        """A value of a type: an operation while `depth` lasts, else a variable or a constant."""
        if depth > 0 and self.chance(0.85):
            return self.integer(type_, depth - 1) if type_.kind == "i" else self.floating(type_, depth - 1)
        if self.chance(0.25):
            return self.constant(type_)
        same = [name for name, t in self.variables.items() if t == type_]
        name = self.random.choice(same or list(self.variables))
        return self.converted(self.load(name), self.variables[name], type_)

    def load(self, variable: str) -> str:
        return self.let(f"load {self.variables[variable]}, PRIVATE {variable}")

    # Conversions.

    def bits(self, value: str, type_: Type) -> str:
        """The bits of a float as an integer, where every NaN has the same."""
        wrong = self.let(f"fcmp uno {type_} {value}, {value}")
        mask = "i1" if type_.lanes == 1 else f"<{type_.lanes} x i1>"
        one = float_text(type_.element, 1.0)
        one = one if type_.lanes == 1 else f"splat ({type_.element} {one})"
        clean = self.let(f"select {mask} {wrong}, {type_} {one}, {type_} {value}")
        return self.let(f"bitcast {type_} {clean} to {type_.integer}")

    def converted(self, value: str, old: Type, new: Type) -> str:
        """A value of one type as one of another, by way of integers."""
        if old == new:
            return value
        if old.kind != "i" and new.kind != "i" and old.lanes == new.lanes == 1 and self.chance(0.7):
            return self.float_to_float(value, old, new)
        if old.kind != "i":
            value, old = self.bits(value, old), old.integer
        if old.lanes > 1:
            value, old = self.let(f"bitcast {old} {value} to i{old.size}"), Type("i", old.size)
        if new.kind != "i" and new.lanes == 1 and self.chance(0.7) and old.bits <= 64:
            return self.number(value, old, new)
        value = self.resized(value, old, Type("i", new.size))
        if new.kind != "i":
            # LLVM 22 from -O1 on (SIPeepholeSDWA) lets a float instruction take a byte or half itself, and then drops
            # that it was to be sign-extended: so no float's bits come right from an extension.
            value = self.let(f"xor i{new.size} {value}, {int('2468ACE13579BDF0' * 4, 16) >> (256 - new.size)}")
        return value if new.kind == "i" and new.lanes == 1 else self.let(f"bitcast i{new.size} {value} to {new}")

    def resized(self, value: str, old: Type, new: Type) -> str:
        if old.bits == new.bits:
            return value
        name = "trunc" if new.bits < old.bits else self.one("zext", "sext")
        return self.let(f"{name} {old} {value} to {new}")

    def number(self, value: str, old: Type, new: Type) -> str:
        """An integer as the float nearest to it; to the short formats by way of 32 bits, as all of them go."""
        if new.bits == 16:
            # An integer of 16 bits is exact in 32: so the format is rounded to once.
            value, old = self.resized(value, old, Type("i", 16)), Type("i", 16)
            return self.float_to_float(self.number(value, old, Type("f", 32)), Type("f", 32), new)
        return self.let(f"{self.one('sitofp', 'uitofp')} {old} {value} to {new}")

    def float_to_float(self, value: str, old: Type, new: Type) -> str:
        if old.bits == new.bits:
            if old == new:
                return value
            return self.float_to_float(self.float_to_float(value, old, Type("f", 32)), Type("f", 32), new)
        if 64 in (old.bits, new.bits) and 16 in (old.bits, new.bits):
            # From 64 bits to 16 a host calls a function that this process need not have.
            return self.float_to_float(self.float_to_float(value, old, Type("f", 32)), Type("f", 32), new)
        return self.let(f"{'fptrunc' if new.bits < old.bits else 'fpext'} {old} {value} to {new}")

    # Operations.

    def integer(self, type_: Type, depth: int) -> str:
        kinds = ["binary", "binary", "shift", "select", "intrinsic", "convert", "funnel"]
        kinds += ["division"] if 8 <= type_.bits <= 64 and type_.size <= 64 else []
        kinds += ["lanes", "lanes"] if type_.lanes > 1 else ["extract", "compared", "overflow", "from_float", "reduce"]
        return str(getattr(self, "int_" + self.random.choice(kinds))(type_, depth))

    def int_binary(self, type_: Type, depth: int) -> str:
        return self.let(f"{self.one(*BINARY)} {type_} {self.value(type_, depth)}, {self.value(type_, depth)}")

    def masked(self, type_: Type, depth: int) -> str:
        """A shift's distance, below the number of bits."""
        if type_.bits & (type_.bits - 1):
            most = self.random.randrange(type_.bits)
            text = str(most) if type_.lanes == 1 else f"splat ({type_.element} {most})"
            return text
        most = str(type_.bits - 1) if type_.bits > 1 else "false"
        most = most if type_.lanes == 1 else f"splat ({type_.element} {most})"
        return self.let(f"and {type_} {self.value(type_, depth)}, {most}")

    def int_shift(self, type_: Type, depth: int) -> str:
        return self.let(f"{self.one(*SHIFTS)} {type_} {self.value(type_, depth)}, {self.masked(type_, depth)}")

    def int_division(self, type_: Type, depth: int) -> str:
        # LLVM 22 at -O0 takes an operand that it sees sign-extended from 8 or 16 bits for one of 24 without a sign,
        # and divides wrongly: unsigned divisions are left out there.
        name = self.one(*DIVISIONS[2:] if self.opt == 0 else DIVISIONS)
        one = "1" if type_.lanes == 1 else f"splat ({type_.element} 1)"
        half = self.let(f"lshr {type_} {self.value(type_, depth)}, {one}")
        return self.let(f"{name} {type_} {self.value(type_, depth)}, {self.let(f'or {type_} {half}, {one}')}")

    def condition(self, depth: int, lanes: int = 1) -> str:
        """An i1, or one for each lane."""
        pool = [t for t in [*INTEGERS, *FLOATING[:4]] if t.size * lanes <= 256]
        type_ = self.random.choice(pool).of(lanes)
        a, b = self.value(type_, depth), self.value(type_, depth)
        name = f"icmp {self.one(*PREDICATES)}" if type_.kind == "i" else f"fcmp {self.one(*FLOAT_PREDICATES)}"
        return self.let(f"{name} {type_} {a}, {b}")

    def int_select(self, type_: Type, depth: int) -> str:
        lanes = type_.lanes if self.chance(0.6) and type_.size <= 128 else 1
        mask = "i1" if lanes == 1 else f"<{lanes} x i1>"
        condition = self.condition(min(depth, 1), lanes)
        return self.let(f"select {mask} {condition}, {type_} {self.value(type_, depth)}, {type_} "
                        f"{self.value(type_, depth)}")

    def int_compared(self, type_: Type, depth: int) -> str:
        return self.resized(self.condition(depth), I1, type_)

    def int_intrinsic(self, type_: Type, depth: int) -> str:
        a = self.value(type_, depth)
        kinds = ["count", "zeros", "abs", *EXTREMES, *SATURATING, "reverse"]
        kinds += ["swap"] if type_.bits % 16 == 0 else []
        kind = self.random.choice(kinds)
        if kind == "count":
            return self.call(type_, f"ctpop.{type_.mangled}", (type_, a))
        if kind in ("zeros", "abs"):
            name = self.one("ctlz", "cttz") if kind == "zeros" else "abs"
            return self.call(type_, f"{name}.{type_.mangled}", (type_, a), extra=", i1 false")
        if kind in ("reverse", "swap"):
            return self.call(type_, f"{'bitreverse' if kind == 'reverse' else 'bswap'}.{type_.mangled}", (type_, a))
        return self.call(type_, f"{kind}.{type_.mangled}", (type_, a), (type_, self.value(type_, depth)))

    def int_funnel(self, type_: Type, depth: int) -> str:
        arguments = [(type_, self.value(type_, depth)) for _ in range(3)]
        return self.call(type_, f"{self.one('fshl', 'fshr')}.{type_.mangled}", *arguments)

    def int_overflow(self, type_: Type, depth: int) -> str:
        name = self.one(*OVERFLOWS[:4] if type_.bits > 64 else OVERFLOWS)
        pair = self.call(f"{{ {type_}, i1 }}", f"{name}.with.overflow.{type_.mangled}",
                         *((type_, self.value(type_, depth)) for _ in range(2)))
        result, over = (self.let(f"extractvalue {{ {type_}, i1 }} {pair}, {n}") for n in range(2))
        return self.let(f"select i1 {over}, {type_} {self.value(type_, depth)}, {type_} {result}")

    def int_convert(self, type_: Type, depth: int) -> str:
        """From another width."""
        if type_.lanes > 1:
            return self.int_reinterpreted(type_, depth)
        other = self.random.choice([t for t in (*INTEGERS, *ODD) if t != type_])
        return self.resized(self.value(other, depth), other, type_)

    def int_reinterpreted(self, type_: Type, depth: int) -> str:
        others = [t for t in VECTORS if t.size == type_.size and t != type_ and t.kind == "i"]
        other = self.random.choice([*others, Type("i", type_.size)])
        if other.bits > 128:
            return self.int_binary(type_, depth)
        return self.let(f"bitcast {other} {self.value(other, depth)} to {type_}")

    def int_from_float(self, type_: Type, depth: int) -> str:
        if type_.bits > 64 or type_.bits < 8:
            return self.int_convert(type_, depth)
        source = self.random.choice(FLOATING[:4])
        return self.call(type_, f"fpto{self.one('s', 'u')}i.sat.{type_.mangled}.{source.mangled}",
                         (source, self.value(source, depth)))

    def int_extract(self, type_: Type, depth: int) -> str:
        vectors = [t for t in VECTORS if t.element == type_]
        if not vectors:
            return self.int_convert(type_, depth)
        vector = self.random.choice(vectors)
        return self.let(f"extractelement {vector} {self.value(vector, depth)}, i32 {self.place(vector, depth)}")

    def place(self, vector: Type, depth: int) -> str:
        """An element's number, that may differ by thread."""
        if self.chance(0.4) or vector.lanes & (vector.lanes - 1):
            return str(self.random.randrange(vector.lanes))
        return self.let(f"and i32 {self.value(I32, depth)}, {vector.lanes - 1}")

    def int_reduce(self, type_: Type, depth: int) -> str:
        vectors = [t for t in VECTORS if t.element == type_ and t.lanes in (2, 4, 8)]
        if not vectors:
            return self.int_convert(type_, depth)
        vector = self.random.choice(vectors)
        return self.call(type_, f"vector.reduce.{self.one(*REDUCTIONS)}.{vector.mangled}",
                         (vector, self.value(vector, depth)))

    def int_lanes(self, type_: Type, depth: int) -> str:
        """Elements put in, and moved about."""
        if self.chance(0.5):
            element, place = self.value(type_.element, depth), self.place(type_, depth)
            return self.let(f"insertelement {type_} {self.value(type_, depth)}, {type_.element} {element}, i32 {place}")
        mask = ", ".join(f"i32 {self.random.randrange(2 * type_.lanes)}" for _ in range(type_.lanes))
        return self.let(f"shufflevector {type_} {self.value(type_, depth)}, {type_} {self.value(type_, depth)}, "
                        f"<{type_.lanes} x i32> <{mask}>")

    def floating(self, type_: Type, depth: int) -> str:
        if type_.lanes > 1 and self.chance(0.3):
            return self.int_lanes(type_, depth)
        kind = self.random.choice(("arithmetic", "arithmetic", "arithmetic", "select", "negated", "least", "rounded",
                                   "sign", "fused", "root", "converted", "scaled"))
        if type_.kind == "b" and kind not in ("arithmetic", "select", "negated", "converted"):
            kind = "arithmetic"
        a = self.value(type_, depth)
        if kind == "select":
            condition = self.condition(min(depth, 1))
            return self.let(f"select i1 {condition}, {type_} {a}, {type_} {self.value(type_, depth)}")
        if kind == "negated":
            return self.let(f"fneg {type_} {a}")
        if kind == "least":
            a, b = (self.let(f"fadd {type_} {x}, {self.zero(type_)}") for x in (a, self.value(type_, depth)))
            return self.call(type_, f"{self.one('minnum', 'maxnum')}.{type_.mangled}", (type_, a), (type_, b))
        if kind == "rounded":
            return self.call(type_, f"{self.one(*ROUNDINGS)}.{type_.mangled}", (type_, a))
        if kind == "sign":
            return self.signed(type_, a, depth)
        if kind == "fused" and type_.bits > 16:
            return self.call(type_, f"fma.{type_.mangled}", *((type_, x) for x in (
                a, self.value(type_, depth), self.value(type_, depth))))
        if kind == "root":
            return self.call(type_, f"sqrt.{type_.mangled}", (type_, a))
        if kind == "scaled" and type_.lanes == 1 and type_.bits > 16:
            exponent = self.let(f"srem i32 {self.value(I32, depth)}, 40")
            return self.call(type_, f"ldexp.{type_.mangled}.i32", (type_, a), (I32, exponent))
        if kind == "converted" and type_.lanes == 1:
            other = self.random.choice([t for t in (*FLOATING, *INTEGERS[:6]) if t != type_])
            return self.converted(self.value(other, depth), other, type_)
        return self.let(f"{self.one('fadd', 'fsub', 'fmul', 'fdiv')} {type_} {a}, {self.value(type_, depth)}")

    def zero(self, type_: Type) -> str:
        return float_text(type_, 0.0) if type_.lanes == 1 else "zeroinitializer"

    def signed(self, type_: Type, a: str, depth: int) -> str:
        """The magnitude, or with the sign of another number, which must be no NaN."""
        if self.chance(0.5) or type_.lanes > 1:
            return self.call(type_, f"fabs.{type_.mangled}", (type_, a))
        b = self.let(f"bitcast {type_.integer} {self.bits(self.value(type_, depth), type_)} to {type_}")
        return self.call(type_, f"copysign.{type_.mangled}", (type_, a), (type_, b))


def float_text(type_: Type, value: float) -> str:
    """A float constant as LLVM IR spells it to the bit."""
    if type_.kind == "b":
        return f"0xR{struct.unpack('<I', struct.pack('<f', value))[0] >> 16:04X}"
    if type_.bits == 16:
        value = 100.0 if 65520 <= abs(value) < math.inf else value
        return f"0xH{struct.unpack('<H', struct.pack('<e', value))[0]:04X}"
    if type_.bits == 32:
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
