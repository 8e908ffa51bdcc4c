"""What counts as a change: equal constants that differ, objects read through syntax, all kinds of containers."""

from __future__ import annotations

import collections
import decimal
import functools
import pathlib
from typing import Any

import numpy as np
import pytest

import flylab.compiler as flyc
from flylab.compiler import meaning as meanings
from flylab.compiler.meaning import meaning
from flylab.errors import ArgumentError
from tests.samples import cell

CONSTANT = """
import dataclasses
import functools

@dataclasses.dataclass(frozen=True)
class Cfg:
    tile: int
    scale: float = dataclasses.field(default=1.0, compare=False)
    table: object = dataclasses.field(default=None, hash=False)

    @functools.cached_property
    def factor(self):
        return self.scale * 10

class Slots:
    __slots__ = ("scale",)

    def __init__(self, scale):
        self.scale = scale

    def __eq__(self, other):
        return True

    __hash__ = None

    factor = 1.0

class Vague:
    '''An object whose comparison gives no truth value.'''

    def __init__(self, scale):
        self.scale = scale

    def __eq__(self, other):
        raise AssertionError("compared")

    def __hash__(self):
        return 0

    factor = 1.0

@flyc.kernel
def k(A: fx.Tensor, c: fx.Constexpr):
    A[fx.thread_idx.x] = c.scale + c.factor

@flyc.jit
def launch(A: fx.Tensor, c: fx.Constexpr):
    k(A, c).launch(grid=1, block=64)
"""


def result(launch: Any, *args: Any) -> float:
    A = np.zeros(64, np.float32)
    launch(A, *args)
    return float(A[63])


@pytest.mark.parametrize(
    "text, expected",
    [
        ("Cfg(1, {})", (22.0, 33.0)),
        ("Cfg(1, {}, np.zeros(3))", (22.0, 33.0)),
        ("Cfg(1, {}, np.zeros(1 << 14))", None),
        ("Slots({})", (3.0, 4.0)),
        ("Vague({})", (3.0, 4.0)),
    ],
)
def test_constants_that_are_equal_and_differ(text: str, expected: tuple[float, float] | None) -> None:
    names = {**cell(CONSTANT), "np": np}
    two, three = (lambda: eval(text.format("2.0"), names)), (lambda: eval(text.format("3.0"), names))
    launch = names["launch"]
    assert (result(launch, two()), result(launch, three())) == (expected or (22.0, 33.0))
    assert result(launch, two()) == (expected or (22.0, 33.0))[0]
    given = three()
    first = flyc.compile(launch, np.zeros(64, np.float32), given)
    # Objects that hold the same need no compilation of their own; two large arrays are two objects.
    assert (flyc.compile(launch, np.zeros(64, np.float32), three()) is first) == (expected is not None)
    assert result(first, given) == (expected or (22.0, 33.0))[1]


def test_a_changed_constant_compiles_anew_and_keeps_no_old_compilations() -> None:
    names = cell(CONSTANT)
    launch, constant = names["launch"], names["Slots"](1.0)
    for step in range(5):
        constant.scale = float(step)
        assert result(launch, constant) == step + 1.0
    assert [len(bucket) for bucket in launch.specialisations.values()] == [1]


def test_a_field_that_changed_is_named() -> None:
    names = cell(CONSTANT)
    launch, constant = names["launch"], names["Cfg"](1, 2.0)
    flyc.compile(launch, np.zeros(64, np.float32), constant)
    (((_, dependencies),),) = launch.specialisations.values()
    object.__setattr__(constant, "scale", 3.0)
    assert dependencies.changed() == ["c.scale"]
    object.__setattr__(constant, "more", 3.0)
    assert sorted(dependencies.changed()) == ["c.more", "c.scale"]


def test_kernels_that_are_methods_of_a_dataclass() -> None:
    names = cell("""
        import dataclasses

        @dataclasses.dataclass
        class Op:
            scale: float
            parts: list

            @flyc.kernel
            def k(self, A: fx.Tensor):
                A[fx.thread_idx.x] = self.scale + self.parts[0]

            @flyc.jit
            def launch(self, A: fx.Tensor):
                self.k(A).launch(grid=1, block=64)
    """)
    op = names["Op"](2.0, [0.5])
    assert result(op.launch) == 2.5
    op.scale = 3.0
    assert result(op.launch) == 3.5
    op.parts[0] = 1.5
    assert result(op.launch) == result(names["Op"](3.0, [1.5]).launch) == 4.5
    compiled = flyc.compile(op.launch, np.zeros(64, np.float32))
    assert flyc.compile(op.launch, np.zeros(64, np.float32)) is compiled


def test_a_list_is_still_no_constant() -> None:
    launch = cell(CONSTANT)["launch"]
    for value in ([1], {}, (1, []), np.zeros(3), bytearray(b"x")):
        with pytest.raises(ArgumentError, match="which can change after compiling"):
            launch(np.zeros(64, np.float32), value)


SYNTAX = """
import functools
import types

class Meta(type):
    def __getattr__(cls, name):
        return of_class

class Made(metaclass=Meta):
    pass

class Table:
    def __init__(self):
        self.factor = 1.0
        self.inner = types.SimpleNamespace(bias=2.0)

    def __call__(self, x):
        return x * self.factor

    def __getitem__(self, index):
        return index + self.inner.bias

def scaled(x, by):
    return x * by

@functools.lru_cache(maxsize=None)
def remembered():
    return hidden

def helper():
    return helper.extra

helper.extra = 5.0
hidden = of_class = 1.0
table = Table()
part = functools.partial(scaled, by=3.0)
deep = [[[[[[1.0]]]]]]

@flyc.kernel
def k(A: fx.Tensor):
    first = table(1.0) + table[1.0] + part(1.0)
    A[fx.thread_idx.x] = first + remembered() + helper() + Made.any + deep[0][0][0][0][0][0]

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""


def plus_one(f: Any) -> Any:
    return lambda *args: f(*args) + 1.0


SYNTAX_CHANGES: dict[str, tuple[Any, float]] = {
    "an attribute read in __call__": (lambda n: setattr(n["table"], "factor", 2.0), 1.0),
    "an attribute of an attribute read in __getitem__": (lambda n: setattr(n["table"].inner, "bias", 3.0), 1.0),
    "a special method": (lambda n: setattr(n["Table"], "__call__", plus_one(n["Table"].__call__)), 1.0),
    "a keyword of a partial": (lambda n: n["part"].keywords.update(by=4.0), 1.0),
    "a partial made anew": (lambda n: n.update(part=functools.partial(n["scaled"], by=4.0)), 1.0),
    "a global of a cached function": (lambda n: (n.update(hidden=2.0), n["remembered"].cache_clear()), 1.0),
    "a global read for any attribute of a class": (lambda n: n.update(of_class=2.0), 1.0),
    "an attribute of a function": (lambda n: setattr(n["helper"], "extra", 6.0), 1.0),
    "a number in nested lists": (lambda n: n["deep"][0][0][0][0][0].__setitem__(0, 2.0), 1.0),
}


@pytest.mark.parametrize("name", SYNTAX_CHANGES)
def test_a_change_behind_syntax_compiles_anew(name: str) -> None:
    change, more = SYNTAX_CHANGES[name]
    names = cell(SYNTAX)
    before = result(names["launch"])
    first = flyc.compile(names["launch"], np.zeros(64, np.float32))
    assert flyc.compile(names["launch"], np.zeros(64, np.float32)) is first
    change(names)
    assert result(names["launch"]) == before + more


def appended(value: Any) -> None:
    value.append(2)


CONTAINERS: dict[str, tuple[Any, Any]] = {
    "list": (lambda: [1], appended),
    "deque": (lambda: collections.deque([1]), appended),
    "bytearray": (lambda: bytearray(b"1"), appended),
    "dict": (lambda: {"a": 1}, lambda v: v.update(a=2)),
    "ordered": (lambda: collections.OrderedDict(a=1), lambda v: v.update(a=True)),
    "chain": (lambda: collections.ChainMap({"a": 1}, {"b": 2}), lambda v: v.maps[1].update(b=3)),
    "user's dict": (lambda: collections.UserDict(a=1), lambda v: v.update(a=2)),
    "set": (lambda: {1}, lambda v: v.add(2)),
    "of each other": (lambda: [{"a": [(1, [2])]}], lambda v: v[0]["a"][0][1].append(3)),
    "array": (lambda: np.zeros(3), lambda v: v.__setitem__(1, 1)),
    "array of objects": (lambda: np.array([None, "a"]), lambda v: v.__setitem__(0, 1)),
    "shape of an array": (lambda: np.zeros(4), lambda v: setattr(v, "shape", (2, 2))),
    "partial": (lambda: functools.partial(max, [1], key=min), lambda v: v.args[0].append(2)),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_count_by_what_they_hold(name: str) -> None:
    make, change = CONTAINERS[name]
    value = make()
    before = meaning(value)
    assert before == meaning(value) == meaning(make())
    change(value)
    assert before != meaning(value)


def test_containers_that_hold_themselves_or_nest_far() -> None:
    one: list[Any] = [1]
    one.append([one, one])
    before = meaning(one)
    assert before == meaning(one)
    one[0] = 2
    assert before != meaning(one)
    deep: list[Any] = []
    for _ in range(10_000):
        deep = [deep]
    assert meaning(deep) == meaning(deep)


def test_a_long_list_is_told_to_be_the_same_without_looking_into_each_item(monkeypatch: pytest.MonkeyPatch) -> None:
    table = [float(x) for x in range(10_000)]
    before = meaning(table)
    looked: list[Any] = []
    monkeypatch.setattr(meanings, "exact", lambda value: looked.append(value) or value)
    assert before == meaning(table)
    assert not looked
    table[9_999] = 9_999
    monkeypatch.undo()
    assert before != meaning(table)


@pytest.mark.parametrize(
    "one, same, other",
    [
        (decimal.Decimal("1.0"), decimal.Decimal("1.0"), decimal.Decimal("1.00")),
        (pathlib.Path("a"), pathlib.Path("a"), pathlib.Path("b")),
        (np.dtype("f4"), np.dtype("f4"), np.dtype("f8")),
        (complex(1, 0.0), complex(1, 0.0), complex(1, -0.0)),
        (slice(1), slice(1), slice(2)),
        (range(3), range(3), range(4)),
    ],
)
def test_values_of_libraries(one: Any, same: Any, other: Any) -> None:
    assert meaning(one) == meaning(same) != meaning(other)


def test_tensors_of_torch_count_by_identity_and_by_their_changes() -> None:
    torch = pytest.importorskip("torch")
    one = torch.zeros(3)
    before = meaning(one)
    assert before == meaning(one) != meaning(torch.zeros(3))
    one[1] = 5
    assert before != meaning(one)
