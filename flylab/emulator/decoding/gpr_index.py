"""Where a kernel's vector registers are numbered relative to M0: the instructions between s_set_gpr_idx_on and _off.

Whether indexing is on is a bit of the wave's state, which a jump could carry anywhere. LLVM turns it on for an
instruction or two, so it is read off the listing, along all jumps; where that has no one answer, the kernel is refused.
"""

from __future__ import annotations

from collections.abc import Iterator

from flylab.codegen.isa import Instruction, IsaKernel
from flylab.emulator.decoding.operands import OperandError

ON, OFF = "s_set_gpr_idx_on", "s_set_gpr_idx_off"
_ENDS = ("s_endpgm", "s_branch", "s_setpc_b64")
_COMPUTED = ("s_setpc_b64", "s_swappc_b64", "s_call_b64")


def index_states(kernel: IsaKernel) -> dict[int, set[bool]]:
    """By the number of an instruction: whether VGPR indexing is on there, both where the ways to it differ.

    Empty for a kernel that never turns it on.
    """
    states: dict[int, set[bool]] = {}
    if not any(i.mnemonic == ON for i in kernel.instructions):
        return states
    for first in range(len(kernel.instructions)):
        # What no jump of the listing reaches is reached by a computed one, with indexing off.
        pending = [] if first in states else [(first, False)]
        while pending:
            number, on = pending.pop()
            if number < len(kernel.instructions) and on not in states.setdefault(number, set()):
                states[number].add(on)
                pending += _after(kernel, kernel.instructions[number], on)
    return states


def is_indexed(all_states: dict[int, set[bool]], instruction: Instruction) -> bool:
    """True where an instruction executes with VGPR indexing on, by what `index_states` found.

    Raises `OperandError` where it may be on or off, or is on at a computed jump.
    """
    if not all_states:
        return False
    states = all_states.get(instruction.index, {False})
    if len(states) > 1:
        raise OperandError("it is reached with VGPR indexing on and with it off")
    if True in states and instruction.mnemonic.startswith("s_setreg"):
        raise OperandError("it writes MODE with VGPR indexing on")
    if True in states and instruction.mnemonic in _COMPUTED:
        raise OperandError("it leaves for other code with VGPR indexing on")
    return True in states


def _after(kernel: IsaKernel, instruction: Instruction, on: bool) -> Iterator[tuple[int, bool]]:
    """The instructions that may come next, and whether indexing is on there."""
    name = instruction.mnemonic
    on = name == ON or on and name != OFF
    if name.startswith(("s_branch", "s_cbranch_")) and instruction.operands[-1:]:
        target = kernel.labels.get(instruction.operands[-1])
        if target is not None:
            yield target, on
    if not name.startswith(_ENDS):
        yield instruction.index + 1, on
