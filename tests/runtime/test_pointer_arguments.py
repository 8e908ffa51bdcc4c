"""Raw pointers as launch arguments, and types of the user's own."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError, CheckFailed, NotSupportedError, OutOfBounds
from tests.samples import cell

CHIPS = ("gfx942", "gfx950")
SCALE = """
@flyc.kernel
def k(P: fx.Pointer, n: fx.Int32):
    i = fx.thread_idx.x
    if i < n:
        P[i] = P[i] * 2.0

@flyc.jit
def scale(P: fx.Pointer, n: fx.Int32, skip: fx.Int32 = 0):
    k(P + skip, n).launch(grid=1, block=64)
"""
scale = cell(SCALE)["scale"]
FORMS: dict[str, Any] = {
    "int": lambda a: flyc.from_c_void_p(fx.Float32, a.ctypes.data, nbytes=a.nbytes),
    "ctypes": lambda a: flyc.from_c_void_p(fx.Float32, ctypes.c_void_p(a.ctypes.data), nbytes=a.nbytes),
    "tensor": lambda a: a,
    "tensor that more is said of": flyc.from_dlpack,
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("chip", CHIPS)
def test_a_pointer_reaches_the_memory_there(name: str, chip: str) -> None:
    a = np.arange(10, dtype=np.float32)
    with flylab.use(chip):
        scale(FORMS[name](a), 4, skip=3)
    assert np.array_equal(a, [0, 1, 2, 6, 8, 10, 12, 7, 8, 9])


def test_a_torch_data_ptr() -> None:
    torch = pytest.importorskip("torch")
    t = torch.arange(10, dtype=torch.float32)
    scale(flyc.from_c_void_p(fx.Float32, t.data_ptr(), nbytes=40), 10)
    assert torch.equal(t, 2 * torch.arange(10, dtype=torch.float32))


def test_one_compilation_serves_all_addresses() -> None:
    scale = cell(SCALE)["scale"]
    for n in (4, 60):
        a = np.ones(n, np.float32)
        scale(flyc.from_c_void_p(fx.Float32, a.ctypes.data, nbytes=a.nbytes), n)
        assert (a == 2).all()
    assert sum(map(len, scale.specialisations.values())) == 1
    halves = np.ones(4, np.float16)
    scale(halves, 4)
    assert (halves == 2).all() and sum(map(len, scale.specialisations.values())) == 2


def test_nothing_is_touched_that_is_not_known_to_be_memory() -> None:
    a = np.zeros(16, np.float32)
    with pytest.raises(OutOfBounds, match="right after the end of 'P'"):
        scale(flyc.from_c_void_p(fx.Float32, a.ctypes.data, nbytes=32), 9)
    with pytest.raises(ArgumentError, match="nobody says how many bytes lie there") as caught:
        scale(flyc.from_c_void_p(fx.Float32, a.ctypes.data), 9)
    assert "nbytes=" in (caught.value.hint or "")
    with pytest.raises(OutOfBounds):
        scale(flyc.from_c_void_p(fx.Float32, None), 1)
    with pytest.raises(OutOfBounds, match="'P'"):
        scale(flyc.from_c_void_p(fx.Float32, a.ctypes.data, nbytes=64, writable=False), 1)


def test_a_pointer_into_a_tensor_beside_it_needs_no_size() -> None:
    both = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, P: fx.Pointer):
            P[fx.thread_idx.x] = A[fx.thread_idx.x]

        @flyc.jit
        def both(A: fx.Tensor, P: fx.Pointer):
            k(A, P).launch(grid=1, block=4)
    """)["both"]
    a = np.arange(8, dtype=np.float32)
    both(a, flyc.from_c_void_p(fx.Float32, a.ctypes.data + 16))
    assert np.array_equal(a, [0, 1, 2, 3, 0, 1, 2, 3])
    with pytest.raises(OutOfBounds, match="'P'"):
        both(a, flyc.from_c_void_p(fx.Float32, a.ctypes.data + 20))


def test_null_can_be_passed_and_asked_for() -> None:
    maybe = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, P: fx.Pointer):
            A[0] = 0.0
            if fx.ptrtoint(P) != 0:
                A[0] = P[0]

        @flyc.jit
        def maybe(A: fx.Tensor, P: fx.Pointer):
            k(A, P).launch(grid=1, block=1)
    """)["maybe"]
    a, b = np.ones(1, np.float32), np.full(1, 7, np.float32)
    maybe(a, flyc.from_c_void_p(fx.Float32, None))
    assert a[0] == 0
    maybe(a, b)
    assert a[0] == 7


def test_null_that_is_read_is_called_so() -> None:
    """With bytes, without, and as a ctypes pointer; an empty array is called empty."""
    for null in (0, None, ctypes.c_void_p()):
        for nbytes in (None, 256):
            with pytest.raises(OutOfBounds, match="at address 0x0: 'P' is a null pointer") as caught:
                scale(flyc.from_c_void_p(fx.Float32, null, nbytes=nbytes), 3)
            assert "the address of memory" in str(caught.value.hint)


def test_hints_name_the_format_that_was_given() -> None:
    for number in (fx.Float16, fx.Int32, fx.Uint8):
        with pytest.raises(ArgumentError, match="nobody says how many bytes lie there") as caught:
            scale(flyc.from_c_void_p(number, 4096), 3)
        assert f"flyc.from_c_void_p(fx.{number.dtype}, address, nbytes=...)" in str(caught.value.hint)


def test_pointers_go_on_to_kernels_and_tensors_give_theirs() -> None:
    names = cell("""
        @flyc.kernel
        def k(P: fx.Pointer, Q, n: fx.Int32):
            view = fx.make_view(P, fx.make_layout(n, 1))
            view[fx.thread_idx.x] = Q[fx.thread_idx.x]

        @flyc.jit
        def launch(A: fx.Tensor, Q, n: fx.Int32):
            k(fx.get_iter(A), Q, n).launch(grid=1, block=n)
            k(A, Q, n).launch(grid=1, block=n)
    """)
    a, b = np.zeros(5, np.int32), np.arange(5, dtype=np.int32)
    names["launch"](a, flyc.from_c_void_p(fx.Int32, b.ctypes.data, nbytes=20), 5)
    assert np.array_equal(a, b)


def test_the_alignment_of_a_pointer() -> None:
    wide = cell("""
        @flyc.kernel
        def k(P: fx.Pointer):
            fx.recast_iter(fx.Int64, P)[0] = fx.Int64(1)

        @flyc.jit
        def wide(P: fx.Pointer):
            k(P).launch(grid=1, block=1)
    """)["wide"]
    a = np.zeros(8, np.int32)
    at = a.ctypes.data
    for said, checks in ((None, 1), (8, 0)):
        argument = flyc.from_c_void_p(fx.Int32, at, nbytes=32, assumed_align=said)
        assert len(flyc.compile(wide, argument).checks["k"]) == checks
    wide(flyc.from_c_void_p(fx.Int32, at, nbytes=32))
    with pytest.raises(CheckFailed, match="no multiple of 8 bytes"):
        wide(flyc.from_c_void_p(fx.Int32, at + 4, nbytes=28))
    with pytest.raises(ArgumentError, match="'P' starts at the address 0x.*, no multiple of its 8 bytes of alignment"):
        wide(flyc.from_c_void_p(fx.Int32, at + 4, nbytes=28, assumed_align=8))


tensor_and_constant = cell("""
    @flyc.jit
    def tensor_and_constant(A: fx.Tensor, c: fx.Constexpr):
        pass
""")["tensor_and_constant"]
WRONG: dict[str, tuple[Any, str, str]] = {
    "address": (lambda: flyc.from_c_void_p(fx.Float32, 1.5), "of 1.5 (a float)", "an int, a ctypes.c_void_p"),
    "array": (lambda: flyc.from_c_void_p(fx.Float32, np.zeros((4, 2), np.float32)),
              "of a numpy.ndarray of shape (4, 2), float32", "an int"),
    "array first": (lambda: flyc.from_c_void_p(np.zeros(999), 4096),
                    "from_c_void_p of a numpy.ndarray of shape (999,), float64: the format comes first", "fx.Float32"),
    "address for a tensor": (lambda: tensor_and_constant(4096, 1), "'A' is an fx.Tensor", "annotation fx.Pointer"),
    "negative": (lambda: flyc.from_c_void_p(fx.Float32, -4), "of -4", "an int"),
    "bytes": (lambda: flyc.from_c_void_p(fx.Float32, 4096, nbytes=-1), "nbytes=-1", "0 or more"),
    "shape": (lambda: flyc.from_c_void_p(fx.Float32, 4096, shape=(2, -1)), "shape=(2, -1)", "number of elements"),
    "small": (lambda: flyc.from_c_void_p(fx.Float32, 4096, shape=4, nbytes=12), "bytes 0 to 16 of a storage of 12",
              "stays inside"),
    "space": (lambda: flyc.from_c_void_p(fx.Float32, 4096, address_space=fx.AddressSpace.Shared), "shared memory",
              "global memory"),
    "bare address": (lambda: scale(4096, 1), "'P: fx.Pointer' gets 4096 (an int), which does not say what lies there",
                     "flyc.from_c_void_p(fx.Float32, address, nbytes=...)"),
    "list": (lambda: flyc.from_dlpack([1.0]), "gets a list", "torch tensor"),
    "numpy for torch": (lambda: flyc.from_torch_tensor(np.zeros(3)), "from_torch_tensor of an ndarray", "from_dlpack"),
    "twice": (lambda: flyc.from_dlpack(flyc.from_dlpack(np.zeros(3))), "a launch argument already", "tensor itself"),
    "Boolean": (lambda: flyc.from_c_void_p(fx.Boolean, 4096), "from_c_void_p to Boolean: less than a byte", "fx.Uint8"),
    "4 bits": (lambda: flyc.from_c_void_p(fx.Float4E2M1FN, 4096), "less than a byte has no address", "fx.Uint8"),
    "no shape": (lambda: tensor_and_constant(flyc.from_c_void_p(fx.Int8, 4096), 1), "'A' is an fx.Tensor, and gets P",
                 "annotate it A: fx.Pointer, or"),
    "constant": (lambda: tensor_and_constant(np.zeros(3), flyc.from_dlpack(np.zeros(3))),
                 "'c: fx.Constexpr' gets TensorArgument(f64, global, 3:1), and is a constant", "c: fx.Tensor"),
    "no type": (lambda: flyc.JitArgumentRegistry.register(3), "register(3): an int, not a class", "the class"),
    "own type": (lambda: flyc.JitArgumentRegistry.register(fx.Int32), "register(Int32)", "of your own"),
}


@pytest.mark.parametrize("name", WRONG)
def test_refused(name: str) -> None:
    make, message, hint = WRONG[name]
    with pytest.raises(ArgumentError) as caught:
        make()
    assert message in caught.value.message and hint in (caught.value.hint or "")


@dataclass
class Image:
    pixels: Any
    gain: float = 1.0


class Photo(Image):
    pass


@pytest.fixture
def registered() -> Any:
    @flyc.JitArgumentRegistry.register(Image, dsl_type=fx.Tensor)
    def make(image: Image) -> Any:
        return flyc.from_dlpack(image.pixels).mark_layout_dynamic()

    yield make
    flyc.JitArgumentRegistry.unregister(Image)


GAIN = """
@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] + 1.0

@flyc.jit
def brighten(A{annotation}):
    k(A).launch(grid=1, block=A.shape[0])
"""


@pytest.mark.parametrize("annotation", [": fx.Tensor", ""])
def test_a_type_of_the_users_is_an_argument(registered: Any, annotation: str) -> None:
    brighten = cell(GAIN.replace("{annotation}", annotation))["brighten"]
    for kind in (Image, Photo):
        for n in (3, 9):
            image = kind(np.zeros(n, np.float32))
            brighten(image)
            brighten(image)
            assert (image.pixels == 2).all()
    assert sum(map(len, brighten.specialisations.values())) == 1
    assert flyc.JitArgumentRegistry.get(Photo) is registered


def test_a_type_that_nobody_registered_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'A' is an fx.Tensor, and gets an Image"):
        cell(GAIN.replace("{annotation}", ": fx.Tensor"))["brighten"](Image(np.zeros(3, np.float32)))
    with pytest.raises(NotSupportedError, match="register_jit_arg"):
        flyc.JitArgumentRegistry.register_jit_arg(Image, fx.Tensor)


def test_what_is_compiled_for() -> None:
    with flylab.use("gfx950"):
        assert flyc.get_backend().target == flyc.GPUTarget("rocm", "gfx950", 64)
    assert flyc.get_backend(flyc.compile_backend_name(), arch="gfx942").target.arch == "gfx942"
    assert isinstance(flyc.compile(scale, np.zeros(4, np.float32), 4), flyc.CompiledFunction)
