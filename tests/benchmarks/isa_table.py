"""What flylab makes of the kernels of cold/cases.py, beside the published `flydsl` wheel: kernels/README.md.

    python tests/benchmarks/isa_table.py --write                                             ours anew
    python tests/benchmarks/isa_table.py --write --peer-python .venv-peer/bin/python         both (`make peer` makes it)

Both sides compile one text (see peer.py), and both listings are counted by `flylab.codegen.isa`. Without the wheel its
committed figures stay. The section on the ladders, which the wheel has no part in, is that of ladder_table.py. A test
holds that the committed figures of ours are those of the present compiler.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT)]
sys.path += [str(ROOT / "tests/benchmarks"), str(ROOT / "tests/benchmarks/cold")]

from cases import CASES  # noqa: E402

import flylab  # noqa: E402
import flylab.compiler as flyc  # noqa: E402
from flylab.codegen.isa import Isa  # noqa: E402
from tests.benchmarks import ladder_table  # noqa: E402
from tests.benchmarks.ladder_table import PAGE  # noqa: E402

CHIPS = ("gfx942", "gfx950")
COLUMNS = ("instructions", "MFMA", "VGPR", "AGPR", "SGPR", "LDS", "spills", "scratch")
ABSENT = "-"
Figures = tuple[int, ...]
ABOUT = """\
# Kernels

Ready kernels by domain, importable as `flylab.kernels`. Each file is written to be read, with a launcher.

## What the compilers make of them

Written by `python tests/benchmarks/isa_table.py --write`. Each cell is ours / that of the published `flydsl` 0.5.0
wheel, from one text, in which only the package's name in the imports differs. LDS and scratch are in bytes.
"""


def count(text: str) -> Figures:
    """The figures of a listing with one kernel, in the order of COLUMNS."""
    (kernel,) = Isa.parse(text).kernels.values()
    matrix = sum(i.mnemonic.startswith(("v_mfma", "v_smfmac")) for i in kernel.instructions)
    return (len(kernel.instructions), matrix, kernel.vgprs, kernel.agprs, kernel.sgprs, kernel.lds_bytes,
            kernel.spills, kernel.scratch_bytes)


def ours(case: str, chip: str) -> Figures:
    """The figures of what flylab makes."""
    with flylab.use(chip):
        return count(flyc.compile(CASES[case].launcher, *CASES[case].arguments(chip)).code.assembly)


def peers(python: str) -> dict[tuple[str, str], Figures]:
    """The figures of what the wheel in this interpreter's environment makes, of every case on every chip."""
    from peer import peer_side

    with tempfile.TemporaryDirectory() as temporary:
        sides = {chip: peer_side(python, Path(temporary), chip) for chip in CHIPS}
        return {(case, chip): count(sides[chip].listing(case)) for case in CASES for chip in CHIPS}


def read(text: str) -> dict[tuple[str, str], tuple[Figures, Figures]]:
    """What a page says: ours and the wheel's of each (title, chip); the wheel's are empty where it says none."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("| ")]
    found = {}
    for title, chip, *cells in rows:
        if chip in CHIPS:
            pairs = [cell.split(" / ") for cell in cells]
            known = [right for _, right in pairs if right != ABSENT]
            found[title, chip] = tuple(int(left) for left, _ in pairs), tuple(int(right) for right in known)
    return found


def page(figures: dict[tuple[str, str], tuple[Figures, Figures]]) -> str:
    """The page with these figures, up to the ladders."""
    lines = [ABOUT, "| " + " | ".join(("kernel", "chip", *COLUMNS)) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    for (title, chip), (mine, theirs) in figures.items():
        cells = [f"{left} / {right}" for left, right in zip(mine, theirs or (ABSENT,) * len(mine), strict=True)]
        lines.append("| " + " | ".join((title, chip, *cells)) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--write", action="store_true", help=f"write {PAGE.relative_to(ROOT)}, else print it")
    parser.add_argument("--peer-python", default=os.environ.get("FLYLAB_PEER_PYTHON"),
                        help="the interpreter of the environment that has flydsl (FLYLAB_PEER_PYTHON)")
    options = parser.parse_args()
    old = read(PAGE.read_text()) if PAGE.exists() else {}
    wheel = peers(options.peer_python) if options.peer_python else {}
    figures = {}
    for key, case in CASES.items():
        for chip in CHIPS:
            kept = old.get((case.title, chip), ((), ()))[1]
            figures[case.title, chip] = ours(key, chip), wheel.get((key, chip), kept)
    rows = ladder_table.shown()
    text = page(figures) + ladder_table.section([ladder_table.line(row) for row in rows], rows)
    if options.write:
        PAGE.write_text(text)
    else:
        print(text, end="")


if __name__ == "__main__":
    main()
