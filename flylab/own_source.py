"""What flylab's own files say, as one digest: whatever is kept on disk is named by what it was made with."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from flylab import __version__

ROOT = Path(__file__).parent


def digest_of(*packages: str) -> str:
    """A digest of flylab's version, of the Python files of some of its packages, and of those beside the packages.

    It reads the files: a process that is to name things by what it runs asks while it imports them.

    >>> len(digest_of("layout")), digest_of("layout") == digest_of("atoms")
    (64, False)
    """
    found = hashlib.sha256(__version__.encode())
    for path in sorted((*_files(str(ROOT), False), *(f for p in packages for f in _files(str(ROOT / p), True)))):
        with open(path, "rb", buffering=0) as file:
            text = file.read()
        found.update(f"\n{os.path.relpath(path, ROOT)} {len(text)}\n".encode())
        found.update(text)
    return found.hexdigest()


def _files(folder: str, whole: bool) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                yield entry.path
            elif whole and entry.name != "__pycache__" and entry.is_dir():
                yield from _files(entry.path, True)
