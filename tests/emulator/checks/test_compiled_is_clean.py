"""Programs that LLVM compiles, with branches, loops that end lane by lane, arrays and spills, have no findings."""

from __future__ import annotations

from random import Random

import pytest

from tests.emulator.test_structured import check
from tests.emulator.toolchain import CHIPS


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("opt", range(4))
@pytest.mark.parametrize("registers", [False, True])
def test_random_programs(chip: str, opt: int, registers: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two seeds of the fuzzer's, with variables in memory and as values, under all checks."""
    monkeypatch.setenv("FLYLAB_CHECK", "all")
    for seed in (5, 11):
        check(Random(seed), chip, opt, registers)
