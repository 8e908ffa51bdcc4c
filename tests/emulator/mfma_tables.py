"""AMD's tables of where the elements of matrix instructions lie (tests/data/mfma.md), as plain rows."""

from __future__ import annotations

import json
import lzma
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parents[1] / "data"
_ELEMENT = re.compile(r"[ABCDK]\[(\d+)\]\[(\d+)\](?:\.B(\d+))?")
_REGISTER = re.compile(r"v(?:(\d+)(?:\.\[\d+:(\d+)\])?|\[\d+:(\d+)\])")


@dataclass(frozen=True)
class Place:
    """Where an element lies, its block, row and column; of a stored pair of a sparse A the four columns it is of."""

    register: int
    lane: int
    bit: int
    block: int
    row: int
    columns: tuple[int, ...]


@cache
def tables(chip: str) -> dict[str, dict[str, list[Place]]]:
    """By instruction and matrix ("a", "b", "c", "d", "k"), every element's place."""
    with lzma.open(DATA / f"mfma_{chip}.json.xz") as file:
        data = json.load(file)
    return {name: {matrix: list(_places(layout)) for matrix, layout in entry["layouts"].items()}
            for name, entry in data.items()}


def _places(layout: Any) -> Any:
    if isinstance(layout, list):
        for register, lane, bit, row, column in layout:
            yield Place(register, lane, bit, 0, row, (column,))
        return
    for lane, elements in layout["lanes"].items():
        for where, text in zip(layout["regs"], elements, strict=True):
            found = _REGISTER.fullmatch(where)
            assert found
            register = int(found[1] if found[1] is not None else found[3])
            several = _ELEMENT.findall(text)
            block, row = int(several[0][2] or 0), int(several[0][0])
            yield Place(register, int(lane), int(found[2] or 0), block, row, tuple(int(e[1]) for e in several))
