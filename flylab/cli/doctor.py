"""`flylab doctor`: what is on this machine, what is missing, and the command that brings it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from flylab.cli import examined
from flylab.cli.output import GREEN, RED, YELLOW, paint, print_json, table
from flylab.cli.usage import FAILED

HELP = "say what is on this machine, what is missing, and the command that brings it"
EPILOG = """\
flylab doctor                                ends with 0 where flylab can compile, and run on the software device
flylab doctor --json                         for a script
"""
COLOURS = {examined.OK: GREEN, examined.NOTE: YELLOW, examined.ABSENT: YELLOW, examined.BROKEN: RED}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flylab doctor`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Examine everything; 1 where something is missing that compiling or the software device needs."""
    found = [examined.examination(name, examine) for name, examine in examined.EXAMINED.items()]
    works = not any(finding.state == examined.BROKEN for finding in found)
    if options.json:
        print_json({"works": works, "findings": [asdict(finding) for finding in found]})
        return 0 if works else FAILED
    rows = [(paint(f"{finding.state:7}", COLOURS[finding.state]), finding.name, finding.text) for finding in found]
    print(table(rows))
    remedies: dict[str, list[str]] = {}
    for finding in found:
        if finding.mend:
            remedies.setdefault(finding.mend, []).append(finding.name)
    if remedies:
        print("\nwhat would bring the rest:")
        print(table([("", ", ".join(names), mend) for mend, names in remedies.items()]))
    print("\n" + ("flylab can compile, and run on the software device" if works else
                  "flylab cannot compile, or not run on the software device"))
    return 0 if works else FAILED
