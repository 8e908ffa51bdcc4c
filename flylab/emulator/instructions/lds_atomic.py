"""Atomics on LDS: integers, floats, packed halves and exchanges, with and without what was there before; counters.

Source: CDNA3 and CDNA4 ISA, the operations of their instruction lists. As they have it, a minimum or maximum keeps what
is there unless the comparison with the data holds: a NaN there stays, and a NaN that comes is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import VECTOR, operands_of
from flylab.emulator.handlers.ir import Value
from flylab.emulator.instructions.lds import two_offsets
from flylab.emulator.instructions.memory import modifiers
from flylab.emulator.memory.lds_atomic import Atomic, Floats, OneAtomic, TwoExchange
from flylab.emulator.memory.lds_m0 import Counter, LaneAddressed

Decode = Callable[[Decoder, Instruction], Coded]


def _chosen(predicate: str) -> Callable[[Value, Value], Value]:
    return lambda old, data: data.cmp(predicate, old).select(data, old)


def _chosen_float(predicate: str) -> Callable[[Floats, Value, Value], Value]:
    return lambda floats, old, data: floats.value(data).cmp(predicate, floats.value(old)).select(data, old)


def _packed_sum(floats: Floats, old: Value, data: Value) -> Value:
    """Two sums of 16 bits each."""
    low, high = (floats.bits(floats.value(old.shr(at).to("i16")) + floats.value(data.shr(at).to("i16"))).to("i32")
                 for at in (0, 16))
    return low | high.shl(16)


def _exchanged_by_sign(old: Value, data: Value) -> Value:
    """ds_condxchg32: each half whose data has its top bit set takes the data without it."""
    taken = (data.shr(31) & 0x1_0000_0001) * 0xFFFF_FFFF
    return data & 0x7FFF_FFFF_7FFF_FFFF & taken | old & ~taken


# name, letter of the type, what is put there (of what is there, and data), operands of data
INTEGERS: tuple[tuple[str, str, Callable[..., Value], int], ...] = (
    ("add", "u", lambda old, x: old + x, 1), ("sub", "u", lambda old, x: old - x, 1),
    ("rsub", "u", lambda old, x: x - old, 1),
    ("inc", "u", lambda old, x: old.cmp("uge", x).select(0, old + 1), 1),
    ("dec", "u", lambda old, x: (old.cmp("eq", 0) | old.cmp("ugt", x)).select(x, old - 1), 1),
    ("min", "i", _chosen("slt"), 1), ("max", "i", _chosen("sge"), 1),
    ("min", "u", _chosen("ult"), 1), ("max", "u", _chosen("uge"), 1),
    ("and", "b", lambda old, x: old & x, 1), ("or", "b", lambda old, x: old | x, 1),
    ("xor", "b", lambda old, x: old ^ x, 1), ("wrxchg", "b", lambda old, x: x, 1),
    ("mskor", "b", lambda old, x, y: old & ~x | y, 2),
    ("cmpst", "b", lambda old, x, y: old.cmp("eq", x).select(y, old), 2),
)
FLOATS: tuple[tuple[str, Callable[..., Value], int], ...] = (
    ("add", lambda floats, old, x: floats.bits(floats.value(old) + floats.value(x)), 1),
    ("min", _chosen_float("olt"), 1), ("max", _chosen_float("ogt"), 1),
    ("cmpst", lambda floats, old, x, y: floats.value(old).cmp("oeq", floats.value(x)).select(y, old), 2),
)
WRAP = Atomic("wrap_rtn_b32", 32, lambda old, x, y: old.cmp("uge", x).select(old - x, old + y), 2)
BY_SIGN = Atomic("condxchg32_rtn_b64", 64, _exchanged_by_sign, aligns=True)


def _one(atomic: Atomic, returns: bool, decoder: Decoder, instruction: Instruction) -> Coded:
    """Result where there is one, address, data."""
    operands = operands_of(instruction, 1 + atomic.operands + returns)
    result = operands.pop(0) if returns else None
    offset, _ = modifiers(instruction, "lds")
    found, count = decoder.registers, atomic.bits // 32
    coded = Coded(f"lds {atomic} {returns} {decoder.mode if atomic.floats else ''}",
                  lambda name: OneAtomic(atomic, returns, decoder.mode).text(name))
    coded.slot(found.address(operands[0], 1))
    coded.slot(offset)
    for operand in operands[1:]:
        coded.slot(found.offset(operand, count, VECTOR))
    if atomic.operands == 1:
        coded.slot(0)
    coded.slot(found.offset(result, count, VECTOR) if result else 0)
    return coded


def _two(bits: int, stride: int, decoder: Decoder, instruction: Instruction) -> Coded:
    """ds_wrxchg2: result of both places, address, data of each."""
    result, address, *data = operands_of(instruction, 4)
    first, second = two_offsets(instruction, bits // 8 * stride)
    found, count = decoder.registers, bits // 32
    coded = Coded(f"lds exchange {bits}", lambda name: TwoExchange(bits).text(name))
    coded.slot(found.address(address, 1))
    coded.slot(first)
    for operand in data:
        coded.slot(found.offset(operand, count, VECTOR))
    coded.slot(found.offset(result, 2 * count, VECTOR))
    coded.slot(second)
    return coded


def _at_m0(key: str, write: Callable[[str], str], decoder: Decoder, instruction: Instruction) -> Coded:
    """One register, and M0 for the address."""
    (register,) = operands_of(instruction, 1)
    offset, _ = modifiers(instruction, "lds")
    coded = Coded(key, write)
    coded.slot(offset)
    coded.slot(decoder.registers.offset(register, 1, VECTOR))
    return coded


def _atomics() -> Iterator[tuple[str, Atomic]]:
    """What each mnemonic without `_rtn` does, by its name with a place for that word."""
    for bits in (32, 64):
        for name, letter, compute, operands in INTEGERS:
            yield f"{name}{{}}_{letter}{bits}", Atomic(f"{name} {letter}", bits, compute, operands)
        for name, compute, operands in FLOATS:
            yield f"{name}{{}}_f{bits}", Atomic(f"{name} f", bits, compute, operands, f"f{bits}")
    for type_ in ("f16", "bf16"):
        yield f"pk_add{{}}_{type_}", Atomic("pk_add", 32, _packed_sum, 1, type_)


def _table() -> dict[str, Decode]:
    found: dict[str, Decode] = {f"ds_{atomic.name}": partial(_one, atomic, True) for atomic in (WRAP, BY_SIGN)}
    for name, atomic in _atomics():
        found["ds_" + name.format("_rtn")] = partial(_one, atomic, True)
        if not name.startswith("wrxchg"):
            found["ds_" + name.format("")] = partial(_one, atomic, False)
    for bits in (32, 64):
        found[f"ds_wrxchg2_rtn_b{bits}"] = partial(_two, bits, 1)
        found[f"ds_wrxchg2st64_rtn_b{bits}"] = partial(_two, bits, 64)
    for name, down in (("append", False), ("consume", True)):
        found[f"ds_{name}"] = partial(_at_m0, f"lds {name}", partial(_write_counter, down))
    for name, store in (("read", False), ("write", True)):
        found[f"ds_{name}_addtid_b32"] = partial(_at_m0, f"lds {name} addtid", partial(_write_lane_addressed, store))
    return found


def _write_counter(down: bool, name: str) -> str:
    return Counter(down).text(name)


def _write_lane_addressed(store: bool, name: str) -> str:
    return LaneAddressed(store).text(name)


DECODERS: dict[str, Decode] = _table()
