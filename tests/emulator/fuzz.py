"""The fuzz corpus: random programs in LLVM IR, with memory of all sorts, calls, loops and atomics, for chip and host.

A program is a function of two numbers of the thread and one that all threads share; it has a private array, a slot of
global memory and a slice of LDS for itself, a table of constants to read, and functions to call, some by pointer.
The words PRIVATE, GLOBAL, SHARED and TABLE stand for pointers of an address space, and what ends in _AS and _P for the
spelling of that space at an alloca or global and in an intrinsic's name: only chips have address spaces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.emulator.fuzz_values import I8, I32, I64, INTEGERS, TYPES, VECTORS, Type, Writer

THREADS = 128
SLOT_BYTES = ARRAY_BYTES = 256
SHARED_BYTES = 64
TABLE_WORDS = 64
MEMORY = {"PRIVATE": ("%array", ARRAY_BYTES), "GLOBAL": ("%slot", SLOT_BYTES), "SHARED": ("%shared", SHARED_BYTES)}
STORED = [t for t in (*INTEGERS, *VECTORS) if t.kind == "i" and t.lanes != 3 and t.size <= 256]
ATOMICS = ("add", "sub", "and", "or", "xor", "nand", "xchg", "umin", "umax", "min", "max")
SPACES = {"PRIVATE": 5, "GLOBAL": 1, "SHARED": 3, "TABLE": 4}


def spelled(text: str, chip: bool) -> str:
    """A program's text for a chip, or for a host, which has one address space."""
    for name, space in SPACES.items():
        number = space if chip else 0
        text = text.replace(f"{name}_AS", f"addrspace({number})").replace(f"{name}_P", f"p{number}")
        text = text.replace(name, f"ptr addrspace({number})")
    lines = text.split("\n")
    kept = dict.fromkeys(line for line in lines if line.startswith("declare"))
    return "\n".join([*(line for line in lines if not line.startswith("declare")), *kept])


@dataclass
class Body(Writer):
    """Statements of a function; `callees` are the functions it may call, by name with the types of their arguments."""

    callees: dict[str, tuple[Type, ...]] = field(default_factory=dict)
    pointers: str = ""
    spaces: tuple[str, ...] = tuple(MEMORY)

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def labels(self, *kinds: str) -> list[str]:
        number = next(self.numbers)
        return [f"{kind}{number}" for kind in kinds]

    def add(self, line: str) -> None:
        self.lines.append("  " + line)

    def new_variable(self, type_: Type, value: str) -> str:
        name = f"%v{next(self.numbers)}"
        self.allocated.append(f"  {name} = alloca {type_}, PRIVATE_AS")
        self.add(f"store {type_} {value}, PRIVATE {name}")
        self.variables[name] = type_
        return name

    def store(self, variable: str, value: str) -> None:
        self.add(f"store {self.variables[variable]} {value}, PRIVATE {variable}")

    def any_variable(self) -> tuple[str, Type]:
        return self.random.choice(list(self.variables.items()))

    def block(self, depth: int, leave: tuple[str, ...] = ()) -> None:
        """Some statements; `leave` are the labels that a `break` and a `continue` go to."""
        for _ in range(self.random.randint(1, 4)):
            kinds = ["assign", "assign", "assign", "memory", "memory", "table", "atomic", "copy"]
            kinds += ["call"] if self.callees else []
            kinds += ["branch", "loop", "choice", "branch"] if depth else []
            kinds += ["leave"] if leave else []
            kind = self.random.choice(kinds)
            if kind in ("branch", "choice", "leave"):
                getattr(self, kind)(depth - 1, leave)
            elif kind == "loop":
                self.loop(depth - 1)
            else:
                getattr(self, kind)()

    def assign(self) -> None:
        variable, type_ = self.any_variable()
        self.store(variable, self.value(type_, self.random.randint(1, 3)))

    def address(self, space: str, size: int, count: int = 1) -> tuple[str, int]:
        """A place in memory with room for so many bytes, and its alignment."""
        base, total = MEMORY[space]
        step = self.random.choice((size, size, size, 1))
        room = (total - size * count) // step + 1
        steps = 1 << (room.bit_length() - 1)
        index = self.let(f"and i32 {self.value(I32, 1)}, {steps - 1}")
        offset = self.let(f"mul i32 {index}, {step}")
        wide = self.let(f"zext i32 {offset} to i64")
        return self.let(f"getelementptr i8, {space} {base}, i64 {wide}"), min(step & -step, 16)

    def memory(self) -> None:
        """Write somewhere, read somewhere, of any width."""
        space, type_ = self.random.choice(self.spaces), self.random.choice(STORED)
        place, step = self.address(space, type_.size // 8)
        value = self.value(type_, 1)
        self.add(f"store {type_} {value}, {space} {place}, align {step}")
        type_ = self.random.choice(STORED)
        place, step = self.address(space, type_.size // 8)
        found = self.let(f"load {type_}, {space} {place}, align {step}")
        variable, wanted = self.any_variable()
        self.store(variable, self.converted(found, type_, wanted))

    def table(self) -> None:
        """Read the constants, as words or bytes, at a place of the thread or of all threads."""
        type_, most = self.random.choice(((I32, TABLE_WORDS), (I8, 4 * TABLE_WORDS), (I64, TABLE_WORDS // 2)))
        index = self.value(I64, 1) if self.chance(0.7) else "%n"
        place = self.let(f"getelementptr {type_}, TABLE @table, i64 {self.let(f'and i64 {index}, {most - 1}')}")
        variable, wanted = self.any_variable()
        self.store(variable, self.converted(self.let(f"load {type_}, TABLE {place}"), type_, wanted))

    def atomic(self) -> None:
        """An atomic operation on memory of the thread's own, whose old value is used or not."""
        space, type_ = self.one("GLOBAL", "SHARED"), self.random.choice((I32, I64))
        base, total = MEMORY[space]
        index = self.let(f"and i64 {self.value(I64, 1)}, {total // (type_.bits // 8) - 1}")
        place = self.let(f"getelementptr {type_}, {space} {base}, i64 {index}")
        value = self.value(type_, 1)
        if self.chance(0.25):
            pair = self.let(f"cmpxchg {space} {place}, {type_} {self.value(type_, 1)}, {type_} {value} "
                            "monotonic monotonic")
            old = self.let(f"extractvalue {{ {type_}, i1 }} {pair}, 0")
        else:
            order = self.one("monotonic", 'syncscope("agent") monotonic', "seq_cst")
            old = self.let(f"atomicrmw {self.one(*ATOMICS)} {space} {place}, {type_} {value} {order}")
        if self.chance(0.6):
            variable, wanted = self.any_variable()
            self.store(variable, self.converted(old, type_, wanted))

    def copy(self) -> None:
        """memset and memcpy, of constant and of changing size."""
        space = self.random.choice(list(MEMORY))
        size = self.random.choice((1, 3, 8, 16, 20, 31))
        count = str(size) if self.chance(0.6) else self.let(f"and i64 {self.value(I64, 1)}, 15")
        place, step = self.address(space, 4, 8)
        if self.chance(0.4):
            value = self.value(I8, 1)
            self.declared.add(f"declare void @llvm.memset.{space}_P.i64({space}, i8, i64, i1)")
            self.add(f"call void @llvm.memset.{space}_P.i64({space} align {step} {place}, i8 {value}, i64 {count}, "
                     "i1 false)")
            return
        # Between two sorts of memory, which never overlap.
        other = self.random.choice([name for name in MEMORY if name != space])
        source, other_step = self.address(other, 4, 8)
        self.declared.add(f"declare void @llvm.memcpy.{space}_P.{other}_P.i64({space}, {other}, i64, i1)")
        self.add(f"call void @llvm.memcpy.{space}_P.{other}_P.i64({space} align {step} {place}, {other} align "
                 f"{other_step} {source}, i64 {count}, i1 false)")

    def call(self, result: Type | str = "", name: str = "", *arguments: tuple[Type, str], extra: str = "") -> str:
        """A call of an intrinsic, or, where none is named, of another function of the program: by name or pointer."""
        if name:
            return super().call(result, name, *arguments, extra=extra)
        callee, types = self.random.choice(list(self.callees.items()))
        values = ", ".join(f"{t} {self.value(t, 1)}" for t in types)
        if self.pointers and self.chance(0.4):
            index = self.let(f"and i64 {self.one('%n', self.value(I64, 1))}, 1")
            place = self.let(f"getelementptr ptr, TABLE @{self.pointers}, i64 {index}")
            callee = self.let(f"load ptr, TABLE {place}")
        else:
            callee = "@" + callee
        found = self.let(f"call i64 {callee}(PRIVATE %array, i64 %n, {values})")
        variable, wanted = self.any_variable()
        self.store(variable, self.converted(found, I64, wanted))
        return found

    def decision(self) -> str:
        """Of the thread, or of all threads."""
        if self.chance(0.3):
            bit = self.let(f"and i64 %n, {self.random.choice((1, 2, 4, 6))}")
            return self.let(f"icmp {self.one('eq', 'ne')} i64 {bit}, 0")
        return self.condition(1)

    def branch(self, depth: int, leave: tuple[str, ...]) -> None:
        then, otherwise, end = self.labels("then", "else", "end")
        self.add(f"br i1 {self.decision()}, label %{then}, label %{otherwise}")
        for label in (then, otherwise):
            self.label(label)
            if label == then or self.chance(0.6):
                self.block(depth, leave)
            self.add(f"br label %{end}")
        self.label(end)

    def choice(self, depth: int, leave: tuple[str, ...]) -> None:
        """A switch, of few ways or of many."""
        count = self.random.choice((3, 3, 7))
        *ways, end = self.labels(*(f"way{n}_" for n in range(count + 1)), "end")
        value = self.let(f"and i32 {self.value(I32, 1)}, {count}")
        cases = " ".join(f"i32 {n}, label %{label}" for n, label in enumerate(ways[:-1]))
        self.add(f"switch i32 {value}, label %{ways[-1]} [ {cases} ]")
        for label in ways:
            self.label(label)
            if count < 7 and depth:
                self.block(depth - 1, leave)
            else:
                self.assign()
            self.add(f"br label %{end}")
        self.label(end)

    def leave(self, depth: int, leave: tuple[str, ...]) -> None:
        on, = self.labels("on")
        self.add(f"br i1 {self.decision()}, label %{self.one(*leave)}, label %{on}")
        self.label(on)

    def loop(self, depth: int) -> None:
        """At most seven turns, as many as a number of the thread, of all threads, or a constant says."""
        head, body, end = self.labels("head", "body", "done")
        counter = f"%c{next(self.numbers)}"
        self.allocated.append(f"  {counter} = alloca i32, PRIVATE_AS")
        most = self.random.choice((self.value(I32, 1), self.let("trunc i64 %n to i32"), "3"))
        limit = self.let(f"and i32 {most}, {self.random.choice((3, 7))}")
        self.add(f"store i32 0, PRIVATE {counter}")
        self.add(f"br label %{head}")
        self.label(head)
        turn = self.let(f"load i32, PRIVATE {counter}")
        self.add(f"store i32 {self.let(f'add i32 {turn}, 1')}, PRIVATE {counter}")
        self.add(f"br i1 {self.let(f'icmp ult i32 {turn}, {limit}')}, label %{body}, label %{end}")
        self.label(body)
        self.block(depth, (end, head))
        self.add(f"br label %{head}")
        self.label(end)

    def digest(self) -> str:
        """A number that every variable's bits change."""
        total = "0"
        for variable, type_ in self.variables.items():
            value = self.converted(self.load(variable), type_, I64)
            total = self.let(f"xor i64 {self.let(f'mul i64 {total}, 31')}, {value}")
        return total


class FuzzProgram:
    """One random program for an optimisation level; `text` has words for address spaces, see `spelled`."""

    def __init__(self, seed: int, number: int, opt: int):
        self.random, self.number, self.opt = Random(seed), number, opt
        self.declared: set[str] = set()
        signature = tuple(self.random.choice(TYPES) for _ in range(self.random.randint(1, 4)))
        callees = {f"h{number}_{n}": signature for n in range(2)} if self.random.random() < 0.6 else {}
        parts = [self.helper(name, signature) for name in callees]
        self.pointers = f"pointers{number}" if callees and self.random.random() < 0.5 else ""
        if self.pointers:
            names = ", ".join(f"ptr @{name}" for name in callees)
            parts.append(f"@{self.pointers} = internal TABLE_AS constant [2 x ptr] [{names}]")
        parts.append(self.main(callees))
        self.text = "\n".join([*parts, *sorted(self.declared)])

    def helper(self, name: str, types: tuple[Type, ...]) -> str:
        """A function that is called and never inlined; it changes the caller's array."""
        body = Body(self.random, self.opt, spaces=("PRIVATE",))
        for n, type_ in enumerate(types):
            body.new_variable(type_, f"%x{n}")
        for _ in range(self.random.randint(1, 3)):
            body.assign()
        if self.random.random() < 0.5:
            body.memory()
        arguments = ", ".join(["PRIVATE %array", "i64 %n", *(f"{t} %x{n}" for n, t in enumerate(types))])
        return self.finished(body, f"define internal i64 @{name}({arguments}) noinline")

    def main(self, callees: dict[str, tuple[Type, ...]]) -> str:
        body = Body(self.random, self.opt, callees=callees, pointers=self.pointers)
        body.allocated.append(f"  %array = alloca [{ARRAY_BYTES} x i8], align 16, PRIVATE_AS")
        for space in ("PRIVATE", "SHARED"):
            base, size = MEMORY[space]
            body.declared.add(f"declare void @llvm.memset.{space}_P.i64({space}, i8, i64, i1)")
            body.add(f"call void @llvm.memset.{space}_P.i64({space} align 16 {base}, i8 {3 + size % 7}, i64 {size}, "
                     "i1 false)")
        for n in range(self.random.randint(3, 7)):
            type_ = (I64, I32, *self.random.choices(TYPES, k=5))[n]
            body.new_variable(type_, body.converted(("%x", "%y", "%n")[n % 3], I64, type_))
        body.block(self.random.randint(1, 3))
        body.block(1)
        for space, type_ in (("PRIVATE", I32), ("SHARED", I64)):
            found = body.let(f"load {type_}, {space} {body.address(space, type_.bits // 8)[0]}, align 1")
            body.new_variable(type_, found)
        inline = self.random.choice(("alwaysinline", "noinline", ""))
        return self.finished(body, f"define internal i64 @f{self.number}(i64 %x, i64 %y, i64 %n, GLOBAL %slot, "
                             f"SHARED %shared) {inline}")

    def finished(self, body: Body, head: str) -> str:
        body.add(f"ret i64 {body.digest()}")
        self.declared |= body.declared
        return "\n".join([head + " {", "entry:", *body.allocated, *body.lines, "}"])


def table_text() -> str:
    """The constants."""
    words = ", ".join(f"i32 {n * 0x9E3779B1 % (1 << 32)}" for n in range(TABLE_WORDS))
    return f"@table = internal TABLE_AS constant [{TABLE_WORDS} x i32] [{words}], align 16\n"


def chip_kernel(number: int) -> str:
    """The kernel that runs a program, one thread after the other in a block."""
    return f"""
@lds{number} = internal SHARED_AS global [{THREADS * SHARED_BYTES} x i8] poison, align 16
define amdgpu_kernel void @k{number}(GLOBAL %in, GLOBAL %out, GLOBAL %slots, i64 %n) #0 {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %i = zext i32 %t to i64
  %at = mul i64 %i, {SHARED_BYTES}
  %shared = getelementptr i8, SHARED @lds{number}, i64 %at
{_thread(number)}
  ret void
}}
"""


def host_loop(number: int) -> str:
    """The same as a loop over the threads."""
    return f"""
define void @k{number}(GLOBAL %in, GLOBAL %out, GLOBAL %slots, i64 %n) {{
entry:
  %shared = alloca [{SHARED_BYTES} x i8], align 16
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
{_thread(number)}
  %next = add i64 %i, 1
  %done = icmp eq i64 %next, {THREADS}
  br i1 %done, label %end, label %loop
end:
  ret void
}}
"""


def _thread(number: int) -> str:
    return f"""
  %two = mul i64 %i, 2
  %px = getelementptr i64, GLOBAL %in, i64 %two
  %x = load i64, GLOBAL %px
  %py = getelementptr i64, GLOBAL %px, i64 1
  %y = load i64, GLOBAL %py
  %slot_at = mul i64 %i, {SLOT_BYTES}
  %slot = getelementptr i8, GLOBAL %slots, i64 %slot_at
  %r = call i64 @f{number}(i64 %x, i64 %y, i64 %n, GLOBAL %slot, SHARED %shared)
  %pr = getelementptr i64, GLOBAL %out, i64 %i
  store i64 %r, GLOBAL %pr
"""
