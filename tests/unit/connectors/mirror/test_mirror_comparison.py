"""What of a source partition is compared, and what counts as a difference."""

from __future__ import annotations

import pytest

from connectors.mirror.runs import Run
from connectors.mirror.verification.comparison import Difference, Part, Piece, compared, pieces
from connectors.mirror.verification.stretches import Content, Stretch


def test_a_partition_is_divided_without_a_gap() -> None:
    # Out of order, as after a restart.
    runs = [Run(20, 30, 5, 18), Run(5, 5, 5, 5), Run(10, 12, 6, 10)]
    assert list(pieces(runs, 2, 40)) == [
        Piece(Part.UNKNOWN, 2, 5),
        Piece(Part.COPIED, 5, 10, 5),
        Piece(Part.COPIED, 10, 16, 12),
        Piece(Part.UNKNOWN, 16, 18),
        Piece(Part.EMPTY, 18, 20),
        Piece(Part.COPIED, 20, 25, 30),
        Piece(Part.WAITING, 25, 40),
    ]
    assert list(pieces(runs, 12, 22)) == [
        Piece(Part.COPIED, 12, 16, 14),
        Piece(Part.UNKNOWN, 16, 18),
        Piece(Part.EMPTY, 18, 20),
        Piece(Part.COPIED, 20, 22, 30),
    ]
    assert list(pieces([], 3, 3)) == []


RECORD: Content = (b"k", b"v", (("h", None),), 7)
PIECE = Piece(Part.COPIED, 10, 13, 20)


def _stretch(first: int, *records: Content | None, start: int = 0, is_compacted: bool = False) -> Stretch:
    kept = {first + step: record for step, record in enumerate(records) if record is not None}
    return Stretch(kept, first + len(records), start, is_compacted)


@pytest.mark.parametrize(
    ("copy", "what"),
    [
        ((b"j", b"v", (("h", None),), 7), "different key"),
        ((b"k", None, (("h", None),), 7), "different value"),
        ((b"k", b"v", (("h", b""),), 7), "different headers"),
        ((b"k", b"v", (("h", None),), 8), "different timestamp"),
        (None, "missing at the target"),
    ],
)
def test_the_first_record_that_differs_is_told(copy: Content | None, what: str) -> None:
    found = compared(PIECE, _stretch(10, RECORD, RECORD, RECORD), _stretch(20, RECORD, copy, None))
    assert found == (1, 0, Difference(11, 21, what))


def test_a_timestamp_of_a_broker_does_not_count() -> None:
    copy = (*RECORD[:3], None)
    assert compared(PIECE, _stretch(10, RECORD), _stretch(20, copy)) == (1, 0, None)


def test_what_has_expired_or_was_compacted_is_no_difference() -> None:
    whole = _stretch(10, RECORD, RECORD, RECORD)
    assert compared(PIECE, whole, _stretch(20, None, RECORD, RECORD, start=21)) == (2, 1, None)
    assert compared(PIECE, whole, _stretch(20, RECORD, None, RECORD, is_compacted=True)) == (2, 1, None)
    assert compared(PIECE, _stretch(10, None, None, RECORD, start=12), _stretch(20, RECORD, None, RECORD, start=0)) == (
        1,
        1,
        None,
    )
    other = compared(PIECE, _stretch(10, None, RECORD, RECORD), _stretch(20, RECORD, RECORD, RECORD))
    assert other == (0, 0, Difference(10, 20, "only the target has this record"))


def test_only_what_was_reached_at_both_ends_counts() -> None:
    assert compared(PIECE, _stretch(10, RECORD, RECORD), _stretch(20, RECORD)) == (1, 0, None)
