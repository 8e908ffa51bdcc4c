"""What tracing found out about a loop, for the next time that the loop around it is traced.

Each trace of a body may find out more, and traces the loops in it anew. Were these to begin from nothing each time,
the traces would double with each level of nesting.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flylab.compiler.control.values import Joined
from flylab.compiler.syntax.hooking import Site
from flylab.expr.state import active

Name = Any
"""A variable's name, or the path of a container and a key in it."""


@dataclass
class Memory:
    """What is known of a loop from its earlier traces."""

    site: Site
    items: dict[Name, None] = field(default_factory=dict)
    """The items of containers that it changes."""
    formats: dict[Name, Joined] = field(default_factory=dict)
    """What places became that began as Python numbers."""
    is_on_device: bool = False
    """Of a `while`: whether its first test, or a flag of its first round, was the device's."""
    inner: list[Memory] = field(default_factory=list)
    count: int = 0
    """How many of the loops in it this trace has met."""

    def following(self, site: Site) -> Memory:
        """That of the next loop in the body."""
        if self.count == len(self.inner) or self.inner[self.count].site is not site:
            self.inner[self.count :] = [Memory(site)]
        self.count += 1
        return self.inner[self.count - 1]


def remembered(site: Site) -> Memory:
    """What is known of a loop that begins where tracing stands."""
    region = active.region
    while region is not None:
        loop = region.block.loop if region.block is not None else None
        if loop is not None:
            found: Memory = loop.memory.following(site)
            return found
        region = region.parent
    return Memory(site)
