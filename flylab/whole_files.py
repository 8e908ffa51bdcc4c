"""Files that others may read at any time: written whole or not at all."""

from __future__ import annotations

import contextlib
import os


def put(path: str, data: bytes) -> None:
    """Put a file there, at once and whole, in a folder that exists.

    What a process leaves that is killed meanwhile ends with `.partial`. Raises `OSError` where the system refuses, and
    leaves nothing then.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     put(f"{folder}/a", b"whole")
    ...     [(file.name, file.read_bytes()) for file in pathlib.Path(folder).iterdir()]
    [('a', b'whole')]
    """
    partial = f"{path}.{os.getpid()}.{os.urandom(4).hex()}.partial"
    try:
        with open(partial, "xb", buffering=0) as file:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(file.fileno(), rest) :]
        with contextlib.suppress(OSError):
            os.rmdir(path)  # an empty folder of this name
        os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(partial)
        raise
