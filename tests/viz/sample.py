"""A vector add as a compiler may show it, written by hand: the pipeline view is tested on it.

In data/vector_add.txt each stage begins with `=== name language`, and a line may end in `@ n`, its Python line. A stage
that is marked unchanged has the text of the one before.
"""

from __future__ import annotations

import re
from pathlib import Path

from flylab.passes.recording import Stage

DATA = Path(__file__).parent / "data"


def stage(name: str, language: str, marked: str, changed: bool = True) -> Stage:
    """A stage of text whose lines may end in `@ n`."""
    found = [re.fullmatch(r"(.*?)(?: @ (\d+))?", line) for line in marked.split("\n")]
    lines = tuple(int(m[2]) if m[2] else None for m in found)
    return Stage(name, language, "\n".join(m[1] for m in found) + "\n", lines, changed)


def vector_add() -> list[Stage]:
    """All steps from source to ISA."""
    result: list[Stage] = []
    marked = ""
    for part in (DATA / "vector_add.txt").read_text(encoding="utf-8").split("=== ")[1:]:
        head, _, body = part.partition("\n")
        name, language, *rest = head.split()
        marked = marked if rest else body.rstrip("\n")
        result.append(stage(name, language, marked, changed=not rest))
    return result
