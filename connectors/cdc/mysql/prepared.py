"""Distributed (XA) transactions: the log has their changes where they are prepared, and they count once committed.

Where one is prepared, its place in the log is noted and nothing is sent. Where it is committed, its changes are sent as
those of the transaction that commits it: from memory if they are still there, otherwise the log is read again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from connect.errors import ConnectError
from connectors.cdc.mysql.binlog.log import Began, Committed, LogEvent, Resolved, RowsChanged
from connectors.cdc.mysql.position import PreparedPlace, prepared_text

__all__ = ["Changed", "PreparedTransactions"]

logger = logging.getLogger(__name__)
_MOST_PLACES: Final = 1_000
_MOST_BYTES: Final = 8_388_608
_EVENT_BYTES: Final = 500
"""What an event takes besides its rows."""

Changed: TypeAlias = Callable[[str | None, PreparedPlace | None, int], Iterator[LogEvent | None]]
"""Yields what the log has of a transaction, given by its id and place, between its beginning and its end; ``None``
while there is nothing yet. One that is prepared and committed at once has no id; one that was prepared before this
connector began has no place. The number is the position at which it is committed."""


class _Held:
    """A transaction whose end was not seen yet, or that is prepared, with its changes as far as there is room."""

    __slots__ = ("began", "changes", "size")

    def __init__(self, began: Began) -> None:
        self.began = began
        self.changes: list[LogEvent] | None = []
        self.size = 0

    def add(self, event: LogEvent) -> None:
        """Keep a change, unless they get too large."""
        if self.changes is None:
            return
        self.size += _EVENT_BYTES + (len(event.head.data) if type(event) is RowsChanged else 0)
        self.changes.append(event)
        if self.size > _MOST_BYTES:
            self.drop()

    def drop(self) -> None:
        """Forget the changes: the log has them."""
        self.changes, self.size = None, 0


class PreparedTransactions:
    """Passes the events of the log on, those of distributed transactions where these are committed.

    Crash point: offsets have the place of each transaction that is prepared and not ended, from the end of the prepared
    part up to the end of the transaction that commits it or rolls it back. A kill at any moment leaves an offset from
    which the changes are found again. Memory is bounded, whatever is prepared; so is the offset.
    """

    def __init__(self, places: Sequence[PreparedPlace]) -> None:
        self._places = {place.xid: place for place in places}
        self._kept: dict[str, _Held] = {}
        self._held: _Held | None = None
        self.text = prepared_text(places) if places else ""
        """The places, as offsets have them; empty without any."""

    def concern(self, event: LogEvent) -> bool:
        """Return whether an event is part of a distributed transaction, and has to be taken by :meth:`passed_on`."""
        kind = type(event)
        return self._held is not None or kind is Resolved or (kind is Began and event.is_distributed)  # type: ignore[union-attr]

    def passed_on(self, event: LogEvent, gtids: str | None, changed: Changed) -> Iterator[LogEvent | None]:
        """Yield what is to be passed on in place of an event; ``gtids`` are the transactions before it."""
        if isinstance(event, Resolved):
            yield from self._resolved(event, changed)
        elif isinstance(event, Began):
            self._held = _Held(event)
        elif self._held is not None:
            if isinstance(event, Committed):
                held, self._held = self._held, None
                yield from self._ended(held, event, gtids, changed)
            else:
                self._held.add(event)

    def _ended(self, held: _Held, event: Committed, gtids: str | None, changed: Changed) -> Iterator[LogEvent | None]:
        began = held.began
        xid = event.prepared
        place = PreparedPlace(xid or "", began.file, began.position, began.gtid, gtids)
        yield replace(began, is_distributed=False, is_statement=xid is not None)
        if xid is None:
            yield from changed(None, place, event.position) if held.changes is None else held.changes
        else:
            self._note(place, held)
        yield event

    def _note(self, place: PreparedPlace, held: _Held) -> None:
        if len(self._places) >= _MOST_PLACES:
            raise ConnectError(
                f"More than {_MOST_PLACES} distributed transactions are prepared and not ended, so that not all of "
                "their places can be kept in an offset. XA RECOVER lists them: commit them or roll them back."
            )
        self._places[place.xid] = place
        self._kept[place.xid] = held
        sizes = sum(each.size for each in self._kept.values())
        for each in self._kept.values():  # The oldest first.
            if sizes <= _MOST_BYTES:
                break
            sizes -= each.size
            each.drop()
        self._tell()

    def _resolved(self, event: Resolved, changed: Changed) -> Iterator[LogEvent | None]:
        place, kept = self._places.get(event.xid), self._kept.get(event.xid)
        if event.is_committed:
            changes: Iterable[LogEvent | None] | None = None if kept is None else kept.changes
            for each in changed(event.xid, place, event.position) if changes is None else changes:
                if isinstance(each, RowsChanged):
                    each.position, each.server_id = event.position, event.server_id
                yield each
        elif place is None:
            logger.warning(
                "The distributed transaction %s was rolled back, which was prepared before this connector began. If "
                "Debezium, which sends changes where they are prepared, ran before, have the tables that it has "
                "changed read again by the signal execute-snapshot.",
                event.xid,
            )
        self._places.pop(event.xid, None)
        self._kept.pop(event.xid, None)
        self._tell()

    def _tell(self) -> None:
        self.text = prepared_text(self._places.values()) if self._places else ""
