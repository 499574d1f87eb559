from worker.metrics.progress import Progress


def test_a_line_tells_counts_rates_and_lag() -> None:
    before = Progress.of({}, at=10.0)
    now = Progress.of(
        {
            "source-record-write-total": 5000.0,
            "sink-record-send-total": 1000.0,
            "sink-record-lag": 4000.0,
            "partition-count": 1.0,
        },
        at=12.0,
    )
    assert now.line(before) == "5,000 records read (2,500/s), 1,000 written (500/s), lag 4,000"


def test_a_lag_that_is_not_known_is_not_0() -> None:
    before = Progress.of({}, at=10.0)
    now = Progress.of({"source-record-write-total": 10.0, "partition-count": 0.0}, at=12.0)
    assert now.line(before) == "10 records read (5/s), 0 written (0/s), lag unknown"


def test_what_leaves_with_a_task_is_no_movement() -> None:
    before = Progress.of({"source-record-write-total": 5.0, "sink-record-send-total": 1000.0}, at=10.0)
    left = Progress.of({"source-record-write-total": 5.0}, at=12.0)
    read = Progress.of({"source-record-write-total": 9.0}, at=12.0)
    assert left.line(before) is None
    assert read.line(before) == "9 records read (2/s), 0 written (0/s)", "no sink, no lag"


def test_there_is_no_line_while_nothing_moves() -> None:
    now = Progress.of({"sink-record-lag": 4.0}, at=12.0)
    assert now.line(Progress.of({}, at=10.0)) is None
