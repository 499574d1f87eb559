"""When a task reports its measurements, and those of its Kafka client."""

from __future__ import annotations

from connect.internals.kafka.clients.statistics import ClientStatistics
from worker.messages.messages import ClientMetrics
from worker.runtime.metrics import ReportedStatistics, ReportPace


class World:
    """A client that says what the test wants, and a clock that stands until the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.told: list[ClientMetrics] = []
        self.statistics = ReportedStatistics(self.told.append, lambda: self.now)

    def say(self, records: int, requests: int, lag: int = 0) -> int:
        """Have the client say this five seconds later; how often the worker was told until now."""
        self.now += 5.0
        values = {"records-consumed-total": float(records), "request-total": float(requests), "connection-count": 1.0}
        self.statistics.take(ClientStatistics("consumer", "c", values, [("t", 0, lag)]))
        return len(self.told)


def test_statistics_are_reported_at_once_while_records_move() -> None:
    world = World()
    assert [world.say(records=10 * number, requests=number) for number in range(4)] == [1, 2, 3, 4]


def test_while_no_records_move_they_are_reported_less_and_less_often() -> None:
    world = World()
    reports = [world.say(records=10, requests=number) for number in range(96)]
    moments = [5 * reports.index(count) for count in range(1, reports[-1] + 1)]
    assert moments == [0, 20, 60, 140, 300, 460]
    assert world.told[-1].values["request-total"] == 92.0
    world.say(records=11, requests=96)
    assert [world.say(records=11, requests=number) for number in range(97, 101)] == [7, 7, 7, 8]


def test_a_lag_that_grows_is_told_though_nothing_is_consumed() -> None:
    world = World()
    assert [world.say(records=10, requests=number, lag=number) for number in range(3)] == [1, 2, 3]


def test_a_client_that_is_closed_has_no_connections() -> None:
    world = World()
    world.statistics.rest()
    assert world.told == [], "it has said nothing yet"
    world.say(records=10, requests=1)
    world.statistics.rest()
    assert [said.values["connection-count"] for said in world.told] == [1.0, 0.0]
    assert world.told[-1].values["records-consumed-total"] == 10.0


class Reporting:
    """A task that reports whenever that is due, and a clock that goes on only then."""

    def __init__(self, start: float = 100.0, phase: float = 0.0) -> None:
        self.now = start
        self.pace = ReportPace(lambda: self.now, phase)

    def report(self, *, changed: bool) -> float:
        """Report; the seconds until the next report, to which the clock is set."""
        before = self.now
        self.pace.reported(changed=changed)
        self.now = self.pace.next_report
        assert self.pace.due()
        return self.now - before


def test_a_task_that_rests_reports_less_and_less_often_until_something_moves() -> None:
    task = Reporting(start=0.0)
    assert [task.report(changed=False) for _ in range(8)] == [5.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 160.0]
    task.now -= 10.0
    task.pace.counted(1)
    assert task.pace.next_report == task.now + 1.0


def test_a_task_that_moves_much_reports_every_second_and_one_that_moves_little_every_two_and_a_half() -> None:
    task = Reporting(start=100.0)
    assert [task.report(changed=True) for _ in range(3)] == [2.5, 2.5, 2.5]
    task.pace.counted(99)
    assert task.pace.next_report == task.now
    assert task.report(changed=True) == 2.5
    task.pace.counted(60)
    task.pace.counted(60)
    assert task.report(changed=True) == 1.0
    task.pace.counted(1000)
    assert task.report(changed=True) == 1.0


def test_one_that_comes_to_move_much_does_not_wait_for_the_report_of_little() -> None:
    task = Reporting(start=100.0)
    task.pace.reported(changed=True)
    task.now += 0.5
    task.pace.counted(100)
    assert task.pace.next_report == task.now + 1.0
    task.now += 0.5
    task.pace.counted(100)
    assert task.pace.next_report == task.now + 0.5


def test_a_task_at_rest_is_never_later_than_its_pause() -> None:
    for start in range(40):
        task = Reporting(start=start / 3, phase=7.0)
        task.report(changed=True)
        pauses = [task.report(changed=False) for _ in range(8)]
        most = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 160.0, 160.0)
        least = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 160.0, 160.0)
        assert all(low <= pause <= high for low, pause, high in zip(least, pauses, most, strict=True))


def test_tasks_of_one_process_report_at_the_same_moments() -> None:
    tasks = [Reporting(start=100.0 + number / 7, phase=3.0) for number in range(30)]
    for task in tasks:
        for _ in range(6):
            task.report(changed=False)
    moments = {task.now for task in tasks}
    assert len({moment % 40.0 for moment in moments}) == 1
    assert {moment % 40.0 for moment in moments} == {3.0}
