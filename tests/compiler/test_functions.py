"""Kernels and launchers as Python functions: annotations, defaults, methods, closures, factories, nesting."""

from __future__ import annotations

import textwrap
import traceback
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.compiler.rewrite import rewrite
from flylab.errors import FlylabError
from tests.samples import cell


def filled(launcher: Any, *args: Any, **named: Any) -> float:
    """Run a launcher on 64 zeros; the number that it set them all to."""
    A = np.zeros(64, np.float32)
    launcher(A, *args, **named)
    assert (A[0] == A).all()
    return float(A[0])


PAIR = """
{future}
@flyc.kernel
def k(A: {tensor}, n: {int32}, c: {constant}):
    A[fx.thread_idx.x] = fx.Float32(n * c)

@flyc.jit
def launch(A: {tensor}, n: {int32}, c: {constant} = 3):
    k(A, n, c).launch(grid=1, block=64)
"""
PLAIN = {"tensor": "fx.Tensor", "int32": "fx.Int32", "constant": "fx.Constexpr[int]"}
QUOTED = {name: repr(text) for name, text in PLAIN.items()}


@pytest.mark.parametrize(
    "future, kinds",
    [
        ("", PLAIN),
        ("", QUOTED),
        ("from __future__ import annotations", PLAIN),
    ],
)
def test_both_kinds_of_annotations(future: str, kinds: dict[str, str]) -> None:
    launch = cell(PAIR.format(future=future, **kinds))["launch"]
    assert filled(launch, 5) == 15
    assert filled(launch, n=5, c=4) == 20


def test_annotation_of_a_nested_launcher_is_evaluated_as_its_module_says() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            kind = fx.Int32

            @flyc.jit
            def helper(x: kind):
                return x * 2
            A[fx.thread_idx.x] = fx.Float32(helper(fx.Int32(21)))

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    assert filled(names["launch"]) == 42


def test_keyword_only_positional_only_and_defaults() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, /, a: fx.Constexpr[int] = 2, *, b: fx.Constexpr[int] = 30, c):
            A[fx.thread_idx.x] = fx.Float32(a + b + c)

        @flyc.jit
        def launch(A: fx.Tensor, /, a: fx.Constexpr[int] = 1, *, c: fx.Int32 = 400):
            k(A, a, c=c).launch(grid=1, block=64)
    """)
    assert filled(names["launch"]) == 431
    assert filled(names["launch"], 2, c=500) == 532
    compiled = flyc.compile(names["launch"], np.zeros(64, np.float32), 5, c=6)
    assert filled(compiled, 5, c=600) == 635


def test_method_with_private_names_and_super() -> None:
    names = cell("""
        class Base:
            def factor(self):
                return 10

        class Kernels(Base):
            def __init__(self):
                self.__secret = 7

            @flyc.kernel
            def k(self, A: fx.Tensor):
                A[fx.thread_idx.x] = fx.Float32(self.__secret * super().factor())

            @flyc.jit
            def launch(self, A: fx.Tensor):
                self.k(A).launch(grid=1, block=64)
    """)
    assert filled(names["Kernels"]().launch) == 70
    assert (
        filled(flyc.compile(names["Kernels"]().launch, np.zeros(64, np.float32)).launcher.__get__(names["Kernels"]()))
        == 70
    )


def test_factory_with_two_captured_names_of_which_one_is_used_in_a_dead_arm() -> None:
    names = cell("""
        def make(used, unused):
            @flyc.kernel
            def k(A: fx.Tensor):
                if fx.const_expr(used is None):
                    A[0] = unused.anything.at.all
                A[fx.thread_idx.x] = fx.Float32(used)

            @flyc.jit
            def launch(A: fx.Tensor):
                k(A).launch(grid=1, block=64)

            return launch

        one, two = make(1, None), make(2, None)
    """)
    assert (filled(names["one"]), filled(names["two"]), filled(names["one"])) == (1, 2, 1)


def test_decorators_below_and_above() -> None:
    names = cell("""
        import functools

        def plus_one(f):
            @functools.wraps(f)
            def wrapper(*args, **named):
                f(*args, **named)
                args[0][fx.thread_idx.x] = args[0][fx.thread_idx.x] + 1.0
            return wrapper

        def marked(f):
            f.mark = "yes"
            return f

        @marked
        @flyc.kernel
        @plus_one
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = 3.0

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    assert names["k"].mark == "yes"
    assert filled(names["launch"]) == 4


@pytest.mark.parametrize("indent, make", [("", ""), ("    ", "def make():\n")])
def test_a_launcher_that_calls_itself_is_rewritten_at_each_level(indent: str, make: str) -> None:
    text = """
@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = 1.0

@flyc.jit
def launch(A: fx.Tensor, n: fx.Constexpr[int], m: fx.Int32):
    if n:
        launch(A, n - 1, m)
    else:
        if m > 0:
            k(A).launch(grid=1, block=64)
"""
    names = cell(make + textwrap.indent(text, indent) + ("    return launch" if make else ""))
    launch = names["make"]() if make else names["launch"]
    for n in (0, 1, 2):
        launch(np.zeros(64, np.float32), n, 1)
        assert "scf.if" in launch.show("ir")


def test_a_kernel_and_a_method_find_the_decorated_names() -> None:
    names = cell("""
        class Two:
            number = 2

            @staticmethod
            def twice(x):
                return x * Two.number

            @flyc.kernel
            def k(self, A: fx.Tensor):
                A[fx.thread_idx.x] = fx.Float32(Two.twice(21))

            @flyc.jit
            def launch(self, A: fx.Tensor):
                self.k(A).launch(grid=1, block=64)

        @flyc.kernel
        def itself(A: fx.Tensor):
            itself(A)

        @flyc.jit
        def launch(A: fx.Tensor):
            itself(A).launch(grid=1, block=64)
    """)
    assert filled(names["Two"]().launch) == 42
    with pytest.raises(FlylabError, match="kernel 'itself' was called in a kernel"):
        filled(names["launch"])


def test_parameters_called_as_those_of_flylab() -> None:
    names = cell("""
        @flyc.kernel
        def k(self: fx.Tensor, launcher: fx.Constexpr[int]):
            for function in each(function=launcher):
                self[fx.thread_idx.x] = fx.Float32(function)

        def each(function):
            return [function]

        @flyc.jit
        def launch(self: fx.Tensor, launcher: fx.Constexpr[int], function: fx.Int32, args: fx.Int32):
            k(self=self, launcher=launcher).launch(grid=1, block=64)
    """)
    A = np.zeros(64, np.float32)
    named = {"self": A, "launcher": 3, "function": 4, "args": 5}
    names["launch"](**named)
    assert (A == 3).all()
    A[:] = 0
    flyc.compile(names["launch"], **named)(**named)
    assert (A == 3).all()


@pytest.mark.parametrize("value", [3, fx.Int32(3), fx.Int8(3), np.int64(3)])
def test_a_constant_may_be_named_by_a_number_of_the_device(value: Any) -> None:
    launch = cell(PAIR.format(future="", **{**PLAIN, "constant": "fx.Constexpr[fx.Int32]"}))["launch"]
    assert filled(launch, 5, value) == 15
    for bad, hint in ((2**31, "2147483647"), (2.5, "integer"), ("3", "integer")):
        with pytest.raises(FlylabError, match="Constexpr.Int32.' gets") as caught:
            filled(launch, 5, bad)
        assert hint in str(caught.value.hint)


def test_recursion_closures_nonlocal_and_globals() -> None:
    names = cell("""
        count = 0

        @flyc.kernel
        def k(A: fx.Tensor):
            global count
            count += 1
            total = 0

            def add(n):
                nonlocal total
                total += n
                return n and add(n - 1)

            add(4)
            A[fx.thread_idx.x] = fx.Float32(total + [x for x in (1, 2)][-1])

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    assert filled(names["launch"]) == 12
    assert names["count"] == 1


def test_launchers_call_launchers_and_launch_several_kernels() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, n: fx.Constexpr[int]):
            A[fx.thread_idx.x] = A[fx.thread_idx.x] * 10.0 + fx.Float32(n)

        @flyc.jit
        def inner(A: fx.Tensor, n: fx.Constexpr[int]):
            k(A, n).launch(grid=1, block=64)

        @flyc.jit
        def launch(A: fx.Tensor):
            inner(A, 1)
            k(A, 2).launch(grid=1, block=64)
            for n in range_constexpr(3, 5):
                inner(A, n)
    """)
    assert filled(names["launch"]) == 1234
    assert list(names["launch"].compiled().functions) == ["k", "k_1", "k_2", "k_3"]


def test_a_part_of_a_tensor_is_passed_to_a_kernel() -> None:
    names = cell("""
        @flyc.kernel
        def k(T: fx.Tensor):
            T[fx.thread_idx.x] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor, row: fx.Int32):
            k(fx.slice(A, (row, None))).launch(grid=1, block=A.shape[1])
    """)
    A = np.zeros((4, 8), np.float32)
    names["launch"](A[:, ::2], 2)
    expected = np.zeros((4, 8), np.float32)
    expected[2, ::2] = 1
    assert np.array_equal(A, expected)


def test_rewriting_keeps_every_statement_and_its_line() -> None:
    names = cell('''
        @flyc.kernel
        def k(A: fx.Tensor):
            """A docstring
            of two lines."""
            x = 1  # a comment

            for i in range_constexpr(
                3
            ):
                if (i > 1 and
                        x):
                    x += i; y = 2
            else:
                del i
            while False: pass
            def f(a=lambda: 3): return a() if x else not a
            assert x
    ''')
    rewritten = names["k"].rewritten
    lines = {text.strip(): line for text, line in zip(str(rewritten).splitlines(), rewritten.lines, strict=True)}
    assert lines["x = 1"] == 5
    assert lines["x += i"] == lines["y = 2"] == 12
    assert lines["del i"] == 14
    assert lines["__flylab__.asserts(x, lambda: None)"] == 17
    assert lines["__loop_1__ = __flylab__.for_call(0, range_constexpr, 3)"] == 7
    assert "def f(a=lambda: 3):" in lines
    assert "return __flylab__.choose(x, lambda: __flylab__.callee(a)(), lambda: __flylab__.not_(a))" in str(rewritten)
    again = rewrite(names["k"].source, names["k"].function)
    assert str(again) == str(rewritten), "rewriting changes nothing but its own copy"


def test_show_gives_each_word_and_refuses_others() -> None:
    names = cell(PAIR.format(future="", **PLAIN))
    with pytest.raises(FlylabError, match="'k' has not been compiled yet"):
        names["k"].show("isa")
    flyc.compile(names["launch"], np.zeros(64, np.float32), 1)
    k = names["k"]
    assert k.show("source").startswith("@flyc.kernel\ndef k(")
    assert k.show("rewritten").startswith("def k(")
    assert "gpu.thread_id" in k.show("ir")
    assert "// ----- convert-fly-to-rocdl -----" in k.show("passes")
    assert "define amdgpu_kernel void @k(" in k.show("llvm")
    assert "s_endpgm" in k.show("isa")
    with pytest.raises(FlylabError, match="nothing called 'asm'") as caught:
        k.show("asm")
    assert "isa" in (caught.value.hint or "")


def test_objects_say_what_they_are() -> None:
    names = cell(PAIR.format(future="", **PLAIN))
    assert repr(names["k"]) == "<flyc.kernel k(A: fx.Tensor, n: fx.Int32, c: fx.Constexpr[int])>"
    assert repr(flyc.compile(names["launch"], np.zeros(64, np.float32), 1)) == "<compiled launch for gfx942: k>"
    assert str(fx.Constexpr[int]) == "Constexpr[int]"


def test_an_error_of_the_users_code_shows_the_users_frames() -> None:
    """A NameError in a kernel: the launch, the launcher's line, the kernel's line, and hardly a frame of flylab."""
    names = cell(
        "@flyc.kernel\ndef k(A: fx.Tensor):\n    helper(A)\n\n"
        "def helper(A):\n    A[threadIdx.x] = 0.0\n\n"
        "@flyc.jit\ndef launch(A: fx.Tensor):\n    k(A).launch(grid=1, block=64)\n"
    )
    with pytest.raises(NameError, match="threadIdx") as caught:
        names["launch"](np.zeros(64, np.float32))
    frames = [(f.name, f.lineno) for f in traceback.extract_tb(caught.value.__traceback__)]
    assert [f for f in frames if f[0] in ("launch", "k", "helper")] == [("launch", 10), ("k", 3), ("helper", 6)]
    assert len(frames) <= 6


def test_an_error_inside_of_flylab_keeps_its_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    names = cell("@flyc.kernel\ndef k(A: fx.Tensor):\n    A[0] = 0.0\n\n"
                 "@flyc.jit\ndef launch(A: fx.Tensor):\n    k(A).launch(grid=1, block=64)\n")

    monkeypatch.setattr("flylab.passes.pipeline.STEPS", (None,))
    with pytest.raises(AttributeError) as caught:
        names["launch"](np.zeros(64, np.float32))
    assert "build" in [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
