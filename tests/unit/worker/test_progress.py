from worker.progress import Progress


def test_a_line_tells_counts_rates_and_lag() -> None:
    before = Progress.of({}, at=10.0)
    now = Progress.of(
        {"source-record-write-total": 5000.0, "sink-record-send-total": 1000.0, "sink-record-lag": 4000.0}, at=12.0
    )
    assert now.line(before) == "5,000 records read (2,500/s), 1,000 written (500/s), lag 4,000"


def test_there_is_no_line_while_nothing_moves() -> None:
    now = Progress.of({"sink-record-lag": 4.0}, at=12.0)
    assert now.line(Progress.of({}, at=10.0)) is None
