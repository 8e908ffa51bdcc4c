"""What all launches of a kernel over grids and blocks of one shape begin with, made once: native code only reads it."""

from __future__ import annotations

from collections.abc import Sequence

from flylab.codegen.isa import IsaKernel
from flylab.emulator.execution.geometry import Geometry
from flylab.emulator.execution.initial import PACKET_BYTES, dispatch_packet, initial_sgprs, preloads, work_items
from flylab.emulator.execution.residents import resident_workgroups
from flylab.emulator.state import Memory
from flylab.emulator.windows import KERNEL_ARGUMENTS

SHORT = 1 << 13
"""Instructions of waves in all up to which a launch is one thread's: waking another one takes as long."""
# What goes on somewhere else than at a label.
_ELSEWHERE = ("s_setpc", "s_swappc", "s_call", "s_rfe", "s_cbranch_g_fork", "s_cbranch_i_fork", "s_cbranch_join")


class Opening:
    """The dispatch packet, registers, work-item ids and masks of waves, how many workgroups the chip holds at once.

    `registers` is None where they begin with arguments, which are those of each launch.
    """

    def __init__(self, kernel: IsaKernel, mode: int, geometry: Geometry, straight: bool):
        self.registers = None if preloads(kernel) else initial_sgprs(kernel, mode, b"")
        self.packet = Memory(PACKET_BYTES, dispatch_packet(geometry, geometry.lds_bytes(kernel), KERNEL_ARGUMENTS))
        dimensions = 1 + kernel.descriptor.get("system_vgpr_workitem_id", 0)
        self.ids, self.masks = (Memory(len(data), data) for data in work_items(geometry.block, dimensions))
        self.resident = resident_workgroups(kernel, geometry)
        self.workgroups, self.waves = geometry.workgroups, geometry.waves
        self.is_short = straight and len(kernel.instructions) * self.waves * self.workgroups <= SHORT


def is_straight(kernel: IsaKernel) -> bool:
    """Whether a wave executes each instruction of a kernel once at most: no branch leads back."""
    return all(_leads_on(i.mnemonic, i.operands, i.index, kernel) for i in kernel.instructions)


def _leads_on(mnemonic: str, operands: Sequence[str], index: int, kernel: IsaKernel) -> bool:
    if mnemonic.startswith(_ELSEWHERE):
        return False
    if not mnemonic.startswith(("s_branch", "s_cbranch")):
        return True
    return bool(operands) and kernel.labels.get(operands[-1], 0) > index
