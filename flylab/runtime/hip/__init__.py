"""Launching on an attached AMD GPU through HIP: devices, waiting, events."""

from __future__ import annotations

from flylab.runtime.hip.devices import Attached, attached
from flylab.runtime.hip.events import Event
from flylab.runtime.hip.launching import synchronize

__all__ = ["Attached", "Event", "attached", "synchronize"]
