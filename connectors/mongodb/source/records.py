"""Records of change events."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, overload

from bson import decode, decode_all, encode
from bson.raw_bson import RawBSONDocument

from connect.data import Offset, Schema, SourceBatch, SourceRecord, ValueColumn
from connect.errors import DataError
from connect.kits.mongodb.json_forms import PLAIN, JsonFormat, json_format
from connectors.mongodb.classes import class_named
from connectors.mongodb.source.config import MongoSourceConfig
from connectors.mongodb.source.copying import CopiedBatch, Namespace, document_key
from connectors.mongodb.source.schemas import StructMaker, inferred_schema, schema_from_avro

__all__ = ["RecordMaker"]

_TEXT = Schema.string()
_BYTES = Schema.bytes()


class _Output(Protocol):
    """The form of keys or values. ``decoded`` reads an event once; its parts are given to the other methods."""

    @property
    def schema(self) -> Schema | None: ...

    def decoded(self, data: bytes) -> Mapping[str, Any]: ...

    def made(self, part: Any) -> tuple[Schema, Any]: ...


class _JsonOutput:
    schema = _TEXT

    def __init__(self, json: JsonFormat) -> None:
        self._json = json

    def decoded(self, data: bytes) -> Mapping[str, Any]:
        return self._json.decoded(data)

    def made(self, part: Any) -> tuple[Schema, Any]:
        return _TEXT, self._json.text(part)

    def copied(self, batch: CopiedBatch) -> _CopiedTexts | None:
        """Return the texts of documents and of their ids; ``None`` if one has no id."""
        text = self._json.text
        decoded = decode_all(batch.data, self._json.options)
        if not all("_id" in document for document in decoded):
            return None
        ids = [text(document["_id"]) for document in decoded]
        return _CopiedTexts([text(document) for document in decoded], ids)


class _BsonOutput:
    schema = _BYTES

    def decoded(self, data: bytes) -> Mapping[str, Any]:
        return RawBSONDocument(data)

    def made(self, part: Any) -> tuple[Schema, Any]:
        return _BYTES, part.raw if isinstance(part, RawBSONDocument) else encode(part)


class _StructOutput:
    """Structs of a schema; of each document's own if it is ``None``."""

    def __init__(self, schema: Schema | None, json: JsonFormat) -> None:
        self.schema = schema
        self._maker = StructMaker(json.text_of)

    def decoded(self, data: bytes) -> Mapping[str, Any]:
        return decode(data, PLAIN)

    def made(self, part: Any) -> tuple[Schema, Any]:
        schema = self.schema if self.schema is not None else inferred_schema(part)
        return schema, self._maker.value(schema, part)


class _CopiedTexts(NamedTuple):
    """The JSON texts of copied documents and of their ids, and what is made of them."""

    documents: list[str]
    ids: list[str]

    @property
    def keys(self) -> list[str]:
        return [f'{{"_id": {each}}}' for each in self.ids]

    @property
    def event_ids(self) -> list[str]:
        return [f'{{"_id": {{"_id": {each}, "copyingData": true}}}}' for each in self.ids]

    def events(self, namespace: Namespace) -> list[str]:
        database, collection = _name(namespace.database), _name(namespace.collection)
        middle = f'"operationType": "insert", "ns": {{"db": {database}, "coll": {collection}}}, "documentKey": '
        return [
            f'{{"_id": {{"_id": {each}, "copyingData": true}}, {middle}{{"_id": {each}}}, "fullDocument": {document}}}'
            for each, document in zip(self.ids, self.documents, strict=True)
        ]


class _CopiedOffsets(Sequence[Offset]):
    """The offsets of copied documents, made when they are asked for: of most only the last is."""

    __slots__ = ("_batch", "_indexes")

    def __init__(self, batch: CopiedBatch, indexes: range) -> None:
        self._batch = batch
        self._indexes = indexes

    def __len__(self) -> int:
        return len(self._indexes)

    @overload
    def __getitem__(self, index: int) -> Offset: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Offset]: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return _CopiedOffsets(self._batch, self._indexes[index])
        return self._batch.offset_at(self._indexes[index])


class RecordMaker:
    """Makes records of events, in the configured forms."""

    def __init__(self, config: MongoSourceConfig, partition: Mapping[str, str]) -> None:
        self._partition = partition
        self._topics = config.mapper_of_topics()
        texts = json_format(class_named(config.output_json_formatter))
        self._key = _output(config.output_format_key.lower(), config.output_schema_key, texts)
        inferred = "" if config.output_schema_infer_value else config.output_schema_value
        self._value = _output(config.output_format_value.lower(), inferred, texts)
        # With one form, the event is decoded once.
        self._is_same = type(self._key) is type(self._value) and not isinstance(self._key, _StructOutput)
        self._keys_are_events = config.output_format_key.lower() == "schema"
        self._has_document_keys = config.change_stream_document_key_as_key
        self._is_full_document_only = config.publish_full_document_only
        self._has_tombstones = config.publish_full_document_only_tombstone_on_delete
        self._dead_letters = _JsonOutput(texts)

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

    def copied(self, batch: CopiedBatch) -> SourceBatch | None:
        """Return the records of copied documents; ``None`` if they are to be made one by one.

        They are those that :meth:`record` makes of their events, which are not made for it. Raises a ``DataError`` if
        one does not fit.
        """
        forms = (self._value, self._key)
        if batch.are_events or any(isinstance(form, _StructOutput) for form in forms):
            return None
        texts: _CopiedTexts | None = None
        for form in forms:
            if texts is None and isinstance(form, _JsonOutput):
                texts = form.copied(batch)
                if texts is None:
                    return None
        values, keys = self._copied_values(batch, texts), self._copied_keys(batch, texts)
        return SourceBatch.of(
            self._topics.topic(batch.namespace.database, batch.namespace.collection),
            ValueColumn(values, self._value.schema),
            key=ValueColumn(keys, self._key.schema),
            source_partition=self._partition,
            source_offsets=_CopiedOffsets(batch, range(len(batch.documents))),
        )

    def _copied_values(self, batch: CopiedBatch, texts: _CopiedTexts | None) -> Sequence[Any]:
        if texts is not None and isinstance(self._value, _JsonOutput):
            return texts.documents if self._is_full_document_only else texts.events(batch.namespace)
        if self._is_full_document_only:
            return batch.documents
        return [batch.event_at(index) for index in range(len(batch.documents))]

    def _copied_keys(self, batch: CopiedBatch, texts: _CopiedTexts | None) -> Sequence[Any]:
        if texts is not None and isinstance(self._key, _JsonOutput):
            return texts.keys if self._has_document_keys else texts.event_ids
        return [document_key(each, is_event_id=not self._has_document_keys) for each in batch.documents]

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


def _name(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _output(form: str, schema: str, texts: JsonFormat) -> _Output:
    match form:
        case "json":
            return _JsonOutput(texts)
        case "bson":
            return _BsonOutput()
        case _:
            return _StructOutput(schema_from_avro(schema) if schema else None, texts)
