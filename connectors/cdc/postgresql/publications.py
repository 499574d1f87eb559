"""Publications: created as the configuration asks, compared with the captured tables, and repaired or refused."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from connect.errors import ConnectError
from connect.kits.cdc.tables import TableId
from connectors.cdc.postgresql.catalog import CapturedTable
from connectors.cdc.postgresql.config import AutoCreateMode
from connectors.cdc.postgresql.replication import quoted

if TYPE_CHECKING:
    import psycopg

__all__ = ["PublicationState", "named", "publication_steps", "published_tables", "read_publication", "unpublished"]

_STATE = """
SELECT puballtables, pubviaroot, pubinsert, pubupdate, pubdelete, pubtruncate FROM pg_publication WHERE pubname = %s
"""
_TABLES = "SELECT schemaname, tablename FROM pg_publication_tables WHERE pubname = %s"


@dataclass(frozen=True, slots=True)
class PublicationState:
    """A publication: its tables as it sends them, by schema and name, and the operations that it leaves out."""

    has_all_tables: bool
    is_via_root: bool
    left_out: tuple[str, ...]
    tables: frozenset[tuple[str, str]]


def read_publication(session: psycopg.Connection[Any], name: str) -> PublicationState | None:
    """Return the state of a publication; None if it does not exist."""
    row = session.execute(_STATE, (name,)).fetchone()
    if row is None:
        return None
    has_all, via_root, *operations = row
    kinds = ("insert", "update", "delete", "truncate")
    left_out = tuple(kind for kind, is_sent in zip(kinds, operations, strict=True) if not is_sent)
    tables = session.execute(_TABLES, (name,)).fetchall()
    return PublicationState(has_all, via_root, left_out, frozenset((schema, table) for schema, table in tables))


def named(table: TableId) -> str:
    """Return a table's name in quotes."""
    return f"{quoted(table.schema)}.{quoted(table.table)}"


def published_tables(captured: Sequence[CapturedTable], everything: Collection[CapturedTable]) -> list[TableId]:
    """Return the tables that a publication has to name: of a partition the partitioned table, whose later partitions

    are then published too.
    """
    by_oid = {table.oid: table for table in everything}
    roots = (by_oid.get(table.root_oid or table.oid, table).id for table in captured)
    return sorted(dict.fromkeys(roots), key=str)


def publication_steps(
    name: str,
    mode: AutoCreateMode,
    state: PublicationState | None,
    captured: Sequence[CapturedTable],
    everything: Collection[CapturedTable],
    *,
    via_root: bool,
    skipped: Collection[str],
) -> Iterator[str]:
    """Yield the statements that make the publication fit; raise an error with those to run if that is left to
    others."""
    wanted = published_tables(captured, everything)
    if state is None:
        yield _creation(name, mode, wanted, via_root=via_root)
        return
    names = letters(state.left_out) - set(skipped)
    if names:
        raise ConnectError(
            f"Publication {name} leaves out {', '.join(state.left_out)}. Run ALTER PUBLICATION {quoted(name)} SET "
            "(publish = 'insert, update, delete, truncate'); or name the operations in skipped.operations."
        )
    if state.is_via_root != via_root:
        partitioned = [table for table in everything if table.is_partitioned]
        if partitioned or mode is AutoCreateMode.FILTERED:
            setting = f"ALTER PUBLICATION {quoted(name)} SET (publish_via_partition_root = {str(via_root).lower()});"
            if mode is not AutoCreateMode.FILTERED:
                raise ConnectError(
                    f"Publication {name} does not send changes of partitions as publish.via.partition.root={via_root} "
                    f"says. Run {setting}"
                )
            yield setting
    if state.has_all_tables:
        return
    missing = {table.id for table in captured if (table.id.schema, table.id.table) not in state.tables}
    if mode is AutoCreateMode.FILTERED:
        expected = {(table.id.schema, table.id.table) for table in captured}
        if missing or not _covers(state, expected, everything):
            yield f"ALTER PUBLICATION {quoted(name)} SET TABLE {', '.join(map(named, wanted))};"
    elif missing and mode is not AutoCreateMode.NO_TABLES:
        lacking = published_tables([table for table in captured if table.id in missing], everything)
        raise ConnectError(
            f"Publication {name} lacks tables that are to be captured. Run ALTER PUBLICATION {quoted(name)} ADD TABLE "
            f"{', '.join(map(named, lacking))}; or set publication.autocreate.mode=filtered, which does so, or leave "
            "the tables out by table.include.list."
        )


def unpublished(state: PublicationState | None, captured: Sequence[CapturedTable]) -> list[str]:
    """Return the tables that a publication does not send."""
    if state is not None and state.has_all_tables:
        return []
    sent = frozenset() if state is None else state.tables
    return [str(table.id) for table in captured if (table.id.schema, table.id.table) not in sent]


def letters(operations: Collection[str]) -> set[str]:
    """Return the operations as ``skipped.operations`` names them."""
    return {{"insert": "c", "update": "u", "delete": "d", "truncate": "t"}[operation] for operation in operations}


def _covers(state: PublicationState, expected: set[tuple[str, str]], everything: Collection[CapturedTable]) -> bool:
    """Whether the publication has nothing but the captured tables and partitions beside them."""
    partitions = {(table.id.schema, table.id.table) for table in everything if table.is_partition}
    return state.tables - partitions <= expected


def _creation(name: str, mode: AutoCreateMode, tables: Sequence[TableId], *, via_root: bool) -> str:
    root = " WITH (publish_via_partition_root = true)" if via_root else ""
    listed = ", ".join(map(named, tables))
    match mode:
        case AutoCreateMode.ALL_TABLES:
            return f"CREATE PUBLICATION {quoted(name)} FOR ALL TABLES{root};"
        case AutoCreateMode.NO_TABLES:
            return f"CREATE PUBLICATION {quoted(name)}{root};"
        case AutoCreateMode.FILTERED if tables:
            return f"CREATE PUBLICATION {quoted(name)} FOR TABLE {listed}{root};"
        case AutoCreateMode.FILTERED:
            raise ConnectError(
                "No table is captured, so no publication can be made for them: check table.include.list and "
                "schema.include.list, and that the tables exist."
            )
    raise ConnectError(
        f"Publication {name} does not exist, and publication.autocreate.mode is disabled. Run CREATE PUBLICATION "
        f"{quoted(name)} FOR TABLE {listed or '...'}{root};"
    )
