"""A guard never says yes where `Dependencies.fit` says no; it notices each kind of change; it keeps no arrays alive."""

from __future__ import annotations

import builtins
import gc
import types
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import flylab.compiler as flyc
from flylab.compiler.dependencies import Dependencies
from flylab.compiler.guards import guard_of, never
from tests.samples import cell

TEXT = """
import array
import collections
import dataclasses
import enum
import functools
import types

scale = 2.0
flag = True
module = types.ModuleType("module")
module.scale = 3.0
module.inner = types.ModuleType("inner")
module.inner.scale = 4.0
table = [1, {"a": [2.0]}, (3, [4])]
numbers = [1.0, 2.0, 3.0]
several = {1}
queue = collections.deque([1])
raw = bytearray(b"ab")
small = np.arange(4.0)
packed = array.array("i", [1, 2])
chain = collections.ChainMap({"a": 1}, {"b": 2})

class Base:
    shared = 1
    lists = [1]

class Config(Base):
    tile = 4

    def __init__(self):
        self.width = 8
        self.parts = [1, {"k": [2]}]
        self.nested = types.SimpleNamespace(bias=2.0)

    def __getitem__(self, index):
        return index

    @property
    def double(self):
        return self.width * 2

    def method(self, x):
        return x * self.tile

@dataclasses.dataclass
class State:
    size: int
    items: list

class Slots:
    __slots__ = ("size", "unset")

    def __init__(self):
        self.size = 1

class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

config, state, slots, mode = Config(), State(1, [1]), Slots(), Mode.FAST

def inner(x):
    return x

def helper(x, k=1.0, *, w=2.0):
    return inner(x) * k * w

part = functools.partial(helper, k=3.0)

def factory(captured, cells):
    def change(to):
        nonlocal captured
        captured = to

    @flyc.jit
    def launch(A, c):
        y = helper(A) * scale * flag + module.scale + module.inner.scale + table[0] + numbers[0]
        y += small[0] + len(several) + queue[0] + raw[0] + packed[0] + chain["a"] + part(y)
        for _ in range(4):
            y += (lambda x: x + late_global)(y) + later_attribute
        y += config.width + config.parts[0] + config.nested.bias + config.double + config.method(1) + config[0]
        y += config.tile + config.shared + config.lists[0] + config.absent + module.absent
        y += state.size + state.items[0] + slots.size + slots.unset + Config.tile + mode.value + Mode.SLOW.value
        return y + captured + cells[0] + c.width + c.parts[0]

    return launch, change

late_global = 1
launch, change = factory(5.0, [6.0])
argument = Config()
"""


def world() -> tuple[dict[str, Any], Dependencies]:
    names = cell(TEXT, np=np)
    return names, Dependencies.of([names["launch"]], {"c": names["argument"]})


def closure(names: dict[str, Any], name: str) -> Any:
    function = names["launch"].function
    return function.__closure__[function.__code__.co_freevars.index(name)]


def another(text: str) -> Callable[[Any], Any]:
    return lambda *a, **n: text


Change = Callable[[dict[str, Any]], Any]

CHANGES: dict[str, Change] = {
    "a global": lambda n: n.update(scale=4.0),
    "only its type": lambda n: n.update(scale=2),
    "True to 1": lambda n: n.update(flag=1),
    "a global that goes": lambda n: n.pop("late_global"),
    "a global that comes": lambda n: n.update(later_attribute=1),
    "a builtin hidden by a global": lambda n: n.update(range=lambda *a: ()),
    "a cell": lambda n: n["change"](6.0),
    "an emptied cell": lambda n: delattr(closure(n, "captured"), "cell_contents"),
    "a list in a cell": lambda n: closure(n, "cells").cell_contents.append(1),
    "a default": lambda n: setattr(n["helper"], "__defaults__", (2.0,)),
    "a keyword default": lambda n: setattr(n["helper"], "__kwdefaults__", {"w": 3.0}),
    "a keyword default in place": lambda n: n["helper"].__kwdefaults__.update(w=3.0),
    "no default any more": lambda n: setattr(n["helper"], "__defaults__", None),
    "defaults where there were none": lambda n: setattr(n["inner"], "__defaults__", (1.0,)),
    "a helper": lambda n: n.update(helper=n["inner"]),
    "a helper's helper": lambda n: n.update(inner=lambda x: x + 1),
    "the code of a helper": lambda n: setattr(n["inner"], "__code__", (lambda x: x + 1).__code__),
    "an attribute of a function": lambda n: setattr(n["inner"], "width", 1),
    "an attribute of a module": lambda n: setattr(n["module"], "scale", 9.0),
    "an attribute of a module's module": lambda n: setattr(n["module"].inner, "scale", 9.0),
    "a new attribute of a module": lambda n: setattr(n["module"], "absent", 9.0),
    "an attribute of an object": lambda n: setattr(n["config"], "width", 16),
    "an attribute of an argument": lambda n: setattr(n["argument"], "width", 16),
    "a list of an argument": lambda n: n["argument"].parts.append(2),
    "a new attribute of an object": lambda n: setattr(n["config"], "absent", 16),
    "an attribute that hides its class's": lambda n: setattr(n["config"], "tile", 4.5),
    "an attribute of an attribute": lambda n: setattr(n["config"].nested, "bias", 3.0),
    "all attributes": lambda n: setattr(n["config"], "__dict__", {"width": 1}),
    "the class of an object": lambda n: setattr(n["config"], "__class__", type("Other", (n["Config"],), {"tile": 5})),
    "a class attribute": lambda n: setattr(n["Config"], "tile", 5),
    "a base's attribute": lambda n: setattr(n["Base"], "shared", 5),
    "a base's list": lambda n: n["Base"].lists.append(5),
    "a base's attribute added": lambda n: setattr(n["Base"], "absent", 5),
    "the bases": lambda n: setattr(n["Config"], "__bases__", (type("B", (n["Base"],), {"shared": 7}),)),
    "a method": lambda n: setattr(n["Config"], "method", lambda self, x: x),
    "a method's code": lambda n: setattr(n["Config"].method, "__code__", (lambda self, x: x).__code__),
    "a property": lambda n: setattr(n["Config"], "double", property(lambda self: 1)),
    "a special method": lambda n: setattr(n["Config"], "__getitem__", lambda self, i: 1),
    "a special method added": lambda n: setattr(n["Config"], "__call__", lambda self: 1),
    "a field": lambda n: setattr(n["state"], "size", 2),
    "a list in a field": lambda n: n["state"].items.append(2),
    "another field": lambda n: setattr(n["state"], "more", 2),
    "a slot": lambda n: setattr(n["slots"], "size", 2),
    "a slot that was not set": lambda n: setattr(n["slots"], "unset", 2),
    "a list": lambda n: n["table"].append(1),
    "an item": lambda n: n["table"].__setitem__(0, 2),
    "an item equal to the last": lambda n: n["numbers"].__setitem__(1, 2),
    "two items swapped": lambda n: n["numbers"].reverse(),
    "a dict in a list": lambda n: n["table"][1].update(b=1),
    "a list in a dict in a list": lambda n: n["table"][1]["a"].append(1),
    "a list in a tuple": lambda n: n["table"][2][1].append(1),
    "a set": lambda n: n["several"].add(2),
    "a deque": lambda n: n["queue"].rotate() or n["queue"].append(2),
    "a bytearray": lambda n: n["raw"].__setitem__(0, 1),
    "an array": lambda n: n["packed"].__setitem__(0, 5),
    "an element of numpy's": lambda n: n["small"].__setitem__(0, -0.0),
    "an array's shape": lambda n: setattr(n["small"], "shape", (2, 2)),
    "a map of a chain": lambda n: n["chain"].maps[1].update(c=1),
    "the maps of a chain": lambda n: n["chain"].maps.reverse(),
    "a keyword of a partial": lambda n: n["part"].keywords.update(k=4.0),
}

SAME: dict[str, Change] = {
    "nothing": lambda n: None,
    "what is not read": lambda n: n.update(other=1),
    "an attribute that is not read": lambda n: (setattr(n["config"], "other", 1), setattr(n["module"], "other", 1)),
    "an equal list": lambda n: n.update(numbers=[1.0, 2.0, 3.0]),
    "a list changed and back": lambda n: (n["numbers"].append(1), n["numbers"].pop()),
    "an equal array": lambda n: n.update(small=n["small"].copy()),
    "an equal constant": lambda n: n.update(scale=float("2.0")),
    "an equal field": lambda n: n.update(state=n["State"](1, [1])),
    "a global gone and back": lambda n: n.update(late_global=n.pop("late_global", 1)),
}
"""What changes nothing that counts, at least on its own."""


@pytest.mark.parametrize("name", CHANGES)
def test_each_change_is_noticed_and_a_new_guard_needs_a_new_compilation(name: str) -> None:
    names, dependencies = world()
    guard = guard_of(dependencies)
    assert guard() and guard()
    CHANGES[name](names)
    assert not guard()
    assert not dependencies.fit(dependencies.given)
    assert guard_of(dependencies) is never


@pytest.mark.parametrize("name", SAME)
def test_what_means_the_same_gets_a_guard_anew(name: str) -> None:
    names, dependencies = world()
    SAME[name](names)
    assert dependencies.fit(dependencies.given)
    guard = guard_of(dependencies)
    assert guard is not never and guard()


@given(st.data())
def test_a_guard_says_yes_only_where_all_fits(data: st.DataObject) -> None:
    names, dependencies = world()
    guard = guard_of(dependencies)
    assert guard()
    every = {**CHANGES, **SAME}
    for name in data.draw(st.lists(st.sampled_from([*every]), max_size=6)):
        try:
            every[name](names)
        except (AttributeError, KeyError, TypeError):  # an earlier change took away what this one changes
            continue
        fits = dependencies.fit(dependencies.given)
        assert fits or not guard(), name
        if fits and not guard():
            guard = guard_of(dependencies)
            assert guard()


def test_what_hides_a_builtin_in_builtins_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    _, dependencies = world()
    guard = guard_of(dependencies)
    monkeypatch.setattr(builtins, "range", lambda *a: ())
    assert not guard() and not dependencies.fit(dependencies.given)
    monkeypatch.undo()
    assert guard()


def test_an_array_is_not_kept_alive_and_one_in_its_place_is_another() -> None:
    names = cell("""
        big, held = np.zeros(1 << 20), [np.zeros(1 << 20)]

        class Owner:
            def __init__(self):
                self.big = np.zeros(1 << 20)

        owner = Owner()

        @flyc.jit
        def launch(A):
            return big.shape[0] + held[0].shape[0] + owner.big.shape[0]
    """, np=np)
    dependencies = Dependencies.of([names["launch"]], {})
    guard = guard_of(dependencies)
    assert guard()
    gone = [weakref.ref(x) for x in (names["big"], names["owner"], names["owner"].big, names["held"][0])]
    names["big"] = names["owner"] = None
    names["held"][0] = None
    gc.collect()
    assert all(ref() is None for ref in gone)
    assert not guard() and not dependencies.fit({})


def test_a_tensor_of_torch_changed_in_place_is_noticed() -> None:
    torch = pytest.importorskip("torch")
    names = cell("@flyc.jit\ndef launch(A):\n    return table[0]", table=torch.zeros(4))
    dependencies = Dependencies.of([names["launch"]], {})
    guard = guard_of(dependencies)
    assert guard()
    names["table"][0] = 1.0
    assert not guard() and not dependencies.fit({})


def test_a_global_called_as_an_attribute_that_is_read_is_no_global_that_is_read() -> None:
    names = cell("""
        x = 1
        @flyc.jit
        def launch(A):
            return fx.thread_idx.x + A.x
    """)
    dependencies = Dependencies.of([names["launch"]], {})
    guard = guard_of(dependencies)
    names["x"] = 2
    assert guard() and dependencies.fit({})


def test_objects_given_as_constants_of_a_later_call() -> None:
    names, dependencies = world()
    other = names["Config"]()
    # Config counts by identity, so that another one does not fit.
    assert guard_of(dependencies, {"c": other}) is never
    by_value = Dependencies.of([names["launch"]], {"c": names["State"](1, [2])})
    given = names["State"](1, [2])
    guard = guard_of(by_value, {"c": given})
    assert guard()
    by_value.given["c"].items.append(3)
    assert guard(), "the object of the compilation is not that of the call"
    given.items.append(3)
    assert not guard() and guard_of(by_value, {"c": given}) is never


def test_globals_that_are_no_plain_dict_have_no_guard() -> None:
    class Globals(dict[str, Any]):
        pass

    def reads_scale() -> Any:
        return scale  # type: ignore[name-defined]  # noqa: F821

    launch = flyc.jit(types.FunctionType(reads_scale.__code__, Globals(scale=1, __builtins__=builtins)))
    assert guard_of(Dependencies.of([launch], {})) is never
