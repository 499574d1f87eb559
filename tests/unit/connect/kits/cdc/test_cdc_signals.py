"""What signals ask for, the file that they come by, notifications, and the statements that read chunks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from connect.errors import ConfigError, ConnectError
from connect.kits.cdc.chunk_queries import ChunkQueries, Query, SqlForm
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.notifications import NotificationOptions, Notifications, SnapshotNotifications
from connect.kits.cdc.signals.actions import (
    ExecuteSnapshot,
    LogMessage,
    PauseSnapshot,
    ResumeSnapshot,
    StopSnapshot,
    WindowMark,
    action_of,
    data_of,
)
from connect.kits.cdc.signals.channels import FileSignals, SignalOptions
from connect.source import Signal

CAPTURED = ["public.lines", "public.orders", "public.orders_old", "shop.orders"]


def action(kind: str, **data: Any) -> Any:
    return action_of(Signal("s", kind, {key.replace("_", "-"): value for key, value in data.items()}))


def test_tables_are_named_or_matched_as_a_whole_and_conditions_are_theirs() -> None:
    asked = action(
        "execute-snapshot",
        data_collections=["public[.]orders.*", '"shop"."orders"', "public.none"],
        additional_conditions=[{"data-collection": "public.orders", "filter": "id > 7"}],
        surrogate_key="code",
    )
    assert asked.collections(CAPTURED) == [
        Collection("public.orders", "id > 7", "code"),
        Collection("public.orders_old", "", "code"),
        Collection("shop.orders", "", "code"),
    ]
    older = action("execute-snapshot", data_collections=["public.lines"], additional_condition="id > 1")
    assert older.collections(CAPTURED) == [Collection("public.lines", "id > 1")]


def test_each_type_of_signal_is_understood() -> None:
    assert action("execute-snapshot", data_collections=["t"], type="BLOCKING") == ExecuteSnapshot(("t",), "blocking")
    stop = action("stop-snapshot", data_collections=["public[.].*"], type="incremental")
    assert [table for table in CAPTURED if stop.is_meant(table)] == CAPTURED[:3]
    assert StopSnapshot(()).is_meant("any")
    assert action("pause-snapshot") == PauseSnapshot()
    assert action("resume-snapshot", type="incremental") == ResumeSnapshot()
    assert action("log", message="at {}") == LogMessage("at {}")
    assert action("snapshot-window-open") == WindowMark()
    assert data_of(None) == data_of(" ") == {}
    assert data_of('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize(
    ("kind", "data", "reason"),
    [
        ("execute-snapshot", {}, "Name the tables to read"),
        ("execute-snapshot", {"data_collections": "t"}, "must be a list of names or regular expressions"),
        ("execute-snapshot", {"data_collections": ["("]}, "is not a regular expression"),
        ("execute-snapshot", {"data_collections": ["t"], "type": "x"}, "is incremental or blocking, not 'x'"),
        ("execute-snapshot", {"data_collections": ["t"], "additional_conditions": [1]}, "additional-conditions must"),
        ("execute-snapshot", {"data_collections": ["t"], "surrogate_key": 5}, "must be the name of a column"),
        ("stop-snapshot", {"type": "blocking"}, "is incremental, not 'blocking'"),
        ("shutdown", {}, "There is no signal 'shutdown': the types are execute-snapshot"),
    ],
)
def test_what_cannot_be_done_is_refused_with_what_to_write(kind: str, data: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConnectError, match=reason.replace("(", r"\(")):
        action(kind, **data)


@pytest.mark.parametrize("text", ["{", "[1]", "5", "{" * 100_000])
def test_data_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ConnectError, match="The data of the signal"):
        data_of(text)


def test_a_file_gives_its_signals_once_and_is_emptied_when_they_are_stored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "signals"
    signals = FileSignals(str(path))
    assert signals.take() == []
    path.write_text('{"id": "1", "type": "log", "data": {"message": "a"}}\nno signal\n{"type": "lo')
    assert signals.take() == [Signal("1", "log", {"message": "a"})]
    assert "is no signal, and is passed over" in caplog.text
    with path.open("a") as file:
        file.write('g", "data": "{\\"message\\": \\"b\\"}"}')
    (second,) = signals.take()
    assert (second.type, second.data) == ("log", {"message": "b"})
    assert signals.take() == []
    with path.open("a") as file:
        file.write('\n{"id": "3", "type": "log"}\n')
    signals.stored()
    assert path.stat().st_size > 0
    assert [each.id for each in signals.take()] == ["3"]
    signals.stored()
    assert path.read_text() == ""
    path.write_text('{"id": "4", "type": "log"}\n')
    assert [each.id for each in signals.take()] == ["4"]


def test_options_name_what_is_missing() -> None:
    with pytest.raises(ConfigError, match="list the brokers of its topic in signal"):
        SignalOptions.parse({"signal.enabled.channels": "source,kafka"})
    given = {"signal.enabled.channels": "kafka", "signal.kafka.bootstrap.servers": "a:1"}
    options = SignalOptions.parse(given | {"signal.consumer.security.protocol": "SSL"})
    assert options.consumer_settings() == {"security.protocol": "SSL", "bootstrap.servers": "a:1"}
    with pytest.raises(ConfigError, match="name its topic in notification"):
        NotificationOptions.parse({"notification.enabled.channels": "sink"})


def test_notifications_become_records_of_debeziums_form() -> None:
    options = {"notification.enabled.channels": "sink", "notification.sink.topic.name": "told"}
    notifications = Notifications(NotificationOptions.parse(options), {"server": "srv"})
    notifications.add(SnapshotNotifications("srv", "Initial Snapshot").started("n1"))
    (record,) = notifications.take({"lsn": 5})
    assert (record.topic, record.key, record.source_offset) == ("told", {"id": "n1"}, {"lsn": 5})
    assert record.value_schema is not None
    assert record.value_schema.name == "io.debezium.connector.common.Notification"
    assert json.loads(json.dumps({**record.value, "timestamp": 0})) == {
        "id": "n1",
        "type": "STARTED",
        "aggregate_type": "Initial Snapshot",
        "additional_data": {"connector_name": "srv"},
        "timestamp": 0,
    }
    assert notifications.take({}) == []


ROWS = SqlForm(lambda name: f'"{name}"', numbers=True, compares_rows=True)
PARTS = SqlForm(lambda name: f"`{name}`", numbers=False, compares_rows=False)


def test_chunks_are_read_by_ranges_of_the_key() -> None:
    queries = ChunkQueries(ROWS, '"public"."t"', "*", ("a", "b"), "note LIKE '%x%'")
    assert queries.chunk((1, "x"), (9, "z"), 10) == Query(
        'SELECT * FROM "public"."t" WHERE (note LIKE \'%x%\') AND ("a", "b") > ($1, $2) AND ("a", "b") <= '
        '($3, $4) ORDER BY "a", "b" LIMIT 10',
        (1, "x", 9, "z"),
    )
    assert ChunkQueries(ROWS, "t", "*", ("a",)).last_key() == Query('SELECT "a" FROM t ORDER BY "a" DESC LIMIT 1', ())
    assert ChunkQueries(ROWS, "t", "*", ("a",)).rest(None, None).text == 'SELECT * FROM t ORDER BY "a"'


def test_a_database_that_compares_no_rows_by_an_index_gets_the_comparison_in_parts() -> None:
    query = ChunkQueries(PARTS, "`t`", "*", ("a", "b"), "note LIKE '%x%'").chunk((1, "x"), None, 10)
    assert query.text == (
        "SELECT * FROM `t` WHERE (note LIKE '%%x%%') AND (`a` >= %s AND ((`a` > %s) OR (`a` = %s AND `b` > %s))) "
        "ORDER BY `a`, `b` LIMIT 10"
    )
    assert query.values == (1, 1, 1, "x")
    last = ChunkQueries(PARTS, "`t`", "*", ("a", "b")).rest(None, (1, "x"))
    assert "(`a` <= %s AND ((`a` < %s) OR (`a` = %s AND `b` <= %s)))" in last.text
