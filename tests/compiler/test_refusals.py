"""What has no meaning on the device, or is not there yet, is refused: by name, at its line, with a way to mend it."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import ArgumentError, FlylabError, LayoutError, NotSupportedError, TraceError
from tests.samples import cell, compile_body, kernel_of

A = np.zeros(64, np.float32)
COPY = "atom = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)\n"

# The body (its first line is line 3), the line that is wrong, words of the message, words of the hint.
BODIES: dict[str, tuple[str, int, str, str]] = {
    "one arm only": (
        "t = fx.thread_idx.x\nif t < 3:\n    x = 1.0\nA[t] = x",
        6,
        "'x' has a value only where the `if` on line 4 holds",
        "before the `if` on line 4",
    ),
    "two types": (
        "t = fx.thread_idx.x\nx = t\nif t < 3:\n    x = A[t]\nA[t] = x",
        5,
        "'x' is f32 where the `if` on line 5 holds, and i32",
        "fx.Float32(x)",
    ),
    "for over a number": (
        "t = fx.thread_idx.x\nfor i in t:\n    pass",
        4,
        "a `for` over 't', a single value",
        "range(n)",
    ),
    "yield": ("x = yield [1]", 3, "`yield` outside of a loop with init=", "results = yield"),
    "range_constexpr of one": (
        "for i in range_constexpr(fx.thread_idx.x):\n    pass",
        3,
        "only known on the device",
        "Constexpr[int]",
    ),
    "range_constexpr step 0": ("for i in range_constexpr(0, 4, 0):\n    pass", 3, "must not be zero", "not 0"),
    "const_expr of one": ("if fx.const_expr(fx.thread_idx.x < 3):\n    pass", 3, "const_expr", "plain `if`"),
    "int of one": ("t = fx.thread_idx.x\nn = int(t)", 4, "'t' is only known on the device", "fx.Int32(x)"),
    "match": ("match 3:\n    case 3:\n        pass", 3, "`Match` statements", "assignments"),
    "returned value": ("x = 1\nif x:\n    return x", 5, "kernel 'k' returns a value", "tensors"),
    "wrong number format": (
        COPY + "t = fx.logical_divide(A, 4)\nr = fx.make_rmem_tensor(4, fx.Int32)\n"
        "fx.copy(atom, fx.slice(t, (None, 0)), r)",
        6,
        "'r' holds Int32, the atom copies Float32",
        "fx.Int32",
    ),
    "too many elements": (
        COPY + "t = fx.logical_divide(A, 4)\nr = fx.make_rmem_tensor(8, fx.Float32)\n"
        "fx.copy(atom, fx.slice(t, (None, 0)), r)",
        6,
        "8",
        "as many elements",
    ),
    "too few elements": (
        COPY + "t = fx.logical_divide(A, 2)\nr = fx.make_rmem_tensor(4, fx.Float32)\n"
        "fx.copy(atom, fx.slice(t, (None, 0)), r)",
        6,
        "2 elements in its first mode, the atom moves 4",
        "64 bits",
    ),
    "strided source": (
        COPY + "s = fx.make_view(fx.get_iter(A), fx.make_layout((4, 8), (2, 8)))\n"
        "r = fx.make_rmem_tensor(4, fx.Float32)\nfx.copy(atom, fx.slice(s, (None, 0)), r)",
        6,
        "the stride of its first mode is 2",
        "32 bits",
    ),
    "copy of a number": (COPY + "fx.copy(atom, 3, A)", 4, "not a tensor", "fx.Tensor"),
    "copy with no atom": ("fx.copy(fx.UniversalCopy(32), A, A)", 3, "not a copy atom", "make_copy_atom"),
    "predicated copy": (COPY + "fx.copy(atom, A, A, pred=1)", 4, "pred", "Boolean"),
    "buffer copy of a plain tensor": (
        "atom = fx.make_copy_atom(fx.rocdl.BufferCopy32b(), fx.Float32)\n"
        "fx.copy(atom, A, fx.make_rmem_tensor(64, fx.Float32))",
        4,
        "'A' is in global memory",
        "make_buffer_tensor",
    ),
    "no such width": ("fx.UniversalCopy(12)", 3, "12", "8"),
    "atom of half an element": ("fx.make_copy_atom(fx.UniversalCopy(16), fx.Float32)", 3, "16 bits", "multiple of 32"),
    "unwritten fragment": ("r = fx.make_rmem_tensor(4, fx.Float32)\nA[0] = r[2]", 4, "element 2", "line 3"),
    "runtime index of a fragment": (
        "r = fx.make_rmem_tensor(64, fx.Float32)\nr[fx.thread_idx.x] = 0.0\ns = fx.make_rmem_tensor(4, fx.Float32)\n"
        "s[2] = 1.0\nA[0] = s[fx.thread_idx.x]",
        7,
        "element 0 of a fragment in registers is perhaps (its index is known only on the device) read, and nothing",
        "line 5",
    ),
    "an element of a vector set": (
        "v = fx.Vector.filled(4, 0.0, fx.Float32)\nv[0] = 1.0",
        4,
        "'v'[...] = ...: a vector is a value",
        "v = v.with_element(i, x)",
    ),
    "coordinate outside": ("x = fx.slice(A, 64)", 3, "coordinate 64 of 'A' 64:1", "0 to 63"),
    "negative coordinate": ("A[-1] = 0.0", 3, "coordinate -1 of 'A'", "not -1"),
    "coordinate of too many modes": ("A[0, 1] = 0.0", 3, "(0,1) does not fit 'A'", "one integer"),
    "vectors of two shapes": (
        "v = fx.Vector.filled(4, 0.0, fx.Float32)\nw = fx.Vector.filled(8, 0.0, fx.Float32)\nx = v + w",
        5,
        "'v' has shape (4,) and 'w' (8,)",
        "one shape",
    ),
    "vector as a condition": (
        "v = fx.Vector.filled(4, 0.0, fx.Float32)\nif v > 0.0:\n    pass",
        4,
        "4 truth values",
        "select",
    ),
    "store of another format": ("A.store(fx.Vector.filled(64, 1, fx.Int32))", 3, "Int32", "fx.Float32"),
    "store of too much": ("A.store(fx.Vector.filled(65, 1.0, fx.Float32))", 3, "65 elements", "as many elements"),
    "division of integers": ("x = fx.thread_idx.x / 2", 3, "Int32 has no operator '/'", "//"),
    "remainder of floats": ("x = A[0] % 2.0", 3, "Float32 has no operator '%'", "convert"),
    "division by zero": ("x = fx.thread_idx.x // 0", 3, "division by zero", "divisor"),
    "shift too far": ("x = fx.thread_idx.x << 32", 3, "a shift of Int32 by 32 bits", "0 to 31"),
    "two small floats": ("x = fx.Float8E4M3FN(1.0) + fx.Float8E5M2(1.0)", 3, "no common number format", ".to("),
    "text as a number": ("x = A[0] + fx.max('a', 1)", 3, "'a' (a str)", "number"),
    "runtime layout that hangs on a number": (
        "x = fx.composition(fx.make_layout((fx.thread_idx.x, 4), (4, 1)), fx.make_layout(4, 2))",
        3,
        "4:2 stays inside the outer mode ?{<=63}:4 is known only",
        "fx.assume(n, div=8)",
    ),
    "load of a runtime tensor": (
        "x = fx.make_view(fx.get_iter(A), fx.make_layout(fx.thread_idx.x)).load()",
        3,
        "how many elements it has is known only on the device",
        "tiles of known extents",
    ),
    "an assumption that does not hold": ("x = fx.assume(12, div=8)", 3, "assume(12, div=8", "that the number has"),
    "unknown dimension": ("x = gpu.thread_id('w')", 3, "'w'", '"x", "y" or "z"'),
    "unknown name": ("x = fx.Flot32(1.0)", 3, "fx has no name 'Flot32'", "fx.Float32"),
    "unknown name of rocdl": (
        "x = fx.rocdl.BuferCopy(32)",
        3,
        "fx.rocdl has no name 'BuferCopy'",
        "fx.rocdl.BufferCopy",
    ),
    "name of flyc": ("fx.from_dlpack()", 3, "fx has no name 'from_dlpack'", "it is flyc.from_dlpack"),
    "tensor as a condition": ("if A:\n    pass", 3, "as a condition", "is None"),
    "for over a tensor": ("for x in A:\n    pass", 3, "a `for` over", "range_constexpr"),
    "pointer moved by a float": ("fx.get_iter(A) + 2.5", 3, "moved by 2.5", "integer"),
    "layout of a float": ("fx.make_layout(fx.Float32(4.0), 1)", 3, "in a layout is a Float32", "fx.Int32"),
    "buffer of a fragment": (
        "fx.rocdl.make_buffer_tensor(fx.make_rmem_tensor(4, fx.Float32))",
        3,
        "not a tensor in global",
        "fx.Tensor",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_refused_at_its_line(name: str) -> None:
    body, line, message, hint = BODIES[name]
    with pytest.raises(FlylabError) as caught:
        compile_body(body)
    assert caught.value.where is not None, str(caught.value)
    assert caught.value.where.line == line, str(caught.value)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.skipif(sys.version_info < (3, 12), reason="the type statement is newer")
def test_type_statement_is_refused() -> None:
    with pytest.raises(NotSupportedError, match="`TypeAlias` statements"):
        compile_body("type T = int")


def test_async_kernels_are_refused() -> None:
    with pytest.raises(TraceError, match="no plain function"):
        flyc.compile(
            cell("""
            @flyc.kernel
            async def k(A: fx.Tensor):
                async with A:
                    pass

            @flyc.jit
            def launch(A: fx.Tensor):
                k(A).launch(grid=1, block=64)
        """)["launch"],
            A,
        )


def test_what_python_decides_is_let_through() -> None:
    """The counterpart of the refusals: the same statements over values known while tracing."""
    compiled = compile_body("""
        total = 0
        for i in range_constexpr(1, 4):
            if i == 2 and not False or False:
                continue
            total += i if i > 1 else 10
        while total > 13:
            total -= 1
        for name, x in zip("ab", [1.0, 2.0]):
            total += x
        total += sum(i for i in range(3) if i < 2)
        try:
            A[0] = fx.Float32(total)
        finally:
            pass
        with open("/dev/null"):
            del name
        assert total == 17
    """)
    assert "float 1.700000e+01" in compiled.llvm


LAUNCHES: dict[str, tuple[str, str, str]] = {
    "no grid": ("grid=0, block=64", "grid (0, 1, 1) has an extent below 1", "ceildiv"),
    "negative grid": ("grid=(1, -2), block=64", "grid (1, -2, 1)", "ceildiv"),
    "grid of floats": ("grid=1.5, block=64", "grid=1.5", "grid=(256,)"),
    "grid of four": ("grid=(1, 1, 1, 1), block=64", "grid=(1, 1, 1, 1)", "one to three"),
    "grid of truth": ("grid=True, block=64", "grid=True", "integer"),
    "float of the trace": ("grid=fx.Float32(2.0), block=64", "grid=", "integer"),
    "block too large": ("grid=1, block=(64, 32)", "2048 threads", "smaller block"),
    "no block": ("grid=1, block=()", "block=()", "one to three"),
    "stream of another kind": ("grid=1, block=64, stream=3", "stream=3", "fx.Stream"),
    "too much LDS": ("grid=1, block=64, smem=65537", "smem=65537", "65536 bytes on gfx942"),
    "negative LDS": ("grid=1, block=64, smem=-1", "smem=-1", "bytes"),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_bad_launches(name: str) -> None:
    launch, message, hint = LAUNCHES[name]
    with pytest.raises(TraceError) as caught:
        flyc.compile(
            cell(f"""
            @flyc.kernel
            def k(A: fx.Tensor):
                A[0] = 1.0

            @flyc.jit
            def launch(A: fx.Tensor):
                k(A).launch({launch})
        """)["launch"],
            A,
        )
    assert caught.value.where is not None and caught.value.where.line == 7
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


LAUNCHERS: dict[str, tuple[str, type[FlylabError], str, str]] = {
    "launches nothing": ("x = A", TraceError, "launches no kernel", ".launch("),
    "returns a value": ("k(A, 1, 2).launch(grid=1, block=64)\n    return A", TraceError, "returns a value", "tensors"),
    "forgets to launch": (
        "k(A, 1, 2)\n    k(A, 1, 2).launch(grid=1, block=64)",
        TraceError,
        "never launched",
        ".launch(",
    ),
    "too few arguments": (
        "k(A, 1).launch(grid=1, block=64)",
        ArgumentError,
        "missing a required argument: 'c'",
        "c: fx.Constexpr[int]",
    ),
    "unknown argument": ("k(A, 1, 2, d=2).launch(grid=1, block=64)", ArgumentError, "'d'", "A: fx.Tensor"),
    "number for a tensor": (
        "k(3, 1, 2).launch(grid=1, block=64)",
        TraceError,
        "'A: fx.Tensor' gets an int",
        "annotation",
    ),
    "float for an integer": (
        "k(A, 2.5, 2).launch(grid=1, block=64)",
        ArgumentError,
        "'n: fx.Int32' gets 2.5",
        "integer",
    ),
    "integer too large": ("k(A, 2**31, 2).launch(grid=1, block=64)", ArgumentError, "2147483648", "2147483647"),
    "wider number": (
        "k(A, fx.Int64(m), 2).launch(grid=1, block=64)",
        ArgumentError,
        "'n: fx.Int32' gets Int64",
        "fx.Int32(...)",
    ),
    "float for a constant": (
        "k(A, 1, 2.5).launch(grid=1, block=64)",
        ArgumentError,
        "'c: fx.Constexpr[int]' gets 2.5",
        "type int",
    ),
    "runtime number for a constant": (
        "k(A, 1, m).launch(grid=1, block=64)",
        TraceError,
        "'c' is a Constexpr",
        "fx.Int32",
    ),
    "thread id in a launcher": (
        "k(A, fx.thread_idx.x, 2).launch(grid=1, block=64)",
        TraceError,
        "inside an @flyc.kernel",
        "host",
    ),
}


@pytest.mark.parametrize("name", LAUNCHERS)
def test_bad_launchers(name: str) -> None:
    body, kind, message, hint = LAUNCHERS[name]
    launcher = cell(f"""
@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32, c: fx.Constexpr[int]):
    A[n] = 1.0

@flyc.jit
def launch(A: fx.Tensor, m: fx.Int32):
    {body}
""")["launch"]
    with pytest.raises(kind) as caught:
        flyc.compile(launcher, A, 3)
    assert caught.value.where is not None
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


def test_kernel_outside_of_a_launcher() -> None:
    names = kernel_of("A[0] = 1.0")
    with pytest.raises(TraceError, match="'k' was called outside of a launcher"):
        names["k"](A)


def test_kernel_in_a_kernel() -> None:
    names = cell("""
        @flyc.kernel
        def inner(A: fx.Tensor):
            pass

        @flyc.kernel
        def k(A: fx.Tensor):
            inner(A).launch(grid=1, block=64)

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    with pytest.raises(TraceError, match="'inner' was called in a kernel"):
        flyc.compile(names["launch"], A)


def test_launch_kept_for_later() -> None:
    kept: list[Any] = []
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            pass

        @flyc.jit
        def launch(A: fx.Tensor, kept: fx.Constexpr):
            kept(k(A))
    """)
    with pytest.raises(TraceError, match="never launched"):
        flyc.compile(names["launch"], A, kept.append)
    with pytest.raises(TraceError, match="outside of its launcher"):
        kept[0].launch(grid=1, block=64)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"name": "a b"}, "a kernel called 'a b'"),
        ({"name": ""}, "a kernel called ''"),
        ({"name": "llvm.abs"}, "a kernel called 'llvm.abs'"),
        ({"known_block_size": 0}, "known_block_size=0"),
        ({"known_block_size": (64, 2, 1, 1)}, "known_block_size="),
        ({"known_block_size": "64"}, "known_block_size='64'"),
    ],
)
def test_bad_options_of_a_kernel(options: dict[str, Any], message: str) -> None:
    def k(A: fx.Tensor) -> None:
        pass

    with pytest.raises(TraceError) as caught:
        flyc.kernel(**options)(k)
    assert message in caught.value.message and caught.value.hint
    assert caught.value.where is not None and caught.value.where.file == __file__


def test_launch_with_another_block_than_declared() -> None:
    names = cell("""
        @flyc.kernel(known_block_size=(64, 1, 1))
        def k(A: fx.Tensor):
            pass

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=32)
    """)
    with pytest.raises(TraceError, match=r"block \(32, 1, 1\), declared known_block_size=\(64, 1, 1\)"):
        flyc.compile(names["launch"], A)


def star(*A: fx.Tensor) -> None:
    pass


def number(A: int) -> None:
    pass


def unresolved(A: fx.Tensro) -> None:  # type: ignore[name-defined]
    pass


@pytest.mark.parametrize(
    "function, message, hint",
    [
        (star, r"takes \*A", "names each"),
        (number, "annotated <class 'int'>", "fx.Constexpr"),
        (unresolved, "annotation 'fx.Tensro' of parameter 'A' cannot be resolved", "importable"),
        (lambda A: None, "@flyc.kernel on <function", "`def`"),
        (3, "@flyc.kernel on 3", "`def`"),
    ],
)
def test_bad_signatures(function: Any, message: str, hint: str) -> None:
    with pytest.raises(TraceError, match=message) as caught:
        flyc.kernel(function)
    assert hint in (caught.value.hint or "")


def test_function_without_source() -> None:
    names: dict[str, Any] = {"fx": fx, "flyc": flyc}
    exec(
        "@flyc.kernel\ndef k(A: fx.Tensor): pass\n@flyc.jit\ndef launch(A: fx.Tensor): k(A).launch(grid=1, block=64)\n",
        names,
    )
    with pytest.raises(TraceError, match="source text of 'launch' cannot be found") as caught:
        flyc.compile(names["launch"], A)
    assert "linecache" in (caught.value.hint or "")


def test_compile_of_something_else() -> None:
    with pytest.raises(ArgumentError, match="flyc.compile of 3"):
        flyc.compile(3)


def test_device_operations_outside_of_a_trace() -> None:
    with pytest.raises(TraceError, match="inside an @flyc.kernel"):
        fx.make_rmem_tensor(4, fx.Float32)
    with pytest.raises(TraceError, match="inside an @flyc.kernel"):
        fx.Vector.filled(4, 0.0, fx.Float32)


def test_unknown_names_are_attribute_errors_too() -> None:
    """So that `hasattr` and completion work."""
    assert not hasattr(fx, "Flot32")
    with pytest.raises(LayoutError):
        fx.make_layout((4, 4), (1, 2, 3))


def test_an_expression_that_python_cannot_nest() -> None:
    with pytest.raises(FlylabError, match="nested too deeply") as caught:
        compile_body("A[0] = A[1]" + " + 0.5" * 900)
    assert caught.value.where is not None and "range_constexpr" in str(caught.value.hint)


@pytest.mark.parametrize("body", [
    "xs = []\nfor i in range(A.shape[0]):\n    xs.append(i)",
    "for i, (a, b) in range(0, 9, init=[fx.Int32(1)]):\n    (a,) = yield [a]",
])
def test_an_error_leaves_nothing_open(body: str) -> None:
    """A context that stayed would abort the process when Python ends."""
    from mlir import ir

    with pytest.raises((TraceError, ValueError)):
        compile_body(body)
    assert ir.Context.current is None


def test_an_error_where_arms_are_merged_leaves_no_insertion_point() -> None:
    """Python would not end with one."""
    from mlir import ir

    with pytest.raises(TraceError, match="leads to itself"):
        compile_body("t = fx.thread_idx.x\nx = [1]\nx.append(x)\nif t < 3:\n    x = [t, x]\nA[t] = x[0]")
    with pytest.raises(ValueError):
        ir.InsertionPoint.current  # noqa: B018
