"""The lanes of a wave: `gpu.lane_id()`, and values of other lanes, `gpu.shuffle_xor`, `_up`, `_down`, `_idx`.

A wave is divided into groups of `width` lanes. A lane whose peer would lie outside of its group gets its own value.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flylab.errors import TraceError
from flylab.expr.emit import mlir_type, op
from flylab.expr.location import name_of
from flylab.expr.numeric import CLASSES, Integer, Numeric, as_numeric
from flylab.expr.promotion import plain
from flylab.expr.select import select
from flylab.expr.state import require_kernel
from flylab.expr.vector import Vector
from flylab.expr.words import of_words, words_of
from flylab.targets import WAVE_SIZE

WORD_BYTES = 4

# Of lane, the lane within its group, offset and width: the peer, and whether it is in the group. An offset is compared
# as an unsigned number, so that a negative one lies outside.
Peer = Callable[[Any, Any, Any, Any], tuple[Any, Any]]
MODES: dict[str, Peer] = {
    "xor": lambda lane, within, offset, width: (lane ^ offset, _below(offset, width)),
    "up": lambda lane, within, offset, width: (lane - offset, _below(offset, within + 1)),
    "down": lambda lane, within, offset, width: (lane + offset, _below(offset, width - within)),
    "idx": lambda lane, within, offset, width: (lane - within + offset, _below(offset, width)),
}


def _below(offset: Any, limit: Any) -> Any:
    if isinstance(offset, int) and isinstance(limit, int):
        return offset < limit
    unsigned: Any = CLASSES["Uint32"]
    return unsigned(offset) < unsigned(limit)


def lane_id() -> Any:
    """The thread's number in its wave, an Int32 from 0 to 63."""
    from mlir import ir

    require_kernel("gpu.lane_id")
    return CLASSES["Int32"](op("gpu.lane_id", [], ir.IndexType.get()), bounds=(0, WAVE_SIZE - 1))


def num_warp_threads() -> int:
    """How many threads a wave has, a number known while tracing.

    >>> num_warp_threads()
    64
    """
    return WAVE_SIZE


def shuffle(value: Any, offset: Any, width: Any = WAVE_SIZE, mode: str = "xor") -> Any:
    """The `value` of another lane of the wave: of lane ^ offset ("xor"), - ("up"), + ("down"), or of lane `offset` of
    the group ("idx").

    `value` is a number or Vector of any format; `width` the lanes of a group, a power of two up to 64. Offset and width
    are known or Int32 values of the device. Beyond its group a lane gets its own value; that of a lane which does not
    take part is undefined. Raises `TraceError` for a known width or offset that is none.
    """
    what = f"gpu.shuffle_{mode}" if mode in MODES else "gpu.shuffle"
    require_kernel(what)
    if mode not in MODES:
        raise TraceError(f"gpu.shuffle(mode={mode!r})", hint="the mode is one of " + ", ".join(MODES))
    size, by = _width(what, width), _offset(what, offset)
    given = value if isinstance(value, Vector) else as_numeric(value)
    if isinstance(given, Numeric) and given.is_static:
        return given
    if mode == "idx" and isinstance(size, int) and size == WAVE_SIZE and isinstance(by, int) and by < size:
        return of_words([_read_lane(word, by) for word in words_of(given)], given)
    lane = lane_id()
    peer, inside = MODES[mode](lane, lane & (size - 1), by, size)
    if inside is False:
        return given
    source = peer if inside is True else select(inside, peer, lane)
    address = (source * WORD_BYTES).ir_value()
    i32 = mlir_type(CLASSES["Int32"].dtype)
    return of_words([op("rocdl.ds_bpermute", [address, word], i32) for word in words_of(given)], given)


def _read_lane(word: Any, lane: int) -> Any:
    kind = CLASSES["Int32"]
    return op("rocdl.readlane", [word, kind(lane).ir_value()], mlir_type(kind.dtype))


def _integer(what: str, name: str, given: Any, hint: str) -> Any:
    """A known integer as Python's, one of the device as an Int32."""
    number = plain(given)
    if isinstance(number, Integer):
        return number.value if number.is_static else CLASSES["Int32"](number)
    if isinstance(number, int) and not isinstance(number, bool):
        return number
    raise TraceError(f"{what}: the {name} is {name_of(given, repr(given))}, and it takes an integer", hint=hint)


def _width(what: str, width: Any) -> Any:
    hint = f"give 1, 2, 4 ... {WAVE_SIZE}, or leave it out for the whole wave"
    size = _integer(what, "width", width, hint)
    if isinstance(size, int) and (not 1 <= size <= WAVE_SIZE or size & (size - 1)):
        raise TraceError(
            f"{what}: a width of {size}, and groups of lanes have a power of two up to {WAVE_SIZE}", hint=hint
        )
    return size


def _offset(what: str, offset: Any) -> Any:
    by = _integer(what, "offset", offset, "give a number of lanes: an int or an Int32")
    if isinstance(by, int) and not 0 <= by < 2**31:
        raise TraceError(f"{what}: an offset of {by} lanes", hint="offsets are 0 or more; up and down are the two ways")
    return by


def shuffle_xor(value: Any, offset: Any, width: Any = WAVE_SIZE) -> Any:
    """The value of the lane whose number differs in the bits of `offset`; see `shuffle`."""
    return shuffle(value, offset, width, "xor")


def shuffle_up(value: Any, offset: Any, width: Any = WAVE_SIZE) -> Any:
    """The value of the lane `offset` below; see `shuffle`."""
    return shuffle(value, offset, width, "up")


def shuffle_down(value: Any, offset: Any, width: Any = WAVE_SIZE) -> Any:
    """The value of the lane `offset` above; see `shuffle`."""
    return shuffle(value, offset, width, "down")


def shuffle_idx(value: Any, lane: Any, width: Any = WAVE_SIZE) -> Any:
    """The value of lane `lane` of each group of `width`; see `shuffle`."""
    return shuffle(value, lane, width, "idx")
