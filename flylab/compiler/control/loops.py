"""Runtime `for` and `while`: the body is traced on trial until it is known what it carries, then the loop is made."""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Any

from flylab.compiler.control.again import Again
from flylab.compiler.control.aliases import note
from flylab.compiler.control.branch import MISSING, no_value
from flylab.compiler.control.carried import End, Place, State, starts
from flylab.compiler.control.memory import remembered
from flylab.compiler.control.ranges import Range
from flylab.compiler.control.regions import Block, yield_from
from flylab.compiler.control.snapshot import Unbound, variables
from flylab.compiler.control.truth import is_runtime, truth
from flylab.compiler.control.values import Copy
from flylab.compiler.syntax.hooking import Site
from flylab.errors import TraceError
from flylab.expr.emit import intrinsic, op
from flylab.expr.location import mlir_location
from flylab.expr.state import current_kernel

UNROLLED = 10_000
"""How many rounds of a `while` are unrolled at most: more is a mistake, or more than a chip's memory for code holds."""
ROUNDS = 8
"""How often a body is traced at most: each time more is carried, or in another format."""


class Loop:
    """What runtime loops share. The rewritten code runs the body `with` it and takes the variables from it."""

    runtime = True

    def __init__(self, site: Site, frame: FrameType, init: list[Any] | None = None, runs: bool = False):
        self.site = site
        self.location = mlir_location()
        self.memory = remembered(site)
        self.state = State(self.memory, frame, init, runs)
        self.block: Block | None = None
        self.head_values: dict[Place, Any] = {}
        self.end: End | None = None
        self.yielded: list[Any] | None = None
        self.final: tuple[Any, ...] = ()
        self.results: list[Any] = []

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if kind is None:
            self._end()
        elif self.block is not None:
            self.block.leave(error)
            if isinstance(error, Again) and error.loop is self:
                self._again(error)
                return True
        return False

    def _again(self, again: Again) -> None:
        """Throw away what was traced; the next round begins in another format."""
        assert self.block is not None
        self.block.drop()
        self.state.restore()
        self.state.carried[again.place].joined = again.joined
        self.state.note_format(again.place, again.joined)
        self.block = self.end = None

    def _begin(self) -> None:
        """Open the block of the body, and make its arguments."""
        self.block = Block(f"the body of {self.site.what}")
        self.block.loop = self
        self.state.enter(self.block)
        self.block.enter()
        self.head_values = self.state.at_head()

    def _end(self) -> None:
        """Take apart what the body left, and leave its block."""
        assert self.block is not None
        with self.block.leaving():
            self.end = End(self.state, self.head_values, self.yielded)
        self.state.restore()

    def enter(self) -> tuple[Any, ...]:
        """The variables at the head of the body."""
        return self.state.put(self.head_values, self.site.inner)

    def carry(self, values: Any) -> None:
        """What a `yield` gives to the next round."""
        init = self.state.init
        assert init is not None
        given = list(values) if isinstance(values, (list, tuple)) else [values]
        if len(given) != len(init):
            raise TraceError(
                f"{self.site.what} yields {len(given)} values, and init has {len(init)}",
                hint="yield one value for each of init, in its order",
            )
        self.yielded = given

    def leave(self) -> tuple[Any, ...]:
        """The variables after the loop."""
        return self.final

    def _slots(self) -> list[Any]:
        """The place of the first leaf of each, for the leaves in their order; None for any other leaf."""
        return [place if i == 0 else None for place, each in self.state.carried.items()
                for i in range(len(each.joined.slots))]

    def _settled(self) -> bool:
        """Whether the body is traced for good; else it is thrown away."""
        if self.end is None or self.block is None:
            return False  # it is to be traced again
        if not self.end.more():
            return True
        self.block.drop()
        return False

    def _finish(self, results: list[Any]) -> None:
        """What the variables, the containers and the states are, of the results of the operation."""
        state, rest = self.state, iter(results)
        values: dict[Place, Any] = {}
        copies: list[Copy] = []
        for place, each in state.carried.items():
            parts = [next(rest) for _ in each.joined.slots]
            values[place] = each.joined.rebuilt(iter(parts), copies)
        self.results = [values["state", i] for i in range(len(state.init or ()))]
        shown = {p: v for p, v in values.items() if not isinstance(p, str)}
        state.put(shown, ())
        self.final = tuple([self._after(name, values) for name in self.site.names])
        kept = set(map(id, self.final))
        note([c for c in copies if id(c.made) in kept], state.frame, self.site,
             dict(zip(self.site.names, self.final, strict=True)))
        self.state = None  # type: ignore[assignment]
        self.end = None

    def _after(self, name: str, values: dict[Place, Any]) -> Any:
        state, what = self.state, self.site.what
        assert self.end is not None
        before = state.before.get(name, MISSING)
        if name in values:
            return before if before is not MISSING and self._keeps(name) else values[name]
        if before is MISSING:
            return Unbound(name, f"has no value where {what} does not run", f"give '{name}' a value before {what}")
        if name in self.site.live or self.end.stays(name, self.end.now.get(name)):
            return before
        return Unbound(name, f"is not kept by {what}", "read it in the loop")

    def _keeps(self, name: str) -> bool:
        """Whether the body leaves a variable what it is at its head."""
        assert self.end is not None
        return self.end.now.get(name, MISSING) is self.head_values.get(name)


class For(Loop):
    """A `for` over `range`."""

    def __init__(self, site: Site, frame: FrameType, bounds: Range, init: list[Any] | None):
        super().__init__(site, frame, init, bounds.runs and not site.stops)
        self.range = bounds
        self.state.first = site.first if bounds.runs else frozenset()

    def __iter__(self) -> Iterator[Any]:
        if self.range.is_empty:
            self._finish_unrun()
            return
        for _ in range(ROUNDS):
            yield from self._round()
            if self._settled():
                break
        else:
            raise TraceError(f"what {self.site.what} carries does not settle", hint="carry values of one type")
        self._build()

    def _round(self) -> Iterator[Any]:
        self.yielded = None
        self.memory.count = 0
        self.block = Block(f"the body of {self.site.what}")
        self.block.loop = self
        counter = self.block.argument(self.range.mlir())
        self.state.enter(self.block)
        self.block.enter()
        self.head_values = self.state.at_head()
        index = self.range.index(counter)
        yield index if self.state.init is None else (index, self.state.states(self.head_values))

    def _finish_unrun(self) -> None:
        """A loop known to run no time: nothing changes."""
        state = self.state
        self.results = list(state.init or ())
        self.final = tuple([state.before.get(n, no_value(n, self.site)) for n in self.site.names])
        self.state = None  # type: ignore[assignment]

    def _build(self) -> None:
        from mlir import ir

        assert self.end is not None and self.block is not None
        places = self.state.carried
        with self.block.at_end():
            following = self.end.values(places)
        types = [slot.kind.mlir() for each in places.values() for slot in each.joined.slots]
        if self.site.stops:
            self._finish(self._as_while(following, types))
            return
        yield_from(self.block, following)
        operands = [*self.range.operands(), *starts(places)]
        made = ir.Operation.create("scf.for", results=types, operands=operands, regions=1, loc=self.location,
                                   attributes=self.range.attributes())
        self.block.move_to(made.regions[0])
        self._finish(list(made.results))

    def _as_while(self, following: list[Any], types: list[Any]) -> list[Any]:
        """A loop that its flags can end: while the counter is below its bound, and no flag is set."""
        assert self.block is not None
        low, high, step = self.range.operands()
        counter = self.block.block.arguments[0]
        with self.block.at_end():
            following = [op("arith.addi", [counter, step], counter.type), *following]
        yield_from(self.block, following)
        test = Block(self.site.what)
        arguments = [test.argument(t) for t in (counter.type, *types)]
        flags = dict(zip(self._slots(), arguments[1:], strict=True))
        with test.at_end():
            goes_on = self.range.below(arguments[0], high)
            for name in self.site.stops:
                goes_on = _and_not(goes_on, flags[name])
        yield_from(test, [goes_on, *arguments], "scf.condition")
        results = _while(test, self.block, [low, *starts(self.state.carried)], [counter.type, *types], self.location)
        return results[1:]


class While(Loop):
    """A `while`: decided in Python as long as its test is; from the first runtime test, or flag, on the device.

    A round that turns out to be the device's is thrown away and traced anew.
    """

    def __init__(self, site: Site, frame: FrameType):
        self.site = site
        self.frame: FrameType | None = frame
        self.location = mlir_location()
        self.memory = remembered(site)
        self.runtime = False
        self.goes = True
        self.unrolled = self.rounds = 0
        self.block: Block | None = None
        self.test_block: Block | None = None
        self.test_end: End | None = None
        self.yielded = None
        self.final = ()

    def goes_on(self) -> bool:
        """Whether there is one more round to trace."""
        if not self.runtime and not self.memory.is_on_device:
            if self.goes:
                self._try()
            else:
                self.frame = self.state = None  # type: ignore[assignment]
            return self.goes
        if not self.runtime:
            assert self.frame is not None
            self.state, self.runtime = self._state(), True
        if self.rounds and self._settled():
            self._build()
            return False
        if self.rounds == ROUNDS:
            raise TraceError(f"what {self.site.what} carries does not settle", hint="carry values of one type")
        self.rounds += 1
        self.memory.count = 0
        self._begin()
        self.test_block, self.block = self.block, None
        return True

    def _state(self) -> State:
        assert self.frame is not None
        state = State(self.memory, self.frame, None, False)
        state.first = self.site.first
        return state

    def _try(self) -> None:
        """Begin a round in Python, on trial."""
        assert self.frame is not None
        if self.unrolled == UNROLLED:
            raise TraceError(f"{self.site.what} is decided while tracing, and does not end in {UNROLLED} rounds",
                             hint="over numbers that Python knows it unrolls: for i in range(n) is the device's loop")
        self.state = self._state()
        self.block = Block(f"a round of {self.site.what}", is_trial=True)
        self.block.enter()

    def head(self) -> tuple[Any, ...]:
        """The variables where the test is asked."""
        return self.enter()

    def test(self, value: Any) -> bool:
        """The test, asked; whether the body is to be traced."""
        if self.runtime:
            return self._tested(value)
        assert self.block is not None
        if is_runtime(value):
            self._to_device()
            return False
        self.goes = bool(value)
        if not self.site.stops:
            self._keep_round()
        return self.goes

    def _keep_round(self) -> None:
        assert self.block is not None
        self.block.leave()
        self.block.inline()
        self.block = None
        self.unrolled += 1

    def _to_device(self) -> None:
        assert self.block is not None
        self.block.leave()
        self.block.drop()
        self.block = None
        self.state.restore()
        self.runtime = True
        self.memory.is_on_device = not self.unrolled

    def _tested(self, value: Any) -> bool:
        """End the block of the test, and open that of the body; or have the test traced anew, with what it changes."""
        block, condition = self.test_block, truth(value, "`while`").ir_value()
        assert block is not None
        self.test_end = End(self.state, self.head_values, None, is_test=True)
        self.passing = condition, self.head_values
        block.leave()
        if self.test_end.more():
            block.drop()
            self.state.restore()
            self.test_block = self.test_end = self.end = None
            return False
        self._begin()
        return True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        if self.runtime:
            if self.test_end is not None:
                return super().__exit__(kind, error, trace)
            if kind is not None and self.test_block is not None:  # the test itself failed
                self.block, self.test_block = self.test_block, None
                return super().__exit__(kind, error, trace)
            return False
        if self.block is None:
            return False
        flags = variables(self.state.frame, self.site.stops).values()
        if kind is None and any(is_runtime(v) for v in flags):
            self._to_device()
        else:
            self._keep_round()
            self.goes = not any(v for v in flags if not is_runtime(v))
        return False

    def _again(self, again: Again) -> None:
        super()._again(again)
        if self.test_block is not None:
            self.test_block.drop()
        self.test_block = self.test_end = None

    def _settled(self) -> bool:
        if self.end is None or self.block is None:
            return False  # it is to be traced again
        assert self.test_end is not None and self.test_block is not None
        if not (self.test_end.more() | self.end.more()):
            return True
        self.block.drop()
        self.test_block.drop()
        self.test_end = None
        return False

    def _build(self) -> None:
        assert self.end is not None and self.block is not None
        assert self.test_end is not None and self.test_block is not None
        places = self.state.carried
        condition, head = self.passing
        types = [slot.kind.mlir() for each in places.values() for slot in each.joined.slots]
        arguments = list(self.test_block.block.arguments)
        with self.test_block.at_end():
            for name in self.site.stops:
                condition = _and_not(condition, arguments[self._slots().index(name)])
            passed = self._passed(head, arguments)
            _keep_loop()
        yield_from(self.test_block, [condition, *passed], "scf.condition")
        with self.block.at_end():
            following = self.end.values(places)
        yield_from(self.block, following)
        self._finish(_while(self.test_block, self.block, starts(places), types, self.location))
        self.frame = self.test_end = None

    def _keeps(self, name: str) -> bool:
        assert self.test_end is not None
        return super()._keeps(name) and self.test_end.now.get(name, MISSING) is self.passing[1].get(name)

    def _passed(self, head: dict[Place, Any], arguments: list[Any]) -> list[Any]:
        """What the test passes on: its block's arguments, but for what it changed itself."""
        assert self.test_end is not None
        passed, rest = [], iter(arguments)
        for place, each in self.state.carried.items():
            own = [next(rest) for _ in each.joined.slots]
            changed = each.is_read and self.test_end.now.get(place, head.get(place)) is not head.get(place)
            passed += self.test_end.values({place: each}) if changed else own
        return passed


def _while(test: Block, body: Block, operands: list[Any], types: list[Any], location: Any) -> list[Any]:
    """Make an `scf.while` of its two blocks; its results."""
    from mlir import ir

    made = ir.Operation.create("scf.while", results=types, operands=operands, regions=2, loc=location)
    test.move_to(made.regions[0])
    body.move_to(made.regions[1])
    return list(made.results)


def _keep_loop() -> None:
    """Keep a loop that does nothing but end, or not: MLIR and LLVM would take it out, and run what is behind it."""
    if current_kernel() is not None:
        intrinsic("llvm.sideeffect", [])


def _and_not(condition: Any, flag: Any) -> Any:
    from flylab.expr.formats import Boolean

    return (Boolean(condition) & ~Boolean(flag)).ir_value()

