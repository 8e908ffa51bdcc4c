"""Registers moved between the lanes of a wave through the LDS hardware: `ds_bpermute_b32` and `ds_permute_b32`.

No LDS memory is touched. An address is a lane number times 4, of which the low two bits and those above a wave's lanes
do not count; EXEC holds for both ends, and a lane that nothing reaches gets 0.
Source: CDNA3 ISA, "LDS_BPERMUTE_B32" and "LDS_PERMUTE_B32" of the instruction list.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.compute import HANDLER, next_record, slot
from flylab.emulator.decode import Coded, Decoder
from flylab.emulator.ir import Builder
from flylab.emulator.operands import VECTOR, operands_of
from flylab.emulator.ops_memory import modifiers
from flylab.emulator.state import EXEC, WAVE_SIZE, Worker

RESULT, ADDRESS, DATA, OFFSET = range(4)


def _permute(pull: bool, decoder: Decoder, instruction: Instruction) -> Coded:
    offset, _ = modifiers(instruction, "lds")
    coded = Coded(f"permute {pull}", partial(_write_permute, pull))
    for operand in operands_of(instruction, 3):
        coded.slot(decoder.registers.offset(operand, 1, VECTOR))
    coded.slot(offset)
    return coded


def _write_permute(pull: bool, name: str) -> str:
    """Each active lane pulls the register of the lane that its address names, or pushes its own to that lane."""
    b = Builder()
    exec_ = b.load(b.at("%s", 4 * EXEC), "i64")
    rows = [b.at("%v", slot(b, n)) for n in (RESULT, ADDRESS, DATA)]
    # What arrives is gathered in the worker's scratch first: the result may be one of the sources.
    arrived = b.at("%w", Worker.addresses.offset)
    b.store(b.const(0, "i32", WAVE_SIZE), arrived, 64)
    with b.set_bits(exec_) as (lane, _):
        at = b.load(b.at(rows[1], lane.shl(2)), "i32") + slot(b, OFFSET)
        other = (at.shr(2) & (WAVE_SIZE - 1)).to("i64")
        source, target = (other, lane) if pull else (lane, other)
        with b.when((exec_.shr(source) & 1).cmp("ne", 0)):
            b.store(b.load(b.at(rows[2], source.shl(2)), "i32"), b.at(arrived, target.shl(2)))
    active = b.let(f"bitcast {exec_.typed} to <{WAVE_SIZE} x i1>", "i1", WAVE_SIZE)
    before = b.load(rows[0], "i32", WAVE_SIZE, 64)
    b.store(active.select(b.load(arrived, "i32", WAVE_SIZE, 64), before), rows[0], 64)
    next_record(b)
    return b.function(name, HANDLER)


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {
    "ds_bpermute_b32": partial(_permute, True), "ds_permute_b32": partial(_permute, False)}
