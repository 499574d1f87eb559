"""Reads the copy and the change stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from bson import decode
from bson.codec_options import CodecOptions
from bson.raw_bson import RawBSONDocument
from bson.timestamp import Timestamp
from pymongo import MongoClient
from pymongo.change_stream import ChangeStream
from pymongo.errors import OperationFailure

from connect.kits.mongodb.extended_json import parse_document
from connect.kits.mongodb.fragments import SPLITS, Fragments, can_split, help_with
from connectors.mongodb.source.config import MongoSourceConfig, StartupMode, operation_time
from connectors.mongodb.source.copying import CopiedBatch, copied_batches
from connectors.mongodb.source.positions import Position, stream_offset, token_text

__all__ = ["Item", "StreamReader"]

_LONGEST_AWAIT_MS: Final = 1000
_RAW: Final[CodecOptions[Any]] = CodecOptions(document_class=RawBSONDocument)


class Item(NamedTuple):
    """An event and the offset after it; without an event, the position that was reached."""

    event: bytes | None
    offset: dict[str, str]
    is_end: bool = False
    """Whether the server has no more changes for now."""


class StreamReader:
    """Reads from a position on."""

    def __init__(self, client: MongoClient[Any], config: MongoSourceConfig, position: Position | None) -> None:
        self._client = client
        self._config = config
        self._position = position
        is_asked = any(stage.keys() & SPLITS.keys() for stage in config.stages)
        self._may_split = not is_asked
        """Whether the pipeline does not ask for fragments itself: those are published as they come."""

        self._splits = self._may_split and position is not None and position.is_split
        """Whether large events are asked for in fragments, to be put together."""

    def read(self, is_stopped: Callable[[], bool]) -> Iterator[Item | CopiedBatch]:
        """Yield the copy, if there is to be one, and the changes after it."""
        position = self._position
        token = None if position is None else position.token
        if self._is_copy(position):
            if token is None or (position is not None and position.copied is None):
                # Nothing that can be resumed was copied: what changes from now on follows the copy.
                with self._opened(None) as stream:
                    token = _token_of(stream)
            assert token is not None
            yield from self._copied(token, position)
        if token is None:
            # There may be no position from which an event that is too large could be read again.
            self._splits = self._may_split and can_split(self._client)
        # After an invalidation the stream is opened again behind it: nothing is lost between.
        while True:
            item = None
            try:
                with self._opened(token) as stream:
                    if token is None and stream.resume_token is not None:
                        # Were the connection lost before the first change, a stream opened anew would begin later.
                        item = Item(None, stream_offset(_plain(stream.resume_token)))
                        yield item
                    for item in self._changes(stream, is_stopped):
                        yield item
            except OperationFailure as error:
                if self._splits or not (self._may_split and help_with(error, self._client)):
                    raise
                self._splits = True
            if is_stopped():
                return
            if item is not None:
                token = parse_document(item.offset["_id"])

    def _is_copy(self, position: Position | None) -> bool:
        """Return whether to begin or to continue a copy."""
        if position is None or position.token is not None:
            asked = self._config.mode is StartupMode.COPY_EXISTING
            return asked and (position is None or position.is_copying)
        return position.is_copying

    def _copied(self, token: Any, position: Position | None) -> Iterator[Item | CopiedBatch]:
        """Yield the copy. Its last document has the offset with which the stream begins."""
        text = token_text(token)
        after = position.copied if position is not None else None
        last: CopiedBatch | None = None
        for batch in copied_batches(self._client, self._config, text, after):
            if last is not None:
                yield last
            last = batch
        end = {"_id": text}
        yield Item(None, end) if last is None else replace(last, last_offset=end)

    def _changes(self, stream: ChangeStream[Any], is_stopped: Callable[[], bool]) -> Iterator[Item]:
        told = None
        fragments = Fragments()
        while stream.alive:
            found = stream.try_next()
            if found is not None:
                event = fragments.whole(found) if self._splits else found
                if event is not None:
                    token = event["_id"]
                    yield Item(bytes(event.raw), stream_offset(token, is_split=fragments.has_ended_at(token)))
                continue
            token = stream.resume_token
            if token is not None and token != told and not fragments.is_within:
                told = token
                yield Item(None, stream_offset(token, is_split=fragments.has_ended_at(token)), is_end=True)
            elif is_stopped():
                return

    def _opened(self, token: Any) -> ChangeStream[Any]:
        config = self._config
        options: dict[str, Any] = {
            "full_document": config.full_document,
            "full_document_before_change": config.change_stream_full_document_before_change or None,
            "max_await_time_ms": min(config.poll_await_time_ms, _LONGEST_AWAIT_MS),
            "batch_size": config.batch_size or None,
            "collation": parse_document(config.collation) if config.collation.strip() else None,
        }
        if config.change_stream_show_expanded_events:
            options["show_expanded_events"] = True
        if token is not None:
            options["start_after"] = token
        elif self._position is None and config.mode is StartupMode.TIMESTAMP:
            time = operation_time(config.startup_mode_timestamp_start_at_operation_time)
            if time is not None and any(time):
                options["start_at_operation_time"] = Timestamp(*time)
        stages = [*config.stages, SPLITS] if self._splits else config.stages
        opened: ChangeStream[Any] = self._watched.watch(stages, **options)
        return opened

    @property
    def _watched(self) -> Any:
        config = self._config
        if not config.database:
            # The options of the client decide how a stream of the deployment is decoded.
            return self._client
        database = self._client.get_database(config.database, codec_options=_RAW)
        return database[config.collection] if config.collection else database


def _token_of(stream: ChangeStream[Any]) -> Any:
    """Return the position of a stream that was just opened."""
    if stream.resume_token is None:
        stream.try_next()
    return _plain(stream.resume_token)


def _plain(token: Any) -> Any:
    return decode(token.raw) if isinstance(token, RawBSONDocument) else token
