"""Environment variables: one row each, read when they are needed.

`FLYLAB_` names win over their `FLYDSL_` aliases. An empty variable counts as one that is not set.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from flylab.errors import FlylabError

TRUE, FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


@dataclass(frozen=True)
class Setting:
    """A variable: its name without the prefix, its default, and what it does."""

    name: str
    default: str
    meaning: str

    @property
    def names(self) -> tuple[str, str]:
        """The variables that set it, the first of them first."""
        return "FLYLAB_" + self.name, "FLYDSL_" + self.name

    def text(self) -> str:
        """The value: of `FLYLAB_<name>`, else of `FLYDSL_<name>`, else the default."""
        return next((text for name in self.names if (text := os.environ.get(name))), self.default)

    def flag(self) -> bool:
        """The value as a yes or no. Raises `FlylabError` for a word that is neither."""
        value = self.text().lower()
        if value not in TRUE + FALSE:
            raise FlylabError(f"FLYLAB_{self.name}={value!r} is neither yes nor no", hint="use 1 or 0")
        return value in TRUE


DUMP_IR = Setting("DUMP_IR", "0", "write the IR after each step, and the ISA, of each compilation")
DUMP_DIR = Setting("DUMP_DIR", "flylab_dumps", "the folder for FLYLAB_DUMP_IR")
OPT_LEVEL = Setting("COMPILE_OPT_LEVEL", "2", "optimisation level of LLVM, 0 to 3")
PRINTF_BYTES = Setting("PRINTF_BYTES", str(256 << 20), "bytes of the buffer for what one launch of a kernel prints")
CHECK = Setting("CHECK", "auto", "what launches on the software device are checked for: auto (small ones), all, none")
CACHE_DIR = Setting("RUNTIME_CACHE_DIR", "~/.flylab/cache", "the folder where compilations are kept on disk")
ENABLE_CACHE = Setting("RUNTIME_ENABLE_CACHE", "1", "keep compilations on disk (those in memory are always kept)")
CACHE_BYTES = Setting("RUNTIME_CACHE_BYTES", str(512 << 20), "bytes that the compilations on disk may take in all")
DEVICE = Setting("DEVICE", "", "the device: hip, hip:1, emulated, emulated:gfx950")


def opt_level() -> int:
    """LLVM's optimisation level, 0 to 3. Raises `FlylabError` for anything else."""
    text = OPT_LEVEL.text()
    if text not in ("0", "1", "2", "3"):
        raise FlylabError(f"FLYLAB_COMPILE_OPT_LEVEL={text!r}", hint="use 0, 1, 2 or 3")
    return int(text)


def printf_bytes() -> int:
    """Bytes of the buffer for `fx.printf`. Raises `FlylabError` for what is no number of 64 or more."""
    text = PRINTF_BYTES.text()
    if not text.isdecimal() or not 64 <= int(text) < 1 << 48:
        raise FlylabError(f"FLYLAB_PRINTF_BYTES={text!r}", hint=f"use a number of bytes: {PRINTF_BYTES.default}")
    return int(text)
