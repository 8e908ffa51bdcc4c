"""Users' cases L12, L23 and L24: where a kernel is written, what is around it, and what an error calls its place."""

from __future__ import annotations

import importlib.util
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
import flylab.expr as fx
from flylab.errors import FlylabError
from tests.samples import cell


def filled(launcher: Any, *args: Any) -> list[int]:
    """Run a launcher on 64 zeros; the numbers that it left, each once."""
    A = np.zeros(64, np.int32)
    launcher(A, *args)
    return sorted(set(A.tolist()))


# L12. A text, the expression that gives its launcher, and the numbers that it leaves.
KERNEL = "@flyc.kernel\ndef k(A: fx.Tensor):\n    if fx.thread_idx.x < {}:\n        A[fx.thread_idx.x] = {}\n"
LAUNCH = "@flyc.jit\ndef launch(A: fx.Tensor):\n    k(A).launch(grid=1, block=64)\n"


def factory(parameters: str, condition: str, value: str, after: str = "") -> str:
    """A function `make` that makes a kernel and its launcher."""
    inner = KERNEL.format(condition, value) + LAUNCH + after + "return launch\n"
    return f"def make({parameters}):\n{textwrap.indent(inner, '    ')}"


DEAD_ARM = """
def make(used, unused):
    @flyc.kernel
    def k(A: fx.Tensor):
        if fx.const_expr(used is None):
            A[0] = unused.anything.at.all
        elif fx.thread_idx.x < used:
            A[fx.thread_idx.x] = used
    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=64)
    return launch
"""
EMPTY_CELL = """
def make(used):
    @flyc.kernel
    def k(A: fx.Tensor):
        if fx.const_expr(used == 0):
            A[0] = later
        if fx.thread_idx.x < used:
            A[fx.thread_idx.x] = used
    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=64)
    if used == 0:
        later = 3
    return launch
"""
METHODS = """
class Kernels:
    size = 5

    def __init__(self, value):
        self.value = value
        self.__hidden = 1

    def limit(self, t):
        if t < self.size:
            return True
        return t > 60

    @flyc.kernel
    def k(self, A: fx.Tensor):
        if self.limit(fx.thread_idx.x):
            A[fx.thread_idx.x] = self.value + self.__hidden

    @flyc.jit
    def launch(self, A: fx.Tensor):
        self.k(A).launch(grid=1, block=64)

class Wider(Kernels):
    size = 9

    def limit(self, t):
        return super().limit(t) or t == 30
"""
DECORATED = """
import functools

def noted(f):
    f.notes = 'noted'
    return f

def with_value(value):
    def decorate(f):
        @functools.wraps(f)
        def wrapper(A, ignored):
            if fx.thread_idx.x < 5:
                f(A, value)
        return wrapper
    return decorate

@noted
@flyc.kernel(
    known_block_size=(64, 1, 1),
)
@with_value(
    7
)
def k(A: fx.Tensor, value: fx.Constexpr[int] = 0):
    if fx.thread_idx.x > 2:
        A[fx.thread_idx.x] = value
""" + LAUNCH
FROM_A_LOOP = """
launchers = []
for value in (3, 4):
    @flyc.kernel
    def k(A: fx.Tensor, value: fx.Constexpr[int] = value):
        if fx.thread_idx.x < value:
            A[fx.thread_idx.x] = value
    @flyc.jit
    def launch(A: fx.Tensor, k=fx.Constexpr, made: fx.Constexpr = k):
        made(A).launch(grid=1, block=64)
    launchers.append(launch)
"""
TWO_LEVELS = """
def outer(a):
    def middle(b):
        c = a + b
        def helper(t):
            return c if t < a else b
        @flyc.kernel
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = helper(fx.thread_idx.x)
        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
        return launch
    return middle
"""
DEFAULTS = """
LIMIT = 5

@flyc.kernel
def k(A: fx.Tensor, limit: fx.Constexpr[int] = LIMIT, *, value: fx.Constexpr[int] = LIMIT * 2):
    def put(i, value=value):
        if i < limit:
            A[i] = value
    put(fx.thread_idx.x)

LIMIT = 50

@flyc.jit
def launch(A: fx.Tensor, more: fx.Int32 = 1):
    k(A).launch(grid=1, block=64)
"""
CALLED = """
def plain(A: fx.Tensor):
    if fx.thread_idx.x < 5:
        A[fx.thread_idx.x] = 8

k = flyc.kernel(plain)

def plain_launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)

launch = flyc.jit(plain_launch)
"""
NESTED_IN_A_LAUNCHER = """
@flyc.jit
def launch(A: fx.Tensor):
    value = 6
    @flyc.kernel
    def k(A: fx.Tensor):
        if fx.thread_idx.x < 5:
            A[fx.thread_idx.x] = value
    k(A).launch(grid=1, block=64)
"""
STATIC = """
class Kernels:
    @staticmethod
    @flyc.kernel
    def k(A: fx.Tensor):
        if fx.thread_idx.x < 5:
            A[fx.thread_idx.x] = Kernels.value()

    @classmethod
    def value(cls):
        return 9

    @staticmethod
    @flyc.jit
    def launch(A: fx.Tensor):
        Kernels.k(A).launch(grid=1, block=64)
"""
UNDER_AN_IF = "if True:\n" + textwrap.indent(KERNEL.format(5, 2) + LAUNCH, "    ") + "else:\n    launch = None\n"
WITH_IMPORTS = """
@flyc.kernel
def k(A: fx.Tensor):
    import operator as op
    from functools import reduce
    if op.lt(fx.thread_idx.x, 5):
        A[fx.thread_idx.x] = reduce(op.add, [1, 2, 3])
""" + LAUNCH
CACHED_FACTORY = "import functools\n@functools.lru_cache\n" + factory("limit, value", "limit", "value")

MADE: dict[str, tuple[str, str, list[int]]] = {
    "a factory": (factory("limit, value", "limit", "value"), "make(5, 3)", [0, 3]),
    "a factory made twice": (factory("limit, value", "limit", "value"), "(make(2, 9), make(5, 4))[1]", [0, 4]),
    "a cached factory": (CACHED_FACTORY, "make(5, 3)", [0, 3]),
    "a name used in a dead arm alone": (DEAD_ARM, "make(5, None)", [0, 5]),
    "a name of a dead arm that has no value": (EMPTY_CELL, "make(5)", [0, 5]),
    "two factories, one in the other": (TWO_LEVELS, "outer(5)(2)", [2, 7]),
    "a name bound after the kernel": (factory("limit", "limit", "value", after="value = 6\n"), "make(5)", [0, 6]),
    "a method": (METHODS, "Kernels(2).launch", [0, 3]),
    "a subclass": (METHODS, "Wider(2).launch", [0, 3]),
    "static and class methods": (STATIC, "Kernels.launch", [0, 9]),
    "decorators above and below": (DECORATED, "launch", [0, 7]),
    "default arguments": (DEFAULTS, "launch", [0, 10]),
    "made in a loop": (FROM_A_LOOP, "launchers[0]", [0, 3]),
    "no decorator": (CALLED, "launch", [0, 8]),
    "a kernel in a launcher": (NESTED_IN_A_LAUNCHER, "launch", [0, 6]),
    "under an if": (UNDER_AN_IF, "launch", [0, 2]),
    "imports in the kernel": (WITH_IMPORTS, "launch", [0, 6]),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("future", ["", "from __future__ import annotations\n"], ids=["", "future"])
def test_l12_l24_where_a_kernel_is_made(name: str, future: str) -> None:
    """Each also under `from __future__ import annotations`, which makes no difference."""
    text, launcher, expected = MADE[name]
    names = cell(future + text.lstrip("\n"))
    assert filled(eval(launcher, names)) == expected


@pytest.mark.parametrize("name", ["a factory", "a subclass", "decorators above and below"])
def test_l12_in_a_file(name: str, tmp_path: Path) -> None:
    text, launcher, expected = MADE[name]
    assert filled(eval(launcher, vars(module_of(tmp_path / "kernels_of_mine.py", text)))) == expected


def test_l12_each_kernel_of_a_loop_has_its_own_value() -> None:
    names = cell(FROM_A_LOOP)
    assert [filled(launch) for launch in names["launchers"]] == [[0, 3], [0, 4]]


def module_of(file: Path, text: str) -> Any:
    """A file with the text, imported."""
    head = "" if "import flylab" in text else "import flylab.compiler as flyc\nimport flylab.expr as fx\n"
    file.write_text(head + text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


# L23. Bodies of a kernel over `t`, `n`, `A`, in which BAD stands for a statement that is refused.
BAD = "A[t] = fx.Flot32(1)"
BODIES = {
    "at the end": "BAD",
    "after blank lines and comments": "\n\n# A comment.\n\n   # One more.\nBAD\n",
    "in an if": "if t < n:\n    BAD",
    "in an else": "if t < n:\n    pass\nelse:\n\n    BAD",
    "in an elif": "if t < n:\n    pass\nelif t > 5:\n    # why\n    BAD",
    "in a for": "for i in range(n):\n    BAD",
    "in a while": "i = t\nwhile i < n:\n    i += 1\n    BAD",
    "in nested ones": "for i in range(n):\n    if t < i:\n        while i < t:\n            i += 1\n            BAD",
    "behind a guard": "if t >= n:\n    return\n\nBAD",
    "behind a break": "for i in range(n):\n    if i > t:\n        break\n    BAD",
    "in an unrolled loop": "for i in range_constexpr(3):\n    BAD",
    "in a nested function": "def inner(t):\n    if t < n:\n        BAD\ninner(t)",
    "in a nested class": "class C:\n    def f(self):\n        BAD\nC().f()",
    "in a with": "import contextlib\nwith contextlib.nullcontext():\n    BAD",
    "in a try": "try:\n    BAD\nfinally:\n    pass",
    "after a docstring": "'''A text\nof three\nlines.'''\nBAD",
    "after a long statement": "x = (t +\n     1 +\n\n     2)\nBAD",
    "after a line that goes on": "x = t + \\\n    1\nBAD",
    "after two statements of one line": "x = 1; y = 2\nBAD",
    "in the second of one line": "x = 1; BAD",
    "in the line of an if": "if t < n: BAD",
    "in a lambda": "f = lambda: fx.Flot32(1)\nx = f()",
    "in a comprehension": "xs = [fx.Flot32(i) for i in (1, 2)]",
    "in a conditional expression": "x = (t if t < n\n     else fx.Flot32(1))",
    "in a test": "if t < fx.Flot32(1):\n    pass",
    "in an and": "if (t < n\n    and t < fx.Flot32(1)):\n    pass",
    "in a bound": "for i in range(\n    fx.Flot32(1)):\n    pass",
    "in an argument over lines": "x = fx.max(\n    t,\n    fx.Flot32(1),\n)",
}
# Where a body stands; `body` is it one level in, `body2` two.
AROUND = {
    "plain": """
@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32):
    t = fx.thread_idx.x
{body}
@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    k(A, n).launch(grid=1, block=64)
""",
    "a decorator of lines, in a class": """
class Kernels:
    '''Text.'''

    @flyc.kernel(
        known_block_size=(
            64, 1,
            1),
    )
    def k(self, A: fx.Tensor,
          n: fx.Int32):
        t = fx.thread_idx.x
{body2}
    @flyc.jit
    def launch(self, A: fx.Tensor, n: fx.Int32):
        self.k(A, n).launch(grid=1, block=64)

launch = Kernels().launch
""",
    "a factory": """
def make():
    limit = 3

    @flyc.kernel
    def k(A: fx.Tensor, n: fx.Int32):
        t = fx.thread_idx.x
{body2}
    @flyc.jit
    def launch(A: fx.Tensor, n: fx.Int32):
        k(A, n).launch(grid=1, block=64)
    return launch

launch = make()
""",
    "a helper": """
def helper(A, n, t):
{body}

@flyc.kernel
def k(A: fx.Tensor, n: fx.Int32):
    helper(A, n, fx.thread_idx.x)

@flyc.jit
def launch(A: fx.Tensor, n: fx.Int32):
    k(A, n).launch(grid=1, block=64)
""",
}
LINE = 18
FUNCTION = {"in a nested function": "inner", "in a nested class": "f"}


def at_line_18(around: str, body: str) -> str:
    """A text with the bad statement of the body in line 18, behind as many lines as that takes."""
    levels = {"body": textwrap.indent(body, "    "), "body2": textwrap.indent(body, "        ")}
    text = AROUND[around].lstrip("\n").format(**levels).replace("BAD", BAD)
    bad = next(i for i, line in enumerate(text.split("\n"), 1) if "Flot32" in line)
    assert bad <= LINE, "shorten it"
    return "#" * (bad < LINE) + "\n" * (LINE - bad) + text


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("name", BODIES)
def test_l23_an_error_in_line_18_says_18(name: str, around: str) -> None:
    text = at_line_18(around, BODIES[name])
    names = cell(text)
    with pytest.raises(FlylabError, match="fx has no name 'Flot32'") as caught:
        flyc.compile(names["launch"], np.zeros(64, np.int32), 1)
    where = caught.value.where
    assert where is not None and (where.file, where.line) == (names["FILE"], LINE)
    shown = str(caught.value).split("\n")
    assert shown[0].endswith(f"line 18, in {FUNCTION.get(name) or ('helper' if around == 'a helper' else 'k')}")
    assert shown[1].strip() == text.split("\n")[LINE - 1].strip()
    assert "Flot32" in shown[1][shown[2].index("^"): shown[2].rindex("^") + 1]


@pytest.mark.parametrize("name", ["in nested ones", "behind a guard", "in an elif"])
def test_l23_in_a_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "line 18 of größe.py"
    text = "import flylab.compiler as flyc; import flylab.expr as fx" + at_line_18("a factory", BODIES[name])
    with pytest.raises(FlylabError) as caught:
        flyc.compile(module_of(file, text).launch, np.zeros(64, np.int32), 1)
    assert caught.value.where is not None
    assert (caught.value.where.file, caught.value.where.line) == (str(file), LINE)


def test_l23_a_failure_on_the_device_has_its_line() -> None:
    body = "x = t\nif t > 3:\n\n    for i in range(n):\n        x += 1\n        assert x < 60, 'x too large'  # Flot32"
    text = at_line_18("a helper", body)
    names = cell(text)
    with pytest.raises(FlylabError, match="x too large") as caught:
        names["launch"](np.zeros(64, np.int32), 5)
    assert caught.value.where is not None and caught.value.where.line == LINE


# L24. Annotations, under `from __future__ import annotations` and without.
ANNOTATED = {
    "of a local variable": ("x: NoSuchName = t\nA[t] = x", True),
    "of a variable without a value": ("x: NoSuchName\nx = t\nA[t] = x", True),
    "of a nested function": ("def f(v: 'NoSuchName') -> 'NoSuchName':\n    return v\nA[t] = f(t)", True),
    "of a nested function, not quoted": ("def f(v: NoSuchName):\n    return v\nA[t] = f(t)", False),
}


@pytest.mark.parametrize("future", [False, True])
@pytest.mark.parametrize("body, works", ANNOTATED.values(), ids=ANNOTATED)
def test_l24_annotations_in_a_body(body: str, works: bool, future: bool) -> None:
    text = AROUND["plain"].format(body=textwrap.indent(body, "    "), body2="")
    names = cell("from __future__ import annotations\n" * future + text)
    if works or future:
        names["launch"](A := np.zeros(64, np.int32), 1)
        assert A.tolist() == list(range(64))
    else:
        with pytest.raises(NameError, match="NoSuchName"):
            names["launch"](np.zeros(64, np.int32), 1)


UNRESOLVED = {
    "misspelt": ("A: fx.Tensro", "annotation 'fx.Tensro' of parameter 'A' cannot be resolved"),
    "unknown": ("A: NoSuchName", "annotation 'NoSuchName' of parameter 'A' cannot be resolved"),
    "of a type checker alone": ("A: typing.Tensor", "annotation 'typing.Tensor' of parameter 'A' cannot be resolved"),
    "broken": ("A: 'fx.Tensor['", "parameter 'A' of 'k' is annotated 'fx.Tensor['"),
}


@pytest.mark.parametrize("parameter, message", UNRESOLVED.values(), ids=UNRESOLVED)
def test_l24_an_annotation_that_does_not_resolve(parameter: str, message: str) -> None:
    with pytest.raises(FlylabError) as caught:
        cell(f"from __future__ import annotations\n\n@flyc.kernel\ndef k({parameter}):\n    pass\n")
    assert message in caught.value.message and caught.value.hint
    assert caught.value.where is not None and caught.value.where.line in (3, 4)


def test_l24_names_of_a_factory_and_a_return() -> None:
    """An annotation may name what only the factory knows, and one that nothing reads may name nothing."""
    names = cell("""
        from __future__ import annotations

        def make(dtype):
            Number = dtype
            Const = fx.Constexpr[int]

            @flyc.kernel
            def k(A: fx.Tensor, n: Number, c: Const) -> NoSuchName:
                if fx.thread_idx.x < n:
                    A[fx.thread_idx.x] = c

            @flyc.jit
            def launch(A: fx.Tensor, n: Number, c: Const = 4) -> None:
                k(A, n, c).launch(grid=1, block=64)

            return launch
    """)
    assert filled(names["make"](fx.Int32), 5) == [0, 4]
