"""Helper functions whose text could not be read: their branches are Python's, which an error about one has to say."""

from __future__ import annotations

import types

UNREAD: dict[int, tuple[types.CodeType, str]] = {}
"""Why the text of a function could not be read, by the id of its code, which is kept."""
