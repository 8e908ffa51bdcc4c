"""Tensors whose layout is a number of the launch, on an attached GPU."""

from __future__ import annotations

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.errors import ArgumentError
from flylab.runtime.hip import synchronize
from tests.runtime.hip.standin import StandIn
from tests.runtime.hip.test_device_memory import OnDevice
from tests.runtime.test_dynamic_layouts import ADD, compilations, marked
from tests.samples import cell


def test_one_module_is_loaded_for_many_shapes(hip: StandIn) -> None:
    add = cell(ADD)["add"]
    hip.forget_calls()
    for m, n in ((2, 5), (3, 70), (2, 5), (2, 5)):
        a, b, c = np.random.default_rng(n).random((3, m, n), np.float32)
        shown = OnDevice(a)
        add(marked(shown), marked(b), marked(c))
        assert np.array_equal(c, a + b)
    assert compilations(add) == 1 and len(hip.calls("hipModuleLoadData")) == 1


def test_memory_of_the_device_alone(hip: StandIn) -> None:
    add = cell(ADD)["add"]
    for shape in ((1, 8), (4, 12), (4, 12), (4, 12)):
        a, c = OnDevice(np.ones(shape, np.float32)), OnDevice(np.zeros(shape, np.float32))
        add(marked(a, divisibility=4), marked(a, divisibility=4), marked(c, divisibility=4))
        synchronize()
        assert (c.shown == 2).all()
    assert compilations(add) == 1


def test_a_compilation_takes_what_fits_it_and_nothing_else(hip: StandIn) -> None:
    a, c = np.ones((4, 8), np.float32), np.zeros((4, 8), np.float32)
    compiled = flyc.compile(cell(ADD)["add"], *[marked(a, divisibility=4)] * 3)
    for _ in range(3):
        c[:] = 0
        compiled(a, a, c)
        assert (c == 2).all()
    with pytest.raises(ArgumentError, match="'B' has the stride 9 in dimension 0, no multiple of divisibility=4"):
        compiled(a, np.ones((4, 9), np.float32), c)
