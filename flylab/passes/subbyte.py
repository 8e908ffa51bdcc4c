"""Elements of fewer than 8 bits (Int4, the 6- and 4-bit floats) are held in 32-bit registers of their own, as codes.

LLVM takes vectors of such elements, and even integers of 4 bits that it finds in a vector, through memory on AMDGPU.
So a bitcast of a vector becomes shifts of 32-bit words (element 0 is the lowest bits), and what is computed with the
elements is computed with their codes, of which the bits above the element's may be anything. Tracing computes in 32
bits (`expr.arithmetic`), so there are only conversions, choices and moves. What else uses an element gets it as it was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.passes.rewriter import Builder, erase, operations, unused
from flylab.passes.vectors import BITS, NARROW, element, extract, insert, shape_of, vector_type

WORD = 32


def expand_narrow(module: Any) -> None:
    """Replace every operation that computes with elements of fewer than 8 bits."""
    expansion = _Expansion()
    for op in operations(module.operation):
        rule = RULES.get(op.name)
        if rule is not None and op.results and any(map(expansion.is_narrow, (op.results[0], *op.operands))):
            value = None if op.name == "vector.bitcast" and unused(op) else rule(expansion, op, Builder(op))
            if isinstance(value, list):
                expansion.codes[op.results[0]] = value
            elif value is not None:
                op.results[0].replace_all_uses_with(value)
            expansion.done.append(op)
    expansion.finish()


class _Expansion:
    """The codes of each narrow value, one for each element, and the operations that are replaced."""

    def __init__(self) -> None:
        self.codes: dict[Any, list[Any]] = {}
        self.done: list[Any] = []
        self.narrow: dict[Any, bool] = {}

    def is_narrow(self, value: Any) -> bool:
        """True for a value with elements of fewer than 8 bits (Booleans aside, which LLVM keeps as masks)."""
        kind = value.type
        found = self.narrow.get(kind)
        if found is None:
            found = self.narrow[kind] = _scalar(kind) in NARROW
        return found

    def of(self, value: Any, builder: Builder) -> list[Any]:
        """The codes of a value, made from itself where it is not one of ours (a parameter, a constant)."""
        found = self.codes.get(value)
        if found is None:
            found = [self._code(part, builder) for part in _parts(value, builder)]
        return found

    def _code(self, part: Any, builder: Builder) -> Any:
        kind = f"i{BITS[str(part.type)]}"
        if str(part.type) != kind:
            part = builder.op("arith.bitcast", [part], kind)
        return builder.op("arith.extui", [part], "i32")

    def finish(self) -> None:
        """Give what else uses a replaced value that value, and drop what was replaced."""
        replaced = {op.operation for op in self.done}
        for op in self.done:
            result = op.results[0]
            others = [use for use in result.uses if use.owner.operation not in replaced]
            if others:
                builder = Builder(op)
                kind = f"i{BITS[_scalar(result.type)]}"
                parts = [builder.op("arith.trunci", [code], kind) for code in self.codes[result]]
                made = _whole(builder, parts, result.type)
                for use in others:
                    use.owner.operands[use.operand_number] = made
        erase(self.done)


def _scalar(kind: Any) -> str:
    text = str(kind)
    return text[text.rindex("x") + 1 : -1] if text.startswith("vector<") else text


def _parts(value: Any, builder: Builder) -> list[Any]:
    """The elements of a vector; a scalar alone."""
    if not str(value.type).startswith("vector<"):
        return [value]
    return [element(builder, value, i) for i in range(shape_of(value)[0])]


def _whole(builder: Builder, parts: list[Any], kind: Any) -> Any:
    """A value of type `kind` from its elements, which may be given as integers of their bits."""
    made = parts[0]
    if str(kind).startswith("vector<"):
        made = builder.op("vector.from_elements", parts, vector_type(str(made.type), len(parts)))
    return made if made.type == kind else builder.op("arith.bitcast", [made], kind)


def _shifted(builder: Builder, name: str, value: Any, by: int) -> Any:
    return builder.op(name, [value, builder.constant(by)], "i32") if by else value


def _masked(builder: Builder, code: Any, bits: int) -> Any:
    return builder.op("arith.andi", [code, builder.constant((1 << bits) - 1)], "i32")


def _bitcast(expansion: _Expansion, op: Any, builder: Builder) -> Any:
    """`vector.bitcast`, by way of the words that both sides are bits of."""
    source, result = op.operands[0], op.results[0]
    bits, wanted = (BITS[_scalar(value.type)] for value in (source, result))
    codes = expansion.of(source, builder) if expansion.is_narrow(source) else None
    if codes is not None and bits == wanted:
        return codes
    words = _words_of(builder, source) if codes is None else _packed(builder, codes, bits)
    count = shape_of(result)[0]
    if expansion.is_narrow(result):
        return _unpacked(builder, words, wanted, count)
    words += [builder.constant(0)] * (-len(words) % max(wanted // WORD, 1))
    whole = builder.op("vector.from_elements", words, vector_type("i32", len(words)))
    kind = vector_type(_scalar(result.type), len(words) * WORD // wanted)
    return extract(builder, builder.op("vector.bitcast", [whole], kind), 0, count)


def _words_of(builder: Builder, value: Any) -> list[Any]:
    """The bits of a vector in words, lowest first; beyond its end they are undefined."""
    count, kind = shape_of(value)
    total = -(-count * BITS[kind] // WORD) * WORD
    padded = insert(builder, value, None, 0, total // BITS[kind])
    return _parts(builder.op("vector.bitcast", [padded], vector_type("i32", total // WORD)), builder)


def _packed(builder: Builder, codes: list[Any], bits: int) -> list[Any]:
    """Codes side by side in words."""
    words: list[Any] = [None] * -(-len(codes) * bits // WORD)

    def add(place: int, part: Any) -> None:
        words[place] = part if words[place] is None else builder.op("arith.ori", [words[place], part], "i32")

    for i, code in enumerate(codes):
        place, shift = divmod(i * bits, WORD)
        code = _masked(builder, code, bits)
        add(place, _shifted(builder, "arith.shli", code, shift))
        if shift + bits > WORD:
            add(place + 1, _shifted(builder, "arith.shrui", code, WORD - shift))
    return words


def _unpacked(builder: Builder, words: list[Any], bits: int, count: int) -> list[Any]:
    codes = []
    for i in range(count):
        place, shift = divmod(i * bits, WORD)
        code = _shifted(builder, "arith.shrui", words[place], shift)
        if shift + bits > WORD:
            rest = _shifted(builder, "arith.shli", words[place + 1], WORD - shift)
            code = builder.op("arith.ori", [code, rest], "i32")
        codes.append(code)
    return codes


def _same_codes(expansion: _Expansion, op: Any, builder: Builder) -> Any:
    """`arith.bitcast` between a float and the integer of its width."""
    return expansion.of(op.operands[0], builder)


def _widened(expansion: _Expansion, op: Any, builder: Builder) -> Any:
    """An integer extended, or as a float."""
    signed = op.name in ("arith.extsi", "arith.sitofp")
    result, bits = op.results[0], BITS[_scalar(op.operands[0].type)]
    kind = _scalar(result.type)
    parts = []
    for code in expansion.of(op.operands[0], builder):
        if signed:
            code = _shifted(builder, "arith.shrsi", _shifted(builder, "arith.shli", code, WORD - bits), WORD - bits)
        else:
            code = _masked(builder, code, bits)
        if "ext" not in op.name:
            code = builder.op(op.name, [code], kind)
        elif BITS[kind] != WORD:
            code = builder.op(op.name if BITS[kind] > WORD else "arith.trunci", [code], kind)
        parts.append(code)
    return _whole(builder, parts, result.type)


def _narrowed(expansion: _Expansion, op: Any, builder: Builder) -> Any:
    """An integer cut, or a float made an integer: `arith.trunci`, `llvm.call_intrinsic`."""
    codes = []
    attributes = {name: op.attributes[name] for name in op.attributes}
    kind = _scalar(op.results[0].type)
    for part in _parts(op.operands[0], builder):
        width = BITS[str(part.type)]
        if op.name != "arith.trunci":
            part = builder.op("arith.extui", [builder.op(op.name, [part], kind, **attributes)], "i32")
        elif width != WORD:
            part = builder.op("arith.trunci" if width > WORD else "arith.extui", [part], "i32")
        codes.append(part)
    return codes


def _chosen(expansion: _Expansion, op: Any, builder: Builder) -> Any:
    """`arith.select`."""
    condition, *values = op.operands
    left, right = (expansion.of(value, builder) for value in values)
    flags = _parts(condition, builder)
    flags = flags if len(flags) == len(left) else flags * len(left)
    pairs = zip(flags, left, right, strict=True)
    return [builder.op("arith.select", [flag, a, b], "i32") for flag, a, b in pairs]


def _picked(expansion: _Expansion, op: Any, builder: Builder) -> Any:
    """One element of a vector (`vector.extract`), or a slice of it."""
    codes = expansion.of(op.operands[0], builder)
    if op.name == "vector.extract":
        return [codes[int(op.attributes["static_position"][0])]]
    start, count = (int(str(op.attributes[name][0]).split(" ")[0]) for name in ("offsets", "sizes"))
    return codes[start : start + count]


def _gathered(expansion: _Expansion, op: Any, builder: Builder) -> Any:
    """A vector of given elements (`vector.from_elements`), or of one, repeated."""
    codes = [code for part in op.operands for code in expansion.of(part, builder)]
    return codes * (shape_of(op.results[0])[0] // len(codes))


RULES: dict[str, Callable[[_Expansion, Any, Builder], Any]] = {
    "vector.bitcast": _bitcast,
    "vector.extract": _picked,
    "vector.extract_strided_slice": _picked,
    "vector.from_elements": _gathered,
    "vector.broadcast": _gathered,
    "arith.bitcast": _same_codes,
    "arith.extsi": _widened,
    "arith.extui": _widened,
    "arith.sitofp": _widened,
    "arith.uitofp": _widened,
    "arith.trunci": _narrowed,
    "arith.select": _chosen,
    "llvm.call_intrinsic": _narrowed,
}
"""An expansion gives the codes of the result, or, where the result is not narrow, its value."""
