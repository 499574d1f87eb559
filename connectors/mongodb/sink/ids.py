"""Strategies that make the ``_id`` of a document."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from bson.binary import ALL_UUID_SUBTYPES, STANDARD, Binary, UuidRepresentation
from bson.objectid import ObjectId

from connect.data import SinkRecord
from connect.errors import DataError
from connectors.mongodb.classes import class_named
from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.documents import Document, SinkDocument
from connectors.mongodb.sink.fields import projection

__all__ = ["IdStrategy", "id_strategy", "partial_key"]

IdStrategy: TypeAlias = Callable[[SinkDocument, SinkRecord], Any]

_HEX_DIGITS: Final = (32, 36)


def id_strategy(config: MongoSinkConfig) -> IdStrategy:
    """Return the configured strategy."""
    return _STRATEGIES[class_named(config.document_id_strategy)](config)


def partial_key(config: MongoSinkConfig) -> Callable[[SinkDocument], Document]:
    """Return the function that makes the ``_id`` of PartialKeyStrategy."""
    project = projection(*config.partial_projection("key"))
    return lambda document: _projected(document.key, project)


def _metadata(document: SinkDocument, record: SinkRecord) -> str:  # noqa: ARG001
    return f"{record.topic}#{record.partition}#{record.offset}"


def _full_key(document: SinkDocument, record: SinkRecord) -> Document:  # noqa: ARG001
    return copy.deepcopy(document.key or {})


def _partial_key(config: MongoSinkConfig) -> IdStrategy:
    make = partial_key(config)
    return lambda document, _: make(document)


def _partial_value(config: MongoSinkConfig) -> IdStrategy:
    project = projection(*config.partial_projection("value"))
    return lambda document, _: _projected(document.value, project)


def _projected(document: Document | None, project: Callable[[Document], None] | None) -> Document:
    made = copy.deepcopy(document or {})
    if project is not None:
        project(made)
    return made


def _provided(document: Document | None, part: str) -> Any:
    found = document.get("_id") if document is not None else None
    if found is None:
        raise DataError(f"The {part} of the record has no field _id, which document.id.strategy takes the id from.")
    return found


def _parsed(value: Any) -> uuid.UUID:
    if isinstance(value, str) and len(value) in _HEX_DIGITS:
        try:
            return uuid.UUID(value)
        except ValueError:
            pass
    if isinstance(value, Binary) and value.subtype in ALL_UUID_SUBTYPES and len(value) == 16:
        if value.subtype == STANDARD:
            return value.as_uuid(UuidRepresentation.STANDARD)
        return value.as_uuid(UuidRepresentation.JAVA_LEGACY)
    raise DataError("The field _id is not a UUID: it must be text of 32 or 36 characters, or a binary UUID.")


def _uuid(value: uuid.UUID, config: MongoSinkConfig) -> Any:
    if config.document_id_strategy_uuid_format == "binary":
        return Binary.from_uuid(value, UuidRepresentation.STANDARD)
    return str(value)


_STRATEGIES: Final[Mapping[str, Callable[[MongoSinkConfig], IdStrategy]]] = {
    "BsonOidStrategy": lambda _: lambda *_: ObjectId(),
    "KafkaMetaDataStrategy": lambda _: _metadata,
    "FullKeyStrategy": lambda _: _full_key,
    "PartialKeyStrategy": _partial_key,
    "PartialValueStrategy": _partial_value,
    "ProvidedInKeyStrategy": lambda _: lambda document, _: _provided(document.key, "key"),
    "ProvidedInValueStrategy": lambda _: lambda document, _: _provided(document.value, "value"),
    "UuidStrategy": lambda config: lambda *_: _uuid(uuid.uuid4(), config),
    "UuidProvidedInKeyStrategy": lambda config: (
        lambda document, _: _uuid(_parsed(_provided(document.key, "key")), config)
    ),
    "UuidProvidedInValueStrategy": lambda config: (
        lambda document, _: _uuid(_parsed(_provided(document.value, "value")), config)
    ),
}
