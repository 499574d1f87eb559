"""Where a reset puts a group."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.runtime.inquiries.offsets import PartitionOffsets, ResetTo, reset_offset

SPOT = PartitionOffsets(begin=10, end=20, committed=15, entry=10)
NEW = PartitionOffsets(begin=10, end=20, committed=None, entry=10)


@pytest.mark.parametrize(
    ("to", "number", "spot", "after"),
    [
        ("earliest", 0, SPOT, 10),
        ("latest", 0, SPOT, 20),
        ("current", 0, SPOT, 15),
        ("current", 0, NEW, 10),
        ("current", 0, PartitionOffsets(10, 20, committed=3, entry=10), 10),
        ("offset", 12, SPOT, 12),
        ("offset", 3, SPOT, 10),
        ("offset", 99, SPOT, 20),
        ("shift", -2, SPOT, 13),
        ("shift", 2, SPOT, 17),
        ("shift", -100, SPOT, 10),
        ("shift", 100, SPOT, 20),
        ("shift", 3, NEW, 13),
        ("timestamp", 0, PartitionOffsets(10, 20, 15, 10, at=11), 11),
        ("timestamp", 0, SPOT, 20),
    ],
)
def test_each_way(to: ResetTo, number: int, spot: PartitionOffsets, after: int) -> None:
    assert reset_offset(to, number, spot) == after


@given(
    st.sampled_from(get_args(ResetTo)),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 100),
    st.integers(0, 100),
    st.none() | st.integers(0, 300),
    st.none() | st.integers(0, 300),
)
def test_what_comes_out_is_always_there(
    to: ResetTo, number: int, begin: int, length: int, committed: int | None, at: int | None
) -> None:
    spot = PartitionOffsets(begin, begin + length, committed, begin, at)
    assert begin <= reset_offset(to, number, spot) <= begin + length
