"""Handlers as machine code: compiled one by one for this host by LLVM, kept on disk, linked into the process once.

An object is found on disk by all that decides its code: llvmlite's version, the host's processor and its features, the
source that it is made with, and the handler's key. A file that is damaged or cut is compiled again.
"""

from __future__ import annotations

import hashlib
import importlib
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from flylab.background import interruptible
from flylab.emulator.handlers.changes import counting
from flylab.emulator.handlers.kept import Kept, directory, kept
from flylab.errors import ToolchainError
from flylab.locks import fork_safe_lock
from flylab.own_source import digest_of

PROBE = "probe "
"""How the keys begin of what only watches: its writes are no changes of memory."""
_lock = fork_safe_lock()
_addresses: dict[str, int] = {}


def addresses(wanted: Mapping[str, Callable[[str], str]]) -> dict[str, int]:
    """The address of each handler, by key; `wanted` maps a key to what writes its IR, given the function's name.

    Ctrl-C returns at once, while the handlers that are missing are made, and kept, behind it.
    """
    if missing := {key: write for key, write in wanted.items() if key not in _addresses}:
        interruptible(_make, missing).warn()
    return {key: _addresses[key] for key in wanted}


def _make(wanted: Mapping[str, Callable[[str], str]]) -> Kept:
    with _lock:
        host = _host()
        on_disk = kept(directory(), host.salt)
        symbols = {key: host.add(key, write, on_disk) for key, write in wanted.items() if key not in _addresses}
        host.engine.finalize_object()
        for key, symbol in symbols.items():
            _addresses[key] = host.engine.get_function_address(symbol)
    return on_disk


def load() -> None:
    """Import LLVM, which a first launch does otherwise."""
    importlib.import_module("llvmlite.binding")


class _Host:
    """LLVM for this machine."""

    def __init__(self) -> None:
        import llvmlite
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        cpu, features = llvm.get_host_cpu_name(), _features(llvm)
        if "f16c" in features and not (features["f16c"] and features.get("fma")):
            raise ToolchainError("the software device needs a processor with F16C and FMA",
                                 hint="any x86-64 made since 2013, or an arm64, has what it needs")
        flat = features.flatten()
        self.machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=cpu, features=flat, opt=2, reloc="pic", jit=True)
        self.engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), self.machine)
        self.salt = f"{llvmlite.__version__} {llvm.llvm_version_info} {cpu} {flat} {_SOURCE}"

    def add(self, key: str, write: Callable[[str], str], on_disk: Kept) -> str:
        """Adds the object of a handler to the engine, from disk or from the compiler; its symbol."""
        digest = hashlib.sha256(f"{self.salt} {key}".encode()).hexdigest()
        symbol = f"flylab_{digest[:32]}"
        data = on_disk.read(digest)
        if data is None:
            text = write(symbol)
            data = self._compile(text if key.startswith(PROBE) else counting(text))
            on_disk.write(digest, data)
        self.engine.add_object_file(self.llvm.ObjectFileRef.from_data(data))
        return symbol

    def _compile(self, text: str) -> bytes:
        module = self.llvm.parse_assembly(text)
        module.verify()
        # Handlers are short and written as they should run; the whole pipeline would take twice as long for nothing.
        builder = self.llvm.create_pass_builder(self.machine, self.llvm.PipelineTuningOptions(speed_level=1))
        passes = self.llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)
        result: bytes = self.machine.emit_object(module)
        if names := undefined_symbols(result):
            raise ToolchainError(f"LLVM made calls of {', '.join(sorted(names))} for this processor, and a handler of "
                                 "the software device may call nothing")
        return result


def undefined_symbols(data: bytes) -> set[str]:
    """What an ELF object expects from elsewhere, apart from its offset table; nothing for other kinds of object.

    No handler may have any: each one gives its object an entry in MCJIT's offset table, which then lies elsewhere than
    those of the other objects, and MCJIT finds the constants of all objects by the first (llvmlite 0.50).
    Source: System V ABI, "Object files".
    """
    if data[:5] != b"\x7fELF\x02":
        return set()
    at, size, count = *struct.unpack_from("<Q", data, 40), *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, at + n * size) for n in range(count)]
    found = set()
    for _, kind, _, _, start, length, link, *_ in sections:
        for place in range(start, start + length, 24) if kind == 2 else ():
            name, _, _, section = struct.unpack_from("<IBBH", data, place)
            first = sections[link][4] + name
            if name and not section:
                found.add(data[first:data.index(b"\0", first)].decode())
    return found - {"_GLOBAL_OFFSET_TABLE_"}


def _features(llvm: Any) -> Any:
    """What the processor can do beyond its name, as LLVM knows; nothing where it does not."""
    try:
        return llvm.get_host_cpu_features()
    except RuntimeError:
        return llvm.FeatureMap()


@cache
def _host() -> Any:
    return _Host()


# Of the files as they were when this process read them: they may change before the first launch.
_SOURCE = digest_of("emulator")
