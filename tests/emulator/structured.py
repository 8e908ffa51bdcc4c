"""Random programs with nested branches, loops, switches and arrays, as LLVM IR for a chip and for this machine."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from random import Random

WIDTHS = (8, 16, 32, 64, 128)
OPERATIONS = ("add", "add", "sub", "mul", "and", "or", "xor", "shl", "lshr", "ashr", "udiv", "urem", "sdiv", "srem")
PREDICATES = ("eq", "ne", "ult", "ule", "slt", "sge", "ugt")
TABLE = 64
"""The numbers of the table that programs read."""
ARRAY = 64
"""Those of a thread's own array: too many for registers, so that it stays in private memory at every level."""


@dataclass
class RandomProgram:
    """A function `i64 @f(i64 %x, i64 %y, i64 %n, ptr %table)` being written, where %n is the same for all threads.

    Variables are in memory, which LLVM makes registers of from -O1 on. `{private}` and `{global}` stand for the address
    spaces, which chips alone have.
    """

    random: Random
    name: str
    lines: list[str] = field(default_factory=list)
    numbers: itertools.count[int] = field(default_factory=itertools.count)
    variables: dict[str, int] = field(default_factory=dict)

    def write(self, depth: int) -> str:
        """The text of the function."""
        self.variables = {f"%var{n}": self.random.choice(WIDTHS) for n in range(5)}
        for variable, width in self.variables.items():
            self.add(f"{variable} = alloca i{width}{{private_alloca}}")
        self.add(f"%array = alloca [{ARRAY} x i32]{{private_alloca}}")
        self.add(f"store [{ARRAY} x i32] zeroinitializer, {{private}} %array")
        for n in range(0, ARRAY, 3):
            self.store_element(self.let(f"add i32 0, {n}"), "i32", str(n * 77))
        for n, (variable, width) in enumerate(self.variables.items()):
            self.store(variable, self.resized(("%x", "%y", "%n")[n % 3], 64, width))
        self.add("%nothing = lshr i64 %n, 40")
        self.block(depth)
        total = "0"
        for variable, width in self.variables.items():
            value = self.resized(self.let(f"load i{width}, {{private}} {variable}"), width, 64)
            total = self.let(f"xor i64 {self.let(f'mul i64 {total}, 31')}, {value}")
        self.add(f"ret i64 {total}")
        head = f"define internal i64 @{self.name}(i64 %x, i64 %y, i64 %n, {{global}} %table) alwaysinline {{{{"
        return "\n".join([head, "entry:", *self.lines, "}}"])

    def add(self, line: str) -> None:
        self.lines.append("  " + line)

    def fresh(self) -> int:
        return next(self.numbers)

    def let(self, text: str) -> str:
        name = f"%t{self.fresh()}"
        self.add(f"{name} = {text}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def labels(self, *kinds: str) -> list[str]:
        number = self.fresh()
        return [f"{kind}{number}" for kind in kinds]

    def store(self, variable: str, value: str) -> None:
        self.add(f"store i{self.variables[variable]} {value}, {{private}} {variable}")

    def store_element(self, index: str, kind: str, value: str) -> None:
        place = self.let(f"getelementptr i32, {{private}} %array, {kind} {index}")
        self.add(f"store i32 {value}, {{private}} {place}")

    def resized(self, value: str, old: int, new: int) -> str:
        if old == new:
            return value
        operation = "trunc" if new < old else self.random.choice(("sext", "zext"))
        return self.let(f"{operation} i{old} {value} to i{new}")

    def operand(self, width: int) -> str:
        """A constant, or the value of a variable, in so many bits."""
        if self.random.random() < 0.3:
            return str(self.random.choice((0, 1, 2, 3, 5, 7, 63, 100, -1, -2, 127)))
        variable = self.random.choice(list(self.variables))
        old = self.variables[variable]
        return self.resized(self.let(f"load i{old}, {{private}} {variable}"), old, width)

    def condition(self) -> str:
        """Of lanes, or one that all of them share."""
        width = self.random.choice(WIDTHS)
        if self.random.random() < 0.3:
            bit = self.let(f"and i64 %n, {self.random.choice((1, 2, 4, 6))}")
            return self.let(f"icmp {self.random.choice(('eq', 'ne'))} i64 {bit}, 0")
        predicate = self.random.choice(PREDICATES)
        return self.let(f"icmp {predicate} i{width} {self.operand(width)}, {self.operand(width)}")

    def block(self, depth: int, exit_: str = "") -> None:
        """Some statements; `exit_` is the label that a `break` goes to."""
        for _ in range(self.random.randint(1, 4)):
            kinds = ["assign", "assign", "assign", "table", "array"]
            if depth:
                kinds += ["branch", "branch", "loop", "loop", "choice"]
            if exit_:
                kinds.append("leave")
            kind = self.random.choice(kinds)
            if kind == "leave":
                go_on, = self.labels("on")
                self.add(f"br i1 {self.condition()}, label %{exit_}, label %{go_on}")
                self.label(go_on)
            elif kind in ("branch", "choice"):
                getattr(self, kind)(depth - 1, exit_)
            elif kind == "loop":
                self.loop(depth - 1)
            else:
                getattr(self, kind)()

    def assign(self) -> None:
        variable = self.random.choice(list(self.variables))
        width, operation = self.variables[variable], self.random.choice(OPERATIONS)
        a, b = self.operand(width), self.operand(width)
        if operation in ("shl", "lshr", "ashr"):
            b = self.let(f"and i{width} {b}, {width - 1}")
        elif "div" in operation or "rem" in operation:
            # Odd and not negative: no division by zero, and none that overflows.
            b = self.let(f"or i{width} {self.let(f'lshr i{width} {b}, 1')}, 1")
            if operation[0] == "u":
                # LLVM 22 at -O0 divides a number that it sees sign-extended as one of 24 bits, with a wrong result:
                # so the bits of an argument that is small are mixed in, which it cannot know to be 0.
                a = self.let(f"xor i{width} {a}, {self.resized('%nothing', 64, width)}")
        self.store(variable, self.let(f"{operation} i{width} {a}, {b}"))

    def table(self) -> None:
        """Read the table that all threads share."""
        index = self.let(f"and i64 {self.operand(64)}, {TABLE - 1}")
        place = self.let(f"getelementptr i32, {{global}} %table, i64 {index}")
        variable = self.random.choice(list(self.variables))
        self.store(variable, self.resized(self.let(f"load i32, {{global}} {place}"), 32, self.variables[variable]))

    def array(self) -> None:
        """Write an element of the thread's own array, and read one: at places that differ by lane."""
        self.store_element(self.let(f"and i32 {self.operand(32)}, {ARRAY - 1}"), "i32", self.operand(32))
        index = self.let(f"and i32 {self.operand(32)}, {ARRAY - 1}")
        place = self.let(f"getelementptr i32, {{private}} %array, i32 {index}")
        variable = self.random.choice(list(self.variables))
        self.store(variable, self.resized(self.let(f"load i32, {{private}} {place}"), 32, self.variables[variable]))

    def branch(self, depth: int, exit_: str) -> None:
        then, otherwise, end = self.labels("then", "else", "end")
        self.add(f"br i1 {self.condition()}, label %{then}, label %{otherwise}")
        for label in (then, otherwise):
            self.label(label)
            if label == then or self.random.random() < 0.6:
                self.block(depth, exit_)
            self.add(f"br label %{end}")
        self.label(end)

    def choice(self, depth: int, exit_: str) -> None:
        """A switch of four ways."""
        *ways, end = self.labels("first", "second", "third", "other", "end")
        value = self.let(f"and i32 {self.operand(32)}, 3")
        cases = " ".join(f"i32 {n}, label %{label}" for n, label in enumerate(ways[:3]))
        self.add(f"switch i32 {value}, label %{ways[3]} [ {cases} ]")
        for label in ways:
            self.label(label)
            self.block(depth, exit_)
            self.add(f"br label %{end}")
        self.label(end)

    def loop(self, depth: int) -> None:
        """At most seven turns, as many as a number of the thread, of all threads, or a constant says."""
        head, body, end = self.labels("head", "body", "done")
        counter = f"%counter{self.fresh()}"
        self.lines.insert(0, f"  {counter} = alloca i32{{private_alloca}}")
        most = self.random.choice((self.operand(32), self.let("trunc i64 %n to i32"), "3"))
        limit = self.let(f"and i32 {most}, {self.random.choice((3, 7))}")
        self.add(f"store i32 0, {{private}} {counter}")
        self.add(f"br label %{head}")
        self.label(head)
        turn = self.let(f"load i32, {{private}} {counter}")
        go_on = self.let(f"icmp ult i32 {turn}, {limit}")
        if self.random.random() < 0.5:
            go_on = self.let(f"and i1 {go_on}, {self.condition()}")
        self.add(f"br i1 {go_on}, label %{body}, label %{end}")
        self.label(body)
        self.add(f"store i32 {self.let(f'add i32 {turn}, 1')}, {{private}} {counter}")
        self.block(depth, end)
        self.add(f"br label %{head}")
        self.label(end)


CHIP = {"private": "ptr addrspace(5)", "private_alloca": ", addrspace(5)", "global": "ptr addrspace(1)"}
HOST = {"private": "ptr", "private_alloca": "", "global": "ptr"}


def chip_kernel(number: int) -> str:
    """A kernel that calls function `f<number>` for each thread."""
    return f"""
define amdgpu_kernel void @k{number}(ptr addrspace(1) %p, ptr addrspace(1) %q, ptr addrspace(1) %table, i64 %n) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %i = zext i32 %t to i64
{_element(number, "ptr addrspace(1)")}
  ret void
}}
"""


def host_loop(number: int) -> str:
    """The same as a loop over `count` elements."""
    return f"""
define void @k{number}(ptr %p, ptr %q, ptr %table, i64 %n, i64 %count) {{
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{_element(number, "ptr")}
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, %count
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


def _element(number: int, pointer: str) -> str:
    return f"""
  %two = mul i64 %i, 2
  %px = getelementptr i64, {pointer} %p, i64 %two
  %x = load i64, {pointer} %px
  %py = getelementptr i64, {pointer} %px, i64 1
  %y = load i64, {pointer} %py
  %r = call i64 @f{number}(i64 %x, i64 %y, i64 %n, {pointer} %table)
  %pr = getelementptr i64, {pointer} %q, i64 %i
  store i64 %r, {pointer} %pr
"""


# What hosts call to divide integers of 128 bits: long division, by a number above 0.
LONG_DIVISION = """
define internal {i128, i128} @long_division(i128 %a, i128 %b) {
entry:
  br label %loop
loop:
  %n = phi i128 [127, %entry], [%next, %loop]
  %rest = phi i128 [0, %entry], [%rest2, %loop]
  %quotient = phi i128 [0, %entry], [%quotient2, %loop]
  %moved = lshr i128 %a, %n
  %bit = and i128 %moved, 1
  %twice = shl i128 %rest, 1
  %more = or i128 %twice, %bit
  %fits = icmp uge i128 %more, %b
  %less = sub i128 %more, %b
  %rest2 = select i1 %fits, i128 %less, i128 %more
  %one = shl i128 1, %n
  %with = or i128 %quotient, %one
  %quotient2 = select i1 %fits, i128 %with, i128 %quotient
  %next = sub i128 %n, 1
  %last = icmp eq i128 %n, 0
  br i1 %last, label %end, label %loop
end:
  %x = insertvalue {i128, i128} poison, i128 %quotient2, 0
  %y = insertvalue {i128, i128} %x, i128 %rest2, 1
  ret {i128, i128} %y
}
""" + "".join(f"""
define i128 @__u{name}ti3(i128 %a, i128 %b) {{
  %both = call {{i128, i128}} @long_division(i128 %a, i128 %b)
  %r = extractvalue {{i128, i128}} %both, {place}
  ret i128 %r
}}
define i128 @__{name}ti3(i128 %a, i128 %b) {{
  %low = icmp slt i128 %a, 0
  %minus = sub i128 0, %a
  %positive = select i1 %low, i128 %minus, i128 %a
  %both = call {{i128, i128}} @long_division(i128 %positive, i128 %b)
  %r = extractvalue {{i128, i128}} %both, {place}
  %negative = sub i128 0, %r
  %result = select i1 %low, i128 %negative, i128 %r
  ret i128 %result
}}
""" for place, name in enumerate(("div", "mod")))
