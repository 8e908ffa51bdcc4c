"""One compilation: everything the compiler made for one launcher, one set of argument kinds and one chip.

The passes and the code generator are imported where they are used: one that comes from disk launches without them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flylab import settings
from flylab.codegen.isa import Isa
from flylab.compiler.dependencies import Dependency
from flylab.compiler.inspection import show
from flylab.compiler.kernel import TracedFunction
from flylab.compiler.passing import HostArgument
from flylab.dialect.context import entered
from flylab.dtypes import DType
from flylab.errors import Check, of_user
from flylab.expr.lines import Line
from flylab.locks import IMPORTING, cached_property
from flylab.passes.host import HostProgram
from flylab.passes.recording import Stage, lines_of
from flylab.places import SourceLine
from flylab.shown import Text
from flylab.targets import Target

if TYPE_CHECKING:
    from flylab.codegen.amdgpu import Code
    from flylab.codegen.origins import Origin

_dumped: set[Path] = set()


@dataclass
class Compiled:
    """What one compilation gives. `host` is what the launcher does on the host; the texts are made when asked."""

    launcher: TracedFunction
    target: Target
    opt_level: int
    arguments: list[HostArgument]
    host: HostProgram
    functions: dict[str, TracedFunction]
    """Kernel symbol -> the kernel."""
    operand_types: dict[str, list[DType | None]]
    """Kernel symbol -> the number format of each runtime argument, None for a tensor's address."""
    blocks: dict[str, tuple[int, int, int] | None]
    """Kernel symbol -> the block that it is compiled for, None for any."""
    checks: dict[str, list[Check]]
    """Kernel symbol -> what its checks say, by their numbers; under "" those of the launcher."""
    lines: dict[str | None, list[Line]]
    """Kernel symbol, or None for the launcher -> what its calls of `fx.printf` print."""
    launch_lines: dict[str, SourceLine | None]
    """Kernel symbol -> the user's line that launches it."""
    print_llvm: Callable[[], str] = field(repr=False)
    """Gives the LLVM IR."""
    code: Code
    print_traced: Callable[[], str] = field(repr=False)
    """Gives the text of the traced module, with its locations."""
    kept: str = "not kept on disk"
    """Whether it is on disk, for other processes, or comes from there; and why not."""
    constants: dict[str, Dependency] = field(default_factory=dict, repr=False)
    """The constants among the arguments, by name, with what they meant."""
    _recordings: dict[str, list[Stage]] = field(default_factory=dict, repr=False)
    _linked: dict[bool, bytes] = field(default_factory=dict, repr=False)
    """The loadable code object, with the lines of the source and without."""
    _call: Callable[..., Any] | None = field(default=None, init=False, repr=False, compare=False)

    @cached_property
    def isa(self) -> Isa:
        """The ISA as data."""
        return Isa.parse(self.code.assembly)

    @cached_property
    def program(self) -> Any:
        """The ISA as the software device runs it."""
        with IMPORTING:
            from flylab.emulator import Program

        return Program(self.isa, self.checks)

    @cached_property
    def object_code(self) -> bytes:
        """The relocatable ELF object."""
        return self.code.object_code

    @property
    def hsaco(self) -> bytes:
        """The loadable code object, with the lines of the source where FLYLAB_DEBUG_ENABLE_DEBUG_INFO says so.

        Raises `ToolchainError` where the machine has no lld.
        """
        lines = settings.DEBUG_INFO.value()
        if lines not in self._linked:
            self._linked[lines] = self.code.linked(lines)
        return self._linked[lines]

    def save_hsaco(self, path: str | Path) -> Path:
        """Write the loadable code object to a file; its path."""
        path = Path(path)
        path.write_bytes(self.hsaco)
        return path

    @cached_property
    def llvm(self) -> str:
        """The LLVM IR before LLVM's optimisation, as text."""
        return self.print_llvm()

    @cached_property
    def traced_text(self) -> str:
        """The traced module as text, with its locations: what the passes begin with."""
        return self.print_traced()

    def recording(self, file: str) -> list[Stage]:
        """The traced IR and the text after each pass, linked to a Python file: the pipeline run again, recorded."""
        if file not in self._recordings:
            from flylab.passes import pipeline

            with entered():
                from mlir import ir

                module = ir.Module.parse(self.traced_text)
                stages = [pipeline.stage_of("ir", module, None, file)]
                pipeline.run(module, self.target, stages, file)
            self._recordings[file] = stages
        return self._recordings[file]

    @cached_property
    def origins(self) -> dict[str, tuple[Origin, ...]]:
        """Of each instruction of each kernel the user's line and the operation of the last IR that it came from.

        `origins[kernel][index]` is that of the instruction `isa.kernels[kernel].instructions[index]`; its `operation`
        is a line of the text `recording(file)[-1]`. The kernels are compiled once more for it.
        """
        from flylab.codegen.origins import origins
        from flylab.passes import pipeline

        with entered():
            from mlir import ir

            module = ir.Module.parse(self.traced_text)
            pipeline.run(module, self.target)
            return origins(module, self.isa, self.opt_level)

    def stages(self, function: TracedFunction | None = None) -> Iterator[Stage]:
        """Every stage, from the Python source of `function` (the first kernel by default) to the ISA."""
        from flylab.codegen import amdgpu
        from flylab.codegen import llvm as llvm_ir

        function = function or next(iter(self.functions.values()))
        source, rewritten = function.source, function.rewritten
        numbers = range(source.first_line, source.first_line + len(lines_of(source.text)))
        yield Stage("source", "python", source.text, tuple(numbers))
        yield Stage("rewritten", "python", rewritten.text, rewritten.lines)
        yield from self.recording(source.file)
        yield Stage("llvm", "llvm", *llvm_ir.readable(self.llvm, source.file))
        yield Stage("isa", "isa", *amdgpu.readable(self.code.assembly, source.file))

    def show(self, what: str = "passes") -> Text:
        """The text of one stage: "source", "rewritten", "ir", "passes", "llvm", "isa", or a pass's name."""
        return show(list(self.stages()), what)

    def dump(self, folder: Path) -> Path:
        """Write a numbered `.mlir` for each stage, the LLVM IR and `final_isa.s` below `folder`; the folder written.

        Its name is the launcher's, with a number for the next compilations of this process; what an earlier process
        left there is replaced.
        """
        place, count = folder / self.launcher.name, 0
        while place in _dumped:
            count += 1
            place = folder / f"{self.launcher.name}_{count}"
        place.mkdir(parents=True, exist_ok=True)
        _dumped.add(place)
        for old in (*place.glob("[0-9][0-9]_*.mlir"), *place.glob("final_*")):
            old.unlink()
        for number, stage in enumerate(self.recording(self.launcher.source.file)):
            name = "".join(c if c.isalnum() else "-" for c in stage.name)
            (place / f"{number:02}_{name}.mlir").write_text(stage.text + "\n", encoding="utf-8")
        (place / "final_llvm.ll").write_text(self.llvm, encoding="utf-8")
        (place / "final_isa.s").write_text(self.code.assembly, encoding="utf-8")
        return place

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        if self._call is None:
            from flylab.runtime.fast.calling import of_compiled

            self._call = of_compiled(self)
        try:
            return self._call(*args, **named)
        except Exception as error:
            of_user(error)
            raise

    def __copy__(self) -> Compiled:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        from flylab.runtime.cache.pickling import reduced

        return reduced(self)

    def __repr__(self) -> str:
        kernels = ", ".join(self.functions)
        return f"<compiled {self.launcher.name} for {self.target}: {kernels}>"


def build(launcher: TracedFunction, arguments: list[HostArgument], target: Target, opt_level: int) -> Compiled:
    """Compile a launcher: trace, passes, LLVM IR, optimised. Its code is generated when it is asked for.

    Raises `TraceError` or `CompileError`, placed at the user's line.
    """
    with IMPORTING:
        from flylab.codegen import amdgpu
        from flylab.codegen import llvm as llvm_ir
        from flylab.compiler.trace import trace
        from flylab.passes import pipeline

    with entered():
        traced = trace(launcher, arguments, target)
        # The passes get a copy: a value of MLIR that the user kept must not dangle.
        module = traced.module.operation.clone()
        host = pipeline.run(module, target)
        text = llvm_ir.translate(module)
    code = amdgpu.optimise(text, target, opt_level)
    functions: dict[str, TracedFunction] = dict(traced.kernels)
    made = Compiled(
        launcher,
        target,
        opt_level,
        arguments,
        host,
        functions,
        traced.operand_types,
        traced.blocks,
        traced.checks,
        traced.lines,
        traced.launch_lines,
        functools.partial(str, text),
        code,
        functools.partial(_print, traced.module.operation),
    )
    for function in (launcher, *functions.values()):
        function.last = made
    return made


def _print(module: Any) -> str:
    with entered():
        return str(module.get_asm(enable_debug_info=True))
