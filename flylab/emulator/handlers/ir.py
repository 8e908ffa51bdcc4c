"""A small writer of LLVM IR text: values with operators, memory, and structured control flow.

The operations of the table are written against `Value` alone (`x + y`, `x.cmp("olt", y).select(x, y)`), so one row
serves scalars, 16 or 64 lanes at once, and any other executor that offers the same methods.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

FLOATS = ("half", "float", "double")
# The operations whose results are rounded by the mode; fdiv and sqrt are steps of approximations only.
ROUNDED = frozenset({"fadd", "fsub", "fmul", "fma", "fptrunc", "sitofp", "uitofp"})
_MANGLE = {"half": "f16", "float": "f32", "double": "f64"}
_WIDTH = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128, "half": 16, "float": 32, "double": 64}


def width(type_: str) -> int:
    """Bits of an element type."""
    return _WIDTH[type_]


def full_type(type_: str, lanes: int) -> str:
    """The IR type of `lanes` elements; 0 lanes are a scalar."""
    return f"<{lanes} x {type_}>" if lanes else type_


class Value:
    """An SSA value or constant: its text, its element type, and its number of lanes (0 for a scalar)."""

    __slots__ = ("b", "name", "type", "lanes")

    def __init__(self, b: Builder, name: str, type_: str, lanes: int = 0):
        self.b, self.name, self.type, self.lanes = b, name, type_, lanes

    @property
    def typed(self) -> str:
        return f"{full_type(self.type, self.lanes)} {self.name}"

    @property
    def is_float(self) -> bool:
        return self.type in FLOATS

    def like(self, other: Value | float) -> Value:
        """`other`, with a Python number made a constant of this value's type."""
        return other if isinstance(other, Value) else self.b.const(other, self.type, self.lanes)

    def _op(self, name: str, other: Value | float) -> Value:
        other = self.like(other)
        found = self.b.let(f"{name} {self.typed}, {other.name}", self.type, self.lanes)
        return self.b.rounded(name, found, self, other)

    def __add__(self, other: Value | float) -> Value:
        return self._op("fadd" if self.is_float else "add", other)

    def __radd__(self, other: Value | float) -> Value:
        return self.like(other) + self

    def __sub__(self, other: Value | float) -> Value:
        return self._op("fsub" if self.is_float else "sub", other)

    def __rsub__(self, other: Value | float) -> Value:
        return self.like(other) - self

    def __mul__(self, other: Value | float) -> Value:
        return self._op("fmul" if self.is_float else "mul", other)

    def __rmul__(self, other: Value | float) -> Value:
        return self.like(other) * self

    def __truediv__(self, other: Value | float) -> Value:
        return self._op("fdiv", other)

    def __rtruediv__(self, other: Value | float) -> Value:
        return self.like(other) / self

    def __and__(self, other: Value | int) -> Value:
        return self._op("and", other)

    def __or__(self, other: Value | int) -> Value:
        return self._op("or", other)

    def __xor__(self, other: Value | int) -> Value:
        return self._op("xor", other)

    def __invert__(self) -> Value:
        return self._op("xor", -1)

    def __neg__(self) -> Value:
        if self.is_float:
            return self.b.let(f"fneg {self.typed}", self.type, self.lanes)
        return self.like(0) - self

    def divide(self, other: Value | int) -> Value:
        """The unsigned quotient; `other` is not 0."""
        return self._op("udiv", other)

    def modulo(self, other: Value | int) -> Value:
        """The unsigned remainder; `other` is not 0."""
        return self._op("urem", other)

    def shl(self, n: Value | int) -> Value:
        """Shift left by `n` taken modulo the width, as the hardware does."""
        return self._op("shl", self._amount(n))

    def shr(self, n: Value | int) -> Value:
        """Logical shift right by `n` modulo the width."""
        return self._op("lshr", self._amount(n))

    def sar(self, n: Value | int) -> Value:
        """Arithmetic shift right by `n` modulo the width."""
        return self._op("ashr", self._amount(n))

    def _amount(self, n: Value | int) -> Value:
        if isinstance(n, int):
            return self.like(n)
        return (n & (width(self.type) - 1)).to(self.type)

    def cmp(self, predicate: str, other: Value | float) -> Value:
        """LLVM's `icmp` or `fcmp` predicate on two values of one type, as i1."""
        kind = "fcmp" if self.is_float else "icmp"
        return self.b.let(f"{kind} {predicate} {self.typed}, {self.like(other).name}", "i1", self.lanes)

    def select(self, yes: Value | float, no: Value | float) -> Value:
        """`yes` where this i1 holds, else `no`; one of them may be a Python number."""
        if not isinstance(yes, Value):
            assert isinstance(no, Value)
            yes = no.like(yes)
        no = yes.like(no)
        return self.b.let(f"select {self.typed}, {yes.typed}, {no.typed}", yes.type, yes.lanes)

    def to(self, type_: str, signed: bool = False) -> Value:
        """Extended or cut to another width of the same sort (integers, or floats)."""
        if type_ == self.type:
            return self
        grow = width(type_) > width(self.type)
        if self.is_float:
            name = "fpext" if grow else "fptrunc"
        else:
            name = ("sext" if signed else "zext") if grow else "trunc"
        return self.b.rounded(name, self._cast(name, type_), self)

    def bits(self, type_: str) -> Value:
        """The same bits as another type of the same width."""
        return self if type_ == self.type else self._cast("bitcast", type_)

    def to_float(self, type_: str, signed: bool) -> Value:
        """An integer as a float, rounded to nearest even."""
        name = "sitofp" if signed else "uitofp"
        return self.b.rounded(name, self._cast(name, type_), self)

    def to_int(self, type_: str, signed: bool) -> Value:
        """A float as an integer, towards zero, saturating; NaN gives 0."""
        name = f"llvm.fpto{'si' if signed else 'ui'}.sat.{self.b.mangle(type_, self.lanes)}"
        return self.b.call(f"{name}.{self.b.mangle(self.type, self.lanes)}", type_, self.lanes, self)

    def _cast(self, name: str, type_: str) -> Value:
        return self.b.let(f"{name} {self.typed} to {full_type(type_, self.lanes)}", type_, self.lanes)

    def call(self, name: str, *others: Value | float) -> Value:
        """The intrinsic `llvm.<name>` overloaded on this value's type (`fma`, `umin`, `sqrt`, `ctpop` ...)."""
        args = (self, *(self.like(x) for x in others))
        found = self.b.call(f"llvm.{name}.{self.b.mangle(self.type, self.lanes)}", self.type, self.lanes, *args)
        return self.b.rounded(name, found, *args)

    def count(self, name: str) -> Value:
        """`ctlz` or `cttz`; the width where no bit is set."""
        return self.b.call(f"llvm.{name}.{self.b.mangle(self.type, self.lanes)}", self.type, self.lanes, self,
                           self.b.const(0, "i1"))

    def splat(self, lanes: int) -> Value:
        """A scalar repeated in every lane."""
        if not lanes or self.lanes:
            return self
        one = self.b.let(f"insertelement {full_type(self.type, lanes)} poison, {self.typed}, i64 0", self.type, lanes)
        return self.b.let(f"shufflevector {one.typed}, {one.typed}, <{lanes} x i32> zeroinitializer", self.type, lanes)

    def shuffle(self, other: Value, order: Sequence[int]) -> Value:
        """Lanes of this vector and, numbered on from its last, of another, in this order."""
        mask = ", ".join(f"i32 {n}" for n in order)
        text = f"shufflevector {self.typed}, {other.typed}, <{len(order)} x i32> <{mask}>"
        return self.b.let(text, self.type, len(order))

    def recast(self, type_: str, lanes: int) -> Value:
        """The same bits as other elements, or as one number: 0 lanes."""
        return self.b.let(f"bitcast {self.typed} to {full_type(type_, lanes)}", type_, lanes)

    def any(self) -> Value:
        """True where any lane of an i1 vector (or an i1 scalar) holds."""
        if not self.lanes:
            return self
        mask = self.b.let(f"bitcast {self.typed} to i{self.lanes}", f"i{self.lanes}")
        return self.b.let(f"icmp ne {mask.typed}, 0", "i1")


class Builder:
    """Collects the lines of one function, and the intrinsics it calls.

    What of the float mode is not that of every handler: `ieee` is the bit that makes v_min and v_max quiet a signalling
    NaN; `saturate` that which keeps finite halves and 8-bit floats finite; each a bool, or an i1 of the running wave.
    `rounding` makes of a result rounded to nearest that of another rounding mode.
    """

    def __init__(self) -> None:
        self.ieee: bool | Value = True
        self.saturate: bool | Value = False
        self.rounding: Callable[..., Value] | None = None
        self.lines: list[str] = []
        self.intrinsics: dict[str, str] = {}
        self._count = 0

    def fresh(self, prefix: str = "t") -> str:
        """A name that this function has not used."""
        self._count += 1
        return f"{prefix}{self._count}"

    def let(self, text: str, type_: str, lanes: int = 0) -> Value:
        """A new value with the instruction `text`."""
        name = "%" + self.fresh()
        self.lines.append(f"  {name} = {text}")
        return Value(self, name, type_, lanes)

    def do(self, text: str) -> None:
        self.lines.append("  " + text)

    def const(self, value: float, type_: str, lanes: int = 0) -> Value:
        """A Python number as a constant, the same in every lane."""
        if type_ in FLOATS:
            value = struct.unpack("f", struct.pack("f", value))[0] if type_ == "float" else float(value)
            text = f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016X}"
        else:
            text = str(int(value))
            if type_ == "i1":
                text = "true" if value else "false"
        return Value(self, f"splat ({type_} {text})" if lanes else text, type_, lanes)

    def vector(self, values: Sequence[int], type_: str) -> Value:
        """Integers as a constant vector."""
        return Value(self, "<" + ", ".join(f"{type_} {n}" for n in values) + ">", type_, len(values))

    def gathered(self, scalars: Sequence[Value]) -> Value:
        """Scalars as one vector."""
        vector = Value(self, "poison", scalars[0].type, len(scalars))
        for n, scalar in enumerate(scalars):
            vector = self.let(f"insertelement {vector.typed}, {scalar.typed}, i64 {n}", scalar.type, len(scalars))
        return vector

    @staticmethod
    def mangle(type_: str, lanes: int) -> str:
        return (f"v{lanes}" if lanes else "") + _MANGLE.get(type_, type_)

    def call(self, name: str, type_: str, lanes: int, *args: Value) -> Value:
        """A call of an intrinsic by its full name, which is declared on the way."""
        result = full_type(type_, lanes)
        parameters = ", ".join(full_type(a.type, a.lanes) for a in args)
        self.intrinsics[name] = f"declare {result} @{name}({parameters})"
        return self.let(f"call {result} @{name}({', '.join(a.typed for a in args)})", type_, lanes)

    def where(self, flag: bool | Value, condition: Value) -> Value:
        """A condition, where a flag of the mode is set too."""
        if isinstance(flag, Value):
            return condition & flag.splat(condition.lanes)
        return condition if flag else self.const(False, "i1", condition.lanes)

    def rounded(self, operation: str, near: Value, *sources: Value) -> Value:
        """The result of an operation in the mode of this function, from the one rounded to nearest even."""
        return self.rounding(operation, near, *sources) if self.rounding and operation in ROUNDED else near

    @contextmanager
    def to_nearest(self) -> Iterator[None]:
        """What is computed inside is rounded to nearest even whatever the mode."""
        kept, self.rounding = self.rounding, None
        yield
        self.rounding = kept

    # memory: pointers are plain names of SSA values of type ptr

    def at(self, pointer: str, offset: Value | int) -> str:
        """The pointer `offset` bytes after `pointer`."""
        if offset == 0:
            return pointer
        text = f"i64 {offset}" if isinstance(offset, int) else offset.to("i64").typed
        return self.let(f"getelementptr i8, ptr {pointer}, {text}", "ptr").name

    def load(self, pointer: str, type_: str, lanes: int = 0, align: int = 4) -> Value:
        return self.let(f"load {full_type(type_, lanes)}, ptr {pointer}, align {align}", type_, lanes)

    def store(self, value: Value, pointer: str, align: int = 4) -> None:
        self.do(f"store {value.typed}, ptr {pointer}, align {align}")

    def field(self, pointer: str, struct_: type[ctypes.Structure], name: str) -> Value:
        """The field of a ctypes structure at `pointer`: the one place of its offset is the structure."""
        member = getattr(struct_, name)
        is_pointer = any(f[0] == name and f[1] is ctypes.c_void_p for f in struct_._fields_)
        type_ = "ptr" if is_pointer else f"i{8 * member.size}"
        return self.let(f"load {type_}, ptr {self.at(pointer, member.offset)}, align {member.size}", type_)

    def set_field(self, pointer: str, struct_: type[ctypes.Structure], name: str, value: Value | int | str) -> None:
        """Stores a value, a number, or (as text) the name of a pointer in a field."""
        member = getattr(struct_, name)
        typed = f"ptr {value}" if isinstance(value, str) else (
            value.typed if isinstance(value, Value) else f"i{8 * member.size} {value}")
        self.do(f"store {typed}, ptr {self.at(pointer, member.offset)}, align {member.size}")

    # control flow: no value made inside a block is used after it

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def jump(self, name: str) -> None:
        self.do(f"br label %{name}")

    def branch(self, condition: Value, yes: str, no: str) -> None:
        self.do(f"br i1 {condition.name}, label %{yes}, label %{no}")

    @contextmanager
    def when(self, condition: Value) -> Iterator[str]:
        """The block runs where `condition` holds; yields the label after it."""
        yes, end = self.fresh("then"), self.fresh("end")
        self.branch(condition, yes, end)
        self.label(yes)
        yield end
        self.jump(end)
        self.label(end)

    @contextmanager
    def forever(self) -> Iterator[tuple[str, str]]:
        """A loop; yields the labels of its head and of what follows it, for `branch` and `jump`."""
        head, end = self.fresh("head"), self.fresh("after")
        self.jump(head)
        self.label(head)
        yield head, end
        self.jump(head)
        self.label(end)

    def leave_when(self, condition: Value, target: str) -> None:
        """Jumps to `target` where `condition` holds, else goes on."""
        go_on = self.fresh("on")
        self.branch(condition, target, go_on)
        self.label(go_on)

    def set_bits(self, mask: Value) -> _SetBits:
        """A loop over the numbers of the set bits of an i64, lowest first."""
        return _SetBits(self, mask)

    def repeat(self, count: int, *carried: Value) -> Repeat:
        """A loop of `count` rounds, at least one, which carries values from one round to the next."""
        return Repeat(self, count, carried)

    def function(self, name: str, signature: str) -> str:
        """The whole module: declarations and one function of these lines."""
        head = f"define {signature.replace('@', '@' + name)} nounwind {{"
        return "\n".join([*self.intrinsics.values(), head, "entry:", *self.lines, "}"])


class _SetBits:
    """`with b.set_bits(mask) as (bit, end):` runs the block once for each set bit."""

    def __init__(self, b: Builder, mask: Value):
        self.b, self.mask = b, mask

    def __enter__(self) -> tuple[Value, str]:
        b = self.b
        self.head, self.body, self.end, before = (b.fresh(p) for p in ("head", "body", "after", "before"))
        b.jump(before)
        b.label(before)
        b.jump(self.head)
        b.label(self.head)
        self.left, self.rest = "%" + b.fresh("left"), "%" + b.fresh("rest")
        self.tail = b.fresh("tail")
        b.do(f"{self.left} = phi i64 [ {self.mask.name}, %{before} ], [ {self.rest}, %{self.tail} ]")
        left = Value(b, self.left, "i64")
        b.branch(left.cmp("eq", 0), self.end, self.body)
        b.label(self.body)
        return left.count("cttz"), self.end

    def __exit__(self, *exc: object) -> None:
        b = self.b
        b.jump(self.tail)
        b.label(self.tail)
        less = b.let(f"sub i64 {self.left}, 1", "i64")
        b.do(f"{self.rest} = and i64 {self.left}, {less.name}")
        b.jump(self.head)
        b.label(self.end)


class Repeat:
    """`with b.repeat(8, x) as loop:` runs the block 8 times, where `loop.index` counts from 0.

    `loop.values` are the carried values: the block sets those of the next round, and after it they are the last ones.
    """

    def __init__(self, b: Builder, count: int, carried: tuple[Value, ...]):
        self.b, self.count, self._first = b, count, carried

    def __enter__(self) -> Repeat:
        b = self.b
        self._before, self._head = b.fresh("before"), b.fresh("head")
        for name in (self._before, self._head):
            b.jump(name)
            b.label(name)
        self._at = len(b.lines)
        self.index = Value(b, "%" + b.fresh("index"), "i64")
        self.values = [Value(b, "%" + b.fresh("carried"), v.type, v.lanes) for v in self._first]
        self._phis = [self.index, *self.values]
        return self

    def __exit__(self, *exc: object) -> None:
        b, tail, end = self.b, self.b.fresh("tail"), self.b.fresh("after")
        b.jump(tail)
        b.label(tail)
        rounds = [self.index + 1, *self.values]
        b.lines[self._at:self._at] = [
            f"  {phi.name} = phi {full_type(phi.type, phi.lanes)} "
            f"[ {first.name}, %{self._before} ], [ {later.name}, %{tail} ]"
            for phi, first, later in zip(self._phis, [self.index.like(0), *self._first], rounds, strict=True)]
        b.branch(rounds[0].cmp("eq", self.count), end, self._head)
        b.label(end)
