"""From LLVM IR to AMD's ISA, with llvmlite's LLVM."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from flylab import installing
from flylab.background import interruptible
from flylab.codegen.assembler import TRIPLE, assemble_text, has_assembly
from flylab.codegen.assembly.strings import files_of
from flylab.codegen.barriers import numbered, settled
from flylab.codegen.hsaco import link
from flylab.codegen.isa import Isa
from flylab.codegen.lines import with_lines
from flylab.codegen.signed_zeros import keep_zero_minus
from flylab.errors import CompileError, ToolchainError
from flylab.locks import cached_property, fork_safe_lock
from flylab.passes.recording import lines_of
from flylab.targets import Target

T = TypeVar("T")
WITHOUT = (
    # VectorCombine ends the process on shuffles of vectors of one element (an assertion in foldShuffleToIdentity),
    # which an access of one element beside a vector gives.
    "-disable-vector-combine",
    # Where threads leave a loop in different rounds, a value that all threads share inside of it differs behind it. The
    # peephole pass looks through the copy that keeps each thread's own, and SIFoldOperands then reads the last round's.
    "-disable-adv-copy-opt",
)
"""Passes of LLVM 22 that are switched off, and why."""
UNKNOWN_PLACES = "-use-unknown-locations="
# One compile at a time, which a fork waits for: its child would find LLVM's own lock held for ever.
_lock = fork_safe_lock()


@functools.cache
def _llvm() -> Any:
    try:
        import llvmlite.binding as llvm
    except ImportError as error:
        raise ToolchainError(f"llvmlite cannot be imported ({error})",
                             hint=installing.needed(*installing.COMPILER)) from error
    for option in WITHOUT:
        llvm.set_option("flylab", option)
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


class Code(Protocol):
    """The machine code of a module in its forms, each made when it is asked for."""

    @property
    def assembly(self) -> str:
        """The assembly text."""

    @property
    def object_code(self) -> bytes:
        """The relocatable ELF object."""

    @property
    def written_down(self) -> Code:
        """The same for an attached GPU: a check that fails writes down which, and does not trap."""

    def linked(self, debug_info: bool) -> bytes:
        """The loadable code object, with the lines of the source or without: see `hsaco.link`."""


@dataclass(frozen=True)
class Optimised:
    """LLVM IR after LLVM's optimisation, as bitcode; the code of it is generated when it is asked for."""

    bitcode: bytes
    target: Target
    opt_level: int
    has_assembly: bool = False
    """Whether the user's own assembly is in it, which LLVM here can print, and not assemble."""
    barriers: tuple[str, ...] = ()
    """The places of its barriers, by their numbers."""
    _made: dict[Any, Any] = field(default_factory=dict, compare=False, repr=False)

    def _once(self, make: Callable[..., T], *arguments: Any) -> T:
        """What LLVM makes of it, by the first of the threads that ask at once; the others have waited for the lock."""
        key = make.__name__, *arguments
        if key not in self._made:
            self._made[key] = make(*arguments)
        found: T = self._made[key]
        return found

    def _emit(self, kind: str) -> Any:
        # Emitting changes the module, so each starts from the bitcode.
        module, machine = _llvm().parse_bitcode(self.bitcode), _machine(self.target, self.opt_level)
        machine.set_asm_verbosity(bool(self.barriers))
        return getattr(machine, f"emit_{kind}")(module)

    @cached_property
    def assembly(self) -> str:
        """The assembly text; each instruction has a line of the source: see `codegen.lines`."""
        text = str(interruptible(_alone, self._once, self._emit, "assembly"))
        return with_lines(settled(text, self.barriers) if self.barriers else text, self.target)

    @cached_property
    def with_unknown_places(self) -> str:
        """The same, but with a `.loc` of line 0 for each instruction for which LLVM knows no place."""
        text = str(interruptible(_alone, self._once, self._emit_unknown))
        return settled(text, self.barriers) if self.barriers else text

    def _emit_unknown(self) -> Any:
        # LLVM's options are the process's, and so is the lock.
        _llvm().set_option("flylab", UNKNOWN_PLACES + "Enable")
        try:
            return self._emit("assembly")
        finally:
            _llvm().set_option("flylab", UNKNOWN_PLACES + "Default")

    @cached_property
    def object_code(self) -> bytes:
        """The relocatable ELF object."""
        if self.has_assembly:
            return assemble_text(self.assembly, self.target)
        return bytes(interruptible(_alone, self._once, self._emit, "object"))

    @cached_property
    def written_down(self) -> Optimised:
        """The same with checks that write down what failed: see `codegen.failures`."""
        from flylab.codegen.failures import written_down

        return written_down(self)

    def linked(self, debug_info: bool) -> bytes:
        """The loadable code object, with the lines of the source or without: see `hsaco.link`."""
        return link(self.object_code, debug_info)


def _machine(target: Target, opt_level: int) -> Any:
    return _llvm().Target.from_triple(TRIPLE).create_target_machine(cpu=target.arch, opt=opt_level)


def optimise(llvm_ir: str, target: Target, opt_level: int = 2) -> Optimised:
    """Optimise LLVM IR for a chip, at `opt_level` (0 to 3), which holds for the code generation too.

    Ctrl-C returns at once, and LLVM goes on behind it. Raises `CompileError` where LLVM refuses the IR.
    """
    found: Optimised = interruptible(_alone, _optimise, llvm_ir, target, opt_level)
    return found


def _alone(function: Callable[..., T], *arguments: Any) -> T:
    """Calls what uses LLVM under the lock; LLVM's objects that it made are gone when the lock is free."""
    with _lock:
        return function(*arguments)


def _optimise(llvm_ir: str, target: Target, opt_level: int) -> Optimised:
    llvm = _llvm()
    llvm_ir, barriers = numbered(llvm_ir)
    try:
        module = llvm.parse_assembly(llvm_ir)
    except RuntimeError as error:
        raise CompileError(
            f"LLVM refuses the IR: {error}", hint="this is a fault of flylab: please report the kernel"
        ) from None
    module.triple = TRIPLE
    machine = _machine(target, opt_level)
    # MLIR gives none, and with LLVM's own every pointer has 64 bits: one into LDS has 32, a buffer's descriptor 128.
    module.data_layout = str(machine.target_data)
    builder = llvm.create_pass_builder(machine, llvm.PipelineTuningOptions(speed_level=opt_level))
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    _free(passes)
    found = str(module)
    kept = keep_zero_minus(found)
    if kept != found:
        module = llvm.parse_assembly(kept)
    return Optimised(bytes(module.as_bitcode()), target, opt_level, has_assembly(kept), barriers)


def changed(code: Optimised, change: Callable[[str], str]) -> Optimised:
    """The code after a change of its module's text, whose functions that are always to be inlined are then inlined.

    Raises what `change` raises, and `CompileError` where LLVM refuses what it gives.
    """
    found: Optimised = interruptible(_alone, _changed, code, change)
    return found


def _changed(code: Optimised, change: Callable[[str], str]) -> Optimised:
    llvm = _llvm()
    try:
        module = llvm.parse_assembly(change(str(llvm.parse_bitcode(code.bitcode))))
    except RuntimeError as error:
        raise CompileError(
            f"LLVM refuses a changed module: {error}", hint="this is a fault of flylab: please report the kernel"
        ) from None
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    machine = _machine(code.target, code.opt_level)
    passes.run(module, llvm.create_pass_builder(machine, llvm.PipelineTuningOptions()))
    _free(passes)
    return Optimised(bytes(module.as_bitcode()), code.target, code.opt_level, code.has_assembly, code.barriers)


def _free(passes: Any) -> None:
    """Frees a pass manager, some 60 KB, which llvmlite 0.50 does not: one base's empty `_dispose` hides the other's."""
    _llvm().newpassmanagers.NewPassManager._dispose(passes)
    passes.detach()


def assemble(llvm_ir: str, target: Target, opt_level: int = 2) -> Isa:
    """The ISA of LLVM IR for a chip, as data: see `optimise`."""
    return Isa.parse(optimise(llvm_ir, target, opt_level).assembly)


def readable(text: str, file: str) -> tuple[str, tuple[int | None, ...]]:
    """Assembly text without debug sections and directives, and for each line the line in the Python file `file`.

    It can still be assembled: a size goes with the label of the end that it is counted from.
    """
    files: dict[int, str] = {}
    kept: list[str] = []
    lines: list[int | None] = []
    current: int | None = None
    in_debug = False
    for line in lines_of(text):
        words = line.split()
        first = words[0] if words else ""
        if first == ".section":
            in_debug = ".debug_" in line or ".note.GNU" in line or "gpr_maximums" in line
        elif first in (".text", ".amdgpu_metadata"):
            in_debug = False
        if first == ".file":
            files.update(files_of(line))
        if first == ".loc":
            current = int(words[2]) if files.get(int(words[1])) == file and words[2] != "0" else None
        if (
            in_debug
            or first in (".file", ".loc", ".p2alignl", ".fill")
            or first.startswith((".Ltmp", ".cfi", ".Lfunc"))
            or first == ".size" and ".Lfunc" in line
        ):
            continue
        if first == "s_endpgm":
            kept.append(line)
            lines.append(current)
            current = None
            continue
        kept.append(line)
        lines.append(current if first and not first.startswith((".", ";")) and not first.endswith(":") else None)
    return "\n".join(kept), tuple(lines)
