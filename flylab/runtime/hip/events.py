"""Events: points in a stream, and the time between two of them."""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import Any

from flylab.errors import DeviceError, FlylabError
from flylab.runtime.hip import devices, library
from flylab.runtime.hip.launching import failed_on, stream_pointer
from flylab.runtime.hip.streams import handle_of


class Event:
    """A point in a stream of a device, its number or the first that flylab compiles for.

        start, stop = Event(), Event()
        start.record(); launch(a, b); stop.record()
        start.elapsed_ms(stop)
    """

    def __init__(self, ordinal: int | None = None):
        self.ordinal = devices.find(ordinal).ordinal
        self._recorded = False
        with devices.on(self.ordinal):
            (self._event,) = library.call("hipEventCreateWithFlags", 0, doing=f"making an event on hip:{self.ordinal}")
        weakref.finalize(self, _destroy, self._event).atexit = False

    def record(self, stream: Any = None) -> Event:
        """Put the event behind what is in a stream (None: torch's current one); the event."""
        handle = handle_of(stream, self.ordinal)
        with devices.on(self.ordinal):
            self._call("hipEventRecord", self._event, stream_pointer(handle), doing="recording an event")
        self._recorded = True
        return self

    @property
    def done(self) -> bool:
        """Whether the device has come that far. Raises `DeviceError` where the event was never recorded."""
        self._must_be_recorded()
        doing = f"asking for an event on hip:{self.ordinal}"
        (status,) = library.answer("hipEventQuery", self._event, doing=doing)
        if status == library.hip().hipError_t.hipErrorNotReady:
            library.take_back()
        elif status:
            raise failed_on(self.ordinal, status, doing)
        return not status

    def synchronize(self) -> None:
        """Wait until the device has come that far. Raises `DeviceError` where a kernel before it went wrong."""
        self._must_be_recorded()
        self._call("hipEventSynchronize", self._event, doing="waiting for an event")

    def elapsed_ms(self, stop: Event) -> float:
        """Milliseconds of the device's clock from this event to `stop`, which is waited for.

        Raises `DeviceError` where they are events of two devices, which have a clock each.
        """
        if stop.ordinal != self.ordinal:
            raise DeviceError(f"one event is of hip:{self.ordinal} and the other of hip:{stop.ordinal}, which have a "
                              "clock each", hint=f"make both on one device: Event({self.ordinal})")
        self.synchronize()
        stop.synchronize()
        (ms,) = self._call("hipEventElapsedTime", self._event, stop._event, doing="asking for the time of two events")
        return float(ms)

    def _must_be_recorded(self) -> None:
        if not self._recorded:
            raise DeviceError("the event was not recorded", hint="event.record() puts it into the stream")

    def _call(self, function: str, *args: Any, doing: str) -> tuple[Any, ...]:
        doing = f"{doing} on hip:{self.ordinal}"
        status, *found = library.answer(function, *args, doing=doing)
        if status:
            raise failed_on(self.ordinal, status, doing)
        return tuple(found)


def _destroy(event: Any) -> None:
    with suppress(FlylabError):
        library.call("hipEventDestroy", event, doing="giving an event back")
