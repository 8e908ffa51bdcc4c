"""A stream of one's own, for launches beside those of other streams; torch's do as well."""

from __future__ import annotations

import weakref
from contextlib import suppress
from functools import partial
from typing import Any

from flylab.errors import FlylabError
from flylab.runtime.hip import aside, devices, library
from flylab.runtime.hip.launching import synchronize_stream
from flylab.runtime.hip.memory import address_of

# HIP's flag of a stream that does not wait for the default one.
NON_BLOCKING = 1


class Stream:
    """A stream of a device, its number or the first that flylab compiles for.

        stream = Stream()
        launch(a, b, stream=fx.Stream(stream))
        stream.synchronize()

    It does not wait for the default stream, nor that for it. `cuda_stream` is HIP's handle, by torch's name for it.
    """

    def __init__(self, ordinal: int | None = None):
        self.ordinal = devices.find(ordinal).ordinal
        aside.give_back()
        doing = f"making a stream on hip:{self.ordinal}"
        with devices.on(self.ordinal):
            (stream,) = library.call("hipStreamCreateWithFlags", NON_BLOCKING, doing=doing)
        self.cuda_stream = address_of(stream)
        weakref.finalize(self, aside.put, partial(_destroy, stream)).atexit = False

    def synchronize(self) -> None:
        """Wait until the device has done all that is in it. Raises `DeviceError` where a kernel went wrong."""
        synchronize_stream(self.ordinal, self.cuda_stream)


def _destroy(stream: Any) -> None:
    # HIP may end a stream before what is in it: https://github.com/cupy/cupy/issues/5163
    with suppress(FlylabError):
        library.call("hipStreamSynchronize", stream, doing="waiting for a stream")
    with suppress(FlylabError):
        library.call("hipStreamDestroy", stream, doing="giving a stream back")
