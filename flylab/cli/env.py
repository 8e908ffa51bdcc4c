"""`flylab env`: every environment variable, its value, where the value comes from, and what it means."""

from __future__ import annotations

import argparse
from typing import Any

from flylab import settings
from flylab.cli.output import RED, YELLOW, paint, print_json, table
from flylab.cli.usage import FAILED
from flylab.errors import FlylabError
from flylab.settings import Setting
from flylab.targets import target

HELP = "print every environment variable: its value, where that comes from, and what it means"
EPILOG = """\
flylab env                                   a table
FLYDSL_DUMP_IR=1 flylab env --json           for a script; ends with 1 where a value is wrong
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flylab env`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(options: argparse.Namespace) -> int:
    """Print the variables; 1 where one has a value that it cannot have."""
    rows = [described(row) for row in settings.ALL]
    unknown = [{"name": name, "nearest": settings.meant(name)} for name in settings.unknown()]
    if options.json:
        print_json({"variables": rows, "unknown": unknown})
    else:
        cells = [(row["name"], row["value"] or f"({row['unset']})", row["source"] or "default", row["meaning"])
                 for row in rows]
        print(table(cells, ("variable", "value", "from", "meaning")))
        for row in rows:
            if row["error"]:
                print(paint("error:", RED), row["error"])
            for name in row["hidden"]:
                print(paint("note:", YELLOW), f"{name} is set too, and {row['source']} wins")
        for found in unknown:
            meant = f"; did you mean {found['nearest']}?" if found["nearest"] else ""
            print(paint("note:", YELLOW), f"{found['name']} is set, and no variable of flylab{meant}")
    return FAILED if any(row["error"] for row in rows) else 0


def described(row: Setting[Any]) -> dict[str, Any]:
    """A variable as plain data: `error` says what is wrong with its value, `hidden` are the aliases that it hides."""
    return {"name": row.names[0], "value": row.text(), "source": row.source, "default": row.default,
            "unset": row.unset, "kind": row.kind.name, "meaning": row.meaning, "error": wrong(row),
            "hidden": row.hidden()}


def wrong(row: Setting[Any]) -> str | None:
    """What is wrong with the value of a variable; None where nothing is."""
    if not row.text():
        return None
    try:
        row.value()
        if row == settings.ARCH:
            target(row.text())
        elif row == settings.DEVICE and row.text() != "emulated":  # whose chip is that of ARCH, with a row of its own
            from flylab.runtime.device import parse

            parse(row.text())
    except FlylabError as error:
        named = error.message.startswith(f"{row.source}=")
        return str(error) if named else f"{row.source}={row.text()!r}: {error}"
    return None
