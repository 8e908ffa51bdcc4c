"""Code objects on devices: loaded when a kernel of them is first launched there, unloaded after their compilation."""

from __future__ import annotations

import os
import weakref
from contextlib import suppress
from typing import Any

from flylab import settings
from flylab.codegen.failures import VARIABLE
from flylab.errors import FlylabError
from flylab.locks import fork_safe_lock
from flylab.runtime.hip import aside, devices, library
from flylab.runtime.hip.launching import Function
from flylab.runtime.hip.memory import address_of

_loading = fork_safe_lock()
_loaded: dict[tuple[int, int], Module] = {}
_modules: weakref.WeakSet[Module] = weakref.WeakSet()


class Module:
    """A compilation's code object on one device, and the kernels in it.

    Where a kernel checks something, the code object is one whose checks write down what failed, and do not trap.
    """

    def __init__(self, compiled: Any, ordinal: int):
        self.ordinal, self.is_loaded = ordinal, True
        self.functions: dict[str, Function] = {}
        checking = {name for name in compiled.isa.kernels if compiled.checks.get(name)}
        self.code = compiled.code.written_down if checking else compiled.code
        self.image = self.code.linked(settings.DEBUG_INFO.value()) if checking else compiled.hsaco
        doing = f"loading the code object of '{compiled.launcher.name}' for {compiled.target} on hip:{ordinal}"
        with devices.on(ordinal):
            (self._module,) = library.call("hipModuleLoadData", self.image, doing=doing)
            try:
                record = self._variable(VARIABLE, doing) if checking else 0
                for name, kernel in compiled.isa.kernels.items():
                    (symbol,) = library.call("hipModuleGetFunction", self._module, name.encode(), doing=doing)
                    failed = record if name in checking else 0
                    self.functions[name] = Function(name, symbol, kernel.kernarg_size, ordinal, failed)
            except BaseException:
                self.unload()
                raise
        _modules.add(self)

    def _variable(self, name: str, doing: str) -> int:
        """The address of a variable of the code object on the device."""
        address, _ = library.call("hipModuleGetGlobal", self._module, name.encode(), doing=doing)
        return address_of(address)

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
                aside.give_back()
                found = Module(compiled, ordinal)
                _loaded[key] = found
                weakref.finalize(compiled, _unload, key, weakref.ref(found)).atexit = False
    return found


def _unload(key: tuple[int, int], module: weakref.ref[Module]) -> None:
    """Put a module aside to be unloaded, if it is still the one of its compilation."""
    if _loaded.get(key) is module() is not None:
        aside.put(_loaded.pop(key).unload)


def loaded() -> list[Module]:
    """The modules that are on devices now, also those that wait there for their last kernels to end."""
    return list(_modules)


def forget() -> None:
    """Unload every module; the next launch loads its own again."""
    aside.give_back()
    while _loaded:
        _loaded.popitem()[1].unload()


def _in_child() -> None:
    """A forked process has none of them."""
    for module in _modules:
        module.is_loaded = False
    _loaded.clear()


os.register_at_fork(after_in_child=_in_child)


def function_of(compiled: Any, kernel: str, ordinal: int) -> Function:
    """A kernel of a compilation, by its symbol, ready to be launched on a device. Raises as `module_of` does."""
    return module_of(compiled, ordinal).functions[kernel]
