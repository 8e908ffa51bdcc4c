"""What a plan stands on besides arguments: the environment's variables, and the device that was chosen.

A call must notice a variable that changed, and `os.environ` takes 0.7 us to look one up. So its own dict is looked at:
`os.environ._data`, whose keys are bytes. It is no documented attribute; where it is not there, the mapping itself is
asked. A variable that C code sets (`putenv`) is seen by neither, nor anywhere else in flylab.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flylab import settings
from flylab.compiler.users import PLAIN
from flylab.runtime import device
from flylab.runtime.device import Device
from flylab.runtime.fast.binding import NUMPY, TORCH
from flylab.runtime.registry import registered_types

NAMES = tuple(dict.fromkeys(name for row in settings.ALL for name in row.names))
"""Every variable that flylab reads."""


@dataclass(frozen=True)
class Surroundings:
    """The device that was chosen, and the variables that were set, as a call found them."""

    chosen: Device | None
    environ: Any
    given: tuple[tuple[Any, Any], ...]
    absent: tuple[Any, ...]

    @classmethod
    def now(cls) -> Surroundings:
        """Those of a call that begins now."""
        environ = os.environ
        stored, keys = _stored(environ)
        given = tuple((key, stored[key]) for key in keys if key in stored)
        return cls(device.chosen(), environ, given, tuple(key for key in keys if key not in stored))

    def test(self) -> Callable[[], bool]:
        """A function that says whether they are the same: about 0.5 us."""
        stored, _ = _stored(self.environ)
        environ, wanted, given, get = self.environ, self.chosen, self.given, stored.get
        chosen, none_of, absent = device.chosen, stored.keys().isdisjoint, self.absent
        made_of, usual = registered_types(), _usual_types()

        def same() -> bool:
            if os.environ is not environ or not none_of(absent):
                return False
            for key, value in given:
                if get(key) != value:
                    return False
            if made_of and not made_of.keys().isdisjoint(usual):
                return False
            now = chosen()
            return now is wanted or now == wanted

        return same


def _stored(environ: Any) -> tuple[Any, list[Any]]:
    """A mapping that holds the variables, and their names as it has them."""
    stored, encode = getattr(environ, "_data", None), getattr(environ, "encodekey", None)
    if type(stored) is dict and encode is not None:
        return stored, [encode(name) for name in NAMES]
    return environ, list(NAMES)


def _usual_types() -> frozenset[type]:
    """The types of which plans are made, and their bases: none may be one of `flyc.JitArgumentRegistry`."""
    return frozenset(base for kind in (*TORCH, *NUMPY, *PLAIN, tuple) for base in kind.__mro__)
