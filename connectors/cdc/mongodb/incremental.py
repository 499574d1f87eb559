"""Incremental snapshots: collections are read in chunks, as they were at a time that the change stream has passed.

Each chunk is a read at one cluster time, which writes nothing. It sees the changes up to that time, and no later ones;
events carry theirs, so it is known of each event whether the chunk has it. Usually the time is that up to which the
stream was read: then the rows are due at once. If the server keeps no history of that time any more, the chunk is as
of now, and waits until the stream comes to it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from bson import Timestamp, decode, encode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.errors import OperationFailure, PyMongoError

from connect.errors import ConnectError, DataError
from connect.kits.cdc.incremental import Chunk, ChunkRow
from connect.kits.cdc.incremental_state import Collection
from connect.kits.cdc.java_keys import Key
from connect.kits.cdc.tables import TableId
from connect.kits.mongodb.extended_json import parse_document
from connect.kits.mongodb.failures import failure
from connect.kits.mongodb.json_forms import json_format

__all__ = ["DocumentChunks", "before", "table_of", "token_time"]

_canonical: Final = json_format("ExtendedJson")
_RAW: Final[CodecOptions[Any]] = CodecOptions(document_class=RawBSONDocument)
_NO_HISTORY: Final = (239, 246)
"""SnapshotTooOld, SnapshotUnavailable."""
_TOKEN_BYTES: Final = 12
_TOKEN_OF_TIME: Final = 0x82
_KIND_OF_EVENTS: Final = 0x2C
_LAST_INCREMENT: Final = (1 << 32) - 1


def token_time(token: Mapping[str, Any]) -> Timestamp | None:
    """Return the cluster time before which all events precede a resume token, where the stream has no more now.

    The token is a key in the server's encoding: the time, the version of the token, and its kind, which is either an
    event, with all others of its time before it, or a mark between events.
    """
    try:
        data = bytes.fromhex(str(token.get("_data"))[:24])
    except ValueError:
        return None
    if len(data) < _TOKEN_BYTES or data[0] != _TOKEN_OF_TIME:
        return None
    seconds, order = int.from_bytes(data[1:5]), int.from_bytes(data[5:9])
    return Timestamp(seconds, order + 1 if data[_TOKEN_BYTES - 1] == _KIND_OF_EVENTS else order)


class DocumentChunks:
    """Reads chunks in a thread of its own. A row's raw form is the name of its collection, and the document's bytes.

    ``identity`` makes of an ``_id`` what identifies a document, for rows and for changes alike.
    """

    def __init__(self, client: MongoClient[Any], identity: Callable[[Any], Hashable], wake: Callable[[], None]) -> None:
        self._client = client
        self._identity = identity
        self._wake = wake
        self._passed: Timestamp | None = None
        self._thread = ThreadPoolExecutor(1, "chunks")

    def come_to(self, passed: Timestamp) -> None:
        """Note a time whose events, and all before them, were told or are to be told next."""
        self._passed = passed

    def read(self, collection: Collection, rows: int) -> Future[Chunk]:
        """Read the next documents of a collection."""
        asked = self._thread.submit(self._chunk, collection, rows, self._passed)
        asked.add_done_callback(lambda _: self._wake())
        return asked

    def close(self) -> None:
        """Begin no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _chunk(self, collection: Collection, rows: int, at: Timestamp | None) -> Chunk:
        if collection.surrogate:
            raise ConnectError("Collections are read by _id: leave out surrogate-key.")
        try:
            condition = parse_document(collection.condition) if collection.condition else {}
        except DataError as error:
            raise ConnectError(f"The filter {collection.condition} is no condition as JSON: {error}") from error
        try:
            until = collection.until or self._greatest(collection.table)
            if until is None:
                return _made(collection.table, [], None, Timestamp(0, 0), is_last=True)
            documents, seen = self._found(collection.table, _range(condition, collection.after, until), rows, at)
        except PyMongoError as error:
            raise failure(error, f"read {collection.table}") or error from error
        found = [
            ChunkRow((collection.table, document.raw), _key(document["_id"]), self._identity(document["_id"]))
            for document in documents
        ]
        return _made(collection.table, found, until, seen, is_last=not found or found[-1].key == until)

    def _greatest(self, name: str) -> Key | None:
        table = table_of(name)
        last = self._client[table.catalog][table.table].find_one({}, {"_id": 1}, sort=[("_id", -1)])
        return None if last is None else _key(last["_id"])

    def _found(
        self, name: str, condition: dict[str, Any], rows: int, at: Timestamp | None
    ) -> tuple[list[RawBSONDocument], Timestamp]:
        try:
            return self._read(name, condition, rows, at)
        except OperationFailure as error:
            if at is None or error.code not in _NO_HISTORY:
                raise
            return self._read(name, condition, rows, None)

    def _read(
        self, name: str, condition: dict[str, Any], rows: int, at: Timestamp | None
    ) -> tuple[list[RawBSONDocument], Timestamp]:
        """Return documents and the time as of which they are. An answer that would be too large has fewer of them."""
        table = table_of(name)
        concern = {"level": "snapshot"} | ({} if at is None else {"atClusterTime": at})
        command = {"find": table.table, "filter": condition, "sort": {"_id": 1}, "readConcern": concern}
        whole = {**command, "batchSize": rows, "singleBatch": True}
        answer = self._client[table.catalog].command(whole, codec_options=_RAW)
        cursor = answer["cursor"]
        return list(cursor["firstBatch"]), cursor["atClusterTime"]


def table_of(name: str) -> TableId:
    """Return the collection of a name: that of a database has no dot."""
    database, _, collection = name.partition(".")
    return TableId(database, "", collection)


def before(moment: Timestamp) -> Timestamp:
    """Return the time just before another one."""
    if moment.inc:
        return Timestamp(moment.time, moment.inc - 1)
    return Timestamp(moment.time - 1, _LAST_INCREMENT)


def _made(name: str, rows: Sequence[ChunkRow], until: Key | None, seen: Timestamp, *, is_last: bool) -> Chunk:
    return Chunk(table_of(name), rows, until, is_last, lambda at: at <= seen, lambda position: position > seen)


def _range(condition: dict[str, Any], after: Key | None, until: Key) -> dict[str, Any]:
    """Return the condition of a range of ids. Compared so, ids of all types have one order."""
    bounds: list[dict[str, Any]] = [{"$lte": ["$_id", {"$literal": _id(until)}]}]
    if after is not None:
        bounds.append({"$gt": ["$_id", {"$literal": _id(after)}]})
    ranged = {"$expr": {"$and": bounds}}
    return {"$and": [ranged, condition]} if condition else ranged


def _key(identity: Any) -> Key:
    plain = decode(identity.raw) if isinstance(identity, RawBSONDocument) else identity
    return (_canonical.text(_canonical.decoded(encode({"_id": plain}))),)


def _id(key: Key) -> Any:
    return parse_document(str(key[0]))["_id"]
