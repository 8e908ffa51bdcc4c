"""AMD's HIP library: where it is, opening it through AMD's bindings (`rocm-bindings-hip`), and its errors in sentences.

Nothing is opened, and nothing of `rocm` imported, until the first call.
"""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from flylab import installing, settings
from flylab.errors import DeviceError, ToolchainError
from flylab.locks import fork_safe_lock
from flylab.runtime.hip.sentences import sentence

NAME = "libamdhip64.so"
# Where the system's loader looks, for a library that is in no ROCm folder.
SYSTEM = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/lib", "/usr/local/lib")

_opening = fork_safe_lock()
_lost_by_fork = False
# What the bindings raise where an older library lacks a function, and where they do not know a newer one's status.
UNKNOWN = (RuntimeError, ValueError, AttributeError)


def find() -> Path | None:
    """The HIP library that a launch would use, found by looking at files alone; None where there is none.

    The one that this process has loaded comes first, then the one inside of torch: two HIP libraries in a process know
    nothing of each other's streams. Then those of ROCm's Python packages, of ROCM_PATH, /opt/rocm and the system.
    """
    return _loaded() or _of_torch() or _of_bindings() or _of_system()


def bindings_installed() -> bool:
    """Whether AMD's bindings are there (they are not imported for that)."""
    try:
        return find_spec("rocm.bindings") is not None
    except ModuleNotFoundError:
        return False


def _loaded() -> Path | None:
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            found = next((line.split(None, 5)[5].strip() for line in maps if "libamdhip64" in line), None)
    except OSError:
        return None
    return Path(found) if found else None


def _of_torch() -> Path | None:
    try:
        spec = find_spec("torch")
    except ValueError:  # a module of that name without a spec
        return None
    return _in(Path(spec.origin).parent / "lib") if spec and spec.origin else None


def _of_bindings() -> Path | None:
    if not bindings_installed():
        return None
    from rocm.bindings.util.paths import get_library_path

    found = Path(os.fsdecode(get_library_path("amdhip64")))
    return found if found.is_absolute() and found.is_file() else None


def _of_system() -> Path | None:
    folders = [*settings.LIBRARY_PATH.text().split(":"), *SYSTEM]
    return next((found for folder in folders if folder and (found := _in(Path(folder)))), None)


def _in(folder: Path) -> Path | None:
    """The library in a folder; with a version in its name where there is no other."""
    if (folder / NAME).is_file():
        return folder / NAME
    return max(folder.glob(NAME + ".*"), default=None)


@cache
def hip() -> Any:
    """The module `rocm.bindings.hip` with the library open.

    Raises `ToolchainError` where AMD's bindings are missing, `DeviceError` where the library is, or cannot be opened.
    """
    if _lost_by_fork:
        raise DeviceError("HIP was in use before this process was forked, and does not work in the fork",
                          hint='start processes with multiprocessing.get_context("spawn"), or run this one on the '
                          'software device: flylab.use("emulated")')
    if not bindings_installed():
        raise no_bindings()
    path = find()
    if path is None:
        raise DeviceError(f"there is no HIP library ({NAME}) on this machine",
                          hint="install ROCm or a ROCm build of torch, or set ROCM_PATH to the folder of ROCm; "
                          'flylab.use("emulated") needs none')
    module: Any = import_module("rocm.bindings.hip")
    from rocm.bindings.util import paths

    with _opening:
        # The bindings ask this function for the path, once, and cannot be told it.
        theirs, paths.get_library_path = paths.get_library_path, lambda *_: os.fsencode(path)
        try:
            module.hipRuntimeGetVersion()
        except RuntimeError as error:
            raise DeviceError(f"the HIP library {path} cannot be opened: {error}",
                              hint="check that ROCm is complete and fits the driver: rocminfo") from None
        finally:
            paths.get_library_path = theirs
    return module


def no_bindings() -> ToolchainError:
    """The error where AMD's bindings are missing."""
    return ToolchainError("launching on an AMD GPU needs AMD's bindings of HIP", hint=installing.extra("hip"))


def _in_child() -> None:
    global _lost_by_fork
    _lost_by_fork = _lost_by_fork or hip.cache_info().currsize > 0
    hip.cache_clear()


os.register_at_fork(after_in_child=_in_child)


def version() -> str:
    """The version of the HIP library: `7.15.26000`. Raises as `hip` does."""
    (number,) = call("hipRuntimeGetVersion", doing="asking for the version of HIP")
    return f"{number // 10_000_000}.{number // 100_000 % 100}.{number % 100_000}"


def call(function: str, *args: Any, doing: str) -> tuple[Any, ...]:
    """What a function of HIP gives beside its status.

    Raises `DeviceError`, which begins with `doing`, where the status is an error or the library lacks the function.
    """
    status, *found = answer(function, *args, doing=doing)
    if status:
        raise failed(status, doing)
    return tuple(found)


def answer(function: str, *args: Any, doing: str) -> tuple[Any, ...]:
    """The status of a function of HIP, which may be an error, and what it gives beside it.

    Raises `DeviceError` where there is none that the bindings know.
    """
    try:
        return tuple(getattr(hip(), function)(*args))
    except UNKNOWN as error:
        raise not_known(function, error, doing) from None


def not_known(function: str, error: Exception, doing: str) -> DeviceError:
    """The error where the library lacks a function, or answers with a status that the bindings do not know."""
    take_back()
    return DeviceError(f"{doing}: {function} failed: {error}",
                       hint="check that ROCm fits the driver, and rocm-bindings-hip ROCm")


def take_back() -> None:
    """Make HIP forget its last error, which it would tell whoever asks next: torch, at its next launch."""
    with suppress(*UNKNOWN):
        hip().hipGetLastError()


def failed(status: Any, doing: str) -> DeviceError:
    """The error for a status of HIP that is not success, which HIP forgets then."""
    take_back()
    what, hint = sentence(status.name)
    return DeviceError(f"{doing}: {what} ({status.name})", hint=hint)
