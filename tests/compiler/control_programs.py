"""Random small programs, as Python text: control flow of every kind over integers, containers and helper functions.

`program(seed, name)` gives the text of `def name(A, t, n)`, which writes one number into A[t], with its helpers. All
loops end, no divisor is 0, and each variable keeps one type where Python would not care. (t is the thread, 0 to 63, n
a runtime number from 0 to 6.)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

INT, BOOL, WIDE, UNSIGNED, FLOAT = "int", "bool", "wide", "unsigned", "float"
COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
START = {INT: "fx.Int32({})", WIDE: "fx.Int64({})", UNSIGNED: "fx.Uint32({})", FLOAT: "fx.Float32({})"}


class Scope:
    """The names of a function by their type, and what its statements may do."""

    def __init__(self, helpers: dict[str, list[str]]):
        self.names: dict[str, list[str]] = {kind: [] for kind in (INT, BOOL, WIDE, UNSIGNED, FLOAT)}
        self.fixed: list[str] = []
        """Integers that are read and never assigned."""
        self.items: list[str] = []
        """Places in containers that hold an integer."""
        self.helpers = helpers
        """The functions that can be called, with the kind of each parameter."""
        self.actions: list[str] = []
        """Statements that call something for its effect, with a place for an integer."""
        self.returns: Callable[[], str] | None = None
        self.loops = 0
        self.can_leave = False

    def copied(self) -> Scope:
        made = Scope(dict(self.helpers))
        made.names = {kind: list(names) for kind, names in self.names.items()}
        made.fixed, made.items, made.actions = list(self.fixed), list(self.items), list(self.actions)
        made.returns, made.loops, made.can_leave = self.returns, self.loops, self.can_leave
        return made


class Program:
    """Writes one program."""

    def __init__(self, seed: int, name: str):
        self.random = random.Random(seed)
        self.name = name
        self.lines: list[str] = []
        self.indent = 0
        self.numbers = 0
        self.budget = self.random.choice((6, 10, 16, 24))
        self.scope = Scope({})

    # Text.
    def put(self, line: str) -> None:
        self.lines.append("    " * self.indent + line)

    def fresh(self, stem: str) -> str:
        self.numbers += 1
        return f"{stem}{self.numbers}"

    def one_of(self, *choices: Any) -> Any:
        return self.random.choice(choices)

    def chance(self, percent: int) -> bool:
        return self.random.randrange(100) < percent

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """An indented block, whose new names end with it."""
        self.put(head)
        self.indent += 1
        outer, self.scope = self.scope, self.scope.copied()
        yield
        self.scope = outer
        self.indent -= 1

    # Expressions.
    def value(self, kind: str, depth: int = 2) -> str:
        """An expression of a kind."""
        if kind == BOOL:
            return self.condition(depth)
        if kind == INT:
            return self.integer(depth)
        name = self.one_of(*self.scope.names[kind]) if self.scope.names[kind] else START[kind].format(self.small())
        other = self.one_of(name, START[kind].format(self.integer(0)), str(self.random.randrange(1, 9)))
        if kind == FLOAT:
            return self.one_of(name, f"{name} + {self.random.randrange(9)}.0", f"{name} - {self.small()}.0")
        if kind == UNSIGNED and self.chance(50):
            return self.one_of(f"{name} // 3", f"{name} % 5", f"{name} >> 2", f"{name} ^ {other}")
        return f"({name} {self.one_of('+', '-', '*', '&', '^')} {other})"

    def small(self) -> str:
        return str(self.random.randrange(9))

    def leaf(self) -> str:
        """An integer: a variable, an item of a container, a literal."""
        scope = self.scope
        if self.chance(20):
            return str(self.random.randrange(-5, 20))
        return self.one_of(*(scope.names[INT] + scope.fixed + scope.items))

    def integer(self, depth: int = 2) -> str:
        if depth <= 0 or self.chance(25):
            return self.leaf()
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        kind = self.random.randrange(14)
        if kind < 5:
            return f"({a} {self.one_of('+', '-', '*', '&', '|', '^')} {b})"
        if kind < 7:
            rule = self.one_of("// 3", "// -2", "% 7", "% -4", ">> 1", "<< 2", "// 5", "% 4")
            return f"({a} {rule})"
        if kind < 9:
            return f"({a} if {self.condition(depth - 1)} else {b})"
        if kind < 10:
            return f"({a} {self.one_of('and', 'or')} {b})"
        if kind < 11:
            return self.one_of(f"-{self.leaf()}", f"~{self.leaf()}", f"(lambda v: v + {a})({b})")
        if kind < 12 and depth > 1:
            return self.comprehension(a)
        if self.scope.helpers:
            return self.call(depth - 1)
        return a

    def comprehension(self, a: str) -> str:
        item = self.one_of("v", *self.scope.names[INT])  # its own, whatever it is called outside
        inner = self.one_of(f"{item} + {a}", f"{item} if {item} < {a} else {self.leaf()}", f"{item} * {self.leaf()}")
        source = self.one_of("range(3)", "(2, 5)", f"[{a}, {self.leaf()}]", "range_constexpr(2)")
        source = source.replace("range_c", "fx.range_c")
        where = self.one_of("", "", f" if {self.random.randrange(9)} < 5")
        return f"sum([{inner} for {item} in {source}{where}])"

    def call(self, depth: int) -> str:
        name = self.one_of(*self.scope.helpers)
        arguments = [self.value(kind, depth) for kind in self.scope.helpers[name]]
        if arguments and name.startswith("deep"):
            arguments[0] = str(self.random.randrange(4))
        return f"{name}({', '.join(arguments)})"

    def condition(self, depth: int = 2) -> str:
        scope = self.scope
        if scope.names[BOOL] and self.chance(20):
            return self.one_of(*scope.names[BOOL])
        kind = self.random.randrange(10) if depth > 0 else 0
        if kind < 5:
            return f"{self.integer(depth - 1)} {self.one_of(*COMPARISONS)} {self.integer(depth - 1)}"
        if kind < 6:
            low, high = self.one_of("<", "<="), self.one_of("<", "!=")
            return f"{self.leaf()} {low} {self.integer(depth - 1)} {high} {self.leaf()}"
        if kind < 8:
            return f"({self.condition(depth - 1)} {self.one_of('and', 'or')} {self.condition(depth - 1)})"
        if kind < 9:
            return f"(not {self.condition(depth - 1)})"
        wide = self.one_of(WIDE, FLOAT, UNSIGNED)
        if not scope.names[wide]:
            return self.one_of("True", "False", f"({self.leaf()} < 3)")
        return f"{self.one_of(*scope.names[wide])} {self.one_of(*COMPARISONS)} {self.value(wide)}"

    def test(self) -> str:
        """The condition of an `if`: any value has a truth."""
        if self.chance(10):
            return self.integer(1)
        if self.chance(8) and self.scope.names[INT]:
            return f"({self.one_of(*self.scope.names[INT])} := {self.integer(1)}) {self.one_of('<', '>')} {self.leaf()}"
        return self.condition()

    # Statements.
    def statements(self, most: int = 4) -> None:
        """Some statements; at least one."""
        before = len(self.lines)
        for _ in range(self.random.randrange(1, most + 1)):
            if self.budget > 0 or len(self.lines) == before:
                self.budget -= 1
                self.statement()
        if len(self.lines) == before:
            self.put("pass")

    def statement(self) -> None:
        rules: list[tuple[int, Callable[[], None]]] = [
            (22, self.assignment), (8, self.update), (5, self.pair), (4, self.temporary), (6, self.container_update),
            (3, self.action),
        ]
        if self.budget > 0 and self.indent < 6:
            rules += [(24, self.branch),
                      (3, self.new_container), (3, self.nested_function), (2, self.guarded), (2, self.local)]
        if self.budget > 0 and self.indent < 6 and self.scope.loops < 3:
            rules += [(12, self.for_loop), (6, self.while_loop), (6, self.unrolled)]
        if self.scope.loops and self.scope.can_leave:
            rules.append((7, self.leave))
        if self.scope.returns is not None and self.indent > 1:
            rules.append((5, self.early_return))
        self.random.choices([r for _, r in rules], [w for w, _ in rules])[0]()

    def assignment(self) -> None:
        kinds = [k for k, names in self.scope.names.items() for _ in names[:3]]
        kind = self.one_of(*kinds)
        name = self.one_of(*self.scope.names[kind])
        if kind == INT and self.chance(8):
            self.put(f"{name} = ({self.one_of(*self.scope.names[INT])} := {self.integer(1)}) + {self.leaf()}")
        else:
            self.put(f"{name} = {self.value(kind)}")

    def update(self) -> None:
        name = self.one_of(*self.scope.names[INT])
        self.put(f"{name} {self.one_of('+', '-', '*', '^', '&', '|')}= {self.integer(1)}")

    def pair(self) -> None:
        a, b = self.one_of(*self.scope.names[INT]), self.one_of(*self.scope.names[INT], *self.scope.items)
        if self.chance(30):
            self.put(f"{a}, ({b}, {a}) = {self.leaf()}, ({self.integer(1)}, {self.leaf()})")
        else:
            self.put(f"{a}, {b} = {self.one_of(f'{b}, {a}', f'{self.integer(1)}, {self.integer(1)}')}")

    def temporary(self) -> None:
        """A name of which each use has another type, and which is sometimes deleted."""
        kind = self.one_of(*[k for k, names in self.scope.names.items() if names])
        self.put(f"tmp = {self.value(kind)}")
        self.put(f"{self.one_of(*self.scope.names[kind])} = tmp")
        if self.chance(40):
            self.put("del tmp")

    def container_update(self) -> None:
        if not self.scope.items:
            return self.update()
        rule = self.one_of("=", "=", "+=", "-=", "^=")
        self.put(f"{self.one_of(*self.scope.items)} {rule} {self.integer(1)}")

    def action(self) -> None:
        if not self.scope.actions:
            return self.update()
        self.put(self.one_of(*self.scope.actions).format(self.integer(1)))

    def branch(self) -> None:
        arms = self.one_of(1, 1, 2, 2, 2, 3)
        both = self.fresh("y") if arms > 1 and self.chance(30) else None
        for i in range(arms):
            last = i and i == arms - 1
            with self.block("else:" if last else f"{'elif' if i else 'if'} {self.test()}:"):
                if both:
                    self.put(f"{both} = {self.integer(1)}")
                self.statements(3)
        if both:
            self.scope.names[INT].append(both)

    def for_loop(self) -> None:
        index = self.one_of(self.fresh("i"), self.one_of(*self.scope.names[INT]))
        low, high = f"({self.leaf()} & 3)", f"({self.leaf()} & 7)"
        bounds = self.one_of(
            high, f"{low}, {high}", f"{low}, {high}, {self.random.randrange(1, 4)}",
            f"{high}, {low}, -{self.random.randrange(1, 4)}", "n", "3", "0", "2, 9, 3", "5, 0, -2",
            f"{low}, {high}, ({self.leaf()} & 1) + 1", "n, -1, -1", "t & 3, n", "1",
        )
        self.loop(f"for {index} in range({bounds}):", index)

    def loop(self, head: str, index: str | None, first: str | None = None) -> None:
        """A loop with exits, sometimes with an `else`."""
        with self.block(head):
            if first:
                self.put(first)
            if index and index not in self.scope.names[INT]:
                self.scope.fixed.append(index)
            self.scope.loops, self.scope.can_leave = self.scope.loops + 1, True
            self.statements(4)
        if self.chance(15):
            with self.block("else:"):
                self.statements(2)

    def while_loop(self) -> None:
        counter = self.fresh("w")
        self.put(f"{counter} = {self.one_of('fx.Int32(0)', '0', 'fx.Int32(t & 3)')}")
        bound = self.one_of("n", "4", f"({self.leaf()} & 7)", "(t & 7)")
        more = self.one_of("", "", "", f" and {self.condition(1)}", f" and (tick := {self.integer(1)}) < 50")
        head = self.one_of(f"while {counter} < {bound}{more}:", f"while ({counter} := {counter} + 1) <= {bound}:")
        if "tick" in head:
            head = head.replace("tick", self.one_of(*self.scope.names[INT]))
            head = head.replace(" and (", ":").split(":")[0] + ":"  # a walrus may not stand in an operand
        self.scope.fixed.append(counter)
        self.loop(head, None, None if ":=" in head else f"{counter} += 1")

    def unrolled(self) -> None:
        item = self.fresh("u")
        source = self.one_of("fx.range_constexpr(3)", "(1, 4)", "fx.range_constexpr(2, 0, -1)",
                             f"[{self.leaf()}, {self.leaf()}]", f"enumerate([{self.leaf()}, 3])")
        target = f"{self.fresh('u')}, {item}" if source.startswith("enum") else item
        self.loop(f"for {target} in {source}:", item)

    def leave(self) -> None:
        with self.block(f"if {self.condition(1)}:"):
            if self.chance(50):
                self.statements(2)
            self.put(self.one_of("break", "continue"))

    def early_return(self) -> None:
        assert self.scope.returns is not None
        with self.block(f"if {self.condition(1)}:"):
            self.put(self.scope.returns())

    def new_container(self) -> None:
        kind = self.random.randrange(4)
        name = self.fresh("c")
        a, b, c = (self.integer(1) for _ in range(3))
        if kind == 0:
            self.put(f"{name} = [{a}, {b}, {c}]")
            places = [f"{name}[0]", f"{name}[2]", f"{name}[-2]"]
        elif kind == 1:
            self.put(f"{name} = SimpleNamespace(a={a}, b=[{b}, {c}])")
            places = [f"{name}.a", f"{name}.b[1]"]
        elif kind == 2:
            self.put(f"{name} = {{'a': {a}, 'b': ({b}, {c})}}")
            places = [f"{name}['a']"]
        else:
            other = self.fresh("c")
            self.put(f"{name} = [{a}, {b}]")
            self.put(f"{other} = {self.one_of(f'({name}, 4)', f'{{0: {name}}}')}")
            places = [f"{name}[1]", f"{other}[0][1]", f"{other}[0][0]"]
        self.scope.items += places
        if kind == 0:
            self.scope.actions.append(f"{name} = [{{}}, {self.leaf()}, {name}[0]]")
            self.scope.actions.append(f"{name}[:2] = [{{}}, {name}[2]]")

    def nested_function(self) -> None:
        kind = self.random.randrange(3)
        name = self.fresh("f")
        target = self.one_of(*self.scope.names[INT])
        if kind == 0:
            self.put(f"{name} = lambda v, w={self.leaf()}: {self.one_of('v + w', 'v if v < w else w')} + {target}")
            self.scope.helpers[name] = [INT]
            return
        has_counter = kind == 1 and "." not in target and "[" not in target and self.nonlocal_is_allowed(target)
        with self.block(f"def {name}(v, w={self.leaf()}):"):
            if has_counter:
                self.put(f"nonlocal {target}")
            outer, self.scope = self.scope, self.scope.copied()
            self.scope.loops, self.scope.can_leave = 0, False
            if not has_counter:
                self.scope.fixed += [n for names in (self.scope.names[INT],) for n in names]
                self.scope.names = {kind: [] for kind in self.scope.names}
                self.put(f"own{name} = v * {self.small()}")
                self.scope.names[INT] = [f"own{name}"]
            else:
                self.scope.fixed += self.scope.names[INT]
                self.scope.names = {kind: [] for kind in self.scope.names}
                self.scope.names[INT] = [target]
            self.scope.fixed += ["v", "w"]
            self.scope.actions = []
            self.scope.returns = lambda: f"return {self.integer(1)}"
            self.scope.helpers = {k: v for k, v in self.scope.helpers.items() if k.startswith(("help", "deep"))}
            self.statements(3)
            self.put(f"return {self.integer(1)}")
            self.scope = outer
        self.scope.helpers[name] = [INT]
        self.scope.actions.append(f"{name}({{}})")

    def nonlocal_is_allowed(self, target: str) -> bool:
        """A parameter of the program is bound where it begins, so any integer variable of it will do."""
        return self.indent == 1

    def guarded(self) -> None:
        kind = self.random.randrange(3)
        if kind == 0:
            with self.block("with Quiet():"):
                self.scope.can_leave, self.scope.returns = False, None
                self.statements(2)
        elif kind == 1:
            with self.block("try:"):
                self.scope.can_leave, self.scope.returns = False, None
                self.statements(2)
            with self.block("finally:"):
                self.scope.can_leave, self.scope.returns = False, None
                self.statements(1)
        else:
            name = self.one_of(*self.scope.names[INT])
            with self.block("try:"):
                self.put(f"{name} = {self.integer(1)}")
                self.put(self.one_of("{}['none']", f"{name} = {self.leaf()}"))
            with self.block("except KeyError:"):
                self.put(f"{name} = {self.integer(1)}")

    def local(self) -> None:
        """A name that is first bound in a block, and only read there."""
        with self.block(f"if {self.condition(1)}:"):
            name = self.fresh("x")
            self.put(f"{name} = {self.integer(1)}")
            self.scope.names[INT].append(name)
            self.statements(3)

    # Functions.
    def helper(self) -> tuple[str, list[str]]:
        """A function of the module's; its name, and what it takes."""
        kind = self.random.randrange(4)
        name = self.fresh(f"{'deep' if kind == 0 else 'help'}_{self.name}_")
        if kind == 0:
            with self.block(f"def {name}(d, v):"):
                with self.block("if d == 0:"):
                    self.put("return v")
                self.put(f"u = {name}(d - 1, v {self.one_of('+', '*', '-')} {self.random.randrange(1, 9)})")
                with self.block(f"if u {self.one_of(*COMPARISONS)} {self.random.randrange(30)}:"):
                    self.put("return u + d")
                self.put(f"return u {self.one_of('-', '^')} v")
            return name, [INT, INT]
        with self.block(f"def {name}(v, w={self.small()}):"):
            self.scope = Scope(dict(self.scope.helpers))
            self.put(f"r, t, n = {self.one_of('v', 'w', 'fx.Int32(1)', '0')}, w, v & 3")
            self.scope.names[INT], self.scope.fixed = ["r"], ["v", "w", "t"]
            self.scope.returns = lambda: f"return {self.integer(1)}"
            self.statements(4)
            self.put(f"return {self.integer(1)}")
        return name, [INT, INT] if self.chance(50) else [INT]

    def text(self) -> str:
        """The whole program."""
        self.put("class Quiet:\n    def __enter__(self): pass\n    def __exit__(self, *e): pass\n")
        for _ in range(self.random.randrange(3)):
            name, takes = self.helper()
            self.scope.helpers[name] = takes
        with self.block(f"def {self.name}(A, t, n):"):
            scope = self.scope
            scope.fixed = ["t", "n", "(t + n)"]
            for kind, count in ((INT, 3), (BOOL, 1), (WIDE, 1), (UNSIGNED, 1), (FLOAT, 1)):
                for _ in range(count if kind in (INT, BOOL) or self.chance(40) else 0):
                    self.variable(kind)
            if self.chance(30):
                scope.returns = lambda: "return"
            self.statements(8)
            self.finish()
        return "\n".join(self.lines) + "\n"

    def variable(self, kind: str) -> None:
        name = self.fresh(kind[0])
        if kind == BOOL:
            self.put(f"{name} = {self.one_of('True', 'False', 't < 9', 'n == 2')}")
        elif kind == INT:
            self.put(f"{name} = {self.one_of('fx.Int32(3)', '0', 't', 'n', 't * 3', 'A[t]', '5', '-1')}")
        else:
            self.put(f"{name} = {self.one_of(START[kind].format(self.small()), START[kind].format('t'))}")
        self.scope.names[kind].append(name)

    def finish(self) -> None:
        """One number of all that the program holds."""
        names = self.scope.names
        numbers = [*names[INT], *(f"fx.Int32({n})" for k in (WIDE, UNSIGNED, FLOAT) for n in names[k]),
                   *(f"(1 if {n} else 0)" for n in names[BOOL]), *self.scope.items]
        self.put("h = fx.Int32(17)")
        for number in numbers:
            self.put(f"h = h * 31 + {number}")
        self.put("A[t] = h")


def program(seed: int, name: str) -> str:
    """The text of a program."""
    return Program(seed, name).text()
