"""The database and the collection of a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from connect.data import SinkRecord
from connect.errors import DataError
from connectors.mongodb.classes import class_named
from connectors.mongodb.sink.config import MongoSinkConfig
from connectors.mongodb.sink.documents import SinkDocument
from connectors.mongodb.sink.fields import field_at

__all__ = ["Namespace", "NamespaceMapper", "namespace_mapper"]

_Field: TypeAlias = Callable[[SinkDocument, str], str]
NamespaceMapper: TypeAlias = "Callable[[SinkDocument, SinkRecord], Namespace]"


class Namespace(NamedTuple):
    """A collection of a database."""

    database: str
    collection: str


def namespace_mapper(config: MongoSinkConfig) -> NamespaceMapper:
    """Return the configured mapper."""
    default = config.collection
    if class_named(config.namespace_mapper) == "DefaultNamespaceMapper":
        return lambda _, record: Namespace(config.database, default or record.topic)
    database, collection = _field(config, "database"), _field(config, "collection")
    return lambda document, record: Namespace(
        database(document, config.database), collection(document, default or record.topic)
    )


def _field(config: MongoSinkConfig, part: str) -> _Field:
    """Return the function that finds the name of a database or a collection in a record, with a default."""
    for source in ("key", "value"):
        if path := getattr(config, f"namespace_mapper_{source}_{part}_field"):
            return _FieldOf(source, path, f"namespace.mapper.{source}.{part}.field", config).name
    return lambda _, default: default


class _FieldOf:
    """A field that names a database or a collection."""

    def __init__(self, source: str, path: str, key: str, config: MongoSinkConfig) -> None:
        self._source, self._path, self._key = source, path, key
        self._is_strict = config.namespace_mapper_error_if_invalid

    def name(self, document: SinkDocument, default: str) -> str:
        found = field_at(document.key if self._source == "key" else document.value, self._path)
        if isinstance(found, str) and found:
            return found
        if not self._is_strict:
            return default
        what = "is missing" if found is None else "is not a text"
        raise DataError(f"The field {self._path} of the {self._source}, which {self._key} names, {what}.")
