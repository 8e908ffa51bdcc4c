"""The enumerations of the language: atomic operations, their orders and scopes, and memory spaces."""

from __future__ import annotations

import enum
from typing import Any

from flylab.errors import TraceError


class AtomicOp(enum.Enum):
    """What an atomic operation does with the number in memory; `Inc` and `Dec` wrap at the value that is given."""

    Add = 0
    Max = 1
    Min = 2
    And = 3
    Or = 4
    Inc = 5
    Dec = 6
    Sub = 7
    Xor = 8


class AtomicOrdering(enum.Enum):
    """How an atomic operation orders the thread's other memory operations, as LLVM's memory model has it."""

    NotAtomic = "not_atomic"
    Unordered = "unordered"
    Monotonic = "monotonic"
    Acquire = "acquire"
    Release = "release"
    AcqRel = "acq_rel"
    SeqCst = "seq_cst"


class SyncScope(enum.StrEnum):
    """Whose atomic operations on the same place one is atomic with: those of every device, of the chip (an agent), of
    the block, the wave, or the thread.

    A scope whose name ends in `OneAs` orders its own memory space alone. Source: LLVM's AMDGPU usage guide, "Memory
    scopes".
    """

    System = ""
    Agent = "agent"
    Workgroup = "workgroup"
    Wavefront = "wavefront"
    SingleThread = "singlethread"
    OneAs = "one-as"
    AgentOneAs = "agent-one-as"
    WorkgroupOneAs = "workgroup-one-as"
    WavefrontOneAs = "wavefront-one-as"
    SingleThreadOneAs = "singlethread-one-as"


class CachePolicy(enum.IntEnum):
    """A cache modifier by name: 0, the chip's own policy, or bit 0 (sc0)."""

    CacheGlobal = 0
    CacheAlways = 1


class AddressSpace(enum.Enum):
    """The memory spaces that a pointer can point into."""

    Generic = 0
    Global = 1
    Shared = 2
    Register = 3


def member(kind: type[enum.Enum], given: Any, what: str) -> Any:
    """A member of an enumeration, from itself or from its value. Raises `TraceError` for what is neither.

    >>> member(SyncScope, "agent", "atomic_add(syncscope=)").name
    'Agent'
    """
    try:
        return kind(given)
    except ValueError:
        names = ", ".join(f"fx.{kind.__name__}.{each.name}" for each in kind)
        raise TraceError(f"{what}: {given!r} is no {kind.__name__}", hint=f"give one of {names}") from None
