"""How a refusal is asked for: the numbers in the message, and a hint; and that an answer comes at all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from flylab.errors import LayoutError


def refuses(make: Callable[[], object], message: str) -> None:
    """The call is refused, with these words in the message and one way to mend it."""
    with pytest.raises(LayoutError) as caught:
        make()
    assert message in caught.value.message
    assert caught.value.hint


def at_once(call: Callable[[], Any]) -> Any:
    """The result or LayoutError of a call, which must come before a generous end: what hangs needs minutes or for ever.

    The call has a thread of its own, so that a hang fails this test rather than the run.
    """
    found: list[Any] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            found.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert found, "it does not end"
    if isinstance(found[0], BaseException) and not isinstance(found[0], LayoutError):
        raise found[0]
    return found[0]
