"""What the server must be set to, and what the user must be allowed, each with the statement that repairs it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from connect.config import ConfigRuleError
from connect.errors import ConfigError, ConnectError, RetriableError
from connectors.cdc.mysql.catalog import Catalog
from connectors.cdc.mysql.config import BinlogConfig, LockingMode, TableFilter
from connectors.cdc.mysql.position import Position
from connectors.cdc.mysql.session import Server, Session

__all__ = [
    "lost_log",
    "right_errors",
    "server_errors",
    "setting_errors",
    "setting_warnings",
    "told_lost",
    "versioned_errors",
]

_HOST: Final = "database.hostname"
_USER: Final = "database.user"
_SERVER_ID: Final = "database.server.id"


def server_errors(config: BinlogConfig, session: Session) -> Iterator[ConfigError]:
    """Yield an error for all that would later fail."""
    server = session.server
    yield from _product_errors(config, server)
    yield from setting_errors(server)
    yield from right_errors(config, session)
    yield from _identity_errors(config, session)
    yield from _table_errors(config.wanted(), session)
    yield from versioned_errors(config.wanted(), session)


def _product_errors(config: BinlogConfig, server: Server) -> Iterator[ConfigError]:
    if server.is_mariadb != config.is_mariadb:
        found, wanted = ("MariaDB", "MariaDbConnector") if server.is_mariadb else ("MySQL", "MySqlConnector")
        yield ConfigRuleError(f"The server is {found} {server.version}: use the {wanted}.", _HOST, "connector.class")


def setting_errors(server: Server) -> Iterator[ConfigError]:
    """Yield an error for each setting of the server with which changes are not in its log."""
    variables = server.variables
    if variables.get("log_bin", "OFF").upper() not in ("ON", "1"):
        yield ConfigRuleError(
            "The server writes no binary log: add log_bin=binlog and a server_id to its configuration file, and "
            "restart it.",
            _HOST,
        )
    if variables.get("binlog_format", "ROW").upper() != "ROW":
        yield ConfigRuleError(
            f"The server logs statements (binlog_format={variables['binlog_format']}): run SET GLOBAL binlog_format = "
            "'ROW', set it in its configuration file too, and end the sessions that were there before.",
            _HOST,
        )
    if variables.get("binlog_row_image", "FULL").upper() != "FULL":
        yield ConfigRuleError(
            f"The server logs parts of rows only (binlog_row_image={variables['binlog_row_image']}): run SET GLOBAL "
            "binlog_row_image = 'FULL', and set it in its configuration file too.",
            _HOST,
        )


def setting_warnings(config: BinlogConfig, server: Server) -> Iterator[str]:
    """Yield a warning for each setting with which the connector runs, but less well."""
    variables = server.variables
    if variables.get("binlog_row_metadata", "MINIMAL").upper() != "FULL":
        yield (
            "The log does not name the columns of tables (binlog_row_metadata=MINIMAL). After a change of a table the "
            "connector goes on only if it can prove which columns rows have. Run SET GLOBAL binlog_row_metadata = "
            "'FULL', and set it in the server's configuration file too."
        )
    if not server.has_gtids:
        yield (
            "Transactions have no global ids (gtid_mode is not ON), so the connector cannot go on at a replica after "
            "a failover. Set gtid_mode=ON and enforce_gtid_consistency=ON in the server's configuration file."
        )
    logs_statements = "binlog_annotate_row_events" if server.is_mariadb else "binlog_rows_query_log_events"
    if config.include_query and variables.get(logs_statements, "OFF").upper() != "ON":
        yield f"include.query=true has no effect: run SET GLOBAL {logs_statements} = ON."


_GRANT: Final = re.compile(r"GRANT (.*?) ON (\*\.\*|.*?) TO ", re.IGNORECASE)
_ALIASES: Final = {
    "REPLICATION MASTER ADMIN": "BINLOG MONITOR",
    "SUPER": "BINLOG MONITOR",
    "REPLICATION CLIENT": "BINLOG MONITOR",
}


def right_errors(config: BinlogConfig, session: Session) -> Iterator[ConfigError]:
    """Yield an error for each right that the user lacks, with the statement that grants it."""
    rights = _rights(session)
    if "ALL PRIVILEGES" in rights or "ALL" in rights:
        return
    watches = "BINLOG MONITOR" if session.server.is_mariadb else "REPLICATION CLIENT"
    needed = [("REPLICATION SLAVE", "to read the log"), (watches, "to ask where the log ends")]
    takes_rows = config.snapshot_mode.lower() in ("initial", "always", "initial_only", "when_needed")
    if takes_rows and config.snapshot_locking_mode is not LockingMode.NONE and "LOCK TABLES" not in rights:
        needed.append(("RELOAD", "to lock the tables for a moment before the snapshot (or snapshot.locking.mode=none)"))
    for right, use in needed:
        if right not in rights and _ALIASES.get(right, right) not in {_ALIASES.get(each, each) for each in rights}:
            yield ConfigRuleError(
                f"The user {config.database_user} lacks the right {right}, {use}: run GRANT {right} ON *.* TO "
                f"'{config.database_user}'.",
                _USER,
            )


def _rights(session: Session) -> set[str]:
    """The rights that are granted on everything, in capitals; roles in use count."""
    found: set[str] = set()
    for row in session.rows("SHOW GRANTS"):
        match = _GRANT.match(str(next(iter(row.values()))))
        if match and match[2] == "*.*":
            found |= {right.strip().upper() for right in match[1].split(",")}
    return found


def _identity_errors(config: BinlogConfig, session: Session) -> Iterator[ConfigError]:
    own = session.server.variables.get("server_id")
    if own == str(config.database_server_id):
        yield ConfigRuleError(
            f"database.server.id={own} is the number of the server itself: choose one that no server and no other "
            "replica has.",
            _SERVER_ID,
        )
    for row in _replicas(session):
        if str(row["server_id"]) == str(config.database_server_id) and str(row["host"]) != config.replica_name:
            yield ConfigRuleError(
                f"database.server.id={config.database_server_id} is the number of the replica {row['host'] or '?'}: "
                "choose another, or each would end the other's connection.",
                _SERVER_ID,
            )


def _replicas(session: Session) -> list[dict[str, Any]]:
    """The replicas that the server knows; none if the user may not see them, which MariaDB grants to few."""
    new = not session.server.is_mariadb and session.server.number >= (8, 0, 22)
    try:
        return session.rows("SHOW REPLICAS" if new else "SHOW SLAVE HOSTS")
    except RetriableError:
        raise
    except ConnectError:
        return []


def _table_errors(wanted: TableFilter, session: Session) -> Iterator[ConfigError]:
    tables = Catalog(session).tables()
    if tables and not any(wanted(table) for table, _ in tables):
        yield ConfigRuleError(
            "None of the tables that this user sees is captured: check database.include.list and table.include.list "
            "(names of tables are DATABASE.TABLE), and run GRANT SELECT ON DATABASE.* TO the user.",
            "table.include.list",
        )


def versioned_errors(wanted: TableFilter, session: Session) -> Iterator[ConfigError]:
    """Yield an error for captured tables that keep their history."""
    found = [str(table) for table in Catalog(session).versioned_tables() if wanted(table)]
    if found:
        yield ConfigRuleError(
            f"System-versioned tables cannot be captured, since the log has their deletions as updates: leave "
            f"{', '.join(found)} out with table.exclude.list.",
            "table.exclude.list",
        )


def lost_log(position: Position, session: Session) -> str | None:
    """Return what is lost, and what to do, if the server no longer has its log from a position on."""
    server = session.server
    if position.gtids and server.has_gtids:
        return _lost_gtids(position, session)
    files = session.log_files()
    if position.file in files:
        end = session.end_of_log()
        if position.file == end.file and position.position > end.position:
            return told_lost(f"the log ends at {end.file}:{end.position}, before {position.file}:{position.position}")
        return None
    return told_lost(f"the log begins at {files[0] if files else 'nothing'}, and {position.file} is not part of it")


def _lost_gtids(position: Position, session: Session) -> str | None:
    server = session.server
    try:
        done = server.gtid_set(position.gtids or "")
    except ValueError as error:
        raise ConnectError(
            f"The offset's GTIDs are not of this kind of server: {error}. Use the connector of the database that the "
            "offset comes from, or delete the offset."
        ) from error
    executed = session.executed()
    if server.is_mariadb:
        # The server itself says on connecting whether its log reaches back.
        if not executed.contains(done):  # type: ignore[arg-type]
            return told_lost(f"the server has transactions up to {executed} only, the offset {done}")
        return None
    missing = session.purged().minus(done)  # type: ignore[arg-type]
    if missing:
        return told_lost(f"the server has purged {missing}")
    if not executed.contains(done):  # type: ignore[arg-type]
        ahead = done.minus(executed)  # type: ignore[union-attr, arg-type]
        return told_lost(f"the server does not have {ahead}, which the offset has")
    return None


def told_lost(what: str) -> str:
    """Return what is said of a log that does not continue, and what to do."""
    return (
        f"The log of the server does not continue where the connector stopped: {what}. Changes may be lost. Set "
        "snapshot.mode=when_needed to read all rows again by itself, or delete the connector's offsets and start it; "
        "keep the log for longer with binlog_expire_logs_seconds."
    )
