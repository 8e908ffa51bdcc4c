"""`flylab compile`: the launchers of a file to IR, ISA and code objects, and what each kernel takes of a chip."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flylab.cli.arguments import SYNTAX, assignments
from flylab.cli.chosen import EXAMPLES, Chosen, choose
from flylab.cli.output import plain, print_json, say_error, table
from flylab.cli.usage import FAILED, UsageError, listed
from flylab.errors import FlylabError
from flylab.places import SourceLine
from flylab.settings import DEBUG_INFO
from flylab.targets import TARGETS, Target, target

HELP = "compile the kernels of a Python file, and say what they take: registers, LDS, spills, occupancy"
EPILOG = SYNTAX + f"""
A file can say itself what its launchers are called with, so that `flylab compile FILE` is enough:
  def {EXAMPLES}():
      return {{"launch": {{"A,B": "f32[1024]", "n": 1024, "how": "fast"}}}}
Its texts are read as those of -a: "n": "4" is the number 4, and "how": "fast" a text where the launcher says
fx.Constexpr[str], else a name of the file.

FILE is run for what it defines, without what stands under if __name__ == "__main__". What it prints goes to the
standard error.

flylab compile kernel.py -a A,B=f32[1024]               a table, for both chips
flylab compile kernel.py --json                         for a script; ends with 1 where something does not compile
flylab compile kernel.py:launch -a A=f32[64] --arch gfx950 --emit isa
flylab compile kernel.py --emit all -o out              every text and object of both chips, into a folder
"""


@dataclass(frozen=True)
class Form:
    """One thing that a compilation can be written as: the end of the file's name, and how it is made."""

    suffix: str
    make: Callable[[Any], str | bytes]
    comment: str = ""
    """How a line of comment begins; "" where the form is no text."""


FORMS = {
    "ir": Form(".mlir", lambda compiled: str(compiled.show("ir")) + "\n", "//"),
    "passes": Form(".passes.mlir", lambda compiled: str(compiled.show("passes")) + "\n", "//"),
    "llvm": Form(".ll", lambda compiled: compiled.llvm, ";"),
    "isa": Form(".s", lambda compiled: compiled.isa.text, ";"),
    "object": Form(".o", lambda compiled: compiled.object_code),
    "hsaco": Form(".hsaco", lambda compiled: compiled.hsaco),
}
RESOURCES = ("vgprs", "agprs", "sgprs", "lds_bytes", "scratch_bytes", "spills")
HEADING = ("kernel", "launcher", "chip", "instructions", "bytes", "VGPRs", "AccVGPRs", "SGPRs", "LDS", "scratch",
           "spills", "waves/SIMD", "limited by")


@dataclass
class Result:
    """What became of one launcher on one chip."""

    chosen: Chosen
    chip: Target
    compiled: Any = None
    errors: list[FlylabError] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)

    def kernels(self) -> list[Any]:
        """The kernels that are asked for, as listings."""
        wanted = self.chosen.kernel
        return [isa for symbol, isa in self.compiled.isa.kernels.items()
                if wanted is None or self.compiled.functions[symbol] is wanted] if self.compiled else []


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `flylab compile`."""
    parser.add_argument("file", metavar="FILE[:NAME]", help="a Python file, and a launcher or kernel in it")
    parser.add_argument("-a", "--arg", action="append", default=[], metavar="NAME=VALUE",
                        help="an argument of the launcher, as below")
    parser.add_argument("--arch", action="append", type=arch, metavar="CHIP",
                        help=f"the chip, {', '.join(TARGETS)} or all; may be given twice (default: both, and the "
                             "current device's for a text on the standard output)")
    parser.add_argument("--emit", choices=[*FORMS, "all"],
                        help="what to write beside the table, or instead of it. An object has the lines of Python; a "
                             f"hsaco has them where {DEBUG_INFO.names[0]}=1")
    parser.add_argument("-o", "--output", metavar="FOLDER", help="the folder to write to; - is the standard output")
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table, of errors too")


def arch(text: str) -> str:
    """A chip of --arch, or "all". Raises `UsageError` for what is none."""
    try:
        return text if text == "all" else target(text).arch
    except FlylabError as error:
        raise UsageError(f"--arch {text}: {error.message}", hint=error.hint) from None


def execute(options: argparse.Namespace) -> int:
    """Compile; 1 where something does not compile or cannot be written."""
    _check(options)
    to_output = options.emit and not options.json and options.output in (None, "-")
    with contextlib.redirect_stdout(sys.stderr):  # what the file prints is not what is asked for
        found = choose(options.file, assignments(options.arg))
        results = list(compiled(found, chips_of(options.arch, bool(to_output))))
    for result in results:
        if result.compiled and to_output:
            write_out(result, options.emit, alone=len(results) == 1)
        elif result.compiled and options.emit:
            write_files(result, options.emit, Path(options.output))
    if options.json:
        print_json({"kernels": [row for result in results for row in described(result)],
                    "errors": [failure(result, error) for result in results for error in result.errors]})
    else:
        report(results, with_table=not to_output)
    return FAILED if any(result.errors for result in results) else 0


def _check(options: argparse.Namespace) -> None:
    """Raises `UsageError` for options that do not go together."""
    if options.rest:
        raise UsageError(f"flylab compile takes nothing after --: {' '.join(options.rest)}", hint="leave it out")
    if options.output and not options.emit:
        raise UsageError("-o says where to write, and nothing is to be written", hint="say what: --emit all")
    if options.output not in (None, "-") and os.path.exists(options.output) and not os.path.isdir(options.output):
        raise UsageError(f"-o {options.output}: this is a file", hint="name a folder: -o out")
    form = FORMS.get(options.emit)
    if options.emit and options.output in (None, "-"):
        if options.json:
            raise UsageError("--json and --emit both want the standard output", hint="give -o FOLDER to write to")
        if form is None or not form.comment and options.output is None:
            raise UsageError(f"--emit {options.emit} writes files", hint="give -o FOLDER to write to")
        if not form.comment and sys.stdout.isatty():
            raise UsageError(f"--emit {options.emit} -o - writes bytes, and this is a terminal",
                             hint="give -o FOLDER, or redirect the output")


def chips_of(asked: Sequence[str] | None, one: bool) -> list[Target]:
    """The chips to compile for."""
    if asked:
        names = list(TARGETS) if "all" in asked else list(dict.fromkeys(asked))
        return [target(name) for name in names]
    if one:
        from flylab.runtime.device import current

        return [current().target]
    return list(TARGETS.values())


def compiled(found: Sequence[Chosen], chips: Sequence[Target]) -> Iterator[Result]:
    """The compilation of each launcher for each chip, or why there is none."""
    import flylab
    import flylab.compiler as flyc
    from flylab.places import of_traceback

    for chosen in found:
        for chip in chips:
            result = Result(chosen, chip)
            arguments = chosen.arguments(chip)
            try:
                with flylab.use(f"emulated:{chip}"):
                    result.compiled = flyc.compile(chosen.launcher, **arguments)
                    assert result.compiled.isa
            except FlylabError as error:
                result.errors.append(error.at(of_traceback(error.__traceback__)))
            except Exception as error:
                where = of_traceback(error.__traceback__)
                raised = FlylabError(f"{_raiser(chosen, where)} raises {type(error).__name__}: {error}", where=where)
                result.errors.append(raised)
            yield result


def _raiser(chosen: Chosen, where: SourceLine | None) -> str:
    """What raised, for a sentence: a kernel, a function that the launcher calls, or the launcher."""
    from flylab.compiler.kernel import Kernel

    name = where.function if where else None
    if name is None or name == chosen.launcher.function.__name__:
        return f"launcher '{chosen.name}'"
    return f"kernel '{name}'" if isinstance(chosen.names.get(name), Kernel) else f"'{name}'"


def write_out(result: Result, emit: str, alone: bool) -> None:
    """Write one form to the standard output; texts have a line of comment between them."""
    form = FORMS[emit]
    made = form.make(result.compiled)
    if isinstance(made, bytes):
        if not alone:
            raise UsageError("several code objects cannot be told apart on the standard output",
                             hint="give one --arch and FILE:NAME, or -o FOLDER")
        sys.stdout.buffer.write(made)
        return
    if not alone:
        print(f"{form.comment} ===== {result.chosen.name} for {result.chip} =====")
    sys.stdout.write(made)


def write_files(result: Result, emit: str, folder: Path) -> None:
    """Write one form, or all, below a folder. What cannot be made or written is an error of the result."""
    for name in FORMS if emit == "all" else [emit]:
        path = folder / f"{result.chosen.name}.{result.chip}{FORMS[name].suffix}"
        try:
            made = FORMS[name].make(result.compiled)
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(made.encode() if isinstance(made, str) else made)
        except FlylabError as error:
            result.errors.append(error)
        except OSError as error:
            result.errors.append(FlylabError(f"{path} cannot be written: {error}", hint="give another folder: -o"))
            return
        else:
            result.files[name] = str(path)


def report(results: Sequence[Result], with_table: bool) -> None:
    """Print the table and the files, and say the errors."""
    rows = [[isa.name, result.chosen.name, result.chip.arch, len(isa.instructions), isa.size,
             *(getattr(isa, name) for name in RESOURCES), isa.occupancy.waves_per_simd, isa.occupancy.limiter]
            for result in results for isa in result.kernels()]
    if with_table and rows:
        print(table(rows, HEADING, right=range(3, len(HEADING) - 1)))
    for result in results:
        for path in result.files.values():
            print(f"wrote {path}")
    sys.stdout.flush()
    for error in _merged(results):
        say_error(error)


def _merged(results: Sequence[Result]) -> Iterator[FlylabError]:
    """The errors, each with its launcher and the chips that it is the same for."""
    chips: dict[tuple[str, str], list[str]] = {}
    errors: dict[tuple[str, str], FlylabError] = {}
    for result in results:
        for error in result.errors:
            key = result.chosen.name, str(error)
            errors.setdefault(key, error)
            chips.setdefault(key, []).append(result.chip.arch)
    for key, error in errors.items():
        error.message = f"{key[0]} for {listed(chips[key])}: {error.message}"
        yield error


def described(result: Result) -> Iterator[dict[str, Any]]:
    """Each kernel of a result as plain data; sizes in bytes."""
    for isa in result.kernels():
        occupancy = isa.occupancy
        yield {"kernel": isa.name, "launcher": result.chosen.name, "chip": result.chip.arch,
               "instructions": len(isa.instructions), "code_bytes": isa.size,
               **{name: getattr(isa, name) for name in RESOURCES},
               "kernarg_bytes": isa.kernarg_size, "max_workgroup": isa.max_workgroup,
               "occupancy": {"waves_per_simd": occupancy.waves_per_simd, "limiter": occupancy.limiter},
               "files": result.files}


def failure(result: Result, error: FlylabError) -> dict[str, Any]:
    """An error of a result as plain data."""
    return {"launcher": result.chosen.name, "chip": result.chip.arch, **plain(error)}
