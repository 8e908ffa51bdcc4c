"""`flylab run`: a script, or one launcher of a file on random inputs, and what each launch did."""

from __future__ import annotations

import argparse
import contextlib
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flylab.cli.arguments import SYNTAX, Make, assignments, tensor
from flylab.cli.chosen import choose
from flylab.cli.files import execute as execute_file
from flylab.cli.files import split
from flylab.cli.output import plain, print_json, say, say_error
from flylab.cli.usage import FAILED, Parser, UsageError, listed, nearest
from flylab.dtypes import DType
from flylab.errors import FlylabError
from flylab.places import of_traceback, user_part
from flylab.settings import CHECK, DEVICES, SMALL_LAUNCH

if TYPE_CHECKING:
    from flylab.runtime.device import Device
    from flylab.runtime.run import Run

HELP = "run a script on a chosen device, or one launcher on random inputs, and say what each launch did"
EPILOG = SYNTAX + """
flylab run script.py                                    as python script.py, then a line for each launch
flylab run script.py --device gfx950 --check all -- -n 8     the script gets what follows --
flylab run kernel.py:launch -a A,B=f32[1024] --counters      one launch on random inputs
"""


def add_arguments(parser: Parser) -> None:
    """The options of `flylab run`."""
    parser.rest = "a script's own"
    parser.add_argument("file", metavar="FILE[:LAUNCHER]", help="a Python file, and a launcher in it")
    parser.add_argument("args", nargs="*", metavar="ARG", default=[],
                        help="arguments of the script; options of it go after --")
    parser.add_argument("--device", type=device, help=f"{DEVICES} (default: as FLYLAB_DEVICE says)")
    parser.add_argument("--check", type=checks, metavar="CHECKS",
                        help=f"what launches on the software device are checked for: auto (everything, where they have "
                             f"at most {SMALL_LAUNCH:,} threads), all, none, or names: bounds,races (default: as "
                             "FLYLAB_CHECK says)")
    parser.add_argument("--counters", action="store_true", help="count what each line and instruction does")
    parser.add_argument("-a", "--arg", action="append", default=[], metavar="NAME=VALUE",
                        help="an argument of the launcher, as below")
    parser.add_argument("--seed", type=int, default=0, help="of the random inputs (default: 0)")
    parser.add_argument("--json", action="store_true",
                        help="print JSON, of errors too; what the script prints goes to the standard error")


def execute(options: argparse.Namespace) -> int:
    """Run; the exit code of the script, 1 where it or a launch raises."""
    import flylab

    path, name = split(options.file)
    if name is None and options.arg:
        raise UsageError("--arg goes to a launcher, and none is named", hint=f"flylab run {path}:LAUNCHER --arg ...")
    if name is not None and (options.args or options.rest):
        raise UsageError(f"{options.file} is a launcher, and takes no {' '.join(options.args + options.rest)}",
                         hint="give --arg NAME=VALUE")
    launches: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    quiet = contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext()
    with flylab.use(options.device), flylab.watch(options.check or "auto", options.counters), _noted(launches), quiet:
        if name is None:
            code = run_script(path, [*options.args, *options.rest], errors)
        else:
            code = run_launcher(options.file, assignments(options.arg), options.seed, errors)
    if options.json:
        print_json({"launches": launches, "errors": errors, "exit_code": code})
    else:
        sys.stdout.flush()
        for line in summary(launches):
            say(line) if name is None else print(line)
    return code


@contextlib.contextmanager
def _noted(launches: list[dict[str, Any]]) -> Iterator[None]:
    """Each launch of the block is described in the list."""
    from flylab.runtime.run import observers

    def note(run: Run, stopped: str | None) -> None:
        launches.extend(described(run, report) for report in run.reports)
        if stopped is not None:
            launches.append({**_launched(run, stopped), "stopped": True,
                             "text": f"{run.device}: {stopped}: stopped by an error"})

    observers.append(note)
    try:
        yield
    finally:
        observers.remove(note)


def device(text: str) -> Device:
    """What --device names. Raises `UsageError` for what names no device, `DeviceError` for one that is not there."""
    from flylab.runtime.device import parse

    try:
        return parse(text)
    except FlylabError as error:
        if type(error) is FlylabError:
            raise UsageError(f"--device {text}: {error.message}", hint=error.hint) from None
        error.hint = (error.hint or "").replace('flylab.use("emulated")', "--device emulated") or None
        raise


def checks(text: str) -> str | tuple[str, ...]:
    """What `flylab.watch(check=)` takes, from the text of --check. Raises `UsageError` for what is no check.

    >>> checks("all"), checks("bounds,races")
    ('all', ('bounds', 'races'))
    """
    from flylab.emulator.watch import CHECKS

    if text in ("auto", "all", "none"):
        return text
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in CHECKS:
            raise UsageError(f"--check {text}: no check is called {name!r}",
                             hint=nearest(name, CHECKS) or f"give auto, all, none, or names: {', '.join(CHECKS)}")
    return names


def run_script(path: Path, arguments: list[str], errors: list[dict[str, Any]]) -> int:
    """Run a file as `python FILE ARGS` does; its exit code."""
    sys.argv = [str(path), *arguments]
    return _guarded(lambda: execute_file(path, "__main__"), errors)


def run_launcher(file: str, given: dict[str, str], seed: int, errors: list[dict[str, Any]]) -> int:
    """Launch one launcher once, its tensors filled with random numbers."""
    from flylab.runtime.device import current

    (chosen, *others) = choose(file, given)
    if others or chosen.kernel is not None:
        raise UsageError(f"{file} names a kernel", hint=f"name what launches it: {chosen.name}")
    arguments = chosen.arguments(current().target, random_tensors(seed))
    return _guarded(lambda: chosen.launcher(**arguments), errors)


def random_tensors(seed: int) -> Make:
    """What makes tensors of random numbers: floats of the normal distribution, integers from 0 to 15."""
    import numpy

    random = numpy.random.default_rng(seed)

    def make(name: str, dtype: DType, shape: Sequence[int], strides: Sequence[int] | None = None) -> Any:
        array = tensor(name, dtype, shape, strides)
        numbers: Any = random.standard_normal(shape) if dtype.is_float else random.integers(0, 16, shape)
        array[...] = numbers.astype(array.dtype)
        return array

    return make


def _guarded(function: Any, errors: list[dict[str, Any]]) -> int:
    """Call it; its exit code. An error of flylab is said as a sentence, another one with the user's lines of it.

    What was said is put among the errors, as plain data.
    """
    try:
        function()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        say(str(end.code))
        errors.append(plain(end))
        return FAILED
    except FlylabError as error:
        say_error(error.at(of_traceback(error.__traceback__)))
        errors.append(plain(error))
        return FAILED
    except BrokenPipeError:
        raise
    except Exception as error:
        sys.stdout.flush()
        traceback.print_exception(error.with_traceback(user_part(error.__traceback__)))
        errors.append(plain(error))
        return FAILED
    return 0


def _launched(run: Run, kernel: str | None) -> dict[str, Any]:
    return {"device": str(run.device), "launcher": run.compiled.launcher.name, "kernel": kernel}


def described(run: Run, report: Any) -> dict[str, Any]:
    """What one kernel of a launch did, as plain data; `text` is a line, or several where it was counted.

    `checked` are the checks by name; None on a GPU, which has none.
    """
    counters = getattr(report, "counters", None)
    checked = getattr(report, "checks", None)
    figures = {name: getattr(report, name) for name in ("workgroups", "waves", "instructions", "clamped")
               if hasattr(report, name)}
    said = "" if checked is None else f", {_checked(checked, report.threads)}"
    return {**_launched(run, getattr(report, "kernel", None)), **figures, "stopped": False,
            "checked": None if checked is None else list(checked),
            "counters": asdict(counters.totals) if counters is not None else None,
            "text": f"{run.device}: {report}{said}" + (f"\n{counters}" if counters is not None else "")}


def _checked(names: Sequence[str], threads: int) -> str:
    """What a launch of so many threads was checked for, in words."""
    from flylab.emulator.watch import AUTO, CHECKS
    from flylab.runtime.watching import asked

    if len(names) == len(CHECKS):
        return "checked"
    if names:
        return f"checked for {listed(names)}"
    by_itself = asked().check == AUTO == CHECK.value()
    return f"not checked ({threads:,} threads; --check all)" if by_itself else "not checked"


def summary(launches: list[dict[str, Any]]) -> Iterator[str]:
    """A text for each launch; those that did the same are one, with their number."""
    times: dict[str, int] = {}
    for launch in launches:
        times[launch["text"]] = times.get(launch["text"], 0) + 1
    for text, count in times.items():
        first, newline, more = text.partition("\n")
        yield first + (f", {count} times" if count > 1 else "") + newline + more
    if not launches:
        yield "nothing was launched"
