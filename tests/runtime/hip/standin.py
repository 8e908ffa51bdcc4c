"""The stand-in for AMD's HIP library (`standin.c`) as tests use it.

    with standing_in(MI300X) as hip:            # GPUs that HIP shows; none: standing_in()
        launch(a, b)                             # runs on the software device, through AMD's bindings
        hip.calls("hipModuleLaunchKernel")       # what was called, in order

The bindings open the library once in a process, so what needs none, or another one, runs in a process of its own:
`in_a_process` does. A benchmark sets `hip.idle = True`: a launch then notes its time (`hip.entered`) and does nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flylab
from flylab.codegen.isa import Isa
from flylab.emulator import Program
from flylab.emulator.arrays import Buffer
from flylab.errors import FlylabError
from flylab.runtime.hip import devices, launching, library, modules

SOURCE = Path(__file__).with_name("standin.c")
ROOT = SOURCE.parents[3]
GIB = 1 << 30
ILLEGAL_ADDRESS, LAUNCH_FAILURE = 700, 719


@dataclass(frozen=True)
class Gpu:
    """A GPU that the stand-in shows."""

    arch: str
    name: str
    memory: int = 192 * GIB
    lds: int = 64 * 1024
    pageable: bool = False


MI300X = Gpu("gfx942:sramecc+:xnack-", "AMD Instinct MI300X")
MI300A = Gpu("gfx942:sramecc+:xnack+", "AMD Instinct MI300A", 128 * GIB, pageable=True)
MI350X = Gpu("gfx950:sramecc+:xnack-", "AMD Instinct MI350X", 288 * GIB, 160 * 1024)
RADEON = Gpu("gfx1100", "AMD Radeon RX 7900 XTX", 24 * GIB)


@cache
def build() -> Path:
    """A folder like ROCm's with the stand-in in it, built where it is not there yet."""
    text = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]
    root = Path(tempfile.gettempdir()) / f"flylab-standin-{os.getuid()}-{text}"
    target = root / "lib" / library.NAME
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        made = target.with_name(f"{os.getpid()}.so")
        subprocess.run([sys.executable, "-m", "ziglang", "cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o",
                        made, SOURCE], check=True, capture_output=True, text=True)
        made.replace(target)  # whole or not at all, also where several processes build it
    return root


_CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_size_t,
                             ctypes.POINTER(ctypes.c_uint * 6), ctypes.c_uint, ctypes.c_void_p, ctypes.c_size_t,
                             ctypes.c_int)


class StandIn:
    """The stand-in's script and what it wrote down."""

    def __init__(self, path: Path):
        self.library = ctypes.CDLL(str(path))
        self.library.standin_log.restype = ctypes.c_char_p
        self.library.standin_used.restype = ctypes.c_size_t
        self.errors: list[BaseException] = []
        """What the software device said of launches that failed."""
        self.reports: list[Any] = []
        """The software device's reports of launches."""
        self._programs: dict[modules.Module, Program] = {}
        self._callback = _CALLBACK(self._run)

    def show(self, *gpus: Gpu, error: int = 0) -> None:
        """From now on these are the GPUs; everything before is forgotten. `error` is what looking for them returns."""
        self.library.standin_reset(len(gpus), error)
        self.pageable = any(gpu.pageable for gpu in gpus)
        for n, gpu in enumerate(gpus):
            self.library.standin_device(n, gpu.arch.encode(), gpu.name.encode(), ctypes.c_size_t(gpu.memory), gpu.lds,
                                        gpu.pageable)
        self.library.standin_on_launch(self._callback)

    def _variable(self, name: str, kind: Any) -> Any:
        return kind.in_dll(self.library, name)

    @property
    def entered(self) -> int:
        """When `hipModuleLaunchKernel` was last entered, in ns of `time.perf_counter_ns`."""
        return int(self._variable("entered", ctypes.c_int64).value)

    @property
    def launches(self) -> int:
        """How often `hipModuleLaunchKernel` was entered, idle or not."""
        return int(self._variable("standin_launches", ctypes.c_uint64).value)

    @property
    def idle(self) -> bool:
        """Whether a launch only notes its time."""
        return bool(self._variable("standin_idle", ctypes.c_int).value)

    @idle.setter
    def idle(self, yes: bool) -> None:
        self._variable("standin_idle", ctypes.c_int).value = yes

    def kernels_take(self, ms: float) -> None:
        """The time of the device's clock that each kernel takes."""
        self._variable("standin_launch_ms", ctypes.c_double).value = ms

    def fail(self, function: str, code: int, after: int = 0) -> None:
        """The call of a function after the next `after` ones returns this error."""
        self.library.standin_fail(function.encode(), code, after)

    def calls(self, *functions: str) -> list[str]:
        """The calls in order, those of these functions alone where some are named: `hipMalloc 1024`."""
        lines = [line.strip() for line in self.library.standin_log().decode().splitlines()]
        return [line for line in lines if not functions or line.split()[0] in functions]

    def forget_calls(self) -> None:
        """Begin a new list of calls."""
        self.library.standin_forget_log()

    def used(self, device: int = 0) -> int:
        """Bytes of a device's memory that are taken."""
        return int(self.library.standin_used(device))

    def buffers(self, device: int) -> list[Buffer]:
        """All memory of a device that is taken, as the software device sees it: each at its own address."""
        if self.pageable:
            return _all_memory()
        start, size, found = ctypes.c_void_p(), ctypes.c_size_t(), list[Buffer]()
        while self.library.standin_memory(device, len(found), ctypes.byref(start), ctypes.byref(size)):
            found.append(Buffer(f"allocation {len(found)}", start.value or 0, size.value))
        return found

    def _program(self, image: int, size: int) -> Program:
        """The program of a code object: of the code that the module with these very bytes was made of."""
        loaded = ctypes.string_at(image, size)
        module = next(module for module in modules.loaded() if module.image == loaded)
        if module not in self._programs:
            self._programs[module] = Program(Isa.parse(module.code.assembly))
        return self._programs[module]

    def _variables(self, image: int, program: Program) -> list[tuple[int, int, int]]:
        """The variables of a module that somebody asked for: where the program has each, and where the stand-in."""
        theirs = {buffer.name: buffer.address for buffer in program._image.buffers()}
        name, start, size, found = ctypes.c_char_p(), ctypes.c_void_p(), ctypes.c_size_t(), list[tuple[int, int, int]]()
        while self.library.standin_variable(ctypes.c_void_p(image), len(found), ctypes.byref(name), ctypes.byref(start),
                                            ctypes.byref(size)):
            found.append((theirs[(name.value or b"").decode()], start.value or 0, size.value))
        return found

    def _run(self, name: bytes, image: int, size: int, extents: Any, smem: int, kernarg: int, nbytes: int,
             device: int) -> int:
        """Run a launch on the software device; what the GPU would report of it."""
        try:
            program = self._program(image, size)
            grid, block = tuple(extents.contents[:3]), tuple(extents.contents[3:])
            variables = self._variables(image, program)
            for there, here, length in variables:
                ctypes.memmove(there, here, length)
            self.reports.append(program.launch_packed(
                name.decode(), grid, block, ctypes.string_at(kernarg, nbytes), self.buffers(device), smem,
                check=None if self.pageable else "bounds"))
            for there, here, length in variables:
                ctypes.memmove(here, there, length)
        except BaseException as error:
            self.errors.append(error)
            return ILLEGAL_ADDRESS if isinstance(error, FlylabError) else LAUNCH_FAILURE
        return 0


def _all_memory() -> list[Buffer]:
    """All memory of this process that can be read and written."""
    with open("/proc/self/maps", encoding="utf-8") as maps:
        lines = [line.split() for line in maps]
    spans = [[int(end, 16) for end in words[0].split("-")] for words in lines if words[1].startswith("rw")]
    return [Buffer("memory of the host", start, end - start) for start, end in spans]


def forget() -> None:
    """What flylab knows of the devices of before."""
    modules.forget()
    launching.forget()
    devices.attached.cache_clear()  # last: what is forgotten before asks for the devices
    devices.look.cache_clear()


@contextmanager
def standing_in(*gpus: Gpu, error: int = 0) -> Iterator[StandIn]:
    """The stand-in as this machine's HIP library, with these GPUs. Afterwards flylab finds none again."""
    root = build()
    path = root / "lib" / library.NAME
    standin = StandIn(path)
    forget()
    standin.show(*gpus, error=error)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROCM_PATH", str(root))
        patch.setattr(library, "find", lambda: path)  # not the machine's own, where torch or ROCm brings one
        try:
            yield standin
        finally:
            forget()
            standin.show()


def in_a_process(code: str, **environment: str) -> str:
    """What a Python program prints, in a process of its own; it may import from `tests.runtime.hip`."""
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(Path(flylab.__file__).parents[1])]),
                 **environment}
    done = subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_the_device(array: np.ndarray) -> tuple[int, np.ndarray]:
    """A copy of an array in memory of the current device of the stand-in: its address, and the array that shows it."""
    (pointer,) = library.call("hipMalloc", array.nbytes, doing="a test")
    address = pointer.as_c_void_p().value
    shown = np.ctypeslib.as_array((ctypes.c_byte * array.nbytes).from_address(address)).view(array.dtype)
    shown[:] = array.ravel()
    return address, shown.reshape(array.shape)
