"""What is to be written for each record: the operation, and the collection that it concerns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final, cast

from bson import encode
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument

from connect.data import SinkRecord
from connect.errors import DataError
from connectors.mongodb.sink.cdc import CdcHandler, cdc_handler
from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.documents import LOSSLESS, Document, SinkDocument
from connectors.mongodb.sink.models import delete_model, write_model
from connectors.mongodb.sink.namespaces import Namespace, NamespaceMapper, namespace_mapper
from connectors.mongodb.sink.operations import Action, DriverOperation, Operation
from connectors.mongodb.sink.processors import post_processors

__all__ = ["Plan", "Planned", "Reading", "Refused", "TopicPlan"]

_LARGEST_BYTES: Final = 16 * 1024 * 1024
"""Bytes of the largest document that MongoDB stores."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A record, the operation that writes it, and its place in the batch."""

    record: SinkRecord
    place: int
    namespace: Namespace
    operation: DriverOperation
    action: Action
    inserted: RawBSONDocument | None
    """The document that the operation adds, if it only adds."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A record of which no operation can be made, and why."""

    record: SinkRecord
    place: int
    error: DataError


@dataclass(frozen=True, slots=True)
class Reading:
    """How all records are read, and where they go, in place of what the options say."""

    namespace: NamespaceMapper
    handler: CdcHandler


class TopicPlan:
    """The way from a record of one topic to its operation, made of the topic's options once."""

    def __init__(self, config: MongoSinkConfig, reading: Reading | None) -> None:
        self.config = config
        self._namespace = namespace_mapper(config) if reading is None else reading.namespace
        self._handler = cdc_handler(config) if reading is None else reading.handler
        self._processors = post_processors(config)
        self._write = write_model(config)
        self._delete = delete_model(config) if config.delete_on_null_values else None

    def planned(self, record: SinkRecord, place: int) -> Planned | None:
        """Return what is to be done for a record, ``None`` for nothing; a ``DataError`` says why it cannot be done."""
        document = SinkDocument(record.key, record.key_schema, record.value, record.value_schema)
        namespace = self._namespace(document, record)
        operation = self._operation(document, record)
        if operation is None:
            return None
        raw = _encoded(operation)
        inserted = raw if operation.action is Action.INSERT else None
        if operation.action in (Action.INSERT, Action.REPLACE):
            # As bytes, so that it is not encoded once more.
            operation = replace(operation, change=cast("Document", raw))
        return Planned(record, place, namespace, operation.for_driver(), operation.action, inserted)

    def _operation(self, document: SinkDocument, record: SinkRecord) -> Operation | None:
        if self._handler is not None:
            return self._handler(document)
        if not document.has_value and not document.has_key:
            raise DataError("The record has neither a key nor a value.")
        for process in self._processors:
            process(document, record)
        if document.has_value:
            return self._write(document)
        if self._delete is None:
            raise DataError(
                "The record has no value (a tombstone): set delete.on.null.values=true to delete the document of its "
                "key, or drop tombstones by a transformation."
            )
        return self._delete(document)


class Plan:
    """The plans of all topics."""

    def __init__(self, config: MongoSinkConfig, reading: Reading | None) -> None:
        self._config = config
        self._reading = reading
        self._topics: dict[str, TopicPlan] = {}

    def of_topic(self, topic: str) -> TopicPlan:
        """Return the plan of a topic."""
        if topic not in self._topics:
            self._topics[topic] = TopicPlan(self._config.of_topic(topic), self._reading)
        return self._topics[topic]

    def of(self, records: Iterable[SinkRecord]) -> tuple[list[Planned], list[Refused]]:
        """Return what is to be done for records of one topic, and those for which nothing can be."""
        planned, refused = [], []
        for place, record in enumerate(records):
            try:
                made = self.of_topic(record.topic).planned(record, place)
            except DataError as error:
                refused.append(Refused(record, place, error))
            else:
                if made is not None:
                    planned.append(made)
        return planned, refused


def _encoded(operation: Operation) -> RawBSONDocument:
    """Return the document as bytes: what cannot be encoded is an error of its record alone."""
    try:
        change = encode(operation.change, codec_options=LOSSLESS)
        encode(operation.condition, codec_options=LOSSLESS)
    except (BSONError, ValueError, OverflowError, TypeError, RecursionError) as error:
        raise DataError(f"The document cannot be written as BSON: {error}") from error
    if len(change) > _LARGEST_BYTES:
        raise DataError(f"The document has {len(change)} bytes; MongoDB stores at most {_LARGEST_BYTES}.")
    return RawBSONDocument(change)
