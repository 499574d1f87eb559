"""The work of a connector in pieces that end, for ``engine=spark``: executors read the first snapshot, then the stream.

The driver opens a view of all tables at a place in the log, exports it, and keeps it open while executors read pieces
of the tables in it. What is read, and what is not, is all in the stored offsets: the driver decides anew each time that
it is asked, from these and from the views that it has open.

=================================================  ==================================================================
kill -9 of the driver here                         then
=================================================  ==================================================================
after the slot is made, before the division of     the snapshot begins anew, at a later place: nothing was sent
the tables is stored
after that, before all pieces are read             the next driver opens a view at a later place, has the stream read
                                                   up to exactly there, and what is left of each piece read in that
                                                   view. So no row is sent twice, and each row has exactly the changes
                                                   that were sent before it
after all pieces are read                          the stream goes on from the place of the view
while an executor streams                          the stream goes on from the stored offset
=================================================  ==================================================================

For what a kill of an executor leaves see :mod:`connectors.cdc.postgresql.bounded`. A connector that is changed from
``engine=spark`` to ``engine=worker`` amid a snapshot goes on likewise, with what is left as a blocking snapshot.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from connect.data import Offset
from connect.errors import ConnectError
from connect.kits.cdc.incremental_state import BlockingRequest, Collection, IncrementalState, with_state
from connect.source import OffsetStorageReader
from connectors.cdc.postgresql.assembly import made_dialect, made_schemas
from connectors.cdc.postgresql.config import PostgresConfig, SnapshotMode
from connectors.cdc.postgresql.connection import money_digits, retriable_if_lost
from connectors.cdc.postgresql.offsets import Position, parse_lsn
from connectors.cdc.postgresql.opening import Opening
from connectors.cdc.postgresql.orders import (
    OffsetSplit,
    PieceProgress,
    PieceSplit,
    Split,
    StreamSplit,
    divided_name,
    initial_rest,
    piece_partition,
    split_to_text,
    unread,
)
from connectors.cdc.postgresql.snapshot import (
    SnapshotPoint,
    SnapshotTable,
    exported_view,
    snapshot_offset,
    works_of,
)

if TYPE_CHECKING:
    import psycopg

__all__ = ["Splits"]

logger = logging.getLogger(__name__)

_END_OF_LOG: Final = """
SELECT (CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_flush_lsn() END)::text
"""


@dataclass(slots=True)
class _View:
    """A view of the tables that is open, and how it is divided.

    ``begun`` is the offset of the server while pieces are read if this is the first view; otherwise it is ``None``, and
    the stream has to come to its place first.
    """

    session: psycopg.Connection[Any]
    exported: str
    point: SnapshotPoint
    pieces: Sequence[Collection]
    begun: Offset | None
    streams: bool
    end: Offset | None = None
    """The offset of the server once all pieces are read."""

    @property
    def name(self) -> str:
        """The name of the snapshot as it is divided."""
        return divided_name(self.point)

    def is_open(self) -> bool:
        """Ask the server: executors can use the view while its session lives."""
        import psycopg  # noqa: PLC0415 - psycopg is loaded only where it is used

        try:
            self.session.execute("SELECT 1")
        except psycopg.Error as error:
            logger.warning("The view of the snapshot is lost; what is left is read in another one: %s", error)
            return False
        return True


class Splits:
    """Divides the work of a connector. Used by one thread; call :meth:`close` at the end."""

    def __init__(self, config: PostgresConfig, reader: OffsetStorageReader) -> None:
        self._config = config
        self._reader = reader
        self._partition: Offset = {"server": config.topic_prefix}
        self._view: _View | None = None
        self._has_read = False
        self._has_streamed = False

    def next(self, most: int) -> list[dict[str, str]]:
        """Return the current work, in at most so many pieces, as options of their tasks; none if there is nothing."""
        import psycopg  # noqa: PLC0415 - as above

        try:
            return [self._options(split) for split in self._next(most)]
        except psycopg.Error as error:
            self.close()
            raise retriable_if_lost(error, "The snapshot cannot be divided") from error

    def close(self) -> None:
        """Close the view."""
        if self._view is not None:
            self._view.session.close()
            self._view = None

    def _options(self, split: Split) -> dict[str, str]:
        options = {"capture.split": split_to_text(split)}
        if isinstance(split, StreamSplit):
            # Whether rows are read is decided here.
            options["snapshot.mode"] = SnapshotMode.NO_DATA.value
        return options

    def _next(self, most: int) -> Sequence[Split]:
        stored = self._reader.offset(self._partition)
        if self._view is not None and not self._view.is_open():
            self.close()
        if self._view is None:
            splits = self._decided(stored, most)
            if self._view is None:
                return splits
        if self._view.end is None or stored != self._view.end:
            return self._reading(self._view, stored, most)
        logger.info("Executors have read all tables.")
        self._has_read = True
        self.close()
        return self._decided(stored, most)

    # -- deciding ----------------------------------------------------------------------------------------------

    def _decided(self, stored: Offset | None, most: int) -> Sequence[Split]:
        """Return how to stream, or open a view."""
        opening = Opening(self._config, None if stored is None else Position.from_offset(stored))
        try:
            decided, position = opening.decided, opening.position
            if decided.reads_rows and not self._was_read(opening):
                self._prepare(opening)
                self._view = self._first_view(opening, most)
            elif decided.streams and (rest := self._rest(stored, opening)):
                self._view = self._next_view(opening, rest, most)
            elif decided.streams:
                return self._streaming(opening, position)
            return []
        finally:
            if self._view is None:
                opening.close()

    def _was_read(self, opening: Opening) -> bool:
        """Return whether this driver has read a snapshot that is not lost: ``always`` wants one for each start."""
        position = opening.position
        return self._has_read and position is not None and not position.is_snapshot and opening.missing is None

    def _rest(self, stored: Offset | None, opening: Opening) -> Sequence[Collection]:
        """Return what is left of a snapshot whose view is gone."""
        if stored is None or opening.begins_anew:
            return ()
        request = initial_rest(self._unread(stored))
        return request.collections if request is not None else ()

    def _unread(self, stored: Offset) -> IncrementalState:
        return unread(IncrementalState.of(stored), self._partition, self._reader)

    def _streaming(self, opening: Opening, position: Position | None) -> Sequence[Split]:
        """Return what streams to the end of the log; every other time nothing, so that there is a pause between."""
        if self._has_streamed:
            self._has_streamed = False
            return []
        row = opening.session.execute(_END_OF_LOG).fetchone()
        until = parse_lsn(row[0]) if row is not None else 0
        is_there = position is not None and position.xid is None and (position.commit_lsn or 0) >= until
        self._has_streamed = not is_there
        return [] if is_there else [StreamSplit(until)]

    def _prepare(self, opening: Opening) -> None:
        if named := self._config.snapshot_select_statement_overrides:
            raise ConnectError(
                f"Executors cannot read {', '.join(named)} by snapshot.select.statement.overrides, since the order of "
                "the rows of a statement is not known after a kill: set engine=worker, or leave the key out."
            )
        if opening.decided.streams:
            opening.prepare()

    # -- views -------------------------------------------------------------------------------------------------

    def _first_view(self, opening: Opening, most: int) -> _View:
        point, tables = self._begun(opening)
        begun = snapshot_offset(point, opening.identity, is_complete=False)
        wanted = [(table, Collection(str(table.captured.id))) for table in tables]
        return self._divided(opening, point, wanted, most, begun)

    def _next_view(self, opening: Opening, rest: Sequence[Collection], most: int) -> _View:
        point, tables = self._begun(opening)
        known = {str(table.captured.id): table for table in tables}
        for name in sorted({each.table for each in rest} - known.keys()):
            logger.error("Table %s is left out of the snapshot: it is not captured any more.", name)
        wanted = [(known[each.table], each) for each in rest if each.table in known]
        return self._divided(opening, point, wanted, most, None)

    def _begun(self, opening: Opening) -> tuple[SnapshotPoint, list[SnapshotTable]]:
        dialect = made_dialect(self._config)
        dialect.database_money_digits = money_digits(self._config)
        return opening.begin_snapshot(made_schemas(self._config, dialect).of)

    def _divided(
        self,
        opening: Opening,
        point: SnapshotPoint,
        wanted: Sequence[tuple[SnapshotTable, Collection]],
        most: int,
        begun: Offset | None,
    ) -> _View:
        session = opening.session
        works = works_of(session, wanted, most * self._config.snapshot_max_threads_multiplier)
        pieces = [work.piece.collection or Collection(work.piece.table, work.piece.condition) for work in works]
        logger.info("Executors read %d tables in %d pieces.", len(wanted), len(pieces))
        return _View(session, exported_view(session), point, pieces, begun, opening.decided.streams)

    # -- reading -----------------------------------------------------------------------------------------------

    def _reading(self, view: _View, stored: Offset | None, most: int) -> Sequence[Split]:
        """Return what is next to be done with a view: streaming up to it, dividing it, its pieces, its end."""
        if view.begun is None and stored is not None and not _is_at(Position.from_offset(stored), view.point.lsn):
            return [StreamSplit(view.point.lsn)]
        state = IncrementalState.of(stored or {})
        request = initial_rest(state)
        if view.streams and view.pieces and view.end is None and (request is None or request.signal_id != view.name):
            names = "" if view.begun is None else ",".join(dict.fromkeys(each.table for each in view.pieces))
            return [OffsetSplit(self._begin_of(view, stored), begun=names)]
        left = [number for number, progress in enumerate(self._progress(view)) if not progress.is_read]
        if left:
            return [
                PieceSplit(view.name, number, view.exported, view.point, view.pieces[number]) for number in left[:most]
            ]
        view.end = view.end or self._end_of(view, stored)
        return [OffsetSplit(view.end, is_completed=True)]

    def _progress(self, view: _View) -> list[PieceProgress]:
        partitions = [piece_partition(self._partition, view.name, number) for number in range(len(view.pieces))]
        return [PieceProgress.of(offset) for offset in self._reader.offsets(partitions)]

    def _begin_of(self, view: _View, stored: Offset | None) -> Offset:
        """Return the offset of the server that holds how a view is divided."""
        request = BlockingRequest(view.name, tuple(view.pieces))
        if view.begun is not None or stored is None:
            signals = IncrementalState.of(stored or {}).signal_offset
            return with_state(view.begun or {}, IncrementalState(signal_offset=signals, blocking=(request,)))
        return with_state(stored, _with_rest(self._unread(stored), request))

    def _end_of(self, view: _View, stored: Offset | None) -> Offset:
        """Return the offset of the server after all pieces of a view."""
        base = stored if stored is not None and view.streams and view.pieces else (view.begun or stored or {})
        ended = with_state(base, _with_rest(IncrementalState.of(base), None))
        if "snapshot" in ended:
            ended |= {"snapshot_completed": True, "last_snapshot_record": True}
        return ended


def _with_rest(state: IncrementalState, request: BlockingRequest | None) -> IncrementalState:
    """Return a state with another rest of the first snapshot, or none."""
    others = state.blocking[1:] if initial_rest(state) is not None else state.blocking
    return replace(state, blocking=(*(() if request is None else (request,)), *others))


def _is_at(position: Position, lsn: int) -> bool:
    """Return whether everything before a place in the log was streamed, and nothing after it."""
    return position.xid is None and position.commit_lsn is not None and position.commit_lsn >= lsn
