"""The program `flylab`: finds the command, and turns whatever goes wrong into a sentence and an exit code."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import Any

import flylab
from flylab.cli import compile, doctor, env, lab, output, run
from flylab.cli.usage import FAILED, INTERRUPTED, MISUSED, PIPE_CLOSED, Parser, UsageError
from flylab.errors import FlylabError

COMMANDS = (doctor, lab, compile, run, env)
EPILOG = """\
flylab doctor                                           what is here, what is missing, and the command that brings it
flylab compile kernel.py -a A,B=f32[1024] -a n=1024     registers and occupancy on both chips
flylab run script.py --check all                        run it on the software device, and look for races

exit codes: 0 done, 1 something went wrong, 2 the command is wrong, 130 Ctrl-C, 141 nobody reads the output
"""


def parser() -> Parser:
    """The parser of the whole command line; a command's `execute` is in what it gives."""
    made = Parser(prog="flylab", description=flylab.__doc__.splitlines()[0] if flylab.__doc__ else None, epilog=EPILOG)
    made.add_argument("--version", action="version", version=f"flylab {flylab.__version__}")
    commands = made.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        name = command.__name__.rpartition(".")[2]
        sub = commands.add_parser(name, help=command.HELP, description=command.HELP, epilog=command.EPILOG)
        command.add_arguments(sub)
        if sub.rest:
            sub.usage = f"{sub.format_usage().removeprefix('usage: ').rstrip()} [-- OPTIONS]"
        sub.set_defaults(execute=command.execute, parser=sub)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. What goes wrong is said on the standard error, and nothing is raised."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        has_output = output.prepare()
        code = _dispatch(given)
        sys.stdout.flush()
        if not has_output and code == 0:
            raise UsageError("the standard output is closed", hint="send it to /dev/null where nobody reads it")
        return code
    except BrokenPipeError:
        output.discard()
        return PIPE_CLOSED
    except KeyboardInterrupt:
        output.say("interrupted")
        return INTERRUPTED
    except FlylabError as error:
        output.say_error(error)
        code = MISUSED if isinstance(error, UsageError) else FAILED
        if "--json" in itertools.takewhile(lambda word: word != "--", given):
            output.print_json({"errors": [output.plain(error)], "exit_code": code})
        return code
    except OSError as error:  # of the standard output: commands turn those of files into sentences
        output.say_error(FlylabError(f"the output cannot be written: {error}"))
        output.discard()
        return FAILED


def _dispatch(arguments: list[str]) -> int:
    """Parse, and run the command. What follows `--` is not flylab's: it goes on as `rest`."""
    ours, rest = arguments, []
    if "--" in arguments:
        at = arguments.index("--")
        ours, rest = arguments[:at], arguments[at + 1:]
    try:
        options: Any
        options, unknown = parser().parse_known_args(ours)
    except SystemExit as end:  # --help and --version
        return int(end.code or 0)
    if hasattr(options, "args") and not any(word.startswith("-") for word in unknown):
        options.args = [*options.args, *unknown]  # argparse takes words before the first option alone
    elif unknown:
        options.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    options.rest = rest
    code: int = options.execute(options)
    return code
