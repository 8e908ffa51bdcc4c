"""The import rules of the design as data, and the checker that reads a file's imports.

A rule names modules of flylab by their dotted path below it. The longest name that fits a module is its unit: so
`codegen.isa` is a unit of its own beside `codegen`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# "" is flylab itself, for its version.
BASE = frozenset({"background", "by_code", "locks", "places", "errors", "targets", "dtypes", "mfma", "lds_banks",
                  "settings", "shown", "own_source", "whole_files", "cache_warnings", "installing", ""})
PICTURED = frozenset({"layout", "atoms", "codegen.isa", "passes.recording", "emulator.log", "model"})
EVERYTHING = frozenset({"*"})

# The units that each unit may import, itself aside. Arrows never reverse.
MAY_IMPORT: dict[str, frozenset[str]] = {
    "": frozenset(),
    "__main__": frozenset({"cli"}),
    "background": frozenset(),
    "locks": frozenset(),
    "by_code": frozenset(),
    "places": frozenset({"by_code"}),
    "shown": frozenset(),
    "installing": frozenset(),
    "whole_files": frozenset(),
    "own_source": frozenset({""}),
    "errors": frozenset({"places"}),
    "cache_warnings": frozenset({"errors", "places"}),
    "targets": frozenset({"errors", "places"}),
    "dtypes": frozenset({"errors", "targets"}),
    "mfma": frozenset({"errors", "targets", "locks"}),
    "lds_banks": frozenset({"errors", "targets"}),
    "settings": frozenset({"errors"}),
    "layout": frozenset({"errors", "places"}),
    "atoms": BASE | {"layout"},
    "dialect": BASE | {"layout", "atoms"},
    "mathlib": BASE,
    "expr": BASE | {"layout", "atoms", "dialect", "mathlib"},
    "compiler": BASE | {"layout", "atoms", "dialect", "expr", "passes.recording"},
    "passes": BASE | {"layout", "atoms", "dialect", "mathlib", "passes.recording"},
    "passes.recording": BASE,
    "codegen": BASE | {"layout", "atoms", "dialect", "passes", "passes.recording", "codegen.isa"},
    "codegen.isa": BASE,
    "emulator": BASE | {"codegen.isa", "emulator.log"},
    "emulator.log": BASE,
    "runtime": BASE | {"layout", "atoms", "dialect", "expr", "compiler", "passes", "passes.recording", "codegen",
                       "codegen.isa", "emulator", "emulator.log"},
    # A device's package of its own: what is above asks `runtime.backend` for it.
    "runtime.hip": BASE | {"codegen", "compiler", "emulator", "expr", "passes", "runtime"},
    "model": BASE | {"codegen.isa", "emulator.log"},
    "autotune": BASE | {"compiler", "runtime", "model"},
    "viz": BASE | PICTURED,
    "lab": EVERYTHING,
    "cli": EVERYTHING,
    "utils": BASE | {"layout", "dialect", "expr"},
    "kernels": BASE | {"layout", "atoms", "expr", "compiler", "autotune"},
}

# Files that belong to a unit whose name they do not start with.
PART_OF = {"codegen.assembly": "codegen.isa"}

# What a unit may import inside a function only, and why.
MAY_IMPORT_LAZILY: dict[str, tuple[frozenset[str], str]] = {
    "*": (frozenset({"viz"}), "an object draws itself in a notebook"),
    "compiler": (frozenset({"passes", "codegen", "runtime"}), "a launch call drives the steps below and above it"),
    "runtime": (frozenset({"runtime.hip"}), "what launches on the chosen device"),
}

# Other people's packages: the units that may import each, and whether at module level too.
# `cli.examined` is what `flylab doctor` tries them with.
OUTSIDE: dict[str, tuple[frozenset[str], bool]] = {
    "mlir": (frozenset({"dialect", "expr", "compiler", "passes", "codegen", "runtime", "cli.examined"}), True),
    "llvmlite": (frozenset({"codegen", "emulator", "cli.examined"}), True),
    "rocm": (frozenset({"runtime.hip"}), False),
    "torch": (frozenset({"runtime.tensors", "cli.examined"}), False),
    "ziglang": (frozenset(), False),
    "tinygrad": (frozenset(), False),
}


@dataclass(frozen=True)
class Import:
    """One import: the full dotted name, its line, and whether it stands inside a function."""

    name: str
    line: int
    lazy: bool


def read_imports(text: str, package: str) -> list[Import]:
    """The imports of a module whose relative imports start at `package`, without those for type checkers alone.

    `from a import b` counts as `a.b`, which may be a module or a name in one.

    >>> read_imports("from ..layout import Layout", "flylab.viz")
    [Import(name='flylab.layout.Layout', line=1, lazy=False)]
    """
    found: list[Import] = []

    def visit(node: ast.AST, lazy: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for child in node.orelse:
                visit(child, lazy)
            return
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, lazy) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            start = ".".join([*parents, *([node.module] if node.module else [])])
            found.extend(Import(f"{start}.{alias.name}", node.lineno, lazy) for alias in node.names)
        inside = lazy or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(ast.parse(text), False)
    return found


def unit_of(module: str) -> str:
    """The unit of a dotted name below flylab: the longest name in the table that it starts with."""
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        name = ".".join(parts[:length])
        if name in MAY_IMPORT or name in PART_OF:
            return PART_OF.get(name, name)
    return ""


def violations(text: str, module: str, is_package: bool = False) -> list[str]:
    """What the imports of a module break, one sentence each; `module` is its dotted name below flylab."""
    package = f"flylab.{module}" if is_package else f"flylab.{module}".rpartition(".")[0]
    unit, broken = unit_of(module), []
    for found in read_imports(text, package):
        top, _, below = found.name.partition(".")
        if top == "flylab":
            if not _allowed(unit, unit_of(below), found.lazy):
                how = "" if found.lazy else " at module level"
                broken.append(f"{module}:{found.line}: {unit} imports {found.name}{how}")
        elif top in OUTSIDE:
            users, eager = OUTSIDE[top]
            if not any(module == user or module.startswith(user + ".") for user in users):
                broken.append(f"{module}:{found.line}: {unit} imports {top}")
            elif not (eager or found.lazy):
                broken.append(f"{module}:{found.line}: {top} must be imported inside a function")
    return broken


def _allowed(importer: str, imported: str, lazy: bool) -> bool:
    allowed = MAY_IMPORT[importer] | {importer}
    if lazy:
        for key in ("*", importer):
            allowed |= MAY_IMPORT_LAZILY.get(key, (frozenset[str](), ""))[0]
    return "*" in allowed or imported in allowed
