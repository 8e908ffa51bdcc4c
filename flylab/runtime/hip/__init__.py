"""Launching on an attached AMD GPU through HIP: devices, waiting, events, streams."""

from __future__ import annotations

from flylab.runtime.hip.devices import Attached, attached
from flylab.runtime.hip.events import Event
from flylab.runtime.hip.launching import synchronize
from flylab.runtime.hip.side_stream import Stream

__all__ = ["Attached", "Event", "Stream", "attached", "synchronize"]
