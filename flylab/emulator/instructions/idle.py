"""Instructions that steer time, caches or debuggers, which change nothing here, and what their text may say.

No result depends on them, since every instruction is complete before the next begins. What their text says is read all
the same: an `s_waitcnt` of a counter that there is not is no `s_waitcnt`.
"""

from __future__ import annotations

import re

from flylab.codegen.assembly.encoding import integer
from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import SCALAR, OperandError, bounded, parse_operand
from flylab.emulator.instructions.control import Decode, no_effect

# The counters with the largest numbers that can be waited for. Source: CDNA3 ISA, "S_WAITCNT".
COUNTERS = {"vmcnt": 63, "expcnt": 7, "lgkmcnt": 15}
_COUNTER = re.compile(r"(\w+)\(\s*([^()\s]*)\s*\)")
_PLAIN = ("s_icache_inv", "s_dcache_wb", "s_dcache_inv", "s_dcache_inv_vol", "s_dcache_wb_vol", "s_wakeup",
          "s_ttracedata", "v_nop", "v_clrexcp", "ds_nop")
_IMMEDIATE = ("s_nop", "s_sleep", "s_setprio", "s_incperflevel", "s_decperflevel")
_CACHE_FLAGS = ("sc0", "sc1", "nt")
# Those that name memory: a number first or not, and the registers of the address or the descriptor.
_ADDRESSED = {"s_dcache_discard": (0, 2), "s_dcache_discard_x2": (0, 2), "s_atc_probe": (1, 2),
              "s_atc_probe_buffer": (1, 4)}


def _plain(decoder: Decoder, instruction: Instruction) -> Coded:
    if words := (*instruction.operands, *instruction.modifiers):
        raise OperandError(f"it takes no operands, and '{words[0][:60]}' is one")
    return no_effect(decoder, instruction)


def _immediate(decoder: Decoder, instruction: Instruction) -> Coded:
    words = (*instruction.operands, *instruction.modifiers)
    if len(words) != 1:
        raise OperandError(f"it takes one number, and has {len(words)} operands")
    bounded(words[0], -(1 << 15), (1 << 16) - 1, "its operand")
    return no_effect(decoder, instruction)


def _cache(decoder: Decoder, instruction: Instruction) -> Coded:
    for word in (*instruction.operands, *instruction.modifiers):
        if word not in _CACHE_FLAGS:
            raise OperandError(f"'{word[:60]}' is none of {', '.join(_CACHE_FLAGS)}")
    return no_effect(decoder, instruction)


def _wait(decoder: Decoder, instruction: Instruction) -> Coded:
    """`s_waitcnt` with a number of 16 bits, or with counters that spaces, commas or & part."""
    text = " ".join((*instruction.operands, *instruction.modifiers))
    number = integer(text)
    if number is not None:
        bounded(text, -(1 << 15), (1 << 16) - 1, "the counters' code")
        return no_effect(decoder, instruction)
    rest = re.sub(r"\s*[&,]\s*|\s+", " ", _COUNTER.sub("", text)).strip()
    found = _COUNTER.findall(text)
    if rest or not found:
        raise OperandError(f"'{text[:60]}' names no counters, as vmcnt(0) lgkmcnt(0) does")
    for name, count in found:
        most = COUNTERS.get(name.removesuffix("_sat"))
        if most is None:
            raise OperandError(f"there is no counter {name}, but {', '.join(COUNTERS)}")
        bounded(count, 0, (1 << 31) - 1 if name.endswith("_sat") else most, f"the number of {name}")
    return no_effect(decoder, instruction)


def _addressed(decoder: Decoder, instruction: Instruction) -> Coded:
    numbers, registers = _ADDRESSED[instruction.mnemonic]
    if len(instruction.operands) - numbers not in (1, 2):
        raise OperandError(f"it has {len(instruction.operands)} operands, and takes {numbers + 1} or {numbers + 2}")
    if numbers:
        bounded(instruction.operands[0], 0, 255, "its first operand")
    base, *offset = map(parse_operand, instruction.operands[numbers:])
    decoder.registers.offset(base, registers, SCALAR)
    for operand in offset:
        decoder.registers.scalar(operand)
    if any(not word.startswith("offset:") for word in instruction.modifiers):
        raise OperandError(f"the modifier '{instruction.modifiers[0][:60]}' is not one that it takes")
    return no_effect(decoder, instruction)


DECODERS: dict[str, Decode] = {
    **dict.fromkeys(_PLAIN, _plain), **dict.fromkeys(_IMMEDIATE, _immediate), **dict.fromkeys(_ADDRESSED, _addressed),
    "s_waitcnt": _wait, "buffer_wbl2": _cache, "buffer_inv": _cache}
