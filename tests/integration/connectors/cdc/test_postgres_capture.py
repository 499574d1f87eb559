"""The PostgreSQL connector on a real server: from the snapshot to the stream, restarts, slots and publications."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

import psycopg
import pytest

from connect.data import SourceRecord
from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.incremental_state import Collection
from connect.testing import StoredOffsets, run_source
from connectors.cdc.postgresql import PostgresConnector
from connectors.cdc.postgresql.assembly import made_dialect, made_schemas
from connectors.cdc.postgresql.catalog import Catalog
from connectors.cdc.postgresql.config import PostgresConfig
from connectors.cdc.postgresql.connection import open_session
from connectors.cdc.postgresql.offsets import parse_lsn
from connectors.cdc.postgresql.snapshot import begin_snapshot, snapshot_tables, works_of
from equipment.change_data import capture_props, drop_slots
from equipment.servers.lease import Database
from equipment.waiting import wait_until

pytestmark = pytest.mark.integration

Found = Sequence[SourceRecord]


class Captured:
    """A connector for a database, which is run again and again with its stored offsets."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.offsets = StoredOffsets()

    def run(self, until: Callable[[Found], bool], **more: Any) -> list[SourceRecord]:
        """Run it until its records are enough."""
        return run_source(PostgresConnector, self.props(**more), offsets=self.offsets, until=until)

    def props(self, **more: Any) -> dict[str, str]:
        return capture_props(self.database, **more)

    def offset(self) -> dict[str, Any]:
        ((_, offset),) = self.offsets.items()
        return offset

    def confirmed_lsn(self) -> int:
        query = f"SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE {self.own_slot}"
        ((lsn,),) = self.database.rows(query)
        return parse_lsn(lsn)

    @property
    def own_slot(self) -> str:
        return f"slot_name = 'slot_{self.database.name}'"


@pytest.fixture
def capture(captured: Database) -> Captured:
    return Captured(captured)


def rows(records: Found) -> list[tuple[str, Any]]:
    """The operations of events, with their keys."""
    return [(record.value["op"], record.key["id"]) for record in records if record.value is not None]


def enough(count: int) -> Callable[[Found], bool]:
    return lambda records: len(records) >= count


def ids(records: Found, operation: str) -> list[int]:
    return [key for op, key in rows(records) if op == operation]


def test_a_table_stays_as_it_is_until_a_snapshot_has_read_it(capture: Captured) -> None:
    """One that was rewritten or emptied meanwhile would have no rows in the view of the snapshot."""
    database = capture.database
    database.execute(
        "CREATE TABLE a (id int)", "INSERT INTO a SELECT generate_series(1, 50)", "CREATE TABLE b AS SELECT 1 AS id"
    )
    refused: list[str] = []

    def is_whole(records: Found) -> bool:
        if records and not refused:
            for statement in ("ALTER TABLE b ALTER id TYPE bigint", "TRUNCATE b"):
                with pytest.raises(psycopg.errors.LockNotAvailable):
                    database.execute("SET lock_timeout = '100ms'", statement)
                refused.append(statement)
        return len(records) >= 51

    found = capture.run(is_whole, max_batch_size=1)
    assert [record.topic for record in found] == ["srv.public.a"] * 50 + ["srv.public.b"]


def test_a_snapshot_begins_anew_if_a_table_was_emptied_as_it_began(captured: Database) -> None:
    captured.execute("CREATE TABLE t (id int)", "INSERT INTO t VALUES (1)")
    config = PostgresConfig.parse(capture_props(captured))
    with open_session(config) as session:
        begin_snapshot(session, None, None, locks_ms=None, tables=())
        catalog = Catalog(session, captured.name)
        (table,) = snapshot_tables(catalog, catalog.tables(), made_schemas(config, made_dialect(config)).of, {})
        captured.execute("TRUNCATE t")
        with pytest.raises(RetriableError, match="t was rewritten or emptied"):
            works_of(session, [(table, Collection("public.t"))], 1)


def test_the_view_of_a_snapshot_outlasts_limits_of_time(capture: Captured) -> None:
    database = capture.database
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t SELECT generate_series(1, 20)",
        f"ALTER DATABASE {database.name} SET idle_in_transaction_session_timeout = '200ms'",
    )
    idle = (
        "SELECT count(*) > 0 FROM pg_stat_activity WHERE datname = current_database() "
        "AND state = 'idle in transaction' AND clock_timestamp() - state_change > '400ms'"
    )
    waited: list[bool] = []

    def is_whole(records: Found) -> bool:
        if records and not waited:
            waited.append(wait_until("the view has been idle", lambda: database.rows(idle)[0][0], 20.0))
        return len(records) >= 20

    assert ids(capture.run(is_whole, max_batch_size=1), "r") == list(range(1, 21))


def test_rows_that_a_policy_hides_are_an_error(capture: Captured) -> None:
    """Otherwise the snapshot would lack them, and their changes would come."""
    database, user = capture.database, f"tenant_{capture.database.name}"
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1), (2)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY own ON t USING (id = 1)",
        "CREATE PUBLICATION dbz_publication FOR TABLE t",
        f"CREATE ROLE {user} LOGIN REPLICATION PASSWORD 'p'",
        f"GRANT SELECT ON t TO {user}",
    )
    keys = {"database_user": user, "database_password": "p", "publication_autocreate_mode": "disabled"}
    try:
        with pytest.raises(ConnectError, match=r"row-level security policy.*BYPASSRLS"):
            capture.run(enough(1), **keys)
        told = errors(capture.props(**keys))
        without_rows = errors(capture.props(snapshot_mode="no_data", **keys))
        database.execute(f"ALTER ROLE {user} BYPASSRLS")
        found = capture.run(enough(2), **keys)
    finally:
        database.execute(f"DROP OWNED BY {user}", f"DROP ROLE {user}")

    assert (list(told), without_rows) == (["database.user"], {})
    assert "hide rows of public.t" in told["database.user"]
    assert ids(found, "r") == [1, 2]


def test_rows_written_during_the_snapshot_are_neither_lost_nor_doubled(capture: Captured) -> None:
    """A writer inserts all the while: each row is read by the snapshot or streamed, never both."""
    capture.database.execute(
        "CREATE TABLE t (id serial PRIMARY KEY)", "INSERT INTO t SELECT FROM generate_series(1, 2000)"
    )
    end = threading.Event()
    written = [2000]

    def write() -> None:
        with closing(capture.database.connect()) as connection:
            while not end.is_set():
                written[0] = connection.execute("INSERT INTO t DEFAULT VALUES RETURNING id").fetchone()[0]

    writer = threading.Thread(target=write)
    writer.start()
    try:
        found = capture.run(lambda records: len(ids(records, "c")) > 100, max_batch_size=100)
    finally:
        end.set()
        writer.join()
    found += capture.run(lambda records: bool(records) and records[-1].key["id"] == written[0])

    assert sorted([*ids(found, "r"), *ids(found, "c")]) == list(range(1, written[0] + 1))
    assert found[0].value["source"]["snapshot"] == "first"
    assert [record.value["source"]["snapshot"] for record in found if record.value["op"] == "r"][-1] == "last"


def test_after_the_snapshot_its_view_is_closed(capture: Captured) -> None:
    """It would keep the server from vacuuming; tables are seen as they are now, and heartbeats may write."""
    database = capture.database
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)", "CREATE TABLE beats (at timestamptz)"
    )
    later = [
        "CREATE TYPE mood AS ENUM ('good')",
        "ALTER TABLE t ADD m mood NOT NULL DEFAULT 'good'",
        "INSERT INTO t VALUES (2)",
    ]

    def is_whole(records: Found) -> bool:
        if capture.offsets.items() and later and database.rows("SELECT 1 FROM beats LIMIT 1"):
            open_views = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND state LIKE 'idle in transaction%%'"
            with closing(database.connect()) as connection:
                assert connection.execute(open_views, (database.name,)).fetchall() == []
            database.execute(*later)
            later.clear()
        return len(records) >= 2

    found = capture.run(
        lambda records: is_whole([record for record in records if record.topic == "srv.public.t"]),
        heartbeat_interval_ms=100,
        heartbeat_action_query="INSERT INTO beats VALUES (now())",
        table_include_list="public.t",
    )
    (created,) = [record for record in found if record.value.get("op") == "c"]
    assert created.value["after"] == {"id": 2, "m": "good"}
    assert not created.value_schema.field("after").schema.field("m").schema.optional


def test_a_copy_goes_on_in_its_midst(capture: Captured) -> None:
    """A hundred rows of one COPY have few positions: a stop after each record loses none and doubles none."""
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    capture.run(lambda _: bool(capture.offsets.items()))
    with closing(capture.database.connect()) as connection, connection.cursor().copy("COPY t FROM STDIN") as copy:
        for number in range(100):
            copy.write_row((number,))
    found: list[SourceRecord] = []
    while len(found) < 100:
        batch = capture.run(enough(1), max_batch_size=7)
        # Only a part of what was sent is stored: the rest comes again.
        found += batch[:5]
        capture.offsets = StoredOffsets([(batch[0].source_partition, found[-1].source_offset)])

    assert ids(found, "c") == list(range(100))
    assert found[50].source_offset["lsn_events_processed"] > 1


def test_a_changed_key_is_whole_or_comes_again(capture: Captured) -> None:
    """A deletion, a tombstone and a creation: whoever stops between them gets all three again."""
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY, v int)", "INSERT INTO t VALUES (1, 1)")
    capture.run(enough(1))
    before = capture.offset()
    capture.database.execute("UPDATE t SET id = 2")
    found = capture.run(enough(3))

    # What other databases write may move the place before the update, too.
    first, second = (record.source_offset["lsn_commit"] for record in found[:2])
    assert before["lsn"] <= first == second <= found[2].source_offset["lsn"]
    for stop in (0, 1):
        capture.offsets = StoredOffsets([(found[0].source_partition, found[stop].source_offset)])
        assert [(record.key, record.value and record.value["op"]) for record in capture.run(enough(3))] == [
            ({"id": 1}, "d"),
            ({"id": 1}, None),
            ({"id": 2}, "c"),
        ]


def test_a_lost_slot_is_told_with_what_to_do(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    capture.run(enough(1))
    drop_slots(capture.database)
    capture.database.execute("INSERT INTO t VALUES (2)")

    with pytest.raises(ConnectError, match=r"does not exist any more.*snapshot.mode=when_needed"):
        capture.run(enough(1))
    assert rows(capture.run(enough(2), snapshot_mode="when_needed")) == [("r", 1), ("r", 2)]


def test_a_slot_that_was_made_anew_is_noticed(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    capture.run(enough(1))
    drop_slots(capture.database)
    capture.database.execute("INSERT INTO t VALUES (2)")
    capture.database.execute(f"SELECT pg_create_logical_replication_slot('slot_{capture.database.name}', 'pgoutput')")
    capture.database.execute("INSERT INTO t VALUES (3)")

    with pytest.raises(ConnectError, match=r"behind the stored offset.*offset.mismatch.strategy=trust_slot"):
        capture.run(enough(1))
    assert rows(capture.run(enough(1), offset_mismatch_strategy="trust_slot")) == [("c", 3)]


def test_another_cluster_is_noticed(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    capture.run(enough(1))
    ((partition, offset),) = capture.offsets.items()
    capture.offsets = StoredOffsets([(partition, {**offset, "system_identifier": "1"})])

    with pytest.raises(ConnectError, match="another cluster"):
        capture.run(enough(1))


def test_the_log_of_idle_tables_is_confirmed(capture: Captured) -> None:
    """Only tables that nobody captures change: the slot moves on, without a heartbeat table."""
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)", "CREATE TABLE other (id int)")
    capture.run(lambda _: bool(capture.offsets.items()), table_include_list="public.t")
    before = capture.confirmed_lsn()
    capture.database.execute("INSERT INTO other SELECT generate_series(1, 1000)")
    ((end,),) = capture.database.rows("SELECT pg_current_wal_lsn()::text")

    capture.run(
        lambda _: capture.offset().get("lsn_commit", 0) >= parse_lsn(end) and capture.confirmed_lsn() >= parse_lsn(end),
        table_include_list="public.t",
    )
    assert capture.confirmed_lsn() > before


def test_offsets_of_debezium_are_taken_over(capture: Captured) -> None:
    """Debezium's offset in the midst of a transaction names its events' position and count."""
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    capture.run(lambda _: bool(capture.offsets.items()))
    capture.database.execute("INSERT INTO t SELECT generate_series(1, 5)")
    found = capture.run(enough(5))
    theirs = {
        key: value for key, value in found[2].source_offset.items() if key not in ("system_identifier", "timeline")
    }
    assert set(theirs) == {"lsn_proc", "lsn_events_processed", "messageType", "lsn_commit", "lsn", "txId", "ts_usec"}
    capture.offsets = StoredOffsets([(found[0].source_partition, theirs)])

    assert ids(capture.run(enough(2)), "c") == [4, 5]


@pytest.mark.parametrize(
    ("mode", "first", "again"),
    [("initial", ["r"], []), ("no_data", [], []), ("always", ["r"], ["r", "r"]), ("when_needed", ["r"], [])],
)
def test_snapshot_modes(capture: Captured, mode: str, first: list[str], again: list[str]) -> None:
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    begun = capture.run(lambda _: bool(capture.offsets.items()) and exists(capture), snapshot_mode=mode)
    capture.database.execute("INSERT INTO t VALUES (2)")
    streamed = "c" if mode != "always" else "r"
    found = capture.run(lambda records: bool(records) and records[-1].key["id"] == 2, snapshot_mode=mode)

    assert [op for op, _ in rows(begun)] == first
    assert [op for op, _ in rows(found)] == (again or [streamed])


def exists(capture: Captured) -> bool:
    return bool(capture.database.rows(f"SELECT FROM pg_replication_slots WHERE {capture.own_slot}"))


def test_initial_only_reads_rows_and_makes_no_slot(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)", "INSERT INTO t VALUES (1)")

    found = run_source(PostgresConnector, capture.props(snapshot_mode="initial_only"), offsets=capture.offsets)
    assert rows(found) == [("r", 1)]
    assert not exists(capture)
    assert run_source(PostgresConnector, capture.props(snapshot_mode="initial_only"), offsets=capture.offsets) == []


def test_a_snapshot_without_rows_ends(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    capture.run(lambda _: bool(capture.offsets.items()))
    capture.database.execute("INSERT INTO t VALUES (1)")

    assert rows(capture.run(enough(1))) == [("c", 1)]


def test_an_old_value_takes_the_place_of_one_that_was_not_sent(capture: Captured) -> None:
    """An unchanged large value is not sent; under REPLICA IDENTITY FULL the old row has it."""
    capture.database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, big text, n int)",
        "ALTER TABLE t ALTER big SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (1, repeat('x', 3000), 0)",
    )
    capture.run(enough(1))
    capture.database.execute("UPDATE t SET n = 1", "ALTER TABLE t REPLICA IDENTITY FULL", "UPDATE t SET n = 2")
    first, second = capture.run(enough(2))

    assert first.value["after"]["big"] == "__debezium_unavailable_value"
    assert second.value["after"]["big"] == "x" * 3000


def test_a_large_key_that_stays_is_that_of_the_change(capture: Captured) -> None:
    """The server sends it with the old row alone."""
    capture.database.execute(
        "CREATE TABLE t (id text PRIMARY KEY, n int)",
        "ALTER TABLE t ALTER id SET STORAGE EXTERNAL",
        "INSERT INTO t VALUES (repeat('x', 2500), 0)",
    )
    capture.run(enough(1))
    capture.database.execute("UPDATE t SET n = 1")
    (changed,) = capture.run(enough(1))

    assert (changed.key, changed.value["op"]) == ({"id": "x" * 2500}, "u")
    assert changed.value["after"] == {"id": "x" * 2500, "n": 1}


def test_partitions_have_topics_of_their_own_or_that_of_their_table(capture: Captured) -> None:
    capture.database.execute(
        "CREATE TABLE p (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (10)",
        "INSERT INTO p VALUES (1)",
    )
    first = capture.run(enough(1))
    capture.database.execute(
        "CREATE TABLE p2 PARTITION OF p FOR VALUES FROM (10) TO (20)", "INSERT INTO p VALUES (2), (11)"
    )
    second = capture.run(enough(2))
    drop_slots(capture.database)
    capture.offsets = StoredOffsets()
    third = capture.run(enough(3), publish_via_partition_root="true")
    capture.database.execute("INSERT INTO p VALUES (12)")
    fourth = capture.run(enough(1), publish_via_partition_root="true")

    assert [record.topic for record in first] == ["srv.public.p1"]
    assert [record.topic for record in second] == ["srv.public.p1", "srv.public.p2"]
    assert {record.topic for record in [*third, *fourth]} == {"srv.public.p"}
    assert sorted(ids(third, "r")) == [1, 2, 11]


def test_a_publication_follows_the_tables(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    capture.run(lambda _: bool(capture.offsets.items()))
    capture.database.execute("CREATE TABLE b (id int PRIMARY KEY)")
    with pytest.raises(ConnectError, match=r'ALTER PUBLICATION "dbz_publication" ADD TABLE "public"."b"'):
        capture.run(enough(1), publication_autocreate_mode="disabled")

    capture.run(lambda _: "b" in published(capture))
    capture.database.execute("INSERT INTO b VALUES (1)")
    assert [record.topic for record in capture.run(enough(1))] == ["srv.public.b"]


def test_tables_that_come_while_it_runs_are_published(capture: Captured, caplog: pytest.LogCaptureFixture) -> None:
    """And those that somebody has taken out of the publication; what is missing of them is told."""
    caplog.set_level(logging.WARNING)
    capture.database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    steps = [
        ["ALTER PUBLICATION dbz_publication DROP TABLE a", "CREATE TABLE b (id int PRIMARY KEY)"],
        ["INSERT INTO a VALUES (1)", "INSERT INTO b VALUES (1)"],
    ]
    published_after = [["a"], ["a", "b"]]

    def is_whole(records: Found) -> bool:
        if capture.offsets.items() and steps and published(capture) == published_after[-len(steps)]:
            capture.database.execute(*steps.pop(0))
        return len(records) == 2

    found = capture.run(is_whole)
    assert sorted(record.topic for record in found) == ["srv.public.a", "srv.public.b"]
    assert "did not have public.a, public.b until now" in caplog.text


def test_changes_that_were_written_without_a_publication_are_told(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE a (id int PRIMARY KEY)")
    capture.run(lambda _: bool(capture.offsets.items()))
    capture.database.execute("DROP PUBLICATION dbz_publication", "INSERT INTO a VALUES (1)")
    with pytest.raises(ConnectError, match=r"they are lost\. Run SELECT pg_drop_replication_slot"):
        capture.run(enough(1))


def published(capture: Captured) -> list[str]:
    return [name for (name,) in capture.database.rows("SELECT tablename FROM pg_publication_tables ORDER BY 1")]


def test_a_missing_publication_is_made_or_told(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE a (id int PRIMARY KEY)")

    with pytest.raises(ConnectError, match=r'Run CREATE PUBLICATION "dbz_publication" FOR TABLE "public"."a"'):
        capture.run(enough(1), publication_autocreate_mode="disabled")
    capture.run(lambda _: bool(capture.offsets.items()), publication_autocreate_mode="all_tables")
    assert capture.database.rows("SELECT puballtables FROM pg_publication") == [(True,)]


def test_replica_identities_are_set(capture: Captured) -> None:
    capture.database.execute("CREATE TABLE a (id int PRIMARY KEY, n int)", "INSERT INTO a VALUES (1, 1)")
    capture.run(enough(1), replica_identity_autoset_values="public.a:FULL")
    capture.database.execute("UPDATE a SET n = 2")

    (changed,) = capture.run(enough(1))
    assert changed.value["before"] == {"id": 1, "n": 1}


def test_columns_and_keys_follow_the_configuration(capture: Captured) -> None:
    capture.database.execute(
        "CREATE TABLE a (id int PRIMARY KEY, name text, secret text, code text)",
        "INSERT INTO a VALUES (1, 'longer name', 'x', 'y')",
    )
    (found,) = capture.run(
        enough(1),
        **{
            "column_exclude_list": "public.a.id",
            "column_truncate_to_6_chars": "public.a.name",
            "column_mask_with_3_chars": "public.a.secret",
            "column_mask_hash_v2_SHA-256_with_salt_S": "public.a.code",
            "message_key_columns": "public.a:id,name",
        },
    )

    assert found.key == {"id": 1, "name": "longer name"}
    code = hashlib.sha256(b"Sy").hexdigest()
    assert found.value["after"] == {"name": "longer", "secret": "***", "code": code}


def test_a_validation_names_the_statements_that_repair(capture: Captured) -> None:
    """A user without rights, a publication that is missing, and tables that do not exist."""
    database = capture.database
    user = f"poor_{database.name}"
    database.execute("CREATE TABLE t (id int PRIMARY KEY)", f"CREATE ROLE {user} LOGIN PASSWORD 'p'")
    try:
        told = errors(capture.props(database_user=user, database_password="p", publication_autocreate_mode="disabled"))
    finally:
        database.execute(f"DROP ROLE {user}")

    assert f'GRANT SELECT ON "public"."t" TO "{user}";' in told["database.user"]
    assert f'ALTER ROLE "{user}" REPLICATION;' in told["database.user"]
    assert 'CREATE PUBLICATION "dbz_publication" FOR TABLE "public"."t";' in told["publication.name"]
    assert "expressions have to match all of it" in errors(capture.props(table_include_list="t"))["table.include.list"]
    assert "Check database.user" in errors(capture.props(database_password="wrong"))["database.hostname"]
    assert errors(capture.props()) == {}


def errors(props: dict[str, str]) -> dict[str, str]:
    """Return the errors of a validation, by key."""
    values = PostgresConnector.config_class.validate(props)
    return {value.name: " ".join(value.errors) for value in values if value.errors}
