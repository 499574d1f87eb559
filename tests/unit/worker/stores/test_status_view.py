"""The states as one worker sees them while its own writes and those of others are under way."""

from __future__ import annotations

import pytest

from connect.errors import DataError
from worker.stores.status import records
from worker.stores.status.kafka import StatusView
from worker.stores.status.store import Hang, State, Status
from worker.unit import Unit

UNIT = Unit("c", 0)
KEY = records.status_key(UNIT)


def status(state: State, worker: str = "me", generation: int = 1) -> records.StatusRecord:
    return records.StatusRecord(UNIT, Status(state, worker, generation))


def test_what_is_written_shows_at_once_and_until_it_is_read_back() -> None:
    view = StatusView()
    view.write(KEY, status(State.RUNNING))
    view.read(KEY, status(State.UNASSIGNED, "other"))
    assert view.status(UNIT) == status(State.RUNNING).status
    view.read(KEY, status(State.RUNNING))
    view.written(KEY)
    assert view.status(UNIT) == status(State.RUNNING).status


def test_the_order_of_the_topic_counts_when_all_was_read_back() -> None:
    view = StatusView()
    view.write(KEY, status(State.RUNNING))
    view.write(KEY, status(State.PAUSED))
    for record in (status(State.RUNNING), status(State.PAUSED), status(State.FAILED, "other", 2)):
        view.read(KEY, record)
    view.written(KEY)
    assert view.status(UNIT) == status(State.PAUSED).status
    view.written(KEY)
    assert view.status(UNIT) == status(State.FAILED, "other", 2).status


def test_other_keys_are_not_held_up() -> None:
    view = StatusView()
    view.write(KEY, status(State.RUNNING))
    other = Unit("c", 1)
    view.read(records.status_key(other), records.StatusRecord(other, Status(State.PAUSED, "other", 1)))
    assert set(view.statuses()) == {UNIT, other}


def test_only_the_newest_write_is_worth_another_attempt() -> None:
    view = StatusView()
    first, second = view.write(KEY, status(State.RUNNING)), view.write(KEY, status(State.PAUSED))
    assert (view.is_newest(KEY, first), view.is_newest(KEY, second)) == (False, True)


def test_tombstones_remove() -> None:
    view = StatusView()
    view.read(KEY, status(State.RUNNING))
    view.read(KEY, records.parse(KEY, None))
    use = records.topic_use_key("c", "t")
    view.read(use, records.parse(use, b'{"topic":{"name":"t"}}'))
    assert view.topics("c") == ["t"]
    view.read(use, records.parse(use, None))
    assert (dict(view.statuses()), view.topics("c")) == ({}, [])


@pytest.mark.parametrize("name", ["c", "a-1", "a:connector-b", "ü/x", "task-0"])
def test_any_name_survives_the_keys(name: str) -> None:
    for unit in (Unit(name), Unit(name, 12)):
        kept = Status(
            State.FAILED, "w:1", 3, "trace", "1.0", True, 2, Hang("put", "2026-11-22T12:14:05Z", "bad.py:22", "Stack")
        )
        assert records.parse(records.status_key(unit), records.status_value(kept)) == records.StatusRecord(unit, kept)
        timed = kept.after(None, 1_790_000_000_000)
        parsed = records.parse(records.status_key(unit), records.status_value(timed))
        assert isinstance(parsed, records.StatusRecord)
        assert parsed.status is not None
        assert (parsed.status.changed, parsed.status.started) == (1_790_000_000_000, None)
    key = records.topic_use_key(name, "some-topic")
    value = records.topic_use_value(Unit(name, 0), "some-topic", 1)
    assert records.parse(key, value) == records.TopicUseRecord(name, "some-topic", used=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None),
        (b"\xff", None),
        (b"status-c", b"{}"),
        (b"status-task-c", None),
        (b"status-topic-t", None),
        (b"status-topic-:connector-c", None),
        (b"status-topic-t:connector-c", b"[]"),
        (b"status-connector-c", b"{"),
        (b"status-connector-c", b'{"state":"ASLEEP","worker_id":"w","generation":1}'),
        (b"status-connector-c", b'{"state":"RUNNING","worker_id":"w"}'),
    ],
)
def test_what_cannot_be_understood_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DataError):
        records.parse(key, value)


def test_a_destroyed_unit_is_no_more() -> None:
    value = b'{"state":"DESTROYED","worker_id":"w","generation":1}'
    assert records.parse(KEY, value) == records.StatusRecord(UNIT, None)
