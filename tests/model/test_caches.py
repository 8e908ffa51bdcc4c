"""Lines that caches keep: against caches that are lists, on logs made by hand, and the log of a kernel."""

from __future__ import annotations

import numpy as np
import pytest
from flylab.kernels.elementwise.vector_add import vector_add
from hypothesis import given
from hypothesis import strategies as st

import flylab
from flylab.emulator.log import ENTRY, AccessLog, Tensor
from flylab.errors import FlylabError
from flylab.model.caches import cache_shares

LINE, BIG = 128, 64 << 20


def log_of(accesses: list[tuple[int, str, list[int]]], size: int = BIG) -> AccessLog:
    """Accesses by (wave, what it does, lines of its lanes), of an array of `size` bytes at address 0."""
    entries = np.zeros(len(accesses), ENTRY)
    for entry, (wave, does, lines) in zip(entries, accesses, strict=True):
        entry["wave"], entry["does"], entry["space"], entry["bytes"] = wave, does, "global", 4
        entry["lanes"] = (1 << len(lines)) - 1
        entry["addresses"][:len(lines)] = [line * LINE + 4 for line in lines]
    return AccessLog("k", "gfx950", (256, 1, 1), (), (), (), (Tensor("a", 0, (size // 4,), (4,), 4),), entries)


def by_lists(accesses: list[tuple[int, str, list[int]]], l1_lines: int, l2_lines: int) -> tuple[int, int, int]:
    """Lines in all, those asked of the L2, and those read anew: the waves in step, caches as lists."""
    queues = {wave: [each for each in accesses if each[0] == wave] for wave in sorted({each[0] for each in accesses})}
    near: list[int] = []
    behind: list[int] = []
    known: list[int] = []
    total = asked = anew = 0
    while any(queues.values()):
        for queue in queues.values():
            _, does, lines = queue.pop(0) if queue else (0, "", [])
            for line in sorted(set(lines)):
                total += 1
                if does == "load":
                    hit = line in near
                    near = [*(n for n in near if n != line), line][-l1_lines:]
                    if hit:
                        continue
                asked += 1
                anew += does == "load" and line in known and line not in behind
                behind = [*(n for n in behind if n != line), line][-l2_lines:]
                known.append(line)
    return total, asked, anew


ACCESS = st.tuples(st.integers(0, 2), st.sampled_from(["load", "load", "store"]),
                   st.lists(st.integers(0, 40), min_size=1, max_size=6))


@given(st.lists(ACCESS, min_size=1, max_size=60), st.sampled_from([16, 32, 64]), st.sampled_from([64, 128, 512]))
def test_lines_as_in_caches_that_are_lists(accesses, resident: int, units: int) -> None:
    """32 KB and 4 MB are 256 and 32,768 lines, shared by so many workgroups."""
    found = cache_shares(log_of(accesses), resident, units)
    total, asked, anew = by_lists(accesses, 256 // resident, 32768 // resident // units)
    assert (found.lines, found.asked_of_l2, found.read_anew) == (total, asked / total, anew / total)
    assert cache_shares(log_of(accesses, 1 << 20), resident, units).read_anew == 0     # such an array fits the L2


def test_a_stream_is_asked_for_once() -> None:
    x = np.ones(4096, np.float32)
    with flylab.use("gfx950"), flylab.watch(check=None, log=True):
        log = vector_add(x, x.copy(), x.copy(), 4).log
    found = cache_shares(log.where(block=0), 8, 32)
    assert (found.lines, found.asked_of_l2, found.read_anew) == (3 * 8 * 4, 1.0, 0.0) and "modelled" in str(found)


@pytest.mark.parametrize("resident, units, message", [(0, 32, "0 workgroups on each of 32"), (1, 0, "each of 0")])
def test_refused(resident: int, units: int, message: str) -> None:
    with pytest.raises(FlylabError, match=message) as caught:
        cache_shares(log_of([(0, "load", [1])]), resident, units)
    assert caught.value.hint
    several = log_of([(0, "load", [1]), (0, "load", [2])])
    several.entries["block"] = [0, 1]
    with pytest.raises(FlylabError, match="several workgroups of 'k'"):
        cache_shares(several, 1, 1)
