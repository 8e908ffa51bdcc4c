"""Which registers a wave begins with."""

from __future__ import annotations

from flylab.codegen.isa import IsaKernel
from flylab.emulator.execution.initial import user_sgprs
from flylab.emulator.state import APERTURES, EXEC, MODE, SGPR_COUNT, SINK

# In the order in which they follow the user's registers and the workgroup's ids, one each.
_MORE = ("system_sgpr_workgroup_info", "system_sgpr_private_segment_wavefront_offset")


def defined_scalars(kernel: IsaKernel) -> frozenset[int]:
    """The scalar registers that hold a value at a wave's start: what the descriptor asks for, EXEC and the mode.

    VCC, M0 and SCC hold none, nor do the registers that a kernel has beyond those. Source: LLVM 22's AMDGPU usage
    guide, the initial kernel execution state.
    """
    user, places = user_sgprs(kernel, b"", {})
    ids = [place for place in places if place != SINK]
    first = kernel.descriptor.get("user_sgpr_count", len(user))
    end = first + len(ids) + sum(kernel.descriptor.get(name, 0) for name in _MORE)
    return frozenset({*range(end), EXEC, EXEC + 1, MODE, SINK, *range(APERTURES, SGPR_COUNT)})
