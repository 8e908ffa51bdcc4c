"""`flylab compile FILE` and `flylab run FILE:LAUNCHER` need no options for the kernels of kernels/.

The arguments are those of each file's `flylab_arguments()`, small and of one shape. Those of every.py and of
tests/benchmarks/cold/cases.py are others on purpose: odd shapes and every variant, and what committed figures count.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import flylab
from flylab.cli.chosen import choose
from flylab.cli.files import launchers, load
from flylab.cli.run import random_tensors
from flylab.runtime.compiled import Compiled
from flylab.targets import TARGETS
from tests.house.rules import ROOT, tracked

FILES = [file for file in tracked("kernels/*.py") if "@flyc.jit" in file.read_text()]


def named(file: Path) -> str:
    return str(file.relative_to(ROOT / "kernels"))


def test_there_are_files() -> None:
    assert len(FILES) > 15


@pytest.mark.parametrize("chip", TARGETS)
@pytest.mark.parametrize("file", FILES, ids=named)
def test_every_launcher_has_arguments_that_it_compiles_and_runs_with(file: Path, chip: str) -> None:
    chosen = choose(str(file), {})
    assert {each.name for each in chosen} == set(launchers(load(file)))
    for each in chosen:
        with flylab.use(chip) as device, flylab.watch("all"):
            run = each.launcher(**each.arguments(device.target, random_tensors(0)))
        assert isinstance(run.compiled, Compiled) and run.compiled.target == device.target
        assert run.reports and all(report.workgroups > 0 and report.checks for report in run.reports)
