"""Connectors that run by the clock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from connect.errors import ConfigError
from equipment.fakes.herding import Place, WorkedInbox
from worker.config.connector import SourceConnectorConfig
from worker.herder.cluster.leadership import Leadership
from worker.herder.connectors.change_queue import ChangeQueue
from worker.herder.connectors.schedules import Schedules, due, next_run
from worker.stores.config.store import ConnectorEntry, MemoryConfigStore, TargetState

CONFIG = {"name": "nightly", "connector.class": "C", "run.until": "drained", "schedule": "0 2 * * *"}


def milliseconds(at: datetime) -> int:
    return int(at.timestamp() * 1000)


@pytest.mark.parametrize(
    ("zone", "after", "expected"),
    [
        ("UTC", datetime(2026, 11, 21, 1, 59, tzinfo=UTC), datetime(2026, 11, 21, 2, tzinfo=UTC)),
        ("UTC", datetime(2026, 11, 21, 2, tzinfo=UTC), datetime(2026, 11, 22, 2, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 11, 21, 0, 30, tzinfo=UTC), datetime(2026, 11, 21, 1, tzinfo=UTC)),
        ("Europe/Berlin", datetime(2026, 7, 1, 0, 30, tzinfo=UTC), datetime(2026, 7, 2, 0, tzinfo=UTC)),
    ],
)
def test_the_next_run_is_by_the_clock_of_its_zone(zone: str, after: datetime, expected: datetime) -> None:
    assert next_run(CONFIG | {"schedule.timezone": zone}, after) == expected


def test_only_what_rests_because_it_was_drained_is_due() -> None:
    drained = milliseconds(datetime(2026, 11, 20, 12, tzinfo=UTC))
    resting = ConnectorEntry(CONFIG, TargetState.STOPPED, drained=drained)
    assert due(resting) == datetime(2026, 11, 21, 2, tzinfo=UTC)
    assert due(ConnectorEntry(CONFIG, TargetState.STOPPED)) is None, "a user has stopped it"
    assert due(ConnectorEntry(CONFIG, TargetState.STARTED)) is None
    assert due(ConnectorEntry({"name": "c"}, TargetState.STOPPED, drained=drained)) is None


@pytest.mark.parametrize(
    ("changes", "key", "reason"),
    [
        ({"schedule": "61 * * * *"}, "schedule", "Bad minute"),
        ({"schedule": "tomorrow"}, "schedule", "minute, hour, day"),
        ({"schedule.timezone": "Atlantis"}, "schedule.timezone", "no such time zone"),
        ({"run.until": "stopped"}, "schedule", "run.until=drained"),
    ],
)
def test_a_schedule_that_cannot_be_is_refused_with_its_key(changes: dict[str, str], key: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        SourceConnectorConfig.parse(CONFIG | changes)
    assert caught.value.key == key


def schedules(store: MemoryConfigStore, inbox: WorkedInbox, *, is_leader: bool = True) -> Schedules:
    leadership = Leadership(Place(is_leader=is_leader), store, inbox)
    leadership.changed()
    inbox.work()
    return Schedules(store, leadership, ChangeQueue(leadership, inbox.post), inbox)


def target(store: MemoryConfigStore) -> TargetState:
    return store.connectors()["nightly"].target


def test_a_run_that_was_missed_is_made_up_for_once() -> None:
    store, inbox = MemoryConfigStore(), WorkedInbox()
    long_ago = milliseconds(datetime.now(UTC) - timedelta(days=10))
    store.put_connector("nightly", CONFIG, TargetState.STOPPED, long_ago)
    schedules(store, inbox).look()
    inbox.work()
    assert target(store) is TargetState.STARTED
    assert store.connectors()["nightly"].drained is None


def test_what_is_to_come_waits_for_its_time() -> None:
    store, inbox = MemoryConfigStore(), WorkedInbox()
    in_an_hour = datetime.now(UTC) + timedelta(hours=1)
    config = CONFIG | {"schedule": f"{in_an_hour.minute} {in_an_hour.hour} * * *"}
    store.put_connector("nightly", config, TargetState.STOPPED, milliseconds(datetime.now(UTC)))
    running = schedules(store, inbox)
    running.look()
    inbox.work(seconds=60)
    assert target(store) is TargetState.STOPPED
    store.put_target_state("nightly", TargetState.STOPPED, milliseconds(datetime.now(UTC) - timedelta(days=2)))
    inbox.work(seconds=3600)
    assert target(store) is TargetState.STARTED, "the next look comes by itself"


def test_a_schedule_that_cannot_be_read_is_told_of_once_and_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    store, inbox = MemoryConfigStore(), WorkedInbox()
    store.put_connector("a", CONFIG | {"schedule": "${env:AT_TWO}"}, TargetState.STOPPED, 0)
    store.put_connector("b", CONFIG, TargetState.STOPPED, 1 << 62)
    store.put_connector("nightly", CONFIG, TargetState.STOPPED, 0)
    assert due(store.connectors()["a"]) is None
    running = schedules(store, inbox)
    running.look()
    running.look()
    inbox.work()
    assert target(store) is TargetState.STARTED
    told = [record.getMessage() for record in caplog.records]
    assert [line.partition(",")[0] for line in told] == [
        "Connector a will not be started by its schedule",
        "Connector b will not be started by its schedule",
    ]


def test_a_worker_that_does_not_lead_starts_nothing() -> None:
    store, inbox = MemoryConfigStore(), WorkedInbox()
    store.put_connector("nightly", CONFIG, TargetState.STOPPED, 0)
    schedules(store, inbox, is_leader=False).look()
    inbox.work(seconds=10_000)
    assert target(store) is TargetState.STOPPED
