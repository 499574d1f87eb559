"""Proof that the catalog's version of a table is that of a place in a log which does not name columns.

With ``binlog_row_metadata=MINIMAL`` a row is only values. The catalog names the columns as they are now, which is true
of a place in the log exactly if no statement after it has changed the table. So the rest of the log, from the place up
to its end at the time of asking, is looked through for statements; rows in it are not read.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.tables import TableId
from connectors.cdc.mysql.binlog import events
from connectors.cdc.mysql.binlog.dump import BinlogDump
from connectors.cdc.mysql.binlog.events import EventType
from connectors.cdc.mysql.config import BinlogConfig
from connectors.cdc.mysql.session import Session, connected
from connectors.cdc.mysql.statements import parse_statement

__all__ = ["SchemaProof"]

_WAIT_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.5
_GIVE_WAY_SECONDS: Final = 0.001
_NO_SERVER_ID: Final = 0
"""A reader without a number ends no other."""


class SchemaProof:
    """Looks through the rest of the log for changes of tables.

    ``waits`` waits for some seconds, and returns whether the task goes on.
    """

    def __init__(self, config: BinlogConfig, session: Session, waits: Callable[[float], bool]) -> None:
        self._config = config
        self._session = session
        self._waits = waits

    def check(self, table: TableId, file: str, position: int) -> None:
        """Raise :class:`~connect.errors.ConnectError` if a statement after a place may have changed the table."""
        changed = self._change(table, file, position)
        if changed is not None:
            raise ConnectError(
                f"The log does not name the columns of table {table} (binlog_row_metadata=MINIMAL), and the table was "
                f"changed after these rows were logged ({changed}), so it is not certain which columns the rows have. "
                "Run SET GLOBAL binlog_row_metadata = 'FULL' on the server, and set it in its configuration file, for "
                "the rows to come. Those logged before need a new snapshot: delete the connector's offsets, and start "
                "it again."
            )

    def _change(self, table: TableId, file: str, position: int) -> str | None:
        end = self._session.end_of_log()
        session = connected(self._config)
        dump = BinlogDump(session.connection, is_mariadb=self._config.is_mariadb, heartbeat_seconds=_WAIT_SECONDS)
        try:
            dump.start(_NO_SERVER_ID, file=file, position=position, follow=False)
            return self._looked_through(dump, table, (file, end.file, end.position))
        finally:
            dump.close()

    def _looked_through(self, dump: BinlogDump, table: TableId, place: tuple[str, str, int]) -> str | None:
        file, last_file, last = place
        heard_at = time.monotonic()
        while not dump.ended:
            if not self._waits(_GIVE_WAY_SECONDS):
                raise RetriableError("The rest of the log is looked through again when the task goes on.")
            if not dump.wait(_LOOK_SECONDS):
                if time.monotonic() - heard_at > _WAIT_SECONDS:
                    raise RetriableError("The server has stopped sending its log, the rest of which is looked through.")
                continue
            heard_at = time.monotonic()
            for raw in dump.events():
                header = events.parse_header(raw, 0)
                if header.type == EventType.ROTATE:
                    size = events.CHECKSUM_BYTES if events.is_checked(raw) else 0
                    file, _ = events.rotation(raw[events.HEADER_BYTES : len(raw) - size])
                elif found := _touching(raw, header.type, table):
                    return found
                if file == last_file and header.end >= last:
                    return None
        return None


def _touching(raw: bytes, kind: int, table: TableId) -> str | None:
    """The statement of an event, if it is one and may change a table."""
    if kind not in (EventType.QUERY, EventType.QUERY_COMPRESSED):
        return None
    is_compressed = kind == EventType.QUERY_COMPRESSED
    checked = events.CHECKSUM_BYTES if events.is_checked(raw) else 0
    query = events.query(raw[events.HEADER_BYTES : len(raw) - checked], is_compressed=is_compressed)
    statement = parse_statement(query.sql, query.database)
    if statement is None or statement.kind == "TRUNCATE":
        return None
    named = {*statement.tables, *statement.previous}
    if table in named or (statement.kind == "DATABASE" and statement.database == table.catalog):
        return re.sub(r"\s+", " ", query.sql)[:80]
    return None
