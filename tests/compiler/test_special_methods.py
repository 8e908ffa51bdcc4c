"""What a kernel reaches without naming it counts: hidden methods behind `super()`, special methods, modules that a
function imports, attributes named by a text, functions of a package that is installed."""

from __future__ import annotations

import functools
import importlib
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flylab.compiler.reads import imports_in
from flylab.compiler.users import is_library
from tests.samples import cell

TAIL = """

@flyc.kernel
def k(A: fx.Tensor):
    A[fx.thread_idx.x] = fx.Float32({value})

@flyc.jit
def launch(A: fx.Tensor):
    k(A).launch(grid=1, block=64)
"""


def result(names: dict[str, Any]) -> float:
    found = np.zeros(64, np.float32)
    names["launch"](found)
    return float(found[0])


def set_y(names: dict[str, Any]) -> None:
    names["Y"] = 5.0


def on(name: str, attribute: str, value: Any) -> Any:
    return lambda names: setattr(names[name], attribute, value)


INHERITED = """
    Y = 3.0
    class Base:
        factor = 3.0
        def f(self): return Y
        def g(self): return 3.0
        @classmethod
        def h(cls): return Y
    class Made(Base):
        factor = 9.0
        def f(self): return super().f()
        def g(self): return super().g()
        @classmethod
        def h(cls): return super().h()
        def read(self): return super().factor
    made = Made()
"""
# The text before the kernel, the value that it stores, which is 3 and then 5, and the change.
CHANGES: dict[str, tuple[str, str, Any]] = {
    "a global of a method that is overridden": (INHERITED, "made.f()", set_y),
    "a method that is overridden": (INHERITED, "made.g()", lambda n: setattr(n["Base"], "g", lambda self: 5.0)),
    "a class method that is overridden": (INHERITED, "Made.h()", set_y),
    "an attribute that is overridden": (INHERITED, "made.read()", on("Base", "factor", 5.0)),
    "an overridden __init__": ("""
        class Base:
            def __init__(self): self.x = Y
        class Made(Base):
            def __init__(self): super().__init__()
        Y = 3.0
    """, "Made().x", set_y),
    "__new__": ("""
        class Pair(tuple):
            def __new__(cls): return tuple.__new__(cls, (Y, 1.0))
        Y = 3.0
    """, "Pair()[0]", set_y),
    "__class_getitem__": ("""
        class Table:
            def __class_getitem__(cls, index): return Y
        Y = 3.0
    """, "Table[1]", set_y),
    "a static __call__": ("""
        class Rule:
            @staticmethod
            def __call__(): return Y
        rule, Y = Rule(), 3.0
    """, "rule()", set_y),
    "a __call__ that is a launcher": ("""
        class Rule:
            @flyc.jit
            def __call__(self): return Y
        rule, Y = Rule(), 3.0
    """, "rule()", set_y),
    "a __call__ that is an object": ("""
        class Inner:
            def __call__(self): return Y
        class Rule:
            __call__ = Inner()
        rule, Y = Rule(), 3.0
    """, "rule()", set_y),
    "a __call__ with an argument": ("""
        import functools
        class Rule:
            def f(self, x): return x
            __call__ = functools.partialmethod(f, 3.0)
        rule = Rule()
    """, "rule()", lambda n: setattr(n["Rule"], "__call__", functools.partialmethod(n["Rule"].f, 5.0))),
    "a method with an argument": ("""
        import functools
        class Rule:
            def f(self, x): return x + Y
            g = functools.partialmethod(f, 0.0)
        rule, Y = Rule(), 3.0
    """, "rule.g()", set_y),
    "a function registered for a type": ("""
        import functools
        @functools.singledispatch
        def f(x): return 9.0
        f.register(int, lambda x: 3.0)
    """, "f(1)", lambda n: n["f"].register(int, lambda x: 5.0)),
    "a global of one that is registered": ("""
        import functools
        class Rule:
            @functools.singledispatchmethod
            def f(self, x): return 9.0
            @f.register
            def _(self, x: int): return Y
        rule, Y = Rule(), 3.0
    """, "rule.f(1)", set_y),
    "an attribute named by a text": ("""
        class Options: pass
        def f(): return 5.0 if hasattr(Options, "wide") else 3.0
    """, "f()", on("Options", "wide", True)),
    "an attribute looked up by a text": ("""
        class Options: width = 3.0
        def f(): return getattr(Options, "width")
    """, "f()", on("Options", "width", 5.0)),
    "the order of an ordered dict": ("""
        from collections import OrderedDict
        table = OrderedDict(a=3.0, b=5.0)
    """, "next(iter(table.values()))", lambda n: n["table"].move_to_end("a")),
    "a dict behind its view": ("""
        table = {"a": 3.0}
        view = table.values()
    """, "max(view)", lambda n: n["table"].update(a=5.0)),
    "an object behind a weak reference": ("""
        import weakref
        class Options: pass
        options = Options()
        options.width, reference = 3.0, weakref.ref(options)
    """, "reference().width", on("options", "width", 5.0)),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_behind_no_name_compiles_anew(name: str) -> None:
    text, value, change = CHANGES[name]
    names = cell(text)
    names = cell(TAIL.format(value=value), **names) | {"space": names}
    for function in ("k", "launch"):
        names["space"][function] = names[function]
    assert [result(names), result(names)] == [3, 3]
    change(names)
    change(names["space"])
    assert [result(names), result(names)] == [5, 5]


@pytest.mark.parametrize("imports", ["import settings_here as s", "from settings_here import scale",
                                     "from settings_here import call as s"])
def test_a_module_that_a_function_imports_counts(imports: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = types.ModuleType("settings_here")
    exec("scale = 3.0\ndef call(): return scale", module.__dict__)
    monkeypatch.setitem(sys.modules, "settings_here", module)
    value = {"scale": "scale", "s": "s()"}[imports.split()[-1]] if "from" in imports else "s.scale"
    names = cell(f"def f():\n    {imports}\n    return {value}\n" + TAIL.format(value="f()"))
    assert [result(names), result(names)] == [3, 3]
    module.scale = 5.0
    assert [result(names), result(names)] == [5, 5]
    other: Any = types.ModuleType("settings_here")
    exec("scale = 7.0\ndef call(): return scale", other.__dict__)
    monkeypatch.setitem(sys.modules, "settings_here", other)
    assert [result(names), result(names)] == [7, 7]


def test_the_getattr_of_a_module_counts() -> None:
    module: Any = types.ModuleType("lazy")
    exec("table = {'scale': 3.0}\ndef __getattr__(name): return table[name]", module.__dict__)
    names = cell(TAIL.format(value="lazy.scale"), lazy=module)
    assert [result(names), result(names)] == [3, 3]
    module.table["scale"] = 5.0
    assert [result(names), result(names)] == [5, 5]


def test_why_tells_what_holds_a_change_from_another_object() -> None:
    text = "class Options: width = 3.0\nheld = [Options()]\nalone = Options()"
    names = cell(text + TAIL.format(value="held[0].width + alone.width"))
    assert result(names) == 6
    names["held"][0].width = 5.0
    assert result(names) == 8
    assert "global 'held' holds what was changed: [an Options]" in names["launch"].why_recompiled()
    old, names["alone"] = names["alone"], names["Options"]()
    assert result(names) == 8
    assert old and "global 'alone' is another: an Options" in names["launch"].why_recompiled()


def test_which_modules_a_function_imports() -> None:
    def imports() -> None:
        import json
        from os import path

        def inner() -> None:
            import numpy.linalg  # noqa: F401

            from . import sibling  # type: ignore[attr-defined]  # noqa: F401

        inner()
        json, path  # noqa: B018

    assert imports_in(imports.__code__) == ((0, "json"), (0, "os"), (0, "numpy.linalg"), (1, ""))


@pytest.mark.parametrize("folder", ["site-packages", "dist-packages", "my-packages"])
def test_a_package_with_kernels_is_the_users_wherever_it_is(folder: str, tmp_path: Path,
                                                            monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"kernels_in_{folder.replace('-', '_')}"
    package = tmp_path / folder / name
    package.mkdir(parents=True)
    (package / "sizes.py").write_text("scale = 3.0\ndef f(): return scale\n")
    head = f"import flylab.compiler as flyc\nimport flylab.expr as fx\nfrom {name} import sizes\n"
    (package / "__init__.py").write_text(head + TAIL.format(value="sizes.f()"))
    (package.parent / f"plain_{name}.py").write_text("scale = 1.0\n")
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = importlib.import_module(name)
    assert [result(vars(module)), result(vars(module))] == [3, 3]
    module.sizes.scale = 5.0
    assert [result(vars(module)), result(vars(module))] == [5, 5]
    assert not is_library(str(package / "sizes.py"))
    assert is_library(str(package.parent / f"plain_{name}.py")) == (folder != "my-packages")
