"""Sets of offsets are sets of numbers."""

from __future__ import annotations

import pickle

from hypothesis import given
from hypothesis import strategies as st

from connect.offset_set import OffsetSet

offsets = st.frozensets(st.integers(0, 40))


@given(offsets, offsets, st.integers(0, 41), st.integers(0, 41))
def test_it_is_a_set(some: frozenset[int], others: frozenset[int], first: int, end: int) -> None:
    found = OffsetSet.of(some)
    assert list(found) == sorted(some)
    assert len(found) == len(some)
    assert all((number in found) == (number in some) for number in range(42))
    assert found | OffsetSet.of(others) == OffsetSet.of(some | others)
    assert list(found.between(first, end)) == sorted(number for number in some if first <= number < end)
    assert list(found.least(end)) == sorted(some)[:end]
    assert pickle.loads(pickle.dumps(found)) == found
    assert all(left < right for (_, left), (right, _) in zip(found.spans(), list(found.spans())[1:], strict=False))


def test_neighbours_cost_as_much_as_one() -> None:
    assert list(OffsetSet.of(range(1_000_000)).spans()) == [(0, 1_000_000)]
    assert len(pickle.dumps(OffsetSet.of(range(1_000_000)))) < 300
