"""The copy of existing documents, as events of inserts.

Documents are read in batches of BSON that nobody decodes on the way. An event is made around a document when it is
asked for, and so is an offset: most records need neither.
"""

from __future__ import annotations

import logging
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from bson import decode, encode
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.collection import Collection

from connect.data import Offset
from connect.internals.java.regex import regex_from_java
from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.positions import CopyPosition, copy_offset

__all__ = ["CopiedBatch", "Namespace", "copied_batches", "document_key"]

_log = logging.getLogger(__name__)
_INTERNAL: Final = frozenset({"admin", "config", "local"})
_WITHOUT_ID_INDEX: Final = frozenset({"view", "timeseries"})


_length: Final = struct.Struct("<i")
_FIRST: Final = b"_id\x00"
_SIZES: Final = {0x01: 8, 0x07: 12, 0x08: 1, 0x09: 8, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16}
"""The bytes of values that have always as many, by their types."""

_HEADED: Final = {0x02: 4, 0x03: 0, 0x05: 5}
"""How many bytes more than their length says values have that begin with it: texts, documents, binary data."""

_COPYING: Final = b"\x08copyingData\x00\x01"


class Namespace(NamedTuple):
    """A collection that is copied."""

    database: str
    collection: str
    is_ordered: bool
    """Whether there is an index by which documents are read in the order of their ids."""

    @property
    def name(self) -> str:
        return f"{self.database}.{self.collection}"


@dataclass(frozen=True, slots=True)
class CopiedBatch:
    """Documents of one collection, in their order; or events, where a pipeline has made others of them."""

    namespace: Namespace
    data: bytes
    """The documents, one after the other."""
    documents: Sequence[bytes]
    token: str
    are_events: bool
    is_resumable: bool
    last_offset: Offset | None = None
    """The offset of the last document, if it is that of the whole copy."""

    @property
    def event(self) -> bytes:
        """What is held in memory."""
        return self.data

    def offset_at(self, index: int) -> Offset:
        """Return the offset after a document."""
        if self.last_offset is not None and index in (-1, len(self.documents) - 1):
            return self.last_offset
        if self.is_resumable:
            found = RawBSONDocument(self.documents[index]).get("_id")
            if self.are_events:
                found = found.get("_id") if isinstance(found, RawBSONDocument) else None
            if found is not None:
                return copy_offset(self.token, self.namespace.name, _plain(found))
        return {"_id": self.token, "copy": "true"}

    def event_at(self, index: int) -> bytes:
        """Return a document as the event of its insertion."""
        document = self.documents[index]
        return document if self.are_events else _event(document, self.namespace)


def copied_batches(
    client: MongoClient[Any], config: MongoSourceConfig, token: str, after: CopyPosition | None
) -> Iterator[CopiedBatch]:
    """Yield the existing documents of all namespaces, in the order of their names, and within these of the ids.

    ``after`` is the last document that was published before; ``token`` is kept in the offsets. If the pipeline changes
    the order of documents, or where there is none, an interrupted copy of a collection begins anew.
    """
    for namespace in _namespaces(client, config):
        if after is not None and namespace.name < after.namespace:
            continue
        start = after if after is not None and namespace.name == after.namespace else None
        _log.info("Copying %s%s", namespace.name, " from where it was interrupted" if start else "")
        yield from _copied(client[namespace.database][namespace.collection], namespace, config, token, start)


def _copied(
    collection: Collection[Any],
    namespace: Namespace,
    config: MongoSourceConfig,
    token: str,
    start: CopyPosition | None,
) -> Iterator[CopiedBatch]:
    is_resumable = namespace.is_ordered and config.copies_in_order
    begin: list[dict[str, Any]] = []
    if is_resumable:
        if start is not None:
            # Compared so, ids of all types have one order.
            begin.append({"$match": {"$expr": {"$gt": ["$_id", {"$literal": start.identity}]}}})
        begin.append({"$sort": {"_id": 1}})
    options: dict[str, Any] = {"allowDiskUse": config.copies_with_disk}
    if config.batch_size:
        options["batchSize"] = config.batch_size
    # A pipeline sees events; without one they are made here, which spares the server and the network.
    events = [_as_event(namespace), *config.stages] if config.stages else []
    with collection.aggregate_raw_batches([*begin, *config.copy_stages, *events], **options) as cursor:
        for data in cursor:
            for documents in _parts(data, config.poll_max_batch_size):
                yield CopiedBatch(namespace, b"".join(documents), documents, token, bool(events), is_resumable)


def _parts(data: bytes, most: int) -> Iterator[list[bytes]]:
    """Yield the documents of a batch, so many at a time."""
    documents: list[bytes] = []
    start, end = 0, len(data)
    while start < end:
        (size,) = _length.unpack_from(data, start)
        documents.append(data[start : start + size])
        start += size
        if len(documents) == most:
            yield documents
            documents = []
    if documents:
        yield documents


def _plain(identity: Any) -> Any:
    return decode(identity.raw) if isinstance(identity, RawBSONDocument) else identity


def _event(document: bytes, namespace: Namespace) -> bytes:
    """Return the event that :func:`_as_event` has the server make of a document."""
    identity = id_element(document)
    return _document(
        b"\x03_id\x00" + _document(identity + _COPYING),
        b"\x02operationType\x00\x07\x00\x00\x00insert\x00",
        b"\x03ns\x00" + encode({"db": namespace.database, "coll": namespace.collection}),
        b"\x03documentKey\x00" + _document(identity),
        b"\x03fullDocument\x00" + document,
    )


def _document(*elements: bytes) -> bytes:
    content = b"".join(elements)
    return _length.pack(len(content) + 5) + content + b"\x00"


def id_element(document: bytes) -> bytes:
    """Return the element of a document that holds its id, which is the first of those that are stored; or nothing."""
    if document[5:9] == _FIRST:
        kind = document[4]
        size = _SIZES.get(kind)
        if size is None and kind in _HEADED:
            size = _length.unpack_from(document, 9)[0] + _HEADED[kind]
        if size is not None:
            return document[4 : 9 + size]
    found = RawBSONDocument(document)
    return encode({"_id": found["_id"]})[4:-1] if "_id" in found else b""


def document_key(document: bytes, *, is_event_id: bool) -> bytes:
    """Return the key of a document, ``{"_id": ID}``, or that with the id of its event."""
    identity = id_element(document)
    return _document(b"\x03_id\x00" + _document(identity + _COPYING)) if is_event_id else _document(identity)


def _as_event(namespace: Namespace) -> dict[str, Any]:
    return {
        "$replaceRoot": {
            "newRoot": {
                "_id": {"_id": "$_id", "copyingData": True},
                "operationType": "insert",
                "ns": {"db": {"$literal": namespace.database}, "coll": {"$literal": namespace.collection}},
                "documentKey": {"_id": "$_id"},
                "fullDocument": "$$ROOT",
            }
        }
    }


def _namespaces(client: MongoClient[Any], config: MongoSourceConfig) -> list[Namespace]:
    pattern = regex_from_java(config.copy_regex) if config.copy_regex else None
    databases = [config.database] if config.database else sorted(set(client.list_database_names()) - _INTERNAL)
    found = []
    for database in databases:
        for each in client[database].list_collections():
            name = each["name"]
            is_wanted = name == config.collection if config.collection else not name.startswith("system.")
            if is_wanted:
                found.append(Namespace(database, name, each.get("type") not in _WITHOUT_ID_INDEX))
    wanted = [each for each in found if pattern is None or pattern.search(each.name)]
    return sorted(wanted, key=lambda each: each.name)
