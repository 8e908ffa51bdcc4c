"""What `flylab doctor` looks at, one function each: what is there, or what is missing and how it is mended."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import flylab
from flylab import settings
from flylab.errors import FlylabError
from flylab.settings import Setting
from flylab.targets import TARGETS

OK, ABSENT, BROKEN = "ok", "missing", "broken"
"""States: it is there; it is not, and other things work without it; flylab does not work without it."""
REPORT = "report it, with what flylab doctor --json prints"


@dataclass(frozen=True)
class Finding:
    """What became of looking at one thing: its name, a state, what was found, and the command that brings it."""

    name: str
    state: str
    text: str
    mend: str | None = None


Seen = tuple[str, str, str | None]
"""State, text, mend."""


def examination(name: str, examine: Callable[[], Seen]) -> Finding:
    """Look at one thing; what flylab raises on the way is what was found."""
    try:
        return Finding(name, *examine())
    except FlylabError as error:
        return Finding(name, BROKEN, error.message, error.hint)
    except Exception as error:  # a package that is there and does not load
        return Finding(name, BROKEN, f"{type(error).__name__}: {error}", "pip install --force-reinstall flylab")


def _python() -> Seen:
    text = f"{platform.python_version()} in {sys.prefix}, {platform.system()} {platform.machine()}"
    return OK, text, None


def _flylab() -> Seen:
    root = Path(flylab.__file__).resolve().parents[1]
    how = "a checkout" if (root / "pyproject.toml").is_file() else "installed"
    return OK, f"{flylab.__version__}, {how}, {root}", None


def _environment() -> Seen:
    from flylab.cli.env import described

    wrong = [row["error"] for row in map(described, settings.ALL) if row["error"]]
    if wrong:
        return BROKEN, "; ".join(text.partition("\n")[0] for text in wrong), "flylab env shows each variable"
    given = [row.source for row in settings.ALL if row.source and not row.foreign]
    unknown = [f"{name} is no variable of flylab" for name in settings.unknown()]
    return OK, ", ".join([*map(str, given), *unknown]) or "no variable of flylab is set", None


def _device() -> Seen:
    from flylab.runtime.device import current

    return OK, f"launches run on {current()}", None


def _chips() -> Seen:
    """The attached AMD GPUs and whether the first that flylab compiles for works, or why there is none to launch on."""
    from flylab.runtime.hip import devices, library

    if not Path("/dev/kfd").exists() and library.find() is None:
        return ABSENT, "no AMD GPU (this machine has neither its driver nor a HIP library)", None
    try:
        there = devices.attached()
    except FlylabError as error:
        return ABSENT, error.message, error.hint
    known = " or ".join(f"{chip} ({chip.products[0]})" for chip in TARGETS.values())
    shown = ", ".join(map(str, there)) or "no AMD GPU that this process may see"
    mine = next((found for found in there if found.target), None)
    if mine is None:
        return ABSENT, f"{shown}; flylab launches on {known}", None
    device = f"hip:{mine.ordinal}"
    try:
        right, _ = _added(device, mine.arch)
    except FlylabError as error:
        return ABSENT, f"{shown}; a vector add does not run on {device}: {error.message}", error.hint
    if not right:
        return ABSENT, f"{shown}; a vector add gives wrong numbers on {device}", REPORT
    return OK, f"{shown}; a vector add on {device} is right", None


def _hip() -> Seen:
    from flylab.runtime.hip import library

    path = library.find()
    if path is None:
        return ABSENT, f"no HIP library ({library.NAME})", "only for launches on a GPU: install ROCm, or set ROCM_PATH"
    if not library.bindings_installed():
        return OK, str(path), None
    return OK, f"{path}, HIP {library.version()}", None


def _torch() -> Seen:
    if find_spec("torch") is None:
        return ABSENT, "no torch: tensors can be numpy arrays", "pip install 'flylab[lab]' (README says which build)"
    try:
        import torch
    except Exception as error:  # its own libraries may be missing
        return ABSENT, f"torch does not load: {error}", "install it anew: pip install --force-reinstall torch"
    kind = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    return OK, f"{torch.__version__}, " + (kind if torch.version.hip or torch.version.cuda else "for the CPU"), None


def _package(package: str, text: str, mend: str, state: str = ABSENT) -> Callable[[], Seen]:
    """How a Python package is looked at."""
    def look() -> Seen:
        try:
            return OK, version(package), None
        except PackageNotFoundError:
            return state, f"no {package}: {text}", mend

    return look


def _mlir() -> Seen:
    from mlir import ir

    with ir.Context():
        ir.Module.parse("module {}", ir.Context())
    return OK, version("xtc-mlir-python-bindings"), None


def _llvm() -> Seen:
    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.Target.from_triple("amdgcn-amd-amdhsa")
    return OK, f"llvmlite {llvmlite.__version__} with LLVM {'.'.join(map(str, llvm.llvm_version_info))}", None


def _linker() -> Seen:
    from flylab.codegen.hsaco import find_linker
    from flylab.codegen.tools import run_tool

    try:
        command = find_linker()
        said = run_tool([*command, "--version"]).stdout.strip() or "it says no version"
    except FlylabError as error:
        return ABSENT, error.message, error.hint
    return OK, f"{' '.join(command)}: {said.splitlines()[0]}", None


def _sizes(folder: str, leave_out: str) -> Iterator[int]:
    """The bytes of each file below a folder, without those of another one; unreadable folders count as empty."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.path != leave_out:
                    yield from _sizes(entry.path, leave_out)
            else:
                with suppress(OSError):  # another process has just removed it
                    yield entry.stat(follow_symlinks=False).st_size


def _cache(row: Setting[Path], inner: Setting[Path] | None = None) -> Callable[[], Seen]:
    """How a folder of kept files is looked at; that of `inner`, which may lie in it, is another one."""
    def look() -> Seen:
        folder = row.value()
        sizes = list(_sizes(str(folder), str(inner.value()) if inner else ""))
        text = f"{folder}: {len(sizes)} file{'s' * (len(sizes) != 1)}, {sum(sizes) / 2**20:.1f} MiB"
        nearest = next(parent for parent in (folder, *folder.parents) if parent.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            mend = f"set {row.names[0]} to a folder that can be written"
            return ABSENT, f"{text}, and nothing can be kept there", mend
        free = shutil.disk_usage(nearest).free
        return OK, f"{text}, writable, {free / 2**30:.0f} GiB free", None

    return look


def _added(device: str, chip: str) -> tuple[bool, Any]:
    """Whether vectors are added on a device as numpy adds them, by a kernel that is compiled anew; and the run."""
    import numpy

    from flylab.runtime.compiled import build
    from flylab.runtime.launch import bound_to
    from flylab.targets import target

    vector_add = import_module("flylab.kernels.elementwise.vector_add").vector_add
    a, b = numpy.arange(1024, dtype=numpy.float32), numpy.full(1024, 0.5, numpy.float32)
    c = numpy.zeros(1024, numpy.float32)
    arguments = {"A": a, "B": b, "C": c, "VEC": 4}
    with flylab.use(device):
        hosts = [bound.host for bound in bound_to(vector_add, (), arguments)]
        made = build(vector_add, hosts, target(chip), settings.OPT_LEVEL.value())  # not one that was kept
        run = made(**arguments)
    return bool((c == a + b).all()), run


def _trial(chip: str) -> Callable[[], Seen]:
    """How the compiler and the software device are tried."""
    def look() -> Seen:
        right, run = _added(f"emulated:{chip}", chip)
        if not right:
            return BROKEN, "a vector add gives wrong numbers", REPORT
        return OK, f"a vector add is compiled and run: {run.reports[0].instructions} instructions, right", None

    return look


_NOTEBOOK = "pip install 'flylab[notebook]'"
_COMPILER = "pip install flylab (on Linux, or on macOS with an arm64)"
EXAMINED: dict[str, Callable[[], Seen]] = {
    "Python": _python,
    "flylab": _flylab,
    "environment": _environment,
    "GPU": _chips,
    "HIP library": _hip,
    "HIP bindings": _package("rocm-bindings-hip", "only for launches on a GPU", "pip install 'flylab[hip]'"),
    "device": _device,
    "torch": _torch,
    "numpy": _package("numpy", "nothing is launched without it", "pip install numpy", BROKEN),
    "MLIR": _mlir,
    "LLVM": _llvm,
    "lld": _linker,
    "JupyterLab": _package("jupyterlab", "only for flylab lab", _NOTEBOOK),
    "ipykernel": _package("ipykernel", "only for notebooks", _NOTEBOOK),
    "anywidget": _package("anywidget", "only for live views", "pip install anywidget"),
    "compilations": _cache(settings.CACHE_DIR, settings.EMULATOR_CACHE_DIR),
    "handlers": _cache(settings.EMULATOR_CACHE_DIR),
    **{f"{chip} (software)": _trial(chip) for chip in TARGETS},
}
"""What is looked at, in order, by the name that is shown."""
