"""What `flylab.watch` takes, and what a run says of what it was not watched for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flylab
from flylab.errors import CheckError, DeviceError, FlylabError
from tests.samples import kernel_of

RACE = """
t = fx.thread_idx.x
s = fx.make_view(fx.SharedAllocator().allocate(fx.Array[fx.Float32, 128]).peek().ptr, fx.make_layout(128, 1))
s[t] = A[t]
A[t] = s[t ^ 64]
"""


@pytest.mark.parametrize("asked, message", [
    ({"check": "race"}, "check is 'race'"), ({"check": True}, "check is True"), ({"check": [["races"]]}, "check is"),
    ({"check": ("races", "all")}, "check is"), ({"counters": "no"}, "counters is 'no'"),
    ({"log": "yes"}, "log is 'yes'"), ({"log": -1}, "log is -1")])
def test_what_is_no_choice_is_refused_at_once(asked: dict[str, Any], message: str) -> None:
    """Not at the next launch; and what held before holds on."""
    with flylab.watch(check=None, counters=True):
        with pytest.raises(DeviceError, match=message) as raised:
            flylab.watch(**asked)
        assert raised.value.hint
        run = kernel_of("A[fx.thread_idx.x] = 1.0")["launch"](np.zeros(64, np.float32))
    assert run.counters.totals.executions


@pytest.mark.parametrize("check", ["races", ("races",), ["registers", "races"]])
def test_one_name_is_enough(check: Any) -> None:
    launch = kernel_of(RACE, block=128)["launch"]
    with flylab.watch(check=check), pytest.raises(CheckError, match="a race in LDS"):
        launch(np.zeros(128, np.float32))
    with flylab.watch(check="barriers"):
        launch(np.zeros(128, np.float32))


@pytest.mark.parametrize("name", ["counters", "log"])
def test_what_was_not_asked_for_says_how_to_ask(name: str) -> None:
    run = kernel_of("A[fx.thread_idx.x] = 1.0")["launch"](np.zeros(64, np.float32))
    with pytest.raises(FlylabError, match=f"was not watched for {name}") as raised:
        getattr(run, name)
    assert raised.value.hint == f"with flylab.watch({name}=True): run = launch(...)"


def test_what_a_run_has_shows_in_a_cell() -> None:
    with flylab.watch(counters=True):
        run = kernel_of("A[fx.thread_idx.x] = 1.0")["launch"](np.zeros(64, np.float32))
    for shown in (run.counters, run.counters.table(), run.counters.summary(), run.show()):
        assert repr(shown) == str(shown) and not repr(shown).startswith(("'", "Counters("))


def test_the_model_is_reached_from_flylab() -> None:
    assert "model" in dir(flylab) and flylab.model.occupancy
