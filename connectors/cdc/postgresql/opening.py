"""What a run finds when it connects, what it decides by that, and the view of the tables that a snapshot reads."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from connect.errors import ConnectError, RetriableError
from connect.kits.cdc.table_schemas import TableSchema
from connect.kits.cdc.tables import Table
from connectors.cdc.postgresql.catalog import CapturedTable, Catalog, captured_tables
from connectors.cdc.postgresql.checks import without_identity
from connectors.cdc.postgresql.config import AutoCreateMode, PostgresConfig, replica_identities
from connectors.cdc.postgresql.connection import conninfo, open_session
from connectors.cdc.postgresql.offsets import Position
from connectors.cdc.postgresql.publications import named, publication_steps, read_publication, unpublished
from connectors.cdc.postgresql.replication import CreatedSlot, ReplicationConnection, quoted
from connectors.cdc.postgresql.slots import check_slot, gap, plan, read_slot
from connectors.cdc.postgresql.snapshot import (
    SnapshotPoint,
    SnapshotTable,
    begin_snapshot,
    ordered,
    snapshot_tables,
)

__all__ = ["Opening", "create_slot"]

logger = logging.getLogger(__name__)

_TEMPORARY_SUFFIX: Final = "_snapshot"
_LONGEST_NAME: Final = 63


class Opening:
    """Opens the connections of a run, and decides what it does from a stored position, or none.

    Raises an error if the changes after it are lost, and the configuration does not say to go on. ``position`` is where
    the run goes on. Call :meth:`close` in any case, unless both connections were taken over.
    """

    def __init__(self, config: PostgresConfig, position: Position | None) -> None:
        self._config = config
        self.position = position
        self.begins_anew = False
        """Whether an unfinished snapshot cannot go on, since the stream does not reach back to it."""

        self._is_prepared = False
        self._told: set[str] = set()
        """What is wrong with the publication, once it was reported."""

        self.session = open_session(config)
        self.replication: ReplicationConnection | None = None
        self.catalog = Catalog(self.session, config.database_dbname)
        try:
            self._decide()
        except BaseException:
            self.close()
            raise

    def _decide(self) -> None:
        config = self._config
        self.replication = replication = ReplicationConnection(conninfo(config, replication=True))
        self.identity = replication.identify()
        self._everything = self.catalog.tables()
        self.captured = self._chosen(self._everything)
        self.slot = read_slot(self.session, config.slot_name)
        self._begin_anew_if_lost()
        position, self.missing = self.position, None
        if position is not None and not position.is_snapshot:
            self.missing = gap(position, self.slot, self.identity, config.slot_name, replication.timeline_history)
        self.decided = plan(config, position, self.missing)
        if self.slot is not None and self.decided.streams:
            check_slot(self.slot, config.database_dbname)
        if self.decided.missing is not None:
            logger.warning(
                "Changes since the stored offset are missing: %s. Going on without them.", self.decided.missing
            )

    def _begin_anew_if_lost(self) -> None:
        """Have a snapshot that was interrupted begin anew if the stream does not reach back to it."""
        position = self.position
        if position is None or not position.is_resumed:
            return
        history = self.need_replication().timeline_history
        missing = gap(position, self.slot, self.identity, self._config.slot_name, history)
        if missing is not None:
            logger.warning("The snapshot begins anew: %s.", missing.reason)
            self.position = replace(position, is_snapshot=True, is_resumed=False)
            self.begins_anew = True

    def _chosen(self, everything: Sequence[CapturedTable]) -> list[CapturedTable]:
        config = self._config
        captured = captured_tables(
            everything, config.table_filter(), config.schema_filter(), via_root=config.publish_via_partition_root
        )
        most = config.guardrail_collections_max
        if most and len(captured) > most:
            told = (
                f"{len(captured)} tables are captured, and guardrail.collections.max allows {most}: name fewer in "
                "table.include.list, or raise the limit."
            )
            if config.guardrail_collections_limit_action == "fail":
                raise ConnectError(told)
            logger.warning("%s", told)
        return captured

    def prepare(self) -> None:
        """Have the database publish the captured tables; raises what is to be run by somebody else."""
        self._set_replica_identities()
        self._prepare_publication()
        self._warn_of_identities()

    def _set_replica_identities(self) -> None:
        for pattern, identity in replica_identities(self._config.replica_identity_autoset_values):
            for table in self.captured:
                is_index = identity.lower().startswith("index")
                if pattern.fullmatch(str(table.id)) and (is_index or table.identity != identity[0].lower()):
                    self._run(f"ALTER TABLE {named(table.id)} REPLICA IDENTITY {_identity_clause(identity)};")

    def _warn_of_identities(self) -> None:
        """Tell of tables whose updates the server now refuses: whoever writes to them will see the error."""
        named_anew = replica_identities(self._config.replica_identity_autoset_values)
        for table in without_identity(self.captured):
            if not any(pattern.fullmatch(str(table.id)) for pattern, _ in named_anew):
                logger.warning(
                    "Table %s has no primary key and no replica identity: PostgreSQL refuses to update and delete its "
                    "rows while it is published. Run ALTER TABLE %s REPLICA IDENTITY FULL; or set "
                    "replica.identity.autoset.values.",
                    table.id,
                    named(table.id),
                )

    def follow_tables(self) -> None:
        """Have the database publish tables that were created since, or taken out of the publication."""
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        self._everything = self.catalog.tables()
        self.captured = self._chosen(self._everything)
        try:
            self._prepare_publication()
        except (RetriableError, psycopg.OperationalError):
            raise
        except (ConnectError, psycopg.Error) as error:
            # Nothing that was read before ends for it, and a table may have been dropped just now.
            if str(error) not in self._told:
                self._told.add(str(error))
                logger.warning("Changes of some tables are not read: %s", error)

    def _prepare_publication(self) -> None:
        config, everything = self._config, self._everything
        state = read_publication(self.session, config.publication_name)
        signals = [table for table in everything if str(table.id) == config.signal_table]
        wanted = [*self.captured, *(table for table in signals if table not in self.captured)]
        mode = config.publication_autocreate_mode
        steps = publication_steps(
            config.publication_name,
            mode,
            state,
            wanted,
            everything,
            via_root=config.publish_via_partition_root,
            skipped=config.skipped(),
        )
        changed = False
        for statement in steps:
            self._run(statement)
            changed = True
        goes_on = self._is_prepared or (self.position is not None and not self.position.is_snapshot)
        late = unpublished(state, wanted) if changed and goes_on and mode is not AutoCreateMode.NO_TABLES else ()
        if late:
            logger.warning(
                "Publication %s did not have %s until now: what was written to them before is not in the stream. Send "
                "the signal execute-snapshot for them to have their rows read.",
                config.publication_name,
                ", ".join(late),
            )
        self._is_prepared = True

    def _run(self, statement: str) -> None:
        """Run a statement that changes the database; a missing right is an error that shows it."""
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        logger.info("Running %s", statement)
        try:
            self.session.execute(statement.encode())
        except psycopg.errors.InsufficientPrivilege as error:
            raise ConnectError(
                f"{self._config.database_user} may not run {statement} ({str(error).splitlines()[0]}). Have it run by "
                "a superuser or the owner of the tables. A publication for all tables needs a superuser: with "
                "publication.autocreate.mode=filtered it is made for the captured tables alone."
            ) from error

    # -- the view of a snapshot --------------------------------------------------------------------------------

    def begin_snapshot(self, make: Callable[[Table], TableSchema]) -> tuple[SnapshotPoint, list[SnapshotTable]]:
        """Have the session see the tables as they are where the stream starts; return the place and the tables."""
        config = self._config
        created = self._export() if self.decided.streams else None
        include = config.snapshot_filter()
        chosen = ordered(
            [table for table in self.captured if include(str(table.id))], config.snapshot_tables_order_by_row_count
        )
        point = begin_snapshot(
            self.session,
            created.snapshot if created else None,
            created.consistent_lsn if created else None,
            locks_ms=config.snapshot_lock_timeout_ms if config.snapshot_locking_mode == "shared" else None,
            tables=[named(table.id) for table in chosen],
        )
        # The session has the snapshot now: whoever exported it, and a temporary slot, may go.
        self.close_replication()
        return point, snapshot_tables(self.catalog, chosen, make, config.select_overrides())

    def _export(self) -> CreatedSlot:
        """Return a slot with an exported snapshot: the connector's own if it is new, otherwise a temporary one."""
        config = self._config
        if self.slot is None:
            return create_slot(self.need_replication(), config, exports=True)
        name = config.slot_name[: _LONGEST_NAME - len(_TEMPORARY_SUFFIX)] + _TEMPORARY_SUFFIX
        return self.need_replication().create_slot(name, exports=True, is_temporary=True)

    # -- the connections ---------------------------------------------------------------------------------------

    def need_replication(self) -> ReplicationConnection:
        """Return the replication connection while it is open."""
        if self.replication is None:
            raise RetriableError("The replication connection is closed.")
        return self.replication

    def close_replication(self) -> None:
        """Close the replication connection."""
        if self.replication is not None:
            self.replication.close()
            self.replication = None

    def close(self) -> None:
        """Close the connections."""
        self.close_replication()
        self.session.close()


def create_slot(replication: ReplicationConnection, config: PostgresConfig, *, exports: bool) -> CreatedSlot:
    """Create the connector's slot."""
    logger.info("Creating the replication slot %s.", config.slot_name)
    return replication.create_slot(config.slot_name, exports=exports, is_failover=config.slot_failover)


def _identity_clause(identity: str) -> str:
    word, _, index = identity.partition(" ")
    return f"USING INDEX {quoted(index.strip())}" if word.upper() == "INDEX" else word.upper()
