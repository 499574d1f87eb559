"""DocumentUnwrap: takes the document out of Debezium's change events of MongoDB."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar

from connect.config import LOW, MEDIUM, ConfigRuleError, option
from connect.data import Field, Record, Schema
from connect.errors import ConfigError, DataError
from connect.transformation import Transformation
from connect.transforms.debezium.by_logical_table_router import SchemaNames
from connect.transforms.debezium.documents import Documents, parse_document
from connect.transforms.debezium_unwrap import (
    ChangeEventConfig,
    EnvelopeField,
    headers_with,
    is_envelope,
    tombstone,
)
from connect.transforms.fields.key_or_value import copy_of, require_map
from connect.transforms.flatten import Flatten, FlattenConfig

__all__ = ["DocumentUnwrap", "DocumentUnwrapConfig"]

R = TypeVar("R", bound=Record)

_PURPOSE: Final = "unwrapping a change event of MongoDB"
_DELETED: Final = "__deleted"
_REFUSED: Final = MappingProxyType(
    {
        "add.source.fields": "list the fields in add.fields, as source.field",
        "operation.header": "set add.headers to op",
        "drop.fields.header.name": "drop fields with a ReplaceField after this transformation",
    }
)


class DocumentUnwrapConfig(ChangeEventConfig):
    """The handling of deletes, arrays and nested documents, and the fields of the event to add."""

    array_encoding: Literal["array", "document"] = option(
        default="array",
        importance=MEDIUM,
        ignore_case=True,
        doc="What becomes of arrays. array: arrays, whose items must be of one type; the fields of documents in them "
        "are joined. document: structs with the fields _0, _1 and so on.",
    )
    flatten_struct: bool = option(
        default=False, importance=LOW, doc="Whether fields of nested documents become fields of the value."
    )
    flatten_struct_delimiter: str = option(
        default="_", importance=LOW, doc="The text between the names of such fields and of the document they are from."
    )
    field_name_adjustment_mode: Literal["none", "avro", "avro_unicode"] = option(
        default="none",
        importance=LOW,
        ignore_case=True,
        doc="Whether characters that Avro does not allow in the names of fields become _ (avro) or their code "
        "(avro_unicode).",
    )

    def check(self) -> list[ConfigError]:
        """Refuse malformed references to fields, and options of older versions."""
        errors = super().check()
        for key, told in _REFUSED.items():
            if (self.originals.get(key) or "").strip().lower() not in ("", "false"):
                errors.append(ConfigRuleError(f"{key} is not supported: {told}.", key))
        return errors


class DocumentUnwrap(Transformation[DocumentUnwrapConfig]):
    """Replaces Debezium's change events of MongoDB with the documents, as structs. Other records pass unchanged.

    An update without the whole document becomes the fields that it has set, with the _id.
    """

    def __init__(self, config: DocumentUnwrapConfig) -> None:
        super().__init__(config)
        self._deletes = config.deletes
        self._fields = config.added_fields
        self._headers = config.added_headers
        names = SchemaNames(config.field_name_adjustment_mode)
        self._documents = Documents(names, encodes_arrays=config.array_encoding == "document")
        self._flatten = Flatten.Value(FlattenConfig(delimiter=config.flatten_struct_delimiter))

    def apply(self, record: R) -> R | None:
        """Return the record with the document as its value, and the id of the document as its key."""
        if record.value is None:
            return self._tombstone(record)
        key = _key_document(record)
        if key is None or not is_envelope(record.value_schema, record.value):
            return record
        event = require_map(record.value, record.value_schema, _PURPOSE)
        deleted = event.get("after") is None and event.get("updateDescription") is None
        if deleted and self._deletes.events == "drop":
            return None
        new = self._keyed(record, key)
        new.headers = headers_with(record, self._headers)
        document = self._document(event, key, deleted=deleted)
        if document is None:
            new.value_schema, new.value = None, None
            return new
        self._route(new, document)
        if self._deletes.events == "rewrite":
            document[_DELETED] = deleted
        new.value_schema, new.value = self._value(record, event, document)
        return self._flatten.apply(new) if self.config.flatten_struct else new

    def _tombstone(self, record: R) -> R | None:
        if not self._deletes.keeps_tombstones:
            return None
        key = _key_document(record)
        return record if key is None else tombstone(self._keyed(record, key), self._headers)

    def _keyed(self, record: R, key: dict[str, Any]) -> R:
        new = copy_of(record)
        if record.key_schema is None:
            new.key = self._documents.plain(key)
        else:
            new.key_schema, new.key = self._documents.struct(key, None)
        return new

    def _document(self, event: Mapping[str, Any], key: dict[str, Any], *, deleted: bool) -> dict[str, Any] | None:
        """Return the document of an event, or ``None`` for a delete that has none."""
        if deleted:
            if self._deletes.events != "rewrite":
                return None
            before = event.get("before")
            return {} if before is None else parse_document(before, "before")
        if event.get("after") is not None:
            return parse_document(event["after"], "after")
        change = require_map(event["updateDescription"], None, _PURPOSE)
        updated = change.get("updatedFields")
        document = {} if updated is None else parse_document(updated, "updateDescription.updatedFields")
        for field in change.get("removedFields") or ():
            document.pop(field, None)
        document.setdefault("_id", key["id"])
        if self.config.flatten_struct:
            document = {
                name.replace(".", self.config.flatten_struct_delimiter): item for name, item in document.items()
            }
        return document

    def _route(self, record: Record, document: Mapping[str, Any]) -> None:
        topic = document.get(self.config.route_by_field) if self.config.route_by_field else None
        if isinstance(topic, str) and topic.strip():
            record.topic = topic

    def _value(
        self, record: Record, event: Mapping[str, Any], document: dict[str, Any]
    ) -> tuple[Schema | None, dict[str, Any]]:
        found = {reference.name: reference.read(event) for reference in self._fields}
        if record.value_schema is None:
            return None, {**self._documents.plain(document), **found}
        schema, value = self._documents.struct(document, _name_of(record.value_schema))
        added = _added(self._fields, record.value_schema)
        fields = {field.name: field.schema for field in schema.fields} | added
        members = [Field(name, member, index) for index, (name, member) in enumerate(fields.items())]
        return schema.replace(fields=members), {**value, **{name: found[name] for name in added}}


def _added(references: list[EnvelopeField], envelope: Schema) -> dict[str, Schema]:
    """Return the schemas of the fields to add, without those that the envelope lacks."""
    found = {reference.name: reference.schema_in(envelope) for reference in references}
    return {name: schema for name, schema in found.items() if schema is not None}


def _name_of(envelope: Schema) -> str | None:
    return None if envelope.name is None else envelope.name.removesuffix(".Envelope")


def _key_document(record: Record) -> dict[str, Any] | None:
    """Return the key as a document with the field ``id``, or ``None`` if it is not the key of a change event."""
    named = record.key_schema is None or (record.key_schema.name or "").endswith(".Key")
    identity = record.key.get("id") if isinstance(record.key, Mapping) and named else None
    if identity is None:
        return None
    if not isinstance(identity, str):
        raise DataError(f"The id in the key of a change event must be text, but is {type(identity).__name__}")
    return parse_document(f'{{"id": {identity}}}', "id of the key")
