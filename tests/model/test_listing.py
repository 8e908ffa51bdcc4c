"""The model takes what a user has at hand: a kernel's function, what a launch returned, a listing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import flylab
from flylab import model
from flylab.errors import FlylabError
from flylab.model.listing import listing
from tests.samples import kernel_of


@pytest.fixture(params=["gfx942", "gfx950"])
def names(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    found = kernel_of("A[fx.thread_idx.x] = A[fx.thread_idx.x] + 1.0")
    with flylab.use(request.param), flylab.watch(counters=True):
        found["run"] = found["launch"](np.zeros(64, np.float32))
        yield found


def test_all_of_them_have_one_listing(names: dict[str, Any]) -> None:
    run = names["run"]
    (kernel,) = run.compiled.isa.kernels.values()
    assert all(listing(of) is kernel for of in (kernel, names["k"], names["launch"], run, run.compiled))
    assert model.occupancy(run) == model.occupancy(names["k"]) == model.occupancy(kernel, 64)


def test_the_work_of_a_run_is_that_of_its_parts(names: dict[str, Any]) -> None:
    run, kernel = names["run"], listing(names["k"])
    found = model.work(run)
    assert found == model.work(names["k"], run.counters) == model.work(kernel, run.counters, 64)
    assert (found.kernel, found.threads, found.groups) == (kernel.name, 64, 1)
    assert found.counts["bytes"] == 2 * 64 * 4
    text = repr(model.estimate(found, model.Traffic(256, 256)))
    assert "1 workgroup of 64 threads" in text and "modelled at" in text


def test_a_launch_that_was_not_counted(names: dict[str, Any]) -> None:
    with flylab.watch():
        run = names["launch"](np.zeros(64, np.float32))
    with pytest.raises(FlylabError, match="was not watched for counters") as raised:
        model.work(run)
    assert raised.value.hint == "with flylab.watch(counters=True): run = launch(...)"
    with pytest.raises(FlylabError, match="the counters of a launch are needed"):
        model.work(names["k"])


def test_counters_of_the_other_chip(names: dict[str, Any]) -> None:
    other = "gfx950" if names["run"].counters.chip == "gfx942" else "gfx942"
    with flylab.use(other):
        names["launch"](np.zeros(64, np.float32))
    with pytest.raises(FlylabError, match=f"the kernel was compiled for {other}"):
        model.work(names["k"], names["run"].counters)


@pytest.mark.parametrize("asked, message", [
    (lambda: model.occupancy("k"), "a kernel is needed, and this is of type str"),
    (lambda: model.occupancy(None), "of type NoneType"),
    (lambda: model.bank_conflicts("ds_read_b3", "gfx942", [0]), "does not read or write LDS"),
    (lambda: model.Traffic(-1), "-1 bytes read and 0 written"),
    (lambda: model.estimate(3, model.Traffic(1)), "an estimate from an int")])
def test_what_is_refused(asked: Any, message: str) -> None:
    with pytest.raises(FlylabError, match=message) as raised:
        asked()
    assert raised.value.hint


def test_a_block_is_a_number(names: dict[str, Any]) -> None:
    with pytest.raises(FlylabError, match=r"block is \(8, 8\)"):
        model.occupancy(names["k"], block=(8, 8))


def test_what_a_cell_shows_is_marked() -> None:
    """A figure of the model is never shown without the mark, by `repr` either."""
    for shown in (model.roofline("MI300X", "f16"), model.roofline("MI300X", "f16").place(1e9, 1e6),
                  model.bank_conflicts("ds_read_b32", "gfx950", range(0, 256, 4)), model.coalescing([0], 4)):
        assert repr(shown) == str(shown) and "modelled" in str(shown)
    assert repr(model.Parameters()) == "Parameters()"
    assert str(model.product("MI300X")).startswith("MI300X (gfx942): 304 compute units on 8 dies, clock 2100 MHz [S]")
