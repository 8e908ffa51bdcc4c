"""Plans: what a call with arguments of the same kinds does, once the first one has found it out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from flylab.compiler.guards import never
from flylab.compiler.signature import CONSTEXPR, INFERRED, POINTER, TENSOR, Signature
from flylab.runtime.arguments import Bound
from flylab.runtime.fast.binding import binder, note_libraries
from flylab.runtime.fast.surroundings import Surroundings

MOST_KEYS = 1024
"""Keys after which a launcher forgets its plans: as many kinds of arguments as nobody has at once."""
MOST_PLACES = 8
"""Plans of one key: for several devices, or settings."""


@dataclass(frozen=True)
class Slot:
    """An argument that is no constant, and the numbers of the values that the binder passes for it: `at` to `end`."""

    bound: Bound
    at: int
    end: int


def slots(signature: Signature, bound: Sequence[Bound]) -> list[Slot]:
    """The arguments of a call that are no constants; of a tensor the binder passes its address, and its owner's ends.

    A parameter without an annotation takes the values of a tensor, also where it got a constant.
    """
    found, at = [], 0
    for parameter, each in zip(signature.parameters, bound, strict=True):
        if parameter.kind != CONSTEXPR:
            end = at + (3 if parameter.kind in (TENSOR, POINTER, INFERRED) else 1)
            found.append(Slot(each, at, end))
            at = end
    return found


@dataclass(frozen=True)
class Plan:
    """What to do for one key. `fits` says whether it still holds; `run` does it, on what the binder passes."""

    where: Surroundings
    fits: Callable[[], bool]
    run: Callable[..., Any]


class Plans:
    """The plans of a launcher or of a compilation, and the function that binds a call and finds its plan."""

    def __init__(self, signature: Signature):
        self._plans: dict[Any, tuple[Plan, ...]] = {}
        self.find = binder(signature, self._plans)
        """Runs a call's plan; a `Missed` where there is none, and a `TypeError` where the arguments do not bind."""

    def is_hopeless(self, key: Any, where: Surroundings) -> bool:
        """Whether the plan that is there can never fit: identity does not tell whether what was read is the same."""
        return any(plan.fits is never and plan.where == where for plan in self._plans.get(key, ()))

    def add(self, key: Any, plan: Plan) -> None:
        """The plan of a key from now on, in place of one for the same device and settings."""
        note_libraries()
        if len(self._plans) >= MOST_KEYS:
            self._plans.clear()
        others = [old for old in self._plans.get(key, ()) if old.where != plan.where]
        self._plans[key] = (plan, *others[: MOST_PLACES - 1])
