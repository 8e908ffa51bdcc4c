"""Launches with what is no argument, and arguments whose own code fails: an error of flylab's, and never a crash."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

from flylab.emulator import Program
from flylab.errors import ArgumentError
from tests.emulator.toolchain import assembly

PROGRAM = Program.from_assembly(assembly("  s_endpgm"))


class Raises:
    """An array whose interface fails."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        raise RuntimeError("no memory today")


class HalfATensor:
    """What looks like a tensor and has no device."""

    def data_ptr(self) -> int:
        return 1 << 20

    def element_size(self) -> int:
        return 4


@pytest.mark.parametrize("value, why", [
    (np.float32(1), "float32 is no array"), (np.zeros(1, "i4,i4")[0], "void is no array"),
    (np.ndarray, "type is no array"), (Raises(), "does not say where its memory is: RuntimeError('no memory today')"),
    (HalfATensor(), "'HalfATensor' object has no attribute 'device'"), (array.array("i", [1]), "array is no array"),
], ids=lambda value: type(value).__name__)
def test_pointers_to_what_has_no_memory(value: object, why: str) -> None:
    """The memory that numpy shows of a scalar is freed before a kernel could read it."""
    with pytest.raises(ArgumentError, match="a0") as caught:
        PROGRAM.launch(grid=1, block=1, args=[value])
    assert why in str(caught.value)


@pytest.mark.parametrize("args", [None, 5, iter([None]), "a", b"a", {"a0": None}, {None}])
def test_arguments_that_are_no_list(args: Any) -> None:
    with pytest.raises(ArgumentError, match="the arguments are an? .*, and a list of them is needed"):
        PROGRAM.launch(grid=1, block=1, args=args)


@pytest.mark.parametrize("kernel", [[], {}, 5, b"k"])
def test_names_that_are_none(kernel: Any) -> None:
    with pytest.raises(ArgumentError, match="kernel is .*, and a name is needed"):
        PROGRAM.launch(grid=1, block=1, args=[None], kernel=kernel)


@pytest.mark.parametrize("value", [0, 1, True, np.int32])
def test_a_number_of_no_bytes(value: Any) -> None:
    text = assembly("  s_endpgm").replace(".size: 8", ".size: 0").replace("global_buffer", "by_value")
    with pytest.raises(ArgumentError, match="argument 'a0' takes a number of 0 bytes, not an? "):
        Program.from_assembly(text).launch(grid=1, block=1, args=[value])


def test_an_array_of_the_standard_library_without_metadata() -> None:
    text = assembly("  s_endpgm", arguments=1).partition(".amdgpu_metadata")[0]
    with pytest.raises(ArgumentError, match="array is no array"):
        Program.from_assembly(text).launch(grid=1, block=1, args=[array.array("i", [1])])
