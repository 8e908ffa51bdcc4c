"""A live notebook kernel for tests: cells run one by one, with what each shows, and Ctrl-C as the stop button sends."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
LIMIT = 120
"""Seconds that a cell may take before a test gives up."""
SETUP = "import numpy as np\nimport flylab\nimport flylab.compiler as flyc\nimport flylab.expr as fx\n"
COLOURS = re.compile("\x1b\\[[0-9;]*m")
FALLBACK = "Falling back to standard exception"
"""What IPython says where it cannot draw an error, such as one at an instruction to which Python 3.11 gives no line, at
which Ctrl-C may come; Python's own traceback is on stderr then."""


@dataclass
class Shown:
    """What one cell shows: its streams, its results by MIME type, and the text of its error."""

    stdout: str = ""
    stderr: str = ""
    error: str = ""
    data: list[dict[str, Any]] = field(default_factory=list)

    def add(self, kind: str, content: Mapping[str, Any]) -> None:
        """One message of the kernel."""
        if kind == "stream":
            setattr(self, content["name"], getattr(self, content["name"]) + content["text"])
        elif kind in ("execute_result", "display_data"):
            self.data.append(content["data"])
        elif kind == "error":
            self.error += COLOURS.sub("", "\n".join(content["traceback"]))


class Notebook:
    """A kernel with the names of `SETUP`."""

    def __init__(self, client: Any, manager: Any) -> None:
        self._client, self._manager = client, manager

    def start(self, cell: str) -> str:
        """Begin with a cell; its message's number, for `finish`."""
        return str(self._client.execute(cell))

    def finish(self, number: str) -> Shown:
        """What a cell shows until the kernel is idle again."""
        shown, end = Shown(), time.monotonic() + LIMIT
        while True:
            message = self._client.get_iopub_msg(timeout=max(0.0, end - time.monotonic()))
            if message["parent_header"].get("msg_id") != number:
                continue
            if message["msg_type"] == "status" and message["content"]["execution_state"] == "idle":
                if FALLBACK in shown.stdout and not shown.error:
                    shown.error = shown.stderr
                return shown
            shown.add(message["msg_type"], message["content"])

    def run(self, *cells: str) -> Shown:
        """Run cells; what the last one shows. The ones before it must not fail."""
        for cell in cells:
            shown = self.finish(self.start(cell))
            assert not shown.error or cell is cells[-1], shown.error
        return shown

    def printed(self, *cells: str) -> str:
        """What the last of these cells prints. None of them may fail."""
        shown = self.run(*cells)
        assert not shown.error, shown.error
        return shown.stdout

    def interrupted(self, cell: str, when: str) -> Shown:
        """What a cell shows that gets Ctrl-C once it has printed `when`."""
        number = self.start(cell)
        shown, end = Shown(), time.monotonic() + LIMIT
        while when not in shown.stdout:
            message = self._client.get_iopub_msg(timeout=max(0.0, end - time.monotonic()))
            if message["parent_header"].get("msg_id") == number:
                shown.add(message["msg_type"], message["content"])
                assert not shown.error, shown.error
        self._manager.interrupt_kernel()
        rest = self.finish(number)
        return Shown(shown.stdout + rest.stdout, shown.stderr + rest.stderr, rest.error, rest.data)


@contextmanager
def notebook(folder: Path | None = None, **environment: str) -> Iterator[Notebook]:
    """A kernel of its own, in a folder (the repository's), with further environment variables."""
    pytest.importorskip("ipykernel")
    manager_module = pytest.importorskip("jupyter_client.manager")
    # ipykernel leaves the streams of libraries alone where it finds itself in a test of its own.
    env = {k: v for k, v in os.environ.items() if k != "PYTEST_CURRENT_TEST"}
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    manager, client = manager_module.start_new_kernel(
        kernel_name="python3", cwd=str(folder or ROOT), env={**env, "PYTHONPATH": path, **environment})
    try:
        live = Notebook(client, manager)
        live.printed(SETUP)
        yield live
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
