"""v_permlane16_swap and v_permlane32_swap of gfx950: rows of 16 or 32 lanes swapped between two vector registers.

Source: CDNA4 ISA, V_PERMLANE16_SWAP_B32 and V_PERMLANE32_SWAP_B32: the odd rows of the first register against the even
rows of the second. A lane is written where it is active; one whose partner is inactive keeps its value, or is made 0
under `bound_ctrl`, or is swapped all the same under `fi`, as DPP has it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from flylab.codegen.isa import Instruction
from flylab.emulator.decoding.decode import Coded, Decoder
from flylab.emulator.decoding.operands import VECTOR, OperandError, bounded, operands_of
from flylab.emulator.handlers.ir import Builder
from flylab.emulator.handlers.lanes import moved_lanes, moved_mask, signed
from flylab.emulator.handlers.record import HANDLER, next_record, slot
from flylab.emulator.state import EXEC, WAVE_SIZE


def _swap(rows: int, decoder: Decoder, instruction: Instruction) -> Coded:
    flags = {"bound_ctrl": False, "fi": False}
    for word in instruction.modifiers:
        name, _, value = word.partition(":")
        if name not in flags:
            raise OperandError(f"the modifier '{word}' is not one that the software device knows here")
        # As everywhere in these chips' assembly, bound_ctrl:0 and bound_ctrl:1 are the same encoding.
        flags[name] = bool(bounded(value, 0, 1, f"the {name}")) or name == "bound_ctrl"
    coded = Coded(f"permlane swap {rows} {flags}", partial(_write_swap, rows, flags["bound_ctrl"], flags["fi"]))
    for operand in operands_of(instruction, 2):
        coded.slot(decoder.registers.offset(operand, 1, VECTOR))
    return coded


def _write_swap(rows: int, zero_fill: bool, fetch_inactive: bool, name: str) -> str:
    b = Builder()
    exec_ = b.load(b.at("%s", 4 * EXEC), "i64")
    places = [b.at("%v", slot(b, n)) for n in range(2)]
    first, second = (b.load(place, "i32", WAVE_SIZE, 64) for place in places)
    partners = tuple(lane ^ rows for lane in range(WAVE_SIZE))
    odd = signed(sum(1 << lane for lane in range(WAVE_SIZE) if lane & rows))
    reached = exec_ if fetch_inactive else moved_mask(exec_, partners)
    for place, old, other, lanes in ((places[0], first, second, odd), (places[1], second, first, ~odd)):
        new = moved_lanes(other, partners)
        if zero_fill and not fetch_inactive:
            new = reached.recast("i1", WAVE_SIZE).select(new, 0)
        written = exec_ & lanes if zero_fill or fetch_inactive else exec_ & reached & lanes
        b.store(written.recast("i1", WAVE_SIZE).select(new, old), place, 64)
    next_record(b)
    return b.function(name, HANDLER)


DECODERS: dict[str, Callable[[Decoder, Instruction], Coded]] = {
    f"v_permlane{rows}_swap_b32": partial(_swap, rows) for rows in (16, 32)}
