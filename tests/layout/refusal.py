"""How a refusal is asked for: the numbers in the message, and a hint."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from flylab.errors import LayoutError


def refuses(make: Callable[[], object], message: str) -> None:
    """The call is refused, with these words in the message and one way to mend it."""
    with pytest.raises(LayoutError) as caught:
        make()
    assert message in caught.value.message
    assert caught.value.hint
