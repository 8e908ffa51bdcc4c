"""R01, R02, R04, R05, R06: what is changed between two runs, what a kernel reads only here and there, launchers that
call each other, number formats as parameters, and a cache that is off.

The values expected are computed by hand from the texts.
"""

from __future__ import annotations

import gc
import threading
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
import flylab.compiler as flyc
import flylab.expr as fx
from flylab.targets import TARGETS
from tests.samples import cell, kernel_of


@pytest.fixture(params=list(TARGETS), autouse=True)
def chip(request: pytest.FixtureRequest) -> Iterator[str]:
    with flylab.use(request.param):
        yield request.param


def ran(launch: Any, *more: Any) -> float:
    a = np.full(64, 2.0, np.float32)
    launch(a, *more)
    assert (a == a[0]).all()
    return float(a[0])


TEXT = """
scale = 2.0

def helper(x, k=1.0, *, w=1.0):
    return x * k * w

class Config:
    tile = 4.0

config = Config()

def factory(captured, parts):
    def change(to):
        nonlocal captured
        captured = to

    @flyc.kernel
    def k(A: fx.Tensor):
        i = fx.thread_idx.x
        A[i] = helper(A[i]) * scale + config.tile + constants.bias + captured + parts[0]["a"]

    @flyc.jit
    def launch(A: fx.Tensor):
        k(A).launch(grid=1, block=64)

    return k, launch, change

parts = [{"a": 100.0}]
k, launch, change = factory(10.0, parts)
"""
# Before any change: 2 * 2 + 4 + 0.5 + 10 + 100

AGAIN = "def helper(x, k=1.0, *, w=1.0):\n    return x + 5.0"
R01: dict[str, tuple[Callable[[dict[str, Any]], Any], float, str]] = {
    "a helper": (lambda n: exec(compile(AGAIN, "<cell again>", "exec"), n), 128.5,
                 "helper 'helper' was defined anew in <cell again>, line 1"),
    "its code alone": (lambda n: setattr(n["helper"], "__code__", (lambda x, k=1.0, *, w=1.0: x + 5.0).__code__), 128.5,
                       "helper 'helper' has other code, of "),
    "a global constant": (lambda n: n.update(scale=3.0), 120.5, "global 'scale': 2.0 -> 3.0"),
    "a closure cell": (lambda n: n["change"](20.0), 128.5, "variable of a function around 'captured': 10.0 -> 20.0"),
    "a default": (lambda n: setattr(n["helper"], "__defaults__", (3.0,)), 126.5,
                  "defaults of 'helper': (1.0,) and {'w': 1.0} -> (3.0,) and {'w': 1.0}"),
    "a keyword default": (lambda n: n["helper"].__kwdefaults__.update(w=3.0), 126.5,
                          "defaults of 'helper': (1.0,) and {'w': 1.0} -> (1.0,) and {'w': 3.0}"),
    "a class attribute": (lambda n: setattr(n["Config"], "tile", 5.0), 119.5, "attribute 'config.tile': 4.0 -> 5.0"),
    "an instance's own": (lambda n: setattr(n["config"], "tile", 6.0), 120.5, "attribute 'config.tile': 4.0 -> 6.0"),
    "a module's constant": (lambda n: setattr(n["constants"], "bias", 1.5), 119.5,
                            "attribute 'constants.bias': 0.5 -> 1.5"),
    "a nested container": (lambda n: n["parts"][0].update(a=200.0), 218.5,
                           "variable of a function around 'parts': [{'a': 100.0}] -> [{'a': 200.0}]"),
}


@pytest.mark.parametrize("name", R01)
def test_r01_a_change_between_two_runs_recompiles_and_is_said(name: str) -> None:
    constants = types.ModuleType("constants_of_mine")
    constants.bias = 0.5  # type: ignore[attr-defined]
    names = cell(TEXT, constants=constants)
    launch, k = names["launch"], names["k"]
    assert ran(launch) == ran(launch) == 118.5
    assert "'launch' was compiled for the first time: chip gfx9" in launch.why_recompiled()
    change, expected, sentence = R01[name]
    change(names)
    assert ran(launch) == ran(launch) == expected
    for function in (launch, k):
        said = function.why_recompiled()
        head = f"the last call of '{function.name}' compiled nothing: it was found in memory\nits last compilation: "
        text = f"'{function.name}' was compiled again, since\n  {sentence}"
        assert said.startswith((text, head + text)) and said.count("\n") == 1 + said.startswith(head)


def test_r01_a_global_that_comes_and_one_that_goes() -> None:
    names = kernel_of("A[fx.thread_idx.x] = (max(3.0, 4.0) if fx.const_expr(True) else later) + 0.5")
    launch = names["launch"]
    assert ran(launch) == 4.5
    names["max"] = min
    assert ran(launch) == 3.5
    assert "global 'max': max -> min" in launch.why_recompiled()
    del names["max"]
    assert ran(launch) == 4.5
    assert "global 'max': min -> max" in launch.why_recompiled()
    names["later"] = 1
    assert ran(launch) == 4.5
    assert "global 'later' is new: 1" in launch.why_recompiled()
    del names["later"]
    assert ran(launch) == 4.5
    assert "global 'later' is gone; it was 1" in launch.why_recompiled()


def test_r01_why_names_arguments_settings_and_where_it_was_found(
    chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, n: fx.Constexpr[int]):
            A[0] = n

        @flyc.jit
        def launch(A: fx.Tensor, n: fx.Constexpr[int]):
            k(A, n).launch(grid=1, block=64)
    """)["launch"]
    assert launch.why_recompiled() == "'launch' has not been compiled yet"

    def reasons(*args: Any) -> list[str]:
        flyc.compile(launch, *args)
        head, *lines = launch.why_recompiled().split("\n")
        assert head == "'launch' was compiled again, since"
        return [line.strip() for line in lines]

    a = np.zeros(1024, np.float32)
    flyc.compile(launch, a, 1)
    assert reasons(np.zeros(2048, np.float32), 1) == ["argument 'A': shape 1024 -> 2048"]
    assert reasons(np.zeros(4096, np.float32)[::2], 1) == ["argument 'A': strides 1 -> 2"]
    assert reasons(np.zeros(4096, np.float16)[::2], 1) == ["argument 'A': dtype Float32 -> Float16"]
    assert reasons(np.zeros(4096, np.float16)[::2], 7) == ["argument 'n': 1 -> 7"]
    other = next(name for name in TARGETS if name != chip)
    with flylab.use(other):
        assert reasons(np.zeros(4096, np.float16)[::2], 7) == [f"chip: {chip} -> {other}"]
        monkeypatch.setenv("FLYLAB_COMPILE_OPT_LEVEL", "0")
        assert reasons(np.zeros(4096, np.float16)[::2], 7) == ["FLYLAB_COMPILE_OPT_LEVEL: 2 -> 0"]
        flyc.compile(launch, np.zeros(4096, np.float16)[::2], 7)
    said = launch.why_recompiled()
    assert said.startswith("the last call of 'launch' compiled nothing: it was found in memory\n"
                           "its last compilation: 'launch' was compiled again, since\n")


def test_r01_why_says_that_a_compilation_was_found_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", "1")
    monkeypatch.setenv("FLYLAB_RUNTIME_CACHE_DIR", str(tmp_path))
    text = "A[fx.thread_idx.x] = scale"
    for said in ("'launch' was compiled for the first time: chip ",
                 "nothing was compiled: 'launch' was found on disk\n'launch' was looked up for the first time: chip "):
        names = kernel_of(text)
        names["scale"] = 3.0
        assert ran(names["launch"]) == 3.0
        assert names["launch"].why_recompiled().startswith(said)
    names["scale"] = 4.0
    assert ran(names["launch"]) == 4.0
    assert names["k"].why_recompiled() == "'k' was compiled again, since\n  global 'scale': 3.0 -> 4.0"


def test_r01_a_kernel_and_a_launcher_defined_anew_under_their_names() -> None:
    names = kernel_of("A[fx.thread_idx.x] = 1.0")
    assert ran(names["launch"]) == 1.0
    text = "@flyc.kernel\ndef k(A: fx.Tensor):\n    A[fx.thread_idx.x] = {}\n"
    for value in (2.0, 2.0):
        again = cell(text.format(value))
        names["k"] = again["k"]
        assert ran(names["launch"]) == 2.0
        said = names["launch"].why_recompiled()
        assert f"kernel 'k' was defined anew in {again['FILE']}, line 1" in said
    assert said.endswith("with the same text")


R02 = {
    "only inside a loop": "for _ in range(2):\n    A[i] = helper(A[i])",
    "only inside an if": "if i < 64:\n    A[i] = helper(helper(A[i]))",
    "only inside an else": "if i >= 64:\n    A[i] = 0.0\nelse:\n    A[i] = helper(helper(A[i]))",
    "only in a nested def": "def nested(x):\n    return helper(helper(x))\nA[i] = nested(A[i])",
    "only in a lambda": "f = lambda x: helper(helper(x))\nA[i] = f(A[i])",
    "only in a comprehension": "x = A[i]\nA[i] = [helper(helper(y)) for y in (x,)][0]",
    "only as a method": "A[i] = instance.method(A[i])",
    "only as a static method": "A[i] = Kind.static(A[i])",
    "only through a default": "def nested(x, f=helper):\n    return f(f(x))\nA[i] = nested(A[i])",
    "only in a helper's helper": "A[i] = outer(A[i])",
}


@pytest.mark.parametrize("name", R02)
def test_r02_a_helper_that_is_called_only_here(name: str) -> None:
    names = kernel_of("i = fx.thread_idx.x\n" + R02[name])
    text = """
        def helper(x):
            return x + {}

        def outer(x):
            return helper(helper(x))

        class Kind:
            def method(self, x):
                return helper(helper(x))

            @staticmethod
            def static(x):
                return helper(helper(x))

        instance = Kind()
    """
    helpers = cell(text.format(1.0))
    names.update({n: helpers[n] for n in ("helper", "outer", "Kind", "instance")})
    assert ran(names["launch"]) == 4.0
    names["helper"] = helpers["helper"] = cell(text.format(3.0))["helper"]
    assert ran(names["launch"]) == 8.0
    assert "helper 'helper' was defined anew in" in names["launch"].why_recompiled()


MUTUAL = """
@flyc.kernel
def k(A: fx.Tensor, n: fx.Constexpr[int]):
    A[fx.thread_idx.x] += n

@flyc.jit
def one(A: fx.Tensor, n: fx.Constexpr[int]):
    k(A, n).launch(grid=1, block=64)
    if n > 0:
        two(A, n - 1)

@flyc.jit
def two(A: fx.Tensor, n: fx.Constexpr[int]):
    k(A, 10 * n).launch(grid=1, block=64)
    if n > 0:
        one(A, n - 1)

@flyc.jit
def itself(A: fx.Tensor, n: fx.Constexpr[int]):
    k(A, 1).launch(grid=1, block=64)
    if n > 0:
        itself(A, n - 1)

@flyc.jit
def endless(A: fx.Tensor):
    endless(A)
"""


def test_r04_launchers_that_call_themselves_and_each_other() -> None:
    names = cell(MUTUAL)
    assert ran(names["itself"], 3) == 2.0 + 4
    assert ran(names["one"], 3) == 2.0 + 3 + 20 + 1 + 0
    assert ran(names["two"], 3) == 2.0 + 30 + 2 + 10 + 0
    with pytest.raises(flylab.errors.TraceError, match="'endless' calls itself without an end") as caught:
        ran(names["endless"])
    assert caught.value.where is not None and caught.value.where.function == "endless"
    assert ran(names["one"], 1) == 2.0 + 1 + 0


def test_r04_from_two_threads_at_once() -> None:
    names = cell(MUTUAL)
    start, found, failed = threading.Barrier(2), {}, []

    def run(first: str, second: str) -> None:
        try:
            start.wait(60)
            found[first] = ran(names[first], 3), ran(names[second], 2)
        except Exception as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in (("one", "two"), ("two", "one"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not failed and not any(thread.is_alive() for thread in threads)
    assert found == {"one": (26.0, 2.0 + 20 + 1 + 0), "two": (44.0, 2.0 + 2 + 10 + 0)}


def test_r05_a_number_format_as_a_parameter() -> None:
    launch = cell("""
        @flyc.kernel
        def k(A: fx.Tensor, kind: fx.Constexpr):
            i = fx.thread_idx.x
            A[i] = kind(A[i]).to(fx.Float32)

        @flyc.jit
        def launch(A: fx.Tensor, kind: fx.Constexpr):
            k(A, kind).launch(grid=1, block=64)
    """)["launch"]
    third = np.full(64, 1 / 3, np.float32)
    made = {}
    for kind, dtype in ((fx.Float32, np.float32), (fx.Float16, np.float16), (fx.Float32, np.float32)):
        a = third.copy()
        launch(a, kind)
        assert a[0] == np.float32(dtype(np.float32(1 / 3)))
        made.setdefault(kind, flyc.compile(launch, a, kind))
        assert flyc.compile(launch, a, kind) is made[kind]
    assert made[fx.Float32].isa.text != made[fx.Float16].isa.text
    assert "v_cvt_f16_f32" in made[fx.Float16].code.assembly and "v_cvt" not in made[fx.Float32].code.assembly
    assert "argument 'kind': class Float32 -> class Float16" in launch.why_recompiled()


def test_r06_a_cache_that_is_off_and_a_collection_between_two_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLAB_RUNTIME_ENABLE_CACHE", "0")
    names = kernel_of("A[fx.thread_idx.x] += 1.5")
    for expected in (3.5, 3.5):
        assert ran(names["launch"]) == expected
        gc.collect()
    compiled = flyc.compile(names["launch"], np.zeros(64, np.float32))
    del names
    gc.collect()
    assert ran(compiled) == 3.5
