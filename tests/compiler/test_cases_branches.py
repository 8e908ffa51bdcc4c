"""Users' cases L01 to L03 and L10 to L16: branches. Each body gives on the device what Python gives for each thread.

A row is a program over `t` (the thread), `n`, `m` (runtime integers), `A` (integers), `X` (floats), `R` (the result).
"""

from __future__ import annotations

import pytest

from tests.compiler.threads import agree, line_of, refused

HELPERS = """
def below(a, b):
    return a < b

class Flags:
    shared = 3

    def __init__(self, flag):
        self.flag = flag

    @property
    def again(self):
        return self.flag

    def __call__(self):
        return self.flag

    def __getitem__(self, index):
        return self.flag

def pair(a, b):
    return a < b, a > b
"""

# L01: a condition that was computed before, and reached in any way.
CONDITIONS = {
    "a name": "flag = t < n\nif flag:\n    R[t] = 1\nelse:\n    R[t] = 2",
    "an annotated name": "flag: object = t < n\nif flag:\n    R[t] = 1",
    "an attribute": "ns = types.SimpleNamespace(flag=t < n)\nif ns.flag:\n    R[t] = 1",
    "an attribute of a user's object": "f = Flags(t < n)\nif f.flag:\n    R[t] = 1",
    "a property": "f = Flags(t < n)\nif f.again:\n    R[t] = 1",
    "a call": "if below(t, n):\n    R[t] = 1",
    "a call kept in a name": "flag = below(t, n)\nif flag:\n    R[t] = 1",
    "a callable object": "f = Flags(t < n)\nif f():\n    R[t] = 1",
    "__getitem__ of a user's object": "f = Flags(t < n)\nif f[0]:\n    R[t] = 1",
    "a list's item": "flags = [t > 9, t < n]\nif flags[1]:\n    R[t] = 1",
    "a tuple's last item": "flags = (t > 9, t < n)\nif flags[-1]:\n    R[t] = 1",
    "a dict's entry": "flags = {'in': t < n}\nif flags['in']:\n    R[t] = 1",
    "dict.get": "flags = {'in': t < n}\nif flags.get('in'):\n    R[t] = 1",
    "an unpacked tuple": "a, b = t < n, t > m\nif a:\n    R[t] = 1\nif b:\n    R[t] = 2",
    "an unpacked call": "a, b = pair(t, n)\nif b:\n    R[t] = 1",
    "a starred target": "first, *rest = [t > 9, t < n, t > n]\nif rest[0]:\n    R[t] = 1",
    "a nested target": "(a, (b, c2)) = (1, (t < n, 2))\nif b:\n    R[t] = a + c2",
    "a default argument": (
        "def inner(flag=t < n):\n    if flag:\n        R[t] = 1\ninner()"
    ),
    "a keyword argument": "def inner(*, flag):\n    if flag:\n        R[t] = 1\ninner(flag=t < n)",
    "*args and **named": (
        "def inner(*args, **named):\n    if args[0]:\n        R[t] = 1\n    if named['flag']:\n        R[t] = 2\n"
        "inner(t < n, flag=t > m)"
    ),
    "a closure": "flag = t < n\ndef inner():\n    if flag:\n        R[t] = 1\ninner()",
    "a lambda": "test = lambda v: v < n\nif test(t):\n    R[t] = 1",
    "a lambda's result kept": "flag = (lambda v: v < n)(t)\nif flag:\n    R[t] = 1",
    "functools.partial": "if functools.partial(below, t)(n):\n    R[t] = 1",
    "a chain of names": "a = t < n\nb = a\nc2 = b\nif c2:\n    R[t] = 1",
    "a walrus": "if (flag := t < n):\n    R[t] = 1\nif flag:\n    R[t] = 2",
    "a conditional expression": "flag = t < n if n > 3 else t > 50\nif flag:\n    R[t] = 1",
    "not": "flag = t < n\nif not flag:\n    R[t] = 1",
    "and of names": "a = t < n\nb = t > m\nif a and b:\n    R[t] = 1",
    "&, | and ~": "a = t < n\nb = t > m\nif a & b:\n    R[t] = 1\nif a | b:\n    R[t] = R[t] + 200",
    "== of two flags": "if (t < n) == (t > m):\n    R[t] = 1",
    "an integer": "if A[t]:\n    R[t] = 1",
    "a float": "if X[t]:\n    R[t] = 1",
    "a difference": "d = t - n\nif d:\n    R[t] = 1",
    "a flag set in a branch": "flag = t < n\nif t > 20:\n    flag = A[t] > 0\nif flag:\n    R[t] = 1",
    "a flag set in a loop": "flag = t < 0\nfor i in range(n):\n    flag = flag or A[t] == i\nif flag:\n    R[t] = 1",
    "a for over flags": "for flag in [t < n, t > m]:\n    if flag:\n        R[t] = 1",
    "a comprehension's flags": "flags = [A[t] == i for i in range_constexpr(4)]\nif flags[2]:\n    R[t] = 1",
    "elif of names": (
        "a, b = t < n, t > 30\nif a:\n    R[t] = 1\nelif b:\n    R[t] = 2\nelse:\n    R[t] = 3"
    ),
    "a while's test": "i = t\nflag = i < n\nwhile flag:\n    i += 3\n    flag = i < n\nR[t] = i",
    "a constant": "flag = 3 < 4\nif flag:\n    R[t] = 1\nif not flag:\n    R[t] = fx.unknown",
}


@pytest.mark.parametrize("body", CONDITIONS.values(), ids=CONDITIONS)
def test_l01_a_condition_reached_in_any_way(body: str) -> None:
    agree(body, HELPERS)


# L02: a value that arms define.
DEFINED = {
    "in both arms": "if t < n:\n    x = A[t]\nelse:\n    x = 7\nR[t] = x",
    "in all of elif": "if t < n:\n    x = 1\nelif t < 40:\n    x = 2\nelse:\n    x = 3\nR[t] = x",
    "several at once": "if t < n:\n    x, y = 1, t\nelse:\n    y, x = 2, t\nR[t] = x * 100 + y",
    "before and in one arm": "x = 5\nif t < n:\n    x = t\nR[t] = x",
    "in nested arms": (
        "if t < n:\n    if t > m:\n        x = 1\n    else:\n        x = 2\nelse:\n    x = 3\nR[t] = x"
    ),
    "in one arm, and used there": "if t < n:\n    x = t * 2\n    R[t] = x",
    "in one arm, then bound anew": "if t < n:\n    x = t\nx = 4\nR[t] = x",
    "twice in two ifs": "if t < n:\n    x = 1\n    R[t] = x\nif t > 50:\n    x = 2\n    R[t] = x",
    "another type in each arm, used there": (
        "if t < n:\n    x = 1.5\n    R[t] = fx.Int32(x * 2)\nelse:\n    x = (1, 2)\n    R[t] = x[1]"
    ),
    "a Boolean": "if t < n:\n    x = t > 2\nelse:\n    x = False\nif x:\n    R[t] = 1",
    "a function": (
        "if c > 3:\n    f = lambda v: v + 1\nelse:\n    f = lambda v: v + 2\nR[t] = f(t)"
    ),
    "by augmented assignment": "x = t\nif t < n:\n    x += 10\n    x *= 2\nR[t] = x",
    "swapped": "a, b = t, n\nif t < n:\n    a, b = b, a\nR[t] = a * 100 - b",
    "an index": "if t < n:\n    i = 3\nelse:\n    i = t\nR[t] = A[i]",
    "a walrus": "if (x := t + 1) < n:\n    R[t] = x\nelse:\n    R[t] = -x",
}


@pytest.mark.parametrize("body", DEFINED.values(), ids=DEFINED)
def test_l02_a_value_that_arms_define(body: str) -> None:
    agree(body)


ONE_SIDED = {
    "then": ("if t < n:\n    x = t\nR[t] = x  # use", "where the `if` on line {0} holds", "if t < n:"),
    "else": ("if t < n:\n    pass\nelse:\n    x = t\nR[t] = x  # use",
             "where the `if` on line {0} does not hold", "if t < n:"),
    "the middle of elif": (
        "if t < n:\n    x = 1\nelif t < 40:\n    x = 2\nR[t] = x  # use",
        "where the `if` on line {0} holds",
        "elif t < 40:",
    ),
    "a nested if": (
        "if t < n:\n    if t > 3:  # inner\n        x = t\n    R[t] = x  # use",
        "where the `if` on line {0} holds",
        "# inner",
    ),
    "in a condition": ("if t < n:\n    x = t\nif x > 3:  # use\n    R[t] = 1",
                       "where the `if` on line {0} holds", "if t < n:"),
    "in a call": ("if t < n:\n    x = t\nR[fx.max(x, 1)] = 1  # use",
                  "where the `if` on line {0} holds", "if t < n:"),
    "augmented": ("if t < n:\n    x = t\nx += 1  # use\nR[t] = x", "where the `if` on line {0} holds", "if t < n:"),
    "in a closure": ("if t < n:\n    x = t\ndef f():\n    return x  # use\nR[t] = f()",
                     "where the `if` on line {0} holds", "if t < n:"),
}


@pytest.mark.parametrize("body, words, branch", ONE_SIDED.values(), ids=ONE_SIDED)
def test_l02_a_value_of_one_arm_names_the_variable_both_lines_and_the_fix(
    body: str, words: str, branch: str
) -> None:
    line = line_of(body, branch)
    error = refused(body)
    assert error.where is not None and error.where.line == line_of(body, "# use")
    assert f"'x' has a value only {words.format(line)}" in error.message
    assert f"give 'x' a value before the `if` on line {line}, or in" in (error.hint or "")


# L03: containers and objects that an arm changes.
CONTAINERS = {
    "a list bound anew": "xs = [t, n]\nif t < n:\n    xs = [n, m]\nR[t] = xs[0] * 100 + xs[1]",
    "an item of a list": "xs = [t, n]\nif t < n:\n    xs[0] = m\nR[t] = xs[0] * 100 + xs[1]",
    "an item in both arms": "xs = [0, 0]\nif t < n:\n    xs[0] = 1\nelse:\n    xs[1] = 2\nR[t] = xs[0] * 10 + xs[1]",
    "an item, augmented": "xs = [t, n]\nif t < n:\n    xs[1] += 5\nR[t] = xs[1]",
    "a slice": "xs = [t, n, m]\nif t < n:\n    xs[0:2] = [7, 8]\nR[t] = xs[0] * 100 + xs[1] * 10 + xs[2]",
    "an entry of a dict": "d = {'a': t, 'b': 2}\nif t < n:\n    d['a'] = 7\nR[t] = d['a'] * d['b']",
    "update of a dict": "d = {'a': t}\nif t < n:\n    d.update(a=7)\nR[t] = d['a']",
    "an attribute": "ns = types.SimpleNamespace(a=t, b=1)\nif t < n:\n    ns.a = 9\nR[t] = ns.a + ns.b",
    "setattr": "ns = types.SimpleNamespace(a=t)\nif t < n:\n    setattr(ns, 'a', 9)\nR[t] = ns.a",
    "an attribute of a user's object": "f = Flags(t)\nif t < n:\n    f.flag = 9\nR[t] = f.flag",
    "an attribute set by a method": (
        "class Box:\n    def __init__(self, v):\n        self.v = v\n    def set(self, v):\n        self.v = v\n"
        "b = Box(t)\nif t < n:\n    b.set(9)\nR[t] = b.v"
    ),
    "a nested list": "xs = [[t, 1], [2, 3]]\nif t < n:\n    xs[0][1] = 9\nR[t] = xs[0][0] + xs[0][1]",
    "a list in a dict in an object": (
        "ns = types.SimpleNamespace(d={'a': [t, 2]})\nif t < n:\n    ns.d['a'][1] = t\nR[t] = ns.d['a'][1]"
    ),
    "two names of one list": "xs = [t]\nys = xs\nif t < n:\n    xs[0] = 9\nR[t] = ys[0]",
    "a list changed by a helper": "xs = [t]\ndef put(v):\n    xs[0] = v\nif t < n:\n    put(9)\nR[t] = xs[0]",
    "a list passed to a helper": "def put(ys, v):\n    ys[0] = v\nxs = [t]\nif t < n:\n    put(xs, 9)\nR[t] = xs[0]",
    "a default that is a list": (
        "def put(v, ys=[0]):\n    ys[0] = v\n    return ys\nxs = put(t)\nif t < n:\n    put(9)\nR[t] = xs[0]"
    ),
    "a tuple": "xs = (t, n)\nif t < n:\n    xs = (n, t)\nR[t] = xs[0] * 100 + xs[1]",
    "a named tuple": (
        "P = __import__('collections').namedtuple('P', 'a b')\np = P(t, n)\nif t < n:\n    p = p._replace(a=9)\n"
        "R[t] = p.a * 100 + p.b"
    ),
    "a dataclass": (
        "import dataclasses\n@dataclasses.dataclass\nclass P:\n    a: object\n    b: object\n"
        "p = P(t, n)\nif t < n:\n    p.a = 9\nR[t] = p.a * 100 + p.b"
    ),
    "a frozen dataclass": (
        "import dataclasses\n@dataclasses.dataclass(frozen=True)\nclass P:\n    a: object\n    b: object\n"
        "p = P(t, n)\nif t < n:\n    p = dataclasses.replace(p, a=9)\nR[t] = p.a * 100 + p.b"
    ),
    "a list swapped within": "xs = [t, n]\nif t < n:\n    xs[0], xs[1] = xs[1], xs[0]\nR[t] = xs[0] * 100 - xs[1]",
    "append and pop, one length": "xs = [t, n]\nif t < n:\n    xs.append(9)\n    xs.pop(0)\nR[t] = xs[0] * 100 + xs[1]",
    "the same append in both arms": (
        "xs = [t]\nif t < n:\n    xs.append(1)\nelse:\n    xs.append(2)\nR[t] = xs[1] * 100 + xs[0]"
    ),
    "a list in a loop": "xs = [0, t]\nfor i in range(n):\n    xs[0] = xs[0] + xs[1]\n    xs[1] = i\nR[t] = xs[0]",
    "a dict in a while": "d = {'i': t}\nwhile d['i'] < n:\n    d['i'] += 3\nR[t] = d['i']",
    "an attribute in nested loops": (
        "ns = types.SimpleNamespace(a=0)\nfor i in range(n):\n    for j in range(m):\n        ns.a += j + t\nR[t] = ns.a"
    ),
    "a list rotated in a loop": (
        "xs = [t, 1, 2]\nfor i in range(n):\n    xs = [xs[1], xs[2], xs[0]]\nR[t] = xs[0] * 100 + xs[1] * 10 + xs[2]"
    ),
    "a class attribute": "if t < n:\n    x = Flags.shared\nelse:\n    x = 0\nR[t] = x",
}


@pytest.mark.parametrize("body", CONTAINERS.values(), ids=CONTAINERS)
def test_l03_containers_that_an_arm_or_a_loop_changes(body: str) -> None:
    agree(body, HELPERS)


CHANGED_FORM = {
    "append in an arm": ("xs = [t]\nif t < n:\n    xs.append(1)\nR[t] = xs[0]", ("'xs'", "2", "1"), "length"),
    "a longer list bound in an arm": ("xs = [t]\nif t < n:\n    xs = [1, 2]\nR[t] = xs[0]",
                                      ("'xs'", "a list of 2", "a list of 1"), "both arms"),
    "append in a loop": ("xs = [t]\nfor i in range(n):\n    xs.append(i)\nR[t] = xs[0]",
                         ("'xs'", "1 items before", "2 after"), "length"),
    "pop in a while": ("xs = [t, 1]\nwhile xs[0] < n:\n    xs.pop()\nR[t] = xs[0]",
                       ("'xs'", "2 items before", "1 after"), "length"),
    "a longer list in a loop": ("xs = [t]\nfor i in range(n):\n    xs = xs + [i]\nR[t] = xs[0]",
                                ("'xs'", "a list of 1", "a list of 2"), ""),
    "a new entry in an arm": ("d = {'a': t}\nif t < n:\n    d['b'] = 1\nR[t] = d['a']",
                              ("'d'", "'b'", "one arm"), "before"),
    "a new attribute in a loop": (
        "ns = types.SimpleNamespace(a=t)\nfor i in range(n):\n    ns.b = i\nR[t] = ns.a",
        ("'ns'", "b"), "before"),
    "an entry lost": ("d = {'a': t, 'b': 1}\nif t < n:\n    del d['b']\nR[t] = d['a']", ("'d'", "'b'"), "before"),
    "two types of one item": ("xs = [t]\nif t < n:\n    xs[0] = 1.5\nR[t] = xs[0]", ("'xs[0]'", "1.5", "i32"),
                              "one type"),
    "a set": ("s = {1}\nif t < n:\n    s.add(2)\nR[t] = len(s)", ("'s'",), "Booleans"),
}


@pytest.mark.parametrize("body, words, hint", CHANGED_FORM.values(), ids=CHANGED_FORM)
def test_l03_a_container_that_changes_its_form_is_refused(body: str, words: tuple[str, ...], hint: str) -> None:
    error = refused(body)
    for word in words:
        assert word in error.message
    assert hint in (error.hint or "") and error.hint


# L11: names that belong to a comprehension, a lambda or a walrus.
SCOPES = {
    "a comprehension's variable": "i = t\nxs = [i * 2 for i in range_constexpr(3)]\nR[t] = i + xs[2]",
    "one named as a carried value": (
        "acc = t\nfor k in range(n):\n    xs = [acc * 0 + acc for acc in (1, 2)]\n    acc += xs[1]\nR[t] = acc"
    ),
    "a set, dict and generator": (
        "v = t\nif t < n:\n    d = {v: v for v in (1, 2)}\n    s = sum(v for v in (3, 4))\n    v = d[2] + s\nR[t] = v"
    ),
    "nested comprehensions": (
        "i = t\nj = n\nxs = [[i + j for j in range_constexpr(2)] for i in range_constexpr(2)]\nR[t] = xs[1][1] + i + j"
    ),
    "a lambda's argument": "x = t\nfor k in range(n):\n    f = lambda x: x + 1\n    x = f(x)\nR[t] = x",
    "a lambda's argument in an arm": "x = t\nif t < n:\n    y = (lambda x: x * 2)(4)\n    x = y\nR[t] = x",
    "a helper's argument": "def f(acc):\n    acc = acc + 1\n    return acc\nacc = t\nfor k in range(n):\n    f(acc)\nR[t] = acc",
    "a walrus in a comprehension": "last = 0\nxs = [(last := i) for i in range_constexpr(4)]\nR[t] = last + t",
    "a walrus in a loop": "x = t\nfor k in range(n):\n    if (y := x + k) > 5:\n        x = y - 3\nR[t] = x",
    "a walrus in a test": "i = t\nwhile (j := i * 2) < n:\n    i += 1\nR[t] = i * 100 + j",
    "a comprehension over flags": "flags = [t < n, t > m]\nxs = [1 if flag else 2 for flag in flags]\nR[t] = xs[0] * 10 + xs[1]",
    "a name of a nested class": "v = t\nclass C:\n    v = 3\nif t < n:\n    v = C.v\nR[t] = v",
    "an except's name": "e = t\ntry:\n    x = 1 // 0\nexcept ZeroDivisionError as error:\n    x = 4\nR[t] = e + x",
}


@pytest.mark.parametrize("body", SCOPES.values(), ids=SCOPES)
def test_l11_names_do_not_leak(body: str) -> None:
    agree(body)


# L13: what Python decides has one arm only.
CHOSEN = {
    "== of texts": "space = 'global'\nif space == 'global':\n    R[t] = 1\nelse:\n    R[t] = space.no.such",
    "== of objects": "GLOBAL = object()\nspace = GLOBAL\nif space == GLOBAL:\n    R[t] = 1\nelse:\n    R[t] = None + 1",
    "is": "x = None\nif x is None:\n    R[t] = 1\nelse:\n    R[t] = x.value",
    "in": "if 'b' in ('a', 'b'):\n    R[t] = 1\nelse:\n    R[t] = fx.nothing",
    "isinstance": "if isinstance(A, int):\n    R[t] = A + 1\nelse:\n    R[t] = 2",
    "a Constexpr": "if c == 4:\n    R[t] = 1\nelse:\n    R[t] = [][c]",
    "const_expr": "if const_expr(c > 9):\n    R[t] = [][c]\nelif const_expr(c == 4):\n    R[t] = 2\nelse:\n    R[t] = [][c]",
    "a conditional expression": "R[t] = 1 if c == 4 else [][c]",
    "and": "R[t] = 5\nif c == 5 and [][c]:\n    R[t] = 1",
    "or": "if c == 4 or [][c]:\n    R[t] = 1",
    "a while": "while c == 5:\n    R[t] = [][c]\nR[t] = 1",
    "mixed, Python first": "if c == 4 and t < n:\n    R[t] = 1\nif c == 5 or t < n:\n    R[t] = 2",
    "mixed, Python last": "if t < n and c == 4:\n    R[t] = 1\nif t < n or c == 5:\n    R[t] = 2",
    "an empty list": "xs = []\nif xs:\n    R[t] = xs[0]\nelse:\n    R[t] = 2",
    "a const of the device": "if fx.Int32(3) < fx.Int32(4):\n    R[t] = 1\nelse:\n    R[t] = [][0]",
    "inside a runtime if": "if t < n:\n    if c == 4:\n        R[t] = 1\n    else:\n        R[t] = [][0]",
    "types that change in the taken arm": "x = t\nif c == 4:\n    x = (t, 1.5)\nR[t] = x[0]",
}


@pytest.mark.parametrize("body", CHOSEN.values(), ids=CHOSEN)
def test_l13_what_python_decides_has_one_arm(body: str) -> None:
    agree(body)


# L14: expressions that choose. The software device stops at an access outside of A, so a bad one would show.
CHOICES = {
    "a conditional expression": "R[t] = t if t < n else n",
    "one that guards a load": "R[t] = A[t + 40] if t < 24 else -1",
    "nested": "R[t] = 1 if t < n else 2 if t < 40 else A[t]",
    "in an index": "R[t] = A[t if t < n else 0]",
    "of tuples": "a, b = (t, n) if t < n else (n, t)\nR[t] = a * 100 + b",
    "a chain": "R[t] = 0\nif 1 < t < n:\n    R[t] = 1",
    "a chain of three": "R[t] = 0\nif 1 < t <= n < 60:\n    R[t] = 1",
    "a chain as a value": "flag = m <= t < n\nR[t] = 0\nif flag:\n    R[t] = 1",
    "a chain that guards a load": "R[t] = 0\nif 0 <= t < 24 and 0 < A[t + 40] < 9:\n    R[t] = 1",
    "and guards a load": "R[t] = 0\nif t < 24 and A[t + 40] > 0:\n    R[t] = 1",
    "or guards a load": "R[t] = 0\nif t >= 24 or A[t + 40] > 0:\n    R[t] = 1",
    "and of three": "R[t] = 0\nif t < n and t > m and A[t] > 0:\n    R[t] = 1",
    "and in parentheses": "R[t] = 0\nif (t<n) and (A[t]>0):\n    R[t] = 1",
    "or of and": "R[t] = 0\nif t < m or t > n and A[t] < 0:\n    R[t] = 1",
    "not of and": "R[t] = 0\nif not (t < n and A[t] > 0):\n    R[t] = 1",
    "not of an integer": "R[t] = 0\nif not A[t]:\n    R[t] = 1",
    "and gives the operand": "R[t] = A[t] and t",
    "or gives the operand": "R[t] = A[t] or n",
    "in a while": "i = t\nwhile i < 64 and A[i] < 9:\n    i += 1\nR[t] = i",
    "in a return": "def f(i):\n    return i < 24 and A[i + 40] > 0\nR[t] = 1 if f(t) else 0",
    "not twice": "R[t] = 1 if not not t < n else 0",
    "operands evaluated once": (
        "calls = [0]\ndef once(v):\n    calls[0] = calls[0] + 1\n    return v\n"
        "flag = 1 < once(t) < n\nR[t] = calls[0]"
    ),
    "operands evaluated once, in order": (
        "calls = []\ndef note(name, v):\n    calls.append(name)\n    return v\n"
        "x = note(1, t) + note(2, n) * note(3, m)\nR[t] = x * 1000 + calls[0] * 100 + calls[1] * 10 + calls[2]"
    ),
    "of floats": "R[t] = fx.Int32((X[t] if X[t] > 0.5 else 0.25) * 4.0)",
    "a Python number beside": "R[t] = fx.Int32((X[t] if X[t] > 0.5 else 1) * 4.0)",
}


@pytest.mark.parametrize("body", CHOICES.values(), ids=CHOICES)
def test_l14_choices_evaluate_what_python_evaluates(body: str) -> None:
    agree(body)


# L16: a helper that writes what is around it.
WRITERS = {
    "nonlocal in an if": (
        "acc = 0\ndef add():\n    nonlocal acc\n    acc += 1\nif t < n:\n    add()\nR[t] = acc"
    ),
    "nonlocal in both arms": (
        "acc = t\ndef add(v):\n    nonlocal acc\n    acc += v\nif t < n:\n    add(1)\nelse:\n    add(100)\nR[t] = acc"
    ),
    "nonlocal in a loop": (
        "acc = t\ndef add(v):\n    nonlocal acc\n    acc += v\nfor i in range(n):\n    add(i)\nR[t] = acc"
    ),
    "nonlocal in a while": (
        "i = t\ndef step():\n    nonlocal i\n    i += 3\nwhile i < n:\n    step()\nR[t] = i"
    ),
    "nonlocal and a branch in the helper": (
        "acc = 0\ndef add():\n    nonlocal acc\n    if t < n:\n        acc += t\nadd()\nadd()\nR[t] = acc"
    ),
    "nonlocal two levels up": (
        "acc = 0\ndef outer():\n    def add():\n        nonlocal acc\n        acc += 1\n    if t < n:\n        add()\n"
        "outer()\nR[t] = acc"
    ),
    "nonlocal of a helper": (
        "def counted():\n    total = 0\n    def add(v):\n        nonlocal total\n        total += v\n"
        "    for i in range(n):\n        if i > 2:\n            add(i)\n    return total\nR[t] = counted() + t"
    ),
    "by a lambda": "xs = [0]\nput = lambda v: xs.__setitem__(0, v)\nif t < n:\n    put(t)\nR[t] = xs[0]",
    "by an argument of a call": "acc = 0\ndef add():\n    nonlocal acc\n    acc += 1\n    return acc\nif t < n:\n    R[t] = add()\nR[t] = R[t] * 10 + acc",
    "in a conditional expression": (
        "acc = 0\ndef add():\n    nonlocal acc\n    acc += 1\n    return acc\nx = add() if t < n else 0\nR[t] = acc * 10 + x"
    ),
    "in an and": (
        "acc = 0\ndef add():\n    nonlocal acc\n    acc += 1\n    return t > 2\nflag = t < n and add()\nR[t] = acc"
    ),
    "global": (
        "global total\ntotal = t\ndef add():\n    global total\n    total += 1\nif t < n:\n    add()\nR[t] = total"
    ),
    "a generator": "def each():\n    for v in (1, 2):\n        yield v + t\nacc = 0\nfor v in each():\n    if v < n:\n        acc += v\nR[t] = acc",
}


@pytest.mark.parametrize("body", WRITERS.values(), ids=WRITERS)
def test_l16_a_helper_that_writes_what_is_around_it(body: str) -> None:
    agree(body)
