"""`@flyc.kernel`: a function that runs on the device, once for each thread."""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from flylab.compiler import rewrite as rewriting
from flylab.compiler import source as sources
from flylab.compiler.control.aliases import check_aliases
from flylab.compiler.control.regions import check_finished
from flylab.compiler.history import History
from flylab.compiler.inspection import Inspectable
from flylab.compiler.signature import Signature
from flylab.compiler.users import note_kernels
from flylab.compiler.wrong_calls import explained
from flylab.errors import TraceError
from flylab.expr.state import current_kernel
from flylab.expr.typing import Stream
from flylab.places import here


class TracedFunction(Inspectable):
    """A function with its source, its signature and its rewritten form: what kernels and launchers share."""

    decorator = ""

    def __init__(self, function: Callable[..., Any], name: str | None = None):
        if not hasattr(function, "__code__") or function.__name__ == "<lambda>":
            raise TraceError(f"@flyc.{self.decorator} on {function!r}", hint="decorate a function written with `def`")
        sources.note(function)
        note_kernels(function.__code__.co_filename)
        self.function = function
        self.name = function.__name__ if name is None else name
        self.signature = Signature(function)
        self.__name__ = function.__name__
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__qualname__ = function.__qualname__
        self.__wrapped__ = function
        self._source: sources.Source | None = None
        self._rewritten: rewriting.Rewritten | None = None
        self._callable: Callable[..., Any] | None = None
        self.last: Any = None
        self.history = History.of(function, self.decorator)

    @property
    def source(self) -> sources.Source:
        """The function's Python text, with its file and first line."""
        if self._source is None:
            self._source = sources.read(self.function)
        return self._source

    @property
    def rewritten(self) -> rewriting.Rewritten:
        """The function with its control flow sent through flylab."""
        if self._rewritten is None:
            self._rewritten = rewriting.rewrite(self.source, self.function)  # type: ignore[arg-type]
        return self._rewritten

    def run(self, arguments: dict[str, Any]) -> Any:
        """Run the rewritten function (in a trace) on its arguments by name."""
        if self._callable is None:
            self._callable = rewriting.to_function(self.rewritten, self.function)
        positional = [n for n, p in self.signature.python.parameters.items() if p.kind is not p.KEYWORD_ONLY]
        rest = {n: v for n, v in arguments.items() if n not in positional}
        try:
            return self._callable(*(arguments[n] for n in positional), **rest)
        except TypeError as error:
            unfit = explained(error)
            if unfit is None:
                raise
            raise unfit from None

    def run_for_effect(self, arguments: dict[str, Any]) -> None:
        """Run it as a kernel or launcher runs. Raises `TraceError` where it returns a value, at that line."""
        result = self.run(arguments)
        check_finished()
        check_aliases()
        if result is not None:
            kind = {"kernel": "kernel", "jit": "launcher"}[self.decorator]
            raise TraceError(
                f"{kind} '{self.name}' returns a value",
                where=self.rewritten.first_return or self.signature.where(),
                hint=f"a {kind} writes its results into tensors",
            )

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        return Method(self, instance)

    def __copy__(self) -> TracedFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> TracedFunction:
        return self

    def __reduce__(self) -> str:
        """Pickled by its name, as Python pickles functions. Raises `TraceError` where the name does not lead to it."""
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        if found is not self:
            raise TraceError(
                f"{self!r} cannot be pickled: {self.__module__}.{self.__qualname__} is not it",
                where=self.signature.where(),
                hint="define it in a module's outermost level or in a class there, under its own name",
            )
        return str(self.__qualname__)

    def __repr__(self) -> str:
        return f"<flyc.{self.decorator} {self.name}({', '.join(map(str, self.signature.parameters))})>"


class Method:
    """A kernel or launcher bound to an object, as Python binds methods."""

    def __init__(self, traced: TracedFunction, instance: Any):
        self.traced = traced
        self.instance = instance

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        return self.traced(self.instance, *args, **named)  # type: ignore[operator]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.traced, name)

    def __copy__(self) -> Method:
        return Method(self.traced, self.instance)

    def __deepcopy__(self, memo: dict[int, Any]) -> Method:
        return Method(self.traced, copy.deepcopy(self.instance, memo))

    def __reduce__(self) -> tuple[Any, ...]:
        return Method, (self.traced, self.instance)


class Kernel(TracedFunction):
    """A kernel. Calling it (in a launcher) gives a `KernelCall`, whose `.launch(grid=, block=)` runs it."""

    decorator = "kernel"

    def __init__(
        self, function: Callable[..., Any], name: str | None = None, known_block_size: Sequence[int] | None = None
    ):
        super().__init__(function, name)
        number = self.name.lower() in ("inf", "infinity", "nan", "true", "false")  # to who reads the object's metadata
        if number or not re.fullmatch(r"[A-Za-z_$][\w$]*", self.name, re.ASCII):
            raise TraceError(
                f"a kernel called {self.name!r}: the name is its symbol in the code object",
                where=self.signature.where(),
                hint='use ASCII letters, digits, _ and $, and no word for a number: @flyc.kernel(name="...")',
            )
        self.known_block_size = None if known_block_size is None else self._block(known_block_size)

    def _block(self, given: Any) -> tuple[int, int, int]:
        sizes = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if not 1 <= len(sizes) <= 3 or not all(type(x) is int and x > 0 for x in sizes):
            raise TraceError(
                f"known_block_size={given!r} of kernel '{self.name}'",
                where=self.signature.where(),
                hint="give one to three numbers of threads: known_block_size=(256, 1, 1)",
            )
        x, y, z = (*sizes, 1, 1)[:3]
        return x, y, z

    def __call__(self, /, *args: Any, **named: Any) -> KernelCall:
        from flylab.compiler.running import current_trace

        trace = current_trace()
        if trace is None or current_kernel() is not None:
            raise TraceError(
                f"kernel '{self.name}' was called {'outside of a launcher' if trace is None else 'in a kernel'}",
                hint="call it in an @flyc.jit function: kernel(...).launch(grid=..., block=...)",
            )
        call = KernelCall(self, self.signature.bind(args, named))
        trace.calls.append(call)
        return call


class KernelCall:
    """A kernel with its arguments; `.launch()` puts it on the device."""

    def __init__(self, kernel: Kernel, arguments: dict[str, Any]):
        self.kernel = kernel
        self.arguments = arguments
        self.where = here()
        self.launched = False

    def launch(self, grid: Any, block: Any, stream: Any = None, smem: Any = None) -> None:
        """Launch over `grid` blocks of `block` threads: integers, or tuples of one to three.

        Known numbers or Int32 values of the launcher; `smem` is dynamic LDS in bytes. Raises `TraceError` for a block
        of more threads than the hardware has (1024), a grid of 0, or a missing extent.
        """
        from flylab.compiler.running import current_trace

        trace = current_trace()
        if trace is None or current_kernel() is not None:
            raise TraceError(
                f"a launch of '{self.kernel.name}' outside of its launcher",
                hint="launch where the kernel is called: kernel(...).launch(grid=..., block=...)",
            )
        self.launched = True
        if stream is not None and not isinstance(stream, Stream):
            raise TraceError(f"launch(stream={stream!r})", hint="give the fx.Stream parameter, or leave it out")
        trace.launch(self, grid, block, smem)


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    known_block_size: Sequence[int] | None = None,
) -> Any:
    """Make a function a kernel: `@flyc.kernel`, or with options `@flyc.kernel(name="k")`.

    `name` is its symbol in the code object; `known_block_size` fixes the block of every launch.
    """
    if function is None:
        return lambda f: Kernel(f, name, known_block_size)
    return Kernel(function, name, known_block_size)
