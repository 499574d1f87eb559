"""Exactly once: records and the offsets after them are written in one transaction."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence

from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern

from connect.data import SinkBatch, TopicPartition
from connect.errors import ConnectError, RetriableError
from connect.internals.crash import crash_point
from connect.kits.mongodb.checks import NO_TRANSACTIONS, is_replicated
from connect.kits.mongodb.failures import failure, told
from connectors.mongodb.sink.bulks import GiveUp, RefusedWriteError, write_in_transaction
from connectors.mongodb.sink.documents import Document
from connectors.mongodb.sink.offsets import MAJORITY, OffsetsCollection, OvertakenError
from connectors.mongodb.sink.plan import Planned

__all__ = ["Transactions", "require_transactions"]

_log = logging.getLogger(__name__)


class Transactions:
    """Writes batches in transactions, and knows the offset of each partition in the database."""

    def __init__(self, client: MongoClient[Document], offsets: OffsetsCollection, size: int) -> None:
        self._client = client
        self._offsets = offsets
        self._size = size
        self._share = 0
        """How many records the transactions of the next batch have at most; 0 for as many as allowed."""
        self._known: dict[TopicPartition, int] = {}
        self._ids: dict[str, str] = {}
        self._unread: set[TopicPartition] = set()
        self._taken: set[TopicPartition] = set()
        self._session: ClientSession | None = None

    def open(self, partitions: Collection[TopicPartition], ids: Mapping[str, str]) -> dict[TopicPartition, int]:
        """Return the offsets to continue from. If the database does not answer, they are read with the first batch."""
        self._ids |= ids
        self._unread |= set(partitions)
        try:
            return self.read()
        except RetriableError as error:
            _log.warning("The offsets in %s are read later: %s", self._offsets.name, error)
            return {}

    def read(self) -> dict[TopicPartition, int]:
        """Read the offsets that are not known, and return them."""
        if not self._unread:
            return {}
        with told(f"read the offsets in {self._offsets.name}"):
            self._take_over()
            stored = self._offsets.read(self._unread)
            former = {
                partition: each.offset
                for partition, each in stored.items()
                if each.topic_id is not None and self._ids.get(partition.topic, each.topic_id) != each.topic_id
            }
            if former:
                _log.warning(
                    "The offsets %s in %s are those of former topics of the same name: they are deleted, and the "
                    "topics are read from the offsets that the worker has committed.",
                    {f"{partition.topic}-{partition.partition}": at for partition, at in former.items()},
                    self._offsets.name,
                )
                self._offsets.alter(dict.fromkeys(former))
        found = {partition: each.offset for partition, each in stored.items() if partition not in former}
        for partition in self._unread:
            self._known.pop(partition, None)
        self._known |= found
        self._unread.clear()
        return found

    def _take_over(self) -> None:
        """End the transactions of tasks that wrote these partitions before.

        The server would keep that of a task that was killed for a minute, and its locks with it.
        """
        if not (new := self._unread - self._taken):
            return
        mine = self._own_session().session_id["id"]
        if former := self._offsets.take_over(sorted(new), mine):
            self._client.admin.command("killSessions", [{"id": each} for each in former])
        self._taken |= new

    def _own_session(self) -> ClientSession:
        if self._session is None:
            self._session = self._client.start_session()
        return self._session

    def close(self, partitions: Collection[TopicPartition]) -> None:
        """Forget partitions."""
        self._taken -= set(partitions)
        for partition in partitions:
            self._known.pop(partition, None)
        self._unread -= set(partitions)

    def new(self, records: SinkBatch) -> SinkBatch:
        """Return the records of a batch that are not in the database yet."""
        known = self._known
        pairs = zip(records.origins, records.original_offsets, strict=True)
        new = [place for place, (origin, offset) in enumerate(pairs) if offset >= known.get(origin, 0)]
        return records if len(new) == len(records) else records.take(new)

    def write(self, records: SinkBatch, planned: Sequence[Planned], give_up: GiveUp, flush: Callable[[], None]) -> None:
        """Write a batch in as few transactions as possible. Raises :class:`OvertakenError` if another task wrote it.

        If the server refuses a record, the transaction is aborted: those before it are written in one of their own, it
        is given up, and those after it follow in transactions that grow again. After one that failed as a whole, such
        as for its size or for the time that it took, the next ones are smaller. ``flush`` makes reports durable before
        the offset after them is.
        """
        start = 0
        allowed = self._size or len(planned)
        size = most = min(allowed, self._share or allowed)
        while start < len(planned):
            items = planned[start : start + size]
            after = planned[start + len(items)].place if start + len(items) < len(planned) else len(records)
            try:
                flush()
                self._transact(items, _ends(records, after))
            except RefusedWriteError as error:
                if error.item is None:
                    size = max(1, len(items) // 2)
                elif error.item is items[0]:
                    give_up(error.item, error.error)
                    start += 1
                    size = 1
                else:
                    size = next(at for at, item in enumerate(items) if item is error.item)
            except RetriableError:
                self._share = max(1, len(items) // 2)
                raise
            else:
                start += len(items)
                size = min(size * 2, most)
        self._share = self._share * 2 if self._share * 2 < allowed else 0
        if _ends(records, len(records)).items() - self._known.items():
            flush()
            self._transact((), _ends(records, len(records)))

    def _transact(self, items: Sequence[Planned], ends: Mapping[TopicPartition, int]) -> None:
        changed = {partition: end for partition, end in ends.items() if self._known.get(partition) != end}
        try:
            with self._own_session().start_transaction(ReadConcern("snapshot"), MAJORITY):
                self._offsets.advance(self._own_session(), self._known, changed, self._ids)
                write_in_transaction(self._client, items, self._own_session())
                crash_point("mongodb-sink-before-commit")
            crash_point("mongodb-sink-after-commit")
        except (OvertakenError, RetriableError):
            self._unread |= set(changed)
            raise
        except PyMongoError as error:
            # Whether a commit that was interrupted has happened is seen in the offsets.
            self._unread |= set(changed)
            raise (failure(error, "write a transaction") or error) from error
        self._known |= changed


def _ends(records: SinkBatch, stop: int) -> dict[TopicPartition, int]:
    """Return the next offset of each partition after the first ``stop`` records of a batch."""
    topic = records.original_topic
    pairs = zip(records.original_partitions[:stop], records.original_offsets[:stop], strict=True)
    return {TopicPartition(topic, partition): offset + 1 for partition, offset in pairs}


def require_transactions(client: MongoClient[Document]) -> None:
    """Raise if the server has no transactions."""
    if not is_replicated(client):
        raise ConnectError(NO_TRANSACTIONS)
