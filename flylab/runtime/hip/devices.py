"""The AMD GPUs that HIP shows to this process."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from flylab import settings
from flylab.errors import DeviceError, FlylabError
from flylab.runtime.hip import library
from flylab.targets import TARGETS, Target

# AMD's kernel driver for computing.
DRIVER = Path("/dev/kfd")


@dataclass(frozen=True)
class Attached:
    """An attached GPU: HIP's number for it, its chip by LLVM's name, and what else a launch needs of it.

    `features` are the settings behind the chip's name (`:sramecc+:xnack-`); `pageable` says whether kernels can read
    the host's own memory: where HIP says so, and page faults are retried (HSA_XNACK=1), which an MI300A needs too.
    """

    ordinal: int
    arch: str
    features: str
    name: str
    memory: int
    pageable: bool

    @property
    def target(self) -> Target | None:
        """The chip, if it is one that flylab compiles for."""
        return TARGETS.get(self.arch)

    def __str__(self) -> str:
        return f"hip:{self.ordinal} {self.arch} ({self.name}, {self.memory / 2**30:.0f} GiB)"


@cache
def attached() -> tuple[Attached, ...]:
    """The GPUs, in HIP's order; asked for once.

    Raises `DeviceError` or `ToolchainError` where there is no HIP, or it fails. No GPU at all is no error.
    """
    status, count = library.answer("hipGetDeviceCount", doing="looking for AMD GPUs")
    if status == library.hip().hipError_t.hipErrorNoDevice:
        library.take_back()
        return ()
    if status:
        raise library.failed(status, "looking for AMD GPUs")
    return tuple(_attached(ordinal) for ordinal in range(count))


def _attached(ordinal: int) -> Attached:
    attribute = library.hip().hipDeviceAttribute_t.hipDeviceAttributePageableMemoryAccess
    doing = f"asking what hip:{ordinal} is"
    (properties,) = library.call("hipGetDeviceProperties", ordinal, doing=doing)
    (pageable,) = library.call("hipDeviceGetAttribute", attribute, ordinal, doing=doing)
    arch, colon, features = properties.gcnArchName.partition(":")
    reads_host = bool(pageable) and "xnack+" in features.split(":")
    return Attached(ordinal, arch, colon + features, properties.name, properties.totalGlobalMem, reads_host)


def find(ordinal: int | None = None) -> Attached:
    """The GPU of a number; without one, the first that flylab compiles for.

    Raises `DeviceError` where there is none, which says what is there instead.
    """
    there = attached()
    seen = settings.HIP_VISIBLE.given
    shown = f" (HIP_VISIBLE_DEVICES={seen!r})" if seen is not None else ""
    known = " and ".join(f"{t.arch} ({t.products[0]})" for t in TARGETS.values())
    if not there:
        raise DeviceError(f"no AMD GPU is attached, or this process may not see it{shown}",
                          hint='check rocminfo and HIP_VISIBLE_DEVICES; flylab.use("emulated") needs no GPU')
    if ordinal is not None and not 0 <= ordinal < len(there):
        count = f"{len(there)} AMD GPU{'s' * (len(there) > 1)}"
        raise DeviceError(f"there is no hip:{ordinal}: HIP shows {count}{shown}: {_list(there)}",
                          hint="HIP counts from 0")
    chosen = [d for d in there if d.target and ordinal in (None, d.ordinal)]
    if not chosen:
        found = there if ordinal is None else [there[ordinal]]
        raise DeviceError(f"the attached GPU is none that flylab compiles for: {_list(found)}",
                          hint=f'it compiles for {known}; flylab.use("emulated") needs no GPU')
    return chosen[0]


@cache
def look() -> Attached | None:
    """The GPU that a launch takes where nobody chose a device; None where there is none that works. Looked up once.

    Where there is a GPU's driver, or a HIP library, that cannot be used, a warning says why.
    """
    try:
        if not library.bindings_installed():
            if DRIVER.exists():
                raise library.no_bindings()
            return None
        there = attached() if library.find() else ()
    except FlylabError as error:
        warnings.warn(f"launches run on the software device, and not on a GPU: {error}", stacklevel=2)
        return None
    return next((gpu for gpu in there if gpu.target), None)


def _list(devices: Iterable[Attached]) -> str:
    return ", ".join(str(device) for device in devices)


@contextmanager
def on(ordinal: int) -> Iterator[None]:
    """Makes a device this thread's current one for the block; afterwards it is again what it was.

    Where HIP shows one device alone nothing is to be done.
    """
    if len(attached()) == 1:
        yield
        return
    (before,) = library.call("hipGetDevice", doing="asking for the current device")
    if before != ordinal:
        library.call("hipSetDevice", ordinal, doing=f"choosing hip:{ordinal}")
    try:
        yield
    finally:
        if before != ordinal:
            library.call("hipSetDevice", before, doing=f"going back to hip:{before}")
