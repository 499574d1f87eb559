"""A standby is promoted while rows are written: the stream goes on there, and each row is sent once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import psycopg
import pytest

from connect.data import SourceRecord
from connect.testing import StoredOffsets, run_source
from connectors.cdc.postgresql import PostgresConnector
from equipment.servers.postgres_pair import PostgresPair, postgres_pair

pytestmark = [pytest.mark.integration, pytest.mark.thorough, pytest.mark.timeout(300)]


def ids(records: Sequence[SourceRecord]) -> list[int]:
    return [record.key["id"] for record in records]


class Writer:
    """Inserts rows until it is closed; goes to the standby once the primary is gone."""

    def __init__(self, pair: PostgresPair) -> None:
        self._pair = pair
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def close(self) -> None:
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        ports = [self._pair.primary, self._pair.standby]
        while not self._end.is_set():
            try:
                with self._pair.connect(ports[0]) as connection:
                    while not self._end.wait(0.002):
                        connection.execute("INSERT INTO t DEFAULT VALUES")
            except psycopg.Error:
                ports.reverse()
                self._end.wait(0.2)


def test_a_promoted_standby_goes_on_without_a_gap() -> None:
    with postgres_pair() as pair:
        with pair.connect(pair.primary) as connection:
            connection.execute("CREATE TABLE t (id serial PRIMARY KEY)")
        props = {
            "database.hostname": "127.0.0.1",
            "database.port": str(pair.primary),
            "database.user": "postgres",
            "database.dbname": "shop",
            "topic.prefix": "srv",
            "slot.name": "capture",
            "slot.failover": "true",
            "status.update.interval.ms": "100",
        }
        offsets = StoredOffsets()
        run_source(PostgresConnector, props, offsets=offsets, until=lambda _: bool(offsets.items()))
        writer = Writer(pair)
        try:
            # The standby keeps a slot once that has moved on past what the standby has of the log.
            found = run_source(
                PostgresConnector, props, offsets=offsets, until=lambda _: pair.has_safe_slot("capture"), timeout=120
            )
            found += run_source(PostgresConnector, props, offsets=offsets, until=lambda records: len(records) > 200)
            pair.fail_over()
            there: dict[str, Any] = props | {"database.port": str(pair.standby)}
            found += run_source(PostgresConnector, there, offsets=offsets, until=lambda records: len(records) > 200)
        finally:
            writer.close()
        with pair.connect(pair.standby) as connection:
            rows = [row[0] for row in connection.execute("SELECT id FROM t ORDER BY id")]
        last = rows[-1]
        if ids(found)[-1] != last:
            found += run_source(PostgresConnector, there, offsets=offsets, until=lambda records: last in ids(records))

        assert ids(found) == rows
        assert offsets.items()[0][1]["timeline"] == 2
