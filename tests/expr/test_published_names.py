"""Every name that the published wheel's modules have is there, or is refused with what to use in its place."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

import flylab.expr as fx
from flylab.errors import NotSupportedError
from flylab.expr.unoffered import UNOFFERED

DATA = Path(__file__).parents[1] / "data" / "published_names.txt"


def published() -> list[tuple[str, str]]:
    found, module = [], ""
    for line in DATA.read_text().splitlines():
        if line.endswith(":"):
            module = line.removesuffix(":")
        elif not line.startswith("#"):
            found += [(module, name) for name in line.split()]
    return found


NAMES = published()
# Modules that are refused whole, with the reason.
REFUSED_MODULES = {
    "expr.rocdl.tdm_ops": "a unit of gfx1250 that copies tensors",
    "expr.rocdl.cluster": "gfx1250's clusters of blocks",
    "expr.extern": "functions of ROCm's device libraries, which flylab does not link",
    "expr.utils": "drawings for another program; flylab.viz draws",
    "expr.utils.print_typst": "drawings for another program; flylab.viz draws",
}
# Of other chips, or of nothing that a kernel needs.
REFUSED = {*UNOFFERED, "rdna3", "rdna4"}
# A helper of the wheel's own, which its list shows where it is imported: it is in `meta`.
IMPORTED = {("expr.rocdl.inline_asm", "dsl_loc_tracing")}


def resolved(module: str, name: str) -> Any:
    """The name in the module of the same name here; `fx` has all that kernels use."""
    try:
        owner = importlib.import_module(f"flylab.{module}")
    except ModuleNotFoundError:
        owner = fx
    return getattr(owner, name) if hasattr(owner, name) else getattr(fx, name)


OFFERED = [(module, name) for module, name in NAMES
           if module not in REFUSED_MODULES and name not in REFUSED and (module, name) not in IMPORTED]


def test_the_list_is_whole() -> None:
    """As many names as its source counts, without Python's own modules."""
    counts = {module: sum(m == module for m, _ in NAMES) for module in dict(NAMES)}
    assert counts["expr.primitive"] == 143 and counts["expr.rocdl"] == 34 and counts["expr.typing"] == 122
    assert counts["expr.math"] == 46 and len(OFFERED) > 400


@pytest.mark.parametrize("module", sorted({module for module, _ in OFFERED}))
def test_every_name_is_there(module: str) -> None:
    lacking = []
    for name in [name for owner, name in OFFERED if owner == module]:
        try:
            assert resolved(module, name) is not None
        except (AttributeError, NotSupportedError):
            lacking.append(name)
    assert not lacking


@pytest.mark.parametrize("module", ["expr.primitive", "expr.derived", "expr.enum", "expr.gpu", "expr.rocdl",
                                    "expr.rocdl.cdna3", "expr.rocdl.cdna4", "expr.rocdl.inline_asm", "expr.meta"])
def test_it_is_imported_from_its_module(module: str) -> None:
    owner = importlib.import_module(f"flylab.{module}")
    for name in [name for of, name in OFFERED if of == module]:
        assert getattr(owner, name) is not None


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_what_to_use(name: str) -> None:
    owner = fx.rocdl if name.startswith("rdna") or name == "experimental" else fx
    with pytest.raises(NotSupportedError) as caught:
        getattr(owner, name)
    assert name in caught.value.message and caught.value.hint
    assert name in {each for _, each in NAMES}, "only published names are in the table"


OTHERS = [name for module, name in NAMES if module in ("expr.rocdl.tdm_ops", "expr.rocdl.cluster")]


@pytest.mark.parametrize("name", [name for name in OTHERS if not name.startswith(
    ("CLUSTER", "add", "compute", "is_", "update"))])
def test_names_of_other_chips_say_whose_they_are(name: str) -> None:
    with pytest.raises(NotSupportedError, match="is of gfx1250"):
        getattr(fx.rocdl, name)


def test_kernel_files_keep_their_imports() -> None:
    """Forms that kernels of the published language begin with, with the package's name replaced."""
    from flylab.expr.derived import make_rmem_tensor
    from flylab.expr.enum import AtomicOp
    from flylab.expr.meta import dsl_loc_tracing
    from flylab.expr.primitive import make_layout
    from flylab.expr.rocdl.cdna3 import s_waitcnt
    from flylab.expr.rocdl.inline_asm import cvt_off_f32_i4

    assert make_layout is fx.make_layout and make_rmem_tensor is fx.make_rmem_tensor and AtomicOp is fx.AtomicOp
    assert dsl_loc_tracing(cvt_off_f32_i4) is cvt_off_f32_i4 and callable(s_waitcnt)
