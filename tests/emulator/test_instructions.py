"""Every vector and scalar instruction of the table against two oracles: the numpy executor and AMD's pseudo-code.

Each runs on values special and random in all lanes, with the kinds of operands, the modifiers and the encodings that
LLVM's assembler takes, under whole and partial EXEC, on both chips.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache

import numpy as np
import pytest

from flylab.emulator.chips import chips_with
from flylab.emulator.program import device_tables
from tests.emulator.oracles.device import Device
from tests.emulator.oracles.executor import Executor
from tests.emulator.oracles.forms import Case, cases
from tests.emulator.oracles.states import initial
from tests.emulator.toolchain import CHIPS

ASSEMBLER = shutil.which("llvm-mc-22")
# Groups of mnemonics, so that a failure names its ground and workers share the load.
GROUPS = {
    "scalar": r"s_", "comparisons": r"v_cmp", "packed": r"v_pk_", "mixed": r"v_\w+_mix",
    "doubles": r"v_\w*f64", "others": r"",
}


@cache
def grouped() -> dict[str, list[Case]]:
    """The cases of each group."""
    table, others = device_tables()
    found: dict[str, list[Case]] = {name: [] for name in GROUPS}
    for mnemonic in sorted({*table, *others}):
        group = next(name for name, pattern in GROUPS.items() if re.match(pattern, mnemonic))
        found[group] += cases(mnemonic)
    return found


def of_chip(group: str, chip: str) -> list[Case]:
    return [case for case in grouped()[group] if chip in chips_with(case.mnemonic)]


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_every_text_is_one_that_the_assembler_takes(chip: str) -> None:
    texts = [case.text for group in GROUPS for case in of_chip(group, chip)]
    command = [str(ASSEMBLER), "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"]
    said = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=False).stderr
    refused = {texts[int(n) - 1]: why for n, why in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", said)}
    assert not refused


def differences(device: tuple[np.ndarray, np.ndarray], wave: Executor) -> list[str]:
    """Where the registers of the device and of the executor differ."""
    found = [f"v{row} lane {lane}: device {device[0][row, lane]:#x}, executor {wave.v[row, lane]:#x}"
             for row, lane in np.argwhere(device[0] != wave.v)[:4]]
    return found + [f"scalar {at}: device {device[1][at]:#x}, executor {wave.s[at]:#x}"
                    for (at,) in np.argwhere(device[1] != wave.s)[:4]]


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("group", GROUPS)
def test_the_device_does_what_the_numpy_executor_does(group: str, chip: str) -> None:
    chosen = of_chip(group, chip)
    device = Device(chip, [case.text for case in chosen])
    wrong: dict[str, list[str]] = {}
    for n, case in enumerate(chosen):
        for round_ in range(8 if group == "scalar" else 2):
            v, s = initial(case, round_, device.mode)
            wave = Executor(chip, v, s)
            wave.run(case.text)
            found = differences(device.run(n, v, s), wave)
            if found:
                wrong[f"{case.text} (round {round_})"] = found
    assert not wrong
