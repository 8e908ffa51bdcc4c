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


class TargetAddressSpace(enum.Enum):
    """The memory spaces that AMD's chips add: global memory behind a buffer descriptor."""

    BufferDesc = "buffer_desc"


ADDRESS_SPACES: dict[str, AddressSpace | TargetAddressSpace] = {
    "global": AddressSpace.Global,
    "shared": AddressSpace.Shared,
    "register": AddressSpace.Register,
    "buffer": TargetAddressSpace.BufferDesc,
}
"""What the memory spaces of `flylab.dialect.types` are called in the language."""


def is_generic_address_space(address_space: Any, expected: AddressSpace) -> bool:
    """Whether a tensor's or pointer's `address_space` (or its name) is this one of every chip's.

    >>> is_generic_address_space("shared", AddressSpace.Shared)
    True

    Raises `TraceError` where `expected` is a space of AMD's chips alone.
    """
    return _is_space(address_space, expected, AddressSpace, "is_target_address_space")


def is_target_address_space(address_space: Any, expected: TargetAddressSpace) -> bool:
    """Whether a tensor's or pointer's `address_space` is this one of AMD's chips, as a buffer's is.

    >>> is_target_address_space(AddressSpace.Global, TargetAddressSpace.BufferDesc)
    False

    Raises `TraceError` where `expected` is a space of every chip.
    """
    return _is_space(address_space, expected, TargetAddressSpace, "is_generic_address_space")


def _is_space(given: Any, expected: Any, kind: type[enum.Enum], other: str) -> bool:
    if not isinstance(expected, kind):
        raise TraceError(f"{expected!r} is no {kind.__name__}", hint=f"ask fx.{other}")
    return bool((ADDRESS_SPACES.get(given) if isinstance(given, str) else given) is expected)


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
