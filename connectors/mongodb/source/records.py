"""Records of change events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from bson import decode, encode
from bson.raw_bson import RawBSONDocument

from connect.data import Offset, Schema, SourceRecord
from connect.errors import DataError
from connect.kits.mongodb.json_forms import PLAIN, JsonFormat, json_format
from connectors.mongodb.classes import class_named
from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.schemas import StructMaker, inferred_schema, schema_from_avro

__all__ = ["RecordMaker"]

_TEXT = Schema.string()
_BYTES = Schema.bytes()


class _Output(Protocol):
    """The form of keys or values. ``decoded`` reads an event once; its parts are given to the other methods."""

    def decoded(self, data: bytes) -> Mapping[str, Any]: ...

    def made(self, part: Any) -> tuple[Schema, Any]: ...


class _JsonOutput:
    def __init__(self, json: JsonFormat) -> None:
        self._json = json

    def decoded(self, data: bytes) -> Mapping[str, Any]:
        return self._json.decoded(data)

    def made(self, part: Any) -> tuple[Schema, Any]:
        return _TEXT, self._json.text(part)


class _BsonOutput:
    def decoded(self, data: bytes) -> Mapping[str, Any]:
        return RawBSONDocument(data)

    def made(self, part: Any) -> tuple[Schema, Any]:
        return _BYTES, part.raw if isinstance(part, RawBSONDocument) else encode(part)


class _StructOutput:
    """Structs of a schema; of each document's own if it is ``None``."""

    def __init__(self, schema: Schema | None, json: JsonFormat) -> None:
        self._schema = schema
        self._maker = StructMaker(json.text_of)

    def decoded(self, data: bytes) -> Mapping[str, Any]:
        return decode(data, PLAIN)

    def made(self, part: Any) -> tuple[Schema, Any]:
        schema = self._schema if self._schema is not None else inferred_schema(part)
        return schema, self._maker.value(schema, part)


class RecordMaker:
    """Makes records of events, in the configured forms."""

    def __init__(self, config: MongoSourceConfig, partition: Mapping[str, str]) -> None:
        self._partition = partition
        self._topics = config.mapper_of_topics()
        json = json_format(class_named(config.output_json_formatter))
        self._key = _output(config.output_format_key.lower(), config.output_schema_key, json)
        inferred = "" if config.output_schema_infer_value else config.output_schema_value
        self._value = _output(config.output_format_value.lower(), inferred, json)
        # With one form, the event is decoded once.
        self._is_same = type(self._key) is type(self._value) and not isinstance(self._key, _StructOutput)
        self._keys_are_events = config.output_format_key.lower() == "schema"
        self._has_document_keys = config.change_stream_document_key_as_key
        self._is_full_document_only = config.publish_full_document_only
        self._has_tombstones = config.publish_full_document_only_tombstone_on_delete
        self._dead_letters = _JsonOutput(json)

    def record(self, data: bytes, offset: Offset) -> SourceRecord | None:
        """Return the record of an event, ``None`` if none is to be published; a ``DataError`` if it does not fit."""
        event = self._value.decoded(data)
        topic = self._topic(event)
        if topic is None:
            return None
        value_schema: Schema | None
        if not self._is_full_document_only:
            value_schema, value = self._value.made(event)
        elif (document := event.get("fullDocument")) is not None:
            value_schema, value = self._value.made(document)
        elif self._has_tombstones and "fullDocument" not in event:
            value_schema, value = None, None
        else:
            return None
        key_schema, key = self._made_key(event if self._is_same else self._key.decoded(data))
        return SourceRecord(
            topic,
            value,
            value_schema,
            key,
            key_schema,
            None,
            None,
            source_partition=self._partition,
            source_offset=offset,
        )

    def dead_letter(self, data: bytes, offset: Offset, topic: str) -> SourceRecord:
        """Return the record that reports an event which has no such form: as JSON, with its position."""
        event = self._dead_letters.decoded(data)
        key = event.get("documentKey", {"_id": event.get("_id")})
        return SourceRecord(
            topic,
            self._dead_letters.made(event)[1],
            _TEXT,
            self._dead_letters.made(key)[1],
            _TEXT,
            source_partition=self._partition,
            source_offset=offset,
        )

    def _topic(self, event: Mapping[str, Any]) -> str | None:
        try:
            namespace = event["ns"]
            database = namespace["db"]
        except (KeyError, TypeError) as error:
            if event.get("operationType") == "invalidate":
                return None
            raise DataError(
                "The event has no ns.db, which names the topic: do not remove it by the pipeline."
            ) from error
        collection = namespace.get("coll", "")
        return self._topics.topic(str(database), str(collection))

    def _made_key(self, event: Mapping[str, Any]) -> tuple[Schema, Any]:
        if self._keys_are_events:
            return self._key.made(event)
        key = event.get("documentKey") if self._has_document_keys else None
        return self._key.made({"_id": event.get("_id")} if key is None else key)


def _output(form: str, schema: str, json: JsonFormat) -> _Output:
    match form:
        case "json":
            return _JsonOutput(json)
        case "bson":
            return _BsonOutput()
        case _:
            return _StructOutput(schema_from_avro(schema) if schema else None, json)
