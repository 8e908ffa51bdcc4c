"""Races in random programs against brute force: nothing is missed, and nothing is said that is not so."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flylab.errors import CheckError
from tests.emulator.checks.lds_programs import LDS, Oracle, program, random_ops


def findings(waves, ops, chip):
    made, own = program(ops, chip)
    try:
        made.launch(grid=1, block=64 * waves, args=[], check=("races",))
    except CheckError as error:
        return [(own[f.instruction], f.details["thread"][0], own[f.others[0]], f.details["other"][0],
                 f.details["byte"]) for f in error.findings]
    return []


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1 << 32), st.sampled_from(["gfx942", "gfx950"]))
def test_races_are_those_of_brute_force(seed, chip):
    waves, ops = random_ops(seed)
    oracle, found = Oracle.of(waves, ops), findings(waves, ops, chip)
    for op, thread, other_op, other, byte in found:
        assert any({(a.op, a.thread), (b.op, b.thread)} == {(op, thread), (other_op, other)} or op == other_op and
                   {(op, thread), (op, other)} & {(a.op, a.thread), (b.op, b.thread)} for a, b in oracle.pairs(byte))
    told = {frozenset((op, other_op)) for op, _, other_op, _, _ in found}
    for access, before in oracle.first_races():
        assert any(frozenset((access.op, other.op)) in told for other in before), access


def test_the_oracle_sees_races_and_their_absence():
    """The random programs are of both sorts."""
    racy = [any(True for _ in Oracle.of(*random_ops(seed)).first_races()) for seed in range(60)]
    assert 10 < sum(racy) < 60
    assert LDS % 4 == 0


@pytest.mark.parametrize("seed", range(40))
def test_programs_made_before(seed):
    """The same for programs that stay the same."""
    test_races_are_those_of_brute_force.hypothesis.inner_test(seed, "gfx942")
