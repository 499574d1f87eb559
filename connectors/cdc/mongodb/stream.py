"""Reads the snapshot and the change stream."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from bson import Timestamp, decode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.change_stream import ChangeStream
from pymongo.errors import OperationFailure

from connect.kits.cdc.filters import NameFilter
from connect.kits.mongodb.fragments import SPLITS, Fragments, can_split, help_with
from connectors.cdc.mongodb.config import MongoDbConfig, SnapshotMode
from connectors.cdc.mongodb.incremental import token_time
from connectors.cdc.mongodb.positions import Position, offset_of, position_of, snapshot_offset

__all__ = ["Item", "StreamReader", "captured_collections"]

_log = logging.getLogger(__name__)
_LONGEST_AWAIT_MS: Final = 1000
_RAW: Final[CodecOptions[Any]] = CodecOptions(document_class=RawBSONDocument)
_EVENTS: Final = {"$match": {"operationType": {"$in": ["insert", "update", "replace", "delete"]}}}


class Item(NamedTuple):
    """An event, or a document with the namespace and the marker of a snapshot, and the offset after it.

    Without an event it is a position that was reached.
    """

    event: bytes | None
    offset: dict[str, Any]
    namespace: tuple[str, str] | None = None
    marker: str = "false"
    is_end: bool = False
    at: Timestamp | None = None
    """The cluster time before which all events were told."""


class StreamReader:
    """Reads from a position on."""

    def __init__(self, client: MongoClient[Any], config: MongoDbConfig, position: Position | None) -> None:
        self._client = client
        self._config = config
        self._position = position
        self._splits = position is not None and position.is_split
        """Whether the server is to send large events in fragments."""

    def read(self, is_stopped: Callable[[], bool]) -> Iterator[Item]:
        """Yield the snapshot, if there is to be one, and the changes after it."""
        position = self._position
        token = None if position is None else position.token
        if self._is_snapshot(position):
            if token is None or position is None or not position.namespace:
                # What changes from now on follows the snapshot.
                with self._opened(None) as stream:
                    token = _token_of(stream)
            assert token is not None
            yield from self._snapshot(token, position)
            _wait(self._config.streaming_delay_ms / 1000, is_stopped)
        if self._config.snapshot_mode is SnapshotMode.INITIAL_ONLY:
            yield Item(None, offset_of(token or {}), is_end=True)
            return
        if token is None:
            # There may be no position from which an event that is too large could be read again.
            self._splits = can_split(self._client)
        while True:
            item = None
            try:
                with self._opened(token) as stream:
                    if token is None and (begun := _plain(stream.resume_token)) is not None:
                        # Were the connection lost before the first change, a stream opened anew would begin later.
                        item = Item(None, offset_of(begun), at=token_time(begun))
                        yield item
                    for item in self._changes(stream, is_stopped):
                        yield item
            except OperationFailure as error:
                if self._splits or not help_with(error, self._client):
                    raise
                self._splits = True
            if is_stopped():
                return
            if item is not None:
                token = position_of(item.offset).token

    def _is_snapshot(self, position: Position | None) -> bool:
        if self._config.snapshot_mode in (SnapshotMode.NO_DATA, SnapshotMode.NEVER):
            return False
        return position is None or position.is_snapshot

    # -- snapshot -------------------------------------------------------------------------------------------------

    def _snapshot(self, token: Any, position: Position | None) -> Iterator[Item]:
        """Yield the documents, each marked by its place; the last has the offset with which the stream begins."""
        last: Item | None = None
        is_first = position is None or not position.namespace
        for item in self._documents(token, position):
            marker = "first" if last is None and is_first else "true"
            if last is not None and item.namespace != last.namespace:
                marker = "first_in_data_collection"
                last = last._replace(marker="last_in_data_collection") if last.marker == "true" else last
            if last is not None:
                yield last
            last = item._replace(marker=marker)
        end = offset_of(token)
        yield Item(None, end, marker="last") if last is None else last._replace(marker="last", offset=end)

    def _documents(self, token: Any, position: Position | None) -> Iterator[Item]:
        after = position if position is not None and position.namespace else None
        for database, collection in self._namespaces():
            name = f"{database}.{collection}"
            if after is not None and name < after.namespace:
                continue
            condition = self._config.snapshot_condition(name)
            stages: list[dict[str, Any]] = [{"$match": condition}] if condition else []
            if after is not None and name == after.namespace:
                # Compared so, ids of all types have one order.
                stages.append({"$match": {"$expr": {"$gt": ["$_id", {"$literal": after.identity}]}}})
            options: dict[str, Any] = (
                {"batchSize": self._config.snapshot_fetch_size} if self._config.snapshot_fetch_size else {}
            )
            _log.info("Reading the documents of %s", name)
            raw = self._client[database].get_collection(collection, codec_options=_RAW)
            with raw.aggregate([*stages, {"$sort": {"_id": 1}}], allowDiskUse=True, **options) as cursor:
                for document in cursor:
                    offset = snapshot_offset(token, name, _plain(document["_id"]))
                    yield Item(document.raw, offset, (database, collection), "true")

    def _namespaces(self) -> list[tuple[str, str]]:
        wanted = NameFilter.of(self._config.snapshot_include_collection_list, ())
        return [each for each in captured_collections(self._client, self._config) if wanted(".".join(each))]

    # -- stream ---------------------------------------------------------------------------------------------------

    def _changes(self, stream: ChangeStream[Any], is_stopped: Callable[[], bool]) -> Iterator[Item]:
        told = None
        fragments = Fragments()
        while stream.alive:
            found = stream.try_next()
            if found is not None:
                if (event := fragments.whole(found)) is not None:
                    at, token = event["clusterTime"], event["_id"]
                    offset = offset_of(token, at.time, at.inc, is_split=fragments.has_ended_at(token))
                    yield Item(bytes(event.raw), offset, at=at)
                continue
            token = stream.resume_token
            if token is not None and token != told and not fragments.is_within:
                told = token
                offset = offset_of(token, is_split=fragments.has_ended_at(token))
                yield Item(None, offset, is_end=True, at=token_time(token))
            elif is_stopped():
                return

    @property
    def _captured(self) -> Any:
        # The name of a database has no dot.
        database, _, collection = self._config.capture_target.partition(".")
        match self._config.capture_scope.lower():
            case "database":
                return self._client.get_database(database, codec_options=_RAW)
            case "collection":
                return self._client[database].get_collection(collection, codec_options=_RAW)
            case _:
                return self._client

    def _opened(self, token: Any) -> ChangeStream[Any]:
        config = self._config
        await_ms = config.cursor_max_await_time_ms or _LONGEST_AWAIT_MS
        opened: ChangeStream[Any] = self._captured.watch(
            [_EVENTS, SPLITS] if self._splits else [_EVENTS],
            full_document=config.full_document,
            full_document_before_change=config.before_change,
            start_after=token,
            max_await_time_ms=min(await_ms, _LONGEST_AWAIT_MS),
        )
        return opened


def captured_collections(client: MongoClient[Any], config: MongoDbConfig) -> list[tuple[str, str]]:
    """Return the databases and names of the captured collections that are there, in their order."""
    found = [
        (database, each["name"])
        for database in client.list_database_names()
        for each in client[database].list_collections()
        if each.get("type") == "collection" and config.captures(database, each["name"])
    ]
    return sorted(found, key=".".join)


def _wait(seconds: float, is_stopped: Callable[[], bool]) -> None:
    """Wait between the snapshot and the stream, unless the task stops."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not is_stopped():
        time.sleep(min(0.1, seconds))


def _token_of(stream: ChangeStream[Any]) -> Any:
    """Return the position of a stream that was just opened."""
    if stream.resume_token is None:
        stream.try_next()
    return _plain(stream.resume_token)


def _plain(value: Any) -> Any:
    return decode(value.raw) if isinstance(value, RawBSONDocument) else value
