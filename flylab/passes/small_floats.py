"""`fly.convert_float`: Float32 to and from the floats of fewer than 16 bits.

By the chip's instructions where it has them for the format, else by a sequence on the bits. Both give what
`flylab.expr.folding` gives for known numbers: rounded to nearest, ties to even, overflow and NaN as `ml_dtypes` has
them.

The chip's conversions of a Float32 round to nearest even, and give an infinity or NaN for what is beyond the largest
number unless the kernel sets FP16_OVFL in MODE, which nothing here does. Source: CDNA3 and CDNA4 ISA, chapter on VOP3,
V_CVT_PK_FP8_F32. Which NaN of Float8E5M2 a chip gives is not published: LLVM's and ml_dtypes' 0x7E is taken.
"""

from __future__ import annotations

from typing import Any

from flylab.dtypes import DTYPES, DType, Encoding
from flylab.passes.rewriter import Builder, parse_type
from flylab.passes.vectors import element, extract, insert, shape_of, vector_type
from flylab.targets import Target

_OF_TYPE = {d.mlir: d for d in DTYPES.values() if d.is_small_float}
_INFINITY, _NAN = 0x7F800000, 0x7FC00000
_UNSIGNED = {"==": 0, "<": 6, ">": 8, ">=": 9}
"""arith.cmpi's numbers of its unsigned predicates."""


def converted(op: Any, builder: Builder, chip: Target) -> Any:
    """The value of a `fly.convert_float`, made before it."""
    value, result = op.operands[0], op.results[0].type
    lanes = shape_of(value)[0] if str(value.type).startswith("vector") else 0
    small = next(_OF_TYPE[t] for t in (_element(value.type), _element(result)) if t in _OF_TYPE)
    narrowing = _element(value.type) == "f32"
    name = next((name for name, dtype in chip.float8.items() if dtype == small.name), "")
    if not narrowing:
        code = builder.op("arith.bitcast", [value], _type(f"i{small.bits}", lanes))
        return _unpacked(builder, code, name, lanes) if name else _Bits(builder, small, lanes).decoded(code)
    code = _packed(builder, value, name, lanes) if name else _Bits(builder, small, lanes).encoded(value)
    return builder.op("arith.bitcast", [code], result)


def _element(kind: Any) -> str:
    return str(kind).removeprefix("vector<").removesuffix(">").split("x", 1)[-1] if "vector" in str(kind) else str(kind)


def _type(scalar: str, lanes: int) -> Any:
    return vector_type(scalar, lanes) if lanes else parse_type(scalar)


def _packed(builder: Builder, value: Any, name: str, lanes: int) -> Any:
    """Floats as bytes, by the instruction that converts two into a half of a register."""
    from mlir import ir

    nothing = builder.op("ub.poison", [], "i32", value=ir.Attribute.parse("#ub.poison"))
    numbers = [element(builder, value, i) for i in range(lanes)] if lanes else [value]
    words: list[Any] = []
    for i in range(0, len(numbers), 2):
        pair = [numbers[i], numbers[min(i + 1, len(numbers) - 1)]]
        before = words.pop() if i % 4 else nothing
        half = builder.constant(bool(i % 4), "i1")
        words.append(builder.intrinsic(f"llvm.amdgcn.cvt.pk.{name}.f32", [*pair, before, half], "i32"))
    if not lanes:
        return builder.op("arith.trunci", [words[0]], "i8")
    whole = builder.op("vector.from_elements", words, vector_type("i32", len(words)))
    return extract(builder, builder.op("vector.bitcast", [whole], vector_type("i8", 4 * len(words))), 0, lanes)


def _unpacked(builder: Builder, code: Any, name: str, lanes: int) -> Any:
    """Bytes as floats, by the instruction that converts a half of a register into two; of one, that for a byte."""
    if not lanes:
        word = builder.op("arith.extui", [code], "i32")
        return builder.intrinsic(f"llvm.amdgcn.cvt.f32.{name}", [word, builder.constant(0)], "f32")
    full = -(-lanes // 4) * 4  # registers of four, of the last what is not read is undefined
    words = builder.op("vector.bitcast", [insert(builder, code, None, 0, full)], vector_type("i32", full // 4))
    floats: list[Any] = []
    for i in range(0, lanes, 2):
        word = element(builder, words, i // 4)
        if i + 1 == lanes:
            floats.append(builder.intrinsic(f"llvm.amdgcn.cvt.f32.{name}", [word, builder.constant(i % 4)], "f32"))
            continue
        half = builder.constant(bool(i % 4), "i1")
        pair = builder.intrinsic(f"llvm.amdgcn.cvt.pk.f32.{name}", [word, half], "vector<2xf32>")
        floats += [element(builder, pair, n) for n in range(2)]
    return builder.op("vector.from_elements", floats, vector_type("f32", lanes))


class _Bits:
    """Conversions on the bits, in 32-bit integers, of one value or of each element of a vector."""

    def __init__(self, builder: Builder, small: DType, lanes: int):
        self.builder, self.lanes, self.small = builder, lanes, small
        encoding = small.encoding
        assert encoding is not None
        self.encoding: Encoding = encoding
        self.drop = 23 - encoding.mantissa
        self.rebias = (127 - encoding.bias) << encoding.mantissa

    def op(self, name: str, *operands: Any, kind: str = "i32", **attributes: Any) -> Any:
        """An operation whose integer operands may be given as Python's."""
        values = [self.constant(v) if isinstance(v, int) else v for v in operands]
        return self.builder.op(name, values, _type(kind, self.lanes), **attributes)

    def constant(self, bits: int) -> Any:
        """32 bits, in each element."""
        from mlir import ir

        signed = bits - (1 << 32) if bits >> 31 else bits
        attr: Any = ir.IntegerAttr.get(parse_type("i32"), signed)
        if self.lanes:
            attr = ir.DenseElementsAttr.get_splat(_type("i32", self.lanes), attr)
        return self.builder.op("arith.constant", [], _type("i32", self.lanes), value=attr)

    def where(self, a: Any, symbol: str, b: Any, then: Any, otherwise: Any) -> Any:
        """`then` where the unsigned comparison holds, else `otherwise`."""
        from mlir import ir

        predicate = ir.IntegerAttr.get(parse_type("i64"), _UNSIGNED[symbol])
        flag = self.op("arith.cmpi", a, b, kind="i1", predicate=predicate)
        return self.op("arith.select", flag, then, otherwise)

    def encoded(self, value: Any) -> Any:
        """The code of a Float32."""
        bits = self.op("arith.bitcast", value)
        code = self._power(bits) if not self.encoding.mantissa else self._with_sign(bits)
        return self.op("arith.trunci", code, kind=f"i{self.small.bits}")

    def _power(self, bits: Any) -> Any:
        """Of E8M0: the nearest power of 2, the larger of two, NaN for all but positive numbers.

        As ml_dtypes, what is above 2**-127, the least, becomes 2**-126.
        """
        nearest = self.op("arith.shrui", self.op("arith.addi", bits, 0x400000), 23)
        nearest = self.where(bits, ">", 0x400000, nearest, 0)
        return self.where(self.op("arith.subi", bits, 1), ">=", _INFINITY, 0xFF, nearest)

    def _with_sign(self, bits: Any) -> Any:
        form = self.encoding
        size = self.op("arith.andi", bits, 0x7FFFFFFF)
        sign = self.op("arith.shrui", self.op("arith.xori", bits, size), 31 - form.exponent - form.mantissa)
        code = self.where(size, "<", (128 - form.bias) << 23, self._denormal(size), self._normal(size))
        code = self.where(code, ">", form.largest, form.overflow, code)
        if form.unsigned_zero:
            signed = self.op("arith.ori", code, sign)
            special = self.where(code, "==", form.nan, code, signed)
            return self.where(code, "==", 0, code, special)
        if form.nan is None:
            # ml_dtypes makes a NaN the zero of the other sign.
            nan = self.op("arith.xori", sign, form.sign)
            return self.where(size, ">", _INFINITY, nan, self.op("arith.ori", code, sign))
        if form.nan != form.overflow:
            code = self.where(size, ">", _INFINITY, form.nan, code)
        return self.op("arith.ori", code, sign)

    def _normal(self, size: Any) -> Any:
        """The upper bits, rounded: half an odd last bit less than half is added; a carry goes to the exponent."""
        last = self.op("arith.andi", self.op("arith.shrui", size, self.drop), 1)
        rounded = self.op("arith.addi", self.op("arith.addi", size, last), (1 << (self.drop - 1)) - 1)
        return self.op("arith.subi", self.op("arith.shrui", rounded, self.drop), self.rebias)

    def _denormal(self, size: Any) -> Any:
        """How many of the smallest number: a sum whose last bit is worth that much rounds to it."""
        unit = self.drop + 128 - self.encoding.bias << 23
        total = self.op("arith.addf", *(self._float(part) for part in (size, self.constant(unit))), kind="f32")
        return self.op("arith.subi", self.op("arith.bitcast", total), unit)

    def _float(self, bits: Any) -> Any:
        return self.op("arith.bitcast", bits, kind="f32")

    def decoded(self, code: Any) -> Any:
        """The Float32 of a code."""
        form, bits = self.encoding, self.op("arith.extui", code)
        if not form.mantissa:
            power = self.where(bits, "==", 0, 0x400000, self.op("arith.shli", bits, 23))
            return self._float(self.where(bits, "==", form.nan, _NAN, power))
        size = self.op("arith.andi", bits, form.sign - 1)
        normal = self.op("arith.shli", self.op("arith.addi", size, self.rebias), self.drop)
        number = self.where(size, "<", 1 << form.mantissa, self._multiple(size), normal)
        if form.nan is not None and not form.unsigned_zero:
            number = self.where(size, ">", form.largest, _NAN, number)
            if form.has_infinity:
                number = self.where(size, "==", form.overflow, _INFINITY, number)
        sign = self.op("arith.shli", self.op("arith.xori", bits, size), 31 - form.exponent - form.mantissa)
        number = self.op("arith.ori", number, sign)
        return self._float(self.where(bits, "==", form.nan, _NAN, number) if form.unsigned_zero else number)

    def _multiple(self, size: Any) -> Any:
        """The bits of so many of the smallest number."""
        count = self.op("arith.uitofp", size, kind="f32")
        unit = 128 - self.encoding.bias - self.encoding.mantissa << 23
        scaled = self.op("arith.mulf", count, self._float(self.constant(unit)), kind="f32")
        return self.op("arith.bitcast", scaled)
