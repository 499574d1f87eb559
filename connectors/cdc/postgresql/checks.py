"""What a validation finds out by connecting: everything that would fail later, with the statement that repairs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from connect.config import ConfigRuleError
from connect.errors import ConfigError, ConnectError
from connect.internals.java.regex import regex_of_name
from connect.kits.cdc.filters import NameFilter
from connectors.cdc.postgresql.catalog import CapturedTable, Catalog, captured_tables
from connectors.cdc.postgresql.config import AutoCreateMode, PostgresConfig, SnapshotMode
from connectors.cdc.postgresql.connection import open_session
from connectors.cdc.postgresql.publications import named, publication_steps, read_publication
from connectors.cdc.postgresql.replication import quoted
from connectors.cdc.postgresql.slots import SlotState, check_slot, read_slot
from connectors.cdc.postgresql.snapshot import BYPASSING

if TYPE_CHECKING:
    import psycopg

__all__ = ["CheckedPostgresConfig", "Problem", "problems", "without_identity"]

_SERVER: Final = """
SELECT current_setting('server_version_num')::int, current_setting('wal_level'), pg_is_in_recovery(),
       current_setting('max_replication_slots')::int, (SELECT count(*) FROM pg_replication_slots),
       current_setting('max_wal_senders')::int, (SELECT count(*) FROM pg_stat_activity WHERE backend_type =
       'walsender'), r.rolsuper, r.rolreplication
           OR EXISTS (SELECT FROM pg_roles m WHERE m.rolname IN ('rds_replication', 'cloudsqlreplica', 'azure_pg_admin')
                      AND pg_has_role(r.oid, m.oid, 'member')),
       has_database_privilege(current_database(), 'CREATE')
FROM pg_roles r WHERE r.rolname = current_user
"""
_UNREADABLE: Final = """
SELECT c.oid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid = ANY(%s) AND NOT (has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, 'SELECT'))
"""
_POLICED: Final = "SELECT oid FROM pg_class WHERE oid = ANY(%s) AND row_security_active(oid)"
_NOT_OWNED: Final = "SELECT oid FROM pg_class WHERE oid = ANY(%s) AND NOT pg_has_role(relowner, 'USAGE')"
_LOGICAL_FROM: Final = 100_000
_STANDBY_FROM: Final = 160_000
_FAILOVER_FROM: Final = 170_000
_SHOWN: Final = 10
_WITHOUT_ROWS: Final = (SnapshotMode.NO_DATA, SnapshotMode.NEVER)


class CheckedPostgresConfig(PostgresConfig):
    """The options of the connector, which are validated by connecting too."""

    always_checks_system = True

    def check_system(self) -> Iterator[ConfigError]:
        """Connect, and yield an error for what would fail later."""
        for problem in problems(self):
            yield ConfigRuleError(problem.told, problem.key)

    choices: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("table.include.list", "table.exclude.list"), "tables"),
        **dict.fromkeys(("schema.include.list", "schema.exclude.list"), "schemas"),
    }

    def choices_of(self, key: str) -> Iterator[str]:
        """Yield the tables whose changes are logged, in the chosen schemas, or the schemas that have such tables."""
        of_schemas = key.startswith("schema.")
        with open_session(self) as session:
            tables = Catalog(session, self.database_dbname).tables()
        if not of_schemas:
            tables = captured_tables(
                tables, NameFilter(), self.schema_filter(), via_root=self.publish_via_partition_root
            )
        for table in tables:
            yield regex_of_name(table.id.schema if of_schemas else str(table.id))


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, at the key that it is shown at."""

    key: str
    told: str


@dataclass(frozen=True, slots=True)
class _Server:
    version: int
    wal_level: str
    is_standby: bool
    max_slots: int
    slots: int
    max_senders: int
    senders: int
    is_superuser: bool
    may_replicate: bool
    may_create: bool


def problems(config: PostgresConfig) -> Iterator[Problem]:
    """Yield what would fail when the connector runs."""
    try:
        session = open_session(config)
    except ConnectError as error:
        yield Problem("database.hostname", str(error))
        return
    with session:
        row = session.execute(_SERVER).fetchone()
        if row is None:
            return
        server = _Server(*row)
        everything = Catalog(session, config.database_dbname).tables()
        captured = captured_tables(
            everything, config.table_filter(), config.schema_filter(), via_root=config.publish_via_partition_root
        )
        streams = config.snapshot_mode is not SnapshotMode.INITIAL_ONLY
        yield from _of_tables(session, config, captured)
        if streams:
            slot = read_slot(session, config.slot_name)
            yield from _of_server(config, server)
            yield from _of_slot(config, server, slot)
            yield from _of_publication(session, config, server, captured, everything)


def _of_server(config: PostgresConfig, server: _Server) -> Iterator[Problem]:
    if server.version < _LOGICAL_FROM:
        yield Problem("database.hostname", "The server is older than PostgreSQL 10, which brought pgoutput.")
    if server.wal_level != "logical":
        yield Problem(
            "database.hostname",
            f"The server's wal_level is {server.wal_level}. Run ALTER SYSTEM SET wal_level = logical; and restart the "
            "server (on Amazon RDS set rds.logical_replication = 1).",
        )
    if server.is_standby and server.version < _STANDBY_FROM:
        yield Problem("database.hostname", "The server is a standby, which decodes changes since PostgreSQL 16 only.")
    if not (server.is_superuser or server.may_replicate):
        yield Problem(
            "database.user",
            f"{config.database_user} may not replicate. Run ALTER ROLE {quoted(config.database_user)} REPLICATION; (on "
            f"Amazon RDS: GRANT rds_replication TO {quoted(config.database_user)};)",
        )
    if server.senders >= server.max_senders:
        yield Problem(
            "database.hostname",
            f"All {server.max_senders} places for replication connections are taken. Run ALTER SYSTEM SET "
            f"max_wal_senders = {server.max_senders + 10}; and restart the server.",
        )


def _of_slot(config: PostgresConfig, server: _Server, slot: SlotState | None) -> Iterator[Problem]:
    if config.slot_failover and server.version < _FAILOVER_FROM:
        yield Problem("slot.failover", "Slots are synchronised to standbys since PostgreSQL 17: remove the key.")
    if slot is not None:
        try:
            check_slot(slot, config.database_dbname)
        except ConnectError as error:
            yield Problem("slot.name", str(error))
    elif server.slots >= server.max_slots:
        yield Problem(
            "slot.name",
            f"All {server.max_slots} replication slots are in use. Drop those that nobody reads, which "
            "pg_replication_slots shows as not active, or run ALTER SYSTEM SET max_replication_slots = "
            f"{server.max_slots + 10}; and restart the server.",
        )


def _of_tables(
    session: psycopg.Connection[Any], config: PostgresConfig, captured: Sequence[CapturedTable]
) -> Iterator[Problem]:
    key = "table.include.list" if config.table_include_list else "schema.include.list"
    if not captured:
        if config.table_include_list or config.schema_include_list:
            yield Problem(
                key,
                f"No table of database {config.database_dbname} is captured. Names are compared as SCHEMA.TABLE, such "
                f"as "
                "public.orders, and expressions have to match all of it.",
            )
        return
    oids = [row[0] for row in session.execute(_UNREADABLE, ([table.oid for table in captured],)).fetchall()]
    if unreadable := [table for table in captured if table.oid in oids]:
        user = quoted(config.database_user)
        schemas = ", ".join(sorted({quoted(table.id.schema) for table in unreadable}))
        yield Problem(
            "database.user",
            f"{config.database_user} may not read {_listed(unreadable)}. Run GRANT USAGE ON SCHEMA {schemas} TO "
            f"{user}; GRANT SELECT ON {', '.join(named(table.id) for table in unreadable[:_SHOWN])} TO {user};",
        )
    oids = [row[0] for row in session.execute(_POLICED, ([table.oid for table in captured],)).fetchall()]
    if policed := [table for table in captured if table.oid in oids and config.snapshot_mode not in _WITHOUT_ROWS]:
        yield Problem(
            "database.user",
            f"Policies of row-level security hide rows of {_listed(policed)} from {config.database_user}, and the "
            f"snapshot would lack them. {BYPASSING}",
        )


def _of_publication(
    session: psycopg.Connection[Any],
    config: PostgresConfig,
    server: _Server,
    captured: Sequence[CapturedTable],
    everything: Sequence[CapturedTable],
) -> Iterator[Problem]:
    mode = config.publication_autocreate_mode
    state = read_publication(session, config.publication_name)
    try:
        steps = list(
            publication_steps(
                config.publication_name,
                mode,
                state,
                captured,
                everything,
                via_root=config.publish_via_partition_root,
                skipped=config.skipped(),
            )
        )
    except ConnectError as error:
        yield Problem("publication.name", str(error))
        return
    if not steps or server.is_superuser:
        return
    if state is None and mode is AutoCreateMode.ALL_TABLES:
        yield Problem(
            "publication.autocreate.mode",
            f"A publication for all tables needs a superuser, and {config.database_user} is none. Have a superuser run "
            f"{steps[0]} or set publication.autocreate.mode=filtered.",
        )
        return
    if state is None and not server.may_create:
        yield Problem(
            "publication.name",
            f"{config.database_user} may not create publications. Run GRANT CREATE ON DATABASE "
            f"{quoted(config.database_dbname)} TO {quoted(config.database_user)}; or have the owner run {steps[0]}",
        )
    oids = [row[0] for row in session.execute(_NOT_OWNED, ([table.oid for table in captured],)).fetchall()]
    if others := [table for table in captured if table.oid in oids]:
        yield Problem(
            "publication.name",
            f"{config.database_user} does not own {_listed(others)}, and only an owner may put a table into a "
            f"publication. Have the owner run {' '.join(steps)} and set publication.autocreate.mode=disabled, or make "
            f"{config.database_user} a member of the owner's role.",
        )


def without_identity(captured: Sequence[CapturedTable]) -> list[CapturedTable]:
    """Return the tables whose updates and deletions the server refuses once they are published."""
    return [
        table for table in captured if table.identity == "n" or (table.identity == "d" and not table.has_primary_key)
    ]


def _listed(tables: Sequence[CapturedTable]) -> str:
    names = [str(table.id) for table in tables[:_SHOWN]]
    more = len(tables) - len(names)
    return ", ".join(names) + (f" and {more} more" if more else "")
