"""What must hold for a copy of parts of tiled copies and MMAs: inside of their tensors, and in one order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from flylab.expr.parts import Part, difference
from flylab.expr.state import in_arm
from flylab.expr.tensor import Tensor
from flylab.layout import text

RETILE = "retile the fragment for the copy: tiled_copy.get_slice(thread).retile({})"


def is_fragment_of_mma(tensor: Tensor) -> bool:
    """Whether a tensor is a fragment in the order of a tiled MMA."""
    return tensor.space == "register" and tensor.part_of is not None and tensor.part_of.of_mma


def check_parts(sides: tuple[tuple[str, Tensor], tuple[str, Tensor]], pred: Any) -> Iterator[tuple[str, str]]:
    """What is wrong with the two sides of a copy, each with its name, as parts: (problem, hint) each."""
    guarded = pred is not None or in_arm()  # by an `if` of the device, that keeps the threads beyond from it
    for _, tensor in sides:
        if not guarded and tensor.part_of is not None and tensor.part_of.goes_beyond:
            yield _too_far(tensor.part_of)
    for (name, fragment), (other_name, other) in zip(sides, reversed(sides), strict=True):
        part = other.part_of
        if not is_fragment_of_mma(fragment) or other.space == "register" or part is None or part.of_mma:
            continue
        found = difference(fragment.part_of, part)
        if found is not None:
            thread, value, here, there = found
            yield (f"{name} {fragment.spec.layout} is a fragment of a tiled MMA, and {other_name} "
                   f"{other.spec.layout} a part of a tiled copy in another order: value {value} of thread {thread} is "
                   f"element {text(here)} of the one and {text(there)} of the other", RETILE.format(name.strip("'")))


def _too_far(part: Part) -> tuple[str, str]:
    kind = "tiled MMA" if part.of_mma else "tiled copy"
    tile = part.tiled.tile_of(part.side) if part.of_mma else part.tiled.extents
    return (f"the tile {text(tile)} of the {kind} does not divide {part.whole}: the copy goes beyond it",
            "give a tile that divides it, or pred=, from the same part of a coordinate tensor: "
            "fx.make_view((0, 0), fx.make_identity_layout(shape))")
