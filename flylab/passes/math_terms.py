"""The machine that makes operations of a recipe's steps: see `flylab.mathlib.machine`.

Sums, products and the rest are `arith` and `math` operations without fast-math flags. What MLIR's conversion for AMD
would turn into a call of ROCm's device library, or into an instruction with other rules for NaN, is LLVM's intrinsic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from flylab.passes.rewriter import parse_type

FLOATS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
NORMAL = {"f16": -14, "bf16": -126, "f32": -126, "f64": -1022}
# Predicates of arith.cmpi (signed) and of arith.cmpf (ordered; != holds for NaN), by MLIR's numbers.
PREDICATES = {"==": (0, 1), "!=": (1, 13), "<": (2, 4), "<=": (3, 5), ">": (4, 2), ">=": (5, 3)}
DIRECT = {"roundeven": "math.roundeven", "trunc": "math.trunc", "round": "math.round"}


class Term:
    """A value with Python's operators; `kind` is its element type, `lanes` 0 for a scalar."""

    __slots__ = ("machine", "value", "kind", "lanes")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, machine: Terms, value: Any, kind: str, lanes: int):
        self.machine, self.value, self.kind, self.lanes = machine, value, kind, lanes

    @property
    def is_float(self) -> bool:
        return self.kind in FLOATS

    def _apply(self, integer: str, float_: str, a: Any, b: Any) -> Term:
        a, b = self.machine.beside(a, self), self.machine.beside(b, self)
        return self.machine.make(float_ if self.is_float else integer, [a, b], self.kind)

    def __add__(self, other: Any) -> Term:
        return self._apply("arith.addi", "arith.addf", self, other)

    def __radd__(self, other: Any) -> Term:
        return self._apply("arith.addi", "arith.addf", other, self)

    def __sub__(self, other: Any) -> Term:
        return self._apply("arith.subi", "arith.subf", self, other)

    def __rsub__(self, other: Any) -> Term:
        return self._apply("arith.subi", "arith.subf", other, self)

    def __mul__(self, other: Any) -> Term:
        return self._apply("arith.muli", "arith.mulf", self, other)

    def __truediv__(self, other: Any) -> Term:
        return self._apply("", "arith.divf", self, other)

    def __rtruediv__(self, other: Any) -> Term:
        return self._apply("", "arith.divf", other, self)

    def __neg__(self) -> Term:
        return self.machine.make("arith.negf", [self], self.kind)

    def __and__(self, other: Any) -> Term:
        return self._apply("arith.andi", "", self, other)

    def __or__(self, other: Any) -> Term:
        return self._apply("arith.ori", "", self, other)

    def __xor__(self, other: Any) -> Term:
        return self._apply("arith.xori", "", self, other)

    def __invert__(self) -> Term:
        return self ^ 1

    def __lshift__(self, count: int) -> Term:
        return self._apply("arith.shli", "", self, count)

    def __rshift__(self, count: int) -> Term:
        return self._apply("arith.shrsi", "", self, count)

    def _compare(self, symbol: str, other: Any) -> Term:
        from mlir import ir

        number = PREDICATES[symbol][self.is_float]
        predicate = ir.IntegerAttr.get(parse_type("i64"), number)
        name = "arith.cmpf" if self.is_float else "arith.cmpi"
        return self.machine.make(name, [self, self.machine.beside(other, self)], "i1", predicate=predicate)

    def __eq__(self, other: object) -> Any:
        return self._compare("==", other)

    def __ne__(self, other: object) -> Any:
        return self._compare("!=", other)

    def __lt__(self, other: Any) -> Term:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Term:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Term:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Term:
        return self._compare(">=", other)


class Terms:
    """A machine whose values are `Term`s, vectors of `lanes` elements or scalars (0); operations go to a point."""

    def __init__(self, point: Any, location: Any, lanes: int):
        self.point, self.location, self.lanes = point, location, lanes

    def type_of(self, kind: str) -> Any:
        """The MLIR type of this machine's values of a kind."""
        return parse_type(f"vector<{self.lanes}x{kind}>" if self.lanes else kind)

    def make(self, name: str, operands: Sequence[Term], kind: str, **attributes: Any) -> Term:
        """An operation with one result of a kind."""
        from mlir import ir

        with self.point:
            made = ir.Operation.create(name, results=[self.type_of(kind)], operands=[t.value for t in operands],
                                       attributes=attributes, loc=self.location)
        return Term(self, made.results[0], kind, self.lanes)

    def intrinsic(self, name: str, operands: Sequence[Term], kind: str, **attributes: Any) -> Term:
        """A call of LLVM's intrinsic, overloaded on its operands."""
        from mlir import ir

        return self.make("llvm.call_intrinsic", operands, kind, intrin=ir.StringAttr.get(name),
                         op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
                         operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]), **attributes)

    def constant(self, value: float, beside: Term) -> Term:
        """A scalar, or a vector with the number in each element."""
        from mlir import ir

        scalar = parse_type(beside.kind)
        attribute = ir.FloatAttr.get(scalar, value) if beside.is_float else ir.IntegerAttr.get(scalar, int(value))
        if self.lanes:
            attribute = ir.DenseElementsAttr.get_splat(self.type_of(beside.kind), attribute)
        return self.make("arith.constant", [], beside.kind, value=attribute)

    def beside(self, value: Any, other: Term) -> Term:
        """A Term, or a Python number as a constant of the kind of another."""
        return value if isinstance(value, Term) else self.constant(value, other)

    def to(self, x: Term, kind: str) -> Term:
        """An extension, or a truncation, which rounds to nearest even."""
        if x.kind == kind:
            return x
        return self.make("arith.extf" if FLOATS[kind] > FLOATS[x.kind] else "arith.truncf", [x], kind)

    def fma(self, x: Term, y: Any, z: Any) -> Term:
        return self.make("math.fma", [x, self.beside(y, x), self.beside(z, x)], x.kind)

    def select(self, condition: Term, x: Any, y: Any) -> Term:
        """Without a branch."""
        x = self.beside(x, y)
        return self.make("arith.select", [condition, x, self.beside(y, x)], x.kind)

    def rounded(self, x: Term, how: str) -> Term:
        return self.make(DIRECT[how], [x], x.kind) if how in DIRECT else self.intrinsic(f"llvm.{how}", [x], x.kind)

    def absolute(self, x: Term) -> Term:
        return self.make("math.absf", [x], x.kind)

    def with_sign(self, x: Term, sign: Term) -> Term:
        """MLIR's copysign, but for f64."""
        if x.kind != "f64":
            return self.make("math.copysign", [x, sign], x.kind)
        # On halves: LLVM makes one llvm.copysign of other forms, of a vector of 1 too, where its code generator dies.
        bits = self.bits(x)
        size, minus = (self.low(self.shifted_down(v, 32)) for v in (bits, self.bits(sign)))
        high = (size & 0x7FFFFFFF) | (minus & -(2**31))
        return self.of_bits(self.wide(high) << 32 | self.wide(self.low(bits)))

    def sqrt(self, x: Term) -> Term:
        return self.make("math.sqrt", [x], x.kind)

    def scaled(self, x: Term, exponent: Term) -> Term:
        return self.intrinsic("llvm.ldexp", [x, exponent], x.kind)

    def integer(self, x: Term) -> Term:
        # LLVM leaves the integer of NaN and of what is too large open; frozen it is one number, whichever.
        return self.make("llvm.freeze", [self.make("arith.fptosi", [x], "i32")], "i32")

    def number(self, i: Term) -> Term:
        return self.make("arith.sitofp", [i], "f64")

    def bits(self, x: Term) -> Term:
        return self.make("arith.bitcast", [x], f"i{FLOATS[x.kind]}")

    def of_bits(self, i: Term) -> Term:
        return self.make("arith.bitcast", [i], f"f{i.kind[1:]}")

    def wide(self, i: Term) -> Term:
        return self.make("arith.extui", [i], "i64")

    def low(self, i: Term) -> Term:
        return self.make("arith.trunci", [i], "i32")

    def shifted_down(self, i: Term, count: Any) -> Term:
        return self.make("arith.shrui", [i, self.beside(count, i)], i.kind)

    def product(self, x: Term, y: Term) -> Term:
        return self.make("arith.muli", [x, y], x.kind)

    def smallest_normal(self, x: Term) -> float:
        return float(2.0 ** NORMAL[x.kind])

    def native(self, name: str, x: Term) -> Term:
        """An intrinsic with the flag afn; AMD's own take no vectors."""
        from mlir import ir

        flags = ir.Attribute.parse("#llvm.fastmath<afn>")
        if not (self.lanes and name.startswith("llvm.amdgcn.")):
            return self.intrinsic(name, [x], x.kind, fastmathFlags=flags)
        one, parts = Terms(self.point, self.location, 0), []
        for n in range(self.lanes):
            place = ir.DenseI64ArrayAttr.get([n])
            part = one.make("vector.extract", [x], x.kind, static_position=place)
            parts.append(one.native(name, part))
        return self.make("vector.from_elements", parts, x.kind)

    def where(self, condition: Term, compute: Callable[[], tuple[Term, ...]], other: Sequence[Term]) -> list[Term]:
        """A branch, taken where any vector element needs it."""
        branch = self._control("scf.if", [self._any(condition)], other)
        with self._inside(branch.regions[0]):
            found = [self.select(condition, x, y) if self.lanes else x for x, y in zip(compute(), other, strict=True)]
            self._end("scf.yield", found)
        with self._inside(branch.regions[1]):
            self._end("scf.yield", other)
        return self._terms(branch.results, other)

    def loop(self, condition: Callable[[list[Term]], Term], step: Callable[[list[Term]], list[Term]],
             state: list[Term]) -> list[Term]:
        """A loop that goes on while any vector element needs it."""
        loop = self._control("scf.while", [t.value for t in state], state)
        for region in loop.regions:
            region.blocks.append(*(t.value.type for t in state), arg_locs=[self.location] * len(state))
        before, after = (region.blocks[0] for region in loop.regions)
        with self._inside(loop.regions[0]):
            now = self._terms(before.arguments, state)
            self._end("scf.condition", [Term(self, self._any(condition(now)), "i1", 0), *now])
        with self._inside(loop.regions[1]):
            self._end("scf.yield", step(self._terms(after.arguments, state)))
        return self._terms(loop.results, state)

    def _any(self, condition: Term) -> Any:
        """Whether a truth value holds in any element."""
        from mlir import ir

        if not self.lanes:
            return condition.value
        with self.point:
            return ir.Operation.create("vector.reduction", results=[parse_type("i1")], operands=[condition.value],
                                       attributes={"kind": ir.Attribute.parse("#vector.kind<or>")},
                                       loc=self.location).results[0]

    def _control(self, name: str, operands: Sequence[Any], state: Sequence[Term]) -> Any:
        """An operation of two regions, with results like the state."""
        from mlir import ir

        with self.point:
            return ir.Operation.create(name, results=[t.value.type for t in state], operands=list(operands), regions=2,
                                       loc=self.location)

    def _terms(self, values: Any, state: Sequence[Term]) -> list[Term]:
        return [Term(self, value, t.kind, self.lanes) for value, t in zip(values, state, strict=True)]

    @contextmanager
    def _inside(self, region: Any) -> Iterator[None]:
        """New operations go to the end of a region's block."""
        from mlir import ir

        before = self.point
        self.point = ir.InsertionPoint(region.blocks[0] if len(region.blocks) else region.blocks.append())
        yield
        self.point = before

    def _end(self, name: str, terms: Sequence[Term]) -> None:
        from mlir import ir

        with self.point:
            ir.Operation.create(name, operands=[t.value for t in terms], loc=self.location)
