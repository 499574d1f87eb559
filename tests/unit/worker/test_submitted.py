from worker.runtime.submitted import Submission, SubmittedRecords


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
    assert records.pending() == 0


def test_a_stuck_partition_holds_back_only_itself() -> None:
    records = SubmittedRecords()
    submit(records, b"stuck", 10, 1)
    other = submit(records, b"other", 5, 0)
    assert records.committable() == {b"other": other}
    assert records.pending() == 1


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
