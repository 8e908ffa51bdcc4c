"""Which of two instructions comes first between two barriers, by the jumps of a kernel.

The device runs the waves of a workgroup one after the other, so that of two concurrent accesses by different waves the
one that ran first is often not the one that stands first in the program.
"""

from __future__ import annotations

from collections.abc import Iterator

from flylab.codegen.assembly.encoding import base_name
from flylab.codegen.isa import IsaKernel


def comes_first(kernel: IsaKernel, one: int, other: int) -> bool:
    """True where a thread comes from instruction `one` to `other` with no barrier between, rather than the other way.

    Where both ways are there, or none, the order in the text decides.
    """
    forth, back = reaches(kernel, one, other), reaches(kernel, other, one)
    return forth if forth != back else one <= other


def reaches(kernel: IsaKernel, first: int, last: int) -> bool:
    """True where a thread that did instruction `first` can come to `last` with no barrier between."""
    seen: set[int] = set()
    waiting = [first]
    while waiting:
        for following in _after(kernel, waiting.pop()):
            instruction = kernel.instructions[following]
            if following in seen or instruction.barriers or base_name(instruction.mnemonic) == "s_barrier":
                continue
            if following == last:
                return True
            seen.add(following)
            waiting.append(following)
    return False


def _after(kernel: IsaKernel, number: int) -> Iterator[int]:
    """The instructions that may follow one; where a computed jump leads is not known."""
    instruction = kernel.instructions[number]
    name = base_name(instruction.mnemonic)
    if name.startswith(("s_branch", "s_cbranch", "s_call")) and instruction.operands:
        target = kernel.labels.get(instruction.operands[-1])
        if target is not None and target < len(kernel.instructions):
            yield target
    if name not in ("s_branch", "s_endpgm", "s_setpc_b64") and number + 1 < len(kernel.instructions):
        yield number + 1
