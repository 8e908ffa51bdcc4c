"""What the check of waits must find, from the executed instructions of a wave: a plain walk with lists of operations.

It reads registers and counters off the text by itself, for the instructions that the kernels of the tests have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_REGISTER = re.compile(r"\b([vas])(?:(\d+)|\[(\d+):(\d+)\])")
_LOADS = {"global_load": "vmcnt", "buffer_load": "vmcnt", "ds_read": "lgkmcnt", "s_load": "lgkmcnt",
          "s_buffer_load": "lgkmcnt"}
_STORES = {"global_store": "vmcnt", "buffer_store": "vmcnt", "ds_write": "lgkmcnt"}


def registers(text: str) -> set[str]:
    """The numbered registers that a text names, one by one."""
    found = set()
    for file, one, first, last in _REGISTER.findall(text):
        found |= {f"{file}{n}" for n in (range(int(first), int(last) + 1) if first else (int(one),))}
    return found


@dataclass
class _Operation:
    number: int
    scalar: bool
    fills: set[str] = field(default_factory=set)


def unprotected(trace: Iterable[tuple[int, str]]) -> set[tuple[int, int]]:
    """(load, use) of each first use of a register that a load may still have to fill.

    `trace` are the instructions that a wave executes, one by one: number and text.
    """
    flying: dict[str, list[_Operation]] = {"vmcnt": [], "lgkmcnt": []}
    found = set()
    for number, text in trace:
        mnemonic, _, operands = text.partition(" ")
        if mnemonic == "s_waitcnt":
            for counter, count in re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", operands):
                left = flying[counter]
                if int(count) == 0 or not any(operation.scalar for operation in left):
                    flying[counter] = left[max(len(left) - int(count), 0):]
            continue
        counter = next((c for name, c in {**_LOADS, **_STORES}.items() if mnemonic.startswith(name)), "")
        loads, scalar = mnemonic.startswith(tuple(_LOADS)), mnemonic.startswith("s_")
        result, _, rest = operands.partition(",")
        fills = registers(result) if loads else set()
        used = registers(rest if loads else operands)
        for name, operations in flying.items():
            ordered = name == counter and not scalar
            for operation in operations:
                touched = operation.fills & (used if ordered and not operation.scalar else used | fills)
                if touched:
                    found.add((operation.number, number))
                operation.fills -= touched | fills
        if counter:
            flying[counter].append(_Operation(number, scalar, fills))
    return found
