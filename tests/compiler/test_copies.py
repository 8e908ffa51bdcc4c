"""Kernels and launchers are copied as themselves and pickled by their names."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import TraceError
from tests.kernels import reference_kernels
from tests.samples import cell


class Methods:
    scale = 3.0

    @flyc.kernel
    def k(self, A: fx.Tensor):
        A[fx.thread_idx.x] = self.scale

    @flyc.jit
    def launch(self, A: fx.Tensor):
        self.k(A).launch(grid=1, block=64)


SQUARE = reference_kernels.square


@pytest.mark.parametrize("one", [SQUARE, reference_kernels.elementwise_kernel, Methods.launch, Methods.k])
def test_copies_and_pickles_are_the_same_object(one: Any) -> None:
    assert pickle.loads(pickle.dumps(one)) is one
    assert copy.copy(one) is one
    assert copy.deepcopy({"one": [one]})["one"][0] is one


def test_a_method_is_pickled_with_its_object() -> None:
    methods = Methods()
    methods.scale = 4.0
    for again in (pickle.loads(pickle.dumps(methods.launch)), copy.deepcopy(methods.launch)):
        A = np.zeros(64, np.float32)
        again(A)
        assert (A == 4).all()
        assert again.instance is not methods


def test_what_its_name_does_not_lead_to_cannot_be_pickled() -> None:
    launch = cell("""
        def make():
            @flyc.jit
            def launch(A: fx.Tensor):
                pass
            return launch
        launch = make()
    """)["launch"]
    assert copy.deepcopy(launch) is launch
    for one in (launch, flyc.jit(SQUARE.function)):
        with pytest.raises(TraceError, match="cannot be pickled") as caught:
            pickle.dumps(one)
        assert "module's outermost level" in str(caught.value.hint) and caught.value.where is not None
