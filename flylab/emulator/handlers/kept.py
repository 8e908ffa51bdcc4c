"""Compiled handlers on disk: a folder for each version that makes them, and none that nobody has used for long.

A version is all that decides their code, but their keys: llvmlite's version, the processor, flylab's source. A process
marks the folder of its own as used; one that begins a new folder removes those that were used last a month ago.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import threading
import time
from functools import cache
from pathlib import Path

from flylab import cache_warnings, settings, whole_files
from flylab.errors import FlylabError

FOLDER = "handlers-"
UNUSED = 30 * 24 * 3600.0
"""Seconds after which the handlers of a version that no process used go."""


def directory() -> Path | None:
    """Where handlers are kept: `FLYLAB_EMULATOR_CACHE_DIR`, else `~/.flylab/cache/emulator`, or None without a home.

    Raises `FlylabError` where the variable names no folder.
    """
    try:
        return settings.EMULATOR_CACHE_DIR.value()
    except FlylabError:
        if settings.EMULATOR_CACHE_DIR.source:
            raise
        return None


class Kept:
    """The handlers of a version in a directory; `failed` says why one could not be kept."""

    def __init__(self, place: Path | None, version: str):
        self.place, self.failed = place, ""
        self._folder = place and place / (FOLDER + hashlib.sha256(version.encode()).hexdigest()[:16])
        with contextlib.suppress(OSError):  # of another user's, or not there yet
            if self._folder:
                os.utime(self._folder)

    def _path(self, digest: str) -> str:
        return f"{self._folder}/{digest[:2]}/{digest[2:40]}.o"

    def read(self, digest: str) -> bytes | None:
        """The object of a digest, or None where there is none or its checksum does not fit."""
        if not self._folder:
            return None
        try:
            with open(self._path(digest), "rb", buffering=0) as file:
                data = file.read()
        except OSError:
            return None
        return data[32:] if data[:32] == hashlib.sha256(data[32:]).digest() else None

    def write(self, digest: str, data: bytes) -> None:
        """Keeps an object. A full or read-only disk costs the next start some time, and a warning."""
        if not self._folder:
            return
        try:
            path = self._path(digest)
            is_new = not self._folder.is_dir()
            os.makedirs(os.path.dirname(path), exist_ok=True)
            whole_files.put(path, hashlib.sha256(data).digest() + data)
        except OSError as error:
            self.failed = cache_warnings.why(error)
            return
        if is_new:
            with contextlib.suppress(RuntimeError):  # Python is at its end, and starts no thread any more
                threading.Thread(target=sweep, args=(self.place,), name="flylab-sweep", daemon=True).start()

    def warn(self) -> None:
        """Tell of handlers that could not be kept, at the user's line."""
        if self.failed:
            cache_warnings.warn(
                f"handlers {self.place}",
                f"the software device's handlers: nothing can be kept in {self.place} ({self.failed}, see "
                f"{settings.EMULATOR_CACHE_DIR.names[0]}); each process compiles them anew")


@cache
def kept(place: Path | None, version: str) -> Kept:
    """That of this process."""
    return Kept(place, version)


def sweep(place: Path) -> None:
    """Remove the handlers of versions that were not used for long."""
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        for entry in entries:
            old = abs(time.time() - entry.stat(follow_symlinks=False).st_mtime) > UNUSED
            if entry.name.startswith(FOLDER) and entry.is_dir(follow_symlinks=False) and old:
                shutil.rmtree(entry.path, ignore_errors=True)
