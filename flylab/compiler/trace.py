"""Tracing: a launcher is run once in Python, and what it does to values of the device becomes an MLIR module.

The module holds the launcher as a `func.func` with a `gpu.launch_func` for each launch, and the kernels as `gpu.func`s
of one `gpu.module`. Each launch traces its kernel anew, since its arguments decide what it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from flylab.compiler.kernel import Kernel, KernelCall, TracedFunction
from flylab.compiler.passing import HostArgument, Names, Passed, host_value, passed
from flylab.compiler.running import current
from flylab.compiler.signature import NUMBER, POINTER, TENSOR
from flylab.dialect.types import to_mlir
from flylab.dtypes import DTYPES, DType
from flylab.errors import Check, FlylabError, TraceError
from flylab.expr.emit import constant, mlir_type, op
from flylab.expr.lines import Line
from flylab.expr.numeric import Integer, Numeric
from flylab.expr.promotion import plain
from flylab.expr.shared import launched_bytes
from flylab.expr.state import FunctionState, KernelState, tracing
from flylab.expr.tensor import Pointer, Tensor
from flylab.expr.thread_slices import check_slices
from flylab.expr.whole_waves import check_launch
from flylab.passes.recording import lines_of
from flylab.places import SourceLine, here, of_traceback
from flylab.targets import Target

KERNEL_MODULE = "kernels"


@dataclass
class TracedModule:
    """What tracing gives: the MLIR module, and the names that errors and views need."""

    module: Any
    target: Target
    arguments: list[HostArgument]
    kernels: dict[str, Kernel] = field(default_factory=dict)
    operand_types: dict[str, list[DType | None]] = field(default_factory=dict)
    """Kernel symbol -> the number format of each runtime parameter, None for a tensor."""
    blocks: dict[str, tuple[int, int, int] | None] = field(default_factory=dict)
    """Kernel symbol -> the block that it is compiled for, None for any."""
    checks: dict[str, list[Check]] = field(default_factory=dict)
    """Kernel symbol -> its checks by their numbers; under "" those of the launcher."""
    lines: dict[str | None, list[Line]] = field(default_factory=dict)
    """Kernel symbol, or None for the launcher -> what its calls of `fx.printf` print."""
    launch_lines: dict[str, SourceLine | None] = field(default_factory=dict)
    """Kernel symbol -> the user's line that launches it."""


class Trace:
    """One run of a launcher."""

    def __init__(self, launcher: TracedFunction, target: Target, arguments: list[HostArgument]):
        from mlir import ir

        self.target = target
        where = launcher.signature.where()
        self.location = ir.Location.file(where.file, where.line, 1)  # and not that of the call, which is no input
        module = ir.Module.create(self.location)
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        self.result = TracedModule(module, target, arguments)
        self.kernel_block: Any = None
        self.calls: list[KernelCall] = []
        """The calls of kernels so far, each of which must be launched."""
        self.functions: dict[str, Any] = {}
        """The operation of each kernel traced so far, by its symbol."""

    def run(self, launcher: TracedFunction) -> TracedModule:
        """Trace the launcher and every kernel that it launches."""
        from mlir import ir

        with ir.InsertionPoint(self.result.module.body):
            gpu_module = ir.Operation.create(
                "gpu.module", regions=1, loc=self.location, attributes={"sym_name": ir.StringAttr.get(KERNEL_MODULE)}
            )
            self.kernel_block = gpu_module.regions[0].blocks.append()
            runtime = [a for given in self.result.arguments for a in given.on_device()]
            block = self._function("func.func", launcher, launcher.name, runtime, {})
        state = FunctionState(launcher.name, block.owner.operation, self.target)
        self.result.checks[""] = state.checks
        self.result.lines[None] = state.lines
        with ir.InsertionPoint(block), tracing(state):
            values = iter(block.arguments)
            bound = {a.name: host_value(a, values) for a in self.result.arguments}
            launcher.run_for_effect(bound)
            op("func.return", [], loc=_end(launcher))
        self._check_calls()
        if not self.result.kernels:
            raise TraceError(
                f"launcher '{launcher.name}' launches no kernel",
                where=launcher.signature.where(),
                hint="call kernel(...).launch(grid=..., block=...) in it",
            )
        return self.result

    def _function(
        self, kind: str, function: TracedFunction, symbol: str, runtime: list[HostArgument], extra: dict[str, Any]
    ) -> Any:
        """Make a `func.func` or `gpu.func`; its entry block, one argument for each runtime parameter."""
        from mlir import ir

        where = function.signature.where()
        loc = ir.Location.file(where.file, where.line, 1)
        types = [mlir_type(a.spec.dtype) if a.kind == NUMBER else to_mlir(a.spec) for a in runtime]
        attributes = {
            "sym_name": ir.StringAttr.get(symbol),
            "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
            **extra,
        }
        made = ir.Operation.create(kind, regions=1, attributes=attributes, loc=loc)
        return made.regions[0].blocks.append(*types, arg_locs=[ir.Location.name(a.name, loc) for a in runtime])

    def _check_calls(self) -> None:
        for call in self.calls:
            if not call.launched:
                raise TraceError(
                    f"kernel '{call.kernel.name}' is called, and never launched",
                    where=call.where,
                    hint="add .launch(grid=..., block=...)",
                )

    def launch(self, call: KernelCall, grid: Any, block: Any, smem: Any) -> None:
        """Trace the kernel of a call, and launch it."""
        grids = _extents(call.kernel, "grid", grid)
        blocks = _extents(call.kernel, "block", block)
        known = _known_block(call.kernel, blocks)
        _check_extents(call.kernel, grids, known, self.target)
        smem = plain(smem)
        if smem is not None and (type(smem) is not int or not 0 <= smem <= self.target.lds_bytes):
            raise TraceError(
                f"launch of '{call.kernel.name}': smem={smem!r}",
                hint=f"dynamic LDS is an int of 0 to {self.target.lds_bytes} bytes on {self.target}, and known while "
                     "tracing: a constant, an fx.Constexpr[int], or left out for what the kernel allocates",
            )
        arguments = [passed(p, call.arguments[p.name]) for p in call.kernel.signature.parameters]
        symbol = self._symbol(call.kernel.name)
        state = self._trace_kernel(call.kernel, symbol, arguments, known, grids)
        check_launch(state, blocks)
        self._launch_func(symbol, arguments, grids, blocks, launched_bytes(state, smem))

    def mark(self) -> tuple[int, frozenset[str]]:
        """What was called and traced so far, for `back_to`."""
        return len(self.calls), frozenset(self.result.kernels)

    def back_to(self, mark: tuple[int, frozenset[str]]) -> None:
        """Forget the calls, and the kernels, that came after a mark: they were traced on trial."""
        calls, kernels = mark
        del self.calls[calls:]
        for symbol in [s for s in self.result.kernels if s not in kernels]:
            del self.result.kernels[symbol], self.result.blocks[symbol], self.result.operand_types[symbol]
            self.result.launch_lines.pop(symbol, None)
            self.functions.pop(symbol).erase()

    def _symbol(self, name: str) -> str:
        symbol, count = name, 0
        while symbol in self.result.kernels:
            count += 1
            symbol = f"{name}_{count}"
        return symbol

    def _trace_kernel(
        self,
        kernel: Kernel,
        symbol: str,
        arguments: list[Passed],
        known: tuple[int, int, int] | None,
        grid: list[Any],
    ) -> KernelState:
        from mlir import ir

        runtime = [a for passed in arguments for slot in passed.slots for a in slot[0].on_device()]
        extra: dict[str, Any] = {"gpu.kernel": ir.UnitAttr.get()}
        if known:
            extra["known_block_size"] = ir.DenseI32ArrayAttr.get(list(known))
        else:  # MLIR's default is 256 threads
            i32 = ir.IntegerType.get_signless(32)
            extra["rocdl.max_flat_work_group_size"] = ir.IntegerAttr.get(i32, self.target.max_workgroup)
        x, y, z = (extent if isinstance(extent, int) else None for extent in grid)
        if x and y and z:
            extra["known_grid_size"] = ir.DenseI32ArrayAttr.get([x, y, z])
        self.result.kernels[symbol] = kernel
        self.result.blocks[symbol] = known
        self.result.operand_types[symbol] = [a.spec.dtype if a.kind == NUMBER else None for a in runtime]
        with ir.InsertionPoint(self.kernel_block):
            block = self._function("gpu.func", kernel, symbol, runtime, extra)
        self.functions[symbol] = block.owner.operation
        state = KernelState(symbol, block.owner.operation, self.target, block=known, grid=(x, y, z))
        self.result.checks[symbol] = state.checks
        self.result.lines[symbol] = state.lines
        with ir.InsertionPoint(block), tracing(state):
            values = iter(block.arguments)
            names = Names(state)
            kernel.run_for_effect({passed.name: passed.received(values, names) for passed in arguments})
            check_slices(state)
            op("gpu.return", [], loc=_end(kernel))
        return state

    def _launch_func(
        self,
        symbol: str,
        arguments: list[Passed],
        grid: list[Any],
        block: list[Any],
        smem: int,
    ) -> None:
        from mlir import ir

        self.result.launch_lines[symbol] = here()
        operands = [_index(x) for x in (*grid, *block)]
        if smem:
            operands.append(constant(smem, DTYPES["Int32"]))
        passed = [
            value.value if isinstance(value, (Pointer, Tensor)) else argument.spec(value).ir_value()
            for each in arguments
            for argument, value, _ in each.slots
            if argument.kind in (TENSOR, POINTER, NUMBER)
        ]
        segments = [0, *[1] * 6, 0, 0, 0, int(bool(smem)), len(passed), 0]
        op(
            "gpu.launch_func",
            [*operands, *passed],
            attributes={
                "kernel": ir.SymbolRefAttr.get([KERNEL_MODULE, symbol]),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
            },
        )


def _end(function: TracedFunction) -> Any:
    """The location of a function's last line: where it returns."""
    from mlir import ir

    source = function.source
    return ir.Location.file(source.file, source.first_line + len(lines_of(source.text)) - 1, 1)


def _extents(kernel: Kernel, what: str, given: Any) -> list[Any]:
    items = [plain(x) for x in (given if isinstance(given, (tuple, list)) else [given])]
    good = all(isinstance(x, (int, Integer)) and not isinstance(x, bool) for x in items)
    if not good or not 1 <= len(items) <= 3:
        raise TraceError(
            f"launch of '{kernel.name}': {what}={given!r}",
            hint=f"{what} is an integer or a tuple of one to three: {what}=(256,)",
        )
    items = [x.value if isinstance(x, Numeric) and x.is_static else x for x in items]
    return items + [1] * (3 - len(items))


def _known_block(kernel: Kernel, block: list[Any]) -> tuple[int, int, int] | None:
    known = None if any(isinstance(x, Numeric) for x in block) else (block[0], block[1], block[2])
    declared = kernel.known_block_size
    if declared is not None and known not in (None, declared):
        raise TraceError(
            f"launch of '{kernel.name}' with block {known}, declared known_block_size={declared}",
            hint="launch with the declared block, or drop known_block_size",
        )
    return declared or known


def _check_extents(kernel: Kernel, grid: list[Any], block: tuple[int, int, int] | None, target: Target) -> None:
    for what, extents in (("grid", grid), ("block", block or ())):
        for extent in extents:
            if isinstance(extent, int) and extent < 1:
                raise TraceError(
                    f"launch of '{kernel.name}': {what} {tuple(extents)} has an extent below 1",
                    hint="for sizes smaller than a block, round up: fx.ceildiv(n, block)",
                )
    if block and block[0] * block[1] * block[2] > target.max_workgroup:
        raise TraceError(
            f"launch of '{kernel.name}': block {block} has {block[0] * block[1] * block[2]} threads, "
            f"{target} runs at most {target.max_workgroup}",
            hint="use a smaller block and a larger grid",
        )


def _index(extent: Any) -> Any:
    from mlir import ir

    if isinstance(extent, Numeric):
        cast = "arith.index_cast" if extent.dtype.signed else "arith.index_castui"
        return op(cast, [extent.ir_value()], ir.IndexType.get())
    index = ir.IndexType.get()
    return op("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, extent)})


def trace(launcher: TracedFunction, arguments: list[HostArgument], target: Target) -> TracedModule:
    """Trace a launcher for a chip (in the entered MLIR context).

    Raises `TraceError` (with the user's line) for what has no meaning on the device; an exception of the user's own
    code passes through as it is.
    """
    running = Trace(launcher, target, arguments)
    with current(running):
        try:
            result = running.run(launcher)
        except FlylabError as error:
            raise error.at(of_traceback(error.__traceback__)) from error.__cause__
        except RecursionError as error:
            where = of_traceback(error.__traceback__)
            raise TraceError(
                f"'{where.function if where else launcher.name}' calls itself without an end while it is traced",
                where=where,
                hint="both arms of a runtime `if` are traced: recurse over a number that Python knows, or write a loop",
            ) from None
    result.module.operation.verify()
    return result
