"""How an instruction uses LDS, for probes: where each lane's bytes lie, how many, and what becomes of them."""

from __future__ import annotations

from dataclasses import dataclass

from flylab.codegen.assembly.effects import effects
from flylab.codegen.assembly.encoding import base_name
from flylab.emulator.checks.definedness.places import row_of
from flylab.emulator.instructions.lds import two_offsets
from flylab.emulator.instructions.memory import BUFFER_FLAGS, modifiers
from flylab.emulator.linking import END_OF_FUNCTION, Code
from flylab.emulator.probes.probe import Site

BY_ROW, BY_LANE, ONE, GENERIC = "row", "lane", "one", "generic"
# M0 is the address of ds_append and of loads to LDS; of the forms by thread its lower half counts.
WHOLE_M0, LOW_M0 = -1, 0xFFFF
COMPARE_AND_SWAP = ("_cmpst_", "_cmpswap")


@dataclass(frozen=True)
class LdsUse:
    """One use of LDS.

    `form` says where lanes are: at the addresses of a row ("row"), side by side from M0 on ("lane"), all at M0
    ("one"), or at those generic addresses that lead to LDS ("generic"). Each of `places` is an offset and the first row
    of what is written there, or 0.
    """

    form: str
    bytes: int
    places: tuple[tuple[int, int], ...]
    row: int = 0
    reads: bool = False
    writes: bool = False
    atomic: bool = False
    swap: bool = False
    direct: bool = False
    high: bool = False
    m0_bits: int = WHOLE_M0


def may_use_lds(code: Code) -> bool:
    """Whether anything that a kernel can reach may touch LDS."""
    kernel = code.kernel
    every = (effects(i, kernel.target) for i in kernel.instructions if i.mnemonic != END_OF_FUNCTION)
    return any(e.space in ("lds", "flat") or e.to_lds for e in every)


def lds_use(site: Site) -> LdsUse | None:
    """How an instruction uses LDS, or None where it does not."""
    effects, instruction, registers = site.effects, site.instruction, site.registers
    name = base_name(instruction.mnemonic)
    flags = {"reads": effects.load or effects.atomic, "writes": effects.store or effects.atomic,
             "atomic": effects.atomic, "swap": any(word in name for word in COMPARE_AND_SWAP)}
    if effects.to_lds:
        space = "private" if effects.space == "scratch" else effects.space
        offset, _ = modifiers(instruction, space, BUFFER_FLAGS | {"lds"})
        return LdsUse(BY_LANE, -(-effects.bytes // 4) * 4, ((offset, 0),), writes=True, direct=True)
    data = [row_of(s, registers) for s in effects.data] if effects.store or effects.atomic else []
    if effects.space == "flat":
        offset, _ = modifiers(instruction, "flat")
        return LdsUse(GENERIC, effects.bytes, ((offset, data[0] if data else 0),),
                      row_of(effects.address[0], registers), high=name.endswith("_d16_hi"), **flags)
    if effects.space != "lds":
        return None
    if effects.places == 2:
        offsets = two_offsets(instruction, effects.bytes * (64 if "st64" in name else 1))
    else:
        offsets = [modifiers(instruction, "lds")[0]]
    data = (data or [0, 0])[:len(offsets)]
    places = tuple(zip(offsets, data, strict=True))
    if not effects.address:
        lanes = "addtid" in name
        return LdsUse(BY_LANE if lanes else ONE, effects.bytes, places, m0_bits=LOW_M0 if lanes else WHOLE_M0, **flags)
    return LdsUse(BY_ROW, effects.bytes, places, row_of(effects.address[0], registers),
                  high=effects.store and name.endswith("_d16_hi"), **flags)
