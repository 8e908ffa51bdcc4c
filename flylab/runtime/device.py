"""Which device a launch runs on.

First that is given: `with flylab.use(...)`, `flylab.use(...)`, `FLYLAB_DEVICE`, `ARCH`, the attached AMD GPU, else the
software device as a gfx942.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from flylab import settings
from flylab.errors import FlylabError
from flylab.locks import IMPORTING
from flylab.runtime.choices import Choices
from flylab.targets import DEFAULT_ARCH, TARGETS, Target, check_lds, known_chips, meant, target

if TYPE_CHECKING:
    from flylab.runtime.hip.devices import Attached

EMULATED, HIP = "emulated", "hip"


@dataclass(frozen=True, repr=False)
class Device:
    """A device: `emulated` (the software device, as one of the chips) or `hip` (an attached GPU, by its number)."""

    kind: str
    target: Target
    ordinal: int = 0

    def __str__(self) -> str:
        return f"hip:{self.ordinal} ({self.target})" if self.kind == HIP else f"{self.kind}:{self.target}"

    def __repr__(self) -> str:
        return f"<device {self}>"


_choices: Choices[Device] = Choices("flylab_device")


def chosen() -> Device | None:
    """The device that `flylab.use` chose, or None."""
    return _choices.current()


def parse(spec: str) -> Device:
    """A device from its text: `gfx950`, `emulated`, `emulated:gfx950`, `hip`, `hip:1`.

    >>> print(parse("gfx950"), parse("emulated:gfx942"))
    emulated:gfx950 emulated:gfx942

    `emulated` is the chip of the variable `ARCH`, else a gfx942; `hip` is the first attached GPU that flylab compiles
    for. Raises `FlylabError` for a text that names no device,
    `DeviceError` for a GPU that is not there, `ToolchainError` where HIP's bindings are missing.
    """
    kind, _, detail = spec.partition(":")
    if kind in TARGETS and not detail:
        return Device(EMULATED, target(kind))
    if spec == EMULATED:
        return Device(EMULATED, _chip_of_arch() or target(DEFAULT_ARCH))
    if kind == EMULATED:
        return Device(EMULATED, target(detail))
    if kind == HIP and (detail.isdecimal() or spec == HIP):
        with IMPORTING:
            from flylab.runtime.hip import devices

        return _of(devices.find(int(detail) if detail else None))
    raise FlylabError(
        f"no device is called {spec!r}",
        hint=meant(spec) or f"use {settings.DEVICES}; chips are {known_chips()}",
    )


def _chip_of_arch() -> Target | None:
    """The chip that the variable `ARCH` names, where it is set. Raises `FlylabError` where it names none."""
    if not settings.ARCH.source:
        return None
    text = settings.ARCH.text()
    try:
        return target(text)
    except FlylabError as error:
        raise FlylabError(f"ARCH={text!r} in the environment: {error.message}", hint=error.hint) from None


def _of(gpu: Attached) -> Device:
    return Device(HIP, target(gpu.arch), gpu.ordinal)


def current() -> Device:
    """The device that a launch would run on now: `flylab.device()`.

    Raises `FlylabError`, naming the variable, where the environment names no device.
    """
    chosen = _choices.current()
    if chosen is not None:
        return chosen
    if settings.DEVICE.source:
        text = settings.DEVICE.text()
        chip = _chip_of_arch() if text == EMULATED else None
        try:
            return Device(EMULATED, chip) if chip else parse(text)
        except FlylabError as error:
            error.message = f"{settings.DEVICE.source}={text!r} in the environment: {error.message}"
            raise
    if chip := _chip_of_arch():
        return Device(EMULATED, chip)
    with IMPORTING:  # looking imports HIP's bindings
        from flylab.runtime.hip import devices

        gpu = devices.look()
    return _of(gpu) if gpu else Device(EMULATED, target(DEFAULT_ARCH))


class use:
    """Choose the device of the launches that follow: `flylab.use("gfx950")`; `None` goes back to the environment's.

    As a context manager it holds for the block, and only in this thread or task: `with flylab.use("gfx950"): ...`.
    Otherwise it holds until the next: inside such a block to the block's end, in the main thread for the process, in
    another thread for that thread. Raises `FlylabError` for what names no device; `flylab.device()` is the current one.
    """

    def __init__(self, *spec: str | Device | None):
        self._chosen = _choices.choose(_chosen(spec))
        self.device = current()

    def __enter__(self) -> Device:
        self._chosen.enter()
        return self.device

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._chosen.leave()

    def __repr__(self) -> str:
        return repr(self.device)


def _chosen(spec: tuple[Any, ...]) -> Device | None:
    if len(spec) != 1:
        raise FlylabError(
            f"flylab.use() takes the name of one device and gets {len(spec)} (launches run on {current()} now)",
            hint='flylab.use("gfx950") chooses; flylab.device() shows the current device',
        )
    (given,) = spec
    if given is None or isinstance(given, Device):
        return given
    if not isinstance(given, str):
        raise FlylabError(
            f"flylab.use({given!r}): a device is named by a text, not by a value of type {type(given).__name__}",
            hint='flylab.use("gfx950"), or None for the environment\'s',
        )
    return parse(given)


SMEM_CAPACITY_MAP = {arch: chip.lds_bytes for arch, chip in TARGETS.items()}
"""The bytes of LDS that a block has, by chip."""


def get_rocm_arch() -> str:
    """The chip of the current device, by LLVM's name: `gfx942`."""
    return current().target.arch


def get_warp_size(arch: str | None = None) -> int:
    """The lanes of a wave on a chip, without one on that of the current device.

    >>> get_warp_size("gfx950")
    64
    """
    return _target(arch).wave_size


def check_smem_capacity(allocated_bytes: int, arch: str | None = None) -> None:
    """Raises `TraceError` for more bytes of LDS than a block has on a chip, without one on that of the current device.

    >>> check_smem_capacity(80_000, "gfx950")
    """
    check_lds(allocated_bytes, _target(arch), f"{allocated_bytes} bytes")


def _target(arch: str | None) -> Target:
    return current().target if arch is None else target(arch)
