from __future__ import annotations

import weakref

from connect.internals.delivery.submissions import SentRecords, Submission, SubmittedRecords


def submit(records: SubmittedRecords, key: bytes, offset: int, count: int) -> Submission:
    submission = Submission({"file": key.decode()}, {"position": offset}, count)
    records.submit(key, submission)
    return submission


def test_an_offset_is_committable_once_everything_before_it_is_acknowledged() -> None:
    records = SubmittedRecords()
    first, second = submit(records, b"a", 10, 2), submit(records, b"a", 20, 1)
    second.remaining = 0
    assert records.committable() == {}
    first.remaining = 1
    assert records.committable() == {}
    first.remaining = 0
    assert records.committable() == {b"a": second}


def test_a_stuck_partition_holds_back_only_itself() -> None:
    records = SubmittedRecords()
    submit(records, b"stuck", 10, 1)
    other = submit(records, b"other", 5, 0)
    assert records.committable() == {b"other": other}
    assert len(records) == 1


def test_what_was_given_out_is_forgotten() -> None:
    records = SubmittedRecords()
    submit(records, b"a", 10, 0)
    assert records.committable()
    assert records.committable() == {}


def test_what_is_acknowledged_does_not_pile_up_until_the_next_commit() -> None:
    """Not even behind a record that Kafka does not acknowledge."""
    records = SubmittedRecords()
    stuck = submit(records, b"b", 0, 1)
    for number in range(1, 5000):
        submit(records, b"a", number, 0)
        submit(records, b"b", number, 0)
    assert len(records) <= 2000
    assert [each.offset["position"] for each in records.committable().values()] == [4999]
    stuck.remaining = 0
    assert [each.offset["position"] for each in records.committable().values()] == [4999]


def test_what_is_acknowledged_is_counted_and_nothing_else() -> None:
    sent = SentRecords()
    first, second = Submission({}, {}, 3), Submission({}, {}, 2)
    sent.begin(first)
    sent.begin(second)
    assert (sent.acknowledged(), sent.under_way()) == (0, 5)
    first.remaining -= 2
    assert (sent.acknowledged(), sent.under_way()) == (2, 3)
    sent.give_up()
    second.remaining -= 1
    assert (sent.acknowledged(), sent.under_way()) == (2, 2)
    first.remaining -= 1
    second.remaining -= 1
    assert (sent.acknowledged(), sent.under_way()) == (4, 0)


def test_what_is_discarded_with_its_transaction_is_not_acknowledged() -> None:
    sent = SentRecords()
    discarded = Submission({}, {}, 3)
    sent.begin(discarded)
    discarded.remaining -= 1
    sent.discard()
    assert (sent.acknowledged(), sent.under_way()) == (1, 0)


class _Kept:
    """Stands for a record."""


def test_counting_does_not_keep_what_is_done_with() -> None:
    sent, kept = SentRecords(), weakref.WeakSet[_Kept]()
    for _ in range(5000):
        kept.add(record := _Kept())
        submission = Submission({}, {}, 1, [record])  # type: ignore[list-item]
        sent.begin(submission)
        submission.remaining -= 1
    assert len(kept) <= 1001
    assert sent.acknowledged() == 5000
