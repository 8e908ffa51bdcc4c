"""A launch: bind the arguments, find or make the compilation, and run what the launcher launches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flylab import settings
from flylab.compiler.dependencies import Dependencies
from flylab.compiler.jit import Launcher
from flylab.compiler.meaning import meaning
from flylab.compiler.passing import HostArgument
from flylab.compiler.signature import CONSTEXPR, STREAM
from flylab.compiler.users import PLAIN, exact
from flylab.emulator.arrays import Buffer
from flylab.emulator.windows import PRINTED
from flylab.errors import CompileError, FlylabError, TraceError
from flylab.expr.gpu import MAX_GRID
from flylab.passes.host import HostCheck, HostLine, Launch
from flylab.places import of_traceback
from flylab.runtime import emulated
from flylab.runtime.arguments import Bound, bind, pack_number
from flylab.runtime.compiled import Compiled, build
from flylab.runtime.device import Device, current
from flylab.runtime.printing import PrintBuffer
from flylab.shown import Text


@dataclass(frozen=True)
class Run:
    """What a launch did: the device, the compilation, and the device's report of each kernel launched."""

    device: Device
    compiled: Compiled
    reports: tuple[Any, ...]

    @property
    def counters(self) -> Any:
        """What the software device counted, of a launch that was watched with `counters=True`.

        Raises `FlylabError` for another launch, and for one of several kernels: each of `reports` has its own.
        """
        return self._of_one("counters")

    @property
    def log(self) -> Any:
        """The accesses of memory that were kept, of a launch that was watched with `log=`; otherwise as `counters`."""
        return self._of_one("log")

    def _of_one(self, name: str) -> Any:
        if len(self.reports) != 1:
            raise FlylabError(f"this run launched {len(self.reports)} kernels, and each has {name} of its own",
                              hint=f"run.reports[0].{name} is of the first")
        found = getattr(self.reports[0], name)
        if found is None:
            raise FlylabError(f"this launch of '{self.reports[0].kernel}' was not watched for {name}",
                              hint=f"with flylab.watch({name}=True): run = launch(...)")
        return found

    def show(self) -> Text:
        """One line a kernel: what was counted, with the word for where the numbers come from."""
        return Text("\n".join(f"{self.device}: {report}" for report in self.reports))

    __repr__ = show


def call(launcher: Launcher, args: tuple[Any, ...], named: dict[str, Any]) -> Run:
    """Launch: what calling an @flyc.jit function does."""
    device = current()
    bound = bound_to(launcher, args, named)
    return _execute(device, find(launcher, bound, device), bound)


def compile_only(launcher: Launcher, args: tuple[Any, ...], named: dict[str, Any]) -> Compiled:
    """Compile for the current device without running."""
    return find(launcher, bound_to(launcher, args, named), current())


def run(compiled: Compiled, args: tuple[Any, ...], named: dict[str, Any]) -> Run:
    """Run a compilation on arguments of the kinds that it was compiled for.

    Raises `TraceError` where one is of another kind (another shape, format or constant).
    """
    launcher = compiled.launcher
    bound = bound_to(launcher, args, named)
    for mine, given in zip(compiled.arguments, bound, strict=True):
        if mine.kind != given.host.kind or meaning(mine.spec) != meaning(given.host.spec):
            raise TraceError(
                f"'{mine.name}' was compiled for {mine.spec}, and gets {given.host.spec}",
                hint="call the launcher itself, which compiles what its arguments need",
            )
    return _execute(Device(current().kind, compiled.target), compiled, bound)


def bound_to(launcher: Any, args: tuple[Any, ...], named: dict[str, Any]) -> list[Bound]:
    """The arguments of a call, matched with the launcher's parameters."""
    values = launcher.signature.bind(args, named)
    return [bind(p, values[p.name]) for p in launcher.signature.parameters]


def find(launcher: Launcher, bound: list[Bound], device: Device) -> Compiled:
    """The compilation for these argument kinds: one made before, if nothing that it read has changed, or a new one."""
    level = settings.opt_level()
    hosts = [b.host for b in bound]
    key = (device.target.arch, level, tuple(_bucket(h) for h in hosts if h.kind != STREAM))
    constants = {h.name: h.spec for h in hosts if h.kind == CONSTEXPR}
    known: list[tuple[Compiled, Dependencies]] = launcher.specialisations.get(key, [])
    for compiled, dependencies in known:
        if dependencies.fit(constants):
            return compiled
    try:
        made = build(launcher, hosts, device.target, level)
    except FlylabError as error:
        raise error.at(of_traceback(error.__traceback__)) from error.__cause__
    if settings.DUMP_IR.flag():
        _dump(made)
    read = Dependencies.of([launcher, *made.functions.values()], constants)
    launcher.specialisations[key] = [pair for pair in known if not pair[1].changed()] + [(made, read)]
    return made


def _bucket(host: HostArgument) -> Any:
    """A part of the key of compilations. An object's own hash and `__eq__` decide nothing here."""
    if host.kind != CONSTEXPR:
        return host.spec
    return exact(host.spec) if type(host.spec) in PLAIN else type(host.spec)


def _dump(made: Compiled) -> None:
    folder = settings.DUMP_DIR.text()
    try:
        made.dump(Path(folder).expanduser())
    except OSError as error:
        raise FlylabError(
            f"the dump cannot be written: {error} ({settings.DUMP_DIR.names[0]}={folder!r}, "
            f"and {settings.DUMP_IR.names[0]} asks for it)",
            hint=f"set {settings.DUMP_DIR.names[0]} to a folder that can be written, or {settings.DUMP_IR.names[0]}=0",
        ) from None


def _execute(device: Device, compiled: Compiled, bound: list[Bound]) -> Run:
    buffers = buffers_of(bound)
    reports = [execute(compiled, launch, buffers) for launch in launches(compiled, bound, buffers)]
    return Run(device, compiled, tuple(reports))


def buffers_of(bound: list[Bound]) -> list[Buffer]:
    """The memory of all tensors among arguments, as the device sees it."""
    return emulated.buffers_of([b.memory for b in bound if b.memory is not None])


def launches(compiled: Compiled, bound: list[Bound], buffers: list[Buffer]) -> Iterator[Launch]:
    """What a launcher launches, in order; what it checks and prints between is done on the way."""
    pointers = (buffer.pointer for buffer in buffers)
    values = [value for b in bound for value in b.operands(pointers)]
    values.append(0)  # in place of the buffer for what a kernel prints: each launch has its own
    for step in compiled.host.steps(values):
        if isinstance(step, HostCheck):
            if not step.holds:
                raise compiled.checks[""][step.number].failed()
        elif isinstance(step, HostLine):
            words = [word & 0xFFFFFFFF for word in step.words]
            print(compiled.lines[None][step.site].filled(words), end="")
        else:
            yield step


@contextmanager
def placed(compiled: Compiled, launch: Launch) -> Iterator[None]:
    """Errors inside get the user's line of a launch, where they have none."""
    try:
        yield
    except FlylabError as error:
        raise error.at(error.where or compiled.launch_line(launch.kernel)) from error.__cause__


def execute(compiled: Compiled, launch: Launch, buffers: list[Buffer]) -> Any:
    """Runs one launch; the device's report."""
    grid, block = launch.extents[:3], launch.extents[3:]
    buffer = PrintBuffer() if launch.prints else None
    lines = compiled.lines[launch.kernel]
    with placed(compiled, launch):
        kernarg = packed(compiled, launch)
        try:
            report = emulated.launch(compiled, launch.kernel, grid, block, kernarg, buffers, launch.smem, buffer)
        except BaseException as error:
            # What it printed may tell why it failed, or why it did not end.
            if buffer is not None:
                print(buffer.text(lines, grid, block, getattr(error, "workgroup", None)), end="")
            raise
        if buffer is not None:
            print(buffer.text(lines, grid, block), end="")
            buffer.check(launch.kernel)
    return report


def packed(compiled: Compiled, launch: Launch) -> bytes:
    """The kernel-argument bytes of a launch whose extents are possible.

    Raises `TraceError` for extents that are not.
    """
    _check_extents(compiled, launch.kernel, launch.extents[:3], launch.extents[3:])
    return _pack(compiled, launch)


def _check_extents(compiled: Compiled, kernel: str, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
    for axis, extent, threads, most in zip("xyz", grid, block, MAX_GRID, strict=True):
        if not 1 <= extent <= most:
            raise TraceError(
                f"launch of '{kernel}': grid {grid}, extent {axis} must be 1 to {most}",
                hint="check how the launcher computes its grid",
            )
        if extent * threads >= 2**32:
            raise TraceError(
                f"launch of '{kernel}': grid {grid} of blocks {block} has {extent * threads} threads along {axis}, "
                "and the hardware counts them in 32 bits",
                hint="spread the blocks over the axes of the grid, or let a thread do more",
            )
    known = compiled.blocks[kernel]
    if known not in (None, block):
        raise TraceError(
            f"launch of '{kernel}': block {block}, declared known_block_size={known}",
            hint="launch with the declared block, or drop known_block_size",
        )
    threads = math.prod(block)
    if min(block) < 1 or threads > compiled.target.max_workgroup:
        raise TraceError(
            f"launch of '{kernel}': block {block} has {threads} threads",
            hint=f"a block has 1 to {compiled.target.max_workgroup} threads",
        )


def _pack(compiled: Compiled, launch: Launch) -> bytes:
    """The kernel-argument bytes, laid out as the code object's metadata says.

    A kernel that prints gets the address `PRINTED` for the launcher's last argument, which it passes on.
    """
    kernel, operands = launch.kernel, launch.operands
    info = compiled.isa.kernels[kernel]
    slots = [a for a in info.args if not a.hidden]
    kinds = compiled.operand_types[kernel]
    if launch.prints:
        kinds, operands = [*kinds, None], (*operands[:-1], PRINTED)
    if len(slots) != len(operands):
        raise CompileError(f"kernel '{kernel}' takes {len(slots)} arguments, the launcher passes {len(operands)}")
    packed = bytearray(info.kernarg_size)
    for slot, value, dtype in zip(slots, operands, kinds, strict=True):
        data = value.to_bytes(8, "little") if dtype is None else pack_number(value, dtype)
        packed[slot.offset : slot.offset + len(data)] = data
    return bytes(packed)
