"""Offsets of empty partitions translate by where the partitions begin and end at both clusters."""

from __future__ import annotations

import pytest

from connectors.mirror.extents import Extent, Extents
from connectors.mirror.runs import Translation

NOTHING, GONE, SOME, COPIES = Extent(0, 0), Extent(5, 5), Extent(0, 10), Extent(2, 12)


@pytest.mark.parametrize(
    ("source", "target", "offset", "expected"),
    [
        # Nothing has ever been in the partition.
        (NOTHING, NOTHING, 0, Translation(0)),
        # Retention has removed all of the source: read, unread, and never mirrored.
        (GONE, NOTHING, 5, Translation(0)),
        (GONE, NOTHING, 0, Translation(0)),
        (GONE, GONE, 3, Translation(5)),
        # The target has copies of what is gone, which a group has read or not.
        (GONE, COPIES, 5, Translation(12)),
        (GONE, COPIES, 7, Translation(12)),
        (GONE, COPIES, 4, None),
        # Nothing is mirrored yet: what the group has read may come, too.
        (SOME, NOTHING, 10, Translation(0, again=10)),
        (SOME, GONE, 4, Translation(5, again=4)),
        (Extent(6, 10), NOTHING, 4, Translation(0)),
        # Both have records: only runs and syncs can tell.
        (SOME, COPIES, 10, None),
        (SOME, COPIES, 0, None),
    ],
)
def test_over(source: Extent, target: Extent, offset: int, expected: Translation | None) -> None:
    assert Extents(source, target).downstream_of(offset) == expected


@pytest.mark.parametrize(
    ("source", "target", "offset", "expected"),
    [
        (NOTHING, NOTHING, 0, Translation(0)),
        (GONE, NOTHING, 0, Translation(5)),
        (GONE, COPIES, 12, Translation(5)),
        # What it has not read there is not at the source.
        (GONE, COPIES, 11, None),
        (SOME, NOTHING, 0, None),
        (SOME, COPIES, 12, None),
    ],
)
def test_back(source: Extent, target: Extent, offset: int, expected: Translation | None) -> None:
    assert Extents(source, target).upstream_of(offset) == expected
