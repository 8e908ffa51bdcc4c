"""The page `notebooks/reference/instructions.md`: what the software device executes, written from its tables.

    python -m flylab.emulator.coverage > notebooks/reference/instructions.md
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from flylab.emulator.decoding.chips import chips_with
from flylab.emulator.decoding.refused import REASONS
from flylab.emulator.program import device_modules
from flylab.targets import TARGETS

HEAD = """# Instructions of the software device

Every instruction that the software device executes, by the module of `flylab/emulator/instructions` that says how. The
page is written by `python -m flylab.emulator.coverage` from the operation table itself; a test compares it. Any other
instruction is an error that names it, with its line; none is skipped.

An encoding's suffix (`_e32`, `_e64`, `_sdwa`, `_dpp`) is not part of a name here. *Operands* reads `results = sources`:
`b16 b32 b64` are integers or bits, `f16 f32 f64` floats, `mask` a bit for each lane; `.scc .vcc .exec` are implied
registers, `.lane` the lane's number, `@t` the result's old value; `f16d` is computed in double, `+` keeps the upper
half of the result's register, and `^` writes it. Where the cell is empty, operands are read by code of the module.
"""


@dataclass(frozen=True)
class Covered:
    """One instruction that the device executes."""

    mnemonic: str
    module: str
    operands: str
    chips: tuple[str, ...]


def instructions() -> Iterator[Covered]:
    """Everything that the device executes.

    >>> next(i for i in instructions() if i.mnemonic == "v_perm_b32").operands
    'b32 = b32 b32 b32'
    """
    for module in device_modules():
        name = module.__name__.rpartition(".")[2]
        for mnemonic, row in getattr(module, "ROWS", {}).items():
            yield Covered(mnemonic, name, f"{' '.join(row.results)} = {' '.join(row.sources)}", chips_with(mnemonic))
        for mnemonic in getattr(module, "DECODERS", {}):
            yield Covered(mnemonic, name, "", chips_with(mnemonic))


def _section(module_name: str, about: str, found: list[Covered]) -> list[str]:
    groups: dict[tuple[str, tuple[str, ...]], list[str]] = defaultdict(list)
    for one in found:
        groups[one.operands, one.chips].append(f"`{one.mnemonic}`")
    lines = [f"## {module_name}", "", about.partition("\n")[0], "", "| instructions | operands | chips |",
             "| --- | --- | --- |"]
    for (operands, chips), names in groups.items():
        shown = "both" if len(chips) == len(TARGETS) else ", ".join(chips)
        lines.append(f"| {' '.join(sorted(names))} | {operands and f'`{operands}`'} | {shown} |")
    return [*lines, ""]


def page() -> str:
    """The whole page."""
    found = list(instructions())
    lines = [HEAD]
    counts = ", ".join(f"{sum(arch in one.chips for one in found)} on {arch}" for arch in TARGETS)
    lines += [f"In all {len(found)} instructions: {counts}.", ""]
    for module in device_modules():
        name = module.__name__.rpartition(".")[2]
        lines += _section(name, module.__doc__ or "", [one for one in found if one.module == name])
    lines += ["## Refused", "", "What a chip has and the device refuses by name.", "", "| instructions | reason |",
              "| --- | --- |"]
    for reason, names in REASONS.items():
        lines.append(f"| {' '.join(f'`{name}`' for name in names.split())} | {reason} |")
    return "\n".join(lines).rstrip("\n") + "\n"


if __name__ == "__main__":
    print(page(), end="")
