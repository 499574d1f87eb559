"""Records become operations of a bulk request: a line that says what to do, and a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import orjson

from connect.data import Schema, SinkBatch, SinkRecord, Type
from connect.errors import DataError
from connectors.elasticsearch.json_values import Write, json_bytes, json_writer
from connectors.elasticsearch.resources import Resource
from connectors.elasticsearch.sink_config import Behavior, DocumentId, Routing, WriteMethod, Writing

__all__ = ["Documents", "LeftOut", "Operation", "Refused"]

_KEY_TYPES: Final = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING)
_LONGEST_ID_BYTES: Final = 512
_TIMESTAMP: Final = "@timestamp"
_LONG: Final = range(-(2**63), 2**63)


@dataclass(slots=True, eq=False)
class Operation:
    """What is to be done for one record; ``tries`` counts how often it was refused for now, since ``taken_at``, and
    ``failures`` how often a whole request with it was.

    With ``is_versioned`` the cluster refuses it if the document is newer; otherwise the order of the requests decides.
    """

    record: SinkRecord
    resource: Resource
    id: str | None
    data: bytes
    is_versioned: bool
    version: int | None = None
    tries: int = 0
    failures: int = 0
    taken_at: float = 0.0

    @property
    def key(self) -> tuple[str, str] | None:
        """Which document it is about; None if that is a new one."""
        return None if self.id is None else (self.resource.name, self.id)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A record that is not meant to be written, and the reason."""

    record: SinkRecord
    reason: str
    is_reported: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """A record that cannot become a document, and the reason."""

    record: SinkRecord
    error: DataError


class Documents:
    """Makes the operations of batches."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self._writers: dict[Schema, Write | None] = {}

    def operations(self, batch: SinkBatch) -> Iterator[Operation | LeftOut | Refused]:
        """Yield what becomes of each record, in order."""
        for record in batch:
            try:
                yield self._operation(record)
            except DataError as error:
                yield Refused(record, error)

    def writer(self, schema: Schema) -> Write | None:
        """Return what writes values of a schema; None if they can be written as they are."""
        if schema not in self._writers:
            self._writers[schema] = json_writer(schema, compacts_maps=self._writing.compacts_maps)
        return self._writers[schema]

    def _operation(self, record: SinkRecord) -> Operation | LeftOut:
        writing = self._writing
        if record.value is None:
            return self._without_value(record)
        resource = writing.names.resource(record.topic, record.timestamp)
        source = writing.id_of_topic(record.topic)
        document_id = self._id(record, source)
        value = self._value(record)
        if resource.is_data_stream:
            value = self._with_timestamp(record, value)
        payload = json_bytes(value, is_checked=record.value_schema is not None)
        if payload[:1] != b"{":
            raise DataError("The value is no object, and a document has to be one.")
        routing = self._routing(record, payload)
        if resource.is_data_stream:
            return Operation(
                record,
                resource,
                document_id,
                _action("create", resource, document_id, routing) + payload + b"\n",
                False,
            )
        if writing.method is WriteMethod.UPSERT and document_id is not None:
            tail = f',"retry_on_conflict":{writing.retries_on_conflict}'.encode()
            action = _action("update", resource, document_id, routing + tail)
            return Operation(
                record, resource, document_id, action + b'{"doc":' + payload + b',"doc_as_upsert":true}\n', False
            )
        version = self._version(record, source)
        action = _action("index", resource, document_id, routing + _version_part(version))
        return Operation(record, resource, document_id, action + payload + b"\n", version is not None, version)

    def _without_value(self, record: SinkRecord) -> Operation | LeftOut:
        if record.key is None:
            return LeftOut(record, "it has neither key nor value")
        match self._writing.on_null:
            case Behavior.IGNORE:
                return LeftOut(record, "it has no value", is_reported=True)
            case Behavior.FAIL:
                raise DataError("The record has no value: set behavior.on.null.values to ignore or delete.")
        source = self._writing.id_of_topic(record.topic)
        if source is not DocumentId.KEY:
            # The document of the record that it is meant to delete has another id.
            return LeftOut(record, "it has no value, and the id of the document to delete is not its key")
        resource = self._writing.names.resource(record.topic, record.timestamp)
        document_id = self._id(record, source)
        version = self._version(record, source)
        data = _action("delete", resource, document_id, self._key_routing(record) + _version_part(version))
        return Operation(record, resource, document_id, data, version is not None, version)

    def _id(self, record: SinkRecord, source: DocumentId) -> str | None:
        if source is DocumentId.NONE:
            return None
        if source is DocumentId.POSITION:
            return f"{record.original_topic}+{record.original_partition}+{record.original_offset}"
        return _key_text(record)

    def _version(self, record: SinkRecord, source: DocumentId) -> int | None:
        """Return the version of the document. Without an own one the order of the requests decides."""
        writing = self._writing
        if source is not DocumentId.KEY or not writing.has_versions:
            return None
        if not writing.version_header:
            return record.original_offset
        header = record.headers.last_with_key(writing.version_header)
        if header is None:
            raise DataError(f"The record has no header {writing.version_header}, which external.version.header names.")
        value = header.value
        try:
            version = int(value.decode() if isinstance(value, bytes) else value)
        except (TypeError, ValueError):
            raise DataError(f"The header {writing.version_header} is not a whole number.") from None
        if version not in _LONG or version < 0:
            raise DataError(f"The header {writing.version_header} is not a version: {version}.")
        return version

    def _value(self, record: SinkRecord) -> Any:
        if record.value_schema is None:
            return record.value
        write = self.writer(record.value_schema)
        try:
            return record.value if write is None else write(record.value)
        except (AttributeError, TypeError, ValueError, OverflowError) as error:
            raise DataError(f"The value does not fit its schema: {error}") from error

    def _with_timestamp(self, record: SinkRecord, value: Any) -> Any:
        """Return the value with the field that every document of a data stream has."""
        if not isinstance(value, Mapping):
            raise DataError("The value is no object, and a document has to be one.")
        fields = self._writing.timestamp_fields
        found = next((value[name] for name in fields if value.get(name) is not None), None)
        if found is None and (not fields or fields == (_TIMESTAMP,)):
            found = record.timestamp
        if found is None:
            raise DataError(f"The value has none of the fields {', '.join(fields)} for {_TIMESTAMP}.")
        return {**value, _TIMESTAMP: found}

    def _routing(self, record: SinkRecord, payload: bytes) -> bytes:
        if self._writing.routing is not Routing.VALUE:
            return self._key_routing(record)
        found: Any = orjson.loads(payload)
        for part in self._writing.routing_path:
            if isinstance(found, list) and part.isdigit() and int(part) < len(found):
                found = found[int(part)]
            elif isinstance(found, dict):
                found = found.get(part)
            else:
                found = None
        if found is None or isinstance(found, (dict, list)):
            path = "/".join(("", *self._writing.routing_path))
            raise DataError(f"The value has nothing at {path} to decide on the shard by.")
        text = found if isinstance(found, str) else orjson.dumps(found).decode()
        return b',"routing":' + orjson.dumps(text)

    def _key_routing(self, record: SinkRecord) -> bytes:
        if self._writing.routing is Routing.NONE:
            return b""
        return b',"routing":' + orjson.dumps(_key_text(record))


def _key_text(record: SinkRecord) -> str:
    key, schema = record.key, record.key_schema
    if key is None:
        raise DataError("The record has no key to be the id of its document: set key.ignore=true.")
    is_known = schema.type in _KEY_TYPES if schema is not None else isinstance(key, (str, int))
    if not is_known or isinstance(key, bool):
        kind = schema.type.value if schema is not None else type(key).__name__
        raise DataError(
            f"A key of type {kind} cannot be the id of a document: make it a text or a whole number, such as by the "
            "transformation ExtractField$Key, or set key.ignore=true."
        )
    text = str(key)
    size = len(text.encode("utf-8", "surrogatepass"))
    if not text or size > _LONGEST_ID_BYTES:
        raise DataError(
            f"A key of {size} bytes cannot be the id of a document, which has 1 to {_LONGEST_ID_BYTES} bytes."
        )
    return text


def _version_part(version: int | None) -> bytes:
    return b"" if version is None else b',"version":%d,"version_type":"external"' % version


@lru_cache(maxsize=1024)
def _head(verb: str, name: str) -> bytes:
    return b'{"' + verb.encode() + b'":{"_index":' + orjson.dumps(name)


def _action(verb: str, resource: Resource, document_id: str | None, rest: bytes) -> bytes:
    try:
        own = b"" if document_id is None else b',"_id":' + orjson.dumps(document_id)
    except TypeError as error:
        raise DataError(f"The key cannot be the id of a document: {error}") from error
    return _head(verb, resource.name) + own + rest + b"}}\n"
