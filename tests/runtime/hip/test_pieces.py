"""Which pieces of the host's memory go to a device and come back, against sets of bytes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flylab.dtypes import DTYPES
from flylab.runtime.hip.memory import merged, pieces
from flylab.runtime.tensors import Memory

spans = st.lists(st.tuples(st.integers(4096, 4200), st.integers(1, 40), st.booleans()), min_size=1, max_size=8)


def memories(of: list[tuple[int, int, bool]]) -> list[Memory]:
    return [Memory(f"A{n}", start, start, nbytes, writable, DTYPES["Int8"], (nbytes,), (1,), 0)
            for n, (start, nbytes, writable) in enumerate(of)]


def bytes_of(spans: list[tuple[int, int]]) -> set[int]:
    return {byte for start, end in spans for byte in range(start, end)}


@given(spans)
def test_pieces_hold_every_byte_once_and_arrays_that_overlap_together(of: list[tuple[int, int, bool]]) -> None:
    found = pieces(memories(of))
    whole = [(piece.start, piece.end) for piece in found]
    assert bytes_of(whole) == bytes_of([(start, start + nbytes) for start, nbytes, _ in of])
    assert sum(piece.nbytes for piece in found) == len(bytes_of(whole))
    assert all(before[1] <= after[0] for before, after in zip(whole, whole[1:], strict=False))
    for start, nbytes, _ in of:
        assert any(low <= start and start + nbytes <= high for low, high in whole)
    assert sorted(name for piece in found for name in piece.names) == sorted(f"A{n}" for n in range(len(of)))


@given(spans)
def test_what_comes_back_is_what_can_be_written_once(of: list[tuple[int, int, bool]]) -> None:
    back = [span for piece in pieces(memories(of)) for span in merged(piece.written)]
    assert bytes_of(back) == bytes_of([(start, start + nbytes) for start, nbytes, writable in of if writable])
    assert sum(end - start for start, end in back) == len(bytes_of(back))
