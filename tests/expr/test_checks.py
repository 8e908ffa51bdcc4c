"""Checks on the device: who stops, where, with which words; nobody else; and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import CheckFailed, DeviceError, TraceError
from flylab.expr.checks import device_check
from flylab.expr.emit import mlir_location
from tests.samples import cell, kernel_of


@pytest.fixture(params=["gfx942", "gfx950"], autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[None]:
    with flylab.use(f"emulated:{request.param}"):
        yield


@contextmanager
def region(name: str, *operands: Any) -> Iterator[Any]:
    """The inside of an `scf.if` or `scf.for`, built by hand."""
    from mlir import ir

    op = ir.Operation.create(
        name, operands=list(operands), regions=2 if name == "scf.if" else 1, loc=mlir_location()
    )
    block = op.regions[0].blocks.append(*[o.type for o in operands[:1] if name == "scf.for"],
                                        arg_locs=[mlir_location()] * (name == "scf.for"))
    with ir.InsertionPoint(block):
        yield block.arguments[0] if len(block.arguments) else None
        ir.Operation.create("scf.yield", loc=mlir_location())


# A thread's number first in its array; t < n is demanded in the four ways below.
@flyc.kernel
def marks_kernel(A: fx.Tensor, n: fx.Int32):
    t = fx.block_idx.x * 100 + fx.thread_idx.x
    A[t] = 1
    device_check(t < n, "t must be below n", hint="launch fewer threads")
    A[t] = 2


@flyc.jit
def marks(A: fx.Tensor, n: fx.Int32):
    marks_kernel(A, n).launch(grid=2, block=(50, 2))


def test_the_first_thread_where_it_is_false_is_told():
    a = np.zeros(200, np.int32)
    marks(a, 200)
    assert a.tolist() == [2] * 50 + [0] * 50 + [2] * 50 + [0] * 50
    with pytest.raises(CheckFailed) as caught:
        marks(np.zeros(200, np.int32), 123)
    error = caught.value
    assert error.message == "t must be below n\n    in block (1, 0, 0), thread (23, 0, 0) of kernel 'marks_kernel'"
    assert error.hint == "launch fewer threads"
    assert error.where is not None and error.where.file == __file__
    assert error.where.text.strip() == 'device_check(t < n, "t must be below n", hint="launch fewer threads")'
    assert isinstance(error, DeviceError) and isinstance(error, AssertionError)


def test_threads_of_higher_axes():
    launch = kernel_of("device_check(fx.thread_idx.z != 1, 'z')\nA[0] = 1")
    launch["device_check"] = device_check
    text = cell("@flyc.jit\ndef go(A: fx.Tensor):\n    k(A).launch(grid=(1, 2, 1), block=(5, 3, 2))")
    text["k"] = launch["k"]
    with pytest.raises(CheckFailed, match=r"block \(0, 0, 0\), thread \(0, 0, 1\)"):
        text["go"](np.zeros(4, np.int32))


@pytest.mark.parametrize("level", "0123")
def test_what_was_written_before_stays_and_nothing_after_is_done(level, monkeypatch):
    """The two stores are to one place: without a fence LLVM drops the first."""
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", level)
    a = np.zeros(200, np.int32)
    with pytest.raises(CheckFailed):
        marks(a, 10)
    # Wave 0 stops at lane 10, as a whole; wave 1 of the block and the other block may not have begun.
    assert a[:50].tolist() == [1] * 50


def test_in_a_cell():
    names = kernel_of("t = fx.thread_idx.x\n\ndevice_check(t != 40, 'not 40')", "A: fx.Tensor")
    names["device_check"] = device_check
    with pytest.raises(CheckFailed, match=r"thread \(40, 0, 0\)") as caught:
        names["launch"](np.zeros(64, np.float32))
    assert (caught.value.where.file, caught.value.where.line) == (names["FILE"], 5)


@flyc.kernel
def nested_kernel(A: fx.Tensor, low: fx.Int32, high: fx.Int32, steps: fx.Int32):
    t = fx.thread_idx.x
    with region("scf.if", (t >= low).ir_value()):
        device_check(t != 17, "seventeen")
        with region("scf.if", (t < high).ir_value()):
            device_check(A[t] >= 0, "negative")
    with region("scf.for", *(fx.Int32(x).ir_value() for x in (0, steps, 1))) as i:
        device_check(t + fx.Int32(i) != 70, "seventy")
        A[t] = A[t] + 1


@flyc.jit
def nested(A: fx.Tensor, low: fx.Int32, high: fx.Int32, steps: fx.Int32):
    nested_kernel(A, low, high, steps).launch(grid=1, block=64)


def first_failure(a: np.ndarray, low: int, high: int, steps: int) -> tuple[str, int] | None:
    """What the only wave meets first, by walking through the kernel in step."""
    for text, wrong in (("seventeen", [t for t in range(64) if t >= low and t == 17]),
                        ("negative", [t for t in range(64) if low <= t < high and a[t] < 0])):
        if wrong:
            return text, wrong[0]
    return next((("seventy", 70 - i) for i in range(steps) if 70 - i < 64), None)


@given(st.lists(st.integers(0, 63), max_size=3), st.integers(0, 64), st.integers(0, 64), st.integers(0, 9))
def test_inside_of_branches_and_loops(negative, low, high, steps):
    a = np.arange(64, dtype=np.int32)
    a[negative] = -5
    before, expected = a.copy(), first_failure(a, low, high, steps)
    if expected is None:
        nested(a, low, high, steps)
        np.testing.assert_array_equal(a, before + steps)
        return
    with pytest.raises(CheckFailed) as caught:
        nested(a, low, high, steps)
    text, thread = expected
    assert caught.value.message.startswith(f"{text}\n") and f"thread ({thread}, 0, 0)" in caught.value.message
    done = 70 - thread if text == "seventy" else 0
    np.testing.assert_array_equal(a, before + done)


def test_many_checks_keep_their_words():
    body = "t = fx.thread_idx.x\n" + "\n".join(f"device_check(A[t] != {n}, 'no {n}s')" for n in range(40))
    names = kernel_of(body)
    names["device_check"] = device_check
    for n in (0, 21, 39):
        a = np.full(64, 100, np.int32)
        a[33] = n
        with pytest.raises(CheckFailed, match=f"no {n}s\n.*thread \\(33, 0, 0\\)") as caught:
            names["launch"](a)
        assert caught.value.where.line == 4 + n


def test_what_is_known_costs_nothing():
    plain = kernel_of("A[0] = 1.0")["launch"]
    checked = kernel_of("device_check(A.shape[0] == 64, 'no')\ndevice_check(True, 'no')\nA[0] = 1.0")
    checked["device_check"] = device_check
    listings = [[i.text for i in flyc.compile(f, np.zeros(64, np.float32)).isa.kernels["k"].instructions]
                for f in (plain, checked["launch"])]
    assert listings[0] == listings[1]


def test_a_check_costs_a_compare_and_a_branch_of_the_wave():
    isa = flyc.compile(marks, np.zeros(200, np.int32), 1).isa.kernels["marks_kernel"]
    listing = [i.mnemonic for i in isa.instructions]
    decided = [m for m in listing if m.startswith(("v_cmp_", "s_cbranch_", "s_cmp_")) or "saveexec" in m]
    assert decided == ["v_cmp_gt_i32_e32", "s_cbranch_vccz"] or decided == ["v_cmp_le_i32_e32", "s_cbranch_vccnz"]
    assert [i.text for i in isa.instructions if i.mnemonic == "s_trap"] == ["s_trap 2"]


def test_a_number_is_checked_against_0():
    names = kernel_of("device_check(A[fx.thread_idx.x], 'a zero')")
    names["device_check"] = device_check
    a = np.ones(64, np.float32)
    names["launch"](a)
    a[9] = -0.0
    with pytest.raises(CheckFailed, match="a zero\n.*thread \\(9, 0, 0\\)"):
        names["launch"](a)


def test_a_launcher_checks_where_it_stands():
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[0] = 1

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Int32, flag: fx.Boolean):
            device_check(n % 256 == 0, "n is no multiple of 256", hint="pad it")
            device_check(flag, "no flag")
            k(A).launch(grid=1, block=1)
            device_check(n < 1024, "n is too large")
    """)
    names["device_check"] = device_check
    a = np.zeros(1, np.int32)
    for n, flag, message in ((255, True, "n is no multiple of 256"), (512, False, "no flag")):
        with pytest.raises(CheckFailed) as caught:
            names["launch"](a, n, flag)
        assert (caught.value.message, caught.value.where.file) == (message, names["FILE"]) and a[0] == 0
    assert caught.value.where.line == 8
    names["launch"](a, -256, True)
    assert a[0] == 1
    a[0] = 0
    with pytest.raises(CheckFailed, match="n is too large"):
        names["launch"](a, 1024, True)
    assert a[0] == 1, "what was launched before the check has run"


REFUSED: dict[str, tuple[str, str, str]] = {
    "false while tracing": ("device_check(A.shape[0] == 3, 'three, please', hint='pad')", "three, please", "pad"),
    "a false number": ("device_check(fx.Int32(0), 'not 0')", "not 0", ""),
    "a vector": ("v = A.load() > 0.0\ndevice_check(v, 'x')", "a check of 'v', which has 64 conditions", "each element"),
    "a text": ("device_check('yes', 'x')", "is not a number", "give an fx number"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    body, message, hint = REFUSED[name]
    names = kernel_of(body)
    names["device_check"] = device_check
    with pytest.raises(TraceError) as caught:
        names["launch"](np.zeros(64, np.float32))
    assert message in caught.value.message and hint in (caught.value.hint or "")
    assert caught.value.where.line == 3 + body.count("\n")


def test_known_to_be_false_but_perhaps_never_reached():
    names = kernel_of("with region('scf.if', (fx.thread_idx.x > n).ir_value()):\n    device_check(False, 'reached')",
                      "A: fx.Tensor, n: fx.Int32")
    names.update(device_check=device_check, region=region)
    names["launch"](np.zeros(64, np.int32), 63)
    with pytest.raises(CheckFailed, match="reached\n.*thread \\(62, 0, 0\\)"):
        names["launch"](np.zeros(64, np.int32), 61)


def test_an_assert_that_is_false_is_for_the_threads_that_get_there():
    """The last `else` of a machine of states, or a `while`: nobody else stops, and it is no error of tracing."""
    launch = kernel_of("""
        s = A[fx.thread_idx.x]
        if s == 0:
            A[fx.thread_idx.x] = 10
        elif s == 1:
            A[fx.thread_idx.x] = 11
        else:
            assert False, "no such state"
        for i in range(s - 1):
            assert 1 > 2
    """)["launch"]
    a = np.array([0, 1] * 32, np.int32)
    launch(a)
    assert a.tolist() == [10, 11] * 32
    with pytest.raises(CheckFailed, match=r"no such state\n.*thread \(5, 0, 0\)") as caught:
        launch(np.array([0, 1, 1, 0, 1, 7] * 11, np.int32)[:64])
    assert caught.value.where is not None and caught.value.where.line == 9
    with pytest.raises(AssertionError, match="^at once$") as raised:
        kernel_of("assert False, 'at once'")["launch"](a)
    assert type(raised.value) is AssertionError


@pytest.mark.parametrize(
    "text", ['f"too big: {t}"', '("too big", t)', 'f"too big: {fx.Vector.filled(2, t, fx.Int32)}"']
)
def test_a_text_of_numbers_of_the_device_is_refused(text):
    with pytest.raises(TraceError, match="a check whose text shows numbers of the device: .*too big") as caught:
        kernel_of(f"t = fx.thread_idx.x\nassert t < 2, {text}")["launch"](np.zeros(64, np.float32))
    assert 'fx.printf("x = {}", x)' in (caught.value.hint or "") and caught.value.where.line == 4


def test_outside_of_a_trace():
    device_check(1 < 2, "never said")
    with pytest.raises(TraceError, match="^said$"):
        device_check(1 > 2, "said")


def test_text_after_the_pass(golden: Callable[[str, str], None]):
    compiled = flyc.compile(marks, np.zeros(200, np.int32), 1)
    golden("check.txt", "\n\n".join(f"// ----- {n} -----\n{compiled.show(n)}" for n in ("ir", "convert-fly-to-rocdl"))
           + "\n")
