"""Streams: torch's current one, the one that a call was given, and waiting for them."""

from __future__ import annotations

import sys
from typing import Any

from flylab.errors import ArgumentError
from flylab.expr.typing import Stream
from flylab.shown import a_kind


def current(ordinal: int) -> int:
    """The handle of the stream that torch runs on now on a device; 0, the default stream, where torch runs on none."""
    torch = sys.modules.get("torch")
    if torch is None:
        return 0
    try:
        if not torch.version.hip or not torch.cuda.is_initialized():
            return 0
    except AttributeError:  # another thread is importing it
        return 0
    return int(torch._C._cuda_getCurrentRawStream(ordinal))


def handle_of(given: Any, ordinal: int) -> int:
    """The handle of the stream that a launch on a device goes to.

    `given` is an `fx.Stream` or what one holds: None (torch's current stream), a handle as a number, a
    `torch.cuda.Stream`, a `flylab.runtime.hip.Stream`, a stream of AMD's bindings. Raises `ArgumentError` for anything
    else, and for a stream of another device.
    """
    value = given.value if isinstance(given, Stream) else given
    if value is None:
        return current(ordinal)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if hasattr(value, "cuda_stream"):
        index = getattr(value, "ordinal", getattr(getattr(value, "device", None), "index", None))
        if index not in (None, ordinal):
            raise ArgumentError(f"the stream is one of device {index} (torch's cuda:{index}), and the launch runs on "
                                f"hip:{ordinal}", hint=f'choose its device with flylab.use("hip:{index}")')
        return int(value.cuda_stream)
    if hasattr(value, "as_c_void_p"):
        return int(value.as_c_void_p().value or 0)
    raise ArgumentError(f"the stream is {a_kind(value)}", hint="pass fx.Stream(torch.cuda.current_stream()), "
                        "a handle of HIP as a number, or None for torch's current stream")
