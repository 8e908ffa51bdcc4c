"""What flylab compiles for, by the published names: one compile backend, ROCm's, and its chips."""

from __future__ import annotations

from dataclasses import dataclass

from flylab.errors import FlylabError
from flylab.runtime.device import current
from flylab.targets import target

ROCM = "rocm"


@dataclass(frozen=True)
class GPUTarget:
    """A chip of a backend: `GPUTarget("rocm", "gfx942", 64)`; `warp_size` is the lanes of a wave."""

    backend: str
    arch: str
    warp_size: int


@dataclass(frozen=True)
class CompileBackend:
    """What `get_backend` gives: the chip that is compiled for."""

    target: GPUTarget


def compile_backend_name() -> str:
    """The name of the one compile backend.

    >>> compile_backend_name()
    'rocm'
    """
    return ROCM


def get_backend(name: str | None = None, *, arch: str = "") -> CompileBackend:
    """The compile backend, with the chip `arch`, or that of the current device.

    >>> get_backend(arch="gfx950").target
    GPUTarget(backend='rocm', arch='gfx950', warp_size=64)

    Raises `FlylabError` for another backend or an unknown chip.
    """
    if name not in (None, ROCM):
        raise FlylabError(f"no compile backend is called {name!r}", hint=f"there is one, {ROCM!r}")
    chip = target(arch) if arch else current().target
    return CompileBackend(GPUTarget(ROCM, chip.arch, chip.wave_size))
