"""Tests of instructions run snippets that wait for nothing and read what nobody wrote: no checks, where none is asked.

The tests of the checks themselves (`checks/`) ask for them.
"""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _unchecked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "checks" not in request.path.parts:
        monkeypatch.setenv("FLYLAB_CHECK", "none")
