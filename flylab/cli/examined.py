"""What `flylab doctor` looks at, one function each: what is there, or what is missing and how it is mended."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import flylab
from flylab import installing, settings
from flylab.errors import FlylabError
from flylab.runtime.cache.store import Store
from flylab.settings import Setting
from flylab.targets import TARGETS

OK, NOTE, ABSENT, BROKEN = "ok", "note", "missing", "broken"
"""States: it is there; so it is, and something may be meant otherwise; it is not there, and other things work without
it; flylab does not work without it."""
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
        mend = installing.needed("numpy", *installing.COMPILER, anew=True)
        return Finding(name, BROKEN, f"{type(error).__name__}: {error}", mend)


def _python() -> Seen:
    text = f"{platform.python_version()} in {sys.prefix}, {platform.system()} {platform.machine()}"
    return OK, text, None


def _flylab() -> Seen:
    how = "a checkout" if installing.is_checkout() else "installed"
    return OK, f"{flylab.__version__}, {how}, {installing.ROOT}", None


def _environment() -> Seen:
    from flylab.cli.env import described

    wrong = [row["error"] for row in map(described, settings.ALL) if row["error"]]
    if wrong:
        return BROKEN, "; ".join(text.partition("\n")[0] for text in wrong), "flylab env shows each variable"
    given = [row.source for row in settings.ALL if row.source and not row.foreign]
    unknown = []
    for name in settings.unknown():
        meant = settings.meant(name)
        unknown.append(f"{name} is no variable of flylab" + f" (did you mean {meant}?)" * bool(meant))
    return NOTE if unknown else OK, ", ".join([*map(str, given), *unknown]) or "no variable of flylab is set", None


def _device() -> Seen:
    from flylab.runtime.device import current

    try:
        return OK, f"launches run on {current()}", None
    except FlylabError as error:  # the row of the variables has the remedy
        return BROKEN, error.message, None


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


def _brought_torch(*words: str) -> str:
    command = installing.pip(*words, *installing.TORCH)
    return f"{command} (URL: that of PyTorch's CPU wheels, on its page \"Get started\"; with an AMD GPU, of ROCm's)"


def _torch() -> Seen:
    if find_spec("torch") is None:
        return ABSENT, "no torch: tensors can be numpy arrays", _brought_torch()
    try:
        import torch
    except Exception as error:  # its own libraries may be missing
        return ABSENT, f"torch does not load: {error}", _brought_torch("--force-reinstall")
    kind = f"ROCm {torch.version.hip}" if torch.version.hip else f"CUDA {torch.version.cuda}"
    return OK, f"{torch.__version__}, " + (kind if torch.version.hip or torch.version.cuda else "for the CPU"), None


def _package(package: str, text: str, mend: Callable[[], str], state: str = ABSENT) -> Callable[[], Seen]:
    """How a Python package is looked at."""
    def look() -> Seen:
        try:
            return OK, version(package), None
        except PackageNotFoundError:
            return state, f"no {package}: {text}", mend()

    return look


def _mlir() -> Seen:
    from flylab.dialect.context import missing

    try:
        from mlir import ir
    except ImportError as error:
        raise missing(error) from error

    with ir.Context():
        ir.Module.parse("module {}", ir.Context())
    return OK, version("xtc-mlir-python-bindings"), None


def _llvm() -> Seen:
    try:
        import llvmlite
        import llvmlite.binding as llvm
    except ImportError as error:
        return BROKEN, f"llvmlite cannot be imported ({error})", installing.needed(*installing.COMPILER)

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


def _kept(row: Setting[Path], text: str) -> Seen:
    """What is said of a folder of kept files: whether it can be made, and a file be written there."""
    folder = row.value()
    made = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
            file.flush()
            free = shutil.disk_usage(folder).free
        return OK, f"{folder}: {text}, writable, {free / 2**30:.0f} GiB free", None
    except OSError as error:
        why = error.strerror or str(error)
        mend = f"set {row.names[0]} to a folder that can be written"
        return ABSENT, f"{folder}: nothing can be kept there ({why})", mend
    finally:
        for parent in made:
            with suppress(OSError):  # it was never made, or something was put there meanwhile
                parent.rmdir()


def _compilations() -> Seen:
    """The compilations on disk, and how much there may be."""
    if not settings.ENABLE_CACHE.value():
        return OK, f"off: {settings.ENABLE_CACHE.source}={settings.ENABLE_CACHE.text()}", None
    most = settings.CACHE_BYTES.value()
    files = Store(settings.CACHE_DIR.value(), most).files()
    count = sum("." not in os.path.basename(path) for _, _, path in files)
    size = sum(nbytes for _, nbytes, _ in files)
    text = f"{count} compilation{'s' * (count != 1)}, {size / 2**20:.1f} of {most / 2**20:.0f} MiB"
    return _kept(settings.CACHE_DIR, text)


def _handlers() -> Seen:
    """The handlers of the software device on disk. There are too many to look at each."""
    folder = settings.EMULATOR_CACHE_DIR.value()
    with suppress(OSError):
        if any(folder.iterdir()):
            return _kept(settings.EMULATOR_CACHE_DIR, "some are kept")
    return _kept(settings.EMULATOR_CACHE_DIR, "none yet")


def _added(device: str, chip: str) -> tuple[bool, Any]:
    """Whether vectors are added on a device as numpy adds them, by a kernel that is compiled anew; and the run."""
    import numpy

    from flylab.runtime.compiled import build
    from flylab.runtime.launch import bound_to, run_bound
    from flylab.targets import target

    vector_add = import_module("flylab.kernels.elementwise.vector_add").vector_add
    a, b = numpy.arange(1024, dtype=numpy.float32), numpy.full(1024, 0.5, numpy.float32)
    c = numpy.zeros(1024, numpy.float32)
    arguments = {"A": a, "B": b, "C": c, "VEC": 4}
    with flylab.use(device) as chosen:
        bound = bound_to(vector_add, (), arguments)
        hosts = [each.host for each in bound]
        made = build(vector_add, hosts, target(chip), settings.OPT_LEVEL.value())  # not one that was kept
        run = run_bound(chosen, made, bound)
    return bool((c == a + b).all()), run


def _trial(chip: str) -> Callable[[], Seen]:
    """How the compiler and the software device are tried."""
    def look() -> Seen:
        for needed in ("numpy", "mlir.ir", "llvmlite.binding"):
            try:
                import_module(needed)
            except ImportError as error:  # its own row has the remedy
                return BROKEN, f"not tried: {error}", None
        right, run = _added(f"emulated:{chip}", chip)
        if not right:
            return BROKEN, "a vector add gives wrong numbers", REPORT
        return OK, f"a vector add is compiled and run: {run.reports[0].instructions} instructions, right", None

    return look


_NOTEBOOK = partial(installing.extra, "notebook")
EXAMINED: dict[str, Callable[[], Seen]] = {
    "Python": _python,
    "flylab": _flylab,
    "environment": _environment,
    "GPU": _chips,
    "HIP library": _hip,
    "HIP bindings": _package("rocm-bindings-hip", "only for launches on a GPU", partial(installing.extra, "hip")),
    "device": _device,
    "torch": _torch,
    "numpy": _package("numpy", "nothing is launched without it", partial(installing.needed, "numpy"), BROKEN),
    "MLIR": _mlir,
    "LLVM": _llvm,
    "lld": _linker,
    "JupyterLab": _package("jupyterlab", "only for flylab lab", _NOTEBOOK),
    "ipykernel": _package("ipykernel", "only for notebooks", _NOTEBOOK),
    "anywidget": _package("anywidget", "only for live views", partial(installing.needed, "anywidget")),
    "compilations": _compilations,
    "handlers": _handlers,
    **{f"{chip} (software)": _trial(chip) for chip in TARGETS},
}
"""What is looked at, in order, by the name that is shown."""
