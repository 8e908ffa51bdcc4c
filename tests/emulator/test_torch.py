"""torch's tensors as arguments of the software device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flylab.errors import ArgumentError
from tests.emulator.test_memory import copy_kernel, fails
from tests.emulator.toolchain import element, kernel, program

torch: Any = pytest.importorskip("torch")

DOUBLE = "  %x = load i32, ptr addrspace(1) %pa\n  %y = shl i32 %x, 1\n  store i32 %y, ptr addrspace(1) %pa"


def doubling() -> Any:
    return program("gfx942", kernel("ptr %a", element("%pa", "i32", "%a") + DOUBLE))


def test_tensors_are_written_in_place() -> None:
    tensor = torch.arange(64, dtype=torch.int32)
    for value in (tensor, tensor[None]):
        doubling().launch(grid=1, block=64, args=[value])
    assert tensor.tolist() == [4 * n for n in range(64)]
    doubling().launch(grid=1, block=torch.tensor(64), args=[tensor])
    assert tensor[1] == 8


def test_a_tensor_of_another_device_is_refused() -> None:
    with pytest.raises(ArgumentError, match="tensor on meta") as caught:
        doubling().launch(grid=1, block=64, args=[torch.zeros(64, device="meta")])
    assert "hint: pass tensor.cpu()" in str(caught.value)


def fake() -> Any:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return torch.zeros(64)


REFUSED = {
    "fake": (fake, "argument 'a' has no memory"),
    "conjugate": (lambda: torch.zeros(64, dtype=torch.complex64).conj(), "tensor.resolve_conj()"),
    "negative": (lambda: torch.zeros(64, dtype=torch.complex64).conj().imag, "tensor.resolve_neg()"),
    "sparse": (lambda: torch.zeros(8, 8).to_sparse(), "a tensor without plain memory"),
}


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
@pytest.mark.parametrize("name", REFUSED)
def test_tensors_without_memory_of_their_own_are_refused(name: str) -> None:
    make, text = REFUSED[name]
    with pytest.raises(ArgumentError, match="argument 'a'") as caught:
        doubling().launch(grid=1, block=64, args=[make()])
    assert text in str(caught.value)


def test_empty_and_expanded_tensors() -> None:
    device, out = copy_kernel("gfx942", "i32"), np.zeros(64, "i4")
    text = fails(device, grid=1, block=64, args=[torch.zeros(0, dtype=torch.int32), out, 64])
    assert "is out of bounds: 'a' is empty\n" in text and "null" not in text
    expanded = torch.arange(3, dtype=torch.int32).expand(4, 3)
    device.launch(grid=1, block=64, args=[expanded, out, 3])
    assert out[:3].tolist() == [0, 1, 2]
    text = fails(device, grid=1, block=64, args=[expanded, out, 4])
    assert "'a' (shape (4, 3), strides (0, 1), i32), at element (0, 3)" in text
