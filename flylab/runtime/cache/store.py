"""Files of the disk cache: written whole or not at all, checked when they are read, no more of them than fit.

A file's name is a digest of all that its contents depend on, so that what is there is right, or damaged. Whatever is
wrong with a folder costs the time of compiling, a warning, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from flylab import cache_warnings, settings, whole_files
from flylab.locks import cached_property
from flylab.runtime.cache.file_lock import locked

MAGIC = b"flylab compilation, format 1\n"
"""How a file begins. Another format has another number."""
_FORMAT = re.compile(rb"flylab compilation, format \d+\n")
DIGEST = 32
LOCKS = 256
"""How many files there are for locks; a key has one of them."""
WAIT = 60.0
"""Seconds to wait for another process that compiles the same."""
STALE = 3600.0
"""Seconds after which a file that was never finished was left by a process that ended in the middle of it."""
MOST_LOG = 1 << 20
"""Bytes of the log, of which the older half goes where there are more."""


@dataclass(frozen=True)
class Store:
    """A folder of files by name, `most` bytes of them in all."""

    folder: Path
    most: int

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none, or none that can be used, of which a warning tells."""
        path = self._path(name)
        try:
            with open(path, "rb", buffering=0) as file:
                status = os.fstat(file.fileno())
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):  # writing tells of a folder that is none
            return None
        except OSError as error:
            kind = "folder" if isinstance(error, PermissionError) else "read"
            self._warn(kind, f"{path} cannot be read ({cache_warnings.why(error)})")
            return None
        start = len(MAGIC) + DIGEST
        if data[: len(MAGIC)] != MAGIC and _FORMAT.match(data):
            self._warn("damaged", f"{path} is of another format")
        elif data[: len(MAGIC)] != MAGIC or hashlib.sha256(data[start:]).digest() != data[len(MAGIC) : start]:
            self._warn("damaged", f"{path} is damaged")
        else:
            if time.time() - status.st_mtime > 60:
                with contextlib.suppress(OSError):  # of another user's: its owner's use decides how long it stays
                    os.utime(path)
            return data[start:]
        return None

    def write(self, name: str, data: bytes) -> bool:
        """Put a file there, at once and whole; whether that went well. Where not, a warning tells why."""
        if not self.fits(data):
            if self.most:  # 0 asks for it
                self._warn("large", f"a compilation has {len(data)} bytes, and all of them may have {self.most} "
                           f"({settings.CACHE_BYTES.names[0]})")
            return False
        path = self._path(name)
        try:
            self._make(os.path.dirname(path))
            whole_files.put(path, MAGIC + hashlib.sha256(data).digest() + data)
        except OSError as error:
            self._warn("folder", f"nothing can be kept in {self.folder} ({cache_warnings.why(error)})")
            return False
        self._room.grown(len(data))
        return True

    def fits(self, data: bytes) -> bool:
        """Whether a file of this may be there at all."""
        return len(data) <= self.most

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[bool]:
        """One process at a time for a name, as far as the system can lock; whether it waited for another."""
        slot = int(hashlib.sha256(name.encode()).hexdigest(), 16) % LOCKS
        try:
            self._make(folder := f"{self.folder}/locks")
        except OSError:
            yield False
            return
        with locked(f"{folder}/{slot:02x}", WAIT) as waited:
            yield waited

    def note(self, line: str) -> None:
        """Add a line to the log of what was compiled: the time and the process are put before it."""
        path = f"{self.folder}/compiled.log"
        text = f"{time.strftime('%Y-%m-%dT%H:%M:%S')} {os.getpid()} {line}\n".encode()
        with contextlib.suppress(OSError):
            file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
            try:
                os.write(file, text)  # one write at the end of a file is one line, whoever else writes
            finally:
                os.close(file)

    def log(self) -> list[list[str]]:
        """The lines of the log, in words: the time, the process, and what was noted."""
        try:
            text = (self.folder / "compiled.log").read_text("utf-8", "replace")
        except OSError:
            return []
        return [line.split() for line in text.splitlines()]

    def files(self) -> list[tuple[float, int, str]]:
        """Every file that is kept: when it was used last, its bytes, its path."""
        found, now = [], time.time()
        for path, status in _below(f"{self.folder}/kept"):
            if not path.endswith(".partial"):
                found.append((min(status.st_mtime, now), status.st_size, path))
            elif abs(now - status.st_mtime) > STALE:
                _remove(path)
        return found

    def sweep(self) -> None:
        """Remove what was used least recently, until nine tenths of what may be there are; and what was left behind."""
        files = sorted(self.files())
        size = sum(each[1] for each in files)
        goal = self.most if size <= self.most else self.most * 9 // 10
        for _, nbytes, path in files:
            if size <= goal:
                break
            size -= nbytes
            _remove(path)
        log = self.folder / "compiled.log"
        with contextlib.suppress(OSError):
            if log.stat().st_size > MOST_LOG:
                lines = log.read_bytes().splitlines(keepends=True)
                whole_files.put(str(log), b"".join(lines[len(lines) // 2 :]))

    def _path(self, name: str) -> str:
        return f"{self.folder}/kept/{name[:2]}/{name}"

    def _make(self, folder: str) -> None:
        if not os.path.isdir(folder):
            if not self.folder.is_dir():
                self.folder.mkdir(0o700, parents=True, exist_ok=True)
            os.makedirs(folder, exist_ok=True)

    def warn_damaged(self, name: str, why: str) -> None:
        """Tell of a file whose bytes are whole, and cannot be understood."""
        self._warn("damaged", f"{self._path(name)} is damaged ({why})")

    def _warn(self, kind: str, what: str) -> None:
        """One warning of a kind in a process: a folder that is full is not told of for each kernel."""
        rest = {"damaged": "it is compiled anew, and written again", "large": "what is larger is not kept"}
        cache_warnings.warn(f"{kind} {self.folder}",
                            f"the cache on disk: {what}; {rest.get(kind, 'flylab goes on without')}")

    @cached_property
    def _room(self) -> Room:
        return Room(self)


class Room:
    """When a store is swept: once soon after a process begins to write, then each time that much was written."""

    def __init__(self, store: Store):
        self.store = store
        self.written = store.most
        self.thread: threading.Thread | None = None

    def grown(self, nbytes: int) -> None:
        """So many bytes more. Sweeping goes on behind what called: nothing is lost where the process ends first."""
        self.written += nbytes
        if self.written > self.store.most // 16:
            self.written = 0
            self.thread = threading.Thread(target=self.store.sweep, name="flylab-sweep", daemon=True)
            with contextlib.suppress(RuntimeError):  # Python is at its end, and starts no thread any more
                self.thread.start()


def _below(folder: str) -> Iterator[tuple[str, os.stat_result]]:
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):  # another process may remove it
                    status = entry.stat(follow_symlinks=False)
                    if stat.S_ISDIR(status.st_mode):
                        yield from _below(entry.path)
                    elif stat.S_ISREG(status.st_mode):
                        yield entry.path, status
    except OSError:
        return


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)
