"""A compilation is used again while what it read means the same, and made anew, with the names, when it does not."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.compiler.meaning import meaning
from flylab.compiler.users import exact
from tests.samples import cell, kernel_of

A = np.zeros(64, np.float32)

TEXT = """
import types

scale = 2.0
settings = types.ModuleType("settings")
settings.scale = 3.0
table = [1, {"a": [2.0]}]

class Config:
    tile = 4

    def __init__(self):
        self.width = 8

    def method(self, x):
        return x * self.tile

    @property
    def double(self):
        return self.width * 2

config = Config()

def inner(x):
    return x

def helper(x, k=1.0):
    if False:
        return late(x)
    return inner(x) * k

def late(x):
    return x

def factory():
    captured = 5.0

    def change(to):
        nonlocal captured
        captured = to

    @flyc.kernel
    def k(A: fx.Tensor, c):
        y = helper(A[0]) * scale * settings.scale + table[0] + table[1]["a"][0]
        for _ in range_constexpr(1):
            def nested(x):
                return x + only_in_nested
            y = nested(config.method(y)) + config.width + config.double + captured + c.width
        A[fx.thread_idx.x] = y

    @flyc.jit
    def launch(A: fx.Tensor, c):
        k(A, c).launch(grid=1, block=64)

    return launch, change

only_in_nested = 1.0
launch, change = factory()
argument = Config()
"""


def redefine(name: str, text: str) -> Any:
    def change(names: dict[str, Any]) -> None:
        names[name] = cell(text)[name]

    return change


def set_item(names: dict[str, Any]) -> None:
    names["table"][1]["a"][0] = 7.0


def set_method(names: dict[str, Any]) -> None:
    names["Config"].method = lambda self, x: x


CHANGES: dict[str, tuple[Any, list[str]]] = {
    "a global constant": (lambda names: names.update(scale=4.0), ["scale"]),
    "its type only": (lambda names: names.update(scale=2), ["scale"]),
    "a constant of a module": (lambda names: setattr(names["settings"], "scale", -3.0), ["settings.scale"]),
    "an item of a container": (set_item, ["table"]),
    "an attribute of an object": (lambda names: setattr(names["config"], "width", 16), ["config.width"]),
    "an attribute of an argument": (lambda names: setattr(names["argument"], "width", 16), ["c.width"]),
    "a class attribute": (lambda names: setattr(names["Config"], "tile", 5), ["c.tile", "config.tile"]),
    "a method": (set_method, ["c.method", "config.method"]),
    "a helper": (redefine("helper", "def helper(x):\n    return x"), ["helper"]),
    "a helper of a helper": (redefine("inner", "def inner(x):\n    return x"), ["inner"]),
    "a helper in a dead arm": (redefine("late", "def late(x):\n    return x"), ["late"]),
    "a default argument": (lambda names: setattr(names["helper"], "__defaults__", (2.0,)), ["defaults of helper"]),
    "a closure": (lambda names: names["change"](6.0), ["captured"]),
    "a global of a nested function": (lambda names: names.update(only_in_nested=2.0), ["only_in_nested"]),
    "a name that is gone": (lambda names: names.pop("late"), ["late"]),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_compiles_anew_and_is_named(name: str) -> None:
    change, expected = CHANGES[name]
    names = cell(TEXT)
    launch, argument = names["launch"], names["argument"]
    first = flyc.compile(launch, A, argument)
    assert flyc.compile(launch, A, argument) is first
    change(names)
    (((_, dependencies),),) = launch.specialisations.values()
    assert sorted(dependencies.changed()) == expected
    second = flyc.compile(launch, A, argument)
    assert second is not first
    assert flyc.compile(launch, A, argument) is second


def test_what_is_not_read_changes_nothing() -> None:
    names = cell(TEXT)
    launch, argument = names["launch"], names["argument"]
    first = flyc.compile(launch, A, argument)
    names["config"].other = 1
    names["settings"].other = 1
    names["other"] = 1
    names["config"].width = 8
    names["table"] = [1, {"a": [2.0]}]
    assert flyc.compile(launch, A, argument) is first


def test_a_kernel_defined_anew() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = 1.0

        @flyc.jit
        def launch(A: fx.Tensor):
            k(A).launch(grid=1, block=64)
    """)
    result = np.zeros(64, np.float32)
    names["launch"](result)
    again = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[fx.thread_idx.x] = 2.0
    """)
    names["k"] = again["k"]
    names["launch"](result)
    assert (result == 2).all()


def test_a_launcher_that_refers_to_itself_and_two_to_each_other() -> None:
    names = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            A[0] = 1.0

        @flyc.jit
        def one(A: fx.Tensor, n: fx.Constexpr[int]):
            if n:
                two(A, n - 1)
            else:
                k(A).launch(grid=1, block=64)

        @flyc.jit
        def two(A: fx.Tensor, n: fx.Constexpr[int]):
            one(A, n) if n else two(A, 0) if False else k(A).launch(grid=1, block=64)
    """)
    assert flyc.compile(names["one"], A, 3) is flyc.compile(names["one"], A, 3)


KEYS: dict[str, tuple[Any, Any]] = {
    "sizes": (np.zeros(64, np.float32), np.zeros(128, np.float32)),
    "strides": (np.zeros(64, np.float32), np.zeros(128, np.float32)[::2]),
    "formats": (np.zeros(64, np.float32), np.zeros(64, np.float16)),
    "signs": (np.zeros(64, np.int32), np.zeros(64, np.uint32)),
}


@pytest.mark.parametrize("name", KEYS)
def test_each_kind_of_tensor_has_a_compilation_of_its_own(name: str) -> None:
    launch = cell("""
        @flyc.kernel
        def k(T: fx.Tensor):
            T[0] = 1

        @flyc.jit
        def launch(T: fx.Tensor):
            k(T).launch(grid=1, block=64)
    """)["launch"]
    one, two = KEYS[name]
    assert flyc.compile(launch, one) is not flyc.compile(launch, two)
    assert flyc.compile(launch, one) is flyc.compile(launch, one.copy() if one.flags.contiguous else one)


@pytest.mark.parametrize(
    "one, two",
    [
        (1, 2),
        (1, True),
        (1, 1.0),
        (0.0, -0.0),
        ((1,), (1.0,)),
        ((0.0,), (-0.0,)),
        (fx.Float32, fx.Float16),
        (np.dtype("f4"), np.dtype("f8")),
        (range(3), range(4)),
        ("a", "b"),
    ],
)
def test_each_constant_has_a_compilation_of_its_own(one: Any, two: Any) -> None:
    seen: list[Any] = []
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor):
            pass

        @flyc.jit
        def launch(A: fx.Tensor, c: fx.Constexpr, see: fx.Constexpr):
            see(c)
            k(A).launch(grid=1, block=64)
    """)["launch"]
    see = seen.append
    for value in (one, two, one, two, float("nan"), float("nan")):
        flyc.compile(launch, A, value, see)
    assert list(map(repr, seen)) == [repr(one), repr(two), "nan"]


def test_each_chip_and_level_has_a_compilation_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    names = cell(TEXT)
    launch, argument = names["launch"], names["argument"]
    first = flyc.compile(launch, A, argument)
    with flylab.use("gfx950"):
        other = flyc.compile(launch, A, argument)
    assert (str(first.target), str(other.target)) == ("gfx942", "gfx950")
    monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", "0")
    unoptimised = flyc.compile(launch, A, argument)
    assert unoptimised is not first and unoptimised.opt_level == 0
    monkeypatch.delenv("FLYLAB_COMPILE_OPT_LEVEL")
    assert flyc.compile(launch, A, argument) is first


def test_exact() -> None:
    nan = float("nan")
    assert exact(nan) == exact(float("nan"))
    assert exact("1") != exact(1) and meaning((1, (2,))) == meaning((1, (2,)))


def test_a_module_that_was_edited_and_loaded_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text is read anew; also where IPython's autoreload only gives the old function new code."""
    text = "def rule(x):\n    if x > 3:\n        return x * 2.0\n    return x\n"
    file = tmp_path / "edited_rules.py"
    file.write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    rules = importlib.import_module("edited_rules")
    old = rules.rule
    names = kernel_of("A[fx.thread_idx.x] = rule(A[fx.thread_idx.x])")
    names["rule"] = old

    def found() -> float:
        a = np.full(64, 5, np.float32)
        names["launch"](a)
        return float(a[0])

    assert found() == 10
    for factor, reloads_in_place in ((30.0, False), (40.5, True)):
        file.write_text(text.replace("2.0", str(factor)))
        importlib.reload(rules)
        if reloads_in_place:
            old.__code__ = rules.rule.__code__
        names["rule"] = old if reloads_in_place else rules.rule
        assert found() == 5 * factor
