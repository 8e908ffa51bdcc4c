"""A program for the software device: kernels decoded on first use, and launched over workgroups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from flylab.codegen.isa import Isa, IsaKernel
from flylab.emulator.arguments import fill_hidden, pack, shown
from flylab.emulator.arrays import Buffer
from flylab.emulator.decoding.decode import decode
from flylab.emulator.decoding.registers import Registers
from flylab.emulator.decoding.table import Row
from flylab.emulator.execution import core
from flylab.emulator.execution.geometry import Geometry
from flylab.emulator.execution.opening import Opening, is_straight
from flylab.emulator.execution.run import Report, Run, finished
from flylab.emulator.execution.search import check_text
from flylab.emulator.handlers import jit
from flylab.emulator.instructions.control import past_end
from flylab.emulator.linking import END_OF_FUNCTION, Image
from flylab.emulator.numbers.float_mode import initial_mode
from flylab.emulator.probes.findings import find_text
from flylab.emulator.probes.probe import Probes, attach
from flylab.emulator.watch import AUTO, CHECKS, UNWATCHED, Watch, instrument, watched
from flylab.errors import ArgumentError, Check, DeviceError
from flylab.locks import IMPORTING, cached_property
from flylab.shown import a_kind

if TYPE_CHECKING:
    from flylab.emulator.debugger.debugger import Debugger


MOST_SHAPES = 64
"""Shapes of launches of which a kernel keeps what they begin with."""


@dataclass(frozen=True)
class Loaded:
    """A kernel ready to run: its records with the handlers' addresses in them, and behind them its table of places."""

    kernel: IsaKernel
    records: bytes
    registers: Registers
    mode: int
    checks: Sequence[Check] = ()
    probes: Probes | None = None
    watch: Watch = UNWATCHED
    _openings: dict[Geometry, Opening] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def straight(self) -> bool:
        """Whether a wave executes each instruction once at most."""
        return is_straight(self.kernel)

    def opening(self, geometry: Geometry) -> Opening:
        """What launches of a shape begin with."""
        found = self._openings.get(geometry)
        if found is None:
            if len(self._openings) >= MOST_SHAPES:
                self._openings.clear()
            found = self._openings[geometry] = Opening(self.kernel, self.mode, geometry, self.straight)
        return found


@cache
def device_modules() -> tuple[ModuleType, ...]:
    """The modules of the operation table: each has ROWS, DECODERS (for what is no row), or both."""
    folder = Path(__file__).parent / "instructions"
    with IMPORTING:
        names = [file.stem for file in sorted(folder.glob("[!_]*.py"))]
        return tuple(import_module(f"flylab.emulator.instructions.{name}") for name in names)


@cache
def device_tables() -> tuple[dict[str, Row], dict[str, Any]]:
    """The whole operation table, and the decoders of the instructions that are no rows of it."""
    tables: tuple[dict[str, Row], dict[str, Any]] = ({}, {})
    for module in device_modules():
        for table, name in zip(tables, ("ROWS", "DECODERS"), strict=True):
            found = getattr(module, name, {})
            if twice := found.keys() & (tables[0].keys() | tables[1].keys()):
                raise ValueError(f"{module.__name__} has what another module has: {sorted(twice)}")
            table |= found
    return tables


def load() -> None:
    """Import what a launch imports by itself otherwise: the operation table, the checks of small launches, LLVM."""
    device_tables()
    for module in filter(None, CHECKS.values()):
        instrument(module)
    jit.load()


class Program:
    """The kernels of an `Isa`, to be launched on the software device.

    Every number a launch reports is emulated: results and counts, and no times.
    """

    def __init__(self, isa: Isa, checks: Mapping[str, Sequence[Check]] | None = None):
        if not isinstance(isa, Isa):
            raise DeviceError(f"a program is made of an Isa, and {a_kind(isa)} was given",
                              hint="Program.from_assembly(text) reads assembly")
        self.isa = isa
        self.checks = checks or {}
        """Of each kernel, the checks that its traps stand for, by their numbers."""
        self._loaded: dict[tuple[str, Watch], Loaded] = {}
        self._geometries: dict[Any, Geometry] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.isa, self.checks)

    def __repr__(self) -> str:
        return f"<Program for {self.isa.target.arch}: {', '.join(self.isa.kernels)}>"

    @cached_property
    def _image(self) -> Image:
        return Image(self.isa)

    def copy(self) -> Program:
        """A program with data of its own, which holds what this one's does now."""
        found = Program(self.isa, self.checks)
        found._image.take_data(self._image)
        return found

    @classmethod
    def from_assembly(cls, text: str, chip: str | None = None) -> Program:
        """A program from assembly text for gfx942 or gfx950, with a descriptor (`.amdhsa_kernel`) for each kernel.

        The text may be what a compiler prints or what people write: with macros, expressions, symbolic registers, data,
        and functions that kernels call. `chip` is the chip where the text does not name it.
        Raises `CompileError`, with the line, for what cannot be read, for text that holds no kernel, and for a `chip`
        that is not the text's.
        """
        return cls(Isa.parse(text, chip))

    def load(self, name: str, watch: Watch = UNWATCHED) -> Loaded:
        """Decodes a kernel and makes its handlers, with probes for what is watched, once.

        Raises `UnknownInstruction` for the first instruction that the device cannot execute.
        """
        if (name, watch) not in self._loaded:
            code = self._image.code(self._kernel(name))
            rows, others = device_tables()
            coded = decode(code, rows, others | {END_OF_FUNCTION: past_end})
            addresses = jit.addresses({c.key: c.write for c in coded})
            entries, registers, probes = [addresses[c.key] for c in coded], Registers(code.kernel), None
            if watch.instruments:
                probes = attach(code, coded, entries, registers, watch.instruments)
                entries = probes.entries
            records = b"".join(c.record(entry) for c, entry in zip(coded, entries, strict=True))
            self._loaded[name, watch] = Loaded(code.kernel, records + code.table, registers, initial_mode(code.kernel),
                                               self.checks.get(name, ()), probes, watch)
        return self._loaded[name, watch]

    def launch(self, *, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any],
               kernel: str | None = None, shared: int = 0, check: Any = AUTO, counters: bool = False,
               log: int | bool = False) -> Report:
        """Runs a kernel on numpy arrays, CPU tensors and numbers, which are changed in place.

        >>> import numpy
        >>> program = Program.from_assembly('''
        ...     .amdgcn_target "amdgcn-amd-amdhsa--gfx942"
        ...     twice:
        ...       s_load_dwordx2 s[2:3], s[0:1], 0x0
        ...       v_lshlrev_b32 v1, 2, v0
        ...       s_waitcnt lgkmcnt(0)
        ...       global_load_dword v2, v1, s[2:3]
        ...       s_waitcnt vmcnt(0)
        ...       v_add_u32 v2, v2, v2
        ...       global_store_dword v1, v2, s[2:3]
        ...       s_endpgm
        ...     .amdhsa_kernel twice
        ...       .amdhsa_user_sgpr_kernarg_segment_ptr 1
        ...       .amdhsa_kernarg_size 8
        ...     .end_amdhsa_kernel''')
        >>> numbers = numpy.arange(4, dtype="int32")
        >>> print(program.launch(grid=1, block=4, args=[numbers]), numbers)
        twice: 1 workgroup, 1 wave, 8 instructions (emulated) [0 2 4 6]

        Arguments are laid out by the kernel's metadata. Numbers take their type from the value, not from the kernel:
        1.0 for a float, 1 for an integer, numpy's scalars (ml_dtypes' too) and bytes as they are; a struct is bytes.
        Without metadata they lie one after the other, and each must have a size of its own. A pointer to LDS takes a
        number of bytes; one alone may be left out, and has those of `shared`.
        `grid` is in workgroups and `block` in threads, each a number or up to three; `shared` is dynamic LDS in bytes.
        A kernel sees each array at an address of the device, far from the others (`windows.py`): a pointer that it
        writes out is such an address, and none of the host's.
        `check` is what is checked on the way: "auto" (all for small launches), "all", None, or names of checks;
        `counters` and `log` ask for `report.counters` and `report.log`.
        Raises `ArgumentError` for arguments that do not fit, `DeviceError` and its kin for what goes wrong on the way.
        """
        chosen = self._kernel(kernel)
        segment, buffers, shared = pack(chosen, args, shared)
        return self.launch_packed(chosen.name, grid, block, segment, buffers, shared, check=check, counters=counters,
                                  log=log)

    def launch_packed(self, kernel: str, grid: int | Sequence[int], block: int | Sequence[int], kernarg: bytes,
                      buffers: Sequence[Buffer], shared: int = 0, own: Sequence[Buffer] = (), *, check: Any = AUTO,
                      counters: bool = False, log: int | bool = False) -> Report:
        """Runs a kernel on arguments that are packed already; `buffers` are all the user's memory it may touch.

        `own` is memory that the user did not pass, which errors name only where an access is next to it. The
        kernel-argument segment may leave out the hidden arguments, which are filled here.
        """
        geometry = self._geometry(self._kernel(kernel), grid, block, shared)
        watch = watched(check, counters, log, geometry.threads * geometry.workgroups)
        return finished(self.prepare(kernel, geometry, kernarg, buffers, own, watch))

    def _geometry(self, kernel: IsaKernel, grid: int | Sequence[int], block: int | Sequence[int],
                  shared: int) -> Geometry:
        """The shape of a launch; one that was checked before is known."""
        if type(grid) is not tuple or type(block) is not tuple or {*map(type, (*grid, *block, shared))} != {int}:
            return Geometry.of(kernel, grid, block, shared)
        key = kernel.name, grid, block, shared
        found = self._geometries.get(key)
        if found is None:
            if len(self._geometries) >= MOST_SHAPES:
                self._geometries.clear()
            found = self._geometries[key] = Geometry.of(kernel, grid, block, shared)
        return found

    def prepare(self, kernel: str, geometry: Geometry, kernarg: bytes, buffers: Sequence[Buffer],
                own: Sequence[Buffer] = (), watch: Watch = UNWATCHED, threads: int = 0) -> Run:
        """A launch of packed arguments that has not begun, with so many threads, or as many as there are."""
        chosen = self._kernel(kernel)
        explicit = max((a.offset + a.size for a in chosen.args if not a.hidden), default=0)
        if len(kernarg) < explicit:
            raise DeviceError(f"kernel '{kernel}' takes {explicit} bytes of arguments, and {len(kernarg)} were packed")
        segment = bytearray(kernarg.ljust(chosen.kernarg_size, b"\0"))
        fill_hidden(chosen, segment, geometry.grid, geometry.block, geometry.shared)
        return Run(self.load(kernel, watch), geometry, bytes(segment), buffers, [*own, *self._image.buffers()], threads,
                   watch)

    def debug(self, *, grid: int | Sequence[int], block: int | Sequence[int], args: Sequence[Any],
              kernel: str | None = None, shared: int = 0, at_block: int | Sequence[int] = 0, check: Any = AUTO,
              room: int = 32 << 20) -> Debugger:
        """A debugger at the start of a workgroup of a launch, whose arguments are those of `launch`.

        `at_block` is the workgroup, its number or (x, y, z); those before it run first. The arrays are copied, and stay
        as they are. `room` is what snapshots may take, in bytes, beside the first. Raises what `launch` raises, also
        where a workgroup before goes wrong, and `DebugError` for a workgroup that is not there.
        """
        from flylab.emulator.debugger.begin import debug

        chosen = self._kernel(kernel)
        return debug(self, chosen, grid, block, args, shared, at_block, check, room)

    def _kernel(self, name: str | None) -> IsaKernel:
        kernels = self.isa.kernels
        if name is None:
            if len(kernels) != 1:
                raise DeviceError(f"this program holds {len(kernels)} kernels: {', '.join(kernels)}",
                                  hint="name one with kernel=")
            return next(iter(kernels.values()))
        if not isinstance(name, str):
            raise ArgumentError(f"kernel is {shown(name)}, and a name is needed", hint=f"it holds {', '.join(kernels)}")
        if name not in kernels:
            raise DeviceError(f"this program has no kernel '{name}'", hint=f"it holds {', '.join(kernels)}")
        return kernels[name]


@cache
def core_addresses() -> dict[str, int]:
    """The native core: the worker's loop, the next workgroup, and the search of buffers."""
    return jit.addresses({"core run": core.run_text, "core take": core.take_text, "core check": check_text,
                          "core find": find_text})
