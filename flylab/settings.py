"""Environment variables: one row each, read when they are needed; nothing else in flylab reads the environment.

`FLYLAB_` names win over their `FLYDSL_` aliases. An empty variable counts as one that is not set.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from flylab.errors import FlylabError

PREFIX, ALIAS = "FLYLAB_", "FLYDSL_"
TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")
T = TypeVar("T")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """What a variable may hold. `read` makes the value of a text, and raises `ValueError` where it is none.

    `name` is a word for tables; an error says `wrong` of the text, and `hint`.
    """

    name: str
    read: Callable[[str], T]
    wrong: str
    hint: str


def _flag(text: str) -> bool:
    if text.lower() not in TRUE + FALSE:
        raise ValueError(text)
    return text.lower() in TRUE


def number(low: int, high: int, what: str) -> Kind[int]:
    """The kind of whole numbers from `low` to `high`, digits alone; `what` says of what.

    >>> number(0, 3, "a level").read("2")
    2
    """
    def read(text: str) -> int:
        if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
            raise ValueError(text)
        return int(text)

    return Kind("number", read, f"is no number from {low} to {high}", f"use {what} from {low} to {high}")


_UNITS = "KMGT"
_SIZE = re.compile(rf"([0-9]+)(?:([{_UNITS}])(?:i?B)?)?", re.IGNORECASE)


def size(low: int, high: int) -> Kind[int]:
    """The kind of numbers of bytes from `low` to `high`: digits, and K, M, G or T for a power of 1024.

    >>> size(0, 1 << 40).read("512M"), size(0, 1 << 40).read("1gib")
    (536870912, 1073741824)
    """
    def read(text: str) -> int:
        found = _SIZE.fullmatch(text)
        if found is None:
            raise ValueError(text)
        number, unit = found.groups()
        nbytes = int(number) << (10 * (1 + _UNITS.index(unit.upper())) if unit else 0)
        if not low <= nbytes <= high:
            raise ValueError(text)
        return nbytes

    return Kind("bytes", read, f"is no number of bytes from {low} to {high}", "use a number of bytes: 4096, 512M or 2G")


def choice(*words: str) -> Kind[str]:
    """The kind of one of some words.

    >>> choice("auto", "none").hint
    'use auto or none'
    """
    def read(text: str) -> str:
        if text not in words:
            raise ValueError(text)
        return text

    listed = ", ".join(words[:-1]) + f" or {words[-1]}"
    return Kind("choice", read, f"is none of {', '.join(words)}", f"use {listed}")


def _folder(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise ValueError(text) from None


FLAG = Kind("flag", _flag, "is neither yes nor no", "use 1 or 0")
FOLDER = Kind("folder", _folder, "needs a home folder, and this user has none", "name a folder by its whole path")
TEXT = Kind("text", str, "", "")


@dataclass(frozen=True)
class Setting(Generic[T]):
    """A variable: its name without the prefix, its default as a text, its kind, and what it does.

    One that is `foreign` is shared with other programs: its name has no prefix, and no alias. `unset` says what holds
    where neither it nor a default is.
    """

    name: str
    default: str
    kind: Kind[T]
    meaning: str
    foreign: bool = False
    unset: str = ""
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    """The variables that set it, the first of them first."""

    def __post_init__(self) -> None:
        names = (self.name,) if self.foreign else (PREFIX + self.name, ALIAS + self.name)
        object.__setattr__(self, "names", names)

    @property
    def source(self) -> str | None:
        """The variable that gives the value; None where the default holds."""
        return next((name for name in self.names if os.environ.get(name)), None)

    @property
    def given(self) -> str | None:
        """What the environment has under its first name, an empty text too; None where it has nothing."""
        return os.environ.get(self.names[0])

    def hidden(self) -> list[str]:
        """The variables that are set and that another one wins over."""
        return [name for name in self.names if os.environ.get(name)][1:]

    def text(self) -> str:
        """The value as a text: of `FLYLAB_<name>`, else of `FLYDSL_<name>`, else the default."""
        return next((text for name in self.names if (text := os.environ.get(name))), self.default)

    def value(self) -> T:
        """The value. Raises `FlylabError`, naming the variable that was set, for a text that is none of its kind."""
        text = self.text()
        try:
            return self.kind.read(text)
        except ValueError:
            name = self.source or self.names[0]
            raise FlylabError(f"{name}={text!r} {self.kind.wrong}", hint=self.kind.hint) from None


SMALL_LAUNCH = 1 << 16
"""Threads up to which a launch on the software device is checked by itself."""
DEVICES = "emulated, emulated:gfx950, gfx950, hip, hip:1"
"""How a device is named."""
DEVICE = Setting("DEVICE", "", TEXT, f"the device: {DEVICES}", unset="as ARCH says")
ARCH = Setting("ARCH", "", TEXT, "the chip of the software device where nothing else names one: gfx942, gfx950",
               foreign=True, unset="an attached GPU, else gfx942")
OPT_LEVEL = Setting("COMPILE_OPT_LEVEL", "2", number(0, 3, "a level"), "LLVM's optimisation level, 0 to 3")
DEBUG_INFO = Setting("DEBUG_ENABLE_DEBUG_INFO", "0", FLAG,
                     "leave the lines of Python in loadable code objects (.hsaco), for profilers and debuggers")
DUMP_IR = Setting("DUMP_IR", "0", FLAG, "write the IR after each step, and the ISA, of each compilation to a folder")
DUMP_DIR = Setting("DUMP_DIR", "flylab_dumps", FOLDER, "the folder of FLYLAB_DUMP_IR, with one for each launcher")
ENABLE_CACHE = Setting("RUNTIME_ENABLE_CACHE", "1", FLAG,
                       "keep compilations on disk (those of this process are kept in memory all the same)")
CACHE_DIR = Setting("RUNTIME_CACHE_DIR", "~/.flylab/cache", FOLDER, "the folder where compilations are kept on disk")
CACHE_BYTES = Setting("RUNTIME_CACHE_BYTES", str(512 << 20), size(0, 1 << 62),
                      "bytes that the compilations on disk may take in all")
CHECK = Setting("CHECK", "auto", choice("auto", "all", "none"),
                "what launches on the software device are checked for: auto (everything, where they have at most "
                f"{SMALL_LAUNCH:,} threads), all, none")
EMULATOR_CACHE_DIR = Setting("EMULATOR_CACHE_DIR", "~/.flylab/cache/emulator", FOLDER,
                             "where the software device keeps its compiled handlers")
EMULATOR_THREADS = Setting("EMULATOR_THREADS", "", number(1, 1 << 16, "a number of threads"),
                           "how many threads run workgroups on the software device", unset="the cores")
PRINTF_BYTES = Setting("PRINTF_BYTES", str(256 << 20), size(64, (1 << 48) - 1),
                       "bytes for the lines that one launch of a kernel prints")
ROCM_PATH = Setting("ROCM_PATH", "", FOLDER, "where ROCm is: its HIP library and its lld", foreign=True,
                    unset="/opt/rocm")
HIP_PATH = Setting("HIP_PATH", "", FOLDER, "another place where ROCm's lld may be", foreign=True, unset="none")
HIP_VISIBLE = Setting("HIP_VISIBLE_DEVICES", "", TEXT, "the GPUs that HIP shows, as it numbers them: 0,2", foreign=True,
                      unset="all")
LIBRARY_PATH = Setting("LD_LIBRARY_PATH", "", TEXT, "folders where HIP's library may be, beside ROCm's own",
                       foreign=True, unset="none")
NO_COLOR = Setting("NO_COLOR", "", TEXT, "where set, the command line prints without colours", foreign=True,
                   unset="colours on a terminal")

ALL: tuple[Setting[object], ...] = tuple(row for row in list(globals().values()) if isinstance(row, Setting))
"""Every variable, in the order of the rows."""


def known() -> list[str]:
    """The names of all variables, aliases too."""
    return [name for row in ALL for name in row.names]


def unknown() -> list[str]:
    """The variables of the environment that begin as flylab's do, and are none of them."""
    return sorted(name for name in os.environ if name.startswith((PREFIX, ALIAS)) and name not in known())


def meant(name: str) -> str | None:
    """The variable that an unknown one may stand for; None where none is like it. Prefixes make nothing alike.

    >>> meant("FLYLAB_CHEK"), meant("FLYDSL_ARCH"), meant("FLYLAB_VERBOSE")
    ('FLYLAB_CHECK', 'ARCH', None)
    """
    from difflib import get_close_matches

    prefix = next(each for each in (PREFIX, ALIAS) if name.startswith(each))
    rest = name.removeprefix(prefix).upper()
    if any(row.foreign and row.name == rest for row in ALL):
        return rest
    found = get_close_matches(rest, [row.name for row in ALL if not row.foreign], 1, 0.75)
    return prefix + found[0] if found else None
