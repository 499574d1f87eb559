from worker.metrics.progress import Progress, ProgressLines, Run, WorkPace
from worker.metrics.work import Work


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


def test_a_line_has_only_what_there_are_tasks_for() -> None:
    before = Progress.of({}, at=10.0)
    source = Progress.of({"source-record-poll-total": 3.0, "source-record-write-total": 3.0}, at=11.0)
    sink = Progress.of({"sink-record-send-total": 1000.0, "sink-record-lag": 0.0, "partition-count": 1.0}, at=11.0)
    assert source.line(before) == "3 records read (3/s)"
    assert sink.line(before) == "1,000 records written (1,000/s), lag 0"


def test_a_single_record_is_no_records() -> None:
    before = Progress.of({}, at=10.0)
    assert Progress.of({"source-record-write-total": 1.0}, at=11.0).line(before) == "1 record read (1/s)"
    sink = Progress.of({"sink-record-send-total": 1.0, "sink-record-lag": 1.0, "partition-count": 1.0}, at=11.0)
    assert sink.line(before) == "1 record written (1/s), lag 1"


def test_what_leaves_with_a_task_is_no_movement() -> None:
    before = Progress.of({"source-record-write-total": 5.0, "sink-record-send-total": 1000.0}, at=10.0)
    left = Progress.of({"source-record-write-total": 5.0}, at=12.0)
    read = Progress.of({"source-record-write-total": 9.0}, at=12.0)
    assert left.line(before) is None
    assert read.line(before) == "9 records read (2/s)", "no sink, no lag"


def test_there_is_no_line_while_nothing_moves() -> None:
    now = Progress.of({"sink-record-lag": 4.0}, at=12.0)
    assert now.line(Progress.of({}, at=10.0)) is None


def test_a_run_adds_up_what_has_moved_although_tasks_leave() -> None:
    run = Run(begun=10.0)
    assert run.line() is None
    before = Progress.of({}, at=10.0)
    for at, read, written in ((12.0, 400_000.0, 100_000.0), (17.6, 600_000.0, 600_000.0), (18.0, 0.0, 600_000.0)):
        now = Progress.of({"source-record-write-total": read, "sink-record-send-total": written}, at=at)
        run.add(before, now)
        before = now
    assert run.line() == "600,000 records read, 600,000 written in 7.6 s"


def test_a_run_of_a_sink_alone_names_what_was_written() -> None:
    run = Run(begun=0.0)
    run.add(Progress.of({}, at=0.0), Progress.of({"sink-record-send-total": 1.0}, at=2.5))
    assert run.line() == "1 record written in 2.5 s"


def read(at: float, records: float) -> Progress:
    return Progress.of({"source-record-write-total": records}, at)


def test_a_log_that_is_kept_has_the_first_line_at_once_and_one_a_minute_then() -> None:
    lines = ProgressLines(begun=0.0, seconds=60.0)
    assert lines.line(read(2.0, 0.0)) is None
    assert lines.line(read(4.0, 10.0)) == "10 records read (5/s)"
    assert lines.line(read(6.0, 20.0)) is None
    assert lines.line(read(64.0, 610.0)) == "610 records read (10/s)", "the rate is that of the minute"
    assert lines.line(read(124.0, 610.0)) is None
    assert lines.line(read(126.0, 630.0)) == "630 records read (10/s)", "after a rest it does not wait"


def test_a_terminal_has_a_line_whenever_something_has_moved() -> None:
    lines = ProgressLines(begun=0.0, seconds=0.0)
    told = [lines.line(read(at, records)) for at, records in ((2.0, 10.0), (4.0, 20.0), (6.0, 20.0), (8.0, 30.0))]
    assert told == ["10 records read (5/s)", "20 records read (5/s)", None, "30 records read (5/s)"]


def test_a_work_has_its_rate_and_its_remaining_time_once_they_are_known() -> None:
    pace = WorkPace()
    assert pace.texts(0.0, {"orders": Work(100, 1000, "rows")}) == ["orders [##..................] 10 % of 1,000 rows"]
    assert pace.texts(10.0, {"orders": Work(400, 1000, "rows")}) == [
        "orders [########............] 40 % of 1,000 rows, 30/s, about 20 s to go"
    ]
    assert pace.texts(40.0, {"orders": Work(700, 1000, "rows")}) == [
        "orders [##############......] 70 % of 1,000 rows, 10/s, about 30 s to go"
    ], "the rate is that of the last half minute"
    assert pace.texts(41.0, {}) == []
    assert pace.texts(42.0, {"orders": Work(0, 50, "rows")}) == ["orders [....................] 0 % of 50 rows"]


def test_the_longest_works_come_first_and_the_others_are_counted() -> None:
    pace = WorkPace()
    names = ("a", "b", "c", "d", "e")
    pace.texts(0.0, {name: Work(0, 100, "bytes") for name in names})
    texts = pace.texts(1.0, {name: Work(10 * number, 100, "bytes") for number, name in enumerate(names)})
    assert [text.partition(" ")[0] for text in texts] == ["a", "b", "c", "and"]
    assert texts[3] == "and 2 more connectors"
