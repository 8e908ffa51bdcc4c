"""The checkers of the house rules: each takes a text and gives one sentence for each thing that breaks the rule."""

from __future__ import annotations

import ast
import io
import json
import re
import subprocess
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE_LINES, FUNCTION_LINES = 500, 60
UNFINISHED_WORDS = ("TO" + "DO", "FIX" + "ME", "X" * 3, "HA" + "CK")
UNFINISHED_ERROR = "NotImplemented" + "Error"
# Folders that are on one machine only, and the steering folder beside the repository.
FOREIGN_PATH = re.compile(r"(?<![\w.])(?:/(?:root|home|work|tmp|Users|mnt)/|C:\\Users\\)[\w.-]|\.\./" + "shared")
WIDGET_TYPES = ("application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def tracked(*patterns: str) -> list[Path]:
    """The files of the repository that git knows and that match one of the patterns; what is tried out beside them is
    nobody's business."""
    command = ["git", "-C", str(ROOT), "ls-files", "--", *patterns]
    names = subprocess.run(command, text=True, capture_output=True, check=True).stdout.split("\n")
    return sorted(ROOT / name for name in names if name and (ROOT / name).is_file())


def functions(text: str) -> Iterator[Function]:
    """Every function of a module, those inside classes and functions too."""
    return (node for node in ast.walk(ast.parse(text)) if isinstance(node, Function))


def too_long(text: str) -> list[str]:
    """The file and the functions that are longer than the house allows."""
    lines = text.count("\n")
    broken = [f"the file has {lines} lines, more than {FILE_LINES}"] if lines > FILE_LINES else []
    for node in functions(text):
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > FUNCTION_LINES:
            broken.append(f"line {node.lineno}: {node.name} has {length} lines, more than {FUNCTION_LINES}")
    return broken


def without_docstring(text: str) -> list[str]:
    """The module, and its public classes, functions and methods, that have no docstring.

    Left out: methods of one statement, whose name and return say it; overloads and setters, whose docstring stands
    elsewhere; and methods of a class with bases, which a base may describe.
    """
    tree = ast.parse(text)
    broken = [] if not tree.body or ast.get_docstring(tree) else ["the module has no docstring"]
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    members = [member for node in classes if not node.bases and _is_public(node.name) for member in node.body]
    methods = [member for member in members if isinstance(member, Function) and len(member.body) > 1]
    for node in [*tree.body, *methods]:
        if not isinstance(node, ast.ClassDef | Function) or not _is_public(node.name) or _is_repeated(node):
            continue
        if not ast.get_docstring(node):
            broken.append(f"line {node.lineno}: {node.name} has no docstring")
    return broken


def unfinished(text: str) -> list[str]:
    """Comments that put work off, and code that raises the error of what is not written."""
    broken = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and any(re.search(rf"\b{word}\b", token.string) for word in UNFINISHED_WORDS):
            broken.append(f"line {token.start[0]}: {token.string}")
        if token.type == tokenize.NAME and token.string == UNFINISHED_ERROR:
            broken.append(f"line {token.start[0]}: {token.string}")
    return broken


def locked_properties(text: str) -> list[str]:
    """Uses of Python's own cached property, which in Python 3.11 holds a lock: `flylab.locks` has one without."""
    nodes = ast.walk(ast.parse(text))
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "functools"]
    return [f"line {n.lineno}: cached_property of functools" for n in imports
            if any(alias.name == "cached_property" for alias in n.names)]


def foreign_paths(text: str) -> list[str]:
    """Paths of one machine, and any mention of the steering folder beside the repository."""
    lines = enumerate(text.splitlines(), 1)
    return [f"line {number}: {match.group()}" for number, line in lines for match in FOREIGN_PATH.finditer(line)]


def unclean_notebook(text: str) -> list[str]:
    """What a committed notebook must not carry: widget state, paths of a machine, errors, cells not run in order."""
    notebook = json.loads(text)
    broken = ["the notebook carries widget state"] if "widgets" in notebook["metadata"] else []
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code" and "".join(cell["source"]).strip()]
    if [cell["execution_count"] for cell in code] != list(range(1, len(code) + 1)):
        broken.append("the cells were not run in order, from the first to the last")
    for number, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", []):
            kinds = output.get("data", {})
            broken += [f"cell {number} carries a widget" for kind in WIDGET_TYPES if kind in kinds]
            if output["output_type"] == "error" and "raises-exception" not in cell["metadata"].get("tags", []):
                broken.append(f"cell {number} shows an error and has no tag raises-exception")
        broken += [f"cell {number}: {match.group()}" for match in FOREIGN_PATH.finditer(_words(cell))]
    return broken


def _words(cell: dict[str, object]) -> str:
    """The source and outputs of a cell, one string a line, pictures in base64 left out."""
    def strings(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield "".join(value) if all(isinstance(part, str) for part in value) else "\n".join(
                text for part in value for text in strings(part))
        elif isinstance(value, dict):
            for key, part in value.items():
                if key != "image/png":
                    yield from strings(part)

    return "\n".join(strings([cell["source"], cell.get("outputs", [])]))


def _is_public(name: str) -> bool:
    return not name.startswith("_")


def _is_repeated(node: ast.ClassDef | Function) -> bool:
    """Whether a decorator says that the docstring stands elsewhere: an overload, or a property's setter."""
    return any(re.search(r"overload$|\.setter$", ast.unparse(decorator)) for decorator in node.decorator_list)
