"""A compilation's name on disk: the same in every process for the same input, another for whatever changes its code."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.compiler import own_files
from flylab.compiler.dependencies import Dependencies
from flylab.compiler.passing import HostArgument
from flylab.runtime.cache import identity, keeping
from flylab.runtime.cache.fingerprint import Fingerprint, Unfit
from flylab.targets import target
from tests.samples import cell

ROOT = Path(__file__).parents[3]

HEAD = """
    import dataclasses, enum, functools, math
    from types import SimpleNamespace
    import numpy as np
"""
TAIL = """

    @flyc.kernel
    def k(A: fx.Tensor{parameters}):
        A[fx.thread_idx.x] = {value}

    @flyc.jit
    def launch(A: fx.Tensor{parameters}):
        k(A{arguments}).launch(grid=1, block=64)
"""


def launcher_of(text: str, value: str = "1.0", parameters: str = "", arguments: str = "") -> Any:
    tail = TAIL.format(value=value, parameters=parameters, arguments=arguments)
    return cell(textwrap.dedent(HEAD) + textwrap.dedent(text).strip("\n") + textwrap.dedent(tail))["launch"]


def fingerprint(launcher: Any, **constants: Any) -> Fingerprint:
    return Fingerprint(launcher, constants, Dependencies.of([launcher], constants))


def plain(text: str, value: str = "1.0", **constants: Any) -> str:
    return repr(fingerprint(launcher_of(text, value), **constants).plain)


NAMED = "from collections import namedtuple\nT = namedtuple('T', 'a', defaults=({}), module='t')"
# What a kernel reads: a text before it, the expression it stores, and the text with one thing changed.
CHANGES = {
    "number": ("SCALE = 2.0", "SCALE", "SCALE = 4.0"),
    "kind of number": ("SCALE = 2.0", "SCALE", "SCALE = 2"),
    "sign of zero": ("SCALE = 0.0", "SCALE", "SCALE = -0.0"),
    "truth": ("ON = True", "1.0 if ON else 2.0", "ON = 1"),
    "text": ("NAME = 'a'", "float(NAME == 'a')", "NAME = 'b'"),
    "tuple": ("SIZES = (1, 2)", "SIZES[0]", "SIZES = (1, (2,))"),
    "list": ("SIZES = [1, 2]", "SIZES[0]", "SIZES = [1, 2, 3]"),
    "list or tuple": ("SIZES = [1, 2]", "SIZES[0]", "SIZES = (1, 2)"),
    "nested": ("T = {'a': [{1}, (2.0,)]}", "T['a'][1][0]", "T = {'a': [{1}, (3.0,)]}"),
    "set": ("S = {1, 2}", "float(1 in S)", "S = {1, 3}"),
    "order of a dict": ("D = {'a': 1, 'b': 2}", "list(D.values())[0]", "D = {'b': 2, 'a': 1}"),
    "helper": ("def f(x): return x + 1.0", "f(2.0)", "def f(x): return x + 2.0"),
    "helper's helper": ("def g(x): return x\ndef f(x): return g(x)", "f(2.0)", "def g(x): return -x\n"
                        "def f(x): return g(x)"),
    "helper's column": ("def f(x): return x + 1.0", "f(2.0)", "def f(x): return  x + 1.0"),
    "line": ("X = 1", "1.0", "X = 1\nY = 1"),
    "default": ("def f(x=1.0): return x", "f()", "def f(x=2.0): return x"),
    "keyword default": ("def f(*, x=1.0): return x", "f()", "def f(*, x=2.0): return x"),
    "closure": ("def make(y):\n    def f(x): return x + y\n    return f\nf = make(1.0)", "f(2.0)",
                "def make(y):\n    def f(x): return x + y\n    return f\nf = make(2.0)"),
    "partial": ("def f(x, y): return x + y\nh = functools.partial(f, 1.0)", "h(2.0)",
                "def f(x, y): return x + y\nh = functools.partial(f, 2.0)"),
    "lambda": ("f = lambda x: x", "f(1.0)", "f = lambda x: x + 1"),
    "decorated helper": ("@functools.cache\ndef f(x): return x", "f(1.0)", "@functools.cache\ndef f(x): return -x"),
    "class attribute": ("class C:\n    tile = 1.0", "C.tile", "class C:\n    tile = 2.0"),
    "inherited attribute": ("class B:\n    tile = 1.0\nclass C(B): pass", "C.tile",
                            "class B:\n    tile = 2.0\nclass C(B): pass"),
    "method": ("class C:\n    def f(self): return 1.0\nc = C()", "c.f()",
               "class C:\n    def f(self): return 2.0\nc = C()"),
    "property": ("class C:\n    @property\n    def f(self): return 1.0\nc = C()", "c.f",
                 "class C:\n    @property\n    def f(self): return 2.0\nc = C()"),
    "operator": ("class C:\n    def __getitem__(self, i): return 1.0\nc = C()", "c[0]",
                 "class C:\n    def __getitem__(self, i): return 2.0\nc = C()"),
    "object": ("class C: pass\nc = C()\nc.tile = 1.0", "c.tile", "class C: pass\nc = C()\nc.tile = 2.0"),
    "dataclass": ("@dataclasses.dataclass(frozen=True)\nclass C:\n    tile: float\nc = C(1.0)", "c.tile",
                  "@dataclasses.dataclass(frozen=True)\nclass C:\n    tile: float\nc = C(2.0)"),
    "namespace": ("c = SimpleNamespace(tile=1.0)", "c.tile", "c = SimpleNamespace(tile=2.0)"),
    "enumeration": ("class E(enum.Enum):\n    A = 1.0", "E.A.value", "class E(enum.Enum):\n    A = 2.0"),
    "enumeration by a text": ("class E(enum.Enum):\n    A = 1.0", "E['A'].value", "class E(enum.Enum):\n    A = 2.0"),
    "length of an enumeration": ("class E(enum.Enum):\n    A = 1.0", "float(len(E))",
                                 "class E(enum.Enum):\n    A = 1.0\n    B = 2.0"),
    "attribute of a member": ("class E(enum.Enum):\n    A = 1.0\nE.A.tile = 1.0", "E.A.tile",
                              "class E(enum.Enum):\n    A = 1.0\nE.A.tile = 2.0"),
    "named tuple's default": (NAMED.format("1.0,"), "T().a", NAMED.format("2.0,")),
    "user's int": ("class I(int): pass\nx = I(1)", "float(x)", "class I(int): pass\nx = I(2)"),
    "user's text": ("class S(str): pass\nx = S('a')", "float(len(x))", "class S(str): pass\nx = S('ab')"),
    "user's float": ("class F(float): pass\nx = F(0.0)", "float(x)", "class F(float): pass\nx = F(-0.0)"),
    "decimal": ("from decimal import Decimal\nx = Decimal(1)", "float(x)",
                "from decimal import Decimal\nx = Decimal(2)"),
    "getter of items": ("import operator\nf = operator.itemgetter(0)", "f((1.0, 2.0))",
                        "import operator\nf = operator.itemgetter(1)"),
    "range": ("r = range(1, 3)", "float(r[0])", "r = range(2, 3)"),
    "pattern": ("import re\np = re.compile('a')", "float(p.match('a') is None)", "import re\np = re.compile('b')"),
    "__new__": ("class C:\n    def __new__(cls): return X\nX = 1.0", "C()",
                "class C:\n    def __new__(cls): return X\nX = 2.0"),
    "__class_getitem__": ("class C:\n    def __class_getitem__(cls, i): return X\nX = 1.0", "C[0]",
                          "class C:\n    def __class_getitem__(cls, i): return X\nX = 2.0"),
    "layout of an array": ("X = np.zeros((2, 3))", "float(X.strides[0])", "X = np.zeros((3, 2)).T"),
    "layout": ("L = fx.make_layout((2, 4), (1, 2))", "float(L(1))", "L = fx.make_layout((2, 4), (4, 1))"),
    "format": ("T = fx.Float32", "T(1.0)", "T = fx.Float16"),
    "number of flylab": ("X = fx.Int32(3)", "float(X.value)", "X = fx.Int64(3)"),
    "number of numpy": ("X = np.float32(3)", "float(X)", "X = np.float64(3)"),
    "array": ("X = np.arange(4.0)", "float(X[1])", "X = np.arange(1, 5.0)"),
    "format of numpy": ("X = np.dtype('f4')", "float(X.itemsize)", "X = np.dtype('f8')"),
    "function of a library": ("f = math.sin", "f(1.0)", "f = math.cos"),
    "options of a kernel": ("", "1.0", "", {"known_block_size": 64}),
    "its name": ("", "1.0", "", {"name": "other"}),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_read_is_told_apart(what: str) -> None:
    before, value, after, *options = CHANGES[what]
    first, same = plain(before, value), plain(before, value)
    assert first == same
    if not options:
        assert first != plain(after, value)
        return
    launcher = launcher_of(before, value)
    kernels = launcher.function.__globals__
    kernels["k"] = flyc.kernel(**options[0])(kernels["k"].function)
    assert first != repr(fingerprint(launcher).plain)


# In another process: other hashes, other addresses, other names of cells.
SCRIPT = """
import sys
sys.path.insert(0, {root!r})
from tests.runtime.cache.test_fingerprint import CHANGES, plain
import hashlib
for what, (before, value, after, *_) in CHANGES.items():
    print(what, hashlib.sha256((plain(before, value) + plain(after, value)).encode()).hexdigest(), sep=":")
"""


def test_the_same_in_every_process() -> None:
    def run(seed: str) -> str:
        done = subprocess.run([sys.executable, "-c", SCRIPT.format(root=str(ROOT))], capture_output=True, text=True,
                              env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}, cwd=ROOT)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = run("1")
    assert first.count("\n") == len(CHANGES) and first == run("2")


# What no key tells, or what tracing does more than make code: before the kernel, its value, and the reason.
UNFIT = {
    "print": ("", "(print('x'), 1.0)[1]", "names 'print', which does something while it is traced"),
    "helper prints": ("def f(x):\n    print(x)\n    return x", "f(1.0)", "'f' names 'print'"),
    "environment": ("import os", "float(os.environ['X'])", "names 'environ', which reads what can change"),
    "computed name": ("class C: x = 1.0", "getattr(C, 'x')", "names 'getattr', through which"),
    "perhaps there": ("class C: x = 1.0", "float(hasattr(C, 'x'))", "names 'hasattr', through which"),
    "getter of attributes": ("import operator\nclass C: x = 1.0\nf = operator.attrgetter('x')", "f(C)",
                             "operator.attrgetter, whose contents no key tells"),
    "made in C": ("import ctypes\nclass P(ctypes.Structure): _fields_ = [('x', ctypes.c_int)]\np = P(1)",
                  "float(p.x)", "reads Python's '_ctypes'"),
    "time": ("import time", "time.monotonic()", "names 'monotonic'"),
    "module of the world": ("import os.path\nimport socket", "float(socket.AF_INET)", "reads Python's 'socket'"),
    "import inside": ("def f():\n    import secrets\n    return 1.0", "f()", "imports 'secrets' while it is traced"),
    "generator of numbers": ("g = np.random.RandomState(1)", "float(g.uniform())", "RandomState, whose contents"),
    "large array": ("X = np.zeros(100_000)", "float(X[0])", "reads an array of 800000 bytes"),
    "iterator": ("it = iter([1.0])", "next(it)", "list_iterator, whose contents no key tells"),
    "open file": ("f = open('/dev/null')", "float(f.fileno())", "TextIOWrapper, whose contents no key tells"),
    "itself": ("x = [1.0]\nx.append(x)", "x[0]", "a container that contains itself"),
}


@pytest.mark.parametrize("what", UNFIT)
def test_what_cannot_be_told_is_not_kept(what: str) -> None:
    before, value, reason = UNFIT[what]
    with pytest.raises(Unfit) as error:
        plain(before, value)
    assert reason in str(error.value)


def test_a_getattr_of_the_users_is_not_called() -> None:
    """It may raise whatever it likes."""
    made = "class C:\n    def __getattr__(self, name): return self.table[name]\nc = C()\n"
    assert plain(made + "c.table = {'x': 1.0}", "c.x") != plain(made + "c.table = {'x': 2.0}", "c.x")


def test_a_function_of_the_users_may_be_called_as_one_of_pythons() -> None:
    assert plain("def print(x): return x", "print(1.0)")


def name_of(launcher: Any, arch: str = "gfx942", level: int = 2, *arguments: HostArgument) -> str:
    given = keeping.Input(launcher, list(arguments), target(arch), level)
    return keeping._name(given, given.fingerprint())


def test_the_chip_the_level_the_arguments_and_flylab_count(monkeypatch: pytest.MonkeyPatch) -> None:
    launcher = launcher_of("", "n", ", n: fx.Constexpr", ", n")

    def n(value: Any) -> HostArgument:
        return HostArgument("n", "constexpr", value)

    names = [name_of(launcher, arch, level, n(value))
             for arch in ("gfx942", "gfx950") for level in (1, 2) for value in (1, 1.0, True, "1", (1,), None)]
    monkeypatch.setattr(identity, "SOURCE", "other files of flylab")
    names.append(name_of(launcher, "gfx942", 1, n(1)))
    assert len(set(names)) == len(names)


def test_an_argument_added_is_another_name() -> None:
    """Case R13: the kernel's name is the same, its arguments are not."""
    one = launcher_of("", "1.0", ", n: fx.Int32", ", n")
    two = launcher_of("", "1.0", ", n: fx.Int32, m: fx.Int32", ", n, m")
    other = launcher_of("", "1.0", ", n: fx.Int64", ", n")
    assert len({name_of(each) for each in (one, two, other)}) == 3


def test_parameters_count_by_what_they_were_annotated_with() -> None:
    """The text is the same; the name in it meant something else when the function was defined."""
    first = launcher_of("T = fx.Int32", "1.0", ", n: T", ", n")
    second = launcher_of("T = fx.Float32", "1.0", ", n: T", ", n")
    assert name_of(first) != name_of(second)


def test_installed_packages_count_by_version_and_files() -> None:
    version, *stamps = identity.installed("numpy.linalg")
    assert version == np.__version__ and all(size > 0 for size, _ in stamps)
    assert identity.identity()[-1] and identity.identity()[-2], "the libraries of LLVM and MLIR"


def test_each_package_that_a_kernel_can_be_made_of_is_in_the_digest() -> None:
    there = {path.parent.name for path in (ROOT / "flylab").glob("*/__init__.py")}
    decide_nothing = {"cli", "emulator", "lab", "model", "viz"}
    of_the_user = {"kernels"}
    assert set(own_files.PACKAGES) == there - decide_nothing - of_the_user
