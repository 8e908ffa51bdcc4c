"""Code objects on devices: loaded when a kernel of them is first launched there, unloaded with their compilation."""

from __future__ import annotations

import threading
import weakref
from contextlib import suppress
from typing import Any

from flylab.errors import FlylabError
from flylab.runtime.hip import devices, library
from flylab.runtime.hip.launching import Function

_loading = threading.Lock()
_loaded: dict[tuple[int, int], Module] = {}
_compilations: dict[int, weakref.ref[Any]] = {}


class Module:
    """A compilation's code object on one device, and the kernels in it."""

    def __init__(self, compiled: Any, ordinal: int):
        self.ordinal, self.is_loaded = ordinal, True
        self.functions: dict[str, Function] = {}
        image = compiled.hsaco
        doing = f"loading the code object of '{compiled.launcher.name}' for {compiled.target} on hip:{ordinal}"
        with devices.on(ordinal):
            (self._module,) = library.call("hipModuleLoadData", image, doing=doing)
            for name, kernel in compiled.isa.kernels.items():
                (symbol,) = library.call("hipModuleGetFunction", self._module, name.encode(), doing=doing)
                self.functions[name] = Function(name, symbol, kernel.kernarg_size, ordinal)

    def unload(self) -> None:
        """Gives the code object's memory back, once what runs of it has ended."""
        self.is_loaded = False
        with suppress(FlylabError), devices.on(self.ordinal):
            library.call("hipDeviceSynchronize", doing="waiting for kernels")
            library.call("hipModuleUnload", self._module, doing="unloading a code object")


def module_of(compiled: Any, ordinal: int) -> Module:
    """The module of a compilation on a device; loaded at the first call.

    Raises `DeviceError` where HIP refuses it, and `ToolchainError` where no linker is found.
    """
    key = id(compiled), ordinal
    found = _loaded.get(key)
    if found is None:
        with _loading:
            found = _loaded.get(key)
            if found is None:
                found = Module(compiled, ordinal)
                if id(compiled) not in _compilations:
                    weakref.finalize(compiled, _unload, id(compiled)).atexit = False
                _compilations[id(compiled)] = weakref.ref(compiled)
                _loaded[key] = found
    return found


def _unload(identity: int) -> None:
    _compilations.pop(identity, None)
    for key in [key for key in _loaded if key[0] == identity]:
        _loaded.pop(key).unload()


def loaded() -> list[Any]:
    """The compilations that have a module on some device."""
    return [compiled for each in list(_compilations.values()) if (compiled := each()) is not None]


def forget() -> None:
    """Unload every module; the next launch loads its own again."""
    for identity in list(_compilations):
        _unload(identity)


def function_of(compiled: Any, kernel: str, ordinal: int) -> Function:
    """A kernel of a compilation, by its symbol, ready to be launched on a device. Raises as `module_of` does."""
    return module_of(compiled, ordinal).functions[kernel]
