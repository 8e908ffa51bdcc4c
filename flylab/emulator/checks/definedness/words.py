"""Findings of the registers check in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from flylab.emulator.checks.definedness.lds import WAS_STORED
from flylab.emulator.checks.definedness.observe import ADDRESS, BRANCH, DATA, INTO_EXEC
from flylab.emulator.checks.definedness.places import NEVER, SCALAR_ORIGIN
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.probes.findings import Entry, Finding, Scene
from flylab.emulator.state import SGPR_NAMES

_USES = {ADDRESS: "is part of an address", DATA: "goes to memory", BRANCH: "decides a branch",
         INTO_EXEC: "decides which threads go on"}
_SHOWN_LANES = 4


def register_name(number: int, scene: Scene) -> str:
    """A register as assembly calls it, from what an entry holds of it."""
    if number & SCALAR_ORIGIN:
        number &= ~SCALAR_ORIGIN
        for name, first in SGPR_NAMES.items():
            if name not in ("m0", "scc", "src_scc") and number in (first, first + 1):
                return f"{name}_{'hi' if number > first else 'lo'}"
        return {SGPR_NAMES["m0"]: "m0", SGPR_NAMES["scc"]: "SCC"}.get(number, f"s{number}")
    first = Registers(scene.kernel).accumulators
    return f"a{number - first}" if number >= first else f"v{number}"


def _finding(use: str, entry: Entry, scene: Scene) -> Finding:
    lanes, register, origin, note = entry.more
    name = register_name(register, scene)
    where, hint = _origin(origin, note, name, scene)
    threads = _threads(lanes, entry, scene)
    others = () if origin & NEVER or not origin else (origin - 1,)
    return scene.finding(entry, "registers", f"{name} {use} and is undefined{threads}: {where}", hint, others,
                         register=name, lanes=lanes)


def _origin(origin: int, note: int, name: str, scene: Scene) -> tuple[str, str]:
    """Where an undefined value comes from, and a hint."""
    if origin & NEVER:
        source = register_name(origin & ~NEVER, scene)
        written = "it was never written" if source == name else f"it comes from {source}, which was never written"
        return written, "give it a value on every way that leads here"
    if not note:
        return f"it was read from LDS at {scene.at(origin - 1)}", "write LDS before it is read, with a barrier between"
    first = (note & 0xFFFFFFFF) - 1
    if note & WAS_STORED:
        return (f"it was read from LDS at {scene.at(origin - 1)}, where byte {first} had been given an undefined value",
                "look at what is stored there")
    return (f"it was read from LDS at {scene.at(origin - 1)}, where no thread of the block had written byte {first}",
            "write LDS before it is read, by the threads that are meant to, with a barrier between")


def _threads(lanes: int, entry: Entry, scene: Scene) -> str:
    """Which threads are concerned, where they are several."""
    numbers = [lane for lane in range(64) if lanes >> lane & 1]
    if len(numbers) < 2:
        return ""
    shown = ", ".join(str(scene.thread(entry, lane)) for lane in numbers[:_SHOWN_LANES])
    more = f" and {len(numbers) - _SHOWN_LANES} more" if len(numbers) > _SHOWN_LANES else ""
    return f" in threads {shown}{more}"


WORDS: Mapping[int, Callable[[Entry, Scene], Finding]] = {
    kind: partial(_finding, use) for kind, use in _USES.items()}
