"""Users' cases L12, L23, L24 and L26: where a kernel is written, what is around it, and what an error calls its place."""

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
from tests.compiler.threads import agree, line_of, refused
from tests.samples import cell


def filled(launcher: Any, *args: Any) -> list[int]:
    """Run a launcher on 64 zeros; the numbers that it left, each once."""
    A = np.zeros(64, np.int32)
    launcher(A, *args)
    return sorted(set(A.tolist()))


# L12. A text, the expression that gives its launcher, and the numbers that it leaves.
KERNEL = "@flyc.kernel\ndef k(A: fx.Tensor):\n    if fx.thread_idx.x < {}:\n        A[fx.thread_idx.x] = {}\n"
LAUNCH = "@flyc.jit\ndef launch(A: fx.Tensor):\n    k(A).launch(grid=1, block=64)\n"


def factory(parameters: str, condition: str, value: str, before: str = "") -> str:
    """A function `make` that makes a kernel and its launcher."""
    inner = before + KERNEL.format(condition, value) + LAUNCH + "return launch\n"
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
    "a name bound after the kernel": (factory("limit", "limit", "value").replace("    return launch", "    value = 6\n    return launch"),
                                      "make(5)", [0, 6]),
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
AROUND = {
    "plain": "@flyc.kernel\ndef k(A: fx.Tensor, n: fx.Int32):\n    t = fx.thread_idx.x\n{body}\n"
    "@flyc.jit\ndef launch(A: fx.Tensor, n: fx.Int32):\n    k(A, n).launch(grid=1, block=64)\n",
    "a decorator of lines, in a class": "class Kernels:\n    '''Text.'''\n\n    @flyc.kernel(\n        known_block_size=(\n            64, 1,\n"
    "            1),\n    )\n    def k(self, A: fx.Tensor,\n          n: fx.Int32):\n        t = fx.thread_idx.x\n{body2}\n"
    "    @flyc.jit\n    def launch(self, A: fx.Tensor, n: fx.Int32):\n        self.k(A, n).launch(grid=1, block=64)\n\n"
    "launch = Kernels().launch\n",
    "a factory": "def make():\n    limit = 3\n\n    @flyc.kernel\n    def k(A: fx.Tensor, n: fx.Int32):\n        t = fx.thread_idx.x\n{body2}\n"
    "    @flyc.jit\n    def launch(A: fx.Tensor, n: fx.Int32):\n        k(A, n).launch(grid=1, block=64)\n    return launch\n\nlaunch = make()\n",
    "a helper": "def helper(A, n, t):\n{body}\n\n@flyc.kernel\ndef k(A: fx.Tensor, n: fx.Int32):\n    helper(A, n, fx.thread_idx.x)\n"
    "@flyc.jit\ndef launch(A: fx.Tensor, n: fx.Int32):\n    k(A, n).launch(grid=1, block=64)\n",
}
LINE = 18
FUNCTION = {"in a nested function": "inner", "in a nested class": "f"}


def at_line_18(around: str, body: str) -> str:
    """A text with the bad statement of the body in line 18, behind as many lines as that takes."""
    text = AROUND[around].format(body=textwrap.indent(body, "    "), body2=textwrap.indent(body, "        "))
    text = text.replace("BAD", BAD)
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
    body = "x = t\nif t > 3:\n\n    for i in range(n):\n        x += 1\n        assert x < 60, 'x too large'  # use\nA[t] = x"
    text = at_line_18("a helper", body.replace("x < 60", "x < 60 or fx.const_expr(False)") + "  # Flot32")
    names = cell(text)
    with pytest.raises(FlylabError, match="x too large") as caught:
        names["launch"](np.zeros(64, np.int32), 5)
    line = next(i for i, row in enumerate(text.split("\n"), 1) if "# use" in row)
    assert caught.value.where is not None and caught.value.where.line == line


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


# L26: plain helpers. `head` is what stands before the kernel.
HELPERS = {
    "a function": ("def f(t, n):\n    if t < n:\n        return 1\n    return 2", "R[t] = f(t, n)"),
    "that calls another": (
        "def g(t, n):\n    if t > n:\n        return t\n    else:\n        return n\n"
        "def f(t, n):\n    x = g(t, 9)\n    if t < n:\n        x = g(x, n)\n    return x", "R[t] = f(t, n)"),
    "with a loop": (
        "def f(t, n):\n    acc = 0\n    for i in range(n):\n        if i > t:\n            acc += i\n    return acc", "R[t] = f(t, n)"),
    "with a while and a break": (
        "def f(t, n):\n    while True:\n        if t > n:\n            break\n        t = t + 7\n    return t", "R[t] = f(t, n)"),
    "that writes a tensor": (
        "def put(R, t, n):\n    if t < n:\n        R[t] = 5", "put(R, t, n)"),
    "a method": (
        "class C:\n    limit = 9\n    def f(self, t):\n        return 1 if t < self.limit else 2", "R[t] = C().f(t)"),
    "a static and a class method": (
        "class C:\n    limit = 9\n    @staticmethod\n    def f(t):\n        if t < 3:\n            return 1\n        return 2\n"
        "    @classmethod\n    def g(cls, t):\n        if t < cls.limit:\n            return 10\n        return 20",
        "R[t] = C.f(t) + C.g(t) + C().f(t)"),
    "a callable object": (
        "class C:\n    def __call__(self, t):\n        if t < 3:\n            return 1\n        return 2", "f = C()\nR[t] = f(t)"),
    "a constructor": (
        "class C:\n    def __init__(self, t, n):\n        self.x = 1\n        if t < n:\n            self.x = t", "R[t] = C(t, n).x"),
    "functools.partial": (
        "def f(n, t):\n    if t < n:\n        return 1\n    return 2", "R[t] = functools.partial(f, n)(t)"),
    "functools.wraps": (
        "def deco(f):\n    @functools.wraps(f)\n    def wrapper(*args):\n        x = f(*args)\n        if x > 5:\n            x = x * 2\n"
        "        return x\n    return wrapper\n@deco\ndef f(t, n):\n    return t if t < n else n", "R[t] = f(t, n)"),
    "a function passed on": (
        "def f(t):\n    return 1 if t < 5 else 2\ndef g(h, t):\n    if t < 3:\n        return h(t)\n    return h(t) + 10", "R[t] = g(f, t)"),
    "a function in a dict": ("def f(t):\n    return 1 if t < 5 else 2\ntable = {'f': f}", "R[t] = table['f'](t)"),
    "a lambda": ("f = lambda t, n: t * 2 + n", "R[t] = f(t, n)"),
    "a nested helper": (
        "def f(t, n):\n    def g(x):\n        if x < n:\n            return x\n        return n\n    return g(t) + g(t + 1)", "R[t] = f(t, n)"),
    "a nested @flyc.jit": (
        "def f(t, n):\n    @flyc.jit\n    def dispatch():\n        if t < n:\n            return 1\n        return 2\n    return dispatch()",
        "R[t] = f(t, n)"),
    "a module's @flyc.jit": ("@flyc.jit\ndef f(t, n):\n    if t < n:\n        return 1\n    return 2", "R[t] = f(t, n)"),
    "a generator with a runtime if around its loop": (
        "def each(t, n):\n    for v in (1, 2, 3):\n        yield v + t", "acc = 0\nfor v in each(t, n):\n    acc += v\nR[t] = acc"),
    "a context manager": (
        "import contextlib\n@contextlib.contextmanager\ndef adding(xs, t):\n    xs[0] = xs[0] + 1\n    yield\n    xs[0] = xs[0] + t",
        "xs = [0]\nwith adding(xs, t):\n    if t < n:\n        xs[0] = xs[0] * 3\nR[t] = xs[0]"),
    "a property": (
        "class C:\n    def __init__(self, t, n):\n        self.t, self.n = t, n\n    @property\n    def inside(self):\n        return self.t < self.n",
        "R[t] = 0\nif C(t, n).inside:\n    R[t] = 1"),
    "an operator": (
        "class V:\n    def __init__(self, x):\n        self.x = x\n    def __add__(self, other):\n        return V(self.x + other.x)",
        "v = V(t)\nif t < n:\n    v = v + V(3)\nR[t] = v.x"),
}


@pytest.mark.parametrize("head, body", HELPERS.values(), ids=HELPERS)
def test_l26_a_plain_helper_with_a_branch(head: str, body: str) -> None:
    agree(body, head)


def test_l26_a_helper_of_another_file(tmp_path: Path) -> None:
    module = module_of(tmp_path / "helpers_of_mine.py", "def clamp(t, n):\n    if t > n:\n        return n\n    return t\n")
    sys.modules["helpers_of_mine"] = module
    agree("R[t] = helpers_of_mine.clamp(t, n)", "import helpers_of_mine")


UNREADABLE = "exec('''def f(t, n):\\n    x = 1\\n    if t < n:\\n        x = 2\\n    return x\\n''')"
UNREAD = {
    "exec without a text": (UNREADABLE, "R[t] = f(t, n)", "'f'", "source"),
    "exec in a dict": (
        "names = {}\nexec('def f(t, n):\\n    return 1 if t < n else 2', names)\nf = names['f']", "R[t] = f(t, n)", "'f'", "source"),
    "a method of exec": (
        "exec('''class C:\\n    def f(self, t):\\n        if t < 3:\\n            return 1\\n        return 2''')",
        "R[t] = C().f(t)", "'f'", "source"),
    "a loop": ("exec('''def f(n):\\n    for i in range(n):\\n        pass''')", "f(n)\nR[t] = 0", "'f'", "source"),
}


@pytest.mark.parametrize("head, body, name, word", UNREAD.values(), ids=UNREAD)
def test_l26_a_helper_that_cannot_be_read_is_named_with_its_line(head: str, body: str, name: str, word: str) -> None:
    error = refused(body + "  # use", head)
    assert name in str(error) and word in str(error)
    assert "line" in str(error) and error.hint
    assert error.where is not None


NOT_REWRITTEN = {
    "a property with a branch": (
        "class C:\n    def __init__(self, t):\n        self.t = t\n    @property\n    def x(self):\n        if self.t < 3:  # use\n"
        "            return 1\n        return 2", "R[t] = C(t).x"),
    "an operator with a branch": (
        "class V:\n    def __init__(self, x):\n        self.x = x\n    def __add__(self, other):\n        if self.x < 3:  # use\n"
        "            return self\n        return other", "R[t] = (V(t) + V(n)).x"),
    "a lambda that chooses": ("f = lambda t, n: t if t < n else n  # use", "R[t] = f(t, n)"),
    "map": ("def f(t):\n    return 1 if t < 5 else 2  # use", "a, b = map(f, (t, n))\nR[t] = a * 10 + b"),
    "__post_init__": (
        "import dataclasses\n@dataclasses.dataclass\nclass C:\n    x: object\n    def __post_init__(self):\n"
        "        if self.x < 3:  # use\n            self.x = 3", "R[t] = C(t).x"),
    "in a set": ("", "R[t] = 1 if t in {1, 2} else 2  # use"),
    "a key of sorted": ("def key(x):\n    return 1 if x < 3 else 2  # use", "xs = sorted([t, n], key=key)\nR[t] = xs[0]"),
    "Python's max": ("", "R[t] = max(t, n)  # use"),
    "Python's sorted": ("", "R[t] = sorted([t, n])[0]  # use"),
    "in": ("", "R[t] = 1 if t in (1, 2) else 2  # use"),
    "any": ("", "R[t] = 1 if any([t < n, t > m]) else 2  # use"),
    "a comprehension's if": ("", "xs = [v for v in (1, 2) if t < v]  # use\nR[t] = len(xs)"),
    "int()": ("", "R[t] = int(t)  # use"),
    "a dict's key": ("", "d = {1: 2}\nR[t] = d[t]  # use"),
    "a list's index": ("", "xs = [1, 2]\nR[t] = xs[t]  # use"),
}


@pytest.mark.parametrize("head, body", NOT_REWRITTEN.values(), ids=NOT_REWRITTEN)
def test_l26_what_python_itself_must_decide_is_refused_where_it_stands(head: str, body: str) -> None:
    error = refused(body, head)
    assert "device" in error.message and error.hint
    assert error.where is not None and error.where.line == line_of(body, "# use", head)


def test_l26_recursion_that_only_the_device_could_end() -> None:
    error = refused("R[t] = f(t)", "def f(k):\n    return 0 if k == 0 else 1 + f(k - 1)")
    assert "'f'" in error.message or "recurs" in error.message
    assert error.hint


def test_l26_a_generator_that_yields_in_a_runtime_branch() -> None:
    error = refused(
        "def each():\n    if t < n:\n        yield 1  # use\n    yield 2\nacc = 0\nfor v in each():\n    acc += v\nR[t] = acc")
    assert "yield" in str(error) and error.hint
