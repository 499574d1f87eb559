"""The offsets of ``delivery=exactly-once``: a collection of the database, written in the transaction of the documents.

Each document holds the next offset of a partition, and the id of its topic: an offset says nothing about a later topic
of the same name. A transaction changes it only if it still has the value that the task knows: if another task has
written the partition meanwhile, nothing changes and the transaction is aborted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from bson.int64 import Int64
from pymongo import MongoClient, ReadPreference
from pymongo.client_session import ClientSession
from pymongo.errors import DuplicateKeyError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

from connect.data import TopicPartition
from connectors.mongodb.sink.documents import Document

__all__ = ["MAJORITY", "OffsetsCollection", "OvertakenError", "StoredOffset"]

MAJORITY = WriteConcern("majority")


class OvertakenError(Exception):
    """Another task has written records of a partition: its offset is not the one that this task knows."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(f"Another task has written records of {partition.topic}-{partition.partition}")
        self.partition = partition


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """The next offset of a partition, and the id of its topic if that was known when it was written."""

    offset: int
    topic_id: str | None


class OffsetsCollection:
    """The offsets of one connector."""

    def __init__(self, client: MongoClient[Document], database: str, collection: str, connector: str) -> None:
        self._connector = connector
        self._collection = client[database].get_collection(
            collection,
            read_preference=ReadPreference.PRIMARY,
            read_concern=ReadConcern("majority"),
            write_concern=MAJORITY,
        )

    @property
    def name(self) -> str:
        """The database and the collection."""
        return self._collection.full_name

    def read(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, StoredOffset]:
        """Return the next offset of each partition that has one."""
        wanted = [self._id(partition) for partition in partitions]
        return {
            TopicPartition(found["_id"]["topic"], found["_id"]["partition"]): StoredOffset(
                int(found["offset"]), found.get("topic_id")
            )
            for found in self._collection.find({"_id": {"$in": wanted}})
        }

    def take_over(self, partitions: Iterable[TopicPartition], session: Any) -> list[Any]:
        """Note which session writes partitions from now on, and return those that wrote them before."""
        found = []
        for partition in partitions:
            condition = {"_id": {**self._id(partition), "session": True}}
            before = self._collection.find_one_and_replace(condition, {"lsid": session}, upsert=True)
            if before is not None and before["lsid"] != session:
                found.append(before["lsid"])
        return found

    def advance(
        self,
        session: ClientSession,
        known: Mapping[TopicPartition, int],
        ends: Mapping[TopicPartition, int],
        ids: Mapping[str, str],
    ) -> None:
        """Advance from ``known`` offsets to ``ends``, of topics with these ``ids``, in the transaction of a session.

        Raises :class:`OvertakenError` if the stored offsets differ.
        """
        for partition, end in sorted(ends.items()):
            fields: dict[str, Any] = {"offset": Int64(end)}
            if partition.topic in ids:
                fields["topic_id"] = ids[partition.topic]
            if partition not in known:
                try:
                    self._collection.insert_one({"_id": self._id(partition), **fields}, session=session)
                except DuplicateKeyError as error:
                    raise OvertakenError(partition) from error
            else:
                condition = {"_id": self._id(partition), "offset": known[partition]}
                if self._collection.update_one(condition, {"$set": fields}, session=session).matched_count != 1:
                    raise OvertakenError(partition)

    def alter(self, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Set offsets; ``None`` deletes one."""
        for partition, offset in offsets.items():
            condition = {"_id": self._id(partition)}
            if offset is None:
                self._collection.delete_one(condition)
            else:
                # Without an id, as it is the user who says that the offset is of today's topic.
                self._collection.replace_one(condition, {"offset": Int64(offset)}, upsert=True)

    def _id(self, partition: TopicPartition) -> Document:
        # The order of the fields matters to MongoDB.
        return {"connector": self._connector, "topic": partition.topic, "partition": partition.partition}
