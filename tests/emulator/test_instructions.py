"""Every vector and scalar instruction of the table against two oracles: the numpy executor and AMD's pseudo-code.

Each runs on values special and random in all lanes, with the kinds of operands, the modifiers and the encodings that
LLVM's assembler takes, under whole and partial EXEC, on both chips. A new row of the table is tested by being there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from flylab.emulator.decoding.chips import chips_with
from flylab.emulator.program import device_tables
from tests.emulator.oracles import documented
from tests.emulator.oracles.compare import Registers, differences
from tests.emulator.oracles.device import Device
from tests.emulator.oracles.exceptions import UNJUDGED
from tests.emulator.oracles.executor import Executor
from tests.emulator.oracles.forms import FLOAT_TYPES, Case, cases
from tests.emulator.oracles.pcode_parser import PseudocodeError
from tests.emulator.oracles.states import initial
from tests.emulator.toolchain import CHIPS

ASSEMBLER = shutil.which("llvm-mc-22")
# Grounds of mnemonics, each the first whose pattern fits.
GROUNDS = {"scalar": r"s_", "comparisons": r"v_cmp", "packed": r"v_pk_", "mixed": r"v_\w+_mix", "doubles": r"v_\w*f64",
           "integers": r"v_\w+_[biu]\d+$", "floats": r"v_\w+_f\d+$", "others": r""}
# Float modes: denormals of 32 bits, of 16 and 64 bits (1 taken, 2 given), IEEE, DX10 clamp. `None` is MODE at run time.
MODES = [(0, 0, 0, 0), (1, 2, 0, 1), (2, 1, 1, 0), (0, 3, 0, 1), None]
SET_MODE = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0"


@cache
def of_ground(ground: str) -> tuple[Case, ...]:
    """The cases of each mnemonic of a ground."""
    table, others = device_tables()
    found = (m for m in sorted({*table, *others}) if next(n for n, p in GROUNDS.items() if re.match(p, m)) == ground)
    return tuple(case for mnemonic in found for case in cases(mnemonic))


def on_chip(ground: str, chip: str) -> list[Case]:
    return [case for case in of_ground(ground) if chip in chips_with(case.mnemonic)]


def executed(case: Case, chip: str, before: Registers, ieee: bool = True, dx10_clamp: bool = True) -> Registers:
    """The registers after a case, by the numpy executor."""
    wave = Executor(chip, *before, ieee, dx10_clamp)
    wave.run(case.text)
    return wave.v, wave.s


def rounds(case: Case) -> range:
    """Scalar registers hold one value a round, vector registers 64."""
    return range(8 if case.mnemonic.startswith("s_") else 2)


@pytest.mark.skipif(ASSEMBLER is None, reason="Debian's llvm-22 is not on PATH")
@pytest.mark.parametrize("chip", CHIPS)
def test_every_text_is_one_that_the_assembler_takes(chip: str) -> None:
    texts = [case.text for ground in GROUNDS for case in on_chip(ground, chip)]
    command = [str(ASSEMBLER), "-triple=amdgcn-amd-amdhsa", f"-mcpu={chip}"]
    said = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=False).stderr
    refused = {texts[int(n) - 1]: why for n, why in re.findall(r"<stdin>:(\d+):\d+: error: (.*)", said)}
    assert not refused


def test_what_has_no_operands_here_is_named() -> None:
    with pytest.raises(KeyError, match="no operands known for mnemonic v_unheard_of"):
        cases("v_unheard_of")


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("ground", GROUNDS)
def test_the_device_does_what_the_numpy_executor_does(ground: str, chip: str) -> None:
    chosen = on_chip(ground, chip)
    device = Device(chip, [case.text for case in chosen])
    wrong = {}
    for n, case in enumerate(chosen):
        for round_ in rounds(case) if chip == "gfx950" else (1,):  # the chips' handlers are all but the same
            before = initial(case, round_, device.mode)
            if found := differences(case, device.run(n, *before), executed(case, chip, before)):
                wrong[f"{case.text} (round {round_})"] = found
    assert not wrong


@pytest.mark.parametrize("mode", MODES, ids=str)
def test_float_modes(mode: tuple[int, int, int, int] | None) -> None:
    grounds = ("comparisons", "packed", "mixed", "doubles", "floats")
    of_floats = [case for ground in grounds for case in on_chip(ground, "gfx950") if set(case.types) & set(FLOAT_TYPES)]
    chosen = of_floats[MODES.index(mode)::5]  # every fifth, from another one on for each mode
    texts = [case.text for case in chosen]
    if mode is None:
        device = Device("gfx950", [*texts, SET_MODE], ieee_mode=0)
    else:
        names = ("float_denorm_mode_32", "float_denorm_mode_16_64", "ieee_mode", "dx10_clamp")
        device = Device("gfx950", texts, **dict(zip(names, mode, strict=True)))
    wrong = {}
    for n, case in enumerate(chosen):
        bits = device.mode if mode else (n % 16) << 4
        before = initial(case, 0, bits)
        wanted = executed(case, "gfx950", before, bool(mode and mode[2]), bool(mode[3]) if mode else True)
        if found := differences(case, device.run(n, *before), wanted):
            wrong[case.text] = found
    assert not wrong


def judged(chosen: list[Case], chip: str) -> Iterator[tuple[Case, str | list[str]]]:
    """Of each case why the pseudo-code cannot be run, or where the device differs from it."""
    device = Device(chip, [case.text for case in chosen])
    for n, case in enumerate(chosen):
        for round_ in rounds(case):
            before = initial(case, round_, device.mode)
            try:
                *wanted, bits = documented.run(case, chip, *before)
            except PseudocodeError as error:
                yield case, str(error)
                break
            yield case, differences(case, device.run(n, *before), (wanted[0], wanted[1]), bits, any_nan=True)


def plain(ground: str, chip: str) -> list[Case]:
    """The first three texts of each mnemonic that the document says all of the result of."""
    found: dict[str, list[Case]] = {}
    for case in on_chip(ground, chip):
        if case.plain:
            found.setdefault(case.mnemonic, []).append(case)
    return [case for group in found.values() for case in group[:3]]


@pytest.mark.parametrize("ground", GROUNDS)
def test_the_device_does_what_the_pseudo_code_says(ground: str) -> None:
    chosen = [case for case in plain(ground, "gfx950") if case.mnemonic not in UNJUDGED]
    wrong: dict[str, str | list[str]] = {case.text: found for case, found in judged(chosen, "gfx950") if found}
    assert not wrong


def test_the_pseudo_code_of_8_bit_floats_in_the_other_encodings() -> None:
    chosen = [case for case in plain("others", "gfx942") if re.search("_[fb][pf]8", case.mnemonic)]
    assert chosen
    assert {case.text: found for case, found in judged(chosen, "gfx942") if found} == {}


def test_what_the_pseudo_code_cannot_judge_is_so_still() -> None:
    table, others = device_tables()
    assert set(UNJUDGED) <= {*table, *others}
    chosen = [case for ground in GROUNDS for case in on_chip(ground, "gfx950")
              if case.mnemonic in UNJUDGED and case.plain]
    caused = {case.mnemonic for case, found in judged(chosen, "gfx950") if found}
    assert set(UNJUDGED) - caused == set()


# The instructions that the hardware answers from tables: of 32 bits to about one unit in the last place, without
# denormals; of 16 bits to one unit, as they are rounded from wider ones; of 64 bits the device is exact.
FUNCTIONS = {"rcp": lambda x: 1 / x, "rcp_iflag": lambda x: 1 / x, "rsq": lambda x: 1 / np.sqrt(x), "sqrt": np.sqrt,
             "exp": np.exp2, "log": np.log2,
             "exp_legacy": np.exp2, "log_legacy": np.log2, "sin": lambda x: np.sin(2 * np.pi * (x - np.rint(x))),
             "cos": lambda x: np.cos(2 * np.pi * (x - np.rint(x)))}
ELEMENTARY = [name for name in UNJUDGED if re.match("v_(rcp|rsq|sqrt|exp|log|sin|cos)_", name)] + ["v_rcp_f16",
                                                                                                  "v_rcp_f64"]


@pytest.mark.parametrize("mnemonic", ELEMENTARY)
def test_elementary_functions_are_within_one_unit_of_numpy(mnemonic: str) -> None:
    name, width = re.fullmatch(r"v_(\w+)_f(\d\d)", mnemonic).groups()  # type: ignore[union-attr]
    case = cases(mnemonic)[0]
    device = Device("gfx942", [case.text])
    float_ = np.dtype(f"f{int(width) // 8}")
    for round_ in range(0, 24, 2):
        before = initial(case, round_, device.mode)
        after = device.run(0, *before)[0]
        source, found = (np.ascontiguousarray(v.T).view(float_)[:, 0] for v in (before[0][4:6], after[0:2]))
        tiny = np.finfo(float_).smallest_normal if width == "32" else 0
        with np.errstate(all="ignore"):
            flushed = np.where(np.abs(source) < tiny, np.copysign(0, source), source).astype("f8")
            exact = FUNCTIONS[name](flushed)
            nearest = exact.astype(float_)
            nearest = np.where(np.abs(nearest) < tiny, np.copysign(0, nearest), nearest)
            off = np.abs(found.astype("f8") - exact) / np.spacing(np.abs(nearest)).astype("f8")
            # Near a zero of sine the oracle's own argument is off by 2**-53.
            near_zero = (name in ("sin", "cos")) & (np.abs(found.astype("f8") - exact) < 2.0**-52)
        same = (found == nearest) | np.isnan(found) & np.isnan(nearest)
        bad = ~(same | (off <= 1) | near_zero)
        assert not bad.any(), (source[bad], found[bad], exact[bad])
