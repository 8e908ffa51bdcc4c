"""What AMD's pseudo-code says that an instruction's text does to registers.

The operands are fetched by the numpy executor's operand side; the arithmetic is all of `pcode_run`. Registers that the
document does not speak of are those before the instruction.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from flylab.emulator.decoding.table import Row
from flylab.emulator.program import device_tables
from flylab.emulator.state import EXEC, SCC, VCC, WAVE_SIZE
from tests.emulator.oracles import exact
from tests.emulator.oracles.executor import Executor
from tests.emulator.oracles.forms import Case
from tests.emulator.oracles.pcode_run import Machine
from tests.emulator.oracles.text import Text, stripped

Names = dict[str, Any]
# Where the document names the sources of the text otherwise than S0, S1, S2.
SOURCE_NAMES = {"v_fmamk_f32": ("S0", "SIMM32", "S1"), "v_fmaak_f32": ("S0", "S1", "SIMM32"),
                "v_madmk_f16": ("S0", "SIMM16", "S1"), "v_madak_f16": ("S0", "S1", "SIMM16")}
# A table that the document describes in words: a signed number of four bits over 16.
OFFSETS = [("f", 32, exact.of_float((n - 16 * (n > 7)) / 16, exact.FORMATS["f", 32])) for n in range(16)]


def run(case: Case, chip: str, v: np.ndarray, s: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The registers after a case, and the bits of a 32-bit result that the document speaks of.

    Raises `PseudocodeError` where the document has nothing, or nothing that can be run.
    """
    wave, text = Executor(chip, v, s), Text.of(case.text)
    table = device_tables()[0]
    if text.mnemonic not in table:
        return _special(wave, text)
    row = table[text.mnemonic]
    named = [t for t in row.results if t[0] != "."]
    targets, operands = text.operands[:len(named)], text.operands[len(named):]
    if row.family == "scalar":
        _scalar(wave, row, text, targets, operands)
        return wave.v, wave.s, 0xFFFFFFFF
    return _vector(wave, row, text, targets, operands)


def _state(wave: Executor) -> Names:
    return {"CVT_OFF_TABLE": OFFSETS, "SCC": ("u", 1, int(wave.s[SCC] != 0)), "VCC": ("u", 64, wave.scalar(VCC, 2)),
            "ROUND_MODE": ("u", 2, 0), "EXEC": ("u", 64, wave.scalar(EXEC, 2)),
            "WAVE_MODE.IEEE": ("u", 1, int(wave.ieee))}


def _scalar(wave: Executor, row: Row, text: Text, targets: list[str], operands: list[str]) -> None:
    names = _state(wave)
    types = [t for t in row.sources if t[0] not in ".@"]
    for n, (operand, type_name) in enumerate(zip(operands, types, strict=True)):
        value = wave.source(operand, type_name, 1)
        names[f"S{n}"] = ("b", value.width, int(value.array[0]))
    for target in targets:
        _, first, count = wave.register(target) or ("", 0, 0)
        names["D0"] = ("b", 64, wave.scalar(first, count))
    Machine(names, wave.chip).run(text.mnemonic)
    for target in targets:
        _, first, count = wave.register(target) or ("", 0, 0)
        wave.set_scalar(first, count, names["D0"][2])
    wave.s[SCC] = names["SCC"][2]
    wave.set_scalar(EXEC, 2, names["EXEC"][2])


def _sources(wave: Executor, row: Row, text: Text, targets: list[str], operands: list[str]) -> list[np.ndarray]:
    """The bits of each source in every lane; of a packed instruction, both halves side by side."""
    halves = []
    for half in range(1 + (row.family == "packed")):
        arguments = [bits for type_name, bits in zip(row.sources, wave.arguments(row, text, targets, operands,
                     WAVE_SIZE, half, raw=True), strict=True) if type_name[0] not in ".@"]
        halves.append([bits.array.astype(np.uint64) for bits in arguments])
    if len(halves) == 1:
        return halves[0]
    wide = np.uint64(16 if row.sources[0][1:3] == "16" else 32)
    return [low | high << wide for low, high in zip(*halves, strict=True)]


def _vector(wave: Executor, row: Row, text: Text, targets: list[str],
            operands: list[str]) -> tuple[np.ndarray, np.ndarray, int]:
    sources = _sources(wave, row, text, targets, operands)
    where = [wave.register(target) or ("", 0, 0) for target in targets]
    active, masks = wave.active, {first: 0 for file, first, _ in where if file == "s"}
    exec_after = 0
    for lane in np.flatnonzero(active):
        names = _state(wave) | {"laneId": ("u", 32, int(lane))}
        called = SOURCE_NAMES.get(text.mnemonic, ("S0", "S1", "S2"))
        for type_name, name, bits in zip(row.named_sources, called, sources, strict=False):
            if type_name == "mask":
                names["VCC"] = ("u", 64, wave.scalar((wave.register(operands[-1]) or ("", VCC, 2))[1], 2))
            else:
                names[name] = ("b", _width(row, type_name), int(bits[lane]))
        for file, first, count in where:
            if file == "v":
                names["D0"] = ("b", 64, sum(int(wave.v[first + n][lane]) << 32 * n for n in range(count)))
        names["D0"] = names.get("D0", ("b", 64, 0))
        names["D1"] = ("b", 1, 0)
        names["S"] = [names.get(f"S{n}", ("b", 32, 0)) for n in range(3)]
        names["OPSEL"] = ("u", 4, 0)
        Machine(names, wave.chip).run(text.mnemonic)
        for file, first, count in where:
            if file == "v":
                for n in range(count):
                    wave.v[first + n][lane] = names["D0"][2] >> 32 * n & 0xFFFFFFFF
            else:
                masks[first] |= _lane_bit(text.mnemonic, names, int(lane)) << int(lane)
        exec_after |= (names["EXEC"][2] >> int(lane) & 1) << int(lane)
    for first, bits in masks.items():
        wave.set_scalar(first, 2, bits)
    if ".exec" in row.results:
        wave.set_scalar(EXEC, 2, exec_after)
    half = row.family != "packed" and row.named_results[0][1:3] == "16"
    return wave.v, wave.s, 0xFFFF if half else 0xFFFFFFFF


def _width(row: Row, type_name: str) -> int:
    if row.family == "packed":
        return 64 if type_name.endswith("32") else 32
    return int(type_name[1:3])


def _lane_bit(mnemonic: str, names: Names, lane: int) -> int:
    """The bit of a mask result, which the document names in one of four ways."""
    if mnemonic.startswith("v_cmp"):
        return int(names["D0"][2] >> lane & 1)
    if mnemonic.startswith("v_mad_"):
        return int(names["D1"][2])
    if mnemonic.startswith("v_div_scale"):
        return int(names["VCC"][2] & 1)
    return int(names["VCC"][2] >> lane & 1)


def _special(wave: Executor, text: Text) -> tuple[np.ndarray, np.ndarray, int]:
    """The instructions that the device decodes without a row, where the document has them lane by lane."""
    targets = [wave.register(stripped(operand)[0]) for operand in text.operands]
    entries = int(text.words.get("bitop3", "0"), 0)
    wide = 16 if text.mnemonic.endswith("b16") else 32
    found = wave.v.copy()
    _, to, count = targets[0] or ("", 0, 0)
    last = len(targets) - 1  # the bit of the result is OPSEL[3], however many sources there are
    halves = sum(text.bit("op_sel", n) << n for n in range(last)) | text.bit("op_sel", last) << 3
    for lane in np.flatnonzero(wave.active):
        names = _state(wave) | {
            "OPSEL": ("u", 4, halves),
            "SDWA_SRC0_SEL": ("u", 3, _part(text)), **{f"BYTE{n}": ("u", 3, n) for n in range(4)},
            "WORD1": ("u", 3, 5), "INST.OMOD": ("u", 2, entries >> 6), "INST.ABS": ("u", 3, entries >> 3 & 7),
            "INST.NEG": ("u", 3, entries & 7)}
        names["D0"] = names["D"] = ("b", 128, sum(int(wave.v[to + n][lane]) << 32 * n for n in range(count)))
        for n, operand in enumerate(text.operands[1:]):
            place = wave.register(stripped(operand)[0])
            registers = place[2] if place else 1
            if place and place[0] == "v" and registers > 1:
                bits = sum(int(wave.v[place[1] + m][lane]) << 32 * m for m in range(registers))
            else:
                bits = int(wave.source(operand, "b64" if registers == 2 else "b32", WAVE_SIZE).array[lane])
            names[f"S{n}"] = ("b", 32 * registers, bits & ((1 << 32 * registers - 32 + wide) - 1))
        Machine(names, wave.chip).run(text.mnemonic)
        result = names["D" if text.mnemonic.startswith("v_bitop3") else "D0"][2]
        for n in range(count):
            found[to + n][lane] = result >> 32 * n & 0xFFFFFFFF
        if text.mnemonic == "v_swap_b32":
            found[(targets[1] or ("", 0, 0))[1]][lane] = names["S0"][2]
    return found, wave.s, (1 << wide) - 1


def _part(text: Text) -> int:
    select = text.words.get("src0_sel", "DWORD")
    return int(select[-1]) + 4 * select.startswith("WORD") if re.search(r"\d$", select) else 6
