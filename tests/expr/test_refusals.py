"""Operators, sizes and places that the language does not have: refused by name, at the user's line, with a way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flylab.expr as fx
from flylab.errors import NotSupportedError, TraceError
from tests.samples import cell, compile_body, kernel_of

T = "t = fx.thread_idx.x\n"
FP8 = "x = fx.Vector.filled(2, fx.Float8E4M3FN(1.5), fx.Float8E4M3FN)\n"

# The body (its first line is line 3), the line that is wrong, words of the message, words of the hint.
BODIES: dict[str, tuple[str, int, str, str]] = {
    "negative power": (T + "x = t ** -1", 4, "Int32 ** -1: an integer has no negative power", "x.to(fx.Float32) ** -1"),
    "power of Float64": ("x = A[0].to(fx.Float64) ** 4", 3, "fpowi of Float64", "x.to(fx.Float32)"),
    "power of an unsigned": (T + "x = 2 ** t.to(fx.Uint32)", 4, "exponent of the device", "x.to(fx.Int32)"),
    "tensor plus a number": ("x = A + 1.0", 3, "Tensor(f32, global, 64:1) has no operator '+'", "t.load()"),
    "number times a tensor": (T + "x = t * A", 4, "has no operator '*'", "t.load()"),
    "a tensor below a number": ("x = A < 1.0", 3, "has no operator '<'", "t.load()"),
    "minus a tensor": ("x = -A", 3, "has no operator '-'", "t.load()"),
    "length of a tensor": ("x = len(A)", 3, "len of Tensor", "t.shape[0]"),
    "number plus a pointer": ("x = 1 + fx.get_iter(A)", 3, "has no operator '+'", "p + n"),
    "pointer minus a number": ("x = fx.get_iter(A) - 1", 3, "has no operator '-'", "p + (-n)"),
    "an id called": ("x = gpu.grid_dim('y')", 3, "fx.grid_dim is no function", "gpu.grid_dim.y"),
    "a number in a format": (T + "x = f'{t:.2f}'", 4, "'t' is only known on the device", "Constexpr"),
    "a vector in a format": ("v = A.load()\nx = f'{v:.2f}'", 4, "'v' is only known on the device", "after the launch"),
    "literal of 70 bits": (T + "x = t + 2**70", 4, f"{2**70} beside a Int32", "convert"),
    "literal beyond Int64": (T + "x = t.to(fx.Int64) + 2**63", 4, f"{2**63} beside a Int64", "convert"),
    "literal in max": (T + "x = fx.max(t, -2**63 - 1)", 4, f"{-2**63 - 1} beside a Int32", "convert"),
    "literal beside a vector": ("x = A.load().to(fx.Int32) + 2**70", 3, f"{2**70} beside a Int32", "convert"),
    "negative beside Uint64": (T + "x = t.to(fx.Uint64) > -1", 4, "-1 beside a Uint64", ".to(fx.Int64)"),
    "pointer moved too far": ("x = fx.get_iter(A) + 2**70", 3, f"{2**70} beside a Int32", "convert"),
    "minus an 8-bit float": (FP8 + "y = -x", 4, "arithmetic in Float8E4M3FN", "Float32"),
    "size of an 8-bit float": (FP8 + "y = abs(x)", 4, "arithmetic in Float8E4M3FN", "Float32"),
    "8-bit floats compared": (FP8 + "y = x < x", 4, "arithmetic in Float8E4M3FN", "Float32"),
    "one 8-bit float": (FP8 + "y = abs(-x[0])", 4, "arithmetic in Float8E4M3FN", "Float32"),
    "one compared": (FP8 + "y = x[0] == 1.0", 4, "arithmetic in Float8E4M3FN", "Float32"),
    "huge vector": ("v = fx.Vector.filled(2**31, 0.0, fx.Float32)", 3, "2147483648 elements in one thread", "tiles"),
    "vector of many numbers": ("v = fx.Vector.from_elements([1.0] * 1025, fx.Float32)", 3, "1025 elements", "tiles"),
    "bitcast to many": (
        "v = fx.Vector.filled(512, 0.0, fx.Float32).bitcast(fx.Uint8)", 3, "2048 elements in one thread", "tiles"
    ),
    "shape in a list": ("v = fx.Vector.filled([4], 0.0, fx.Float32)", 3, "shape [4]", "a tuple of integers"),
    "shape of half": ("v = fx.Vector.filled(2.5, 0.0, fx.Float32)", 3, "shape 2.5", "integer"),
    "from nothing": ("v = fx.Vector.from_elements(None, fx.Float32)", 3, "from_elements(None)", "list of numbers"),
    "empty fragment": ("r = fx.make_rmem_tensor(0, fx.Float32)", 3, "0:1 has 0 elements", "at least 1"),
    "fragment with an empty mode": ("r = fx.make_rmem_tensor((4, 0), fx.Float32)", 3, "(4,0):(1,4)", "at least 1"),
    "huge fragment": ("r = fx.make_rmem_tensor(2**63, fx.Float32)", 3, "1 to 512 of Float32 in its 512", "tiles"),
    "copy of many atoms": (
        "v = fx.make_view(fx.get_iter(A), fx.make_layout((1, 8000), (1, 1)))\n"
        "fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), v, v)",
        4,
        "8000 atoms by each thread",
        "tiles",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_refused_at_its_line(name: str) -> None:
    body, line, message, hint = BODIES[name]
    with pytest.raises(TraceError) as caught:
        compile_body(body)
    assert caught.value.where is not None and caught.value.where.line == line, str(caught.value)
    assert message in caught.value.message and hint in str(caught.value.hint), str(caught.value)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda: fx.Integer(3), "fx.Integer is the base of formats"),
        (lambda: fx.Float(3.0), "fx.Float is the base of formats"),
        (lambda: fx.Numeric(3), "fx.Numeric is the base of formats"),
        (lambda: fx.Int32(3) ** -2, "Int32 ** -2: an integer has no negative power"),
        (lambda: fx.Uint64(7) > -1, "-1 beside a Uint64: their common format Uint64 holds 0"),
        (lambda: fx.Uint128(7) - -1, "-1 beside a Uint128"),
        (lambda: fx.Int32(7) + 2**70, "beside a Int32"),
    ],
)
def test_known_numbers(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(TraceError) as caught:
        make()
    assert message in caught.value.message and caught.value.hint


@pytest.mark.parametrize(
    "use", [lambda x: -x, abs, lambda x: x < x, lambda x: x + x, lambda x: fx.max(x, x), lambda x: x * 2.0]
)
def test_known_8_bit_floats_follow_the_rule_of_those_on_the_device(use: Callable[[Any], Any]) -> None:
    with pytest.raises(NotSupportedError, match="arithmetic in Float8E5M2 .*"):
        use(fx.Float8E5M2(1.5))
    assert fx.Float8E5M2(1.5).to(fx.Float32).value == 1.5


def test_what_still_has_a_meaning() -> None:
    assert f"{fx.Float32(1.5):.2f} {fx.Int32(3)}" == "1.50 Int32(3)"
    assert (fx.Uint32(7) > -1).value and (fx.Int128(1) + 2**100).value == 2**100 + 1
    compile_body("A[0] = (f'{fx.thread_idx.x}' == 'Int32(?)') * 1.0\nassert (A == A) and not (A != A)")


HOST = {
    "an element": ("A[0] = 3.0", "fill of"),
    "reading": ("x = A[0]", "load of"),
    "a pointer": ("fx.get_iter(A)[0] = 1.0", "fill of"),
    "registers": ("k(fx.make_rmem_tensor(4, fx.Float32)).launch(grid=1, block=64)", "make_rmem_tensor"),
    "a buffer": ("k(fx.rocdl.make_buffer_tensor(A)).launch(grid=1, block=64)", "make_buffer_tensor"),
    "a copy": ("fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), A, A)", "fx.copy"),
    "an id": ("x = fx.thread_idx.x", "gpu.thread_id"),
}


@pytest.mark.parametrize("name", HOST)
def test_what_only_a_kernel_can(name: str) -> None:
    body, message = HOST[name]
    launch = cell(f"""
@flyc.kernel
def k(A: fx.Tensor):
    A[0] = 1.0

@flyc.jit
def launch(A: fx.Tensor):
    {body}
    k(A).launch(grid=1, block=64)
""")["launch"]
    with pytest.raises(TraceError, match="only has a meaning inside an @flyc.kernel function") as caught:
        launch(np.zeros(64, np.float32))
    assert caught.value.where is not None and caught.value.where.line == 7
    assert message in caught.value.message and "in the kernel" in str(caught.value.hint)


def test_numpys_integers_are_integers() -> None:
    A = np.zeros((4, 16), np.float32)
    launch = cell("""
        import numpy as np

        @flyc.kernel
        def k(A: fx.Tensor):
            A[np.int64(3), np.array(2)] = A[np.uint8(0), fx.thread_idx.x] + 5.0
            fx.slice(A, (np.int32(1), None))[np.int16(1)] = 2.0

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=np.int64(2), block=(np.int32(1), np.uint8(1)), smem=np.int64(16))
    """)["launch"]
    launch(A)
    assert A[3, 2] == 5.0 and A[1, 1] == 2.0 and A.sum() == 7.0
    with pytest.raises(TraceError, match="coordinate 64 of 'A'"):
        compile_body("A[np.int64(64)] = 1.0".replace("np.int64(64)", "__import__('numpy').int64(64)"))


def test_division_of_narrow_integers_without_optimisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM has no such division at level 0, and ended the process."""
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", "0")
    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        A = np.array([low, high, low + 1, 100, 7, 0, high - 1, 5] * 8, dtype)
        B = np.roll(np.array([3, 7, 255 if low == 0 else -1, 2, 5, 1, high, 11] * 8).astype(dtype), 3)
        expected, rest = A // B, A % B
        kernel_of("t = fx.thread_idx.x\na = A[t]\nb = B[t]\nA[t] = a // b\nB[t] = a % b", "A: fx.Tensor, B: fx.Tensor")[
            "launch"
        ](A, B)
        assert np.array_equal(A, expected) and np.array_equal(B, rest)


def test_a_copy_within_the_limit_is_done() -> None:
    A = np.arange(2048, dtype=np.float32)
    kernel_of("""
        v = fx.logical_divide(A, 1)
        half = fx.make_layout((1, 1024), (1, 1))
        here = fx.make_view(fx.get_iter(v), half)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32), here, fx.make_view(fx.get_iter(v) + 1024, half))
    """)["launch"](A)
    assert np.array_equal(A[1024:], np.arange(1024))
