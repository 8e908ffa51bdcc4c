"""What an instruction reads and writes, and what it does to memory and to the counters that `s_waitcnt` waits for.

It is read off the text: registers stand there with their ranges, and `effects_data` says by the mnemonic which operand
is what, and what the text does not name. EXEC, which nearly every vector instruction obeys, is no span but
`ignores_exec`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache, lru_cache
from itertools import product
from types import MappingProxyType
from typing import Any, NamedTuple

from flylab.codegen.assembly.effects_data import RETURNING, all_rows
from flylab.codegen.assembly.encoding import base_name, encoding_of, integer
from flylab.codegen.assembly.listing import Instruction
from flylab.codegen.assembly.registers import SGPR_NAMES, registers_of
from flylab.errors import UnknownInstruction
from flylab.mfma import FORMATS, INSTRUCTIONS, OLDER_NAMES, Mfma, mfma
from flylab.targets import Target

WAITED = ("vmcnt", "lgkmcnt")
"""The counters of operations on their way; `expcnt` counts exports, which these chips do not have."""

_NOTHING: Mapping[str, int] = MappingProxyType({})
_COUNTER = re.compile(r"(vmcnt|lgkmcnt)(?:_sat)?\(\s*([^()\s]*)\s*\)")
# Bits of the number that s_waitcnt may hold: those of vmcnt are in two pieces. Source: CDNA3 ISA, S_WAITCNT.
_FIELDS = {"vmcnt": ((0, 4), (14, 2)), "lgkmcnt": ((8, 4),)}
_LISTS = re.compile(r"(op_sel|op_sel_hi):\[([01](?:,[01])*)\]")
_ALTERNATIVES = re.compile(r"\{([^}]*)\}")
# Registers of 64 bits whose halves op_sel picks for each half of the result.
_PICKS_REGISTERS = ("v_pk_add_f32", "v_pk_mul_f32", "v_pk_fma_f32", "v_pk_mov_b32")


@dataclass(frozen=True, slots=True)
class Span:
    """Registers side by side: of file "v", "a" or "s" (by hardware number), and the operand that names them, or -1."""

    file: str
    first: int
    count: int
    operand: int = -1


@dataclass(frozen=True)
class Effects:
    """What one instruction reads and writes.

    A result that is also a source (of `v_fmac`) is in `reads` too; one that is only kept in part is not, `partial` says
    that: halves, bytes, or lanes stay as they were for another reason than EXEC.
    """

    kind: str
    """salu, valu, trans, mfma, lds, vmem, flat, scratch, smem, branch, barrier, wait, end or other."""
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    address: tuple[Span, ...] = ()
    """Those of `reads` that say where in memory."""
    data: tuple[Span, ...] = ()
    """What goes to memory (of atomics too), or of a load what comes from it."""
    space: str = ""
    """The memory: lds, global, buffer, flat, scratch or scalar."""
    load: bool = False
    store: bool = False
    atomic: bool = False
    to_lds: bool = False
    """A load whose data goes to LDS and to no register."""
    bytes: int = 0
    """Bytes that a lane moves at each of `places`; of formatted accesses, those in registers."""
    places: int = 1
    raises: tuple[str, ...] = ()
    """Which counters it raises, until it is done."""
    waits: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    """Of s_waitcnt: how many operations of each counter may still be on their way after it."""
    ignores_exec: bool = False
    cross_lane: bool = False
    """True where a lane reads registers of another one."""
    partial: bool = False
    relative: bool = False
    """True where M0 says which register is the source or the result, which is then in no span."""
    passes: int = 0
    """Of matrix instructions: passes of four clocks each."""

    def __reduce__(self) -> tuple[Any, ...]:
        values = (getattr(self, one.name) for one in fields(self))
        return Effects, tuple(dict(value) if isinstance(value, Mapping) else value for value in values)


class _Shape(NamedTuple):
    """A row for one mnemonic: the letters of its operands, its implied registers, and other fields of `Effects`."""

    operands: str
    reads: tuple[Span, ...]
    writes: tuple[Span, ...]
    fields: dict[str, Any]


def effects(instruction: Instruction, target: Target) -> Effects:
    """What an instruction does on a chip.

    >>> from flylab.targets import target
    >>> load = Instruction(0, 0, "", "global_load_dwordx2", ("v[2:3]", "v0", "s[4:5]"), (), 1, None)
    >>> found = effects(load, target("gfx942"))
    >>> found.writes, found.address, found.bytes, found.raises
    ((Span(file='v', first=2, count=2, operand=0),), (Span(file='v', first=0, count=1, operand=1), \
Span(file='s', first=4, count=2, operand=2)), 8, ('vmcnt',))

    Whether the chip has the instruction, and its operands are good, is for others to say. Raises `UnknownInstruction`
    for a mnemonic of no row.
    """
    return _effects(instruction.mnemonic, instruction.operands, instruction.modifiers, target.arch)


@lru_cache(maxsize=1 << 14)
def _effects(mnemonic: str, operands: tuple[str, ...], modifiers: tuple[str, ...], arch: str) -> Effects:
    name = base_name(mnemonic)
    if name in INSTRUCTIONS or name in OLDER_NAMES:
        return _matrix(mfma(name), operands, modifiers, arch)
    shape = _shapes().get(name)
    if shape is None:
        raise UnknownInstruction(f"what '{mnemonic}' reads and writes is not known",
                                 hint="flylab/codegen/assembly/effects_data.py has a row for each instruction")
    letters, fields = shape.operands, shape.fields
    if fields["kind"] == "wait":
        return Effects("wait", waits=MappingProxyType(_waits(" ".join((*operands, *modifiers)))))
    if "atomic" in fields and fields["space"] != "lds" and _returns(fields["space"], modifiers):
        letters = RETURNING[fields["space"]]
    if modifiers:
        fields = fields | _of_modifiers(mnemonic, operands, modifiers, fields)
        if fields.get("to_lds") and letters[0] == "w":
            letters = letters[1:]
    elif mnemonic.endswith("_dpp"):
        fields = fields | {"cross_lane": True, "partial": True}
    spans = list(_spans(name, letters, operands))
    if name in _PICKS_REGISTERS:
        spans = [(letter, _picked(span, name, modifiers)) for letter, span in spans]
    return _collected(spans, shape, fields)


def _collected(spans: list[tuple[str, Span]], shape: _Shape, fields: dict[str, Any]) -> Effects:
    extra = shape.reads
    if fields.get("to_lds") and not extra:
        extra = _implied(["m0"])
    return Effects(
        reads=(*(span for letter, span in spans if letter in "stadu"), *extra),
        writes=(*(_result(span, fields) if letter == "u" else span for letter, span in spans if letter in "rtwu"),
                *shape.writes),
        address=tuple(span for letter, span in spans if letter == "a"),
        data=tuple(span for letter, span in spans if letter in ("ud" if fields.get("atomic") else "wd")), **fields)


def _spans(name: str, letters: str, operands: tuple[str, ...]) -> Iterator[tuple[str, Span]]:
    """Each operand that names registers, with its letter."""
    if len(operands) > len(letters) and letters != "-":
        raise UnknownInstruction(f"'{name}' has {len(operands)} operands, and takes {len(letters)} at most")
    for number, (letter, text) in enumerate(zip(letters, operands, strict=False)):
        if letter != "-" and (found := registers_of(text)):
            yield letter, Span(*found, number)


def _result(span: Span, fields: dict[str, Any]) -> Span:
    """What an atomic that returns puts in its data's registers; of a compare and swap in the first half of them."""
    return replace(span, count=min(span.count, fields["bytes"] // 4))


def _returns(space: str, modifiers: tuple[str, ...]) -> bool:
    return ("glc" if space == "scalar" else "sc0") in modifiers


def _of_modifiers(mnemonic: str, operands: tuple[str, ...], modifiers: tuple[str, ...],
                  fields: dict[str, Any]) -> dict[str, Any]:
    """What the words after the operands change: loads to LDS, lanes moved, halves picked."""
    if fields["kind"] not in ("valu", "trans"):
        return {"to_lds": True} if "lds" in modifiers and fields.get("load") else {}
    encoding = encoding_of(mnemonic, operands, modifiers)
    if encoding == "_dpp":
        whole = any(word.startswith("bound_ctrl") for word in modifiers) and not any(
            word.startswith(("row_mask", "bank_mask")) and integer(word.partition(":")[2]) != 15 for word in modifiers)
        return {"cross_lane": True, "partial": not whole}
    if encoding == "_sdwa":
        selects = dict(word.split(":") for word in modifiers if ":" in word)
        whole = selects.get("dst_sel", "DWORD") == "DWORD" or selects.get("dst_unused", "UNUSED_PRESERVE") != (
            "UNUSED_PRESERVE")
        return {} if whole else {"partial": True}
    # The bit behind those of the sources picks the half of the result.
    picks = mnemonic.startswith(("v_pk_", "v_dot", "v_fma_mix"))
    return {"partial": True} if not picks and "1" in _list(modifiers, "op_sel")[len(operands) - 1:] else {}


def _list(modifiers: tuple[str, ...], name: str) -> list[str]:
    """The bits of a list such as `op_sel:[0,1]`."""
    for word in modifiers:
        if (found := _LISTS.fullmatch(word)) and found[1] == name:
            return found[2].split(",")
    return []


def _picked(span: Span, name: str, modifiers: tuple[str, ...]) -> Span:
    """Those of a pair of sources that a packed 32-bit instruction reads: for the low half by op_sel, then op_sel_hi.

    v_pk_mov takes its low half from the first source and its high half from the second, both by op_sel.
    """
    number = span.operand - 1
    if number < 0 or span.count != 2:
        return span
    low, high = _list(modifiers, "op_sel"), _list(modifiers, "op_sel_hi")
    taken = {int(low[number]) if number < len(low) else 0}
    if name != "v_pk_mov_b32":
        taken.add(int(high[number]) if number < len(high) else 1)
    return span if len(taken) == 2 else replace(span, first=span.first + taken.pop(), count=1)


def _waits(text: str) -> dict[str, int]:
    """What an s_waitcnt waits for: a number, or counters such as `vmcnt(0)`."""
    code = integer(text)
    if code is None:
        found = {name: integer(count) for name, count in _COUNTER.findall(text)}
        return {name: min(count, _most(name)) for name, count in found.items() if count is not None}
    counts = {name: sum((code >> at & (1 << bits) - 1) << 4 * n for n, (at, bits) in enumerate(pieces))
              for name, pieces in _FIELDS.items()}
    return {name: count for name, count in counts.items() if count < _most(name)}


def _most(name: str) -> int:
    """The largest number that a counter can be waited for, which waits for nothing that could be counted."""
    return int((1 << sum(bits for _, bits in _FIELDS[name])) - 1)


def _matrix(row: Mfma, operands: tuple[str, ...], modifiers: tuple[str, ...], arch: str) -> Effects:
    """A matrix instruction: D, A, B, then C, of a sparse one the indices; then the scales of A and B."""
    if row.mixed:
        numbers = {name: int(value) for name, _, value in (word.partition(":") for word in modifiers)
                   if name in ("cbsz", "blgp") and value.isdigit() and int(value) < len(FORMATS)}
        row = row.with_formats(numbers.get("cbsz", 0), numbers.get("blgp", 0))
    most = {1: row.a.registers, 2: row.b.registers}
    spans = [(letter, replace(span, count=min(span.count, most.get(span.operand, span.count))))
             for letter, span in _spans(row.name, "tssssss" if row.sparse else "rsssss", operands)]
    return _collected(spans, _Shape("", (), (), {}), {
        "kind": "mfma", "ignores_exec": True, "cross_lane": True, "passes": _passes(row, arch)})


def _passes(row: Mfma, arch: str) -> int:
    """Passes of four clocks. Source: LLVM 22's scheduling model of both chips, as llvm-mca prints it; CDNA4 ISA."""
    large = row.m == 32
    if row.result == "f64":
        return (4 if row.m == 4 else 8) * (2 if arch == "gfx950" and row.m == 16 else 1)
    if row.m == 4:
        return 2
    slow = row.blocks > 1 or row.a_type == "f32" or row.mixed and "8" in row.a_type[-1] + row.b_type[-1]
    return (4 << large) << slow


@cache
def _shapes() -> dict[str, _Shape]:
    """The row of each mnemonic."""
    found: dict[str, _Shape] = {}
    for kind, operands, words, names in all_rows():
        shape = _shape(kind, operands, words.split())
        for name in (name for text in names.split() for name in _expanded(text)):
            if name in found:
                raise ValueError(f"two rows for {name}")
            found[name] = shape
    found["<end of function>"] = _Shape("", (), (), {"kind": "end"})
    return found


def _shape(kind: str, operands: str, words: list[str]) -> _Shape:
    fields: dict[str, Any] = {"kind": kind}
    if kind in ("lds", "smem"):
        fields["raises"] = ("lgkmcnt",)
    if kind in ("salu", "smem", "branch", "barrier", "wait", "end", "other"):
        fields["ignores_exec"] = True
    implied: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if (name or value) in SGPR_NAMES:
            implied.append(word)
        elif name == "raises":
            fields[name] = tuple(value.split(","))
        else:
            fields[name] = (int(value) if value.isdigit() else value) if equals else True
    return _Shape(operands, _implied(word for word in implied if word[0] != "="),
                  _implied(word[1:] for word in implied if word[0] == "="), fields)


def _implied(names: Iterable[str]) -> tuple[Span, ...]:
    return tuple(Span(*found) for name in names if (found := registers_of(name)))


def _expanded(text: str) -> Iterator[str]:
    """The names that a text with alternatives in braces stands for."""
    parts = _ALTERNATIVES.split(text)
    parts_of = [part.split(",") if n % 2 else [part] for n, part in enumerate(parts)]
    return ("".join(chosen) for chosen in product(*parts_of))
