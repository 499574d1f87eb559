"""What the worker is told of a task's Kafka client."""

from __future__ import annotations

from connect.kafka.clients.statistics import ClientStatistics
from worker.runtime.reports import ToldStatistics
from worker.supervisor.messages.messages import ClientMetrics


class World:
    """A client that says what the test wants, and a clock that stands until the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0
        self.told: list[ClientMetrics] = []
        self.statistics = ToldStatistics(self.told.append, lambda: self.now)

    def say(self, records: int, requests: int, lag: int = 0) -> int:
        """Have the client say this five seconds later; how often the worker was told until now."""
        self.now += 5.0
        values = {"records-consumed-total": float(records), "request-total": float(requests), "connection-count": 1.0}
        self.statistics.take(ClientStatistics("consumer", "c", values, [("t", 0, lag)]))
        return len(self.told)


def test_all_is_told_while_records_move() -> None:
    world = World()
    assert [world.say(records=10 * number, requests=number) for number in range(4)] == [1, 2, 3, 4]


def test_while_none_do_it_is_told_every_twenty_seconds() -> None:
    world = World()
    assert [world.say(records=10, requests=number) for number in range(10)] == [1, 1, 1, 1, 2, 2, 2, 2, 3, 3]
    assert world.told[-1].values["request-total"] == 8.0


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
