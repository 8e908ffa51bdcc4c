"""What is asked of the command line: parsers whose errors have a hint, and the error of a command that cannot be."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from flylab.errors import FlylabError

FAILED, MISUSED, INTERRUPTED, PIPE_CLOSED = 1, 2, 130, 141
"""Exit codes: something went wrong; the command is wrong; Ctrl-C; nobody reads the output any more (as of SIGPIPE)."""


class UsageError(FlylabError):
    """A command that asks for what cannot be: a file or kernel that is not there, an argument that does not fit."""


class Once(argparse.Action):
    """An option with a value, which is given once."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any,
                 option_string: str | None = None) -> None:
        before = getattr(namespace, self.dest, self.default)
        if option_string and before != self.default:
            raise UsageError(f"{option_string} is given twice: {before} and {values}", hint="give it once")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """argparse's parser, with whole names of options only, and errors that say where help is."""

    def __init__(self, *args: Any, **named: Any):
        named.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(*args, **{**named, "allow_abbrev": False})
        self.register("action", None, Once)
        self.rest = ""
        """Whose options follow `--`, for the command that takes some."""

    def error(self, message: str) -> NoReturn:
        """Raises `UsageError`."""
        hint = f"see {self.prog} --help"
        names = [word for word in message.split() if word.startswith("-")]
        if message.startswith("unrecognized arguments") and names:
            own = nearest(names[0].partition("=")[0], self.options())
            theirs = self.rest and f"{self.rest} options go after --"
            hint = " If not: ".join(filter(None, [own, theirs])) or hint
        elif "invalid choice: '" in message:
            word, known = message.split("'")[1], [name.strip("' )") for name in message.split("from ")[-1].split(",")]
            hint = nearest(word, known) or hint
        raise UsageError(f"{self.prog}: {message}", hint=hint)

    def options(self) -> list[str]:
        """The names of all options."""
        return [name for action in self._actions for name in action.option_strings]


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The question whether the word of `known` that is most like `word` was meant; None where none is like it.

    >>> nearest("complie", ["compile", "run"])
    "did you mean 'compile'?"
    """
    found = closest(word, known)
    return f"did you mean '{found}'?" if found else None


def closest(word: str, known: Iterable[str]) -> str | None:
    """The word of `known` that is most like `word`, whatever their case; None where none is like it."""
    names = {name.lower(): name for name in known}
    found = get_close_matches(word.lower(), names, 1)
    return names[found[0]] if found else None


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
