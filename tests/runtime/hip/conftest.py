"""Where AMD's bindings of HIP have no build, nothing of this can run; everywhere else it must."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator

import pytest

from tests.runtime.hip.standin import MI300X, StandIn, standing_in

collect_ignore_glob = [] if (sys.platform, platform.machine()) == ("linux", "x86_64") else ["test_*.py"]


@pytest.fixture
def hip() -> Iterator[StandIn]:
    """One MI300X."""
    with standing_in(MI300X) as standin:
        yield standin
