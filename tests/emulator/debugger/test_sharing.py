"""A debugger in several threads, and attempts to copy it."""

from __future__ import annotations

import copy
import pickle
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from flylab.emulator.debugger.debugger import Debugger
from flylab.errors import DebugError
from tests.emulator.debugger.kernels import KERNELS, ZEROS, program, state


def begun() -> Debugger:
    return program(KERNELS["divergent"], "gfx942").debug(grid=1, block=192, args=[ZEROS])


def test_threads_that_move_one_debugger_leave_it_whole() -> None:
    debugger, fails = begun(), list[BaseException]()
    end = begun().finish().time

    def walk(seed: int) -> None:
        numbers = random.Random(seed)
        try:
            for _ in range(40):
                debugger.goto(numbers.randrange(end))
                debugger.changes()
        except BaseException as error:
            fails.append(error)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not fails
    assert state(debugger.goto(end // 2)) == state(begun().goto(end // 2))


@pytest.mark.parametrize("what", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_debugger_is_not_copied(what: Callable[[Any], Any]) -> None:
    with pytest.raises(DebugError, match="cannot be copied or pickled") as caught:
        what(begun())
    assert "goto(debugger.time)" in (caught.value.hint or "")


def test_what_it_shows_can_be_pickled() -> None:
    debugger = begun().goto(30)
    for one in (debugger.state(), debugger.last_write("v1"), debugger.changes(since=0), debugger.path(3)):
        assert repr(pickle.loads(pickle.dumps(one))) == repr(one)
